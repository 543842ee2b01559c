"""Offsets by time, as ListOffsets asks for them.

Source: kafka trunk, core/.../log/UnifiedLog.scala (fetchOffsetByTimestamp); core/.../cluster/
Partition.scala (fetchOffsetForTimestamp).
"""

from coordinator_sim.storage.contract import SegmentStore
from coordinator_sim.storage.log_values import TimedOffset
from coordinator_sim.storage.spans import end_of
from coordinator_sim.wire.stored_batches import StoredBatch


def first_not_before(
    store: SegmentStore, timestamp_ms: int, *, from_offset: int
) -> TimedOffset | None:
    """The first record from that offset on that is not older; None when there is none."""
    offset = from_offset
    while data := store.first_at_or_after(timestamp_ms, from_offset=offset):
        batch = StoredBatch(data, 0, len(data))
        for record in batch.records():
            if record.timestamp_ms >= timestamp_ms and record.offset >= from_offset:
                return TimedOffset(record.timestamp_ms, record.offset, batch.leader_epoch)
        offset = end_of(data)
    return None


def newest(store: SegmentStore, *, from_offset: int) -> TimedOffset | None:
    """The first record that has the largest timestamp of all; None in an empty log."""
    latest = max(segment.max_timestamp_ms for segment in store.segments())
    return first_not_before(store, latest, from_offset=from_offset) if latest >= 0 else None
