"""Kafka's timeline tables: maps that remember what their readers may still see, and take back.

Groups of a partition, offsets of a group and open transactions live in such tables. Readers see
them as of the last committed log position; a failed append takes them back to the last written
one. Their order shows: in the answers at an unload, the timers of a load, tombstones, an
OffsetFetch of everything. What it is after a take-back shows too.

Here is no hash table: the order of one is computed from the insertions when somebody asks. And
while every write is committed at once, nothing is remembered.

Source: kafka trunk, server-common/.../timeline/{BaseHashTable,SnapshottableHashTable,Snapshot,
SnapshotRegistry}.java and coordinator-common/.../runtime/SnapshottableCoordinator.java.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

LATEST: Final = 1 << 62
"""A log position that sees everything applied."""

_MIN_CAPACITY = 2
_ALWAYS: Final = -1


def timeline_capacity(size: int) -> int:
    """The slots of a table made empty that grew to hold `size` keys.

    It doubles before an insertion that brings 3/4 of the keys above the number of slots.
    """
    capacity = _MIN_CAPACITY
    while size * 3 > capacity * 4:
        capacity *= 2
    return capacity


def _slot(hashed: int, capacity: int) -> int:
    """The slot of a hash. Source: BaseHashTable.findSlot."""
    mixed = hashed * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
    return mixed >> (65 - capacity.bit_length())


class Timeline:
    """The log positions that the tables of one partition are remembered at.

    Attributes:
        written: The last written log position; a failed append takes the tables back to it.
        is_remembering: Whether changes are remembered: from `remember` to the `settle` that
            commits all of them.
    """

    __slots__ = ("_touched", "is_remembering", "written")

    def __init__(self) -> None:
        self.written = 0
        self.is_remembering = False
        self._touched: dict[int, TimelineTable[Any, Any]] = {}

    def remember(self) -> None:
        """From now on changes may be looked behind, or taken back."""
        self.is_remembering = True

    def touch(self, table: "TimelineTable[Any, Any]") -> None:
        """A table has something to forget later."""
        self._touched[id(table)] = table

    def settle(self, written: int, committed: int) -> None:
        """The log ends at `written`, and is committed up to `committed`: forget what is older."""
        self.written = written
        if self._touched:
            kept = [table for table in self._touched.values() if table.settle(committed)]
            self._touched = {id(table): table for table in kept}
        if committed >= written:
            self.is_remembering = False

    def take_back(self) -> None:
        """The append of what was applied since the last written position failed.

        Source: SnapshottableCoordinator.revertLastWrittenOffset.
        """
        for table in list(self._touched.values()):
            table.take_back(self.written)


class TimelineTable(Generic[K, V]):
    """One table. Reads without a position see everything applied.

    Args:
        hash_of: The keys' `hashCode`.

    Attributes:
        entries: In order of insertion. A hot loop may set an entry itself while the timeline does
            not remember, if it does to `made_for` what `put` does.
        made_for: The table has had room for this many keys.
    """

    __slots__ = ("_hash_of", "_kept", "_replaced", "_starts", "_timeline", "entries", "made_for")

    def __init__(self, timeline: Timeline, hash_of: Callable[[K], int]) -> None:
        self._timeline = timeline
        self._hash_of = hash_of
        self.entries: dict[K, V] = {}
        self.made_for = 0
        self._starts: dict[K, int] = {}
        # What readers up to a written position still see, in the order in which it went, with the
        # position from which they see it.
        self._replaced: dict[tuple[int, K], tuple[V, int]] = {}
        # How many of these there are of each written position, and how many their own table, which
        # grows as this one does, has made room for.
        self._kept: dict[int, tuple[int, int]] = {}

    def put(self, key: K, value: V) -> None:
        """Insert or replace."""
        entries = self.entries
        if len(entries) >= self.made_for:
            # QUIRK: a table makes room before it knows that the key is there already.
            self.made_for = len(entries) + 1
        if self._timeline.is_remembering:
            self._remember(key)
            self._starts[key] = self._timeline.written + 1
        entries[key] = value

    def remove(self, key: K) -> V | None:
        """Remove a key; its value, if it was there."""
        if key not in self.entries:
            return None
        if self._timeline.is_remembering:
            self._remember(key)
            self._starts.pop(key, None)
        return self.entries.pop(key)

    def get(self, key: K, position: int = LATEST) -> V | None:
        """The value as a reader at that log position sees it."""
        if position == LATEST or not (self._starts or self._replaced):
            return self.entries.get(key)
        if key in self.entries and self._starts.get(key, _ALWAYS) <= position:
            return self.entries[key]
        for (written, old_key), (value, start) in self._replaced.items():
            if old_key == key and written >= position:
                return value if start <= position else None
        return None

    def reader(self, position: int) -> Callable[[K], V | None]:
        """A function that answers `get` at a log position, for lookups of many keys."""
        if position == LATEST or not (self._starts or self._replaced):
            return self.entries.get
        return partial(self.get, position=position)

    def items(self, position: int = LATEST) -> Iterator[tuple[K, V]]:
        """The entries as a reader at that log position lists them, in Kafka's order.

        A listing at a committed position may repeat an entry: see `take_back`.
        """
        entries = list(self.entries.items())
        if position != LATEST and (self._starts or self._replaced):
            starts = self._starts
            entries = [entry for entry in entries if starts.get(entry[0], _ALWAYS) <= position]
            entries += [
                (key, value)
                for (written, key), (value, start) in self._replaced.items()
                if written >= position and start <= position and self._finds(written, key)
            ]
        capacity = timeline_capacity(self.made_for)
        hash_of = self._hash_of
        entries.reverse()
        entries.sort(key=lambda entry: _slot(hash_of(entry[0]), capacity))
        return iter(entries)

    def _finds(self, written: int, key: K) -> bool:
        """Whether a listing finds a key among those kept for a written position.

        QUIRK: where the table that keeps them has more slots than this one, it looks into the first
        alone. Source: SnapshottableHashTable.HistoricalIterator.hasNext, whose shift is negative.
        """
        capacity = timeline_capacity(self._kept[written][1])
        is_larger = capacity > timeline_capacity(self.made_for)
        return not is_larger or _slot(self._hash_of(key), capacity) == 0

    def keys(self) -> list[K]:
        """The keys in Kafka's order."""
        return [key for key, _ in self.items()]

    def __len__(self) -> int:
        """The number of entries."""
        return len(self.entries)

    def __contains__(self, key: object) -> bool:
        """Whether the key is there now."""
        return key in self.entries

    def settle(self, committed: int) -> bool:
        """Forget what no reader at `committed` or later can see; whether anything is left."""
        if self._replaced:
            self._replaced = {
                place: old for place, old in self._replaced.items() if place[0] >= committed
            }
            self._kept = {at: kept for at, kept in self._kept.items() if at >= committed}
        if self._starts:
            starts = self._starts.items()
            self._starts = {key: start for key, start in starts if start > committed}
        return bool(self._replaced or self._starts)

    def take_back(self, written: int) -> None:
        """Undo what was applied after that position.

        Source: SnapshottableHashTable.executeRevert.
        """
        entries, starts = self.entries, self._starts
        for key in [key for key, start in starts.items() if start > written]:
            del entries[key], starts[key]
        # QUIRK: what comes back goes to the end of its slot, and readers at the position it was
        # remembered for find it twice, until the next append is committed.
        for key in self._kept_order(written):
            value, start = self._replaced[written, key]
            if len(entries) >= self.made_for:
                self.made_for = len(entries) + 1
            entries[key] = value
            starts[key] = start

    def _kept_order(self, written: int) -> list[K]:
        """The keys kept for one written position, as the table that keeps them hands them out."""
        keys = [key for at, key in self._replaced if at == written]
        if len(keys) > 1:
            capacity = timeline_capacity(self._kept[written][1])
            hash_of = self._hash_of
            keys.sort(key=lambda key: _slot(hash_of(key), capacity))
        return keys

    def _remember(self, key: K) -> None:
        """Keep the entry of that key for readers, if any of them can see it."""
        timeline = self._timeline
        timeline.touch(self)
        if key not in self.entries:
            return
        start = self._starts.get(key, _ALWAYS)
        if start <= timeline.written:
            place = (timeline.written, key)
            count, room = self._kept.get(timeline.written, (0, 0))
            self._kept[timeline.written] = (
                count + (place not in self._replaced),
                max(room, count + 1),
            )
            self._replaced[place] = (self.entries[key], start)


class TimelineValue(Generic[V]):
    """One value that remembers what its readers may still see, and takes back.

    Attributes:
        first: What it began with.
        entries: What was set last, under None; empty before.

    Source: kafka trunk, server-common/.../timeline/{TimelineObject,TimelineInteger}.java.
    """

    __slots__ = ("_table", "entries", "first")

    def __init__(self, timeline: Timeline, first: V) -> None:
        self.first = first
        self._table: TimelineTable[None, V] = TimelineTable(timeline, _no_hash)
        self.entries = self._table.entries

    @property
    def value(self) -> V:
        """What was set last, or the value that it began with."""
        return self.entries.get(None, self.first)

    @value.setter
    def value(self, value: V) -> None:
        self._table.put(None, value)

    def as_of(self, position: int) -> V:
        """The value as a reader at that log position sees it."""
        found = self._table.get(None, position)
        return self.first if found is None else found


def _no_hash(_key: None) -> int:
    return 0
