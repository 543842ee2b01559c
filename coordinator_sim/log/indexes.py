"""The indexes beside a segment, as arrays and as Kafka's bytes.

An entry of the offset index maps the last offset of a batch to its position; an entry of the time
index maps a timestamp to the first batch that brought it as the newest. Both are sparse and ascend.

Source: kafka trunk, storage/.../internals/log: OffsetIndex, TimeIndex, AbstractIndex, AbortedTxn.
"""

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Final

from coordinator_sim.log.contract import AbortedTransaction

OFFSET_ENTRY: Final = struct.Struct(">II")
"""Relative offset, position."""
TIME_ENTRY: Final = struct.Struct(">qI")
"""Timestamp, relative offset."""
ABORTED_ENTRY: Final = struct.Struct(">hqqqq")
"""Version 0, producer id, first offset, last offset, last stable offset."""

MAX_RELATIVE_OFFSET: Final = 2**31 - 1
"""Largest relative offset: Kafka reads them as signed."""


class OffsetIndex:
    """Positions of batches by offsets relative to the segment's base offset.

    Attributes:
        written: Number of entries in the file.
    """

    __slots__ = ("_offsets", "_positions", "written")

    def __init__(self) -> None:
        self._offsets = array("I")
        self._positions = array("I")
        self.written = 0

    @classmethod
    def from_bytes(cls, data: bytes) -> "OffsetIndex | None":
        """Parse an index file; None when it is damaged.

        Zeros at the end are preallocated space that a broker has not filled.
        """
        index = cls()
        if len(data) % OFFSET_ENTRY.size:
            return None
        for offset, position in OFFSET_ENTRY.iter_unpack(data):
            if not position:
                if any(data[len(index) * OFFSET_ENTRY.size :]):
                    return None
                break
            if len(index) and not index.follows(offset, position):
                return None
            index.add(offset, position)
        index.written = len(index)
        return index

    def __len__(self) -> int:
        return len(self._offsets)

    def follows(self, offset: int, position: int) -> bool:
        """Whether an entry comes after the last one."""
        return offset > self._offsets[-1] and position > self._positions[-1]

    def add(self, offset: int, position: int) -> None:
        """Add an entry; the offset is relative."""
        self._offsets.append(offset)
        self._positions.append(position)

    def position(self, offset: int) -> int:
        """The position at which to begin the search for a relative offset."""
        slot = bisect_right(self._offsets, max(offset, 0)) - 1
        return self._positions[slot] if slot >= 0 else 0

    def last_position(self) -> int:
        """Position of the last entry; 0 when there is none."""
        return self._positions[-1] if self._positions else 0

    def cut(self, size: int) -> None:
        """Forget entries of batches from a position on."""
        count = bisect_left(self._positions, size)
        del self._offsets[count:], self._positions[count:]
        self.written = min(self.written, count)

    def pending(self) -> bytes:
        """The entries that the file lacks."""
        pairs = zip(self._offsets[self.written :], self._positions[self.written :], strict=True)
        return b"".join(OFFSET_ENTRY.pack(*pair) for pair in pairs)


class TimeIndex:
    """Newest timestamps, with the relative last offsets of the batches that brought them.

    Attributes:
        written: Number of entries in the file.
    """

    __slots__ = ("_offsets", "_timestamps", "written")

    def __init__(self) -> None:
        self._timestamps = array("q")
        self._offsets = array("I")
        self.written = 0

    @classmethod
    def from_bytes(cls, data: bytes) -> "TimeIndex | None":
        """Parse an index file; None when it is damaged. Zeros at the end are preallocated."""
        index = cls()
        if len(data) % TIME_ENTRY.size:
            return None
        for timestamp_ms, offset in TIME_ENTRY.iter_unpack(data):
            if not timestamp_ms and not any(data[len(index) * TIME_ENTRY.size :]):
                break
            if len(index) and not index.follows(timestamp_ms, offset):
                return None
            index.add(timestamp_ms, offset)
        index.written = len(index)
        return index

    def __len__(self) -> int:
        return len(self._offsets)

    def follows(self, timestamp_ms: int, offset: int) -> bool:
        """Whether an entry comes after the last one."""
        return timestamp_ms > self._timestamps[-1] and offset >= self._offsets[-1]

    def add(self, timestamp_ms: int, offset: int) -> None:
        """Add an entry; the offset is relative."""
        self._timestamps.append(timestamp_ms)
        self._offsets.append(offset)

    def add_newer(self, timestamp_ms: int, offset: int) -> None:
        """Add an entry if its timestamp is the newest. Source: TimeIndex.maybeAppend."""
        if timestamp_ms > self.last()[0]:
            self.add(timestamp_ms, offset)

    def last(self) -> tuple[int, int]:
        """The last entry; (-1, 0) when there is none."""
        return (self._timestamps[-1], self._offsets[-1]) if self._offsets else (-1, 0)

    def offset(self, timestamp_ms: int) -> int:
        """The relative offset at which to begin looking for a timestamp."""
        slot = bisect_right(self._timestamps, timestamp_ms) - 1
        return self._offsets[slot] if slot >= 0 else 0

    def cut(self, offset: int) -> None:
        """Forget entries from a relative offset on."""
        count = bisect_left(self._offsets, offset)
        del self._timestamps[count:], self._offsets[count:]
        self.written = min(self.written, count)

    def pending(self) -> bytes:
        """The entries that the file lacks."""
        pairs = zip(self._timestamps[self.written :], self._offsets[self.written :], strict=True)
        return b"".join(TIME_ENTRY.pack(*pair) for pair in pairs)


def aborted_bytes(transactions: Iterable[AbortedTransaction]) -> bytes:
    """The bytes of entries of a transaction index."""
    return b"".join(
        ABORTED_ENTRY.pack(
            0, one.producer_id, one.first_offset, one.last_offset, one.last_stable_offset
        )
        for one in transactions
    )


def aborted_from_bytes(data: bytes) -> list[AbortedTransaction]:
    """The entries of a transaction index, up to the first invalid one."""
    found: list[AbortedTransaction] = []
    whole = len(data) // ABORTED_ENTRY.size * ABORTED_ENTRY.size
    for version, *values in ABORTED_ENTRY.iter_unpack(data[:whole]):
        one = AbortedTransaction(*values)
        if version or (found and one.last_offset <= found[-1].last_offset):
            break
        found.append(one)
    return found
