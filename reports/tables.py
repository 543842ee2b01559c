"""Computes every derived table of a report and keeps each as Parquet.

A table that others build on is read back from its files, so nothing is computed twice.

Columns of tables that are empty if the trace lacks their events, and need no plan then.

Planning such a table, only to find that it is empty, takes as long as a small job.
"""

from collections.abc import Callable
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


def kinds_of(events: "DataFrame") -> frozenset[str]:
    """Return the kinds of events of a trace: what it can tell of."""
    return frozenset(row[C.EVENT] for row in events.select(C.EVENT).distinct().collect())


def derive_tables(frames: TraceFrames, store: TableStore) -> dict[str, "DataFrame"]:
    """Compute every derived table by its name, kept by the store.

    What a trace has no events for is not computed: a broker's log knows no owners and no records.
    """
    runs = store.write("runs", frames.runs)
    kinds = kinds_of(frames.events)
    events = rebalancing.group_events(frames.events, kinds)
    if rebalancing.repeats_events(kinds):
        events = events.persist(StorageLevel.DISK_ONLY)
    held = store.keep("rebalances", rebalancing.rebalances(events))
    told = store.keep("generations", rebalancing.generations(events, held))
    dense, resources = frames.generations, frames.resources
    has_assignments = not has_no_rows(dense)
    has_owners = has_assignments or not kinds.isdisjoint(working.CHANGES)
    of_assignments = _of_assignments(frames, store, runs, has_assignments=has_assignments)
    owned = store.keep_if(
        has_owners, "ownership", lambda: working.ownership_of(dense, resources, events, runs, kinds)
    )
    unowned = store.keep_if(has_owners, "unowned", lambda: availability.unowned(owned, held, runs))
    sessions = store.keep("member_sessions", member_sessions(events))
    stopped = store.keep_if(
        has_owners, "stopped", lambda: availability.stop_the_world(owned, held, runs)
    )
    derived = summary.Derived(
        runs=runs,
        rebalances=held,
        generations=told,
        moves=of_assignments["moves"],
        imbalance=of_assignments["imbalance"],
        unowned=unowned,
        stopped=stopped,
        double_owned=availability.double_ownership(owned)
        if has_owners
        else store.nothing("double_owned"),
        observed=availability.observed(held, runs),
        ownership=owned,
        dense=dense,
    )
    groups = store.keep("groups", summary.group_summary(derived))
    has_records = work.PROCESSED in kinds
    paused = store.nothing("paused")
    if has_owners:
        marks = working.pausing_marks(events, kinds)
        paused = availability.paused(owned, marks, held, runs)
    charged = rebalance_costs.Charged(
        *(derived, paused, groups, events),
        has_charges=has_owners or has_records,
        has_records=has_records,
    )
    has_requests = "JOIN_REQ" in kinds
    return {
        "runs": runs,
        "rebalances": held,
        "source_files": store.write("source_files", frames.files),
        "clock_skews": store.write("clock_skews", frames.skews),
        "generations": told,
        "member_sessions": sessions,
        "waits": store.keep_if(has_requests, "waits", lambda: waits(events, held, sessions)),
        **of_assignments,
        "ownership": owned,
        "unowned": unowned,
        "stopped": stopped,
        **_costs(charged, store),
        **_of_faults(frames, store, derived, events, has_faults="FAULT" in kinds),
        "groups": groups,
        "comparison": store.keep("comparison", summary.churn_comparison(groups)),
        **_of_records(frames.events, store, kinds),
        **_counted(frames, store, runs, held, told, has_requests=has_requests),
    }


def _costs(charged: rebalance_costs.Charged, store: TableStore) -> dict[str, "DataFrame"]:
    """Compute the costs of rebalances, their sums, and what costs most."""
    each = store.keep("rebalance_costs", rebalance_costs.rebalance_costs(charged))
    return {
        "rebalance_costs": each,
        "costs": store.keep("costs", rebalance_costs.costs(each)),
        "storms": store.keep("storms", rebalance_costs.storms(each)),
        "findings": store.keep("findings", findings.findings(charged.derived.rebalances, each)),
    }


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


def _of_faults(
    frames: TraceFrames,
    store: TableStore,
    derived: summary.Derived,
    events: "DataFrame",
    *,
    has_faults: bool,
) -> dict[str, "DataFrame"]:
    """Compute the fault windows, and what happened in them."""
    runs, held, unowned = derived.runs, derived.rebalances, derived.unowned
    windows = store.keep_if(
        has_faults, "fault_windows", lambda: fault_windows.fault_windows(frames.events, runs)
    )
    effects = store.keep_if(
        has_faults,
        "window_effects",
        lambda: fault_windows.window_effects(windows, events, held, unowned, runs),
    )
    return {"fault_windows": windows, "window_effects": effects}


def _of_records(
    events: "DataFrame", store: TableStore, kinds: frozenset[str]
) -> dict[str, "DataFrame"]:
    """Compute the tables that are made of events of records alone."""
    has_records, has_shares = work.PROCESSED in kinds, work.DELIVERED in kinds
    return {
        "work": store.keep_if(has_records, "work", lambda: work.work(events)),
        "lag": store.keep_if(has_records, "lag", lambda: work.lag(events)),
        "share_records": store.keep_if(
            has_shares, "share_records", lambda: work.share_records(events)
        ),
    }


def _counted(
    frames: TraceFrames,
    store: TableStore,
    runs: "DataFrame",
    held: "DataFrame",
    told: "DataFrame",
    *,
    has_requests: bool,
) -> dict[str, "DataFrame"]:
    """Compute the tables that are made of rebalances alone, and what was read."""
    in_step = quality.lockstep(frames.events, held) if has_requests else store.nothing("lockstep")
    return {
        "convergence": store.keep("convergence", rebalancing.convergence(held)),
        "durations": store.keep("durations", summary.durations(held)),
        "reasons": store.keep("reasons", summary.reasons(held)),
        "data_quality": store.keep(
            "data_quality", quality.data_quality(runs, frames.events, held, told, in_step)
        ),
    }
