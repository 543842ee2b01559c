"""Reliability of a trace, and the metrics that it can answer."""

from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim.trace.events import Source
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.workers.group_summary import (
    BOUND,
    ESTIMATE,
    EXACT,
    RECORD_SOURCES,
    UNAVAILABLE,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_UNCLOCKED: Final = sorted(
    source.value for source in (*RECORD_SOURCES, Source.REQUEST_LOG, Source.WIRE)
)


def data_quality(runs: "DataFrame", events: "DataFrame", of_groups: "DataFrame") -> "DataFrame":
    """Return one row per trace: rows read, rows not understood, suspicious rows.

    Input: runs; events; what each group adds (`rebalance_tables.quality_rows`).
    Output: key trace_id, with the columns of runs and: `unparsed`, `gaps`, `inferred` events;
    `clock_regressions` (an event of one file earlier than the one before it); `groups`;
    `rebalances`, `unknown_reasons`, `open_rebalances`, `ghost_generations`;
    `lockstep_groups`, whose members act in the same millisecond (`is_lockstep`);
    `assigned_generations`; parse rate `parsed_share`, null for an empty trace.
    """
    file_order = Window.partitionBy("file", C.TRACE_ID, "source_ref").orderBy(C.ORDINAL)
    # What is inferred from records and requests has a bound of its error without any clock.
    is_logged = ~F.col("source").isin(*_UNCLOCKED)
    inferred = F.col("ts_kind") == "inferred"
    counts = {
        "unparsed": F.col(C.EVENT) == "UNPARSED",
        "gaps": F.col(C.EVENT) == "GAP",
        "inferred": inferred,
        "clock_regressions": is_logged & inferred & (F.col("ts_err_us") > 0),
    }
    # What an event tells is found before the sort: its texts are not sorted with it.
    told = events.select(
        F.xxhash64(C.TRACE_ID, "source_ref").alias("file"),
        *(C.TRACE_ID, "source_ref", C.GROUP_ID, C.ORDINAL, C.TS_US),
        *(condition.alias(name) for name, condition in counts.items()),
        F.when(F.col(C.EVENT) == "ASSIGNED", F.struct(C.GENERATION)).alias("assigned"),
    )
    earlier = F.col("clock_regressions") | (F.col(C.TS_US) < F.lag(C.TS_US).over(file_order))
    # Group by group first: distinct counts of all events would shuffle each of them three times.
    seen = (
        told.withColumn("clock_regressions", earlier)
        .groupBy(C.TRACE_ID, C.GROUP_ID)
        .agg(
            *(F.count_if(name).alias(name) for name in counts),
            F.size(F.collect_set("assigned")).alias("assigned"),
        )
        .groupBy(C.TRACE_ID)
        .agg(
            *(F.sum(name).alias(name) for name in counts),
            F.count(C.GROUP_ID).alias("groups"),
            F.sum("assigned").alias("assigned_generations"),
        )
    )
    counts_of_groups = ("rebalances", "unknown_reasons", "open_rebalances", "ghost_generations")
    held = of_groups.groupBy(C.TRACE_ID).agg(
        *(F.sum(name).alias(name) for name in counts_of_groups),
        F.count_if("is_lockstep").alias("lockstep_groups"),
    )
    joined = runs.join(seen, C.TRACE_ID, "left").join(held, C.TRACE_ID, "left")
    counted = [name for name in joined.columns if name not in runs.columns]
    understood = 1 - F.try_divide(F.col("unparsed"), F.col("events"))
    return joined.na.fill(0, counted).withColumn("parsed_share", understood)


def worst(qualities: Column) -> Column:
    """Return the weakest of an array of qualities."""
    return (
        F.when(F.array_contains(qualities, UNAVAILABLE), UNAVAILABLE)
        .when(F.array_contains(qualities, ESTIMATE), ESTIMATE)
        .when(F.array_contains(qualities, BOUND), BOUND)
        .otherwise(EXACT)
    )
