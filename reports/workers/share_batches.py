"""Fates of the records of share groups from their events, as Arrow batches.

`coordinator_sim.replay.share_records` and `coordinator_sim.trace.work` count them, topic by topic.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from coordinator_sim.replay.share_records import share_records
from coordinator_sim.trace.events import Event, OffsetEntry, TraceEvent
from coordinator_sim.trace.work import count_work, total_of
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.workers.group_runs import groups_of

SHARE_COLUMNS: Final = (
    *("member_id", "client_id", "topic", "partition", "offset", "position", "latency_us"),
    *("deliveries", "type", "error", "lag", "max_lag"),
)
"""Columns that a record's fate is read from, beside kind and time."""
SHARE_ATTRS: Final = SHARE_COLUMNS[7:]
"""Those of them that are attributes."""
SHARE_SCHEMA: Final = pa.schema(
    [
        *((name, pa.string()) for name in (*C.GROUP_KEY, "topic")),
        *((name, pa.int64()) for name in ("done", "deliveries", "again", "rejected", "used_up")),
        *((name, pa.int64()) for name in ("delivery_limit", "held_us", "lost_locks", "late")),
        *((name, pa.int64()) for name in ("silent_us", "late_us", "max_lag", "final_lag")),
    ]
)


def share_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows of topics (`SHARE_SCHEMA`) from events that come group by group, in order.

    Args:
        batches: A group's key, kind, time, and `SHARE_COLUMNS`.
    """
    for key, events in groups_of(batches, lambda batch: [_event(row) for row in batch.to_pylist()]):
        by_topic: dict[str, list[TraceEvent]] = {}
        for event in events:
            by_topic.setdefault(event.offsets[0].topic, []).append(event)
        rows = [{**key, "topic": topic, **_row(own)} for topic, own in by_topic.items()]
        yield pa.RecordBatch.from_pylist(rows, schema=SHARE_SCHEMA)


def _event(row: dict[str, Any]) -> TraceEvent:
    return TraceEvent(
        event=Event(row[C.EVENT]),
        ts_us=row[C.TS_US],
        group_id=row[C.GROUP_ID],
        member_id=row["member_id"],
        client_id=row["client_id"],
        latency_us=row["latency_us"],
        offsets=(OffsetEntry(row["topic"], row["partition"], row["offset"]),),
        position=row["position"],
        attrs={name: row[name] for name in SHARE_ATTRS if row[name] is not None},
    )


def _row(events: list[TraceEvent]) -> dict[str, int]:
    work, records = total_of(count_work(events)), share_records(events)
    row = {
        "done": work.processed - work.duplicates,
        "max_lag": work.max_lag,
        "final_lag": work.final_lag,
    }
    if records is None:
        return {**dict.fromkeys(SHARE_SCHEMA.names[4:], 0), **row}
    return {
        **row,
        "deliveries": records.deliveries,
        "again": records.again,
        "rejected": records.rejected,
        "used_up": len(records.used_up),
        "delivery_limit": records.limit,
        "held_us": records.held_us,
        "lost_locks": sum(each.records for each in records.lost_locks),
        "late": sum(each.late for each in records.lost_locks),
        "silent_us": sum(each.silent_us for each in records.lost_locks),
        "late_us": max((each.late_us for each in records.lost_locks), default=0),
    }
