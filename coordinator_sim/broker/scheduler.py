"""The deadlines of a cluster: tasks on either clock, and the timers of the API families."""

from collections.abc import Callable, Iterable
from heapq import heappop, heappush

from coordinator_sim.broker.contract import Instants, Timed
from coordinator_sim.errors import described

Task = Callable[[Instants], None]
"""Work to do; called with the present instants."""

WakeBy = Callable[[int | None], None]
"""Arms the alarm for an instant, unless an earlier one is armed; None arms nothing."""

_Entry = tuple[int, int, Task]


class Scheduler:
    """The alarm of a cluster, on both clocks.

    Whoever arms a timer calls `wake_by_group_ms` or `wake_by_wall_ms`. A postponed deadline may
    fire early; that is harmless. After `expire`, all families arm the alarm for what is left.

    Attributes:
        group_ms: When `expire` is due by the group clock, or earlier; None if nothing is armed.
        wall_ms: When `expire` is due by the wall clock, or earlier; None if nothing is armed.
        has_moved: Whether either of them changed since `next_deadline_ms` was called.
    """

    __slots__ = (
        "_by_group",
        "_by_wall",
        "_count",
        "_families",
        "group_ms",
        "has_moved",
        "wall_ms",
    )

    def __init__(self) -> None:
        self._by_group: list[_Entry] = []
        self._by_wall: list[_Entry] = []
        self._count = 0
        self._families: list[Timed] = []
        self.group_ms: int | None = None
        self.wall_ms: int | None = None
        self.has_moved = True

    def watch(self, *families: Timed) -> None:
        """Fire the deadlines of more families, after those of earlier families."""
        self._families += families

    # -- tasks -----------------------------------------------------------------------------

    def at_group_ms(self, at_ms: int, task: Task) -> None:
        """Run a task when the group clock reaches an instant; tasks of one instant in order."""
        self._put(self._by_group, at_ms, task)
        self.wake_by_group_ms(at_ms)

    def at_wall_ms(self, at_ms: int, task: Task) -> None:
        """Run a task when the wall clock reaches an instant; tasks of one instant in order."""
        self._put(self._by_wall, at_ms, task)
        self.wake_by_wall_ms(at_ms)

    def _put(self, entries: list[_Entry], at_ms: int, task: Task) -> None:
        self._count += 1
        heappush(entries, (at_ms, self._count, task))

    @property
    def has_tasks(self) -> bool:
        """Whether any task waits."""
        return bool(self._by_group or self._by_wall)

    # -- time ------------------------------------------------------------------------------

    def expire(self, now: Instants) -> None:
        """Run what is due, tasks first, and arm the alarm for the rest.

        Raises:
            ExceptionGroup: All failures, after everything else has run.
        """
        failures: list[Exception] = []
        for expire in (self._run_tasks, *(family.expire for family in self._families)):
            try:
                expire(now)
            except Exception as error:  # noqa: BLE001 - raised below
                failures.append(error)
        self.arm()
        if failures:
            texts = "; ".join(described(each) for each in failures)
            raise ExceptionGroup(f"deadlines met a bug: {texts}", failures)

    def _run_tasks(self, now: Instants) -> None:
        for entries, now_ms in ((self._by_group, now.group_ms), (self._by_wall, now.wall_ms)):
            while entries and entries[0][0] <= now_ms:
                heappop(entries)[2](now)

    # -- deadlines -------------------------------------------------------------------------

    def arm(self) -> None:
        """Arm the alarm anew: after it fired, or when the timers of a broker resume."""
        self.group_ms = _first(self._by_group)
        self.wall_ms = _first(self._by_wall)
        self.has_moved = True
        for family in self._families:
            family.arm()

    def wake_by_group_ms(self, at_ms: int | None) -> None:
        """Call `expire` when the group clock reaches an instant, or earlier; None for never."""
        if at_ms is not None and (self.group_ms is None or at_ms < self.group_ms):
            self.group_ms = at_ms
            self.has_moved = True

    def wake_by_wall_ms(self, at_ms: int | None) -> None:
        """Call `expire` when the wall clock reaches an instant, or earlier; None for never."""
        if at_ms is not None and (self.wall_ms is None or at_ms < self.wall_ms):
            self.wall_ms = at_ms
            self.has_moved = True

    def next_deadline_ms(self) -> int | None:
        """The earlier of `group_ms` and `wall_ms`, for a driver with one clock for both."""
        self.has_moved = False
        return earliest((self.group_ms, self.wall_ms))

    def exact_group_deadline_ms(self) -> int | None:
        """The earliest deadline on the group clock, None if there is none. Asks every family."""
        exact = (family.next_group_deadline_ms() for family in self._families)
        return earliest((_first(self._by_group), *exact))


def _first(entries: list[_Entry]) -> int | None:
    return entries[0][0] if entries else None


def earliest(instants: Iterable[int | None]) -> int | None:
    """The earliest of some instants, None if there is none."""
    return min((each for each in instants if each is not None), default=None)
