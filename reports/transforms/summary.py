"""The comparison of assignors over groups and runs, and sums over rebalances."""

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.transforms import quality as Q  # noqa: N812 - quality labels, as in `Q.EXACT`
from coordinator_sim_reports.workers.group_summary import (
    INTERRUPTIONS,
    MISSING,
    MOVE_COUNTS,
    TIMES,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SPREAD: Final = (
    *("rebalances", "logical_rebalances", *MOVE_COUNTS, *INTERRUPTIONS),
    *(*TIMES, "stopped_s", "double_owned_s"),
)
"""Columns of the comparison with the median, the least and the most."""
_OF_ASSIGNMENTS: Final = (*MOVE_COUNTS, *INTERRUPTIONS, *TIMES, "double_owned_s", "ideal_kept")
COMPARISON_KEY: Final = (C.PROTOCOL_TYPE, "scenario", "assignor")


def _ratios(sums: "DataFrame") -> "DataFrame":
    held = F.col("held_by_survivors")
    stickiness = F.when(held == 0, 1.0).otherwise(F.col("kept") / held)
    relative = F.when(F.col("ideal_kept") > 0, F.col("kept") / F.col("ideal_kept"))
    return sums.withColumn("stickiness", stickiness).withColumn("relative_stickiness", relative)


def ranked(findings: "DataFrame") -> "DataFrame":
    """Add `rank` to findings, from 1 within a trace: the costliest first."""
    worst = Window.partitionBy(C.TRACE_ID).orderBy(
        F.col("cost_s").desc(), C.CLUSTER_ID, C.GROUP_ID, "kind"
    )
    others = [name for name in findings.columns if name not in C.GROUP_KEY]
    return findings.select(*C.GROUP_KEY, F.row_number().over(worst).alias("rank"), *others)


def churn_comparison(groups: "DataFrame") -> "DataFrame":
    """Compare the assignors: one row per protocol type, scenario and assignor.

    Runs of one scenario and assignor with several seeds are one row: the cost of a run is the sum
    over its groups.

    Input: group summaries.
    Output: key (protocol_type, scenario, assignor): `runs`, `groups`; counts and times as the
    mean over runs and, for `SPREAD`, as `*_median`, `*_low` and `*_high` over runs, and by `seed`
    in `worlds`; ratios over the sums of all runs, imbalance as the mean over groups; null where
    no group knows, or one lacks some assignments; qualities are the weakest of the groups'.
    """
    is_whole = F.bool_and(F.col(MISSING).isNull())

    def known(name: str) -> "Column":
        total = F.sum(name)
        return (F.when(is_whole, total) if name in _OF_ASSIGNMENTS else total).alias(name)

    qualities = (
        "timing_quality",
        "assignment_quality",
        "ownership_quality",
        "stopped_quality",
    )
    run_sums = groups.groupBy(*COMPARISON_KEY, C.TRACE_ID, "seed").agg(
        *(known(name) for name in (*SPREAD, "open_rebalances", "ideal_kept"))
    )
    spreads = run_sums.groupBy(*COMPARISON_KEY).agg(
        F.count("*").alias("runs"),
        *(F.avg(name).alias(name) for name in (*SPREAD, "open_rebalances", "ideal_kept")),
        *(F.median(name).alias(f"{name}_median") for name in SPREAD),
        *(F.min(name).alias(f"{name}_low") for name in SPREAD),
        *(F.max(name).alias(f"{name}_high") for name in SPREAD),
        F.array_sort(F.collect_list(F.struct("seed", *SPREAD))).alias("worlds"),
    )
    possible = F.col("resource_count") * F.col("observed_s")
    rows = groups.groupBy(*COMPARISON_KEY).agg(
        F.count("*").alias("groups"),
        *(F.when(is_whole, F.avg(name)).alias(name) for name in ("spread", "cv", "gini")),
        F.when(is_whole, 1 - F.try_divide(F.sum("unowned_s"), F.sum(possible))).alias(
            "availability"
        ),
        *(Q.worst(F.collect_set(name)).alias(name) for name in qualities),
    )
    return _ratios(rows.join(spreads, list(COMPARISON_KEY)))


def durations(rebalance_rows: "DataFrame") -> "DataFrame":
    """Return percentiles of rebalance durations; open ones are left out but counted.

    Input: rebalances.
    Output: one row per `phase` (join, sync, total): `count`, `open`, `p50_ms`, `p90_ms`,
    `p99_ms`, `max_ms`; null percentiles where nothing was timed.
    """
    phases = [("join", "join_ms"), ("sync", "sync_ms"), ("total", "total_ms")]
    pairs = F.explode(
        F.array(*(F.struct(F.lit(p).alias("phase"), F.col(c).alias("ms")) for p, c in phases))
    )
    long = rebalance_rows.select(C.OUTCOME, pairs.alias("pair")).select(
        F.col("pair.phase").alias("phase"),
        F.col("pair.ms").alias("ms"),
        (F.col(C.OUTCOME) == "OPEN").alias("is_open"),
    )
    shares = "array(0.5D, 0.9D, 0.99D, 1.0D)"
    return (
        long.groupBy("phase")
        .agg(
            F.count("ms").alias("count"),
            F.count_if("is_open").alias("open"),
            F.expr(f"percentile_approx(ms, {shares}, 10000)").alias("p"),
        )
        .select(
            "phase",
            "count",
            "open",
            F.expr("p[0]").alias("p50_ms"),
            F.expr("p[1]").alias("p90_ms"),
            F.expr("p[2]").alias("p99_ms"),
            F.expr("p[3]").alias("max_ms"),
        )
    )


def reasons(rebalance_rows: "DataFrame") -> "DataFrame":
    """Return the reasons of each group's rebalances and their durations.

    Input: rebalances.
    Output: key (group, reason): `count`, `open`, `followups`; `p50_ms` and `max_ms` of the
    finished ones, null when none is.
    """
    finished = F.col("total_ms")
    return rebalance_rows.groupBy(*C.GROUP_KEY, C.REASON).agg(
        F.count("*").alias("count"),
        F.count_if(F.col(C.OUTCOME) == "OPEN").alias("open"),
        F.count_if(C.FOLLOWUP).alias("followups"),
        F.percentile_approx(finished, 0.5, 10000).alias("p50_ms"),
        F.max(finished).alias("max_ms"),
    )
