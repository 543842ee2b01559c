"""Writes and loads of the partitions of `__share_group_state` that one broker leads.

An operation changes the state in memory at once, its records lie in the partition's open batch
until that is appended, and its answer waits until the log is committed up to there. What was
appended by nobody in the end is taken back. Nothing here knows what an operation is about.

Operations and what follows them are events in one line: an event that is caused by another one
runs after it. The group coordinator has the same design over tables of groups (`coordinator.writes`
and `coordinator.linger`), in which events of one verb follow each other directly.

Source: kafka 4.3, coordinator-common/.../runtime/CoordinatorRuntime.java.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.broker.scheduler import WakeBy
from coordinator_sim.broker.share_coordinator.ports import (
    KnownTopics,
    ShareCoordinatorConfig,
    StateLog,
)
from coordinator_sim.broker.share_coordinator.shard import Records, Refusal, ShareCoordinatorShard
from coordinator_sim.broker.share_coordinator.state import ShareRecord
from coordinator_sim.clock.timer_queue import Timer, TimerKey, TimerKind, TimerQueue
from coordinator_sim.coordinator.common.runtime import PartitionState
from coordinator_sim.coordinator.common.timeline import Timeline
from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.orders.iteration_order import ConcurrentHashTable, topic_partition_hash
from coordinator_sim.kafka.partitioning import SHARE_STATE_TOPIC
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.log.format.share_state_records import decode_share_state, encode_share_state

ADAPTIVE: Final = -1
"""An append linger that ends when no other event waits."""

Act = Callable[[ShareCoordinatorShard], tuple[Records, Any]]
"""What an operation does: the records that it writes, and its result."""
Told = Callable[[Any, Refusal | None], None]
"""Hears once how an operation ended: its result, or why it failed."""


class Operation(Struct, eq=False):
    """An operation on a partition; Kafka's name of it is part of an error's words.

    Args:
        name: Its name.
        act: See `Act`.
        told: See `Told`.
    """

    name: str
    act: Act
    told: Told
    result: Any = None
    timeout: TimerKey | None = None
    is_done: bool = False


@dataclass(slots=True, eq=False)
class _OpenBatch:
    """Records that are applied and not appended yet.

    Args:
        opened_ms: When its first record came.
        times_ms: Of the records, one each.
        operations: Those that wait for it, in order; some brought no records.
    """

    opened_ms: int
    records: list[ShareRecord] = field(default_factory=list)
    times_ms: list[int] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Context:
    """A partition. Source: CoordinatorContext.

    Args:
        leader_epoch: Of this broker's leadership.
        written: The end of its log.
        committed: How much of that is committed.
        waiting: Operations that wait for the commit of an offset.
    """

    partition: int
    leader_epoch: int = -1
    state: PartitionState | None = None
    shard: ShareCoordinatorShard | None = None
    timeline: Timeline = field(default_factory=Timeline)
    written: int = 0
    committed: int = 0
    batch: _OpenBatch | None = None
    waiting: deque[tuple[int, Operation]] = field(default_factory=deque)


class ShareCoordinatorRuntime:
    """The partitions of one broker.

    Args:
        config: Of the broker.
        log: The topic.
        topics: What topics there are.
        wake_by: Arms the alarm for a deadline, by the group clock.

    Attributes:
        wake_by: See above.
        idle: Called when no event is left; None for nobody.
        now_ms: Instant of the verb under way.
        timers: All timers, in Kafka's order.
    """

    __slots__ = (
        "_config",
        "_contexts",
        "_events",
        "_is_busy",
        "_log",
        "_order",
        "_timer_count",
        "_topics",
        "idle",
        "now_ms",
        "timers",
        "wake_by",
    )

    def __init__(
        self, config: ShareCoordinatorConfig, log: StateLog, topics: KnownTopics, wake_by: WakeBy
    ) -> None:
        self.wake_by = wake_by
        self.idle: Callable[[], None] | None = None
        self._config = config
        self._log = log
        self._topics = topics
        self._contexts: dict[int, _Context] = {}
        self._order = ConcurrentHashTable(topic_partition_hash)
        self._events: deque[Callable[[], None]] = deque()
        self._is_busy = False
        self._timer_count = 0
        self.now_ms = 0
        self.timers = TimerQueue()

    # -- events -------------------------------------------------------------------------------

    def enqueue(self, event: Callable[[], None]) -> None:
        """Run an event after those that wait; at once, where none is under way."""
        self._events.append(event)
        self._drain()

    def _enqueue_first(self, event: Callable[[], None]) -> None:
        self._events.appendleft(event)
        self._drain()

    def _drain(self) -> None:
        if self._is_busy:
            return
        self._is_busy = True
        try:
            while self._events:
                self._events.popleft()()
        finally:
            self._is_busy = False
            if self.idle is not None:
                self.idle()

    # -- operations ---------------------------------------------------------------------------

    def write(self, partition: int, operation: Operation) -> None:
        """Let an operation run on a partition. Source: scheduleWriteOperation."""
        self.enqueue(partial(self._run, partition, operation))

    def write_all(self, name: str, act: Act, told: Told) -> int:
        """Let an operation run on every partition, in Kafka's order; how many these are.

        Source: scheduleWriteAllOperation.
        """
        places = list(self._order)
        for place in places:
            self.write(place.partition, Operation(name, act, told))
        return len(places)

    def active(self) -> list[int]:
        """The partitions that take operations, in Kafka's order. Source: activeCoordinators."""
        found = (self._contexts[place.partition] for place in self._order)
        return [each.partition for each in found if each.state is PartitionState.ACTIVE]

    def shards(self) -> Iterator[tuple[int, ShareCoordinatorShard]]:
        """The partitions that take operations with their state, in no order that shows."""
        for partition, context in self._contexts.items():
            if context.shard is not None and context.state is PartitionState.ACTIVE:
                yield partition, context.shard

    def shard_of(self, partition: int) -> ShareCoordinatorShard | None:
        """The state of a partition that takes operations."""
        context = self._contexts.get(partition)
        is_active = context is not None and context.state is PartitionState.ACTIVE
        return context.shard if is_active and context is not None else None

    def _run(self, partition: int, operation: Operation) -> None:
        """Source: CoordinatorWriteEvent.run."""
        context = self._contexts.get(partition)
        if context is None or context.state is not PartitionState.ACTIVE:
            is_loading = context is not None and context.state is PartitionState.LOADING
            loading, absent = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR
            self._end(operation, failure_of(loading if is_loading else absent))
            return
        shard = context.shard
        assert shard is not None  # noqa: S101 - an active partition has one
        records, operation.result = operation.act(shard)
        self._append(context, records, operation)
        if not operation.is_done:
            deadline_ms = self.now_ms + self._config.write_timeout_ms
            operation.timeout = self.new_timer(
                TimerKind.WRITE, deadline_ms, partial(self._timed_out, operation)
            )

    def _end(self, operation: Operation, failure: Refusal | None) -> None:
        """End an operation that has not ended. Source: CoordinatorWriteEvent.complete."""
        if operation.is_done:
            return
        operation.is_done = True
        if operation.timeout is not None:
            self.timers.cancel(operation.timeout)
        operation.told(operation.result, failure)

    def _timed_out(self, operation: Operation) -> None:
        text = f"{operation.name} timed out after {self._config.write_timeout_ms}ms"
        timed_out = Refusal(ErrorCode.REQUEST_TIMED_OUT, text)
        self.enqueue(partial(self._end, operation, timed_out))

    # -- batches ------------------------------------------------------------------------------

    def _append(self, context: _Context, records: Records, operation: Operation) -> None:
        """Source: CoordinatorContext.append and waitForPendingWrites."""
        batch = context.batch
        if not records:
            if batch is not None:
                batch.operations.append(operation)
            elif context.committed < context.written:
                context.waiting.append((context.written, operation))
            else:
                self._end(operation, None)
            return
        if batch is None:
            batch = context.batch = _OpenBatch(self.now_ms)
            self._await_flush(context, batch)
        shard = context.shard
        assert shard is not None  # noqa: S101 - as in `_run`
        context.timeline.remember()
        for record in records:
            shard.replay(context.written + len(batch.records), record)
            batch.records.append(record)
            batch.times_ms.append(self.now_ms)
        batch.operations.append(operation)
        linger_ms = self._config.append_linger_ms
        if linger_ms != ADAPTIVE and self.now_ms - batch.opened_ms >= linger_ms:
            self._flush(context)

    def _await_flush(self, context: _Context, batch: _OpenBatch) -> None:
        """See to it that a batch is appended some time. Source: maybeAllocateNewBatch."""
        linger_ms = self._config.append_linger_ms
        flush = partial(self._flush_batch, context, batch)
        if linger_ms == ADAPTIVE:
            self.enqueue(flush)
        elif linger_ms > 0:
            at_ms = self.now_ms + linger_ms
            self._schedule(_linger_key(context), at_ms, partial(self._enqueue_first, flush))

    def _flush_batch(self, context: _Context, batch: _OpenBatch) -> None:
        if context.batch is batch:
            self._flush(context)

    def _flush(self, context: _Context) -> None:
        """Append the open batch, or fail it. Source: flushCurrentBatch."""
        batch = context.batch
        if batch is None:
            return
        entries = [encode_share_state(record.key, record.value) for record in batch.records]
        expected = context.written + len(entries)
        error = self._log.append(
            context.partition, context.leader_epoch, entries, self.now_ms, batch.times_ms
        )
        if error is not ErrorCode.NONE:
            self._fail_batch(context, error)
            return
        context.written = self._log.end_offset(context.partition)
        context.timeline.settle(context.written, context.committed)
        if context.written != expected:
            # Somebody else wrote to the partition: what is in memory is not what is in the log.
            context.state = PartitionState.FAILED
            self._drop(context)
            self._begin_load(context)
            return
        context.waiting.extend((context.written, each) for each in batch.operations)
        self.timers.cancel(_linger_key(context))
        context.batch = None

    def _fail_batch(self, context: _Context, error: ErrorCode) -> None:
        """Take back what the open batch applied, and fail those who wait for it, in order."""
        batch = context.batch
        if batch is None:
            return
        context.timeline.take_back()
        failure = failure_of(error)
        for operation in batch.operations:
            self._end(operation, failure)
        self.timers.cancel(_linger_key(context))
        context.batch = None

    def committed(self, partition: int, offset: int) -> None:
        """A partition is committed up to that offset now. Source: HighWatermarkListener."""
        self._enqueue_first(partial(self._commit, partition, offset))

    def _commit(self, partition: int, offset: int) -> None:
        context = self._contexts.get(partition)
        if context is None or context.state is not PartitionState.ACTIVE:
            return
        context.committed = offset
        context.timeline.settle(context.written, offset)
        while context.waiting and context.waiting[0][0] <= offset:
            self._end(context.waiting.popleft()[1], None)

    # -- leadership ---------------------------------------------------------------------------

    def load(self, partition: int, leader_epoch: int) -> None:
        """Load a partition that this broker leads now. Source: scheduleLoadOperation."""
        self._context(partition)
        self.enqueue(partial(self._load, partition, leader_epoch))

    def _context(self, partition: int) -> _Context:
        context = self._contexts.get(partition)
        if context is None:
            context = self._contexts[partition] = _Context(partition)
            self._order.add(TopicPartition(SHARE_STATE_TOPIC, partition))
        return context

    def _load(self, partition: int, leader_epoch: int) -> None:
        context = self._context(partition)
        if context.leader_epoch >= leader_epoch:
            return
        context.leader_epoch = leader_epoch
        if context.state in (None, PartitionState.FAILED):
            self._begin_load(context)

    def _begin_load(self, context: _Context) -> None:
        partition = context.partition
        context.state = PartitionState.LOADING
        context.timeline = Timeline()
        context.shard = ShareCoordinatorShard(self._config, self._topics, context.timeline)
        context.written = context.committed = 0
        finish = partial(self._finish_load, context, context.shard)
        if self._config.load_ms and self._log.end_offset(partition):
            due_ms = self.now_ms + self._config.load_ms
            self.new_timer(TimerKind.LOAD, due_ms, partial(self.enqueue, finish))
        else:
            finish()

    def _finish_load(self, context: _Context, shard: ShareCoordinatorShard) -> None:
        """Read the log, and take operations from then on, unless it cannot be read."""
        if context.shard is not shard:
            return
        try:
            self._replay(context, shard)
        except (WireFormatError, OSError):
            # What was read is not served: the partition has no coordinator until the next election.
            self.enqueue(partial(self._end_load, context, shard, PartitionState.FAILED))
            return
        self.enqueue(partial(self._end_load, context, shard, PartitionState.ACTIVE))

    def _replay(self, context: _Context, shard: ShareCoordinatorShard) -> None:
        """Source: CoordinatorLoaderImpl.doLoad."""
        partition = context.partition
        context.timeline.remember()
        for offset, key, value in self._log.records(partition):
            read = decode_share_state(key, value)
            if read is not None:
                shard.replay(offset, ShareRecord(*read))
        context.written = self._log.end_offset(partition)
        context.committed = min(self._log.high_watermark(partition), context.written)
        context.timeline.settle(context.written, context.committed)

    def _end_load(
        self, context: _Context, shard: ShareCoordinatorShard, state: PartitionState
    ) -> None:
        if context.shard is not shard or context.state is not PartitionState.LOADING:
            return
        context.state = state
        if state is PartitionState.FAILED:
            self._drop(context)

    def unload(self, partition: int, leader_epoch: int | None) -> None:
        """Give up a partition that another broker leads; epoch None where the topic is gone.

        Source: scheduleUnloadOperation.
        """
        self.enqueue(partial(self._unload, partition, leader_epoch))

    def _unload(self, partition: int, leader_epoch: int | None) -> None:
        context = self._contexts.get(partition)
        if context is None or (leader_epoch is not None and context.leader_epoch >= leader_epoch):
            return
        context.state = PartitionState.CLOSED
        self._drop(context)
        del self._contexts[partition]
        self._order.discard(TopicPartition(SHARE_STATE_TOPIC, partition))

    def _drop(self, context: _Context) -> None:
        """Fail everyone who waits, and forget the state. Source: CoordinatorContext.unload."""
        failure = failure_of(ErrorCode.NOT_COORDINATOR)
        while context.waiting:
            self._end(context.waiting.popleft()[1], failure)
        self._fail_batch(context, ErrorCode.NOT_COORDINATOR)
        context.shard = None

    def close(self) -> None:
        """Give up all partitions. Source: CoordinatorRuntime.close."""
        for place in list(self._order):
            self._unload(place.partition, None)

    # -- time ---------------------------------------------------------------------------------

    def new_timer(self, kind: TimerKind, deadline_ms: int, task: Callable[[], None]) -> TimerKey:
        """Run a task at an instant; the name of its timer."""
        self._timer_count += 1
        key = TimerKey(kind, "", str(self._timer_count))
        self._schedule(key, deadline_ms, task)
        return key

    def _schedule(self, key: TimerKey, deadline_ms: int, task: Callable[[], None]) -> None:
        self.timers.schedule(key, deadline_ms, now_ms=self.now_ms, data=task)
        if key.kind is not TimerKind.UPKEEP:
            self.wake_by(deadline_ms)

    def expire(self, now_ms: int) -> None:
        """Run what is due, in Kafka's order."""
        self.now_ms = now_ms
        while (timer := self.timers.pop_due(now_ms)) is not None:
            _task_of(timer)()


def _task_of(timer: Timer) -> Callable[[], None]:
    task: Any = timer.data
    return task  # type: ignore[no-any-return]


def _linger_key(context: _Context) -> TimerKey:
    return TimerKey(TimerKind.LINGER, "", str(context.partition))


def failure_of(error: ErrorCode) -> Refusal:
    """A failure with the words that Kafka's exception of the error has by itself."""
    return Refusal(error, error_message(error))
