"""Keys of offset commits, each decoded once."""

from typing import Final

import numpy as np

from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.records import LogKey, OffsetCommitKey
from coordinator_sim.log.columns.batch_scan import Ints, gathered
from coordinator_sim.log.columns.word_table import MISSING, WordTable
from coordinator_sim.log.format.offsets_records import decode_key

UNWANTED: Final = -1
"""Stands for a key of another group than the wanted one."""
UNREADABLE: Final = -2
"""Stands for a key that does not parse."""
_GROUP_SIZE_AT: Final = 2
_GROUP_AT: Final = 4
_WIDTHS: Final = (64, 128, 256)
"""Longest keys of each table, in bytes; what is longer is looked up in the dictionary alone."""


class KeyTable:
    """Groups, topics and partitions by number, in the order in which they are met.

    Keys of version 0 and 1 that name the same offset have the same number. Where one group is
    wanted, keys whose group has another length are not looked at any further.

    Args:
        group_id: The only group wanted; None for all.
    """

    __slots__ = ("_by_bytes", "_by_key", "_group_bytes", "_group_id", "_tables", "keys")

    def __init__(self, group_id: str | None = None) -> None:
        self._group_id = group_id
        # Invalid characters are replaced by longer ones, so a group with such has no length to
        # tell it by.
        is_sized = group_id is not None and "\N{REPLACEMENT CHARACTER}" not in group_id
        self._group_bytes = len(group_id.encode()) if group_id is not None and is_sized else None
        self._tables = [WordTable(width) for width in _WIDTHS]
        self._by_bytes: dict[bytes, int] = {}
        self._by_key: dict[LogKey, int] = {}
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
        if self._group_id not in (None, key.group_id):
            return UNWANTED
        number = self._by_key.setdefault(key, len(self.keys))
        if number == len(self.keys):
            self.keys.append(key)
        return number

    def _looked_up(self, content: bytes, starts: Ints, sizes: Ints) -> Ints:
        numbers = np.full(len(starts), MISSING)
        above = 0
        for table in self._tables:
            rows = np.flatnonzero((sizes > above) & (sizes <= table.width))
            above = table.width
            if len(rows):
                numbers[rows] = self._found(table, content, starts[rows], sizes[rows])
        for row in np.flatnonzero(numbers == MISSING).tolist():
            start = int(starts[row])
            numbers[row] = self._number_of_bytes(content[start : start + int(sizes[row])])
        return numbers

    def _found(self, table: WordTable, content: bytes, starts: Ints, sizes: Ints) -> Ints:
        """Numbers of keys that fit a table; new ones are added to it."""
        numbers = table.find(content, starts, sizes)
        new: dict[bytes, int] = {}
        for row in np.flatnonzero(numbers == MISSING).tolist():
            start = int(starts[row])
            raw = content[start : start + int(sizes[row])]
            if raw not in self._by_bytes:
                new[raw] = row
            numbers[row] = self._number_of_bytes(raw)
        if new:
            rows = np.array(list(new.values()))
            table.add(content, starts[rows], sizes[rows], numbers[rows])
        return numbers

    def _number_of_bytes(self, raw: bytes) -> int:
        number = self._by_bytes.get(raw)
        if number is None:
            number = self._by_bytes[raw] = self._decoded(raw)
        return number

    def _decoded(self, raw: bytes) -> int:
        try:
            key = decode_key(raw)
        except WireFormatError:
            return UNREADABLE
        return self.number_of(key) if isinstance(key, OffsetCommitKey) else UNREADABLE
