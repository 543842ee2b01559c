"""Computes every derived table of a report and keeps each as Parquet.

A table that others build on is read back from its files, so nothing is computed twice.

Columns of tables that are empty if the trace lacks their events, and need no plan then.

Planning such a table, only to find that it is empty, takes as long as a small job.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark import StorageLevel

from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.local_frames import has_no_rows, listed
from coordinator_sim_reports.sources import TraceFrames, ddl_of
from coordinator_sim_reports.transforms import (
    availability,
    balance,
    fault_windows,
    findings,
    moves,
    ownership,
    quality,
    rebalance_costs,
    summary,
    work,
    working,
)
from coordinator_sim_reports.transforms import rebalances as rebalancing
from coordinator_sim_reports.transforms.sessions import member_sessions
from coordinator_sim_reports.transforms.waits import waits
from coordinator_sim_reports.transforms.windows import Windows
from coordinator_sim_reports.workers.share_batches import SHARE_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession


_GROUP: Final = "trace_id string, cluster_id string, group_id string"
_GENERATION: Final = f"{_GROUP}, incarnation int, generation int"
COLUMNS: Final["Mapping[str, str]"] = {
    "moves": f"{_GENERATION}, kind string, previous_generation int, chain_generations int, "
    "protocol_type string, protocol_name string, sync_us bigint, resource_count int, "
    "member_count int, kept int, moved int, orphaned int, voluntary int, added int, dropped int, "
    "held_by_survivors int, lb_sizes int, lb_balanced int, excess_moves int, stickiness double, "
    "ideal_stickiness double, relative_stickiness double, churn_ratio double",
    "imbalance": f"{_GENERATION}, kind string, sync_us bigint, lasted_us bigint, spread int, "
    "cv double, gini double",
    "assignments": f"{_GENERATION}, resource string, member_key string, member_id string, "
    "owned_from_us bigint",
    "ownership": f"{_GROUP}, resource string, member_key string, from_us bigint, to_us bigint, "
    "first_generation int, last_generation int",
    "unowned": f"{_GROUP}, resource string, from_us bigint, to_us bigint, joining_us bigint, "
    "syncing_us bigint, unowned_us bigint, waiting_us bigint",
    "paused": f"{_GROUP}, from_us bigint, paused_us bigint",
    "stopped": f"{_GROUP}, rebalance_no bigint, stopped_us bigint",
    "fault_windows": "trace_id string, cluster_id string, window_no int, name string, task string, "
    "kind string, from_us bigint, to_us bigint, is_ended boolean, next_from_us bigint",
    "window_effects": f"{_GROUP}, window_no int, unowned_us bigint, rebalances_during bigint, "
    "rebalances_after bigint",
    "waits": f"{_GROUP}, rebalance_no bigint, member_id string, member_key string, from_us bigint, "
    "to_us bigint, kind string",
    "work": f"{_GROUP}, connector string, processed bigint, duplicates bigint, reprocessed bigint, "
    "gaps bigint, span bigint, partitions bigint, max_lag bigint, final_lag bigint, "
    "double_run_us bigint",
    "lag": f"{_GROUP}, connector string, topic string, partition int, at_us bigint, "
    "ordinal bigint, lag bigint, max_lag bigint",
    "share_records": ddl_of(SHARE_SCHEMA),
    "lockstep": f"{_GROUP}, starts_aligned boolean, compared bigint, aligned bigint, "
    "is_lockstep boolean",
    "double_owned": f"{_GROUP}, double_owned_s double",
}
"""Columns by table; `lockstep`, `paused` and `double_owned` go into others and are not kept."""


def nothing(spark: "SparkSession", name: str) -> "DataFrame":
    """Return a table of `COLUMNS` without rows, which plans know."""
    return listed(spark, [], COLUMNS[name])


class TableStore:
    """Writes tables below a directory and reads them back.

    Args:
        spark: The session of the job.
        directory: Holds one directory of Parquet files per table; tables in it are replaced.
        progress: Called with the name of each table that is done.
    """

    def __init__(
        self, spark: "SparkSession", directory: Path, progress: Callable[[str], None]
    ) -> None:
        self._spark = spark
        self._directory = directory
        self._progress = progress

    def keep(self, name: str, table: "DataFrame") -> "DataFrame":
        """Write a table, and return it as read from its files."""
        self.write(name, table)
        return self._spark.read.schema(table.schema).parquet(str(self._directory / name))

    def write(self, name: str, table: "DataFrame") -> "DataFrame":
        """Write a table, and return it as it is, for one that the driver has anyway."""
        path = str(self._directory / name)
        table.write.mode("overwrite").option("compression", "zstd").parquet(path)
        self._progress(name)
        return table

    def keep_if(self, is_known: bool, name: str, make: Callable[[], "DataFrame"]) -> "DataFrame":
        """Write a table, or an empty one if the trace lacks its events.

        Tables that depend on an empty table omit the derived columns.

        Args:
            is_known: Whether the trace has anything that such rows come from.
            name: One of `COLUMNS`.
            make: Makes the table; not called for one without rows.
        """
        if is_known:
            return self.keep(name, make())
        return self.write(name, self.nothing(name))

    def nothing(self, name: str) -> "DataFrame":
        """Return a table of `COLUMNS` without rows."""
        return nothing(self._spark, name)

    def passing(self) -> "TableStore":
        """Return a store that writes nothing, for tables of which a part is kept."""
        return _PassingStore(self._spark, self._directory, self._progress)


def kinds_of(events: "DataFrame") -> frozenset[str]:
    """Return the kinds of events of a trace: what it can tell of."""
    return frozenset(row[C.EVENT] for row in events.select(C.EVENT).distinct().collect())


class _PassingStore(TableStore):
    """Holds tables for the time of the job; none is written."""

    def keep(self, name: str, table: "DataFrame") -> "DataFrame":
        """Return the table, which is computed once."""
        del name
        return table.persist(StorageLevel.DISK_ONLY)

    def write(self, name: str, table: "DataFrame") -> "DataFrame":
        """Return the table."""
        del name
        return table


@dataclass(frozen=True, slots=True)
class Traces:
    """Traces, and what they can tell of.

    Args:
        frames: Their tables.
        events: Events of groups.
        kinds: Kinds of their events.
        has_assignments: Whether they have assignments.
    """

    frames: TraceFrames
    events: "DataFrame"
    kinds: frozenset[str]
    has_assignments: bool

    @property
    def has_owners(self) -> bool:
        """Whether it is known who owned what."""
        return self.has_assignments or not self.kinds.isdisjoint(working.CHANGES)

    @property
    def has_records(self) -> bool:
        """Whether they tell of processed records."""
        return work.PROCESSED in self.kinds


def derive_tables(
    frames: TraceFrames, store: TableStore, windows: Windows | None = None
) -> dict[str, "DataFrame"]:
    """Compute every derived table by its name, kept by the store.

    What a trace has no events for is not computed: a broker's log knows no owners and no records.

    Args:
        frames: The traces.
        store: Keeps the tables.
        windows: The time that the tables are of; what was before it is read all the same. None for
            the whole traces.
    """
    kinds = kinds_of(frames.events)
    events = rebalancing.group_events(frames.events, kinds)
    if rebalancing.repeats_events(kinds):
        events = events.persist(StorageLevel.DISK_ONLY)
    traces = Traces(frames, events, kinds, not has_no_rows(frames.generations))
    runs = store.write("runs", frames.runs)
    of_whole = store if windows is None else store.passing()
    whole = _of_time(traces, of_whole, runs)
    derived = _derived(traces, whole, store, runs)
    groups = of_whole.keep("groups", summary.group_summary(derived))
    whole["rebalance_costs"] = of_whole.keep(
        "rebalance_costs",
        rebalance_costs.rebalance_costs(_charged(traces, derived, groups, store.nothing("paused"))),
    )
    shown, shown_runs, worked = whole, runs, frames.events
    if windows is not None:
        shown = {
            name: store.write(name, table) if has_no_rows(table) else store.keep(name, table)
            for name, table in windows.shown(whole).items()
        }
        shown_runs = windows.runs(runs)
        derived = _derived(traces, shown, store, shown_runs)
        groups = store.keep("groups", summary.group_summary(derived))
        worked = windows.events(frames.events)
    found = findings.findings(whole["rebalances"], whole["rebalance_costs"], windows)
    return {
        "runs": shown_runs,
        "source_files": store.write("source_files", frames.files),
        "clock_skews": store.write("clock_skews", frames.skews),
        **shown,
        "costs": store.keep("costs", rebalance_costs.costs(shown["rebalance_costs"])),
        "storms": store.keep("storms", rebalance_costs.storms(shown["rebalance_costs"])),
        "findings": store.keep("findings", found),
        "window_effects": _effects(traces, store, shown["fault_windows"], derived),
        "groups": groups,
        "comparison": store.keep("comparison", summary.churn_comparison(groups)),
        "work": store.keep_if(traces.has_records, "work", lambda: work.work(worked)),
        "share_records": store.keep_if(
            work.DELIVERED in kinds, "share_records", lambda: work.share_records(worked)
        ),
        "durations": store.keep("durations", summary.durations(shown["rebalances"])),
        "reasons": store.keep("reasons", summary.reasons(shown["rebalances"])),
        "data_quality": _quality(traces, store, whole, runs),
    }


def _charged(
    traces: Traces, derived: summary.Derived, groups: "DataFrame", paused: "DataFrame"
) -> rebalance_costs.Charged:
    """Put together what costs are made of; `paused` is the table without rows."""
    if traces.has_owners:
        marks = working.pausing_marks(traces.events, traces.kinds)
        paused = availability.paused(derived.ownership, marks, derived.rebalances, derived.runs)
    return rebalance_costs.Charged(
        *(derived, paused, groups, traces.events),
        has_charges=traces.has_owners or traces.has_records,
        has_records=traces.has_records,
    )


def _effects(
    traces: Traces, store: TableStore, faults: "DataFrame", derived: summary.Derived
) -> "DataFrame":
    """Compute what happened in fault windows."""
    return store.keep_if(
        "FAULT" in traces.kinds,
        "window_effects",
        lambda: fault_windows.window_effects(
            faults, traces.events, derived.rebalances, derived.unowned, derived.runs
        ),
    )


def _quality(
    traces: Traces, store: TableStore, whole: dict[str, "DataFrame"], runs: "DataFrame"
) -> "DataFrame":
    """Compute what was read of the whole traces, and how far it can be trusted."""
    held, events = whole["rebalances"], traces.frames.events
    in_step = store.nothing("lockstep")
    if "JOIN_REQ" in traces.kinds:
        in_step = quality.lockstep(events, held)
    rows = quality.data_quality(runs, events, held, whole["generations"], in_step)
    return store.keep("data_quality", rows)


def _of_time(traces: Traces, store: TableStore, runs: "DataFrame") -> dict[str, "DataFrame"]:
    """Compute the tables whose rows have a time."""
    events, kinds, has_owners = traces.events, traces.kinds, traces.has_owners
    frames = traces.frames
    held = store.keep("rebalances", rebalancing.rebalances(events))
    generations = store.keep("generations", rebalancing.generations(events, held))
    dense, resources = frames.generations, frames.resources
    of_assignments = _of_assignments(frames, store, runs, has_assignments=traces.has_assignments)
    owned = store.keep_if(
        has_owners, "ownership", lambda: working.ownership_of(dense, resources, events, runs, kinds)
    )
    unowned = store.keep_if(has_owners, "unowned", lambda: availability.unowned(owned, held, runs))
    sessions = store.keep("member_sessions", member_sessions(events))
    return {
        "rebalances": held,
        "generations": generations,
        "member_sessions": sessions,
        "waits": store.keep_if("JOIN_REQ" in kinds, "waits", lambda: waits(events, held, sessions)),
        **of_assignments,
        "ownership": owned,
        "unowned": unowned,
        "stopped": store.keep_if(
            has_owners, "stopped", lambda: availability.stop_the_world(owned, held, runs)
        ),
        "fault_windows": store.keep_if(
            "FAULT" in kinds,
            "fault_windows",
            lambda: fault_windows.fault_windows(frames.events, runs),
        ),
        "lag": store.keep_if(traces.has_records, "lag", lambda: work.lag(frames.events)),
        "convergence": store.keep("convergence", rebalancing.convergence(held)),
    }


def _derived(
    traces: Traces, tables: dict[str, "DataFrame"], store: TableStore, runs: "DataFrame"
) -> summary.Derived:
    """Put together what a summary is made of."""
    owned, held = tables["ownership"], tables["rebalances"]
    return summary.Derived(
        runs=runs,
        rebalances=held,
        generations=tables["generations"],
        moves=tables["moves"],
        imbalance=tables["imbalance"],
        unowned=tables["unowned"],
        stopped=tables["stopped"],
        double_owned=availability.double_ownership(owned)
        if traces.has_owners
        else store.nothing("double_owned"),
        observed=availability.observed(held, runs),
        ownership=owned,
        dense=traces.frames.generations,
    )


def _of_assignments(
    frames: TraceFrames, store: TableStore, runs: "DataFrame", *, has_assignments: bool
) -> dict[str, "DataFrame"]:
    """Compute the tables that are made of assignments alone."""
    dense, resources = frames.generations, frames.resources
    makers: dict[str, Callable[[], DataFrame]] = {
        "moves": lambda: moves.moves(dense, resources),
        "imbalance": lambda: balance.imbalance(dense, resources, runs),
        "assignments": lambda: ownership.assignments(dense, resources),
    }
    return {name: store.keep_if(has_assignments, name, make) for name, make in makers.items()}
