"""The locks on records that members work on: one wheel for all share partitions of a broker.

Source: kafka 4.3.1, server/.../share/fetch/AcquisitionLockTimerTask.java, and the timer that
SharePartitionManager makes for them.
"""

from typing import Protocol, cast

from coordinator_sim.broker.contract import Instants
from coordinator_sim.clock.timer_queue import TimerKey, TimerKind, TimerQueue


class LockOwner(Protocol):
    """Whoever set a lock."""

    def lock_timed_out(self, lock: "AcquisitionLock", now: Instants) -> None:
        """The lock's time is over."""
        ...


class AcquisitionLock:
    """The time that a member has for records it acquired.

    Args:
        locks: The wheel it waits in.
        owner: Told when the time is over.
        member_id: The member.
        first_offset: The first record.
        last_offset: The last record.
        deadline_ms: When the time is over, on the group clock.
    """

    __slots__ = (
        "_locks",
        "_owner",
        "deadline_ms",
        "first_offset",
        "has_expired",
        "key",
        "last_offset",
        "member_id",
    )

    def __init__(  # noqa: PLR0913 - what AcquisitionLockTimerTask is made of
        self,
        locks: "AcquisitionLocks",
        owner: LockOwner,
        *,
        key: TimerKey,
        member_id: str,
        first_offset: int,
        last_offset: int,
        deadline_ms: int,
    ) -> None:
        self._locks = locks
        self._owner = owner
        self.key = key
        self.member_id = member_id
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.deadline_ms = deadline_ms
        self.has_expired = False

    def cancel(self) -> None:
        """Stop the time; nobody is told of its end."""
        self._locks.cancel(self)

    def of_offset(self, offset: int) -> "AcquisitionLock":
        """Another lock with the same deadline, on one of the records."""
        return self._locks.schedule(
            self._owner, self.member_id, (offset, offset), deadline_ms=self.deadline_ms
        )

    def expire(self, now: Instants) -> None:
        """Tell the owner that the time is over. Source: AcquisitionLockTimerTask.run."""
        self.has_expired = True
        self._owner.lock_timed_out(self, now)


class AcquisitionLocks:
    """The locks of all share partitions of a broker, in the order in which they run out."""

    __slots__ = ("_count", "_queue")

    def __init__(self) -> None:
        self._queue = TimerQueue()
        self._count = 0

    def start(self, now: Instants) -> None:
        """Start the wheel; before the first lock."""
        self._queue.start(now.group_ms)

    def schedule(
        self, owner: LockOwner, member_id: str, offsets: tuple[int, int], *, deadline_ms: int
    ) -> AcquisitionLock:
        """Lock the records from one offset to another for a member. The wheel must be started.

        Args:
            owner: Told when the time is over.
            member_id: The member.
            offsets: Of the first and the last record.
            deadline_ms: When the time is over; if that has passed, `expire` tells so at once.
        """
        self._count += 1
        lock = AcquisitionLock(
            self,
            owner,
            key=TimerKey(TimerKind.ACQUISITION_LOCK, "", str(self._count)),
            member_id=member_id,
            first_offset=offsets[0],
            last_offset=offsets[1],
            deadline_ms=deadline_ms,
        )
        # `now_ms` starts a wheel, and this one is started.
        self._queue.schedule(lock.key, deadline_ms, now_ms=deadline_ms, data=lock)
        return lock

    def cancel(self, lock: AcquisitionLock) -> None:
        """Stop a lock's time."""
        self._queue.cancel(lock.key)

    def expire(self, now: Instants) -> None:
        """Run what is due. Terminates: a lock that runs out sets none that lasts."""
        while (timer := self._queue.pop_due(now.group_ms)) is not None:
            cast("AcquisitionLock", timer.data).expire(now)

    def next_deadline_ms(self) -> int | None:
        """An instant not after the earliest deadline, on the group clock; None without locks."""
        return self._queue.wake_up_ms()
