"""The timers of a coordinator as data: deadlines with names, inspectable and cancellable.

A port of Kafka's hierarchical timing wheel, because the wheel decides the order in which timers of
one deadline fire. A timer armed far ahead waits in a coarse bucket and drops into finer ones when
the coarse bucket comes up; there it queues behind timers armed earlier directly into the finer
bucket. The wheel's own time is that of the last bucket that came up: it stands still until the next
one, and a timer armed meanwhile is placed by the old time.

A timer that is postponed within its bucket (a session, by most heartbeats) only stores its new
deadline and its new place in line; the bucket is sorted when it comes up.

Source: kafka trunk, server-common TimingWheel.java, TimerTaskList.java and SystemTimer.java (tick
1 ms, 20 slots).
"""

from collections import deque
from collections.abc import Iterator
from enum import Enum, unique
from operator import attrgetter
from typing import Final

from msgspec import Struct, field

WHEEL_SIZE: Final = 20
"""Slots of a wheel; a wheel's tick is the span of the one below it."""


@unique
class TimerKind(Enum):
    """Purpose of a timer."""

    SESSION = "session"
    REPEAT = "repeat"
    JOIN = "join"
    SYNC = "sync"
    WRITE = "write"
    EXPIRY = "expiry"
    TRANSACTION = "transaction"
    GAUGE = "gauge"
    LINGER = "linger"
    ORPHAN = "orphan"
    CONSUMER_SESSION = "consumer-session"
    CONSUMER_REBALANCE = "consumer-rebalance"
    CONSUMER_JOIN = "consumer-join"
    CONSUMER_SYNC = "consumer-sync"
    PERSISTER = "persister"
    STREAMS_INITIAL_DELAY = "streams-initial-delay"
    ACQUISITION_LOCK = "acquisition-lock"
    LOAD = "load"
    UPKEEP = "upkeep"

    # Python's Enum hashes the name; a kind is one object, and no order depends on its hash.
    __hash__ = object.__hash__


class TimerKey(Struct, frozen=True, gc=False):
    """The name of a timer; scheduling a name again replaces its deadline.

    `member_id` is empty for a timer of the group itself.
    """

    kind: TimerKind
    group_id: str
    member_id: str = ""


class Timer:
    """One armed timer. Inactive once fired or cancelled.

    Args:
        deadline_ms: Instant at which it fires.
        arm_seq: Its place in line; a new one whenever it is armed or drops into a finer bucket.
        data: Owner's data, returned when it fires.
        bucket: Bucket it waits in; None while it is ready to fire.
        bucket_end_ms: First instant after the bucket.
        tick_ms: Span of the bucket.
    """

    __slots__ = (
        "active",
        "arm_seq",
        "bucket",
        "bucket_end_ms",
        "data",
        "deadline_ms",
        "key",
        "tick_ms",
    )

    def __init__(self, key: TimerKey, deadline_ms: int, data: object = None) -> None:
        self.key = key
        self.deadline_ms = deadline_ms
        self.arm_seq = 0
        self.data = data
        self.bucket: Bucket | None = None
        self.bucket_end_ms = 0
        self.tick_ms = 0
        self.active = True


class Bucket(Struct, eq=False):
    """The timers of one slot of one wheel: those from `start_ms` on, for `tick_ms`."""

    start_ms: int
    tick_ms: int
    timers: dict[Timer, None] = field(default_factory=dict)


class BucketQueue(list[Bucket]):
    """A heap of buckets by start; its first element comes up next.

    Source: OpenJDK, java.util.PriorityQueue (siftUp, siftDown), which breaks ties unlike `heapq`.
    """

    __slots__ = ()

    def add(self, bucket: Bucket) -> None:
        """Queue a bucket."""
        index = len(self)
        self.append(bucket)
        while index > 0:
            parent = (index - 1) >> 1
            if bucket.start_ms >= self[parent].start_ms:
                break
            self[index] = self[parent]
            index = parent
        self[index] = bucket

    def remove_first(self) -> None:
        """Remove the bucket that comes up next; the queue must not be empty."""
        last = self.pop()
        size = len(self)
        if size == 0:
            return
        index = 0
        half = size >> 1
        while index < half:
            child = 2 * index + 1
            right = child + 1
            if right < size and self[child].start_ms > self[right].start_ms:
                child = right
            if last.start_ms <= self[child].start_ms:
                break
            self[index] = self[child]
            index = child
        self[index] = last


_NOT_PLACED: Final = -1
_NO_KEY: Final = TimerKey(TimerKind.WRITE, "")
_in_line = attrgetter("arm_seq")


