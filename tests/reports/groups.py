"""Groups of a few lines, for tests of the tables that are made group by group."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from msgspec.structs import asdict

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.states import GroupState
from coordinator_sim.runs.ownership import dense_rows
from coordinator_sim.trace.events import Event, RebalanceReason, RunInfo, Source, TraceEvent
from coordinator_sim.trace.schema import (
    GenerationRow,
    event_schema,
    generation_schema,
    plain,
    resource_schema,
    rows_of,
)
from coordinator_sim_reports.engine import Frame
from coordinator_sim_reports.local_engine import LocalEngine
from coordinator_sim_reports.transforms.groups import Records, group_events, group_pass
from coordinator_sim_reports.workers.dense_files import PIECE_SCHEMA, pieces_of_rows
from coordinator_sim_reports.workers.group import Group, RunFacts
from coordinator_sim_reports.workers.group_records import GroupRecords
from coordinator_sim_reports.workers.group_tables import GROUP_TABLES, schema_of, tables_of

S: Final = 1_000_000
KEY: Final = {"trace_id": "t", "cluster_id": "c", "group_id": "g"}
_READ: Final[Mapping[str, Any]] = {
    "event": Event,
    "source": Source,
    "reason": RebalanceReason,
    "state_from": GroupState,
    "error_code": ErrorCode,
}
_DENSE: Final = {
    **KEY,
    "incarnation": 0,
    "join_done_us": None,
    "sync_us": None,
    "protocol_type": "consumer",
    "protocol_name": "range",
    "leader_id": None,
    "subscriptions_equal": True,
    "delay_ms": 0,
    "resource_list_id": 0,
}
Line = tuple[str, float, Mapping[str, Any]]
"""Kind, second and further columns of an event."""


def facts(end_us: int, source: Source = Source.SIM, **told: Any) -> RunFacts:  # noqa: ANN401 - facts
    """Facts of a run."""
    return RunFacts(
        **{
            **dict.fromkeys(("scenario", "assignor", "seed")),
            "source": source,
            "profile": "4.4",
            "version": "0",
            "undecodable_assignments": 0,
            "first_ts_us": 0,
            "last_ts_us": end_us,
            "end_us": end_us,
            **told,
        }
    )


def event(kind: str, seconds: float, columns: Mapping[str, Any]) -> TraceEvent:
    """An event of the group."""
    told = {"group_id": "g", "source": "sim", "event": kind, "seq": 0, **columns}
    read = {
        name: _READ[name](value) if name in _READ and value is not None else value
        for name, value in told.items()
    }
    return TraceEvent(ts_us=int(seconds * S), **read)


def generation(number: int, members: str, owners: Sequence[int], **columns: Any) -> GenerationRow:  # noqa: ANN401
    """A dense row; members are letters, and it was accepted in the second of its number."""
    own = {
        "generation": number,
        "sync_us": number * S,
        "member_ids": tuple(members),
        "member_keys": tuple(members),
        "loads": tuple(sum(owner == at for owner in owners) for at in range(len(members))),
        "owners": tuple(owners),
    }
    return GenerationRow(**{**_DENSE, **own, **columns})


def group(
    *lines: Line,
    dense: Sequence[GenerationRow] = (),
    names: Sequence[str] = ("p0", "p1"),
    end: float = 1_000,
    **told: Any,  # noqa: ANN401 - facts
) -> Group:
    """A group of these events, in their order."""
    return of_events([event(*line) for line in lines], dense, {0: tuple(names)}, end, **told)


def of_events(
    events: Sequence[TraceEvent],
    dense: Sequence[GenerationRow] | None = None,
    names: Mapping[int, tuple[str, ...]] | None = None,
    end: float | None = None,
    **told: Any,  # noqa: ANN401 - facts
) -> Group:
    """A group of recorded events, with the assignments that they tell, if no others are given."""
    if dense is None:
        dense, lists = dense_rows(events, "t", "c")
        names = {row.resource_list_id: row.resources for row in lists}
    seen: dict[str, tuple[str, int]] = {}
    for line in events:
        if line.member_id:
            key, at_us = seen.get(line.member_id, (line.member_id, line.ts_us))
            seen[line.member_id] = (line.group_instance_id or key, min(at_us, line.ts_us))
    records = GroupRecords(
        key={**KEY, "group_id": next((e.group_id for e in events if e.group_id), "g")},
        lines=list(events),
        ordinals=list(range(len(events))),
        dense=list(dense),
        names=dict(names or {}),
        seen=seen,
    )
    end_us = max((line.ts_us for line in events), default=0) if end is None else int(end * S)
    return Group(records, facts(end_us, **told))


def given(engine: LocalEngine, name: str, rows: Sequence[Mapping[str, Any]]) -> Frame:
    """A frame of a table of a trace or of the pass, from rows that tell some columns."""
    if name == "dense_pieces":
        return engine.pieces_of([pa.RecordBatch.from_pylist(list(rows), PIECE_SCHEMA)])
    events = event_schema().append(pa.field("cluster_id", pa.string()))
    known = {
        "events": events,
        "generations": generation_schema(),
        "resources": resource_schema(),
    }
    schema = known.get(name) or schema_of(name)
    return engine.listed([tuple(row.get(each) for each in schema.names) for row in rows], schema)


def computed(
    engine: LocalEngine,
    traces: Mapping[str, Sequence[TraceEvent]],
    names: Sequence[str],
    source: Source = Source.SIM,
) -> dict[str, list[dict[str, Any]]]:
    """The rows of tables of several traces, as an engine makes them.

    Args:
        engine: Makes them.
        traces: Events by trace id.
        names: Tables.
        source: Of all traces.
    """
    told, dense, lists, runs = [], [], [], {}
    for trace_id, events in traces.items():
        info = RunInfo(trace_id=trace_id, source=source, cluster_id="c", version="0", profile="4.4")
        for ordinal, event in enumerate(events):
            told += [as_row(row) | {"cluster_id": "c"} for row in rows_of(event, ordinal, info)]
        generations, resources = dense_rows(events, trace_id, "c")
        dense += [as_row(row) for row in generations]
        lists += [as_row(row) for row in resources]
        runs[trace_id] = facts(max((e.ts_us for e in events), default=0), source)
    kinds = {row["event"] for row in told}
    records = Records(
        *(group_events(engine, given(engine, "events", told), kinds), kinds),
        *(given(engine, "dense_pieces", cut(dense)), given(engine, "resources", lists)),
    )
    made = group_pass(engine, records, runs, names)
    return {name: engine.rows(made.table(name)) for name in names}


def cut(dense: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Assignments in pieces, as they are cut out of rows."""
    batch = pa.RecordBatch.from_pylist(list(dense), generation_schema())
    return [row for each in pieces_of_rows([batch]) for row in each.to_pylist()]


def as_row(row: Any) -> dict[str, Any]:  # noqa: ANN401 - any row of the schema
    """One row of a table of a trace."""
    return {name: plain(value) for name, value in asdict(row).items()}


def rows(of: Group, name: str) -> list[dict[str, Any]]:
    """The rows of a table; each fits its columns."""
    found = tables_of(of, (name,))[name]
    own = GROUP_TABLES[name].schema.names[len(KEY) :]
    told = [{column: row.get(column) for column in own} for row in found]
    pa.Table.from_pylist(told, schema=pa.schema([GROUP_TABLES[name].schema.field(n) for n in own]))
    return told
