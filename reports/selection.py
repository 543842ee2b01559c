"""What a page shows of tables that are too long for it: the worst first, and counts of the whole.

The groups with most rebalances are the worst ones, and of rebalances the longest. A rebalance that
is unfinished when the trace ends has lasted until then.
"""

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Row = dict[str, Any]

LASTED_US: Final = "lasted_us"


class PageLimits(Struct, frozen=True, kw_only=True):
    """How much of the tables a page and a summary hold; the Parquet tables hold all.

    Args:
        groups: Groups of the summary, and of the counts by reason.
        causes: Rows of the table of groups and reasons; a group is listed whole or not at all.
        drawn_groups: Lines of the timeline.
        drawn: Marks of the timeline.
        listed: Rows of the table of rebalances.
    """

    groups: int = 2_000
    causes: int = 200
    drawn_groups: int = 40
    drawn: int = 5_000
    listed: int = 200


def worst_groups(groups: "DataFrame", limit: int) -> "DataFrame":
    """The groups with most rebalances, or most time in them where these are equal; worst first."""
    return groups.orderBy(
        F.desc("rebalances"),
        F.desc_nulls_last("rebalancing_ms"),
        C.GROUP_ID,
        C.CLUSTER_ID,
        C.TRACE_ID,
    ).limit(limit)


def of_groups(rows: "DataFrame", groups: "DataFrame") -> "DataFrame":
    """The rows that belong to one of these groups, which are few."""
    keys = groups.select(*C.GROUP_KEY)
    return rows.join(F.broadcast(keys), list(C.GROUP_KEY), "left_semi")


def with_group_names(rebalances: "DataFrame", groups: "DataFrame") -> "DataFrame":
    """Rebalances with `scenario`, `assignor`, `source`, `timing_quality` and `lasted_us`."""
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
    """The longest rebalances, longest first.

    Input: rebalances with names (`with_group_names`).
    """
    return _collected(rebalances.orderBy(F.desc(LASTED_US), *_in_time()).limit(limit))


def longest_in_time(rebalances: "DataFrame", limit: int) -> list[Row]:
    """The longest rebalances, in the order of time.

    Input: rebalances with names (`with_group_names`).
    """
    kept = rebalances.orderBy(F.desc(LASTED_US), *_in_time()).limit(limit)
    return _collected(kept.orderBy(*_in_time()))


def totals(groups: "DataFrame") -> Row:
    """Sums over all groups, whatever a page shows of them; null where no group knows."""
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
