"""The transactional ids of one broker: those of the state log partitions that it leads.

The state follows the log: a step is appended first and then takes effect. Loading a partition
from its log gives the same state again.

Source: kafka 4.3, core/.../transaction/TransactionStateManager.scala.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from coordinator_sim.broker.metadata.image import MetadataImage
from coordinator_sim.broker.transactions.metadata import (
    MAX_TIMEOUT_MS,
    TransactionMetadata,
    TransactionState,
    TxnTransit,
)
from coordinator_sim.broker.transactions.ports import StateLog, TransactionConfig
from coordinator_sim.broker.transactions.state_records import (
    entry_of,
    metadata_from,
    value_version,
)
from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import TRANSACTIONS_TOPIC, partition_for
from coordinator_sim.messages.codec.records import key_bytes, read_key
from coordinator_sim.messages.transaction_log_records import TransactionLogKey

_RECORD_TYPES: Final = {TransactionLogKey.record_type: TransactionLogKey}
_FEATURE: Final = "transaction.version"
_COORDINATOR_ERRORS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""Errors of an append, with the error that the coordinator answers."""


@dataclass(slots=True, frozen=True, eq=False)
class Owned:
    """A transactional id that this broker coordinates, at its partition's leader epoch."""

    coordinator_epoch: int
    metadata: TransactionMetadata

    def is_still(self, other: "Owned | ErrorCode | None") -> bool:
        """Whether another look-up found the same metadata at the same epoch."""
        if not isinstance(other, Owned):
            return False
        is_same_epoch = self.coordinator_epoch == other.coordinator_epoch
        return is_same_epoch and self.metadata is other.metadata


@dataclass(slots=True)
class _Partition:
    coordinator_epoch: int
    ids: dict[str, TransactionMetadata] = field(default_factory=dict)


