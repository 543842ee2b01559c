"""Density of rebalances: a row for each group, and how many began in each slice of time."""

from collections.abc import Mapping, Sequence
from math import log2
from typing import Final

from markupsafe import Markup

from coordinator_sim_reports.charts import svg
from coordinator_sim_reports.charts.scale import TimeAxis

_ROW_HEIGHT: Final = 14
_LEVELS: Final = 5


def density_chart(
    rows: Sequence[tuple[svg.RowName, Mapping[int, int]]], slices: int, axis: TimeAxis
) -> Markup:
    """Draw the counts as bars that are darker and higher the more rebalances began in a slice.

    Args:
        rows: Name of each row from top to bottom, and its counts by the number of the slice.
        slices: Number of slices of the axis.
        axis: The time axis, cut into slices of one length.
    """
    most = max((count for _, counts in rows for count in counts.values()), default=1)
    spans = _spans(most)
    width = 100 / slices
    by_level: dict[int, list[tuple[float, float, float, float]]] = {}
    for number, (_, counts) in enumerate(rows):
        for where, count in sorted(counts.items()):
            level = level_of(count, most)
            high = (_ROW_HEIGHT - 2) * (level + 1) / _LEVELS
            top = (number + 1) * _ROW_HEIGHT - 1 - high
            by_level.setdefault(level, []).append((where * width, width, top, high))
    paths = svg.joined(
        svg.element(
            "path", svg.element("title", spans[level]), class_=f"d{level}", d=svg.bars_path(bars)
        )
        for level, bars in sorted(by_level.items())
    )
    height = _ROW_HEIGHT * len(rows)
    return svg.legend((f"d{level}", text) for level, text in spans.items()) + svg.time_chart(
        [(n * _ROW_HEIGHT, name) for n, (name, _) in enumerate(rows)],
        svg.stretched(paths, height),
        axis,
        row_height=_ROW_HEIGHT,
        label=f"Rebalances of {len(rows):,} rows of groups in {slices:,} slices of {axis.title}",
        height=height,
    )


def level_of(count: int, most: int) -> int:
    """Return the level of a count from 0 to 4: each level is a like multiple of the one below.

    Args:
        count: From 1 to `most`.
        most: The highest count.
    """
    if most <= _LEVELS:
        return count - 1
    return min(_LEVELS - 1, int(_LEVELS * log2(count) / log2(most)))


def _spans(most: int) -> dict[int, str]:
    """Return the counts of each level in words."""
    counts: dict[int, list[int]] = {}
    for count in range(1, most + 1):
        counts.setdefault(level_of(count, most), []).append(count)
    return {
        level: f"{own[0]:,}" if len(own) == 1 else f"{own[0]:,}-{own[-1]:,}"
        for level, own in counts.items()
    }
