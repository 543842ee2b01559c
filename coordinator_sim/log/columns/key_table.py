"""Keys of offset commits, each decoded once."""

from typing import Final

import numpy as np
from msgspec import Struct

from coordinator_sim.errors import WireFormatError
from coordinator_sim.log.columns.batch_scan import Ints, gathered
from coordinator_sim.log.columns.word_table import MISSING, WordTable
from coordinator_sim.log.format.offsets_records import decode_key
from coordinator_sim.messages.group_records import OffsetCommitKey

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
