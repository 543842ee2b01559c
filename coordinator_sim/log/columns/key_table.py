"""Keys of offset commits, each decoded once.

A hash table of short byte strings that looks up thousands of strings per call.

A string is read as 64-bit words from its buffer, and is compared word by word with the one in the
table, so that equal hashes do no harm. A string that is not in one of the first slots of its hash
is not found, and belongs in a dictionary of the caller: many strings of one hash stay cheap.
"""

from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from coordinator_sim.errors import WireFormatError
from coordinator_sim.log.columns.batch_scan import Ints, gathered
from coordinator_sim.log.columns.compiled import LOOPS
from coordinator_sim.log.format.offsets_records import decode_key
from coordinator_sim.messages.group_records import OffsetCommitKey

MISSING: Final = -3
"""Stands for a string that the table does not have."""

_WORD: Final = 8
_PLACES: Final = 16
"""Places of a hash that are looked at."""
_FIRST_BITS: Final = 12
_EMPTY: Final = -1
_SEED: Final = 0x9E3779B97F4A7C15
"""An odd number without a pattern in its bits."""
_ALL_EQUAL: Final = np.uint64(0x0101010101010101)

Words = NDArray[np.uint64]


class WordTable:
    """Numbers of strings of at most `width` bytes.

    Args:
        width: A multiple of 64.
    """

    __slots__ = (
        "_bits",
        "_count",
        "_factors",
        "_hashes",
        "_masks",
        "_numbers",
        "_places",
        "_sizes",
        "_words",
    )

    def __init__(self, width: int) -> None:
        columns = width // _WORD
        self._bits = _FIRST_BITS
        self._count = 0
        self._places = np.full(1 << self._bits, _EMPTY, np.int64)
        room = len(self._places) // 2
        self._words: Words = np.zeros((room, columns), np.uint64)
        self._hashes: Words = np.zeros(room, np.uint64)
        self._sizes = np.zeros(room, np.int64)
        self._numbers = np.zeros(room, np.int64)
        powers = [pow(_SEED, 2 * column + 1, 1 << 64) for column in range(columns)]
        self._factors = np.array(powers, np.uint64)
        kept = np.arange(width) < np.arange(width + 1)[:, None]
        self._masks: Words = (kept * np.uint8(0xFF)).astype(np.uint8).view(np.uint64)

    @property
    def width(self) -> int:
        """Bytes of the longest string."""
        return len(self._factors) * _WORD

    def find(self, content: bytes, starts: Ints, sizes: Ints) -> Ints:
        """The number of each string, or `MISSING`.

        Args:
            content: Bytes with at least `width` more behind each start.
            starts: Position of each string.
            sizes: Its size in bytes, at most `width`.
        """
        loops = LOOPS.current
        if loops is not None:
            numbers = np.full(len(starts), MISSING)
            every: Words = np.ndarray((len(content) - _WORD + 1,), np.uint64, content, strides=(1,))
            loops.find(every, starts, sizes, self._arrays(), self._bits, numbers)
            return numbers
        words = self._read(content, starts, sizes)
        mixed = self._mixed(words, sizes)
        found = self._first_of(mixed)
        is_found = found != _EMPTY
        entry = np.where(is_found, found, 0)
        is_found &= (self._sizes[entry] == sizes) & _same(self._words[entry], words)
        return np.where(is_found, self._numbers[entry], MISSING)

    def _arrays(self) -> tuple[NDArray[Any], ...]:
        """The table as the compiled loop takes it."""
        return (
            self._factors,
            self._masks,
            self._places,
            self._hashes,
            self._words,
            self._sizes,
            self._numbers,
        )

    def _first_of(self, mixed: Words) -> Ints:
        """The entry with each hash; `_EMPTY` where it is in none of the hash's places."""
        place = self._home(mixed)
        entry = self._places[place]
        left = np.flatnonzero((entry != _EMPTY) & (self._hashes[entry] != mixed))
        place = place[left]
        for _ in range(_PLACES - 1):
            if not len(left):
                break
            place = self._next(place)
            entry[left] = self._places[place]
            is_other = (entry[left] != _EMPTY) & (self._hashes[entry[left]] != mixed[left])
            left, place = left[is_other], place[is_other]
        entry[left] = _EMPTY
        return entry

    def add(self, content: bytes, starts: Ints, sizes: Ints, numbers: Ints) -> None:
        """Add strings that are not in the table, each once; see `find`."""
        added = np.arange(self._count, self._count + len(starts))
        while (self._count + len(starts)) * 2 > len(self._places):
            self._grow()
        self._count += len(starts)
        words = self._read(content, starts, sizes)
        self._words[added] = words
        self._hashes[added] = self._mixed(words, sizes)
        self._sizes[added] = sizes
        self._numbers[added] = numbers
        self._place(added)

    def _read(self, content: bytes, starts: Ints, sizes: Ints) -> Words:
        width = self.width
        every: NDArray[Any] = np.ndarray(
            (len(content) - width + 1,), f"V{width}", content, strides=(1,)
        )
        words: Words = every[starts].view(np.uint64).reshape(len(starts), -1)
        words &= self._masks[sizes]
        return words

    def _mixed(self, words: Words, sizes: Ints) -> Words:
        """The hash of each string."""
        mixed: Words = words @ self._factors + sizes.astype(np.uint64)
        mixed *= self._factors[0]
        return mixed

    def _home(self, mixed: Words) -> Ints:
        """The first place of each hash."""
        return (mixed >> np.uint64(64 - self._bits)).astype(np.int64)

    def _next(self, place: Ints) -> Ints:
        return (place + 1) & (len(self._places) - 1)

    def _grow(self) -> None:
        """Double the table and place all strings anew."""
        self._bits += 1
        self._places = np.full(1 << self._bits, _EMPTY, np.int64)
        for name in ("_words", "_hashes", "_sizes", "_numbers"):
            old = getattr(self, name)
            setattr(self, name, np.concatenate((old, np.zeros_like(old))))
        self._place(np.arange(self._count))

    def _place(self, entries: Ints) -> None:
        """Give entries the first free one of their places; those without stay out."""
        place = self._home(self._hashes[entries])
        for _ in range(_PLACES):
            is_free = self._places[place] == _EMPTY
            self._places[place[is_free]] = entries[is_free]
            is_out = self._places[place] != entries
            entries, place = entries[is_out], self._next(place[is_out])
            if not len(entries):
                break


