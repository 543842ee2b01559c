"""Every table of a report that is made group by group, each declared once; one pass makes all.

A table has a name, columns, the function that yields its rows for one group, and what of it lies in
a window of time. `docs/trace-schema.md` describes the columns.
"""

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
from msgspec import Struct

from coordinator_sim.trace.window import ALWAYS
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.workers import ownership_tables as owning
from coordinator_sim_reports.workers import rebalance_tables as rebalancing
from coordinator_sim_reports.workers.group import Group, RunFacts, Span
from coordinator_sim_reports.workers.group_records import records_of
from coordinator_sim_reports.workers.group_summary import summary_rows

Row = dict[str, Any]
_BATCH_ROWS: Final = 20_000
"""Rows of tables in one row of the pass: some megabytes."""


class GroupTable(Struct, frozen=True, kw_only=True):
    """A table that is made group by group.

    Args:
        columns: Kinds with the names of columns (`columns.schema_with`), after the group's key.
        rows: Yields the rows of a group, as dictionaries; a column that is left out is null.
        instants: Columns of which the first with a value tells when a row was; only those in the
            window are shown.
        lasts: Columns that tell from when to when a row lasts.
        number: Column with the number of a rebalance, or with its chain, that has to be shown.
    """

    columns: tuple[str, ...]
    rows: Callable[[Group], Iterable[Row]]
    instants: tuple[str, ...] = ()
    lasts: tuple[str, str] | None = None
    number: str | None = None

    @property
    def schema(self) -> pa.Schema:
        """Names and types of all columns, the group's key first."""
        return C.schema_with([f"text {' '.join(C.GROUP_KEY)}", *self.columns])


SPANS: Final = "spans"
"""From when to when what each group costs is shown; of runs with a window."""
QUALITY: Final = "quality"
"""What each group adds to `data_quality`."""
_COSTS: Final = (
    "real rebalancing_s paused_s stopped_s unowned_s",
    "long moved voluntary needless reprocessed",
)


def span_rows(group: Group) -> Iterator[Row]:
    """Yield the span of a group of which anything is shown."""
    if group.span is not None:
        yield {"since_us": group.span.since_us, "before_us": group.span.before_us}


