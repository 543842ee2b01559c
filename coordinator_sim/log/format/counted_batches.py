"""Counted batches: a batch of magic 2 of which only the header exists.

The header says which offsets the batch spans, how many records it has and what size they would
have; so a million records cost as much as one. A reader knows a counted batch by its length, which
goes beyond its bytes, and gets one only alone.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from coordinator_sim.log.format.record_batches import (
    CURRENT_MAGIC,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    NO_ID,
)

RECORD_OVERHEAD_BYTES: Final = 10
"""Lengths, deltas and attributes of a small record of magic 2.

Source: kafka trunk, clients/.../record/DefaultRecord.java.
"""
_LENGTH_AT: Final = slice(8, LOG_OVERHEAD)
_LARGEST: Final = 2**31 - 1 - HEADER_SIZE
"""Largest number of offsets, and of bytes, that the fields of a header can express."""


class CountedBatch(Struct, frozen=True, kw_only=True, gc=False):
    """Records that are only counted, spread evenly over their offsets.

    Args:
        base_offset: First offset.
        next_offset: Offset after the last one; compaction may have left gaps in between.
        count: Number of records, at most that of the offsets.
        size_bytes: Size of the records, without the batch's header.
    """

    base_offset: int
    next_offset: int
    count: int
    size_bytes: int

    def header(self) -> bytes:
        """The batch as a log returns it; that of no records is an ordinary empty batch."""
        return HEADER.pack(
            self.base_offset,
            HEADER_SIZE - LOG_OVERHEAD + self.size_bytes,
            NO_ID,
            CURRENT_MAGIC,
            0,
            0,
            self.next_offset - self.base_offset - 1,
            *(NO_ID, NO_ID, NO_ID, NO_ID, NO_ID),
            self.count,
        )

    def part(self, offset: int, max_bytes: int, before_offset: int) -> "CountedBatch":
        """The part from an offset on that fits into a fetch; at least one record.

        Args:
            offset: First wanted offset; the batch has a later one.
            max_bytes: Limit of header and records.
            before_offset: Offset at which the part ends at the latest.
        """
        count, base, span = self.count, self.base_offset, self.next_offset - self.base_offset
        first = max(offset, base)
        skipped = count * (first - base) // span
        room = max(1, (max_bytes - HEADER_SIZE) * count // max(1, self.size_bytes))
        ends = (
            base - (-(skipped + room) * span // count) if count > skipped + room else before_offset,
            self.next_offset,
            first + _LARGEST,
            before_offset,
        )
        reached = count * (min(ends) - base) // span
        return CountedBatch(
            base_offset=first,
            next_offset=min(ends),
            count=reached - skipped,
            size_bytes=self._size_of(reached) - self._size_of(skipped),
        )

    def _size_of(self, count: int) -> int:
        """The size of the first records."""
        return self.size_bytes * count // max(1, self.count)


def counted_batches(
    first_offset: int, count: int, *, span: int, value_bytes: int
) -> Iterator[CountedBatch]:
    """Records as counted batches, each small enough for a header.

    Args:
        first_offset: Offset of the first record.
        count: Number of records, at least 1.
        span: Number of offsets that they span, at least `count`.
        value_bytes: Size of key and value of one record.
    """
    whole = CountedBatch(
        base_offset=first_offset,
        next_offset=first_offset + span,
        count=count,
        size_bytes=count * (value_bytes + RECORD_OVERHEAD_BYTES),
    )
    at = first_offset
    while at < whole.next_offset:
        part = whole.part(at, _LARGEST, whole.next_offset)
        yield part
        at = part.next_offset


def counted_batch(data: bytes) -> CountedBatch | None:
    """The counted batch that these bytes are; None for whole batches."""
    if declared_size(data) == len(data):
        return None
    base_offset, length, *_, last_delta, _, _, _, _, _, count = HEADER.unpack(data)
    return CountedBatch(
        base_offset=base_offset,
        next_offset=base_offset + last_delta + 1,
        count=count,
        size_bytes=length + LOG_OVERHEAD - HEADER_SIZE,
    )


def declared_size(data: bytes) -> int:
    """Size of the batches in bytes; that of a counted batch is the size it would have."""
    if len(data) != HEADER_SIZE:
        return len(data)
    return int.from_bytes(data[_LENGTH_AT], "big") + LOG_OVERHEAD
