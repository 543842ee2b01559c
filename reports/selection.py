"""Selects the rows of long tables for a page: the worst first, and totals of the whole.

The worst groups are those with most rebalances, the worst rebalances the longest. A rebalance that
is unfinished when the trace ends lasts until then.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Row = dict[str, Any]

LASTED_US: Final = "lasted_us"


def costliest(costs: "DataFrame", limits: Mapping[str, int]) -> list[Row]:
    """Return the costliest rows of some scopes, each in order of time.

    Input: costs of rebalances by scope; `limits`, the most rows of each scope wanted.
    Output: their columns and `of_rows`, how many rows the scope has in all.
    """
    order = Window.partitionBy("scope").orderBy(*_costliest_first(), "first_us", C.TRACE_ID)
    wanted = F.create_map(*(F.lit(each) for pair in limits.items() for each in pair))
    ranked = (
        costs.where(F.col("scope").isin(*limits))
        .withColumn("of_rows", F.count("*").over(Window.partitionBy("scope")))
        .withColumn("place", F.row_number().over(order))
        .where(F.col("place") <= wanted[F.col("scope")])
        .drop("place")
    )
    keys = (C.TRACE_ID, "first_us", C.CLUSTER_ID, C.GROUP_ID)
    return [row.asDict() for row in ranked.orderBy("scope", *keys).collect()]


def costliest_storms(storms: "DataFrame", limit: int) -> list[Row]:
    """Return the costliest storms, in order of time.

    Input: storms.
    Output: their columns and `of_rows`, how many there are in all.
    """
    keys = (C.TRACE_ID, "first_us", C.CLUSTER_ID, C.GROUP_ID)
    count = storms.count()
    first = storms.orderBy(*_costliest_first(), *keys).limit(limit)
    return [row.asDict() | {"of_rows": count} for row in first.orderBy(*keys).collect()]


def _costliest_first() -> tuple["Column", "Column"]:
    """Return the order of costs: by time without an owner, then by time in rebalances."""
    return F.col("unowned_s").desc_nulls_last(), F.col("rebalancing_s").desc_nulls_last()


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


def most_of_each(rows: "DataFrame", limit: int, *order: "Column | str") -> "DataFrame":
    """Return so many rows of each group, the first in this order, with `of_rows`, how many it has.

    Input: rows with a group's key.
    """
    group = Window.partitionBy(*C.GROUP_KEY)
    return (
        rows.withColumns(
            {
                "nth": F.row_number().over(group.orderBy(*order)),
                "of_rows": F.count(F.lit(1)).over(group),
            }
        )
        .where(F.col("nth") <= limit)
        .drop("nth")
    )


def drawn_owners(owned: "DataFrame", resources: int, intervals: int) -> list[Row]:
    """Return the ownership of each group's resources with most owners, its longest intervals.

    Input: ownership of few groups.
    Output: ownership with `of_rows`, in the order of time.
    """
    counted = owned.groupBy(*C.GROUP_KEY, C.RESOURCE).agg(F.count("*").alias("holds"))
    busiest = most_of_each(counted, resources, F.desc("holds"), C.RESOURCE)
    chosen = owned.join(
        F.broadcast(busiest.select(*C.GROUP_KEY, C.RESOURCE)),
        [*C.GROUP_KEY, C.RESOURCE],
        "left_semi",
    )
    length = F.col(C.TO_US) - F.col(C.FROM_US)
    kept = most_of_each(chosen, intervals, F.desc(length), C.FROM_US, C.RESOURCE, C.MEMBER_KEY)
    return _collected(kept.orderBy(C.FROM_US, *C.GROUP_KEY, C.RESOURCE, C.MEMBER_KEY))


def drawn_sessions(sessions: "DataFrame", limit: int) -> list[Row]:
    """Return sessions of each group's members: those that ended badly first, then the longest.

    Input: member sessions of few groups.
    Output: member sessions with `of_rows`, in the order of time.
    """
    is_bad = F.col("end_kind").isin("FAILED", "KICKED", "FENCED")
    length = F.col(C.END_US) - F.col("first_seen_us")
    order = (F.desc(is_bad), F.desc_nulls_first(length), "first_seen_us", C.MEMBER_ID)
    kept = most_of_each(sessions, limit, *order)
    return _collected(kept.orderBy("first_seen_us", *C.GROUP_KEY, C.MEMBER_ID))


def drawn_waits(waits: "DataFrame", limit: int) -> list[Row]:
    """Return the longest waits of each group for its members, in the order of time.

    Input: waits of few groups.
    """
    length = F.col(C.TO_US) - F.col(C.FROM_US)
    kept = most_of_each(waits, limit, F.desc(length), C.FROM_US, C.MEMBER_ID)
    return _collected(kept.orderBy(C.FROM_US, *C.GROUP_KEY, C.MEMBER_ID))


def drawn_imbalance(imbalance: "DataFrame", limit: int) -> list[Row]:
    """Return each group's imbalance that lasted longest, in the order of time.

    Input: imbalance of few groups.
    """
    kept = most_of_each(imbalance, limit, F.desc("lasted_us"), C.SYNC_US, "kind", C.GENERATION)
    return _collected(kept.orderBy(C.SYNC_US, *C.GROUP_KEY, "kind", C.GENERATION))


def densities(
    rebalances: "DataFrame", listed: "DataFrame", spans: "DataFrame", slices: int
) -> list[Row]:
    """Count the rebalances of each group in slices of the time that the runs take.

    Input: rebalances; the groups with a row of their own, few; a row per run: `trace_id`,
    `since_us`, where its slices begin, and `slice_us`, the length of one.
    Output: key (group, slice), slices from 0 on: `count`; the group is null for all groups that
    are not listed.
    """
    own = listed.select(*C.GROUP_KEY, F.lit(1).alias("is_listed"))
    place = F.floor((F.col("seen_us") - F.col("since_us")) / F.col("slice_us")).cast("int")
    is_listed = F.col("is_listed").isNotNull()
    counted = (
        rebalances.join(F.broadcast(spans), C.TRACE_ID)
        .join(F.broadcast(own), list(C.GROUP_KEY), "left")
        .groupBy(
            *(F.when(is_listed, F.col(name)).alias(name) for name in C.GROUP_KEY),
            F.least(F.lit(slices - 1), F.greatest(F.lit(0), place)).alias("slice"),
        )
        .agg(F.count("*").alias("count"))
    )
    return _collected(counted.orderBy(*C.GROUP_KEY, "slice"))


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


def source_kinds(files: "DataFrame") -> "DataFrame":
    """Return what was read of each kind of source.

    Input: source_files.
    Output: one row per trace and `kind`: `files`; the sums of `lines`, `parsed`, `known`,
    `unparsed`, `events`, `repeated`, and of `offsets`, `missing_offsets` and `skipped_bytes`, null
    for kinds without them; `problems`, of files that were not used, or not as a whole.
    """
    told = F.concat_ws(": ", "path", "problem")
    sums = (
        *("lines", "parsed", "known", "unparsed", "events", "repeated"),
        *("offsets", "missing_offsets", "skipped_bytes"),
    )
    return files.groupBy(C.TRACE_ID, "kind").agg(
        F.count("*").alias("files"),
        *(F.sum(name).alias(name) for name in sums),
        F.sort_array(F.collect_list(F.when(F.col("problem").isNotNull(), told))).alias("problems"),
    )
