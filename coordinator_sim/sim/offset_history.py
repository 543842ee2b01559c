"""Counts the records of a compacted topic of source offsets, from how it was written and cleaned.

Every source partition commits its offset at one interval, so keys follow each other in a circle,
and records can be counted without being kept: a log consists of its segments, less what each
cleaner pass removed. Kafka's rule says when a segment is closed, and `log` when a pass is
worthwhile.

Left out: tombstones (`delete.retention.ms`), which a source connector does not write, and the pause
between two cleaner checks, 15 s compared with months.
"""

from typing import Final

from coordinator_sim.log.cleaning import cleanable_before, is_dirty_enough
from coordinator_sim.log.contract import SegmentInfo
from coordinator_sim.log.format.counted_batches import RECORD_OVERHEAD_BYTES
from coordinator_sim.log.log_config import LogConfig
from coordinator_sim.sim.scenario.world import OffsetHistory

_EVER: Final = 1 << 62


def compacted_offsets(
    history: OffsetHistory, partitions: int, record_bytes: int
) -> tuple[int, int]:
    """Return the records of all partitions that a worker finds, and the sum of their end offsets.

    Args:
        history: How the topic was written and cleaned.
        partitions: Partitions of the topic; source partitions are spread over them evenly.
        record_bytes: Size of key and value of one record.
    """
    each, more = divmod(history.source_partitions, partitions)
    found = [
        (count, *_partition(keys, history, record_bytes + RECORD_OVERHEAD_BYTES))
        for keys, count in ((each, partitions - more), (each + 1, more))
        if keys and count
    ]
    return sum(n * records for n, records, _ in found), sum(n * end for n, _, end in found)


def _partition(keys: int, history: OffsetHistory, size_bytes: int) -> tuple[int, int]:
    """Return the records and the end offset of a partition with so many keys."""
    config = LogConfig(
        cleanup_policy="compact", min_cleanable_dirty_ratio=history.min_cleanable_dirty_ratio
    )
    end_offset = keys * (history.written_ms // history.commit_every_ms)
    segments: list[SegmentInfo] = []
    cleaned_to = start = 0
    while start < end_offset:
        following = min(_end_of_segment(start, keys, history, size_bytes), end_offset)
        segments.append(_segment(start, following, keys, history, size_bytes))
        start = following
        bound = cleanable_before(segments, _EVER, _EVER)
        now_ms = segments[-1].max_timestamp_ms
        if len(segments) > 1 and is_dirty_enough(segments, cleaned_to, bound, config, now_ms):
            left = min(keys, bound)
            clean = SegmentInfo(
                base_offset=0,
                next_offset=bound,
                size_bytes=left * size_bytes,
                max_timestamp_ms=segments[-2].max_timestamp_ms,
            )
            segments, cleaned_to = [clean, segments[-1]], bound
    return sum(one.size_bytes for one in segments) // size_bytes, end_offset


def _end_of_segment(start: int, keys: int, history: OffsetHistory, size_bytes: int) -> int:
    """Return the end of the segment that begins there. Source: LogSegment.shouldRoll."""
    by_size = start + max(1, history.segment_bytes // size_bytes)
    first_late = start // keys + history.segment_ms // history.commit_every_ms + 1
    return min(by_size, first_late * keys)


def _segment(
    start: int, end: int, keys: int, history: OffsetHistory, size_bytes: int
) -> SegmentInfo:
    return SegmentInfo(
        base_offset=start,
        next_offset=end,
        size_bytes=(end - start) * size_bytes,
        max_timestamp_ms=((end - 1) // keys + 1) * history.commit_every_ms,
    )
