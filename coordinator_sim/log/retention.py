"""Retention: which segments of a log are deleted by age or by size.

Source: kafka trunk, core/.../log/UnifiedLog.scala (deleteOldSegments and what it calls).
"""

from collections.abc import Sequence

from coordinator_sim.log.contract import SegmentInfo
from coordinator_sim.log.log_config import LogConfig


def expired_count(
    segments: Sequence[SegmentInfo], config: LogConfig, high_watermark: int, now_ms: int
) -> int:
    """Number of segments, from the oldest on, to delete by size or by age.

    The active segment counts too, unless it is empty; none may reach beyond the high watermark.

    DEVIATION: segments without any timestamp (format 0) do not age; Kafka takes the time of the
    file. The group clock may differ from the file system's.
    """
    if not config.deletes:
        return 0
    gone = _beyond_size(segments, config.retention_bytes)
    if config.retention_ms >= 0:
        while gone < len(segments):
            latest_ms = segments[gone].max_timestamp_ms
            if latest_ms < 0 or now_ms - latest_ms <= config.retention_ms:
                break
            gone += 1
    while gone and _may_not_go(segments, gone - 1, high_watermark):
        gone -= 1
    return gone


def _beyond_size(segments: Sequence[SegmentInfo], retention_bytes: int) -> int:
    """Segments to delete by size. Source: UnifiedLog.deleteRetentionSizeBreachedSegments."""
    excess = sum(segment.size_bytes for segment in segments) - retention_bytes
    if retention_bytes < 0 or excess < 0:
        return 0
    for count, segment in enumerate(segments):
        excess -= segment.size_bytes
        if excess < 0:
            return count
    return len(segments)


def _may_not_go(segments: Sequence[SegmentInfo], index: int, high_watermark: int) -> bool:
    is_last = index == len(segments) - 1
    end = segments[index].next_offset if is_last else segments[index + 1].base_offset
    return end > high_watermark or (is_last and segments[index].size_bytes == 0)
