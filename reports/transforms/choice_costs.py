"""Costs of each choice of protocol, assignor or membership over the runs of a sweep."""

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import Column, DataFrame

QUESTION: Final = "question"
CHOICE: Final = "choice"
QUESTIONS: Final = ("protocol", "assignor", "membership", "settings", "processing")
"""Comparisons: Connect's protocols, assignors of dynamic members, kinds of membership, settings,
and assignors at several processing times.
"""
COSTS: Final = (
    "rebalances",
    "interrupted",
    "moved",
    "unowned_s",
    "stopped_s",
    "processed",
    "duplicates",
    "reprocessed",
    "gaps",
    "double_run_s",
)
LAG_COSTS: Final["Mapping[str, Callable[[Column | str], Column]]"] = {
    **dict.fromkeys(("member_hours", "above_s", "scale_changes"), F.sum),
    **dict.fromkeys(("above_percent", "members_mean"), F.avg),
    **dict.fromkeys(("members_max", "delay_p50_s", "delay_p95_s", "delay_p99_s"), F.max),
}
"""What a lag objective costs (`objective.lag_costs`), and how scenarios of a seed are summed up."""
_US_PER_S: Final = 1_000_000
OF_RUNS: Final = (
    *("rebalances", "ownership", "moves", "unowned", "stopped", "imbalance"),
    "work",
)
"""Tables that the costs of runs are made of."""
_UNITS: Final = ("partition", "task")
"""Kinds of resources that are counted: a connector itself processes nothing."""


def run_costs(
    trial_rows: "DataFrame", dense: "DataFrame", tables: dict[str, "DataFrame"]
) -> "DataFrame":
    """Return the costs of each run.

    Connect runs are charged for their workers' group and not for those of sink tasks, consumer runs
    for all their groups; work is that of all members in the run.

    Input: trials, key trace_id: `scenario`, `choice`, `membership`, `seed`, `processing_ms`,
    `settings`; dense generations, for the protocol type of each group; the tables rebalances,
    moves, ownership, unowned, stopped, imbalance, work.
    Output: key trace_id, with the trial's columns and `COSTS`, `max_lag`, and `imbalance`: the
    most less the fewest resources of a member, averaged over time; where there is a table
    lag_costs, its columns too.
    """
    work = (
        tables["work"]
        .groupBy(C.TRACE_ID)
        .agg(
            *(F.sum(n).alias(n) for n in ("processed", "duplicates", "reprocessed", "gaps")),
            (F.sum("double_run_us") / _US_PER_S).alias("double_run_s"),
            F.max("max_lag").alias("max_lag"),
        )
    )
    about = _groups(trial_rows, dense)
    own = {
        name: tables[name].join(F.broadcast(about), list(C.GROUP_KEY), "left_semi")
        for name in ("rebalances", "moves", "ownership", "unowned", "stopped", "imbalance")
    }
    parts = (
        own["rebalances"].groupBy(C.TRACE_ID).agg(F.count("*").alias("rebalances")),
        own["moves"]
        .where(F.col("kind").isin(*_UNITS))
        .groupBy(C.TRACE_ID)
        .agg(F.sum("moved").alias("moved")),
        _units(own["unowned"])
        .groupBy(C.TRACE_ID)
        .agg((F.sum("unowned_us") / _US_PER_S).alias("unowned_s")),
        own["stopped"]
        .groupBy(C.TRACE_ID)
        .agg((F.sum("stopped_us") / _US_PER_S).alias("stopped_s")),
        # A hold that is not a resource's last was given up and taken up again.
        _units(own["ownership"])
        .groupBy(C.TRACE_ID)
        .agg((F.count("*") - F.count_distinct(C.GROUP_ID, C.RESOURCE)).alias("interrupted")),
        own["imbalance"]
        .where(F.col("kind").isin(*_UNITS))
        .groupBy(C.TRACE_ID)
        .agg(
            F.try_divide(
                F.sum(F.col("spread") * F.col("lasted_us")), F.sum(F.col("lasted_us"))
            ).alias("imbalance")
        ),
        work,
    )
    rows = trial_rows
    for part in (*parts, *([tables["lag_costs"]] if "lag_costs" in tables else [])):
        rows = rows.join(part, C.TRACE_ID, "left")
    return rows.fillna(0, [*COSTS, "max_lag", "imbalance"])


