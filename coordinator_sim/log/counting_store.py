"""Segments of record batches in memory, some of which are only counted."""

from bisect import bisect_right
from collections.abc import Sequence

from msgspec.structs import replace

from coordinator_sim.log.contract import Keys, SegmentInfo, SegmentSettings, StoredSpan
from coordinator_sim.log.format.counted_batches import CountedBatch, counted_batch
from coordinator_sim.log.memory_store import MemoryStore


class CountingStore(MemoryStore):
    """A `SegmentStore` in memory that keeps counted batches as counts, however large.

    The cleaner leaves them alone: all their keys are different, and no other record has them.

    Args:
        base_offset: Base offset of the first segment.
        settings: See `MemoryStore`; counted batches neither fill nor age a segment.
    """

    __slots__ = ("_counted",)

    def __init__(self, base_offset: int = 0, settings: SegmentSettings | None = None) -> None:
        super().__init__(base_offset, settings)
        self._counted: list[CountedBatch] = []

    def append(
        self, data: bytes, spans: Sequence[StoredSpan], now_ms: int, keys: Keys = ()
    ) -> int | None:
        """Append whole batches, or one counted batch; see `SegmentStore.append`."""
        counted = counted_batch(data)
        if counted is None:
            return super().append(data, spans, now_ms, keys)
        self._counted.append(counted)
        self._active.next_offset = counted.next_offset
        return None

    def read(self, offset: int, max_bytes: int, *, before_offset: int) -> bytes:
        """Read batches of one segment, or a part of one counted batch."""
        index = bisect_right(self._counted, offset, key=_next_offset)
        if index == len(self._counted):
            return super().read(offset, max_bytes, before_offset=before_offset)
        counted = self._counted[index]
        start = min(counted.base_offset, before_offset)
        found = super().read(offset, max_bytes, before_offset=start) if offset < start else b""
        if found or max(offset, start) >= before_offset:
            return found
        return counted.part(offset, max_bytes, before_offset).header()

    def segments(self) -> Sequence[SegmentInfo]:
        """Return all segments, with the sizes that counted batches would have."""
        found = super().segments()
        if not self._counted:
            return found
        return tuple(
            replace(segment, size_bytes=segment.size_bytes + self._counted_bytes(segment))
            for segment in found
        )

    def _counted_bytes(self, segment: SegmentInfo) -> int:
        return sum(
            counted.size_bytes
            for counted in self._counted
            if segment.base_offset <= counted.base_offset < segment.next_offset
        )

    def drop_before(self, offset: int) -> None:
        """Delete segments that end before an offset; see `SegmentStore.drop_before`."""
        super().drop_before(offset)
        self._counted = [one for one in self._counted if one.base_offset >= self._bases[0]]

    def truncate_to(self, offset: int) -> None:
        """Delete batches from an offset on; see `SegmentStore.truncate_to`."""
        super().truncate_to(offset)
        self._counted = [one for one in self._counted if one.next_offset <= offset]
        end = max((one.next_offset for one in self._counted), default=0)
        self._active.next_offset = max(self._active.next_offset, end)

    def delete(self) -> None:
        """Drop all data."""
        super().delete()
        self._counted.clear()


def _next_offset(counted: CountedBatch) -> int:
    return counted.next_offset
