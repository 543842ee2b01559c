"""What a group's rebalances cost: time without an owner, stopped worlds, double ownership."""

from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from reports.transforms.ownership import covered, empty_times, overlap_us

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RESOURCE: Final = (*C.GROUP_KEY, C.RESOURCE)
_US_PER_S: Final = 1_000_000
_FOR_EVER_US: Final = (1 << 63) - 1


def gaps(intervals: "DataFrame", runs: "DataFrame", key: tuple[str, ...]) -> "DataFrame":
    """The time between the intervals of a key, and from the last one to the end of the trace.

    Input: disjoint intervals per `key` (`covered`), `key` beginning with the trace; runs.
    Output: one row per (`key`, `from_us`), `to_us` > `from_us`. Time before the first interval
    is no gap.
    """
    history = Window.partitionBy(*key).orderBy(C.FROM_US)
    ends = runs.select(C.TRACE_ID, F.col("last_ts_us").alias("trace_end_us"))
    return (
        intervals.withColumn("next_us", F.lead(C.FROM_US).over(history))
        .join(F.broadcast(ends), C.TRACE_ID)
        .select(
            *key,
            F.col(C.TO_US).alias(C.FROM_US),
            F.coalesce("next_us", "trace_end_us").alias(C.TO_US),
        )
        .where(F.col(C.TO_US) > F.col(C.FROM_US))
    )


def unowned(owned: "DataFrame", rebalance_rows: "DataFrame", runs: "DataFrame") -> "DataFrame":
    """Gaps in which a resource of a non-empty group had no owner, and what the group was doing.

    Input: ownership; rebalances; runs.
    Output: key (group, resource, from_us): `to_us`; `unowned_us`, of which `joining_us` while
    members joined, `syncing_us` between the end of the join and the leader's assignment, and
    `waiting_us` outside any rebalance: failures not yet detected, answers under way, scheduled
    delays.
    """
    whole = gaps(covered(owned, _RESOURCE), runs, _RESOURCE)
    empties = empty_times(rebalance_rows, runs).select(
        *C.GROUP_KEY,
        F.col(C.FROM_US).alias("other_from_us"),
        F.col(C.TO_US).alias("other_to_us"),
    )
    without_members = (
        whole.join(empties, list(C.GROUP_KEY), "left")
        .groupBy(*_RESOURCE, C.FROM_US, C.TO_US)
        .agg(F.sum(_shared()).alias("empty_us"))
    )
    phases = _phases(rebalance_rows)
    during = (
        without_members.join(phases, list(C.GROUP_KEY), "left")
        .groupBy(*_RESOURCE, C.FROM_US, C.TO_US, "empty_us")
        .agg(
            F.sum(F.when(F.col("phase") == "join", _shared()).otherwise(0)).alias("joining_us"),
            F.sum(F.when(F.col("phase") == "sync", _shared()).otherwise(0)).alias("syncing_us"),
        )
    )
    length = F.col(C.TO_US) - F.col(C.FROM_US) - F.col("empty_us")
    return (
        during.withColumn("unowned_us", length)
        .where(F.col("unowned_us") > 0)
        .withColumn(
            "waiting_us",
            F.greatest(F.lit(0), F.col("unowned_us") - F.col("joining_us") - F.col("syncing_us")),
        )
        .drop("empty_us")
    )


def _shared() -> Column:
    return overlap_us(C.FROM_US, C.TO_US, "other_from_us", "other_to_us")


def _phases(rebalance_rows: "DataFrame") -> "DataFrame":
    joined = F.coalesce(C.JOIN_DONE_US, C.END_US)
    join = rebalance_rows.select(
        *C.GROUP_KEY,
        F.lit("join").alias("phase"),
        F.col(C.START_US).alias("other_from_us"),
        joined.alias("other_to_us"),
    )
    sync = rebalance_rows.select(
        *C.GROUP_KEY,
        F.lit("sync").alias("phase"),
        joined.alias("other_from_us"),
        F.col(C.END_US).alias("other_to_us"),
    )
    return join.unionByName(sync)


def stop_the_world(
    owned: "DataFrame", rebalance_rows: "DataFrame", runs: "DataFrame"
) -> "DataFrame":
    """Per rebalance, the time in which nobody in the group owned anything.

    A rebalance stops the group until somebody owns something again: for Connect that is when the
    first task has started, after the group has settled. Idle time that begins after the rebalance
    is not charged to it.

    Input: ownership; rebalances; runs.
    Output: key (group, rebalance_no): `stopped_us`, 0 where somebody always worked. A group's
    first assignment stops nothing. Rebalances still open are absent.
    """
    history = Window.partitionBy(*C.GROUP_KEY).orderBy(C.REBALANCE_NO)
    idle = gaps(covered(owned, C.GROUP_KEY), runs, C.GROUP_KEY).select(
        *C.GROUP_KEY,
        F.col(C.FROM_US).alias("other_from_us"),
        F.col(C.TO_US).alias("other_to_us"),
    )
    begins_within = F.col("other_from_us") < F.greatest(C.END_US, F.col(C.START_US) + 1)
    shared = F.when(
        begins_within, overlap_us(C.START_US, "charged_to_us", "other_from_us", "other_to_us")
    ).otherwise(0)
    following = F.when(F.col(C.OUTCOME) == "EMPTY", F.col(C.END_US)).otherwise(
        F.coalesce(F.lead(C.START_US).over(history), F.lit(_FOR_EVER_US))
    )
    return (
        rebalance_rows.withColumn("charged_to_us", following)
        .where(F.col(C.END_US).isNotNull())
        .join(idle, list(C.GROUP_KEY), "left")
        .groupBy(*C.GROUP_KEY, C.REBALANCE_NO)
        .agg(F.sum(shared).alias("stopped_us"))
    )


def double_ownership(owned: "DataFrame") -> "DataFrame":
    """Partition-seconds in which a resource had more than one owner.

    Input: ownership.
    Output: one row per group: `double_owned_s`; 0.0 for correct eager clients.
    """
    length = F.sum(F.col(C.TO_US) - F.col(C.FROM_US))
    held = owned.groupBy(*_RESOURCE).agg(length.alias("held_us"))
    union = covered(owned, _RESOURCE).groupBy(*_RESOURCE).agg(length.alias("covered_us"))
    return (
        held.join(union, list(_RESOURCE))
        .groupBy(*C.GROUP_KEY)
        .agg((F.sum(F.col("held_us") - F.col("covered_us")) / _US_PER_S).alias("double_owned_s"))
    )


def observed(rebalance_rows: "DataFrame", runs: "DataFrame") -> "DataFrame":
    """How long each group was seen with members: from its first rebalance on, without empty times.

    Input: rebalances; runs.
    Output: one row per group: `observed_s`.
    """
    ends = runs.select(C.TRACE_ID, F.col("last_ts_us").alias("trace_end_us"))
    life = (
        rebalance_rows.groupBy(*C.GROUP_KEY)
        .agg(F.min(C.START_US).alias(C.START_US))
        .join(F.broadcast(ends), C.TRACE_ID)
    )
    empty = (
        empty_times(rebalance_rows, runs)
        .groupBy(*C.GROUP_KEY)
        .agg(F.sum(F.col(C.TO_US) - F.col(C.FROM_US)).alias("empty_us"))
    )
    seen = F.col("trace_end_us") - F.col(C.START_US) - F.coalesce(F.col("empty_us"), F.lit(0))
    return life.join(empty, list(C.GROUP_KEY), "left").select(
        *C.GROUP_KEY, (seen / _US_PER_S).alias("observed_s")
    )
