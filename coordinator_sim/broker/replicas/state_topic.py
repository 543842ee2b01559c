"""The topic in which coordinators keep their state: its logs, written before anybody is told.

Transactions and share groups have such a topic each. Offsets are written by `groups.offsets_topic`.

Source: kafka 4.3, TransactionStateManager.loadTransactionMetadata and appendTransactionToLog;
PartitionWriterImpl.scala; CoordinatorLoaderImpl.java.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from coordinator_sim.broker.replicas.replica_manager import ReplicaManager
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.log.format.record_batches import Record, batch_of, encode_record_batch
from coordinator_sim.log.format.stored_batches import next_batch
from coordinator_sim.log.log_values import LogEntry
from coordinator_sim.log.partition_log import PartitionLog

Touched = Callable[[tuple[str, int]], None]
"""Called when a partition has more to read."""


class StateTopic:
    """One such topic.

    Args:
        topic: Its name.
        logs: The partitions as the brokers host them.
        touched: Called after appends.
        is_slowed: Whether `before_append` hears of appends: their writers wait for the high
            watermark.
    """

    def __init__(
        self,
        topic: str,
        logs: ReplicaManager,
        *,
        touched: Touched,
        is_slowed: bool = False,
    ) -> None:
        self._topic = topic
        self._is_slowed = is_slowed
        self._logs = logs
        self._touched = touched

    def append(
        self,
        partition: int,
        leader_epoch: int,
        entries: Sequence[LogEntry],
        now_ms: int,
        times_ms: Sequence[int] = (),
    ) -> ErrorCode:
        """Append one batch; return NONE once it is durable.

        The error is NOT_LEADER_OR_FOLLOWER if the partition has another leader epoch by now.

        Args:
            partition: Its number.
            leader_epoch: Of the leader that appends.
            entries: The records.
            now_ms: Their timestamps.
            times_ms: Their timestamps, where they differ.
        """
        if self._logs.append_failure is not ErrorCode.NONE:
            return self._logs.append_failure
        place = TopicPartition(self._topic, partition)
        state = self._logs.image.partition(*place)
        if state is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if state.leader_epoch != leader_epoch:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        log = self._logs.local_log(state.leader_id, place)
        if isinstance(log, ErrorCode):
            return log
        if not self._logs.has_enough_replicas(place):
            return ErrorCode.NOT_ENOUGH_REPLICAS
        if self._is_slowed and self._logs.before_append is not None:
            self._logs.before_append(place)
        data = _batch_bytes(entries, times_ms or (now_ms,) * len(entries))
        appended = self._logs.attempt(
            place, partial(log.append, data, now_ms=now_ms, leader_epoch=leader_epoch)
        )
        if isinstance(appended, ErrorCode):
            return appended
        self._touched(place)
        return appended.error

    def entries(self, partition: int) -> Iterator[LogEntry]:
        """The records of a partition, oldest first; none where a disk fails, up to there."""
        return ((key, value) for _, key, value in self.records(partition))

    def records(self, partition: int) -> Iterator[tuple[int, bytes, bytes | None]]:
        """Offset, key and value of each record, otherwise as `entries`."""
        log = self._log(partition)
        if log is None:
            return
        chunks = log.chunks()
        place = TopicPartition(self._topic, partition)
        while True:
            chunk = self._logs.attempt(place, partial(next, chunks, b""))
            if isinstance(chunk, ErrorCode) or not chunk:
                return
            yield from _records_of(chunk)

    def end_offset(self, partition: int) -> int:
        """The offset after the last record of a partition; 0 where it has no log."""
        log = self._log(partition)
        return 0 if log is None else log.end_offset

    def high_watermark(self, partition: int) -> int:
        """The offset up to which a partition is committed; 0 where it has no log."""
        log = self._log(partition)
        return 0 if log is None else log.high_watermark

    def delete_before(self, partition: int, offset: int) -> ErrorCode:
        """Delete the records before an offset. Source: ReplicaManager.deleteRecords."""
        log = self._log(partition)
        if log is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        place = TopicPartition(self._topic, partition)
        return self._logs.attempt(place, partial(log.delete_before, offset))

    def _log(self, partition: int) -> PartitionLog | None:
        place = TopicPartition(self._topic, partition)
        state = self._logs.image.partition(*place)
        log = None if state is None else self._logs.local_log(state.leader_id, place)
        return None if isinstance(log, ErrorCode) else log


def _batch_bytes(entries: Sequence[LogEntry], times_ms: Sequence[int]) -> bytes:
    records = tuple(
        Record(offset=offset, timestamp_ms=times_ms[offset], key=key, value=value)
        for offset, (key, value) in enumerate(entries)
    )
    return encode_record_batch(batch_of(records))


def _records_of(chunk: bytes) -> Iterator[tuple[int, bytes, bytes | None]]:
    position = 0
    while (batch := next_batch(chunk, position)) is not None:
        position += batch.size
        if not batch.control:
            for record in batch.streamed():
                if record is not None and record.key is not None:
                    yield record.offset, record.key, record.value
