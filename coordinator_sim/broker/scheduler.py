"""What a cluster has to do later: tasks on either clock, and the deadlines of the API families."""

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import Protocol

from coordinator_sim.broker.contract import Instants, Timed
from coordinator_sim.errors import described

Task = Callable[[Instants], None]
"""Work to do; called with the present instants."""

_Entry = tuple[int, int, Task]


class Coarse(Timed, Protocol):
    """A family whose deadlines are dear to know exactly."""

    def exact_group_deadline_ms(self) -> int | None:
        """The earliest deadline on the group clock, None when there is none."""
        ...


class Scheduler:
    """Tasks, and families with deadlines of their own; says when the next one is due.

    The families are asked only after something that may have brought a deadline forward. A deadline
    that has moved away since is met too early, in vain.

    Attributes:
        has_moved: Whether `next_deadline_ms` may be earlier than when it was last asked for; a
            driver then looks at its alarm.
    """

    __slots__ = (
        "_by_group",
        "_by_wall",
        "_count",
        "_either_ms",
        "_families",
        "_group_ms",
        "_is_known",
        "_wall_ms",
        "has_moved",
    )

    def __init__(self) -> None:
        self._by_group: list[_Entry] = []
        self._by_wall: list[_Entry] = []
        self._count = 0
        self._families: list[Timed] = []
        self._is_known = False
        self._group_ms: int | None = None
        self._wall_ms: int | None = None
        self._either_ms: int | None = None
        self.has_moved = True

    def watch(self, *families: Timed) -> None:
        """Meet the deadlines of more families, after those of the families before."""
        self._families += families
        self.look_again()

    # -- tasks -----------------------------------------------------------------------------

    def at_group_ms(self, at_ms: int, task: Task) -> None:
        """Run a task when the group clock reaches an instant; tasks of one instant in order."""
        self._put(self._by_group, at_ms, task)

    def at_wall_ms(self, at_ms: int, task: Task) -> None:
        """Run a task when the wall clock reaches an instant; tasks of one instant in order."""
        self._put(self._by_wall, at_ms, task)

    def _put(self, entries: list[_Entry], at_ms: int, task: Task) -> None:
        self._count += 1
        heappush(entries, (at_ms, self._count, task))
        self.look_again()

    @property
    def has_tasks(self) -> bool:
        """Whether any task waits."""
        return bool(self._by_group or self._by_wall)

    # -- time ------------------------------------------------------------------------------

    def expire(self, now: Instants) -> None:
        """Do everything that is due: tasks first; what fails keeps nothing else from it.

        Raises:
            ExceptionGroup: what failed, when all is done.
        """
        self.look_again()
        failures: list[Exception] = []
        for expire in (self._run_tasks, *(family.expire for family in self._families)):
            try:
                expire(now)
            except Exception as error:  # noqa: BLE001 - raised below
                failures.append(error)
        if failures:
            texts = "; ".join(described(each) for each in failures)
            raise ExceptionGroup(f"deadlines met a bug: {texts}", failures)

    def _run_tasks(self, now: Instants) -> None:
        for entries, now_ms in ((self._by_group, now.group_ms), (self._by_wall, now.wall_ms)):
            while entries and entries[0][0] <= now_ms:
                heappop(entries)[2](now)

    # -- deadlines -------------------------------------------------------------------------

    def look_again(self) -> None:
        """Ask all families again: some deadline may be earlier than the known ones."""
        self._is_known = False
        self.has_moved = True

    def wake_by_group_ms(self, at_ms: int | None) -> None:
        """Take in what one family would say if it was asked; None where it has no deadline."""
        known_ms = self._group_ms
        if at_ms is not None and (known_ms is None or at_ms < known_ms):
            self._group_ms = at_ms
            self._either_ms = _earliest((at_ms, self._wall_ms))
            self.has_moved = True

    def next_group_deadline_ms(self) -> int | None:
        """When `expire` has something to do by the group clock, or a little before."""
        if not self._is_known:
            self._ask()
        return self._group_ms

    def next_wall_deadline_ms(self) -> int | None:
        """When `expire` has something to do by the wall clock, or a little before."""
        if not self._is_known:
            self._ask()
        return self._wall_ms

    def next_deadline_ms(self) -> int | None:
        """The earlier of both, for a driver with one clock for both."""
        if not self._is_known:
            self._ask()
        self.has_moved = False
        return self._either_ms

    def exact_group_deadline_ms(self, coarse: Coarse) -> int | None:
        """When `expire` has something to do by the group clock; dearer to ask.

        Args:
            coarse: The family that may say an instant a little before its deadline.
        """
        others = (each.next_group_deadline_ms() for each in self._families if each is not coarse)
        exact_ms = coarse.exact_group_deadline_ms()
        return _earliest((_first(self._by_group), exact_ms, *others))

    def _ask(self) -> None:
        group_ms = (each.next_group_deadline_ms() for each in self._families)
        wall_ms = (each.next_wall_deadline_ms() for each in self._families)
        self._group_ms = _earliest((_first(self._by_group), *group_ms))
        self._wall_ms = _earliest((_first(self._by_wall), *wall_ms))
        self._either_ms = _earliest((self._group_ms, self._wall_ms))
        self._is_known = True


def _first(entries: list[_Entry]) -> int | None:
    return entries[0][0] if entries else None


def _earliest(instants: Iterable[int | None]) -> int | None:
    return min((each for each in instants if each is not None), default=None)
