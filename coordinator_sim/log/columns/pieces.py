"""Reads a segment piece by piece, so that memory does not grow with it."""

from collections.abc import Iterator
from typing import Final

from coordinator_sim.errors import WireFormatError
from coordinator_sim.log.columns.batch_scan import (
    CUT_SHORT,
    PADDING,
    ZEROS,
    BatchTable,
    SegmentSource,
    scan_batches,
)
from coordinator_sim.log.format.record_batches import LOG_OVERHEAD
from coordinator_sim.log.format.segments import Damage
from coordinator_sim.log.format.stored_batches import FRONT_TO_MAGIC, stated_size

PIECE_BYTES: Final = 4 * 1024 * 1024
"""Bytes of a segment that are looked at together; more only where one batch is larger."""
_LENGTH: Final = slice(8, LOG_OVERHEAD)


class Pieces:
    """The batches of a segment, or of a range of it, piece by piece.

    Args:
        source: The segment.
        start: Position of a batch.
        stop: Position before which batches begin; None for the end of the segment.
        piece_bytes: Bytes to read at a time.

    Attributes:
        damage: Why the reading ended before the end; None at a clean one.
    """

    __slots__ = ("_piece_bytes", "_source", "_start", "_stop", "damage")

    def __init__(
        self,
        source: SegmentSource,
        start: int = 0,
        stop: int | None = None,
        *,
        piece_bytes: int = PIECE_BYTES,
    ) -> None:
        self._source = source
        self._start = start
        self._stop = source.size if stop is None else min(stop, source.size)
        self._piece_bytes = piece_bytes
        self.damage: Damage | None = None

    def __iter__(self) -> Iterator[BatchTable]:
        """The batches in order."""
        self.damage = None
        position, wanted = self._start, self._piece_bytes
        while position < self._stop:
            data = self._source.read(position, wanted)
            table = scan_batches(data + PADDING, position, min(len(data), self._stop - position))
            yield table
            position += table.end
            if table.error is not None:
                self._end(position, table.error)
                return
            if table.end:
                wanted = self._piece_bytes
                continue
            needed = self._size_at(data)
            if needed <= wanted or position + needed > self._source.size:
                self._end(position, CUT_SHORT)
                return
            wanted = needed

    def _size_at(self, data: bytes) -> int:
        """Bytes of the batch that the data begins with, so far as they say."""
        if len(data) < FRONT_TO_MAGIC:
            return FRONT_TO_MAGIC
        return LOG_OVERHEAD + int.from_bytes(data[_LENGTH], "big")

    def _end(self, position: int, reason: str) -> None:
        reason = ZEROS if self._is_zero_from(position) else reason
        self.damage = Damage(
            position=position,
            invalid_bytes=self._source.size - position,
            reason=reason,
            is_torn=reason in (CUT_SHORT, ZEROS),
        )

    def _is_zero_from(self, position: int) -> bool:
        while data := self._source.read(position, self._piece_bytes):
            if data.count(0) != len(data):
                return False
            position += len(data)
        return True


def batch_borders(source: SegmentSource, step_bytes: int) -> list[int]:
    """Positions of batches at which a segment may be split, about that many bytes apart.

    The first is 0. Only sizes are read; nothing behind bytes that are no batch is split.

    Args:
        source: The segment.
        step_bytes: Smallest distance of two borders, in bytes.
    """
    borders, position, after = [0], 0, step_bytes
    data, origin = b"", 0
    while position < source.size:
        if position < after:
            start = position - origin
            if start + FRONT_TO_MAGIC > len(data):
                data, origin, start = source.read(position, PIECE_BYTES), position, 0
            if len(data) - start < FRONT_TO_MAGIC:
                break
            try:
                position += stated_size(data, start)
            except WireFormatError:
                break
            continue
        borders.append(position)
        after = position + step_bytes
    return borders
