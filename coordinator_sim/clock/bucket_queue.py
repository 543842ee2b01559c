"""A heap that breaks ties as Java's does, for the buckets of a timing wheel.

Two buckets of different wheels may start at one instant; the heap's sifting decides which comes up
first, and so affects the order of timers. Python's `heapq` sifts differently.
"""

from typing import Generic, TypeVar

T = TypeVar("T")


class BucketQueue(Generic[T]):
    """Items by instant. Source: OpenJDK, java.util.PriorityQueue (siftUp, siftDown)."""

    __slots__ = ("_items",)

    def __init__(self) -> None:
        self._items: list[tuple[int, T]] = []

    def first(self) -> T | None:
        """Return the item that comes up next, None when the queue is empty."""
        return self._items[0][1] if self._items else None

    def add(self, at_ms: int, item: T) -> None:
        """Queue an item for that instant."""
        items = self._items
        index = len(items)
        items.append((at_ms, item))
        while index > 0:
            parent = (index - 1) >> 1
            if at_ms >= items[parent][0]:
                break
            items[index] = items[parent]
            index = parent
        items[index] = (at_ms, item)

    def remove_first(self) -> None:
        """Remove the item that comes up next; the queue must not be empty."""
        items = self._items
        last = items.pop()
        size = len(items)
        if size == 0:
            return
        at_ms = last[0]
        index = 0
        half = size >> 1
        while index < half:
            child = 2 * index + 1
            right = child + 1
            if right < size and items[child][0] > items[right][0]:
                child = right
            if at_ms <= items[child][0]:
                break
            items[index] = items[child]
            index = child
        items[index] = last