class TimerQueue:
    """All timers of one coordinator."""

    __slots__ = (
        "_buckets",
        "_latest",
        "_latest_ms",
        "_queue",
        "_ready",
        "_seq",
        "_timers",
        "_wheel_ms",
    )

    def __init__(self) -> None:
        self._timers: dict[TimerKey, Timer] = {}
        self._buckets: dict[tuple[int, int], Bucket] = {}
        self._queue = BucketQueue()
        self._ready: deque[Timer] = deque()
        self._wheel_ms = -1
        self._seq = 0
        # The deadline placed last and its bucket, while the wheel stands still: a rebalance arms
        # many timers with one deadline.
        self._latest_ms = _NOT_PLACED
        self._latest = Bucket(_NOT_PLACED, 1)

    def start(self, now_ms: int) -> None:
        """Start the wheel, unless it has started; at the latest with the first timer."""
        if self._wheel_ms < 0:
            self._wheel_ms = now_ms
            self._latest_ms = _NOT_PLACED

    def schedule(
        self, key: TimerKey, deadline_ms: int, *, now_ms: int, data: object = None
    ) -> Timer:
        """Arm the timer of that name, replacing its deadline and data if it is armed already."""
        if self._wheel_ms < 0:
            self.start(now_ms)
        timer = self._timers.get(key)
        if timer is None:
            timer = self._timers[key] = Timer(key, deadline_ms, data)
            self._place(timer)
        else:
            timer.data = data
            self.postpone(timer, deadline_ms)
        return timer

    def postpone(self, timer: Timer, deadline_ms: int) -> None:
        """Move an active timer's deadline; cheap while it stays in its bucket."""
        if (
            timer.deadline_ms <= deadline_ms < timer.bucket_end_ms
            and deadline_ms >= self._wheel_ms + timer.tick_ms
        ):
            # A whole slot ahead, it is beyond the reach of every finer wheel.
            timer.deadline_ms = deadline_ms
            self._seq = timer.arm_seq = self._seq + 1
            return
        self._withdraw(timer)
        timer.deadline_ms = deadline_ms
        self._place(timer)

    def cancel(self, key: TimerKey) -> None:
        """Cancel the timer of that name, if it is armed."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.active = False
            self._withdraw(timer)

    def rename(self, timer: Timer, name: TimerKey) -> None:
        """Rename an armed timer, which keeps its place."""
        del self._timers[timer.key]
        timer.key = name
        self._timers[name] = timer

    def touch(self, deadline_ms: int) -> None:
        """Arm a timer and cancel it at once: its bucket stays queued, and turns the wheel."""
        if deadline_ms > self._wheel_ms:
            timer = Timer(_NO_KEY, deadline_ms)
            self._place(timer)
            self._withdraw(timer)

    def pop_due(self, now_ms: int) -> Timer | None:
        """Take the next timer whose deadline is not after `now_ms`; None when there is none.

        Each round fires one timer, or empties one bucket into finer ones, of which there are few.
        """
        while True:
            if self._ready:
                timer = self._ready.popleft()
                del self._timers[timer.key]
                timer.active = False
                return timer
            if not self._queue or self._queue[0].start_ms > now_ms:
                return None
            self._turn(self._queue[0])

    def next_deadline_ms(self) -> int | None:
        """Return the earliest deadline, None when nothing is armed. Scans every timer."""
        return min((timer.deadline_ms for timer in self._timers.values()), default=None)

    def wake_up_ms(self) -> int | None:
        """Return an instant not after the earliest deadline, None when nothing is queued.

        The result is the start of the next bucket, which may hold no due timer, or none at all.
        """
        if self._ready:
            return self._ready[0].deadline_ms
        return self._queue[0].start_ms if self._queue else None

    def get(self, key: TimerKey) -> Timer | None:
        """Return the armed timer of that name; None when it is not armed."""
        return self._timers.get(key)

    def __len__(self) -> int:
        """Return the number of armed timers."""
        return len(self._timers)

    def __iter__(self) -> Iterator[Timer]:
        """Iterate over the armed timers in firing order."""
        return iter(sorted(self._timers.values(), key=_firing_order))

    def _place(self, timer: Timer) -> None:
        """Put the timer where the wheel places it now. Source: TimingWheel.add."""
        deadline_ms = timer.deadline_ms
        wheel_ms = self._wheel_ms
        self._seq = timer.arm_seq = self._seq + 1
        if deadline_ms <= wheel_ms:
            timer.bucket = None
            timer.bucket_end_ms = 0
            self._ready.append(timer)
            return
        if deadline_ms == self._latest_ms:
            bucket = self._latest
        else:
            tick = 1
            span = WHEEL_SIZE
            # Terminates because each wheel spans twenty times the one below it.
            while deadline_ms >= wheel_ms - wheel_ms % tick + span:
                tick = span
                span *= WHEEL_SIZE
            start_ms = deadline_ms - deadline_ms % tick
            found = self._buckets.get((start_ms, tick))
            if found is None:
                found = self._buckets[start_ms, tick] = Bucket(start_ms, tick)
                self._queue.add(found)
            bucket = found
            self._latest_ms = deadline_ms
            self._latest = bucket
        bucket.timers[timer] = None
        timer.bucket = bucket
        timer.tick_ms = bucket.tick_ms
        timer.bucket_end_ms = bucket.start_ms + bucket.tick_ms

    def _withdraw(self, timer: Timer) -> None:
        """Remove the timer from its bucket, which stays queued even if it is empty now."""
        if timer.bucket is not None:
            del timer.bucket.timers[timer]
            timer.bucket = None
        else:
            self._ready.remove(timer)

    def _turn(self, bucket: Bucket) -> None:
        """Advance the wheel to its first bucket and move that one's timers, in line, to finer ones.

        Source: SystemTimer.advanceClock and TimerTaskList.flush.
        """
        self._queue.remove_first()
        del self._buckets[bucket.start_ms, bucket.tick_ms]
        self._wheel_ms = max(self._wheel_ms, bucket.start_ms)
        self._latest_ms = _NOT_PLACED
        for timer in sorted(bucket.timers, key=_in_line):
            self._place(timer)


def _firing_order(timer: Timer) -> tuple[int, int, int]:
    tick_ms = 0 if timer.bucket is None else timer.bucket.tick_ms
    return timer.deadline_ms, tick_ms, timer.arm_seq
