"""Config of transactions, and the interfaces they use of the rest of the cluster."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from msgspec import Struct

from coordinator_sim.broker.contract import Instants
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.log.log_values import LogEntry

MarkerDone = Callable[[TopicPartition, ErrorCode, Instants], None]
"""Called with the result of one partition's marker, at once or later."""


class TransactionConfig(Struct, frozen=True, kw_only=True):
    """The settings of a broker that transactions read. Defaults are Kafka's.

    Args:
        transactional_id_expiration_ms: `transactional.id.expiration.ms`.
        transaction_max_timeout_ms: `transaction.max.timeout.ms`.
        transaction_state_log_num_partitions: `transaction.state.log.num.partitions`.
        abort_interval_ms: `transaction.abort.timed.out.transaction.cleanup.interval.ms`.
        expiration_interval_ms: `transaction.remove.expired.transaction.cleanup.interval.ms`.
        two_phase_commit_enable: `transaction.two.phase.commit.enable`.
        partition_verification_enable: `transaction.partition.verification.enable`.
        bumps_epochs: Whether the release knows version 2 of transactions (since 4.0): brokers use
            it among themselves, and check for a pending step before the producer's identity.

    Source: kafka 4.3, TransactionStateManagerConfig.java and TransactionLogConfig.java.
    """

    transactional_id_expiration_ms: int = 7 * 24 * 3_600_000
    transaction_max_timeout_ms: int = 15 * 60_000
    transaction_state_log_num_partitions: int = 50
    abort_interval_ms: int = 10_000
    expiration_interval_ms: int = 3_600_000
    two_phase_commit_enable: bool = False
    partition_verification_enable: bool = True
    bumps_epochs: bool = True


class StateLog(Protocol):
    """The partitions of `__transaction_state`."""

    def append(
        self, partition: int, leader_epoch: int, entries: Sequence[LogEntry], now_ms: int
    ) -> ErrorCode:
        """Append one batch; return NONE once it is durable.

        The error is NOT_LEADER_OR_FOLLOWER if the partition has another leader epoch by now.
        """
        ...

    def entries(self, partition: int) -> Iterable[LogEntry]:
        """The records of a partition, oldest first."""
        ...


class Marker(Struct, frozen=True, kw_only=True, gc=False):
    """The marker of an ended transaction, to be written to each of its partitions.

    Args:
        coordinator_epoch: Epoch of the coordinator; partitions refuse an older one.
        transaction_version: Level of `transaction.version` that the client used.
    """

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int
    transaction_version: int = 0


class MarkerWriting(Protocol):
    """Access of a transaction coordinator to the leaders of partitions."""

    def leader_of(self, place: TopicPartition) -> int | None:
        """The broker to write to; -1 while there is none, None when there is no such partition."""
        ...

    def write(
        self, broker_id: int, place: TopicPartition, marker: Marker, now: Instants, done: MarkerDone
    ) -> None:
        """Let a broker write a marker; `done` is called before this returns or later."""
        ...

    def leaders_changed(self) -> None:
        """Give up on leaders that were replaced; `done` is called for their open requests."""
        ...
