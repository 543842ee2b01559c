"""Overlaps of a group's intervals, and marks within them or before, in one pass in time order.

A join that adds up what each pair shares would make as many rows as there are pairs: quadratic in
the rebalances of a group. Here both are cut into their ends and sorted by time once.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COVER: Final = "cover"
_AT: Final = "at_us"
_SIGN: Final = "sign"
_IS_ROW: Final = "is_row"


def with_covered_time(
    intervals: "DataFrame",
    covers: "DataFrame",
    kinds: Sequence[str],
    *,
    outside: str | None = None,
) -> "DataFrame":
    """Add the time that the covers of each kind share with each interval.

    The covered time until an instant is a running sum over the ends of the covers, and what an
    interval shares with them is the difference of that sum between its two ends. Covers of one
    kind that overlap each other count once each.

    Input: intervals with a group's key, `from_us`, `to_us` >= `from_us` and any columns that tell
    them apart; covers: group's key, `cover` (one of `kinds`, or `outside`), `from_us`, `to_us`; a
    cover without one of its ends, or of no length, counts nothing. Time under a cover of the kind
    `outside` counts for no kind.
    Output: the intervals' columns and one `KIND_us` per kind, 0 where nothing is shared.
    """
    told = kinds if outside is None else (*kinds, outside)
    ends = _ends_of(intervals).unionByName(_steps_of(covers, told), allowMissingColumns=True)
    order = Window.partitionBy(*C.GROUP_KEY).orderBy(_AT)
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    passed_us = F.coalesce(F.col(_AT) - F.lag(_AT).over(order), F.lit(0))
    step = {kind: F.coalesce(F.col(f"{kind}_step"), F.lit(0)) for kind in told}
    # Ends of one instant may come in any order: no time passes between them.
    opened = ends.withColumns(
        {"passed_us": passed_us}
        | {f"{kind}_before": F.sum(step[kind]).over(so_far) - step[kind] for kind in told}
    )
    if outside is not None:
        counted_us = F.when(F.col(f"{outside}_before") == 0, F.col("passed_us")).otherwise(0)
        opened = opened.withColumn("passed_us", counted_us)
    summed = opened.withColumns(
        {
            f"{kind}_sum": F.sum(F.col(f"{kind}_before") * F.col("passed_us")).over(so_far)
            for kind in kinds
        }
    )
    return (
        summed.where(F.col(_SIGN).isNotNull())
        .groupBy(*intervals.columns)
        .agg(*(F.sum(F.col(_SIGN) * F.col(f"{kind}_sum")).alias(f"{kind}_us") for kind in kinds))
    )


def with_mark_count(intervals: "DataFrame", marks: "DataFrame", name: str) -> "DataFrame":
    """Add the number of a group's marks in each interval, its start included, its end not.

    Input: intervals as in `with_covered_time`; marks with a group's key and `from_us`; a mark
    without an instant counts nothing.
    Output: the intervals' columns and `name`, 0 where no mark is.
    """
    points = marks.where(F.col(C.FROM_US).isNotNull()).select(
        *C.GROUP_KEY, F.col(C.FROM_US).alias(_AT), F.lit(1).alias("mark")
    )
    ends = _ends_of(intervals).unionByName(points, allowMissingColumns=True)
    # At one instant the ends come first, so a mark there is in what begins, not in what ends.
    so_far = (
        Window.partitionBy(*C.GROUP_KEY)
        .orderBy(_AT, F.col("mark").isNotNull())
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    passed = F.coalesce(F.sum("mark").over(so_far), F.lit(0))
    return (
        ends.withColumn("passed", passed)
        .where(F.col(_SIGN).isNotNull())
        .groupBy(*intervals.columns)
        .agg(F.sum(F.col(_SIGN) * F.col("passed")).alias(name))
    )


def with_latest(rows: "DataFrame", marks: "DataFrame", name: str) -> "DataFrame":
    """Add to each row the last mark of its group at or before it; null before any.

    Input: rows with a group's key and `from_us`; marks with the same two and the column `name`.
    Output: the rows' columns and `name`.
    """
    order = Window.partitionBy(*C.GROUP_KEY).orderBy(C.FROM_US, _IS_ROW)
    both = rows.withColumn(_IS_ROW, F.lit(1)).unionByName(
        marks.where(F.col(C.FROM_US).isNotNull()).select(
            *C.GROUP_KEY, C.FROM_US, name, F.lit(0).alias(_IS_ROW)
        ),
        allowMissingColumns=True,
    )
    return (
        both.withColumn(name, F.last(name, ignorenulls=True).over(order))
        .where(F.col(_IS_ROW) == 1)
        .drop(_IS_ROW)
    )


def _ends_of(intervals: "DataFrame") -> "DataFrame":
    """Return both ends of each interval: the sum up to its start is subtracted again."""
    ends = F.array(_end(C.FROM_US, -1), _end(C.TO_US, 1))
    return intervals.select("*", F.inline(ends))


def _end(name: str, sign: int) -> Column:
    return F.struct(F.col(name).alias(_AT), F.lit(sign).alias(_SIGN))


def _steps_of(covers: "DataFrame", kinds: Sequence[str]) -> "DataFrame":
    """Return both ends of each cover, with the change in the number of open covers of its kind."""
    ends = F.array(_end(C.FROM_US, 1), _end(C.TO_US, -1))
    return (
        covers.where(F.col(C.TO_US) > F.col(C.FROM_US))
        .select(*C.GROUP_KEY, COVER, F.inline(ends).alias(_AT, "change"))
        .select(
            *C.GROUP_KEY,
            _AT,
            *(
                F.when(F.col(COVER) == kind, F.col("change")).alias(f"{kind}_step")
                for kind in kinds
            ),
        )
    )
