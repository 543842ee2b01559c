"""The range of a page: what its script needs to show a part of the time, and the times of rows.

A rebalance lies in a range in which it began, with all that it costs, as in `trace.window`.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from markupsafe import Markup

from coordinator_sim_reports.charts import svg
from coordinator_sim_reports.charts.scale import TimeAxis
from coordinator_sim_reports.charts.timeline import axis_of, seconds_of
from coordinator_sim_reports.group_table import group_key
from coordinator_sim_reports.page_rows import ReportRows
from coordinator_sim_reports.run_labels import RunLabel

Row = Mapping[str, Any]

SUMMED: Final = frozenset(
    {
        *("rebalances", "open_rebalances", "followups", "finished"),
        *("p50_ms", "p90_ms", "p99_ms", "max_ms", "longest_ms", "rebalancing_ms", "most_members"),
        *("stopped_s", "unowned_s", "moved"),
    }
)
"""Figures that follow from the rebalances of a range; any other one is of the whole trace."""
_FIGURES: Final = {
    "total_ms": 1,
    "members": 1,
    "stopped_us": 1_000,
    "unowned_us": 1_000,
    "moved": 1,
}
"""Columns of rebalances, and what they are divided by: long times are in milliseconds."""
_HEIGHT: Final = 34
_FOLLOWUP: Final = 1
_OPEN: Final = 2


def span_of(label: RunLabel, first_us: int, last_us: int | None = None) -> str:
    """Return an instant, or a time from one to another, as the attribute `data-span` of a row."""
    ends = (first_us,) if last_us in {None, first_us} else (first_us, last_us)
    return " ".join(svg.short(_ms(at, label) / 1000) for at in ends if at is not None)


def marks_of(name: str) -> Markup:
    """Return the attribute that tells what a range does to a figure of this name."""
    return Markup(' data-sum="{}"').format(name) if name in SUMMED else Markup(" data-whole")


def summed(name: str, text: str) -> Markup:
    """Return a figure within a sentence, which a range computes anew."""
    return svg.element("span", text, data_sum=name)


def overview_chart(rows: ReportRows, labels: Mapping[str, RunLabel]) -> Markup:
    """Draw how many rebalances of all groups began in each slice of the time of the page."""
    counts: Counter[int] = Counter()
    for row in rows.densities:
        counts[row["slice"]] += row["count"]
    axis: TimeAxis = axis_of(list(labels.values()))
    most, width = max(counts.values(), default=1), 100 / rows.options.limits.slices
    bars = (
        (slice_no * width, width, _HEIGHT - high, high)
        for slice_no, count in sorted(counts.items())
        for high in [3 + (_HEIGHT - 3) * count / most]
    )
    return svg.time_chart(
        [],
        svg.stretched(svg.element("path", class_="p0", d=svg.bars_path(bars)), _HEIGHT),
        axis,
        row_height=_HEIGHT,
        label=f"When {counts.total():,} rebalances began over {axis.title}",
        height=_HEIGHT,
    )


def range_data(rows: ReportRows, labels: Mapping[str, RunLabel]) -> Markup:
    """Return the rebalances of a page in order of time, as JSON for its script.

    Returns:
        `end`, the last instant in seconds on the page's axis; `reasons`, names; and in columns
        `at` (milliseconds since the one before), `group` (row of the table of groups, -1 for none),
        `reason`, `state` (1 for a follow-up, 2 more for an open one), and figures; a column of
        figures is absent where no rebalance has one. Columns are empty where the page does not hold
        all rebalances.
    """
    numbers = {group_key(group): number for number, group in enumerate(rows.groups)}
    reasons = sorted(rows.reason_counts)
    at_ms = [_ms(row["seen_us"], labels.get(row["trace_id"])) for row in rows.ranged]
    columns: dict[str, list[Any]] = {
        "at": [at - before for before, at in zip([0, *at_ms], at_ms, strict=False)],
        "group": [numbers.get(group_key(row), -1) for row in rows.ranged],
        "reason": [reasons.index(row["reason"]) for row in rows.ranged],
        "state": [
            _FOLLOWUP * bool(row["followup"]) + _OPEN * (row["outcome"] == "OPEN")
            for row in rows.ranged
        ],
    }
    for name, unit in _FIGURES.items():
        figures = [_short(row[name], unit) for row in rows.ranged]
        if any(value is not None for value in figures):
            columns[name.replace("_us", "_ms")] = figures
    end_s = max(seconds_of(label.end_us, label) for label in labels.values())
    told = msgspec.json.encode({"end": end_s, "reasons": reasons, **columns}).decode()
    return Markup(told.replace("<", "\\u003c"))  # noqa: S704 - no text of it ends the element


def _ms(ts_us: int, label: RunLabel | None) -> int:
    """Return a whole millisecond on the page's axis; worlds without a label start at 0."""
    return (ts_us - ((label and label.origin_us) or 0)) // 1000


def _short(value: float | None, unit: int) -> float | None:
    if value is None:
        return None
    return value / unit if value % unit else int(value // unit)
