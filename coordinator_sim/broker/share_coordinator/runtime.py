"""The partitions of `__share_group_state` that one broker leads: operations, loads, leadership.

How operations are batched, deferred and timed out is `coordinator.common.runtime`; here is what
Kafka has in its PartitionWriter and CoordinatorLoader, and the schedule* methods of its runtime.

Operations and what follows them are events in one line: an event that is caused by another one
runs after it.

Source: kafka 4.3, coordinator-common/.../runtime/CoordinatorRuntime.java.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import Struct

from coordinator_sim.broker.scheduler import WakeBy
from coordinator_sim.broker.share_coordinator.ports import (
    KnownTopics,
    ShareCoordinatorConfig,
    StateLog,
)
from coordinator_sim.broker.share_coordinator.shard import Records, Refusal, ShareCoordinatorShard
from coordinator_sim.broker.share_coordinator.state import ShareRecord
from coordinator_sim.clock.timer_queue import TimerKey, TimerKind
from coordinator_sim.coordinator.common.runtime import (
    CoordinatorEvent,
    CoordinatorRuntime,
    OpenBatch,
    PartitionState,
    WriteEvent,
)
from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.kafka.partitioning import SHARE_STATE_TOPIC
from coordinator_sim.log.format.share_state_records import decode_share_state, encode_share_state

Act = Callable[[ShareCoordinatorShard], tuple[Records, Any]]
"""What an operation does: the records that it writes, and its result."""
Told = Callable[[Any, Refusal | None], None]
"""Hears once how an operation ended: its result, or why it failed."""


class Operation(WriteEvent, eq=False):
    """An operation on a partition; Kafka's name of it is part of an error's words.

    Args:
        partition: Its number.
        name: Its name.
        act: See `Act`.
        told: See `Told`.
        is_late: Whether it was not committed in time.
    """

    partition: int
    name: str
    act: Act
    told: Told
    result: Any = None
    is_late: bool = False

    def run(self, runtime: "ShareCoordinatorRuntime") -> None:
        """Act and write, unless the partition takes no operations."""
        shard = runtime.partitions.get(self.partition)
        if shard is None or shard.state is not PartitionState.ACTIVE:
            is_loading = shard is not None and shard.state is PartitionState.LOADING
            loading, absent = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR
            runtime.finish(self, loading if is_loading else absent)
            return
        self.records, self.result = self.act(shard)
        if self.records or shard.open_batch is not None:
            runtime.add(shard, self)
        else:
            runtime.wait(shard, self)


class _InternalEvent(Struct, frozen=True):
    """An event that is no operation. Source: CoordinatorInternalEvent."""

    do: Callable[[], None]

    def run(self, _runtime: "ShareCoordinatorRuntime") -> None:
        """Do it."""
        self.do()


class ShareCoordinatorRuntime(CoordinatorRuntime[ShareCoordinatorShard]):
    """The partitions of one broker.

    Args:
        config: Of the broker.
        log: The topic.
        topics: What topics there are.
        wake_by: Arms the alarm for a deadline, by the group clock.

    Attributes:
        wake_by: See above.
        idle: Called when no event is left; None for nobody.
    """

    def __init__(
        self, config: ShareCoordinatorConfig, log: StateLog, topics: KnownTopics, wake_by: WakeBy
    ) -> None:
        super().__init__(SHARE_STATE_TOPIC, config.append_linger_ms)
        self.is_idle = True
        self.wake_by = wake_by
        self.idle: Callable[[], None] | None = None
        self._config = config
        self._log = log
        self._topics = topics

    # -- operations ---------------------------------------------------------------------------

    def enqueue(self, event: CoordinatorEvent | OpenBatch, *, is_first: bool = False) -> None:
        """Run an event as its base does, and say so when none is left."""
        was_idle = self.is_idle
        try:
            super().enqueue(event, is_first=is_first)
        finally:
            if was_idle and self.idle is not None:
                self.idle()

    def write_all(self, name: str, act: Act, told: Told) -> int:
        """Let an operation run on every partition, in Kafka's order; how many these are.

        Source: scheduleWriteAllOperation.
        """
        shards = self.shards()
        for shard in shards:
            self.enqueue(Operation(shard.index, name, act, told))
        return len(shards)

    @property
    def write_timeout_ms(self) -> int:
        """The setting `share.coordinator.write.timeout.ms`."""
        return self._config.write_timeout_ms

    def expire_write(self, write: Operation) -> None:
        """Let the failure say so."""
        write.is_late = True
        super().expire_write(write)

    def complete(self, write: Operation, error: ErrorCode) -> None:
        """Pass the result on, or the failure, with the words of Kafka's exception."""
        words = error_message(error)
        if write.is_late:
            words = f"{write.name} timed out after {self.write_timeout_ms}ms"
        write.told(write.result, None if error is NO_ERROR else Refusal(error, words))

    # -- the log ------------------------------------------------------------------------------

    def append_open(self, shard: ShareCoordinatorShard, batch: OpenBatch) -> ErrorCode:
        """Append the open batch; where the log has more than that, read the partition again."""
        entries = [encode_share_state(record.key, record.value) for record in batch.records]
        expected = shard.end_offset + len(entries)
        error = self._log.append(
            shard.index, shard.leader_epoch, entries, self.now_ms, batch.times_ms
        )
        if error is not NO_ERROR:
            return error
        shard.end_offset = self._log.end_offset(shard.index)
        shard.timeline.settle(shard.end_offset, shard.high_watermark)
        if shard.end_offset == expected:
            return NO_ERROR
        # Somebody else wrote to the partition: what is in memory is not what is in the log.
        self._drop(shard, PartitionState.FAILED)
        self._begin_load(shard)
        return ErrorCode.NOT_COORDINATOR

    def committed(self, partition: int, offset: int) -> None:
        """A partition is committed up to that offset now. Source: HighWatermarkListener."""
        self.enqueue(_InternalEvent(partial(self._commit, partition, offset)), is_first=True)

    def _commit(self, partition: int, offset: int) -> None:
        shard = self.partitions.get(partition)
        if shard is not None and shard.state is PartitionState.ACTIVE:
            shard.high_watermark = offset
            shard.timeline.settle(shard.end_offset, offset)
            self.release(shard)

    # -- leadership ---------------------------------------------------------------------------

    def load(self, partition: int, leader_epoch: int) -> None:
        """Load a partition that this broker leads now. Source: scheduleLoadOperation."""
        self.shard_of(partition)
        self._enqueue(partial(self._load, partition, leader_epoch))

    def _enqueue(self, do: Callable[[], None]) -> None:
        self.enqueue(_InternalEvent(do))

    def new_shard(self, index: int) -> ShareCoordinatorShard:
        """A partition without state."""
        return ShareCoordinatorShard(self._config, self._topics, index)

    def _load(self, partition: int, leader_epoch: int) -> None:
        shard = self.shard_of(partition)
        if shard.leader_epoch >= leader_epoch:
            return
        shard.leader_epoch = leader_epoch
        if shard.state in (PartitionState.CLOSED, PartitionState.FAILED):
            self._begin_load(shard)

    def _begin_load(self, closed: ShareCoordinatorShard) -> None:
        """Begin anew, with a shard that has no state."""
        index = closed.index
        shard = self.partitions[index] = self.new_shard(index)
        shard.leader_epoch = closed.leader_epoch
        shard.state = PartitionState.LOADING
        finish = partial(self._finish_load, shard)
        if self._config.load_ms and self._log.end_offset(index):
            due_ms = self.now_ms + self._config.load_ms
            self.new_timer(TimerKind.LOAD, due_ms, partial(self._enqueue, finish))
        else:
            finish()

    def _finish_load(self, shard: ShareCoordinatorShard) -> None:
        """Read the log, and take operations from then on, unless it cannot be read."""
        if self.partitions.get(shard.index) is not shard:
            return
        try:
            self._replay(shard)
        except (WireFormatError, OSError):
            # What was read is not served: the partition has no coordinator until the next election.
            self._enqueue(partial(self._end_load, shard, PartitionState.FAILED))
            return
        self._enqueue(partial(self._end_load, shard, PartitionState.ACTIVE))

    def _replay(self, shard: ShareCoordinatorShard) -> None:
        """Source: CoordinatorLoaderImpl.doLoad."""
        shard.timeline.remember()
        for offset, key, value in self._log.records(shard.index):
            read = decode_share_state(key, value)
            if read is not None:
                shard.replay(offset, ShareRecord(*read))
        shard.end_offset = self._log.end_offset(shard.index)
        shard.high_watermark = min(self._log.high_watermark(shard.index), shard.end_offset)
        shard.timeline.settle(shard.end_offset, shard.high_watermark)

    def _end_load(self, shard: ShareCoordinatorShard, state: PartitionState) -> None:
        if self.partitions.get(shard.index) is shard and shard.state is PartitionState.LOADING:
            shard.state = state

    def unload(self, partition: int, leader_epoch: int | None) -> None:
        """Give up a partition that another broker leads; epoch None where the topic is gone.

        Source: scheduleUnloadOperation.
        """
        self._enqueue(partial(self._unload, partition, leader_epoch))

    def _unload(self, partition: int, leader_epoch: int | None) -> None:
        shard = self.partitions.get(partition)
        if shard is None or (leader_epoch is not None and shard.leader_epoch >= leader_epoch):
            return
        self._drop(shard, PartitionState.CLOSED)
        self.remove_shard(partition)

    def _drop(self, shard: ShareCoordinatorShard, state: PartitionState) -> None:
        """Fail everyone who waits. Source: CoordinatorContext.unload."""
        shard.state = state
        self.fail_writes(shard, ErrorCode.NOT_COORDINATOR)

    def close(self) -> None:
        """Give up all partitions. Source: CoordinatorRuntime.close."""
        for shard in self.shards():
            self._unload(shard.index, None)

    # -- time ---------------------------------------------------------------------------------

    def schedule(self, key: TimerKey, deadline_ms: int, data: object) -> None:
        """Arm a timer, and the alarm for it, unless it is a job's, which may find nothing to do."""
        super().schedule(key, deadline_ms, data)
        if key.kind is not TimerKind.UPKEEP:
            self.wake_by(deadline_ms)

    def expire(self, now_ms: int) -> None:
        """Run what is due, in Kafka's order."""
        self.now_ms = now_ms
        while (timer := self.timers.pop_due(now_ms)) is not None:
            data = timer.data
            if isinstance(data, OpenBatch):
                self.enqueue(data, is_first=True)
            elif isinstance(data, Operation):
                self._enqueue(partial(self.expire_write, data))
            elif callable(data):
                data()
