"""Verifies partitions of transactions for Produce and for the group coordinators.

Source: kafka 4.3, AddPartitionsToTxnManager.java (verifyTransaction, addOrVerifyTransaction);
ReplicaManager.maybeSendPartitionsToTransactionCoordinator.
"""

from collections.abc import Callable
from typing import Final, Protocol

from msgspec import Struct

from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.hosting import FollowingHosting
from coordinator_sim.broker.metadata.image import NO_LEADER, MetadataImage
from coordinator_sim.broker.transactions.coordinator import (
    ProducerIdentity,
    TransactionCoordinator,
)
from coordinator_sim.broker.transactions.metadata import TV_0, TV_2
from coordinator_sim.broker.transactions.ports import TransactionConfig
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, partition_for
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.log.partition_log import PartitionLog
from coordinator_sim.messages.txn_offset_commit import TxnOffsetCommitRequest

ADDS_PARTITIONS: Final = 12
"""From this version of Produce on, writing to a partition adds it to the transaction."""


class TransactionalWrite(Struct, frozen=True, kw_only=True, gc=False):
    """A write to a partition that has no open transaction of the producer.

    Args:
        topic: Topic of the partition.
        partition: Number of the partition.
        api_version: Version of Produce; see `ADDS_PARTITIONS`.
        now: When the request arrived.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    topic: str
    partition: int
    api_version: int
    now: Instants


class TransactionGate(Protocol):
    """Knows which partitions are part of a producer's transaction."""

    def verify_or_add(self, write: TransactionalWrite) -> ErrorCode:
        """Return NONE to let the write pass, else the coordinator's own error.

        Below `ADDS_PARTITIONS` the partition must be in the transaction already; from there on it
        is added, which may begin the transaction. Produce translates the coordinator's errors for
        the producer.
        """
        ...


class OpenGate:
    """Lets every write pass, as `transaction.partition.verification.enable=false` does."""

    def verify_or_add(self, _write: TransactionalWrite) -> ErrorCode:
        """Return NONE."""
        return ErrorCode.NONE


_ABORTABLE_SINCE: Final = 11
"""From this version of Produce on, clients know TRANSACTION_ABORTABLE."""
_OFFSETS_ADD_SINCE: Final = 5
_OFFSETS_ABORTABLE_SINCE: Final = 4


class AddPartitionsToTxnManager:
    """Verifies partitions at the transaction coordinators, or adds them to a transaction.

    Args:
        config: Config of every broker.
        image: The cluster's metadata.
        hosting: The transaction coordinators.
        offsets_partitions: `offsets.topic.num.partitions`.
        log_of: The log of a partition; None when there is none.
        present: The instants of the request that is being worked on.
    """

    def __init__(
        self,
        config: TransactionConfig,
        image: MetadataImage,
        hosting: FollowingHosting[TransactionCoordinator],
        *,
        offsets_partitions: int,
        log_of: Callable[[str, int], PartitionLog | None],
        present: Callable[[], Instants],
    ) -> None:
        self._config = config
        self._image = image
        self._hosting = hosting
        self._offsets_partitions = offsets_partitions
        self._log_of = log_of
        self._present = present

    def verify_or_add(self, write: TransactionalWrite) -> ErrorCode:
        """Whether a write of a transaction may pass; see `TransactionGate.verify_or_add`."""
        error = self._verify_or_add(
            write.transactional_id,
            ProducerIdentity(write.producer_id, write.producer_epoch),
            TopicPartition(write.topic, write.partition),
            write.now,
            adds=write.api_version >= ADDS_PARTITIONS,
        )
        return _for_client(error, is_old=write.api_version < _ABORTABLE_SINCE)

    def verdict(self, request: TxnOffsetCommitRequest, api_version: int) -> ErrorCode:
        """Whether offsets may be committed in a transaction; see `TransactionVerifier.verdict`.

        The transaction coordinator is not asked if the offsets partition has the transaction open.
        """
        index = partition_for(request.group_id, self._offsets_partitions)
        topic_partition = TopicPartition(OFFSETS_TOPIC, index)
        log = self._log_of(*topic_partition)
        if log is not None and log.has_open_transaction(
            request.producer_id, request.producer_epoch
        ):
            return ErrorCode.NONE
        error = self._verify_or_add(
            request.transactional_id,
            ProducerIdentity(request.producer_id, request.producer_epoch),
            topic_partition,
            self._present(),
            adds=api_version >= _OFFSETS_ADD_SINCE,
        )
        return _for_client(error, is_old=api_version < _OFFSETS_ABORTABLE_SINCE)

    def _verify_or_add(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        topic_partition: TopicPartition,
        now: Instants,
        *,
        adds: bool,
    ) -> ErrorCode:
        if not adds and not self._config.partition_verification_enable:
            return ErrorCode.NONE
        coordinator = self._coordinator_of(transactional_id, now)
        if isinstance(coordinator, ErrorCode):
            return coordinator
        if adds:
            version = TV_2 if self._config.bumps_epochs else TV_0
            return coordinator.add_partitions(
                transactional_id, producer, [topic_partition], now, client_version=version
            )
        return coordinator.verify_partitions(transactional_id, producer, [topic_partition])[
            topic_partition
        ]

    def _coordinator_of(
        self, transactional_id: str, now: Instants
    ) -> TransactionCoordinator | ErrorCode:
        """The coordinator of a transactional id, or the error of a broker that cannot reach it."""
        topic = self._image.topics.get(TRANSACTIONS_TOPIC)
        if topic is None:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        number = partition_for(transactional_id, len(topic.partitions))
        leader_id = topic.partitions[number].leader_id
        if leader_id == NO_LEADER:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if not self._hosting.brokers.is_running(leader_id):
            return ErrorCode.NETWORK_EXCEPTION
        return self._hosting.coordinator(leader_id, now)


def _for_client(error: ErrorCode, *, is_old: bool) -> ErrorCode:
    """The result of a verification in the error codes that the producer knows.

    Source: AddPartitionsToTxnManager.AddPartitionsToTxnHandler.onComplete.
    """
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and is_old:
        return ErrorCode.INVALID_TXN_STATE
    return error
