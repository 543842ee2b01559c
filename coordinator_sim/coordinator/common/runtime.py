"""The runtime of a coordinator that keeps its state in a topic: events, writes, timeouts.

An operation changes the state in memory at once. Its records lie in the open batch of their
partition until that is appended; the operation then waits until the log is committed up to there.
What a batch applied that is not appended in the end is taken back.

A shard is a partition and its state. What its records do to that state (`CoordinatorShard.apply`),
how a batch is appended and how an operation ends (`CoordinatorRuntime`'s own abstract methods) is
for the group coordinator and the share coordinator to define. Nothing here knows groups.

Source: kafka trunk, coordinator-common/.../runtime/CoordinatorRuntime.java and its inner classes
CoordinatorState, CoordinatorContext, CoordinatorBatch, CoordinatorWriteEvent, OperationTimeout;
CoordinatorShard.java; DeferredEventQueue.java.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import Any, Final, Generic, Protocol, TypeVar

from msgspec import Struct

from coordinator_sim.clock.clock import TRUE
from coordinator_sim.clock.timer_queue import TimerKey, TimerKind, TimerQueue
from coordinator_sim.coordinator.common.timeline import Timeline
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.kafka.orders.iteration_order import ConcurrentHashTable, topic_partition_hash
from coordinator_sim.kafka.resources import TopicPartition

ADAPTIVE: Final = -1
"""An append linger that ends once no other event waits: at once in virtual time."""


@unique
class PartitionState(Enum):
    """The state of a partition of a state topic on this broker. Source: CoordinatorState."""

    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    CLOSED = "closed"


ACTIVE: Final = PartitionState.ACTIVE
"""The usual state, under a name of its own for hot paths."""


class CoordinatorEvent(Protocol):
    """An event that waits for those before it. Source: CoordinatorEvent.java."""

    def run(self, runtime: Any) -> None:  # noqa: ANN401 - the coordinator's own runtime
        """Process it."""


class WriteEvent(Struct, eq=False, kw_only=True):
    """An operation that may wait for a log position. Source: CoordinatorWriteEvent.

    Args:
        records: To append; an operation without any waits for the position that it saw.
        timer: Name of its timeout, once armed.
        is_done: Whether it has ended.
    """

    records: tuple[Any, ...] = ()
    timer: TimerKey | None = None
    is_done: bool = False


@dataclass(slots=True, eq=False)
class OpenBatch:
    """Records of one partition that are applied and not appended yet. Source: CoordinatorBatch.

    Args:
        opened_ms: When its first record came.
        times_ms: Of the records, one each.
        writes: The operations that wait for it, in order; some brought no records.
    """

    shard: Any
    opened_ms: int
    records: list[Any] = field(default_factory=list)
    times_ms: list[int] = field(default_factory=list)
    writes: list[Any] = field(default_factory=list)


@dataclass(slots=True, eq=False, kw_only=True)
class CoordinatorShard:
    """A partition and its state. Source: CoordinatorContext, CoordinatorShard.java.

    Args:
        index: Its number in the topic.
        leader_epoch: Of this broker's leadership.
        timeline: The log positions at which its state is remembered.
        end_offset: Where the next record goes.
        high_watermark: Everything below is committed.
        deferred: Operations waiting for the high watermark, by the end offset they saw.
        open_batch: Applied and not appended yet; None for none.
    """

    index: int
    leader_epoch: int = -1
    state: PartitionState = PartitionState.CLOSED
    timeline: Timeline = field(default_factory=Timeline)
    end_offset: int = 0
    high_watermark: int = 0
    deferred: deque[tuple[int, Any]] = field(default_factory=deque)
    open_batch: OpenBatch | None = None

    @property
    def is_settled(self) -> bool:
        """Whether nothing written waits for anything."""
        return self.high_watermark >= self.end_offset and self.open_batch is None

    def apply(self, batch: OpenBatch, write: Any, wall_ms: int) -> None:  # noqa: ANN401 - a `WriteEvent`
        """Change the state by an operation's records, which follow those of the open batch.

        Args:
            batch: The open batch.
            write: The operation.
            wall_ms: Timestamp of the records.

        Source: CoordinatorShard.replay.
        """
        raise NotImplementedError


S = TypeVar("S", bound=CoordinatorShard)


class CoordinatorRuntime(Generic[S]):
    """The partitions that one broker's coordinator leads, and the operations on them.

    Args:
        topic: The state topic.
        linger_ms: How long an open batch waits for more records; 0 and `ADAPTIVE`: see there.

    Attributes:
        linger_ms: See above.
        now_ms: Instant of the verb under way.
        wall_clock: The machine's clock.
        timers: All timers, in Kafka's order.
        partitions: By their number; `shard_of` adds one.
        scheduled: Events that wait, and open batches to append between them.
        is_idle: Whether no event is under way, so that another one runs at once.
        is_gathering: While an event runs, whether its records wait for those of other events.
    """

    __slots__ = (
        "_order",
        "_timer_seq",
        "_topic",
        "is_gathering",
        "is_idle",
        "linger_ms",
        "now_ms",
        "partitions",
        "scheduled",
        "timers",
        "wall_clock",
    )

    def __init__(self, topic: str, linger_ms: int) -> None:
        self._topic = topic
        self._order = ConcurrentHashTable(topic_partition_hash)
        self.linger_ms = linger_ms
        self.now_ms = 0
        self.wall_clock = TRUE
        self.timers = TimerQueue()
        self.partitions: dict[int, S] = {}
        self.scheduled: deque[CoordinatorEvent | OpenBatch] = deque()
        self.is_idle = False
        self.is_gathering = False
        self._timer_seq = 0

    @property
    def wall_ms(self) -> int:
        """The present for stamps and for what they are compared with; timers go by `now_ms`.

        Source: Time.milliseconds; SystemTimer (Time.hiResClockMs).
        """
        clock = self.wall_clock
        return self.now_ms if clock is TRUE else clock.shown_ms(self.now_ms)

    # -- what a coordinator defines ----------------------------------------------------------

    def new_shard(self, index: int) -> S:
        """Make the shard of a partition, which has no state yet."""
        raise NotImplementedError

    @property
    def write_timeout_ms(self) -> int:
        """How long an operation may wait."""
        raise NotImplementedError

    def append_open(self, shard: S, batch: OpenBatch) -> ErrorCode:
        """Append the open batch and move the end of the log; a refusal is the caller's to undo."""
        raise NotImplementedError

    def complete(self, write: Any, error: ErrorCode) -> None:  # noqa: ANN401 - a `WriteEvent`
        """End an operation that has not ended. Source: CoordinatorWriteEvent.complete."""
        raise NotImplementedError

    def revert(self, shard: S) -> None:
        """Undo what the open batch applied. Source: revertLastWrittenOffset."""
        shard.timeline.take_back()
        shard.timeline.is_remembering = shard.high_watermark < shard.end_offset

    # -- partitions ------------------------------------------------------------------------

    def shard_of(self, index: int) -> S:
        """The shard of a partition, made at its first use. Source: maybeCreateContext."""
        shard = self.partitions.get(index)
        if shard is None:
            shard = self.partitions[index] = self.new_shard(index)
            self._order.add(TopicPartition(self._topic, index))
        return shard

    def remove_shard(self, index: int) -> None:
        """Forget a partition."""
        del self.partitions[index]
        self._order.discard(TopicPartition(self._topic, index))

    def shards(self) -> list[S]:
        """All partitions in the order of Kafka's ConcurrentHashMap `coordinators`."""
        return [self.partitions[each.partition] for each in self._order]

    def active(self) -> list[S]:
        """The partitions that take operations, in the same order. Source: activeCoordinators."""
        return [shard for shard in self.shards() if shard.state is ACTIVE]

    # -- events ----------------------------------------------------------------------------

    def enqueue(self, event: CoordinatorEvent | OpenBatch, *, is_first: bool = False) -> None:
        """Run an event: now if none is under way, else after (or before) those that wait."""
        if is_first:
            self.scheduled.appendleft(event)
        else:
            self.scheduled.append(event)
        if self.is_idle:
            self.is_idle = False
            try:
                self.run_scheduled()
            finally:
                self.is_idle = True

    def run_scheduled(self) -> None:
        """Run the events that wait, and those that they cause.

        A batch that an event opened is appended in its turn: Kafka's flush is an event, too.
        Terminates: an event causes others only for requests, each of which is answered once.

        Source: CoordinatorContext.enqueueAdaptiveFlush (kafka 4.2).
        """
        scheduled = self.scheduled
        while scheduled:
            event = scheduled.popleft()
            if isinstance(event, OpenBatch):
                self.end_linger(event)
            else:
                self.is_gathering = self.linger_ms == ADAPTIVE
                try:
                    event.run(self)
                finally:
                    self.is_gathering = False

    # -- writes ----------------------------------------------------------------------------

    def add(self, shard: S, write: Any) -> None:  # noqa: ANN401 - a `WriteEvent`
        """Put an operation into the open batch, and append that if it has lingered long enough.

        Source: CoordinatorContext.append, maybeAllocateNewBatch and maybeFlushCurrentBatch.
        """
        batch = shard.open_batch
        if batch is None:
            batch = shard.open_batch = OpenBatch(shard, self.now_ms)
            if self.linger_ms == ADAPTIVE:
                self.scheduled.append(batch)
            elif self.linger_ms > 0:
                self.schedule(_linger_key(shard), self.now_ms + self.linger_ms, batch)
        if write.records:
            wall_ms = self.wall_ms
            shard.timeline.remember()
            shard.apply(batch, write, wall_ms)
            batch.records += write.records
            batch.times_ms += [wall_ms] * len(write.records)
        batch.writes.append(write)
        is_late = self.linger_ms != ADAPTIVE and self.now_ms - batch.opened_ms >= self.linger_ms
        if write.records and is_late:
            self.flush(shard)
            self.release(shard)
        if not write.is_done:
            self.arm_write_timeout(write)

    def wait(self, shard: S, write: Any) -> None:  # noqa: ANN401 - a `WriteEvent`
        """End an operation once the log position that it saw is committed.

        One without records still waits behind the operations before it.

        Source: CoordinatorContext.waitForPendingWrites.
        """
        if shard.high_watermark < shard.end_offset:
            self.defer(shard, write)
        elif shard.deferred:
            shard.deferred.append((shard.end_offset, write))
            self.release(shard)
        else:
            self.complete(write, NO_ERROR)

    def defer(self, shard: S, write: Any) -> None:  # noqa: ANN401 - a `WriteEvent`
        """Let an operation wait for what is the end of the log now, but not for ever."""
        shard.deferred.append((shard.end_offset, write))
        self.arm_write_timeout(write)

    def flush(self, shard: S) -> ErrorCode:
        """Append the open batch, if there is one; its operations then wait for the high watermark.

        Returns:
            The error of a refused append, which has failed every operation of the batch.

        Source: CoordinatorContext.flushCurrentBatch.
        """
        batch = shard.open_batch
        if batch is None:
            return NO_ERROR
        error = self.append_open(shard, batch)
        if error is not NO_ERROR:
            self.fail_open_batch(shard, error)
            return error
        self.timers.cancel(_linger_key(shard))
        shard.open_batch = None
        shard.deferred.extend((shard.end_offset, write) for write in batch.writes)
        return NO_ERROR

    def end_linger(self, batch: OpenBatch) -> None:
        """A batch has lingered long enough: append it, unless that is done, and answer."""
        if batch.shard.open_batch is batch:
            self.flush(batch.shard)
            self.release(batch.shard)

    def release(self, shard: S) -> None:
        """End, in order, the operations whose log position is committed."""
        deferred = shard.deferred
        while deferred and deferred[0][0] <= shard.high_watermark:
            self.finish(deferred.popleft()[1], NO_ERROR)

    def fail_open_batch(self, shard: S, error: ErrorCode) -> None:
        """Take back what the open batch applied, and fail everyone who waits for it, in order.

        Source: CoordinatorContext.failCurrentBatch.
        """
        batch = shard.open_batch
        if batch is None:
            return
        self.revert(shard)
        self.timers.cancel(_linger_key(shard))
        shard.open_batch = None
        for write in batch.writes:
            self.finish(write, error)

    def fail_writes(self, shard: S, error: ErrorCode) -> None:
        """End every operation that waits, as the partition is given up."""
        self.fail_deferred(shard, error)
        self.fail_open_batch(shard, error)

    def fail_deferred(self, shard: S, error: ErrorCode) -> None:
        """End every operation that waits for the high watermark with an error, in order."""
        while shard.deferred:
            self.finish(shard.deferred.popleft()[1], error)

    def finish(self, write: Any, error: ErrorCode) -> None:  # noqa: ANN401 - a `WriteEvent`
        """End an operation that waited, once."""
        if write.is_done:
            return
        write.is_done = True
        if write.timer is not None:
            self.timers.cancel(write.timer)
        self.complete(write, error)

    # -- time ------------------------------------------------------------------------------

    def schedule(self, key: TimerKey, deadline_ms: int, data: object) -> None:
        """Arm a timer."""
        self.timers.schedule(key, deadline_ms, now_ms=self.now_ms, data=data)

    def new_timer(self, kind: TimerKind, deadline_ms: int, data: object) -> TimerKey:
        """Arm a timer under a name that no other has; the name."""
        self._timer_seq += 1
        key = TimerKey(kind, "", str(self._timer_seq))
        self.schedule(key, deadline_ms, data)
        return key

    def arm_write_timeout(self, write: Any) -> None:  # noqa: ANN401 - a `WriteEvent`
        """Let an operation fail unless it ends in time."""
        deadline_ms = self.now_ms + self.write_timeout_ms
        write.timer = self.new_timer(TimerKind.WRITE, deadline_ms, write)

    def expire_write(self, write: Any) -> None:  # noqa: ANN401 - a `WriteEvent`
        """An operation was not committed in time. Source: OperationTimeout."""
        write.timer = None
        self.finish(write, ErrorCode.REQUEST_TIMED_OUT)


def _linger_key(shard: CoordinatorShard) -> TimerKey:
    """The name of a partition's linger timer."""
    return TimerKey(TimerKind.LINGER, "", str(shard.index))
