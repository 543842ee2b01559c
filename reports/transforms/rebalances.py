"""Rebalances, generations and the chains they form, from events."""

from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim.protocol.embedded import COOPERATIVE_PROTOCOLS
from reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STORM_WINDOW_US: Final = 300_000_000
STORM_COUNT: Final = 5
FOLLOWUP_GAP_US: Final = 1_000_000
CHAIN_GAP_US: Final = 30_000_000

_MOVED_COORDINATOR: Final = (
    "COORD_RESIGNED",
    "COORD_ELECTED",
    "UNLOAD_DONE",
    "GROUP_UNLOADED",
    "GROUP_LOADED",
)
_FOLLOWUP_TEXT: Final = "need to revoke partitions and re-join"


def group_events(events: "DataFrame") -> "DataFrame":
    """Every event of a group, those of its coordinator's partition included.

    Input: events.
    Output: the same columns, no null `group_id`: an event that names an offsets partition but no
    group is repeated for each group whose own events name that partition in the same file, for
    one trace may hold logs of unrelated brokers. Events of neither are dropped.
    """
    told = events.withColumn("file", F.coalesce(F.col("source_ref"), F.lit("")))
    named = told.where(F.col(C.GROUP_ID).isNotNull())
    homes = (
        named.where(F.col("offsets_partition").isNotNull())
        .select(*C.GROUP_KEY, "offsets_partition", "file")
        .distinct()
    )
    shared = (
        told.where(F.col(C.GROUP_ID).isNull() & F.col(C.EVENT).isin(*_MOVED_COORDINATOR))
        .drop(C.GROUP_ID)
        .join(homes, [C.TRACE_ID, C.CLUSTER_ID, "offsets_partition", "file"])
    )
    return named.unionByName(shared).drop("file")


def rebalances(events: "DataFrame") -> "DataFrame":
    """One row per rebalance: from leaving a generation to the next stable or empty one.

    Input: events of groups (`group_events`), in any order; `ordinal` orders them.
    Output: key (trace_id, cluster_id, group_id, rebalance_no), numbered from 1. `start_us`,
    `join_done_us`, `sync_us`, `empty_us`, `end_us` (null while open); `join_ms`, `sync_ms`,
    `total_ms`; `reason`, `reason_text`; `members` of the new generation; `outcome`:
    STABLE, EMPTY, COORDINATOR_MOVED, NO_SYNC (joined, then superseded), SUPERSEDED (by another
    before the join ended) or OPEN (the trace ends); `initial_delay` (from an empty group),
    `followup` (a later round of one hand-over), `storm` (the fifth or later within five
    minutes), `chain_no` (rebalances less than 30 s apart share one).
    """
    return _with_neighbours(_with_outcome(_one_row_each(events)))


def _first_time(event: str) -> Column:
    return F.min(F.when(F.col(C.EVENT) == event, F.col(C.TS_US)))


def _of_start(name: str) -> Column:
    return F.first(F.when(F.col(C.EVENT) == "PREPARE_REBALANCE", F.col(name)), ignorenulls=True)


def _one_row_each(events: "DataFrame") -> "DataFrame":
    is_start = (F.col(C.EVENT) == "PREPARE_REBALANCE").cast("int")
    history = Window.partitionBy(*C.GROUP_KEY).orderBy(C.ORDINAL)
    moved = F.col(C.EVENT).isin(*_MOVED_COORDINATOR)
    result = F.col(C.EVENT).isin("JOIN_COMPLETE", "SYNC_LEADER", "GROUP_STABLE", "GROUP_EMPTY")
    return (
        events.withColumn(C.REBALANCE_NO, F.sum(is_start).over(history))
        .where(F.col(C.REBALANCE_NO) > 0)
        .groupBy(*C.GROUP_KEY, C.REBALANCE_NO)
        .agg(
            _of_start(C.INCARNATION).alias(C.INCARNATION),
            _first_time("PREPARE_REBALANCE").alias(C.START_US),
            _of_start(C.GENERATION).alias("old_generation"),
            F.max(F.when(result, F.col(C.GENERATION))).alias(C.GENERATION),
            F.coalesce(_of_start(C.REASON), F.lit("UNKNOWN")).alias(C.REASON),
            _of_start("reason_text").alias("reason_text"),
            _of_start("client_reason").alias("client_reason"),
            _of_start("state_from").alias("state_from"),
            _first_time("JOIN_COMPLETE").alias(C.JOIN_DONE_US),
            _first_time("SYNC_LEADER").alias(C.SYNC_US),
            _first_time("GROUP_EMPTY").alias("empty_us"),
            F.min(F.when(moved, F.col(C.TS_US))).alias("unload_us"),
            F.max(F.when(result, F.col(C.MEMBERS))).alias(C.MEMBERS),
            F.max(F.when(result, F.col(C.PROTOCOL_NAME))).alias(C.PROTOCOL_NAME),
        )
    )


