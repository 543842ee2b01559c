"""The transaction coordinators of all brokers: leadership of the state log, and deadlines.

Produce and the group coordinators verify partitions of a transaction here.

Source: kafka 4.3, BrokerMetadataPublisher.scala (elections and resignations);
AddPartitionsToTxnManager.java; ReplicaManager.maybeSendPartitionsToTransactionCoordinator.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from coordinator_sim.broker.cluster_events import ClusterEvents
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.changes import Change
from coordinator_sim.broker.metadata.image import NO_LEADER, MetadataImage
from coordinator_sim.broker.scheduler import Scheduler, earliest
from coordinator_sim.broker.transactions.coordinator import (
    ProducerIdentity,
    TransactionCoordinator,
)
from coordinator_sim.broker.transactions.gate import ADDS_PARTITIONS, TransactionalWrite
from coordinator_sim.broker.transactions.metadata import TV_0, TV_2
from coordinator_sim.broker.transactions.ports import (
    MarkerWriting,
    StateLog,
    TransactionConfig,
)
from coordinator_sim.broker.transactions.producer_ids import ProducerIds
from coordinator_sim.broker.transactions.states import TransactionStates
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, partition_for
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.log.format.steps import Steps
from coordinator_sim.log.partition_log import PartitionLog
from coordinator_sim.messages.txn_offset_commit import TxnOffsetCommitRequest

_ABORTABLE_SINCE: Final = 11
"""From this version of Produce on, clients know TRANSACTION_ABORTABLE."""
_OFFSETS_ADD_SINCE: Final = 5
_OFFSETS_ABORTABLE_SINCE: Final = 4


class _Led(Struct, frozen=True):
    """The leader of a state log partition: broker, broker epoch and leader epoch."""

    broker_id: int
    broker_epoch: int
    leader_epoch: int


class TransactionBrokers:
    """All transaction coordinators.

    Args:
        config: Config of every broker.
        image: The cluster's metadata.
        log: `__transaction_state`.
        writing: Sends markers to the leaders of partitions.
        change: Applies a change of the metadata.
        is_running: Whether a broker is alive and not frozen.
        scheduler: Calls `expire` in time.
    """

    __slots__ = (
        "_change",
        "_config",
        "_image",
        "_is_running",
        "_led",
        "_log",
        "_members",
        "_scheduler",
        "_seen_version",
        "_writing",
    )

    def __init__(  # noqa: PLR0913 - what coordinators need, by keyword
        self,
        config: TransactionConfig,
        image: MetadataImage,
        log: StateLog,
        writing: MarkerWriting,
        *,
        change: Callable[[Change], None],
        is_running: Callable[[int], bool],
        scheduler: Scheduler,
    ) -> None:
        self._config = config
        self._image = image
        self._log = log
        self._writing = writing
        self._change = change
        self._is_running = is_running
        self._scheduler = scheduler
        self._members: dict[int, tuple[int, TransactionCoordinator]] = {}
        self._led: dict[int, _Led] = {}
        self._seen_version = -1

    def coordinator(self, broker_id: int, now: Instants) -> TransactionCoordinator:
        """The coordinator of a broker, with all partitions loaded that it leads."""
        self.sync(now)
        return self._member(broker_id, now)

    def _member(self, broker_id: int, now: Instants) -> TransactionCoordinator:
        """The coordinator of a broker, made anew and empty when its broker epoch changed."""
        broker_epoch = self._image.broker_epochs.get(broker_id, 0)
        known = self._members.get(broker_id)
        if known is not None and known[0] == broker_epoch:
            return known[1]
        coordinator = TransactionCoordinator(
            self._config,
            TransactionStates(self._config, self._image, self._log),
            ProducerIds(self._image, self._change),
            self._writing,
            self._scheduler,
            now.group_ms,
        )
        self._members[broker_id] = (broker_epoch, coordinator)
        return coordinator

    # -- leadership ---------------------------------------------------------------------------

    def listen(self, cluster_events: ClusterEvents) -> None:
        """Subscribe to changes of leaders and topics."""
        cluster_events.leader_changed.append(lambda _topic, _partition, now: self.sync(now))
        cluster_events.topic_created.append(lambda _name, now: self.sync(now))
        cluster_events.topic_deleted.append(lambda _name, _id, _partitions, now: self.sync(now))

    def sync(self, now: Instants) -> None:
        """Follow the metadata: load the partitions that each broker leads now, unload the others.

        Markers that waited for a leader are sent again.
        """
        if self._seen_version == self._image.version:
            return
        self._seen_version = self._image.version
        topic = self._image.topics.get(TRANSACTIONS_TOPIC)
        partitions = topic.partitions if topic is not None else []
        for number in [each for each in self._led if each >= len(partitions)]:
            self._resign(number, self._led.pop(number))
        for number, state in enumerate(partitions):
            broker_epoch = self._image.broker_epochs.get(state.leader_id, 0)
            leads = _Led(state.leader_id, broker_epoch, state.leader_epoch)
            led = self._led.get(number)
            if leads == led:
                continue
            self._led[number] = leads
            if led is not None:
                self._resign(number, led)
            if state.leader_id != NO_LEADER:
                member = self._member(state.leader_id, now)
                member.on_election(number, state.leader_epoch, now)
        self._writing.leaders_changed()
        for _, member in list(self._members.values()):
            member.markers.retry(now)

    def _resign(self, number: int, led: _Led) -> None:
        known = self._members.get(led.broker_id)
        if known is not None and known[0] == led.broker_epoch:
            known[1].on_resignation(number)

    # -- questions of others ------------------------------------------------------------------

    def verify_or_add(self, write: TransactionalWrite) -> ErrorCode:
        """Whether a write of a transaction may pass; see `TransactionGate.verify_or_add`."""
        error = self._verify_or_add(
            write.transactional_id,
            ProducerIdentity(write.producer_id, write.producer_epoch),
            TopicPartition(write.topic, write.partition),
            write.now,
            adds=write.api_version >= ADDS_PARTITIONS,
        )
        return _told(error, is_old=write.api_version < _ABORTABLE_SINCE)

    def verify_offsets(
        self,
        request: TxnOffsetCommitRequest,
        api_version: int,
        place: TopicPartition,
        now: Instants,
    ) -> ErrorCode:
        """Whether offsets may be committed in a transaction; the error fits the API version."""
        error = self._verify_or_add(
            request.transactional_id,
            ProducerIdentity(request.producer_id, request.producer_epoch),
            place,
            now,
            adds=api_version >= _OFFSETS_ADD_SINCE,
        )
        return _told(error, is_old=api_version < _OFFSETS_ABORTABLE_SINCE)

    def _verify_or_add(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        place: TopicPartition,
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
                transactional_id, producer, [place], now, client_version=version
            )
        return coordinator.verify_partitions(transactional_id, producer, [place])[place]

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
        if not self._is_running(leader_id):
            return ErrorCode.NETWORK_EXCEPTION
        return self.coordinator(leader_id, now)

    # -- time ---------------------------------------------------------------------------------

    def expire(self, now: Instants) -> list[Steps[None]]:
        """What is due at every running broker."""
        self.sync(now)
        return [coordinator.expire(now) for coordinator in self._running()]

    def next_group_deadline_ms(self) -> int | None:
        """The earliest sweep of a running broker that will find something to do."""
        return earliest(each.next_group_deadline_ms() for each in self._running())

    def arm(self) -> None:
        """Arm the scheduler for the deadlines of every running broker."""
        for coordinator in self._running():
            coordinator.arm()

    def _running(self) -> list[TransactionCoordinator]:
        return [
            coordinator
            for broker_id, (broker_epoch, coordinator) in self._members.items()
            if self._is_running(broker_id)
            and broker_epoch == self._image.broker_epochs.get(broker_id, 0)
        ]


class OffsetsVerifier:
    """Tells group coordinators whether offsets may be committed in a transaction.

    The transaction coordinator is not asked if the offsets partition has the transaction open.

    Args:
        transactions: The transaction coordinators.
        offsets_partitions: `offsets.topic.num.partitions`.
        log_of: The log of a partition; None when there is none.
        present: The instants of the request that is being worked on.
    """

    __slots__ = ("_log_of", "_offsets_partitions", "_present", "_transactions")

    def __init__(
        self,
        transactions: TransactionBrokers,
        *,
        offsets_partitions: int,
        log_of: Callable[[str, int], PartitionLog | None],
        present: Callable[[], Instants],
    ) -> None:
        self._transactions = transactions
        self._offsets_partitions = offsets_partitions
        self._log_of = log_of
        self._present = present

    def verdict(self, request: TxnOffsetCommitRequest, api_version: int) -> ErrorCode:
        """Whether the request's offsets may be committed; see `TransactionVerifier.verdict`."""
        index = partition_for(request.group_id, self._offsets_partitions)
        place = TopicPartition(OFFSETS_TOPIC, index)
        log = self._log_of(*place)
        if log is not None and log.has_open_transaction(
            request.producer_id, request.producer_epoch
        ):
            return ErrorCode.NONE
        return self._transactions.verify_offsets(request, api_version, place, self._present())


def _told(error: ErrorCode, *, is_old: bool) -> ErrorCode:
    """The result of a verification as the producer is told it.

    Source: AddPartitionsToTxnManager.AddPartitionsToTxnHandler.onComplete.
    """
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and is_old:
        return ErrorCode.INVALID_TXN_STATE
    return error
