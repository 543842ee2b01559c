"""Computes every derived table of a report and keeps each as Parquet.

One pass over the groups makes the tables of `GROUP_TABLES`; the others are made of these, or of all
events. A table that others build on is read back from its files, so nothing is computed twice.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.local_frames import has_no_rows, listed
from coordinator_sim_reports.sources import TraceFrames, ddl_of
from coordinator_sim_reports.transforms import costs, fault_windows, groups, quality, summary
from coordinator_sim_reports.transforms.assignments import assignments
from coordinator_sim_reports.transforms.sessions import member_sessions
from coordinator_sim_reports.transforms.windows import Windows
from coordinator_sim_reports.workers.group_tables import (
    GROUP_TABLES,
    GROUPS,
    QUALITY,
    SPANS,
    schema_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_GROUP: Final = "trace_id string, cluster_id string, group_id string"
COLUMNS: Final[Mapping[str, str]] = {
    "assignments": f"{_GROUP}, incarnation int, generation int, resource string, "
    "member_key string, member_id string, owned_from_us bigint",
    "fault_windows": "trace_id string, cluster_id string, window_no int, name string, task string, "
    "kind string, from_us bigint, to_us bigint, is_ended boolean, next_from_us bigint",
}
"""Columns of tables that no pass makes and that are empty if the trace lacks their events.

Planning such a table, only to find that it is empty, takes as long as a small job.
"""


def nothing(spark: "SparkSession", name: str) -> "DataFrame":
    """Return a table without rows, which plans know."""
    return listed(spark, [], COLUMNS.get(name) or ddl_of(schema_of(name)))


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
            name: One of `COLUMNS`, or a table of the pass.
            make: Makes the table; not called for one without rows.
        """
        if is_known:
            return self.keep(name, make())
        return self.write(name, self.nothing(name))

    def nothing(self, name: str) -> "DataFrame":
        """Return a table of `COLUMNS`, or of the pass, without rows."""
        return nothing(self._spark, name)


def kinds_of(events: "DataFrame") -> frozenset[str]:
    """Return the kinds of events of a trace: what it can tell of."""
    return frozenset(row[C.EVENT] for row in events.select(C.EVENT).distinct().collect())


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
    events = groups.group_events(frames.events, kinds)
    store.write("runs", frames.runs)
    runs, facts = frames.runs, dict(frames.facts)
    faults = _faults(frames, store, kinds, windows)
    facts = fault_windows.with_windows(facts, faults)
    if windows is not None:
        runs, facts = windows.runs(runs), windows.facts(facts)
    sessions = member_sessions(events)
    if windows is None:
        sessions = store.keep("member_sessions", sessions)
    told = groups.Records(events, kinds, frames.dense_pieces, frames.resources, sessions)
    made = groups.GroupPass(told, facts, (*GROUP_TABLES, GROUPS))
    tables = _of_groups(frames, store, kinds, made)
    given = store.nothing("assignments")
    if not has_no_rows(frames.generations):
        given = assignments(frames.generations, frames.resources)
    if windows is not None:
        spans = made.table(SPANS)
        sessions = store.keep("member_sessions", windows.lasting(sessions, spans))
        given = windows.at(given, spans, "owned_from_us")
    return {
        "runs": runs,
        "source_files": store.write("source_files", frames.files),
        "clock_skews": store.write("clock_skews", frames.skews),
        "member_sessions": sessions,
        "assignments": store.keep("assignments", given),
        "fault_windows": faults,
        **tables,
        "costs": store.keep("costs", costs.costs(tables["rebalance_costs"])),
        "comparison": store.keep("comparison", summary.churn_comparison(tables[GROUPS])),
        "durations": store.keep("durations", summary.durations(tables["rebalances"])),
        "reasons": store.keep("reasons", summary.reasons(tables["rebalances"])),
        "data_quality": store.keep(
            "data_quality", quality.data_quality(frames.runs, frames.events, made.table(QUALITY))
        ),
    }


def _faults(
    frames: TraceFrames, store: TableStore, kinds: frozenset[str], windows: Windows | None
) -> "DataFrame":
    """Compute fault windows, of which a part is shown."""
    name = "fault_windows"
    if "FAULT" not in kinds:
        return store.write(name, store.nothing(name))
    found = fault_windows.fault_windows(frames.events, frames.runs)
    return store.keep(name, found if windows is None else windows.faults(found))


def _of_groups(
    frames: TraceFrames, store: TableStore, kinds: frozenset[str], made: groups.GroupPass
) -> dict[str, "DataFrame"]:
    """Keep the tables that the pass makes, those without rows without a look."""
    has_assignments = not has_no_rows(frames.generations)
    is_known = {
        "moves": has_assignments,
        "imbalance": has_assignments,
        **dict.fromkeys(
            ("ownership", "unowned", "stopped"),
            has_assignments or not kinds.isdisjoint(groups.OWNING),
        ),
        "waits": "JOIN_REQ" in kinds,
        "window_effects": "FAULT" in kinds,
        **dict.fromkeys(("work", "lag"), groups.PROCESSED in kinds),
        "share_records": groups.DELIVERED in kinds,
    }
    tables = {
        name: store.keep_if(is_known.get(name, True), name, partial(made.table, name))
        for name in (*GROUP_TABLES, GROUPS)
        if name not in {SPANS, QUALITY, "findings"}
    }
    tables["findings"] = store.keep("findings", summary.ranked(made.table("findings")))
    return tables
