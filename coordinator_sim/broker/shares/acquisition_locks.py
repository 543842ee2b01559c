"""The locks on records that members work on: one wheel for all share partitions of a broker.

Source: kafka 4.3.1, server/.../share/fetch/AcquisitionLockTimerTask.java, and the timer that
SharePartitionManager makes for them.
"""

from collections.abc import Callable, Iterator
from typing import Final, cast

from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.scheduler import WakeBy
from coordinator_sim.clock.timer_queue import TimerKey, TimerKind, TimerQueue

_SLICE: Final = 100
"""Locks that run out in one call of `expire`: 10 ms (measured)."""


TimedOut = Callable[[tuple[int, int], Instants], None]
"""Called with the first and the last offset of records whose lock has run out."""


LockedBy = Callable[["AcquisitionLock"], Iterator[int]]
"""The offsets, in order, of the records that a lock is still on; each has its own lock in Kafka."""


class AcquisitionLock:
    """The time that a member has for records it acquired.

    Args:
        locks: The wheel it waits in.
        timed_out: See `TimedOut`.
        member_id: The member.
        first_offset: The first record.
        last_offset: The last record.
        deadline_ms: When the time is over, on the group clock.
        locked_by: See `LockedBy`; the records run out one by one. None for all at once.

    Attributes:
        holder_count: States with this lock; when the last one drops it, it is cancelled.
        has_expired: Whether the time is over.
    """

    __slots__ = (
        "_locked_by",
        "_locks",
        "_timed_out",
        "deadline_ms",
        "first_offset",
        "has_expired",
        "holder_count",
        "key",
        "last_offset",
        "member_id",
    )

    def __init__(  # noqa: PLR0913 - what AcquisitionLockTimerTask is made of
        self,
        locks: "AcquisitionLocks",
        timed_out: TimedOut,
        *,
        key: TimerKey,
        member_id: str,
        first_offset: int,
        last_offset: int,
        deadline_ms: int,
        locked_by: LockedBy | None,
    ) -> None:
        self._locks = locks
        self._timed_out = timed_out
        self.key = key
        self.member_id = member_id
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.deadline_ms = deadline_ms
        self._locked_by = locked_by
        self.holder_count = 1
        self.has_expired = False

    def drop(self) -> None:
        """Release one holder of the lock; the last release cancels the timer."""
        self.holder_count -= 1
        if not self.holder_count:
            self._locks.cancel(self)

    def of_records(self, locked_by: LockedBy) -> "AcquisitionLock":
        """A new lock with the same deadline that covers the records one by one."""
        return self._locks.schedule(
            self._timed_out,
            self.member_id,
            (self.first_offset, self.last_offset),
            deadline_ms=self.deadline_ms,
            locked_by=locked_by,
        )

    def expire(self) -> Iterator[tuple[TimedOut, tuple[int, int]]]:
        """Yield what to call for the expiry, each with its first and last offset.

        Source: AcquisitionLockTimerTask.run.
        """
        self.has_expired = True
        if self._locked_by is None:
            yield self._timed_out, (self.first_offset, self.last_offset)
            return
        for offset in self._locked_by(self):
            yield self._timed_out, (offset, offset)


class AcquisitionLocks:
    """The locks of all share partitions of a broker, in the order in which they run out.

    Args:
        wake_by: Arms the alarm for a deadline, by the group clock.
    """

    def __init__(self, wake_by: WakeBy) -> None:
        self._wake_by = wake_by
        self._queue = TimerQueue()
        self._count = 0
        self._expiring: Iterator[tuple[TimedOut, tuple[int, int]]] | None = None
        self._expired_ms = 0

    def start(self, now: Instants) -> None:
        """Start the wheel; before the first lock."""
        self._queue.start(now.group_ms)

    def schedule(
        self,
        timed_out: TimedOut,
        member_id: str,
        offsets: tuple[int, int],
        *,
        deadline_ms: int,
        locked_by: LockedBy | None = None,
    ) -> AcquisitionLock:
        """Lock the records from one offset to another for a member. The wheel must be started.

        Args:
            timed_out: See `TimedOut`.
            member_id: The member.
            offsets: Of the first and the last record.
            deadline_ms: When the time is over; if that has passed, `expire` tells so at once.
            locked_by: See `AcquisitionLock`.
        """
        self._count += 1
        lock = AcquisitionLock(
            self,
            timed_out,
            key=TimerKey(TimerKind.ACQUISITION_LOCK, "", str(self._count)),
            member_id=member_id,
            first_offset=offsets[0],
            last_offset=offsets[1],
            deadline_ms=deadline_ms,
            # One record alone is taken from its member whether its state has this lock or not.
            locked_by=None if offsets[0] == offsets[1] else locked_by,
        )
        # `now_ms` starts a wheel, and this one is started.
        self._queue.schedule(lock.key, deadline_ms, now_ms=deadline_ms, data=lock)
        self.arm()
        return lock

    def cancel(self, lock: AcquisitionLock) -> None:
        """Stop a lock's time."""
        self._queue.cancel(lock.key)

    def expire(self, now: Instants) -> None:
        """Run a slice of what is due; the deadline is now while there is more of it.

        Terminates: a lock that runs out sets none that lasts.
        """
        left = _SLICE
        while left:
            if self._expiring is None:
                timer = self._queue.pop_due(now.group_ms)
                if timer is None:
                    return
                self._expired_ms = now.group_ms
                self._expiring = cast("AcquisitionLock", timer.data).expire()
            for timed_out, offsets in self._expiring:
                timed_out(offsets, now)
                left -= 1
                if not left:
                    return
            self._expiring = None

    def arm(self) -> None:
        """Arm the alarm for the earliest deadline."""
        self._wake_by(self.next_deadline_ms())

    def next_deadline_ms(self) -> int | None:
        """An instant not after the earliest deadline, on the group clock; None without locks."""
        return self._queue.wake_up_ms() if self._expiring is None else self._expired_ms
