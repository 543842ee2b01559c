"""Computes every derived table of a report and keeps each as Parquet.

A table that others build on is read back from its files, so nothing is computed twice.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from coordinator_sim_reports.sources import TraceFrames
from coordinator_sim_reports.transforms import (
    availability,
    balance,
    fault_windows,
    findings,
    moves,
    ownership,
    quality,
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
        """Write a table, and return it as read from its files."""
        path = str(self._directory / name)
        table.write.mode("overwrite").option("compression", "zstd").parquet(path)
        self._progress(name)
        return self._spark.read.schema(table.schema).parquet(path)


def derive_tables(frames: TraceFrames, store: TableStore) -> dict[str, "DataFrame"]:
    """Compute every derived table by its name, kept by the store."""
    runs = store.keep("runs", frames.runs)
    events = rebalancing.group_events(frames.events)
    held = store.keep("rebalances", rebalancing.rebalances(events))
    told = store.keep("generations", rebalancing.generations(events, held))
    dense, resources = frames.generations, frames.resources
    moved = store.keep("moves", moves.moves(dense, resources))
    balanced = store.keep("imbalance", balance.imbalance(dense, resources, runs))
    assigned = store.keep("assignments", ownership.assignments(dense, resources))
    owned = store.keep("ownership", working.ownership_of(dense, resources, events, runs))
    unowned = store.keep("unowned", availability.unowned(owned, held, runs))
    windows = store.keep("fault_windows", fault_windows.fault_windows(frames.events, runs))
    sessions = store.keep("member_sessions", member_sessions(events))
    groups = store.keep(
        "groups",
        summary.group_summary(
            summary.Derived(
                runs=runs,
                rebalances=held,
                generations=told,
                moves=moved,
                imbalance=balanced,
                unowned=unowned,
                stopped=availability.stop_the_world(owned, held, runs),
                double_owned=availability.double_ownership(owned),
                observed=availability.observed(held, runs),
                ownership=owned,
                dense=dense,
            )
        ),
    )
    return {
        "runs": runs,
        "rebalances": held,
        "findings": store.keep("findings", findings.findings(held)),
        "generations": told,
        "convergence": store.keep("convergence", rebalancing.convergence(held)),
        "member_sessions": sessions,
        "waits": store.keep("waits", waits(events, held, sessions)),
        "moves": moved,
        "imbalance": balanced,
        "assignments": assigned,
        "ownership": owned,
        "unowned": unowned,
        "fault_windows": windows,
        "window_effects": store.keep(
            "window_effects",
            fault_windows.window_effects(windows, events, held, unowned, runs),
        ),
        "groups": groups,
        "comparison": store.keep("comparison", summary.churn_comparison(groups)),
        "work": store.keep("work", work.work(frames.events)),
        "lag": store.keep("lag", work.lag(frames.events)),
        "durations": store.keep("durations", summary.durations(held)),
        "reasons": store.keep("reasons", summary.reasons(held)),
        "data_quality": store.keep(
            "data_quality", quality.data_quality(runs, frames.events, held, told)
        ),
    }
