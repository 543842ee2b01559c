"""Fault windows of a run: when each task ran, and what happened to the groups meanwhile."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from pyspark.sql import Column, Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.local_frames import has_no_rows
from coordinator_sim_reports.workers.group import FaultWindow, RunFacts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WINDOW_NO: Final = "window_no"
_RUN: Final = (C.TRACE_ID, C.CLUSTER_ID)
_SPAN: Final = (*_RUN, C.ORDINAL, "name", "task", "kind", C.FROM_US, C.TO_US)
_RUNNING: Final = "TaskRunning"
_DONE: Final = "TaskDone"
_LENGTHS: Final = ("for_ms", "down_ms")
"""Attributes of a happening that say how long it lasts."""
_US_PER_MS: Final = 1_000
_LOADS: Final = (
    r"^org\.apache\.kafka\.trogdor\.workload\."
    r"|^coordinatorsim\.(GroupMember|ConnectWorker|OffsetCommitter)$"
)
"""Classes of tasks that are clients, and no faults."""


def fault_windows(events: "DataFrame", runs: "DataFrame") -> "DataFrame":
    """Return the windows of a run's tasks; of a run without tasks, those of its happenings.

    Tasks that are clients, workloads and members of groups, make no windows. Another task runs
    from its TaskRunning to the next transition of the same id, or to the end of the
    trace; a TaskDone without a TaskRunning makes no window. A happening (PauseMember, CrashBroker)
    is a window where it names its length, `for_ms` or `down_ms`. Happenings of a run with tasks
    are what the tasks do, and make no windows of their own.

    Input: events; runs, for the end of the trace.
    Output: key (trace_id, cluster_id, window_no), numbered from 1 in order of the trace: `name`,
    the task's id, or the happening with what it strikes; `task`, null for a happening; `kind`, the
    spec's class or the happening's; `from_us`, `to_us` >= `from_us`, cut at the end of the trace;
    `is_ended`, false where the trace ends first; `next_from_us`, when the next window begins that
    begins after this one and not before its end, null where none does.
    """
    faults = events.where(F.col(C.EVENT) == "FAULT")
    tasks = _task_windows(faults)
    with_tasks = tasks.select(*_RUN).distinct()
    faulty = tasks.where(F.expr(f"kind is null or not kind rlike r'{_LOADS}'"))
    windows = faulty.unionByName(
        _happening_windows(faults).join(F.broadcast(with_tasks), list(_RUN), "left_anti")
    )
    ends = runs.select(C.TRACE_ID, F.col("last_ts_us").alias("trace_end_us"))
    is_ended = F.coalesce(F.col(C.TO_US) <= F.col("trace_end_us"), F.expr("false"))
    until = F.greatest(C.FROM_US, F.least(C.TO_US, "trace_end_us"))
    run = Window.partitionBy(*_RUN)
    is_next = "filter(starts, each -> each > from_us AND each >= to_us)"
    return (
        windows.join(F.broadcast(ends), C.TRACE_ID)
        .select(
            *_RUN,
            F.row_number().over(run.orderBy(C.ORDINAL)).alias(WINDOW_NO),
            *("name", "task", "kind", C.FROM_US),
            until.alias(C.TO_US),
            is_ended.alias("is_ended"),
            F.collect_set(C.FROM_US).over(run).alias("starts"),
        )
        .withColumn("next_from_us", F.array_min(F.expr(is_next)))
        .drop("starts")
    )


def _task_windows(faults: "DataFrame") -> "DataFrame":
    """Return a row per TaskRunning of a named task; `to_us` is null where nothing follows."""
    attrs = F.col("attrs")
    history = Window.partitionBy(*_RUN, "task").orderBy(C.ORDINAL)
    return (
        faults.where(F.col("reason_text").isin(_RUNNING, _DONE) & attrs["task"].isNotNull())
        .withColumns({"task": attrs["task"], "name": attrs["task"], "kind": attrs["kind"]})
        .withColumn(C.TO_US, F.lead(C.TS_US).over(history))
        .where(F.col("reason_text") == _RUNNING)
        .withColumnRenamed(C.TS_US, C.FROM_US)
        .select(*_SPAN)
    )


def _happening_windows(faults: "DataFrame") -> "DataFrame":
    length_ms = F.coalesce(*(F.col("attrs")[name] for name in _LENGTHS)).cast("bigint")
    name = F.concat_ws(" ", "reason_text", F.nullif(_struck(F.col("attrs")), F.lit("")))
    return (
        faults.withColumn(C.TO_US, F.col(C.TS_US) + length_ms * _US_PER_MS)
        .where(F.col(C.TO_US).isNotNull())
        .withColumns({"name": name, "task": F.lit(None).cast("string")})
        .withColumnsRenamed({"reason_text": "kind", C.TS_US: C.FROM_US})
        .select(*_SPAN)
    )


def _struck(attrs: Column) -> Column:
    """Describe the target of a fault: member, broker, group, partition, those that it names."""
    return F.concat_ws(
        ", ",
        attrs["member"],
        F.concat(F.lit("broker "), attrs["broker"]),
        attrs["group_id"],
        F.concat(F.lit("partition "), attrs["partition"]),
    )


def with_windows(facts: Mapping[str, RunFacts], windows: "DataFrame") -> dict[str, RunFacts]:
    """Return facts of runs with their fault windows."""
    found = dict(facts)
    if not has_no_rows(windows):
        for row in windows.orderBy(*_RUN, WINDOW_NO).collect():
            told = FaultWindow(**{name: row[name] for name in FaultWindow.__struct_fields__})
            own = found[row[C.TRACE_ID]]
            found[row[C.TRACE_ID]] = replace(own, faults=(*own.faults, told))
    return found
