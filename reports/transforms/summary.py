"""One row per group, and the comparison of assignors over groups and runs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim.messages.embedded.contents import COOPERATIVE_PROTOCOLS
from coordinator_sim.trace.epoch_groups import SHARE_PROTOCOL
from coordinator_sim.trace.epoch_records import SHARE
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.local_frames import has_no_rows
from coordinator_sim_reports.transforms import quality as Q  # noqa: N812 - quality labels, as in `Q.EXACT`

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MOVE_COUNTS: Final = (
    "kept",
    "moved",
    "orphaned",
    "voluntary",
    "added",
    "dropped",
    "held_by_survivors",
    "lb_balanced",
    "excess_moves",
)
INTERRUPTIONS: Final = ("interrupted", "restarted_in_place")
TIMES: Final = ("unowned_s", "joining_s", "syncing_s", "waiting_s")
SPREAD: Final = (
    *("rebalances", "logical_rebalances", *MOVE_COUNTS, *INTERRUPTIONS),
    *(*TIMES, "stopped_s", "double_owned_s"),
)
"""Columns of the comparison with the median, the least and the most."""
_OF_ASSIGNMENTS: Final = (*MOVE_COUNTS, *INTERRUPTIONS, *TIMES, "double_owned_s", "ideal_kept")
_RATIOS: Final = ("stickiness", "relative_stickiness", "spread", "cv", "gini", "resource_count")
MISSING: Final = "missing_assignments"
_PROTOCOLS: Final = "protocol_type string, protocol_name string, assigned_generations bigint"
_COVERAGE: Final = "stored_generations bigint, whole_generations bigint"
_MOVE_SUMS: Final = (
    ", ".join(f"{name} bigint" for name in (*MOVE_COUNTS, "ideal_kept", "compared_generations"))
    + ", stickiness double, relative_stickiness double"
)
_INTERRUPTIONS: Final = "resource_count bigint, interrupted bigint, restarted_in_place bigint"
COMPARISON_KEY: Final = (C.PROTOCOL_TYPE, "scenario", "assignor")
_US_PER_S: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Derived:
    """Derived tables of a summary; see the transforms that make them."""

    runs: "DataFrame"
    rebalances: "DataFrame"
    generations: "DataFrame"
    moves: "DataFrame"
    imbalance: "DataFrame"
    unowned: "DataFrame"
    stopped: "DataFrame"
    double_owned: "DataFrame"
    observed: "DataFrame"
    ownership: "DataFrame"
    dense: "DataFrame"


def group_summary(tables: Derived) -> "DataFrame":
    """Return every metric of one group in one run.

    Output: key (trace_id, cluster_id, group_id), with the run's `scenario`, `assignor` (the
    protocol's name where the run names none), `profile`, `seed`, `source`; counts of rebalances;
    sums of the moves table, null without assignments; `stickiness` and `relative_stickiness`
    over all resources held by survivors; time-weighted `spread`, `cv`, `gini`; `unowned_s` and
    its parts, `stopped_s`, `double_owned_s` in seconds; `interrupted`, how often an owned
    resource was given up and owned again, `restarted_in_place` of these by the same member;
    `availability`; and one quality column
    per family of metrics: `timing_quality`, `assignment_quality`, `ownership_quality`,
    `stopped_quality`. Where only some generations have known assignments, metrics based on them are
    null and `missing_assignments` says so; else `missing_assignments` is null.
    """
    rows = _rebalance_counts(tables.rebalances)
    parts: tuple[tuple[Callable[[DataFrame], DataFrame], DataFrame, str], ...] = (
        (_protocols, tables.dense, _PROTOCOLS),
        (partial(_coverage, tables.generations), tables.dense, _COVERAGE),
        (_move_sums, tables.moves, _MOVE_SUMS),
        (_balance, tables.imbalance, "spread double, cv double, gini double"),
        (_unowned_sums, tables.unowned, ", ".join(f"{name} double" for name in TIMES)),
        (_stopped_sums, tables.stopped, "stopped_s double"),
        (_itself, tables.double_owned, "double_owned_s double"),
        (_itself, tables.observed, "observed_s double"),
        (_interruptions, tables.ownership, _INTERRUPTIONS),
    )
    for make, source, columns in parts:
        if has_no_rows(source):
            rows = rows.selectExpr("*", *_absent(columns))
        else:
            rows = rows.join(make(source), list(C.GROUP_KEY), "left")
    named = rows.join(
        F.broadcast(tables.runs.drop(C.CLUSTER_ID, "events", "digest", "path")), C.TRACE_ID
    )
    return _with_quality(named)


def _itself(table: "DataFrame") -> "DataFrame":
    return table


def _absent(columns: str) -> list[str]:
    """Return these columns as nulls: a join with nothing would be planned in vain."""
    told = (column.split(" ") for column in columns.split(", "))
    return [f"CAST(NULL AS {kind}) AS {name}" for name, kind in told]


def _rebalance_counts(rows: "DataFrame") -> "DataFrame":
    return rows.groupBy(*C.GROUP_KEY).agg(
        F.count("*").alias("rebalances"),
        F.count_if(~F.col(C.FOLLOWUP)).alias("logical_rebalances"),
        F.count_if(F.col(C.OUTCOME) == "OPEN").alias("open_rebalances"),
        F.count_if(F.col(C.OUTCOME) == "NO_SYNC").alias("unsynced_rebalances"),
        F.sum("total_ms").alias("rebalancing_ms"),
        F.bool_and("is_exact").alias("is_exact"),
        F.max(C.PROTOCOL_NAME).alias("told_protocol_name"),
        F.nullif(F.max(C.MEMBERS), F.lit(0)).alias("most_members"),
    )


def _protocols(dense: "DataFrame") -> "DataFrame":
    return dense.groupBy(*C.GROUP_KEY).agg(
        F.max(C.PROTOCOL_TYPE).alias(C.PROTOCOL_TYPE),
        F.max_by(
            C.PROTOCOL_NAME, F.when(F.col(C.PROTOCOL_NAME).isNotNull(), F.col(C.GENERATION))
        ).alias(C.PROTOCOL_NAME),
        F.count("*").alias("assigned_generations"),
    )


def _coverage(told: "DataFrame", dense: "DataFrame") -> "DataFrame":
    """Return the number of assigned generations, and of those with all assignments known.

    Beside a broker's log, the log of one client has only the generations that this client led.
    """
    given = dense.select(*C.GENERATION_KEY, F.size(C.MEMBER_IDS).alias("given_members"))
    is_whole = F.col("given_members") >= F.coalesce(C.MEMBERS, "given_members")
    return (
        told.where("stored")
        .select(*C.GENERATION_KEY, C.MEMBERS)
        .join(given, list(C.GENERATION_KEY), "left")
        .groupBy(*C.GROUP_KEY)
        .agg(
            F.count("*").alias("stored_generations"),
            F.count_if(is_whole).alias("whole_generations"),
        )
    )


def _missing_assignments() -> "Column":
    """Describe the missing assignments of a group that has some; null if it has all, or none."""
    has_some = F.col("assigned_generations") > 0
    lacks_some = F.col("whole_generations") < F.col("stored_generations")
    told = F.format_string(
        "assignments of %d of %d generations are known", "whole_generations", "stored_generations"
    )
    return F.when(has_some & lacks_some & ~Q.determines_assignments(F.col("source")), told)


def _move_sums(rows: "DataFrame") -> "DataFrame":
    ideal_kept = F.col("held_by_survivors") - (F.col("lb_balanced") - F.col("orphaned"))
    sums = rows.groupBy(*C.GROUP_KEY).agg(
        *(F.sum(name).alias(name) for name in MOVE_COUNTS),
        F.sum(ideal_kept).alias("ideal_kept"),
        F.count("*").alias("compared_generations"),
    )
    return _ratios(sums)


def _ratios(sums: "DataFrame") -> "DataFrame":
    held = F.col("held_by_survivors")
    stickiness = F.when(held == 0, 1.0).otherwise(F.col("kept") / held)
    relative = F.when(F.col("ideal_kept") > 0, F.col("kept") / F.col("ideal_kept"))
    return sums.withColumn("stickiness", stickiness).withColumn("relative_stickiness", relative)


def _balance(rows: "DataFrame") -> "DataFrame":
    weight = F.col("lasted_us")

    def weighted(name: str) -> "Column":
        return F.try_divide(F.sum(F.col(name) * weight), F.sum(weight)).alias(name)

    return rows.groupBy(*C.GROUP_KEY).agg(weighted("spread"), weighted("cv"), weighted("gini"))


def _unowned_sums(rows: "DataFrame") -> "DataFrame":
    return rows.groupBy(*C.GROUP_KEY).agg(
        *((F.sum(f"{name.removesuffix('_s')}_us") / _US_PER_S).alias(name) for name in TIMES)
    )


def _stopped_sums(rows: "DataFrame") -> "DataFrame":
    return rows.groupBy(*C.GROUP_KEY).agg((F.sum("stopped_us") / _US_PER_S).alias("stopped_s"))


def _interruptions(owned: "DataFrame") -> "DataFrame":
    """Return holds that ended before the trace did, and how many continued with the same owner."""
    history = Window.partitionBy(*C.GROUP_KEY, C.RESOURCE).orderBy(C.FROM_US)
    return (
        owned.withColumn("next_key", F.lead(C.MEMBER_KEY).over(history))
        .groupBy(*C.GROUP_KEY)
        .agg(
            F.count_distinct(C.RESOURCE).alias("resource_count"),
            F.count("next_key").alias("interrupted"),
            F.count_if(F.col("next_key") == F.col(C.MEMBER_KEY)).alias("restarted_in_place"),
        )
    )


def _with_quality(rows: "DataFrame") -> "DataFrame":
    """Add qualities; times without any gap found are 0, unknowable ones are null."""
    rows = rows.withColumn(MISSING, _missing_assignments())
    assigned = F.coalesce(F.col("assigned_generations"), F.lit(0)) > 0
    has = assigned & F.col(MISSING).isNull()
    source = F.col("source")
    timed = F.coalesce("is_exact", F.expr("true"))
    bound = F.when(
        F.coalesce(F.col("told_protocol_name"), F.lit("")).rlike(COOPERATIVE_PROTOCOLS), 0.0
    ).otherwise(F.col("rebalancing_ms") / 1000)
    # A share group has epochs and no assignments that could tell its type.
    shared = F.when(F.col("told_protocol_name") == SHARE_PROTOCOL, SHARE)
    labelled = (
        rows.withColumn(
            "assignor",
            F.coalesce("assignor", C.PROTOCOL_NAME, "told_protocol_name", F.lit("unknown")),
        )
        .withColumn("scenario", F.coalesce("scenario", C.CLUSTER_ID))
        .withColumn(C.PROTOCOL_TYPE, F.coalesce(C.PROTOCOL_TYPE, shared, F.lit("unknown")))
        .withColumn("timing_quality", Q.timing_quality(source, timed))
        .withColumn("assignment_quality", Q.assignment_quality(has))
        .withColumn("ownership_quality", Q.ownership_quality(source, has))
        .withColumn("stopped_quality", Q.stopped_quality(source, has))
        .withColumn("stopped_s", F.when(has, F.coalesce("stopped_s", F.lit(0.0))).otherwise(bound))
    )
    for name in (*TIMES, "double_owned_s"):
        labelled = labelled.withColumn(name, F.when(has, F.coalesce(name, F.lit(0.0))))
    rest = (*MOVE_COUNTS, *INTERRUPTIONS, "ideal_kept", *_RATIOS)
    labelled = labelled.withColumns({name: F.when(has, F.col(name)) for name in rest})
    possible = F.col("resource_count") * F.col("observed_s")
    available = F.when(has, 1 - F.try_divide(F.col("unowned_s"), possible))
    return labelled.withColumn("availability", available).drop(
        "told_protocol_name", "is_exact", "stored_generations", "whole_generations"
    )


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