GROUP_TABLES: Final[Mapping[str, GroupTable]] = {
    "rebalances": GroupTable(
        columns=(
            "long rebalance_no",
            "int incarnation",
            "long seen_us start_us",
            "int old_generation generation",
            "text reason reason_text client_reason first_cause client_cause",
            "long join_done_us sync_us empty_us end_us",
            "int members",
            "text protocol_name outcome",
            "real join_ms sync_ms total_ms",
            "flag is_exact initial_delay followup",
            "long chain_no",
            "text trigger trigger_client",
            "long root_no",
            "real cause_confidence initial_ms dead_ms slow_ms",
            "text restart",
            "long deploy_no storm_no",
            "text client_kind",
            "texts source_refs",
        ),
        rows=rebalancing.rebalance_rows,
        instants=("seen_us",),
    ),
    "generations": GroupTable(
        columns=(
            "int incarnation generation",
            "long join_done_us sync_us",
            "text leader_id protocol_name",
            "int members static_members",
            "long until_us",
            "flag stored",
            "int ghosts_before",
        ),
        rows=rebalancing.generation_rows,
        instants=(C.JOIN_DONE_US, C.SYNC_US),
    ),
    "convergence": GroupTable(
        columns=("long chain_no rebalance_count start_us settled_us", "real convergence_ms"),
        rows=rebalancing.convergence_rows,
        number="chain_no",
    ),
    "waits": GroupTable(
        columns=(
            "long rebalance_no",
            "text member_id member_key",
            "long from_us to_us",
            "text kind",
        ),
        rows=rebalancing.wait_rows,
        number=C.REBALANCE_NO,
    ),
    "moves": GroupTable(
        columns=(
            "int incarnation generation",
            "text kind",
            "int previous_generation chain_generations",
            "text protocol_type protocol_name",
            "long sync_us",
            "int resource_count member_count kept moved orphaned voluntary added dropped",
            "int held_by_survivors lb_sizes lb_balanced excess_moves",
            "real stickiness ideal_stickiness relative_stickiness churn_ratio",
        ),
        rows=owning.move_rows,
        instants=(C.SYNC_US,),
    ),
    "imbalance": GroupTable(
        columns=(
            "int incarnation generation",
            "text kind",
            "long sync_us lasted_us",
            "int spread",
            "real cv gini",
        ),
        rows=owning.balance_rows,
        instants=(C.SYNC_US,),
    ),
    "ownership": GroupTable(
        columns=(
            "text resource member_key",
            "long from_us to_us",
            "int first_generation last_generation",
        ),
        rows=owning.ownership_rows,
        lasts=(C.FROM_US, C.TO_US),
    ),
    "unowned": GroupTable(
        columns=("text resource", "long from_us to_us joining_us syncing_us unowned_us waiting_us"),
        rows=owning.unowned_rows,
        instants=(C.TO_US,),
    ),
    "stopped": GroupTable(
        columns=("long rebalance_no stopped_us",), rows=owning.stopped_rows, number=C.REBALANCE_NO
    ),
    "rebalance_costs": GroupTable(
        columns=(
            "long rebalance_no",
            "text day",
            "long seen_us end_us deploy_no storm_no",
            "text trigger trigger_client",
            "int members",
            "long rebalancing_us paused_us stopped_us unowned_us",
            "long moved voluntary needless reprocessed",
        ),
        rows=rebalancing.cost_rows,
        instants=("seen_us",),
    ),
    "storms": GroupTable(
        columns=(
            "long storm_no first_us last_us",
            "text kind",
            "long rebalances assigned",
            "int members",
            "long clients first_no",
            "text trigger trigger_client",
            *_COSTS,
        ),
        rows=rebalancing.storm_rows,
    ),
    "findings": GroupTable(
        columns=(
            "text kind",
            "long rebalances",
            "real cost_s",
            "text cost_unit what change setting",
            "texts assumes",
            "real saves_s",
            "long more_rebalances",
            "text basis",
            "real confidence",
            "texts source_refs",
            "long first_us last_us",
            "text client",
        ),
        rows=rebalancing.finding_rows,
    ),
    "work": GroupTable(
        columns=(
            "text connector",
            "long processed duplicates reprocessed gaps span partitions max_lag final_lag",
            "long double_run_us",
        ),
        rows=owning.work_rows,
    ),
    "lag": GroupTable(
        columns=("text connector topic", "int partition", "long at_us ordinal lag max_lag"),
        rows=owning.lag_rows,
        instants=("at_us",),
    ),
    "share_records": GroupTable(
        columns=(
            "text topic",
            "long done deliveries again rejected used_up delivery_limit held_us lost_locks late",
            "long silent_us late_us max_lag final_lag",
        ),
        rows=owning.share_rows,
    ),
    "window_effects": GroupTable(
        columns=("int window_no", "long unowned_us rebalances_during rebalances_after"),
        rows=owning.effect_rows,
    ),
    SPANS: GroupTable(columns=("long since_us before_us",), rows=span_rows),
    QUALITY: GroupTable(
        columns=(
            "long rebalances unknown_reasons open_rebalances ghost_generations",
            "flag is_lockstep",
        ),
        rows=rebalancing.quality_rows,
    ),
}
GROUPS: Final = "groups"
SUMMARY: Final = GroupTable(
    columns=(
        "text source scenario assignor profile version",
        "long seed undecodable_assignments first_ts_us last_ts_us rebalances logical_rebalances",
        "long open_rebalances unsynced_rebalances",
        "real rebalancing_ms",
        "int most_members",
        "text protocol_type protocol_name",
        "long assigned_generations kept moved orphaned voluntary added dropped held_by_survivors",
        "long lb_balanced excess_moves ideal_kept compared_generations",
        "real stickiness relative_stickiness spread cv gini unowned_s joining_s syncing_s",
        "real waiting_s stopped_s double_owned_s observed_s",
        "long resource_count interrupted restarted_in_place",
        "text missing_assignments timing_quality assignment_quality ownership_quality",
        "text stopped_quality",
        "real availability",
    ),
    rows=lambda _: (),
)
"""Made of the rows of other tables (`group_summary`)."""


