"""Instants of things, at most one for each; forgotten ones cost no memory."""

from heapq import heapify, heappop, heappush
from typing import Final, Generic, TypeVar

K = TypeVar("K", int, str)

_MOST_STALE: Final = 64
"""Entries that may be out of date beside as many as there are instants."""


class Deadlines(Generic[K]):
    """When something is due, by its name; equal instants are due in the order they were set."""

    def __init__(self) -> None:
        self._set: dict[K, tuple[int, int]] = {}
        self._heap: list[tuple[int, int, K]] = []
        self._count = 0

    def set(self, name: K, at_ms: int) -> None:
        """Have something due at an instant, in place of the one before."""
        self._count += 1
        self._set[name] = (at_ms, self._count)
        heappush(self._heap, (at_ms, self._count, name))
        self._compact()

    def discard(self, name: K) -> None:
        """Have something never due."""
        if self._set.pop(name, None) is not None:
            self._compact()

    def next_ms(self) -> int | None:
        """The earliest instant; None without one."""
        heap = self._heap
        while heap and self._set.get(heap[0][2]) != heap[0][:2]:
            heappop(heap)
        return heap[0][0] if heap else None

    def pop_due(self, now_ms: int) -> K | None:
        """Take what is due first, at `now_ms` or before; None without such."""
        due_ms = self.next_ms()
        if due_ms is None or due_ms > now_ms:
            return None
        name = heappop(self._heap)[2]
        del self._set[name]
        return name

    def _compact(self) -> None:
        if len(self._heap) > 2 * len(self._set) + _MOST_STALE:
            self._heap = [(at_ms, count, name) for name, (at_ms, count) in self._set.items()]
            heapify(self._heap)
