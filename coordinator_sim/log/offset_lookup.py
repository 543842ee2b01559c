"""Look-up of offsets by timestamp, for ListOffsets.

Source: kafka trunk, core/.../log/UnifiedLog.scala (fetchOffsetByTimestamp); core/.../cluster/
Partition.scala (fetchOffsetForTimestamp).
"""

from typing import Final

from coordinator_sim.log.contract import SegmentStore
from coordinator_sim.log.format.compression import NO_BOUNDS
from coordinator_sim.log.format.record_batches import CURRENT_MAGIC
from coordinator_sim.log.format.record_scan import RecordScan
from coordinator_sim.log.format.steps import Steps
from coordinator_sim.log.format.stored_batches import StoredBatch
from coordinator_sim.log.log_values import TimedOffset

_COST_OF_BATCH: Final = 50
_COST_OF_PAUSE: Final = 250
_RECORDS_A_STEP: Final = 100
"""Records of an old format per step: they are built, and most are read twice."""


def first_not_before(
    store: SegmentStore, timestamp_ms: int, *, from_offset: int
) -> Steps[TimedOffset | None]:
    """The first record from an offset on with at least a timestamp; None when there is none.

    QUIRK: only the first segment that has such a timestamp is searched. A segment that reaches
    before the log's start hides the later ones.

    Source: UnifiedLog.searchOffsetInLocalLog, LogSegment.findOffsetByTimestamp.
    """
    for segment in store.segments():
        if segment.max_timestamp_ms >= timestamp_ms:
            offset = max(from_offset, segment.base_offset)
            return (yield from _first_in(store, timestamp_ms, offset, segment.next_offset))
    return None


def _first_in(
    store: SegmentStore, timestamp_ms: int, from_offset: int, before_offset: int
) -> Steps[TimedOffset | None]:
    offset = from_offset
    while data := store.first_at_or_after(timestamp_ms, from_offset=offset):
        batch = StoredBatch(data, 0, len(data))
        if batch.last_offset >= before_offset:
            return None
        found = yield from _first_of(batch, timestamp_ms, from_offset)
        if found is not None:
            return found
        yield _COST_OF_BATCH
        offset = batch.next_offset
    return None


def _first_of(batch: StoredBatch, timestamp_ms: int, from_offset: int) -> Steps[TimedOffset | None]:
    """The first matching record of one batch; records of magic 2 are not built."""
    found: TimedOffset | None = None
    if batch.magic < CURRENT_MAGIC:
        for number, record in enumerate(batch.streamed(NO_BOUNDS)):
            if record is None or number % _RECORDS_A_STEP == 0:
                yield _COST_OF_PAUSE
            if record is None:
                continue
            if record.timestamp_ms >= timestamp_ms and record.offset >= from_offset:
                return TimedOffset(record.timestamp_ms, record.offset, batch.leader_epoch)
        return None
    append_ms = batch.append_time_ms

    def look(offset_delta: int, time_delta: int, /, *, has_key: bool) -> bool:  # noqa: ARG001 - a watcher
        nonlocal found
        time_ms = batch.base_timestamp_ms + time_delta if append_ms is None else append_ms
        offset = batch.base_offset + offset_delta
        if time_ms >= timestamp_ms and offset >= from_offset:
            found = TimedOffset(time_ms, offset, batch.leader_epoch)
        return found is not None

    yield from RecordScan(batch.count or 0, chunks=batch.chunks(NO_BOUNDS), watcher=look).steps()
    return found


def segment_starts(
    store: SegmentStore, log_start_offset: int, end_offset: int, now_ms: int
) -> list[tuple[int, int]]:
    """Start offset and newest timestamp of each segment; at last the log's end with `now_ms`.

    DEVIATION: a segment is as old as its newest record; Kafka takes the file's modification time.

    Args:
        store: Store of the log.
        log_start_offset: First offset that may be read.
        end_offset: End of the log; left out while the newest segment is empty.
        now_ms: The present of the log's timestamps.
    """
    segments = store.segments()
    known = [(max(each.base_offset, log_start_offset), each.max_timestamp_ms) for each in segments]
    if segments[-1].size_bytes:
        known.append((end_offset, now_ms))
    return known


def newest(store: SegmentStore) -> Steps[TimedOffset | None]:
    """The first record with the largest timestamp of the log; None in an empty log.

    QUIRK: records before the log's start count as long as their segment exists.
    """
    segments = store.segments()
    latest = max(segment.max_timestamp_ms for segment in segments)
    if latest < 0:
        return None
    return (yield from first_not_before(store, latest, from_offset=segments[0].base_offset))
