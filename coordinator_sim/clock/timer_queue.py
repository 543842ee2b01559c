"""Timers as data: the deadlines of a coordinator, named, inspectable and cancellable.

One heap for everything. A timer that is pushed back (a session, by every heartbeat) only stores
its new deadline; its heap entry notices when it comes up and is armed again then. So a heartbeat
costs no heap work, and a silent member costs one entry.

Timers of one deadline fire in the order in which Kafka's timing wheel delivers them, which is
not the order in which they were armed: see `_tie_key`.

Source: kafka trunk, server-common TimingWheel.java and SystemTimer.java (tick 1 ms, 20 slots).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, unique
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

WHEEL_SIZE: Final = 20
"""Slots of a wheel; a wheel's tick is the span of the one below it."""
_COMPACT_ABOVE: Final = 1_024
"""Below this many heap entries, dead ones are not worth a sweep."""


@unique
class TimerKind(Enum):
    """What a timer is for."""

    SESSION = "session"
    JOIN = "join"
    SYNC = "sync"
    WRITE = "write"
    EXPIRY = "expiry"


class TimerKey(NamedTuple):
    """The name of a timer; scheduling a name again replaces its deadline.

    `member_id` is empty for a timer of the group itself.
    """

    kind: TimerKind
    group_id: str
    member_id: str = ""


@dataclass(slots=True, eq=False)
class Timer:
    """One armed timer. Inactive once fired or cancelled.

    Args:
        deadline_ms: When it fires.
        armed_at_ms: When it was last armed; decides ties, with `arm_seq`.
        data: What its owner wants back when it fires.
        entry_seq: Names the one heap entry that stands for this timer.
        entry_deadline_ms: That entry's deadline, never later than `deadline_ms`.
    """

    key: TimerKey
    deadline_ms: int
    armed_at_ms: int
    arm_seq: int
    data: object = None
    entry_seq: int = -1
    entry_deadline_ms: int = 0
    active: bool = True


_Entry = tuple[int, tuple[int, ...], int, Timer]


def _tie_key(deadline_ms: int, armed_at_ms: int) -> tuple[int, ...]:
    """Orders timers of one deadline as a wheel of wheels hands them out.

    A timer armed far ahead waits in a coarse bucket and drops into finer ones when the coarse
    bucket comes up; there it lines up behind those armed straight into the finer bucket before.
    So each level contributes the instant of the drop, and the last item is the arming itself.
    Drops are even and armings odd: at one instant the wheel turns before requests arrive.
    A timer that is already due fires after everything else that is.
    """
    # DEVIATION: Kafka's wheel stands still until a bucket comes up, and an arming meanwhile goes
    # by its old time; we take it to be on time, as it is on a busy broker. Only the order of
    # timers of one deadline, armed by different waits, can show it.
    if deadline_ms <= armed_at_ms:
        return (deadline_ms * 2 + 2,)
    drops: list[int] = []
    tick = 1
    span = WHEEL_SIZE
    while deadline_ms >= armed_at_ms - armed_at_ms % tick + span:
        tick = span
        span *= WHEEL_SIZE
        drops.append((deadline_ms - deadline_ms % tick) * 2)
    drops.append(armed_at_ms * 2 + 1)
    return tuple(drops)


class TimerQueue:
    """All timers of one coordinator."""

    __slots__ = ("_heap", "_seq", "_timers")

    def __init__(self) -> None:
        self._timers: dict[TimerKey, Timer] = {}
        self._heap: list[_Entry] = []
        self._seq = 0

    def schedule(
        self, key: TimerKey, deadline_ms: int, *, now_ms: int, data: object = None
    ) -> Timer:
        """Arm the timer of that name, replacing its deadline and data if it is armed already."""
        timer = self._timers.get(key)
        self._seq = seq = self._seq + 1
        if timer is None:
            timer = self._timers[key] = Timer(key, deadline_ms, now_ms, seq, data)
            self._push(timer)
            return timer
        timer.deadline_ms = deadline_ms
        timer.armed_at_ms = now_ms
        timer.arm_seq = seq
        timer.data = data
        if deadline_ms < timer.entry_deadline_ms:
            self._push(timer)
        return timer

    def postpone(self, timer: Timer, deadline_ms: int, now_ms: int) -> None:
        """Move an active timer's deadline; no heap work unless it moves ahead of its entry."""
        timer.deadline_ms = deadline_ms
        timer.armed_at_ms = now_ms
        self._seq = seq = self._seq + 1
        timer.arm_seq = seq
        if deadline_ms < timer.entry_deadline_ms:
            self._push(timer)

    def cancel(self, key: TimerKey) -> None:
        """Drop the timer of that name, if it is armed."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.active = False

    def pop_due(self, now_ms: int) -> Timer | None:
        """Take the next timer whose deadline is not after `now_ms`; None when there is none."""
        timer = self._head()
        if timer is None or timer.deadline_ms > now_ms:
            return None
        heappop(self._heap)
        del self._timers[timer.key]
        timer.active = False
        return timer

    def next_deadline_ms(self) -> int | None:
        """The earliest deadline, None when nothing is armed."""
        timer = self._head()
        return None if timer is None else timer.deadline_ms

    def wake_up_ms(self) -> int | None:
        """An instant not after the earliest deadline, None when nothing is armed; for alarms.

        Timers that were postponed are not looked at, so that a heartbeat costs no heap work.
        """
        return self._heap[0][0] if self._heap else None

    def get(self, key: TimerKey) -> Timer | None:
        """The armed timer of that name."""
        return self._timers.get(key)

    def __len__(self) -> int:
        """The number of armed timers."""
        return len(self._timers)

    def __iter__(self) -> Iterator[Timer]:
        """The armed timers in the order in which they would fire."""
        return iter(
            sorted(
                self._timers.values(),
                key=lambda t: (t.deadline_ms, _tie_key(t.deadline_ms, t.armed_at_ms), t.arm_seq),
            )
        )

    def _push(self, timer: Timer) -> None:
        timer.entry_seq = timer.arm_seq
        timer.entry_deadline_ms = timer.deadline_ms
        tie = _tie_key(timer.deadline_ms, timer.armed_at_ms)
        heappush(self._heap, (timer.deadline_ms, tie, timer.arm_seq, timer))
        if len(self._heap) > _COMPACT_ABOVE and len(self._heap) > 4 * len(self._timers):
            self._compact()

    def _compact(self) -> None:
        """Drop the entries of timers that were cancelled or moved ahead."""
        self._heap = [entry for entry in self._heap if _is_live(entry)]
        heapify(self._heap)

    def _head(self) -> Timer | None:
        """Bring a live, current entry to the top of the heap. Each round removes or re-arms one."""
        heap = self._heap
        while heap:
            entry = heap[0]
            timer = entry[3]
            if not _is_live(entry):
                heappop(heap)
            elif timer.arm_seq == entry[2]:
                return timer
            else:
                heappop(heap)
                self._push(timer)
                heap = self._heap
        return None


def _is_live(entry: _Entry) -> bool:
    timer = entry[3]
    return timer.active and timer.entry_seq == entry[2]
