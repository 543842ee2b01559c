"""Tasks scheduled on either clock, beside the deadlines of the API families."""

from collections.abc import Callable
from heapq import heappop, heappush

from coordinator_sim.mini_broker.contract import Instants

Task = Callable[[Instants], None]
"""Work to do; called with the present instants."""

_Entry = tuple[int, int, Task]


class Agenda:
    """Tasks ordered by instant; tasks of the same instant keep the order they were scheduled in."""

    __slots__ = ("_by_group", "_by_wall", "_count")

    def __init__(self) -> None:
        self._by_group: list[_Entry] = []
        self._by_wall: list[_Entry] = []
        self._count = 0

    def at_group_ms(self, at_ms: int, task: Task) -> None:
        """Run a task when the group clock reaches an instant."""
        self._put(self._by_group, at_ms, task)

    def at_wall_ms(self, at_ms: int, task: Task) -> None:
        """Run a task when the wall clock reaches an instant."""
        self._put(self._by_wall, at_ms, task)

    def clear(self) -> None:
        """Forget all tasks."""
        self._by_group.clear()
        self._by_wall.clear()

    def expire(self, now: Instants) -> None:
        """Run the tasks that are due, those of the group clock first."""
        for entries, now_ms in ((self._by_group, now.group_ms), (self._by_wall, now.wall_ms)):
            while entries and entries[0][0] <= now_ms:
                heappop(entries)[2](now)

    def next_group_deadline_ms(self) -> int | None:
        """The earliest instant on the group clock, None when there is none."""
        return self._by_group[0][0] if self._by_group else None

    def next_wall_deadline_ms(self) -> int | None:
        """The earliest instant on the wall clock, None when there is none."""
        return self._by_wall[0][0] if self._by_wall else None

    def _put(self, entries: list[_Entry], at_ms: int, task: Task) -> None:
        self._count += 1
        heappush(entries, (at_ms, self._count, task))
