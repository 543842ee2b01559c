"""Rebalances, generations and the chains they form, from events.

`coordinator_sim.trace` defines rebalances and their durations, group by group, as for `explain` and
`replay`: Spark only brings each group's events together, in order.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim.trace.client_reasons import CLIENT_EVENTS
from coordinator_sim.trace.history import (
    CLIENT_SOURCES,
    COORDINATOR_EVENTS,
    ENDS_COORDINATOR,
    home_partition,
)
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.sources import ddl_of
from coordinator_sim_reports.transforms.keys import group_hash
from coordinator_sim_reports.workers.rebalance_batches import (
    LINE_COLUMNS,
    REBALANCE_SCHEMA,
    rebalance_batches,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def group_events(events: "DataFrame", kinds: Collection[str] | None = None) -> "DataFrame":
    """Return every event of a group, those of its coordinator's partition included.

    Input: events; `kinds`, those among them, or None where that is not known: without any
    resignation there is nothing to repeat, and nothing to find out for it.
    Output: the same columns, no null `group_id`: a broker's resignation of an offsets partition
    is repeated for each group of that partition that the same file has told of before, for one
    trace may hold logs of unrelated brokers. Other events of no group are dropped.
    """
    if kinds is not None and not repeats_events(kinds):
        return events.where(F.col(C.GROUP_ID).isNotNull())
    told = events.withColumn("file", F.coalesce(F.col("source_ref"), F.lit("")))
    named = told.where(F.col(C.GROUP_ID).isNotNull())
    home = F.udf(home_partition, "int", useArrow=False)
    homes = (
        named.groupBy(*C.GROUP_KEY, "file")
        .agg(
            F.min_by(
                "offsets_partition",
                F.when(F.col("offsets_partition").isNotNull(), F.col(C.ORDINAL)),
            ).alias("told"),
            F.min(C.ORDINAL).alias("since"),
        )
        .withColumn("offsets_partition", home(C.GROUP_ID, "told"))
        .drop("told")
    )
    resigned = [event.value for event in ENDS_COORDINATOR]
    shared = (
        told.where(F.col(C.GROUP_ID).isNull() & F.col(C.EVENT).isin(*resigned))
        .drop(C.GROUP_ID)
        .join(homes, [C.TRACE_ID, C.CLUSTER_ID, "offsets_partition", "file"])
        .where(F.col(C.ORDINAL) > F.col("since"))
        .drop("since")
    )
    return named.unionByName(shared).drop("file")


def repeats_events(kinds: Collection[str]) -> bool:
    """Whether `group_events` repeats events of a trace that has these kinds of them."""
    return any(event.value in kinds for event in ENDS_COORDINATOR)


def rebalances(events: "DataFrame") -> "DataFrame":
    """Return one row per rebalance: from PreparingRebalance to the next Stable or Empty.

    Input: events of groups (`group_events`), in any order; `ordinal` orders them.
    Output: key (trace_id, cluster_id, group_id, rebalance_no), numbered from 1. `seen_us`, the
    time of its first line; `start_us` (null where the trace begins later), `join_done_us`,
    `sync_us`, `empty_us`, `end_us` (null while open); `join_ms`, `sync_ms`, `total_ms`, never
    negative, null where either end is; `is_exact` (false where a clock ran backwards in it);
    `reason`, `reason_text`; `members` of the new generation; `outcome`: STABLE, EMPTY,
    COORDINATOR_MOVED, NO_SYNC (joined, then superseded), SUPERSEDED (by another before the join
    ended) or OPEN (no line tells its end); `initial_delay` (from an empty group), `followup` (a
    later round of one hand-over), `first_cause` (what the log of the client that began it tells as
    its first reason; null where none does), `client_cause`, its kind, `chain_no` (the first of the
    rebalances less than 30 s apart that it belongs to), `storm_no` (which storm of its group it is
    in, 0 for none). Cause and cost, as
    `coordinator_sim.replay.costs` defines them: `trigger`, `trigger_client`, `root_no`,
    `cause_confidence`; `initial_ms`, `dead_ms` and `slow_ms`, the parts of the join phase;
    `restart` (came back, went, or empty), `deploy_no` (0 for none); `source_refs`, the
    lines that tell its start, join and end, as `file:line`, or `event N` where no file is named.
    """
    kinds = [event.value for event in COORDINATOR_EVENTS]
    told = [event.value for event in CLIENT_EVENTS]
    clients = [source.value for source in CLIENT_SOURCES]
    is_clients = F.coalesce(F.col("source"), F.lit("")).isin(*clients)
    return (
        events.where(
            F.col(C.EVENT).isin(*kinds) & ~is_clients | F.col(C.EVENT).isin(*told) & is_clients
        )
        .withColumn("attrs", F.when(is_clients, F.col("attrs")))
        .select(group_hash(), C.TRACE_ID, C.CLUSTER_ID, C.ORDINAL, *LINE_COLUMNS)
        .repartition(C.GROUP_HASH)
        .sortWithinPartitions(C.GROUP_HASH, C.ORDINAL)
        .mapInArrow(rebalance_batches, ddl_of(REBALANCE_SCHEMA))
    )


def _first_time(*events: str) -> Column:
    return F.min(F.when(F.col(C.EVENT).isin(*events), F.col(C.TS_US)))


_TARGET: Final = "TARGET_COMPUTED"
"""A generation of a consumer group is a target: it counts from then on."""


_OF_GENERATIONS: Final = (
    *(*C.GENERATION_KEY, C.EVENT, C.TS_US),
    *("leader_id", C.PROTOCOL_NAME, C.MEMBERS, "static_members"),
)
"""Columns of the events that generations are made of."""


def generations(events: "DataFrame", rebalance_rows: "DataFrame") -> "DataFrame":
    """Return one row per generation of a trace, with or without assignments.

    Input: events of groups; rebalances.
    Output: key (group, incarnation, generation): `join_done_us`, `sync_us`, `until_us` (when the
    next rebalance began, or the group emptied; null when it lasts), `leader_id`,
    `protocol_name`, `members`, `static_members`, `stored` (the leader's assignment was accepted).
    Ghosts, generations known only by a gap in the numbers, have no rows; `ghosts_before` counts
    those right before this one.
    """
    told = events.where(
        F.col(C.EVENT).isin(
            *("JOIN_COMPLETE", "SYNC_LEADER", "GROUP_STABLE", "GROUP_EMPTY", _TARGET)
        )
        & F.col(C.GENERATION).isNotNull()
    )
    # One shuffle and one sort for both, the sort by numbers first: texts take several times longer.
    life = F.xxhash64(*C.LIFE_KEY).alias("life")
    history = Window.partitionBy("life", *C.LIFE_KEY).orderBy(C.GENERATION)
    rows = (
        told.select(life, *_OF_GENERATIONS)
        .repartition("life")
        .groupBy("life", *C.GENERATION_KEY)
        .agg(
            _first_time("JOIN_COMPLETE", _TARGET).alias(C.JOIN_DONE_US),
            _first_time("SYNC_LEADER", _TARGET).alias(C.SYNC_US),
            _first_time("GROUP_EMPTY").alias("empty_us"),
            F.max("leader_id").alias("leader_id"),
            F.max(C.PROTOCOL_NAME).alias(C.PROTOCOL_NAME),
            F.max(C.MEMBERS).alias(C.MEMBERS),
            F.max("static_members").alias("static_members"),
            F.max(F.col(C.EVENT) == _TARGET).alias("is_target"),
        )
    )
    ended = rebalance_rows.groupBy(*C.LIFE_KEY, F.col("old_generation").alias(C.GENERATION)).agg(
        F.min(C.START_US).alias("next_start_us")
    )
    skipped = F.col(C.GENERATION) - F.lag(C.GENERATION).over(history) - 1
    # An epoch of a consumer group that the next one overtakes has no target, and nothing is lost.
    has_targets = F.max("is_target").over(Window.partitionBy("life", *C.LIFE_KEY))
    ghosts = F.when(~has_targets, skipped)
    return (
        rows.join(ended, list(C.GENERATION_KEY), "left")
        .withColumn("until_us", F.coalesce(F.col("next_start_us"), F.col("empty_us")))
        .withColumn("stored", F.col(C.SYNC_US).isNotNull())
        .withColumn("ghosts_before", F.coalesce(ghosts, F.lit(0)))
        .drop("empty_us", "next_start_us", "life", "is_target")
    )


def convergence(rebalance_rows: "DataFrame") -> "DataFrame":
    """Return how long each disturbance took to settle: rebalances less than 30 s apart are one.

    Input: rebalances.
    Output: key (group, chain_no): `rebalance_count`, `start_us` (null where the trace begins
    later), `settled_us` (when its last rebalance was Stable or Empty; null when it never was),
    `convergence_ms`, null when either is.
    """
    settled = F.coalesce(C.SYNC_US, "empty_us")
    return (
        rebalance_rows.groupBy(*C.GROUP_KEY, "chain_no")
        .agg(
            F.count("*").alias("rebalance_count"),
            F.min_by(C.START_US, C.REBALANCE_NO).alias(C.START_US),
            F.max_by(settled, C.REBALANCE_NO).alias("settled_us"),
        )
        .withColumn("convergence_ms", (F.col("settled_us") - F.col(C.START_US)) / 1000)
    )