def _with_outcome(rows: "DataFrame") -> "DataFrame":
    history = Window.partitionBy(*C.GROUP_KEY).orderBy(C.REBALANCE_NO)
    superseded = F.col("lead_start_us").isNotNull()
    outcome = (
        F.when(F.col(C.SYNC_US).isNotNull(), "STABLE")
        .when(F.col("empty_us").isNotNull(), "EMPTY")
        .when(F.col("unload_us").isNotNull(), "COORDINATOR_MOVED")
        .when(superseded & F.col(C.JOIN_DONE_US).isNotNull(), "NO_SYNC")
        .when(superseded, "SUPERSEDED")
        .otherwise("OPEN")
    )
    end = (
        F.when(F.col(C.OUTCOME) == "STABLE", F.col(C.SYNC_US))
        .when(F.col(C.OUTCOME) == "EMPTY", F.col("empty_us"))
        .when(F.col(C.OUTCOME) == "COORDINATOR_MOVED", F.col("unload_us"))
        .when(F.col(C.OUTCOME) != "OPEN", F.col("lead_start_us"))
    )
    initial = (F.col("state_from") == "Empty") | (F.col("old_generation") == 0)
    return (
        rows.withColumn("lead_start_us", F.lead(C.START_US).over(history))
        .withColumn(C.OUTCOME, outcome)
        .withColumn(C.END_US, end)
        .withColumn("join_ms", (F.col(C.JOIN_DONE_US) - F.col(C.START_US)) / 1000)
        .withColumn("sync_ms", (F.col(C.SYNC_US) - F.col(C.JOIN_DONE_US)) / 1000)
        .withColumn("total_ms", (F.col(C.END_US) - F.col(C.START_US)) / 1000)
        .withColumn("initial_delay", F.coalesce(initial, F.lit("false").cast("boolean")))
        .drop("state_from", "unload_us", "lead_start_us")
    )


def _with_neighbours(rows: "DataFrame") -> "DataFrame":
    history = Window.partitionBy(*C.GROUP_KEY).orderBy(C.REBALANCE_NO)
    in_time = Window.partitionBy(*C.GROUP_KEY).orderBy(C.START_US, C.REBALANCE_NO)
    fifth_us = F.lag(C.START_US, STORM_COUNT - 1).over(in_time)
    is_storm = F.col(C.START_US) - fifth_us <= STORM_WINDOW_US
    gap = F.col(C.START_US) - F.lag(C.END_US).over(history)
    asked = F.concat_ws(" ", "client_reason", "reason_text")
    # A broker log names no protocol; there, a member that rejoins by itself tells as much.
    cooperative = F.coalesce(
        F.col(C.PROTOCOL_NAME).isin(*COOPERATIVE_PROTOCOLS),
        F.col(C.REASON).isin("LEADER_REJOIN", "METADATA_CHANGED"),
    )
    next_round = (
        cooperative
        & (gap <= FOLLOWUP_GAP_US)
        & (F.col(C.MEMBERS) == F.lag(C.MEMBERS).over(history))
    )
    starts_chain = F.when(gap < CHAIN_GAP_US, 0).otherwise(1)
    return (
        rows.withColumn(
            C.FOLLOWUP,
            asked.contains(_FOLLOWUP_TEXT) | F.coalesce(next_round, F.lit("false").cast("boolean")),
        )
        .withColumn("storm", F.coalesce(is_storm, F.lit("false").cast("boolean")))
        .withColumn("starts_chain", starts_chain)
        .withColumn("chain_no", F.sum("starts_chain").over(history))
        .drop("starts_chain")
    )


def generations(events: "DataFrame", rebalance_rows: "DataFrame") -> "DataFrame":
    """One row per generation that a trace tells of, with or without assignments.

    Input: events of groups; rebalances.
    Output: key (group, incarnation, generation): `join_done_us`, `sync_us`, `until_us` (when the
    next rebalance began, or the group emptied; null when it lasts), `leader_id`,
    `protocol_name`, `members`, `static_members`, `stored` (the leader's assignment was accepted).
    Ghosts, generations that a gap in the numbers betrays, are no rows; `ghosts_before` counts
    those right before this one.
    """
    told = events.where(
        F.col(C.EVENT).isin("JOIN_COMPLETE", "SYNC_LEADER", "GROUP_STABLE", "GROUP_EMPTY")
        & F.col(C.GENERATION).isNotNull()
    )
    history = Window.partitionBy(*C.LIFE_KEY).orderBy(C.GENERATION)
    rows = told.groupBy(*C.GENERATION_KEY).agg(
        _first_time("JOIN_COMPLETE").alias(C.JOIN_DONE_US),
        _first_time("SYNC_LEADER").alias(C.SYNC_US),
        _first_time("GROUP_EMPTY").alias("empty_us"),
        F.max("leader_id").alias("leader_id"),
        F.max(C.PROTOCOL_NAME).alias(C.PROTOCOL_NAME),
        F.max(C.MEMBERS).alias(C.MEMBERS),
        F.max("static_members").alias("static_members"),
    )
    ended = rebalance_rows.groupBy(*C.LIFE_KEY, F.col("old_generation").alias(C.GENERATION)).agg(
        F.min(C.START_US).alias("next_start_us")
    )
    ghosts = F.col(C.GENERATION) - F.lag(C.GENERATION).over(history) - 1
    return (
        rows.join(ended, list(C.GENERATION_KEY), "left")
        .withColumn("until_us", F.coalesce(F.col("next_start_us"), F.col("empty_us")))
        .withColumn("stored", F.col(C.SYNC_US).isNotNull())
        .withColumn("ghosts_before", F.coalesce(ghosts, F.lit(0)))
        .drop("empty_us", "next_start_us")
    )


def convergence(rebalance_rows: "DataFrame") -> "DataFrame":
    """How long each disturbance took to settle: rebalances less than 30 s apart are one.

    Input: rebalances.
    Output: key (group, chain_no): `rebalance_count`, `start_us`, `settled_us` (the last leader's
    SyncGroup; null when none), `convergence_ms`.
    """
    return (
        rebalance_rows.groupBy(*C.GROUP_KEY, "chain_no")
        .agg(
            F.count("*").alias("rebalance_count"),
            F.min(C.START_US).alias(C.START_US),
            F.max(C.SYNC_US).alias("settled_us"),
        )
        .withColumn("convergence_ms", (F.col("settled_us") - F.col(C.START_US)) / 1000)
    )
