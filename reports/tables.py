"""Computes every derived table of a report and keeps each as Parquet.

A table that others build on is read back from its files, so nothing is computed twice.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import StorageLevel

from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.sources import TraceFrames
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

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
        """Write a table, and return it as read from its files.

        A table that cannot have rows (`only_if`) is returned as one without any, so that the plans
        of others that build on it leave out what comes of nothing.
        """
        path = str(self._directory / name)
        table.write.mode("overwrite").option("compression", "zstd").parquet(path)
        self._progress(name)
        kept = self._spark.read.schema(table.schema).parquet(path)
        return only_if(not has_no_rows(table), kept)


def only_if(is_known: bool, table: "DataFrame") -> "DataFrame":
    """Return a table, or one of its columns without rows, of which nothing is computed.

    Args:
        is_known: Whether the trace has anything that such rows come from.
        table: The table.
    """
    return table if is_known else table.limit(0)


def has_no_rows(table: "DataFrame") -> bool:
    """Whether a table is seen to be empty before it is computed."""
    most = table._jdf.queryExecution().optimizedPlan().maxRows()  # noqa: SLF001 - no other way
    return bool(most.isDefined()) and int(most.get()) == 0


def _kinds_of(events: "DataFrame") -> frozenset[str]:
    return frozenset(row[C.EVENT] for row in events.select(C.EVENT).distinct().collect())


def derive_tables(frames: TraceFrames, store: TableStore) -> dict[str, "DataFrame"]:
    """Compute every derived table by its name, kept by the store.

    What a trace has no events for is not computed: a broker's log knows no owners and no records.
    """
    runs = store.keep("runs", frames.runs)
    kinds = _kinds_of(frames.events)
    events = rebalancing.group_events(frames.events, kinds)
    if rebalancing.repeats_events(kinds):
        events = events.persist(StorageLevel.DISK_ONLY)
    held = store.keep("rebalances", rebalancing.rebalances(events))
    told = store.keep("generations", rebalancing.generations(events, held))
    dense, resources = frames.generations, frames.resources
    has_assignments = not has_no_rows(dense)
    has_owners = has_assignments or not kinds.isdisjoint(working.CHANGES)
    of_assignments = _of_assignments(frames, store, runs, has_assignments=has_assignments)
    owned = store.keep(
        "ownership", only_if(has_owners, working.ownership_of(dense, resources, events, runs))
    )
    unowned = store.keep("unowned", only_if(has_owners, availability.unowned(owned, held, runs)))
    has_faults = "FAULT" in kinds
    windows = store.keep(
        "fault_windows", only_if(has_faults, fault_windows.fault_windows(frames.events, runs))
    )
    effects = fault_windows.window_effects(windows, events, held, unowned, runs)
    sessions = store.keep("member_sessions", member_sessions(events))
    stopped = store.keep(
        "stopped", only_if(has_owners, availability.stop_the_world(owned, held, runs))
    )
    derived = summary.Derived(
        runs=runs,
        rebalances=held,
        generations=told,
        moves=of_assignments["moves"],
        imbalance=of_assignments["imbalance"],
        unowned=unowned,
        stopped=stopped,
        double_owned=only_if(has_owners, availability.double_ownership(owned)),
        observed=availability.observed(held, runs),
        ownership=owned,
        dense=dense,
    )
    groups = store.keep("groups", summary.group_summary(derived))
    has_records = work.PROCESSED in kinds
    charged = rebalance_costs.Charged(
        *(derived, groups, events), has_charges=has_owners or has_records, has_records=has_records
    )
    has_requests = "JOIN_REQ" in kinds
    return {
        "runs": runs,
        "rebalances": held,
        "source_files": store.keep("source_files", frames.files),
        "clock_skews": store.keep("clock_skews", frames.skews),
        "generations": told,
        "member_sessions": sessions,
        "waits": store.keep("waits", only_if(has_requests, waits(events, held, sessions))),
        **of_assignments,
        "ownership": owned,
        "unowned": unowned,
        "stopped": stopped,
        **_costs(charged, store),
        "fault_windows": windows,
        "window_effects": store.keep("window_effects", only_if(has_faults, effects)),
        "groups": groups,
        "comparison": store.keep("comparison", summary.churn_comparison(groups)),
        **_of_records(frames, store, has_records=has_records),
        **_counted(frames, store, runs, held, told, has_requests=has_requests),
    }


def _costs(charged: rebalance_costs.Charged, store: TableStore) -> dict[str, "DataFrame"]:
    """Compute the costs of rebalances, and their sums."""
    each = store.keep("rebalance_costs", rebalance_costs.rebalance_costs(charged))
    return {
        "rebalance_costs": each,
        "costs": store.keep("costs", rebalance_costs.costs(each)),
        "storms": store.keep("storms", rebalance_costs.storms(each)),
    }


def _of_assignments(
    frames: TraceFrames, store: TableStore, runs: "DataFrame", *, has_assignments: bool
) -> dict[str, "DataFrame"]:
    """Compute the tables that are made of assignments alone."""
    dense, resources = frames.generations, frames.resources
    tables = {
        "moves": moves.moves(dense, resources),
        "imbalance": balance.imbalance(dense, resources, runs),
        "assignments": ownership.assignments(dense, resources),
    }
    return {
        name: store.keep(name, only_if(has_assignments, table)) for name, table in tables.items()
    }


def _of_records(
    frames: TraceFrames, store: TableStore, *, has_records: bool
) -> dict[str, "DataFrame"]:
    """Compute the tables that are made of processed records alone."""
    tables = {"work": work.work(frames.events), "lag": work.lag(frames.events)}
    return {name: store.keep(name, only_if(has_records, table)) for name, table in tables.items()}


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
    in_step = only_if(has_requests, quality.lockstep(frames.events, held))
    return {
        "findings": store.keep("findings", findings.findings(held)),
        "convergence": store.keep("convergence", rebalancing.convergence(held)),
        "durations": store.keep("durations", summary.durations(held)),
        "reasons": store.keep("reasons", summary.reasons(held)),
        "data_quality": store.keep(
            "data_quality", quality.data_quality(runs, frames.events, held, told, in_step)
        ),
    }
