"""Selects the rows of long tables for a page: the worst first, and totals of the whole.

The worst groups are those with most rebalances, the worst rebalances the longest. A rebalance that
is unfinished when the trace ends lasts until then.
"""

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Row = dict[str, Any]

LASTED_US: Final = "lasted_us"


def worst_groups(groups: "DataFrame", limit: int) -> "DataFrame":
    """Return the groups with most rebalances, or else most time in them; worst first."""
    return groups.orderBy(
        F.desc("rebalances"),
        F.desc_nulls_last("rebalancing_ms"),
        C.GROUP_ID,
        C.CLUSTER_ID,
        C.TRACE_ID,
    ).limit(limit)


def of_groups(rows: "DataFrame", groups: "DataFrame") -> "DataFrame":
    """Return the rows that belong to one of these groups, which are few."""
    keys = groups.select(*C.GROUP_KEY)
    return rows.join(F.broadcast(keys), list(C.GROUP_KEY), "left_semi")


def with_group_names(rebalances: "DataFrame", groups: "DataFrame") -> "DataFrame":
    """Add `scenario`, `assignor`, `source`, `timing_quality` and `lasted_us` to rebalances."""
    named = groups.select(
        *C.GROUP_KEY, "scenario", "assignor", "source", "timing_quality", "last_ts_us"
    )
    until = F.coalesce(C.END_US, "last_ts_us")
    return (
        rebalances.join(named, list(C.GROUP_KEY))
        .withColumn(LASTED_US, until - F.coalesce(C.START_US, "seen_us"))
        .drop("last_ts_us")
    )


def longest(rebalances: "DataFrame", limit: int) -> list[Row]:
    """Return the longest rebalances, longest first.

    Input: rebalances with names (`with_group_names`).
    """
    return _collected(rebalances.orderBy(F.desc(LASTED_US), *_in_time()).limit(limit))


def longest_in_time(rebalances: "DataFrame", limit: int) -> list[Row]:
    """Return the longest rebalances, in the order of time.

    Input: rebalances with names (`with_group_names`).
    """
    kept = rebalances.orderBy(F.desc(LASTED_US), *_in_time()).limit(limit)
    return _collected(kept.orderBy(*_in_time()))


def first_windows(windows: "DataFrame", limit: int) -> "DataFrame":
    """Return the first fault windows of each run, so many in all."""
    return windows.orderBy("window_no", C.TRACE_ID, C.CLUSTER_ID).limit(limit)


def effects_on(effects: "DataFrame", windows: "DataFrame", groups: "DataFrame") -> list[Row]:
    """Return what happened to these groups in these windows, both few.

    Input: window effects; fault windows; groups.
    Output: effects with a rebalance or with time without an owner, the group with most of them
    first; `unowned_s`, null where the trace does not tell owners, and `ownership_quality`.
    """
    keys = windows.select(C.TRACE_ID, C.CLUSTER_ID, "window_no")
    named = groups.select(*C.GROUP_KEY, "ownership_quality", F.col("unowned_s").alias("known"))
    unowned_s = F.when(F.col("known").isNotNull(), F.col("unowned_us") / 1_000_000)
    rebalances = F.col("rebalances_during") + F.coalesce("rebalances_after", F.lit(0))
    return _collected(
        effects.join(F.broadcast(keys), keys.columns, "left_semi")
        .join(F.broadcast(named), list(C.GROUP_KEY))
        .withColumn("unowned_s", unowned_s)
        .where((rebalances > 0) | (F.coalesce("unowned_s", F.lit(0.0)) > 0))
        .drop("known", "unowned_us")
        .orderBy(F.desc(rebalances), F.desc_nulls_last("unowned_s"), *C.GROUP_KEY)
    )


def totals(groups: "DataFrame") -> Row:
    """Return sums over all groups, beyond a page's limits; null where no group has a value."""
    counts = ("rebalances", "logical_rebalances", "open_rebalances")
    known = ("moved", "interrupted", "restarted_in_place", "unowned_s")
    (row,) = groups.agg(
        F.count("*").alias("groups"),
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in counts),
        *(F.sum(name).alias(name) for name in known),
    ).collect()
    return row.asDict()


def _in_time() -> list["Column"]:
    return [F.col(name) for name in ("seen_us", *C.GROUP_KEY, C.REBALANCE_NO)]


def _collected(table: "DataFrame") -> list[Row]:
    return [row.asDict() for row in table.collect()]
