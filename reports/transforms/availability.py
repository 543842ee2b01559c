"""Costs of a group's rebalances in time, for many traces: downtime, and double ownership.

`coordinator_sim.replay.charges` defines pauses, standstill and time without an owner; these are
the same figures, and tests hold the two together.
"""

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.transforms.overlaps import COVER, with_covered_time, with_latest
from coordinator_sim_reports.transforms.ownership import covered, empty_times

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RESOURCE: Final = (*C.GROUP_KEY, C.RESOURCE)
_US_PER_S: Final = 1_000_000
_QUIET_US: Final = "quiet_us"
_FOR_EVER_US: Final = (1 << 63) - 1


def gaps(intervals: "DataFrame", runs: "DataFrame", key: tuple[str, ...]) -> "DataFrame":
    """Return the time between the intervals of a key, and from the last one to the trace's end.

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
    """Return gaps in which a resource of a non-empty group had no owner, with the group's activity.

    Input: ownership; rebalances; runs.
    Output: key (group, resource, from_us): `to_us`; `unowned_us`, of which `joining_us` while
    members joined, `syncing_us` between the end of the join and the leader's assignment, and
    `waiting_us` outside any rebalance: failures not yet detected, answers under way, scheduled
    delays.
    """
    whole = gaps(covered(owned, _RESOURCE), runs, _RESOURCE)
    empties = empty_times(rebalance_rows, runs).withColumn(COVER, F.lit("empty"))
    covers = _phases(rebalance_rows).unionByName(empties)
    during = with_covered_time(whole, covers, ("empty", "joining", "syncing"))
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


def _phases(rebalance_rows: "DataFrame") -> "DataFrame":
    joined = F.coalesce(C.JOIN_DONE_US, C.END_US)
    join = rebalance_rows.select(
        *C.GROUP_KEY,
        F.lit("joining").alias(COVER),
        F.col(C.START_US).alias(C.FROM_US),
        joined.alias(C.TO_US),
    )
    sync = rebalance_rows.select(
        *C.GROUP_KEY,
        F.lit("syncing").alias(COVER),
        joined.alias(C.FROM_US),
        F.col(C.END_US).alias(C.TO_US),
    )
    return join.unionByName(sync)


def stop_the_world(
    owned: "DataFrame", rebalance_rows: "DataFrame", runs: "DataFrame"
) -> "DataFrame":
    """Return per rebalance the time in which no member of the group owned anything.

    A rebalance stops the group until some member owns something again: for Connect that is when the
    first task has started, after the group has settled. Idle time that begins after the rebalance
    is not charged to it.

    Input: ownership; rebalances; runs.
    Output: key (group, rebalance_no): `stopped_us`, 0 where somebody always worked. A group's
    first assignment stops nothing. Rebalances still open are absent.
    """
    tiles = _charged(rebalance_rows)
    idle = gaps(covered(owned, C.GROUP_KEY), runs, C.GROUP_KEY)
    ended = tiles.where(F.col(_QUIET_US).isNotNull()).drop(_QUIET_US)
    stopped = _from_a_rebalance_on(idle, tiles).withColumn(COVER, F.lit("stopped"))
    return with_covered_time(ended, stopped, ("stopped",)).select(
        *C.GROUP_KEY, C.REBALANCE_NO, "stopped_us"
    )


def paused(
    owned: "DataFrame", marks: "DataFrame", rebalance_rows: "DataFrame", runs: "DataFrame"
) -> "DataFrame":
    """Return the pauses of living members: from the last that each gives up to what ends it.

    A pause ends with the member's next assignment, whatever that gives, or with the member. What
    begins while no rebalance runs counts from the next one on.

    Input: ownership; member marks, of groups whose members pause; rebalances; runs.
    Output: rows of group, `from_us` (when the pause ended) and `paused_us`.
    """
    member = (*C.GROUP_KEY, C.MEMBER_KEY)
    idle = gaps(covered(owned, member), runs, member)
    ends = marks.select(*member, F.coalesce("synced_us", "gone_us").alias(C.FROM_US)).where(
        F.col(C.FROM_US).isNotNull()
    )
    both = idle.unionByName(ends.withColumn("ends_us", F.col(C.FROM_US)), allowMissingColumns=True)
    # At one instant the marks come first: what gives a member nothing ends its hold and its pause.
    later = Window.partitionBy(*member).orderBy(F.col(C.FROM_US).desc(), F.col("ends_us").isNull())
    found = (
        both.withColumn("next_us", F.last("ends_us", ignorenulls=True).over(later))
        .withColumn("last_us", F.max("ends_us").over(Window.partitionBy(*member)))
        .where(F.col("ends_us").isNull() & F.col("last_us").isNotNull())
        .withColumn(C.TO_US, F.least(C.TO_US, "next_us"))
    )
    return (
        _from_a_rebalance_on(found, _charged(rebalance_rows))
        .where(F.col(C.TO_US) > F.col(C.FROM_US))
        .select(
            *C.GROUP_KEY,
            F.col(C.TO_US).alias(C.FROM_US),
            (F.col(C.TO_US) - F.col(C.FROM_US)).alias("paused_us"),
        )
    )


def _charged(rebalance_rows: "DataFrame") -> "DataFrame":
    """Return the time in which idleness is charged to each rebalance: to the next, or to its end.

    Input: rebalances.
    Output: key (group, rebalance_no): `from_us`, `to_us`, and `quiet_us`, from which on idleness
    that begins is not charged; null in rebalances still open. One without a start is absent.
    """
    history = Window.partitionBy(*C.GROUP_KEY).orderBy(C.REBALANCE_NO)
    following = F.coalesce(F.lead(C.START_US).over(history), F.lit(_FOR_EVER_US))
    end = F.greatest(C.START_US, C.END_US)
    return rebalance_rows.where(F.col(C.START_US).isNotNull()).select(
        *C.GROUP_KEY,
        C.REBALANCE_NO,
        F.col(C.START_US).alias(C.FROM_US),
        F.greatest(C.START_US, F.when(F.col(C.OUTCOME) == "EMPTY", end).otherwise(following)).alias(
            C.TO_US
        ),
        F.when(F.col(C.END_US).isNotNull(), F.greatest(end, F.col(C.START_US) + 1)).alias(
            _QUIET_US
        ),
    )


def _from_a_rebalance_on(idle: "DataFrame", tiles: "DataFrame") -> "DataFrame":
    """Return idle times without their uncharged parts: one that begins in a quiet time is cut.

    Input: gaps of groups; `_charged`.
    Output: as the gaps; `from_us` may lie behind `to_us`, where nothing is left.
    """
    marks = tiles.select(*C.GROUP_KEY, C.FROM_US, F.struct(_QUIET_US, C.TO_US).alias("tile"))
    is_quiet = F.col(C.FROM_US) >= F.col(f"tile.{_QUIET_US}")
    begin = F.when(is_quiet, F.greatest(C.FROM_US, f"tile.{C.TO_US}")).otherwise(F.col(C.FROM_US))
    return with_latest(idle, marks, "tile").select(*C.GROUP_KEY, begin.alias(C.FROM_US), C.TO_US)


def double_ownership(owned: "DataFrame") -> "DataFrame":
    """Return partition-seconds in which a resource had more than one owner.

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
    """Return how long each group was seen with members, from its first rebalance on.

    Input: rebalances; runs.
    Output: one row per group: `observed_s`.
    """
    ends = runs.select(C.TRACE_ID, F.col("last_ts_us").alias("trace_end_us"))
    life = (
        rebalance_rows.groupBy(*C.GROUP_KEY)
        .agg(F.min("seen_us").alias(C.START_US))
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