class TransactionStates:
    """The transactional ids that one broker coordinates.

    Args:
        config: Config of the broker.
        image: The cluster's metadata.
        log: The log of `__transaction_state`.

    Attributes:
        oldest_update_ms: Lower bound of the last use of all ids; None without ids.
    """

    def __init__(self, config: TransactionConfig, image: MetadataImage, log: StateLog) -> None:
        self._config = config
        self._image = image
        self._log = log
        self._partitions: dict[int, _Partition] = {}
        self._loading: dict[int, int] = {}
        self._open: dict[str, TransactionMetadata] = {}
        self.oldest_update_ms: int | None = None

    @property
    def transaction_version(self) -> int:
        """The finalized level of `transaction.version`."""
        return self._image.features.get(_FEATURE, 0)

    def partition_for(self, transactional_id: str) -> int:
        """The state log partition that an id belongs to."""
        topic = self._image.topics.get(TRANSACTIONS_TOPIC)
        count = self._config.transaction_state_log_num_partitions
        return partition_for(transactional_id, len(topic.partitions) if topic else count)

    def owned_partitions(self) -> dict[int, int]:
        """The partitions loaded or being loaded, each with its leader epoch."""
        loaded = {number: each.coordinator_epoch for number, each in self._partitions.items()}
        return {**loaded, **self._loading}

    # -- one id -------------------------------------------------------------------------------

    def find(self, transactional_id: str) -> Owned | ErrorCode | None:
        """The state of an id, None for a new one, or the error if this is not its coordinator."""
        number = self.partition_for(transactional_id)
        if number in self._loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        partition = self._partitions.get(number)
        if partition is None:
            return ErrorCode.NOT_COORDINATOR
        metadata = partition.ids.get(transactional_id)
        return None if metadata is None else Owned(partition.coordinator_epoch, metadata)

    def put(self, metadata: TransactionMetadata) -> Owned:
        """Add a new id of an owned partition, without writing to the log."""
        partition = self._partitions[self.partition_for(metadata.transactional_id)]
        partition.ids[metadata.transactional_id] = metadata
        self._know(metadata)
        return Owned(partition.coordinator_epoch, metadata)

    def append(
        self,
        transactional_id: str,
        coordinator_epoch: int,
        transit: TxnTransit,
        now_ms: int,
        *,
        keep_pending_on: ErrorCode | None = None,
    ) -> ErrorCode:
        """Append a prepared step to the log and apply it.

        Args:
            transactional_id: The id.
            coordinator_epoch: Epoch at which the step was prepared; at another, nothing is written.
            transit: The step.
            now_ms: The record's timestamp.
            keep_pending_on: Error after which the step stays pending, because the caller retries.

        Returns:
            NONE, or the coordinator's error; the step is then given up.

        Source: TransactionStateManager.appendTransactionToLog.
        """
        owned = self.find(transactional_id)
        if isinstance(owned, ErrorCode):
            return owned
        if owned is None or owned.coordinator_epoch != coordinator_epoch:
            return ErrorCode.NOT_COORDINATOR
        level = self.transaction_version
        if transit.client_version and not value_version(level):
            # DEVIATION: Kafka fails while it writes the record, and the id stays blocked.
            owned.metadata.pending = None
            return ErrorCode.UNSUPPORTED_VERSION
        entry = entry_of(transactional_id, transit, level)
        number = self.partition_for(transactional_id)
        appended = self._log.append(number, coordinator_epoch, [entry], now_ms)
        error = _COORDINATOR_ERRORS.get(appended, appended)
        if error is ErrorCode.NONE:
            owned.metadata.complete(transit)
            self._know(owned.metadata)
        elif error is not keep_pending_on:
            owned.metadata.pending = None
        return error

    def _know(self, metadata: TransactionMetadata) -> None:
        """Update the indexes that deadlines are computed from."""
        if metadata.state is TransactionState.ONGOING:
            self._open[metadata.transactional_id] = metadata
        else:
            self._open.pop(metadata.transactional_id, None)
        oldest_ms = self.oldest_update_ms
        if oldest_ms is None or metadata.updated_ms < oldest_ms:
            self.oldest_update_ms = metadata.updated_ms

    def all(self) -> Iterator[Owned]:
        """Every loaded id, partition by partition."""
        for partition in self._partitions.values():
            for metadata in partition.ids.values():
                yield Owned(partition.coordinator_epoch, metadata)

    @property
    def is_loading(self) -> bool:
        """Whether any partition is being loaded."""
        return bool(self._loading)

    # -- partitions ---------------------------------------------------------------------------

    def begin_load(self, number: int, coordinator_epoch: int) -> None:
        """Mark a partition that the broker now leads as loading; its ids are not available yet."""
        self._loading[number] = coordinator_epoch

    def finish_load(self, number: int, now_ms: int) -> list[tuple[Owned, TxnTransit]]:
        """Load a partition that `begin_load` marked.

        Returns:
            Transactions with a prepared but not completed end, each with the step to take after
            its markers are written.

        Source: loadTransactionsForTxnTopicPartition.
        """
        epoch = self._loading[number]
        ids = self._read(number)
        if self._loading.get(number) != epoch:
            # The disk failed, and the partition has another leader by now.
            return []
        self.unload(number)
        self._partitions[number] = _Partition(epoch, ids)
        for metadata in ids.values():
            self._know(metadata)
        return [
            (Owned(epoch, metadata), metadata.prepare_complete(now_ms))
            for metadata in ids.values()
            if metadata.state in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
        ]

    def _read(self, number: int) -> dict[str, TransactionMetadata]:
        """The ids of a partition's log, up to a record that cannot be read.

        QUIRK: Kafka logs such a record and serves what came before it.

        Source: TransactionStateManager.loadTransactionMetadata.
        """
        ids: dict[str, TransactionMetadata] = {}
        try:
            for key, value in self._log.entries(number):
                named: TransactionLogKey | None = read_key(_RECORD_TYPES, key)
                if named is None:
                    continue
                transactional_id = named.transactional_id
                metadata = None if value is None else metadata_from(transactional_id, value)
                if metadata is None:
                    ids.pop(transactional_id, None)
                else:
                    ids[transactional_id] = metadata
        except WireFormatError:
            return ids
        return ids

    def unload(self, number: int) -> None:
        """Drop a partition no longer led. Source: removeTransactionsForTxnTopicPartition."""
        self._loading.pop(number, None)
        partition = self._partitions.pop(number, None)
        for transactional_id in partition.ids if partition is not None else ():
            self._open.pop(transactional_id, None)

    # -- time ---------------------------------------------------------------------------------

    def timed_out(self, now_ms: int) -> list[TransactionMetadata]:
        """Open transactions that have timed out. Source: timedOutTransactions."""
        return [
            metadata
            for metadata in self._open.values()
            if (due_ms := timeout_deadline_ms(metadata)) is not None and due_ms <= now_ms
        ]

    def remove_expired(self, now_ms: int) -> None:
        """Remove ids that were not used for `transactional.id.expiration.ms`, by a tombstone each.

        Source: removeExpiredTransactionalIds, writeTombstonesForExpiredTransactionalIds.
        """
        latest_ms = now_ms - self._config.transactional_id_expiration_ms
        for number, partition in self._partitions.items():
            expired = [
                metadata
                for metadata in partition.ids.values()
                if metadata.pending is None
                and metadata.may_expire
                and metadata.updated_ms <= latest_ms
            ]
            if expired:
                self._bury(number, partition, expired, now_ms)
        left = (owned.metadata.updated_ms for owned in self.all())
        self.oldest_update_ms = min(left, default=None)

    def _bury(
        self, number: int, partition: _Partition, expired: list[TransactionMetadata], now_ms: int
    ) -> None:
        entries = []
        for metadata in expired:
            metadata.prepare_dead()
            entries.append((key_bytes(TransactionLogKey(metadata.transactional_id)), None))
        error = self._log.append(number, partition.coordinator_epoch, entries, now_ms)
        for metadata in expired:
            if error is ErrorCode.NONE:
                del partition.ids[metadata.transactional_id]
            else:
                metadata.pending = None

    def earliest_timeout_ms(self) -> int | None:
        """When the first open transaction times out; None without one."""
        found = (timeout_deadline_ms(metadata) for metadata in self._open.values())
        return min((each for each in found if each is not None), default=None)


def timeout_deadline_ms(metadata: TransactionMetadata) -> int | None:
    """When an open transaction times out; None for any other.

    Source: TransactionStateManager.timedOutTransactions: the timeout must be exceeded.
    """
    is_open = metadata.state is TransactionState.ONGOING and metadata.pending is None
    if not is_open or metadata.timeout_ms == MAX_TIMEOUT_MS:
        return None
    return metadata.started_ms + metadata.timeout_ms + 1
