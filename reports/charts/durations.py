"""Rebalances of one group: when each was, how long it lasted, and how it ended."""

from collections.abc import Mapping, Sequence
from math import log10
from typing import Any, Final

from markupsafe import Markup

from coordinator_sim_reports.charts import svg
from coordinator_sim_reports.charts.scale import TimeAxis
from coordinator_sim_reports.charts.timeline import OUTCOMES, seconds_of
from coordinator_sim_reports.run_labels import RunLabel

Row = Mapping[str, Any]

_HEIGHT: Final = 96
_BASE_MS: Final = 1.0
_MARKS: Final = (
    (1, "1 ms"),
    (1_000, "1 s"),
    (60_000, "1 min"),
    (3_600_000, "1 h"),
    (86_400_000, "1 day"),
)
"""Heights of the logarithmic scale that have a name."""


def duration_chart(
    rebalances: Sequence[Row], label: RunLabel, axis: TimeAxis, *, name: str
) -> Markup:
    """Draw a bar for each rebalance: its width is its time, its height too, on a log scale.

    Args:
        rebalances: Rows of the table of rebalances with `when` and `took`, texts for readers; one
            without an end lasts to the end of the run.
        label: The run.
        axis: The time axis.
        name: Name of the group, for readers who do not see the chart.
    """
    longest = max((_lasted_ms(row, label) for row in rebalances), default=_BASE_MS)
    top_ms = max(10_000.0, longest * 1.3)
    marks = [(ms, text) for ms, text in _MARKS if ms <= top_ms]
    lines = svg.joined(
        svg.element("line", class_="level", x1="0", x2="100%", y1=y, y2=y)
        for y in (svg.short(_y(ms, top_ms)) for ms, _ in marks[1:])
    )
    bars = svg.joined(_bar(row, label, axis, top_ms) for row in rebalances)
    return svg.time_chart(
        [(_y(ms, top_ms) - 8, svg.RowName(text)) for ms, text in marks],
        lines + bars,
        axis,
        row_height=16,
        label=f"Durations of {len(rebalances):,} rebalances of {name} over {axis.title}",
        height=_HEIGHT,
    )


def _bar(row: Row, label: RunLabel, axis: TimeAxis, top_ms: float) -> Markup:
    left, right = (axis.percent(seconds_of(at, label)) for at in _ends_us(row, label))
    y = _y(_lasted_ms(row, label), top_ms)
    told = f"{row['when']}: {row['reason']}, {row['took']}, {row['outcome']}"
    return svg.element(
        "rect",
        svg.element("title", told),
        class_=f"mark {OUTCOMES.get(row['outcome'], 'open')}",
        x=svg.percent(left),
        y=svg.short(y),
        width=svg.percent(max(0.0, right - left)),
        height=svg.short(_HEIGHT - y),
    )


def _lasted_ms(row: Row, label: RunLabel) -> float:
    total_ms: float | None = row["total_ms"]
    if total_ms is None:
        since_us, end_us = _ends_us(row, label)
        total_ms = (end_us - since_us) / 1000
    return max(_BASE_MS, total_ms)


def _ends_us(row: Row, label: RunLabel) -> tuple[int, int]:
    """Return the start and end of a rebalance; first sight and trace end where unknown."""
    start_us = row["start_us"] if row["start_us"] is not None else row["seen_us"]
    return start_us, row["end_us"] if row["end_us"] is not None else label.end_us


def _y(ms: float, top_ms: float) -> float:
    """Return how far below the upper edge a duration stands; a millisecond is 4 pixels high."""
    share = log10(ms / _BASE_MS) / log10(top_ms / _BASE_MS)
    return _HEIGHT - 4 - share * (_HEIGHT - 8)