def _same(left: Words, right: Words) -> NDArray[np.bool_]:
    """Which rows are equal; eight truth values are compared as one number."""
    equal: NDArray[np.bool_] = np.equal((left == right).view(np.uint64), _ALL_EQUAL)
    return np.asarray(equal.all(axis=1)) if equal.shape[1] > 1 else equal[:, 0]


UNWANTED: Final = -1
"""Stands for a key of another group than the wanted one."""
UNREADABLE: Final = -2
"""Stands for a key that does not parse."""
_GROUP_SIZE_AT: Final = 2
_GROUP_AT: Final = 4
_SIZE_BYTES: Final = 2
_PARTITION_BYTES: Final = 4
_WIDTHS: Final = (64, 128, 256)
"""Longest keys of each table, in bytes; what is longer is looked up by its names alone."""


class _Topic(Struct):
    """A topic of a group; `numbers` has the number of each partition that was met."""

    group_id: str
    name: str
    is_wanted: bool
    numbers: dict[int, int]


class KeyTable:
    """Groups, topics and partitions by number, in the order in which they are met.

    Keys of version 0 and 1 that name the same offset have the same number. Where one group is
    wanted, keys whose group has another length are not looked at any further.

    Args:
        group_id: The only group wanted; None for all.
    """

    __slots__ = ("_by_bytes", "_by_name", "_group_bytes", "_group_id", "_tables", "keys")

    def __init__(self, group_id: str | None = None) -> None:
        self._group_id = group_id
        # Invalid characters are replaced by longer ones, so a group with such has no length to
        # tell it by.
        is_sized = group_id is not None and "\N{REPLACEMENT CHARACTER}" not in group_id
        self._group_bytes = len(group_id.encode()) if group_id is not None and is_sized else None
        self._tables = [WordTable(width) for width in _WIDTHS]
        self._by_bytes: dict[bytes, _Topic] = {}
        self._by_name: dict[tuple[str, str], _Topic] = {}
        self.keys: list[OffsetCommitKey] = []
        """The key of each number."""

    def numbers_of(self, content: bytes, starts: Ints, sizes: Ints) -> Ints:
        """The number of each key; `UNWANTED` and `UNREADABLE` for some.

        Args:
            content: Bytes that hold the keys, with `PADDING` behind.
            starts: Position of each key, which is of version 0 or 1.
            sizes: Size of each in bytes.
        """
        if self._group_bytes is None:
            return self._looked_up(content, starts, sizes)
        plausible = gathered(content, starts + _GROUP_SIZE_AT, ">i2") == self._group_bytes
        plausible |= sizes < _GROUP_AT
        numbers = np.full(len(starts), UNWANTED)
        numbers[plausible] = self._looked_up(content, starts[plausible], sizes[plausible])
        return numbers

    def is_plausible(self, raw: bytes) -> bool:
        """Whether a key may be of the wanted group, by the length of its group alone."""
        size = raw[_GROUP_SIZE_AT:_GROUP_AT]
        is_short = len(raw) < _GROUP_AT
        return is_short or self._group_bytes in (None, int.from_bytes(size, "big"))

    def number_of(self, key: OffsetCommitKey) -> int:
        """The number of one key that was decoded already."""
        topic = self._topic(key.group, key.topic)
        number = topic.numbers.get(key.partition)
        return self._add(topic, key.partition) if number is None else number

    def _looked_up(self, content: bytes, starts: Ints, sizes: Ints) -> Ints:
        numbers = np.full(len(starts), MISSING)
        above = 0
        for table in self._tables:
            rows = np.flatnonzero((sizes > above) & (sizes <= table.width))
            above = table.width
            if len(rows):
                numbers[rows] = self._found(table, content, starts[rows], sizes[rows])
        rows = np.flatnonzero(numbers == MISSING)
        if len(rows):
            numbers[rows], _ = self._decoded(content, starts[rows], sizes[rows])
        return numbers

    def _found(self, table: WordTable, content: bytes, starts: Ints, sizes: Ints) -> Ints:
        """Numbers of keys that fit a table; new ones are added to it."""
        numbers = table.find(content, starts, sizes)
        rows = np.flatnonzero(numbers == MISSING)
        numbers[rows], new = self._decoded(content, starts[rows], sizes[rows])
        if new:
            rows = rows[new]
            table.add(content, starts[rows], sizes[rows], numbers[rows])
        return numbers

    def _decoded(self, content: bytes, starts: Ints, sizes: Ints) -> tuple[list[int], list[int]]:
        """The number of each key, and the indexes of those met for the first time.

        The keys of a topic's partitions differ in their last bytes alone, so its names are decoded
        once.
        """
        stops = starts + sizes
        partitions = gathered(content, np.maximum(stops - _PARTITION_BYTES, 0), ">i4")
        rows = zip(starts.tolist(), stops.tolist(), partitions.tolist(), strict=True)
        topics = self._by_bytes
        numbers, new = [], []
        for start, stop, partition in rows:
            topic = topics.get(content[start + _GROUP_SIZE_AT : stop - _PARTITION_BYTES])
            if topic is None:
                topic = self._regular_topic(content[start:stop])
            if topic is None:
                numbers.append(self._irregular_number(content[start:stop]))
                continue
            number = topic.numbers.get(partition)
            if number is None:
                new.append(len(numbers))
                number = self._add(topic, partition)
            numbers.append(number)
        return numbers, new

    def _regular_topic(self, raw: bytes) -> _Topic | None:
        """The topic of a key, kept by the bytes of its names; None for a key of another form."""
        end = _GROUP_AT + int.from_bytes(raw[_GROUP_SIZE_AT:_GROUP_AT], "big")
        stop = end + _SIZE_BYTES + int.from_bytes(raw[end : end + _SIZE_BYTES], "big")
        if stop + _PARTITION_BYTES != len(raw):
            return None
        key = decode_key(raw)
        if not isinstance(key, OffsetCommitKey):
            return None
        topic = self._topic(key.group, key.topic)
        self._by_bytes[raw[_GROUP_SIZE_AT:stop]] = topic
        return topic

    def _irregular_number(self, raw: bytes) -> int:
        try:
            key = decode_key(raw)
        except WireFormatError:
            return UNREADABLE
        return self.number_of(key) if isinstance(key, OffsetCommitKey) else UNREADABLE

    def _topic(self, group_id: str, name: str) -> _Topic:
        topic = self._by_name.get((group_id, name))
        if topic is None:
            is_wanted = self._group_id in (None, group_id)
            topic = self._by_name[group_id, name] = _Topic(group_id, name, is_wanted, {})
        return topic

    def _add(self, topic: _Topic, partition: int) -> int:
        """Give a partition that was not met before its number."""
        number = len(self.keys) if topic.is_wanted else UNWANTED
        if topic.is_wanted:
            self.keys.append(OffsetCommitKey(topic.group_id, topic.name, partition))
        topic.numbers[partition] = number
        return number
