"""The batches of a damaged segment: what is bad is passed over, and counted.

A broker cuts a log off at the first bad byte, and so does `SegmentReader`. Whoever reads a log for
what it tells wants the good batches behind the damage as well. After a batch with a wrong CRC the
next one is where its length says; where no batch begins there, the next good one of magic 2 is
searched for. The search is bounded, so that the time stays linear in the segment's size.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import WireFormatError
from coordinator_sim.log.format.record_batches import (
    CURRENT_MAGIC,
    HEADER_SIZE,
    LOG_OVERHEAD,
)
from coordinator_sim.log.format.stored_batches import MAGIC_AT, StoredBatch, next_batch

_SEARCH_STEP: Final = 1 << 20
_ZEROS_STEP: Final = 1 << 16
_MORE_WORK: Final = 2
"""Bytes that a search may check by CRC, in multiples of the segment's size."""
TAIL_OF_ZEROS: Final = "zeros, as in a file of preallocated size"
CUT_SHORT: Final = "the last batch is cut short"
WRONG_CRC: Final = "wrong CRC"


class Skipped(Struct, frozen=True):
    """Bytes of a segment that hold no good batch.

    Args:
        position: Of the first of them in the file.
        size: How many they are.
        reason: What is wrong with them.
        is_batch: Whether they are one batch, by its length.
    """

    position: int
    size: int
    reason: str
    is_batch: bool = False


class SalvagingReader:
    """The good batches of one segment, whatever lies between them.

    Args:
        data: The bytes of the file.

    Attributes:
        skipped: What was passed over so far, in order; complete when the last batch was taken.
    """

    __slots__ = ("_data", "_work_left", "skipped")

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = data
        self._work_left = _MORE_WORK * len(data)
        self.skipped: list[Skipped] = []

    def __iter__(self) -> Iterator[StoredBatch]:
        """Yield the good batches, in the order of the file. May be called once."""
        position, size = 0, len(self._data)
        while position < size:
            try:
                batch = next_batch(self._data, position)
            except WireFormatError as error:
                batch, reason = None, str(error.args[0])
            else:
                reason = CUT_SHORT
            if batch is not None and batch.is_valid:
                yield batch
                position += batch.size
            else:
                position = self._pass_over(position, batch, reason)

    def _pass_over(self, position: int, batch: StoredBatch | None, reason: str) -> int:
        """Note what is bad at a position; return where to go on."""
        size = len(self._data)
        if batch is not None:
            end = position + batch.size
            if end == size or self._begins(end):
                self.skipped.append(Skipped(position, batch.size, WRONG_CRC, is_batch=True))
                return end
            reason = WRONG_CRC
        if self._is_zero_from(position):
            self.skipped.append(Skipped(position, size - position, TAIL_OF_ZEROS))
            return size
        found = self._find(position + 1)
        self.skipped.append(Skipped(position, found - position, reason))
        return found

    def _begins(self, position: int) -> bool:
        """Whether a batch may begin here: one that is whole, or all zeros to the end."""
        try:
            batch = next_batch(self._data, position)
        except WireFormatError:
            return self._is_zero_from(position)
        return batch is not None

    def _is_zero_from(self, position: int) -> bool:
        for start in range(position, len(self._data), _ZEROS_STEP):
            if any(self._data[start : start + _ZEROS_STEP]):
                return False
        return True

    def _find(self, position: int) -> int:
        """Return the position of the next good batch of magic 2; the end without one."""
        size = len(self._data)
        for start in range(position + MAGIC_AT, size, _SEARCH_STEP):
            window = bytes(self._data[start : start + _SEARCH_STEP])
            at = window.find(CURRENT_MAGIC)
            while at >= 0:
                if self._is_good(start + at - MAGIC_AT):
                    return start + at - MAGIC_AT
                at = window.find(CURRENT_MAGIC, at + 1)
        return size

    def _is_good(self, position: int) -> bool:
        front = bytes(self._data[position : position + LOG_OVERHEAD])
        length = int.from_bytes(front[8:], "big", signed=True)
        left = len(self._data) - position - LOG_OVERHEAD
        if front[0] or not HEADER_SIZE - LOG_OVERHEAD <= length <= left:
            return False
        if self._work_left < length:
            return False
        batch = next_batch(self._data, position)
        self._work_left -= length
        return batch is not None and batch.is_valid
