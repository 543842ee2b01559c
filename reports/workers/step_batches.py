"""Holdings of consumer and streams groups from their events, as Arrow batches.

`coordinator_sim.runs.step_holdings` says who held what when.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from coordinator_sim.runs.step_holdings import step_holdings
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.workers.group_runs import groups_of

_BATCH_ROWS: Final = 50_000
TRACE_END: Final = "trace_end_us"
STEP_COLUMNS: Final = (
    *("member_id", "group_instance_id", "client_id", "session_timeout_ms", "reason_text"),
    *(C.GENERATION, C.PROTOCOL_TYPE, "error_code", "assignment"),
    *("resources", "revoking", "protocols"),
)
"""Columns that a holding is read from, beside kind and time; the last three are attributes."""
_ATTRS: Final = ("resources", "revoking", "protocols")
STEP_SCHEMA: Final = pa.schema(
    [
        *((name, pa.string()) for name in C.GROUP_KEY),
        (C.RESOURCE, pa.string()),
        (C.MEMBER_KEY, pa.string()),
        (C.FROM_US, pa.int64()),
        (C.TO_US, pa.int64()),
        ("first_generation", pa.int32()),
        ("last_generation", pa.int32()),
    ]
)


def step_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows of holdings (`STEP_SCHEMA`) from events that come group by group, in order.

    Args:
        batches: A group's key, kind, time, the end of the trace, and `STEP_COLUMNS`.
    """
    rows: list[dict[str, object]] = []
    for key, told in groups_of(batches, _events):
        ends_us = told[0][1]
        for held in step_holdings((event for event, _ in told), ends_us):
            rows.append({**key, **{name: getattr(held, name) for name in held.__struct_fields__}})
            if len(rows) >= _BATCH_ROWS:
                yield pa.RecordBatch.from_pylist(rows, schema=STEP_SCHEMA)
                rows = []
    yield pa.RecordBatch.from_pylist(rows, schema=STEP_SCHEMA)


def _events(batch: pa.RecordBatch) -> list[tuple[TraceEvent, int]]:
    return [(_event(row), row[TRACE_END]) for row in batch.to_pylist()]


def _event(row: dict[str, Any]) -> TraceEvent:
    columns = {name: row[name] for name in STEP_COLUMNS if name not in _ATTRS}
    attrs = {name: row[name] for name in _ATTRS if row[name] is not None}
    return TraceEvent(event=Event(row[C.EVENT]), ts_us=row[C.TS_US], attrs=attrs, **columns)