def schema_of(name: str) -> pa.Schema:
    """Return the columns of a table of `GROUP_TABLES`, or of `groups`."""
    return SUMMARY.schema if name == GROUPS else GROUP_TABLES[name].schema


def tables_of(group: Group, names: Sequence[str]) -> dict[str, list[Row]]:
    """Return the rows of a group by table, in the window of its run."""
    is_whole = group.facts.window == ALWAYS
    tables: dict[str, list[Row]] = {}
    for name in names:
        if name != GROUPS:
            table = GROUP_TABLES[name]
            rows = table.rows(group)
            tables[name] = [row for row in rows if is_whole or _is_shown(table, row, group.span)]
    if GROUPS in names:
        tables[GROUPS] = list(summary_rows(group, tables))
    return tables


def _is_shown(table: GroupTable, row: Row, span: Span | None) -> bool:
    if not table.instants and table.lasts is None and table.number is None:
        return True
    if span is None:
        return False
    if table.number is not None:
        return row[table.number] in span.numbers
    if table.lasts is not None:
        from_us, to_us = (row[name] for name in table.lasts)
        return from_us < span.before_us and (to_us is None or to_us > span.since_us)
    told = (row[name] for name in table.instants)
    return span.holds(next((at_us for at_us in told if at_us is not None), None))


def group_batches(
    batches: Iterable[pa.RecordBatch], facts: Mapping[str, RunFacts], names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield rows that have lists of rows of every table, from records that come group by group.

    Args:
        batches: As `records_of` takes them.
        facts: Of runs, by trace id.
        names: Tables of `GROUP_TABLES` that are wanted, and `groups`.
    """
    held: dict[str, list[list[Any]]] = {name: [] for name in names}
    schemas = {name: schema_of(name) for name in names}
    columns = {name: schema.names[len(C.GROUP_KEY) :] for name, schema in schemas.items()}
    count = 0
    with _nothing_collected():
        for key, name, row in _keyed_rows(batches, facts, names):
            held[name].append(key + [row.get(column) for column in columns[name]])
            count += 1
            if count >= _BATCH_ROWS:
                yield _batch(held, schemas)
                held, count = {each: [] for each in names}, 0
        yield _batch(held, schemas)


def _keyed_rows(
    batches: Iterable[pa.RecordBatch], facts: Mapping[str, RunFacts], names: Sequence[str]
) -> Iterator[tuple[list[Any], str, Row]]:
    """Yield the key of a group, a table and one of its rows there, group by group."""
    for records in records_of(batches):
        key = list(records.key.values())
        for name, rows in tables_of(Group(records, facts[records.key[C.TRACE_ID]]), names).items():
            for row in rows:
                yield key, name, row


def _batch(held: Mapping[str, list[list[Any]]], schemas: Mapping[str, pa.Schema]) -> pa.RecordBatch:
    """Return one row with the lists."""
    columns = []
    for name, rows in held.items():
        schema = schemas[name]
        structs = pa.StructArray.from_arrays(C.arrays_of(rows, schema), fields=list(schema))
        columns.append(pa.ListArray.from_arrays(pa.array([0, len(rows)], pa.int32()), structs))
    return pa.RecordBatch.from_arrays(columns, names=list(held))


def pass_schema(names: Iterable[str]) -> pa.Schema:
    """Return the columns of what `group_batches` yields."""
    return pa.schema([(name, pa.list_(pa.struct(list(schema_of(name))))) for name in names])


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Let no cycles be looked for: lines and rows have none, and the search took a sixth."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
