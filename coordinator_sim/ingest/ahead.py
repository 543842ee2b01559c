"""`Ahead`: a file is read ahead of its consumer, so that its end is known before it is used."""

from collections import deque
from collections.abc import Iterator
from typing import Final, Generic, Self, TypeVar

from coordinator_sim.logtext.reading.merging import NO_TIME_US

_Item = TypeVar("_Item")
APART_US: Final = 60_000_000
"""Logs of one cluster that are cut at one moment end within this of each other."""
EXCHANGES_AHEAD_US: Final = 10_000_000
"""Lines of one request log are out of order by less than this."""


class Ahead(Generic[_Item]):
    """Gives items once what follows them so closely is read, too.

    Args:
        items: Items with their times, those of a file in its order.
        ahead_us: How far the reading is ahead of what is given.

    Attributes:
        read_us: Latest time that was read.
    """

    read_us: int
    _items: Iterator[tuple[int, _Item]] | None
    _ahead_us: int
    _held: deque[tuple[int, _Item]]

    def __init__(self, items: Iterator[tuple[int, _Item]], ahead_us: int) -> None:
        self.read_us = NO_TIME_US
        self._items = items
        self._ahead_us = ahead_us
        self._held = deque()

    @property
    def is_read(self) -> bool:
        """Whether the file is read to its end."""
        return self._items is None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> _Item:
        while self._items is not None:
            if self._held and self._held[0][0] < self.read_us - self._ahead_us:
                break
            following = next(self._items, None)
            if following is None:
                self._items = None
            else:
                self.read_us = max(self.read_us, following[0])
                self._held.append(following)
        if not self._held:
            raise StopIteration
        return self._held.popleft()[1]

    def left(self) -> list[_Item]:
        """Return the items that were read and not given."""
        return [item for _, item in self._held]