def _groups(trial_rows: "DataFrame", dense: "DataFrame") -> "DataFrame":
    """Return the groups that a trial compares."""
    kinds = dense.select(*C.GROUP_KEY, C.PROTOCOL_TYPE).distinct()
    wanted = F.when(F.col("membership") == "", "connect").otherwise("consumer")
    return (
        kinds.join(F.broadcast(trial_rows.select(C.TRACE_ID, "membership")), C.TRACE_ID)
        .where(F.col(C.PROTOCOL_TYPE) == wanted)
        .select(*C.GROUP_KEY)
    )


def _units(table: "DataFrame") -> "DataFrame":
    return table.where(~F.col(C.RESOURCE).startswith("c:"))


def choice_costs(costs: "DataFrame") -> "DataFrame":
    """Compare the choices over all scenarios that were run under every one of them.

    Input: costs of runs.
    Output: key (question, choice): `scenarios`, and `COSTS` summed over the scenarios of one
    seed: the median over the seeds, with `*_low` and `*_high`; `LAG_COSTS` likewise where the
    runs have them; `max_lag`, the worst of all; `worlds`, `COSTS` by `seed`.
    """
    return _over_seeds(questions(costs), (QUESTION, CHOICE))


def scenario_costs(costs: "DataFrame") -> "DataFrame":
    """Compare the choices in each scenario.

    Input: costs of runs.
    Output: key (question, scenario, choice): the columns of `choice_costs`.
    """
    return _over_seeds(questions(costs), (QUESTION, "scenario", CHOICE))


def _over_seeds(asked: "DataFrame", key: tuple[str, ...]) -> "DataFrame":
    known = {name: sums for name, sums in LAG_COSTS.items() if name in asked.columns}
    costs = {**dict.fromkeys(COSTS, F.sum), **known}
    of_seed = asked.groupBy(*key, "seed").agg(
        F.count_distinct("scenario").alias("scenarios"),
        *(sums(name).alias(name) for name, sums in costs.items()),
        F.max("max_lag").alias("max_lag"),
    )
    return of_seed.groupBy(*key).agg(
        F.max("scenarios").alias("scenarios"),
        *(F.median(name).alias(name) for name in costs),
        *(F.min(name).alias(f"{name}_low") for name in costs),
        *(F.max(name).alias(f"{name}_high") for name in costs),
        F.max("max_lag").alias("max_lag"),
        F.array_sort(F.collect_list(F.struct("seed", *COSTS))).alias("worlds"),
    )


def questions(costs: "DataFrame") -> "DataFrame":
    """Return each run under every question that it answers, with its `choice` there.

    Input: costs of runs.
    Output: the same columns and `question`. A run of static members answers `membership` alone, a
    run of dynamic members `assignor` too, a run of workers `protocol`, one of several settings
    `settings` too; a run with a processing time answers `processing` alone.
    """
    paced = costs.where(F.col("processing_ms").isNotNull())
    drawn = costs.where(F.col("processing_ms").isNull())
    consumers = drawn.where(F.col("membership") != "")
    return (
        drawn.where(F.col("membership") == "")
        .withColumn(QUESTION, F.lit("protocol"))
        .unionByName(
            consumers.where(F.col("membership") == "dynamic").withColumn(
                QUESTION, F.lit("assignor")
            )
        )
        .unionByName(
            consumers.withColumn(QUESTION, F.lit("membership")).withColumn(
                CHOICE, F.col("membership")
            )
        )
        .unionByName(
            drawn.where(F.col("settings") != "")
            .withColumn(QUESTION, F.lit("settings"))
            .withColumn(CHOICE, F.col("settings"))
        )
        .unionByName(
            paced.withColumn(QUESTION, F.lit("processing")).withColumn(
                CHOICE, F.concat_ws(" ms, ", "processing_ms", CHOICE)
            )
        )
    )
