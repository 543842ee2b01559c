"""Computes every derived table of a report and keeps each as Parquet.

One pass over the groups makes the tables of `GROUP_TABLES`; the others are made of these, or of all
events. A table that others build on is read back from its files, so nothing is computed twice.
"""

import pyarrow as pa

from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.engine import Engine, Frame, Row, TraceFrames
from coordinator_sim_reports.sources import RUN_SCHEMA
from coordinator_sim_reports.transforms import costs, groups, quality, summary
from coordinator_sim_reports.transforms.assignments import assignments
from coordinator_sim_reports.transforms.fault_windows import (
    FAULT_WINDOWS,
    FAULTS,
    fault_windows,
    with_windows,
)
from coordinator_sim_reports.transforms.sessions import member_sessions
from coordinator_sim_reports.transforms.windows import Windows
from coordinator_sim_reports.workers.group_tables import (
    GROUP_TABLES,
    GROUPS,
    QUALITY,
    SPANS,
)


def kinds_of(engine: Engine, events: Frame) -> frozenset[str]:
    """Return the kinds of events of a trace: what it can tell of."""
    rows = engine.rows(engine.sql("SELECT DISTINCT event FROM {events}", events=events))
    return frozenset(row[C.EVENT] for row in rows)


def derive_tables(engine: Engine, windows: Windows | None = None) -> dict[str, Frame]:
    """Compute every derived table by its name, kept by the engine.

    Args:
        engine: Has the traces, computes the tables and keeps them.
        windows: The time that the tables are of; what was before it is read all the same. None for
            the whole traces.
    """
    frames = engine.read()
    kinds = kinds_of(engine, frames.events)
    events = groups.group_events(engine, frames.events, kinds)
    engine.write("runs", frames.runs)
    runs = engine.rows(frames.runs)
    faults = _faults(engine, frames, kinds, runs, windows)
    facts = with_windows(frames.facts, faults)
    if windows is not None:
        runs, facts = windows.runs(runs), windows.facts(facts)
    sessions = member_sessions(engine, events)
    if windows is None:
        sessions = engine.keep("member_sessions", sessions)
    records = groups.Records(events, kinds, frames.dense_pieces, frames.resources, sessions)
    made = groups.group_pass(engine, records, facts, (*GROUP_TABLES, GROUPS))
    tables = {
        name: engine.keep(name, made.table(name))
        for name in (*GROUP_TABLES, GROUPS)
        if name not in {SPANS, QUALITY, "findings"}
    }
    tables["findings"] = engine.keep("findings", summary.ranked(engine, made.table("findings")))
    long_rows = assignments(engine, frames.generations, frames.resources)
    if windows is not None:
        spans = made.table(SPANS)
        sessions = engine.keep("member_sessions", windows.lasting(engine, sessions, spans))
        long_rows = windows.at(engine, long_rows, spans, "owned_from_us")
    of_rebalances = tables["rebalances"]
    return {
        "runs": _listed(engine, runs, RUN_SCHEMA),
        "source_files": engine.write("source_files", frames.files),
        "clock_skews": engine.write("clock_skews", frames.skews),
        "member_sessions": sessions,
        "assignments": engine.keep("assignments", long_rows),
        "fault_windows": engine.write("fault_windows", _listed(engine, faults, FAULT_WINDOWS)),
        **tables,
        "costs": engine.keep("costs", costs.costs(engine, tables["rebalance_costs"])),
        "comparison": engine.keep("comparison", summary.churn_comparison(engine, tables[GROUPS])),
        "durations": engine.keep("durations", summary.durations(engine, of_rebalances)),
        "reasons": engine.keep("reasons", summary.reasons(engine, of_rebalances)),
        "data_quality": engine.keep(
            "data_quality",
            quality.data_quality(engine, frames.runs, frames.events, made.table(QUALITY)),
        ),
    }


def _faults(
    engine: Engine,
    frames: TraceFrames,
    kinds: frozenset[str],
    runs: list[Row],
    windows: Windows | None,
) -> list[Row]:
    """Compute fault windows, of which a part is shown."""
    if "FAULT" not in kinds:
        return []
    ends = {row[C.TRACE_ID]: row["last_ts_us"] for row in runs}
    found = fault_windows(engine.rows(engine.sql(FAULTS, events=frames.events)), ends)
    return found if windows is None else windows.faults(found)


def _listed(engine: Engine, rows: list[Row], schema: pa.Schema) -> Frame:
    return engine.listed([tuple(row[name] for name in schema.names) for row in rows], schema)
