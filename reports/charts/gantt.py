"""Owners of each resource of a group over time."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup

from coordinator_sim_reports.charts import svg
from coordinator_sim_reports.charts.scale import TimeAxis
from coordinator_sim_reports.charts.timeline import seconds_of
from coordinator_sim_reports.run_labels import RunLabel

Row = Mapping[str, Any]

_ROW_HEIGHT: Final = 15
_HUES: Final = 8
"""Number of colours; members beyond share them, and have a number of their own."""
_NUMBERED: Final = 3.0
"""Least width in percent of an interval that carries its owner's number."""


def gantt_chart(
    resources: Sequence[tuple[str, Sequence[Row]]],
    numbers: Mapping[str, int],
    label: RunLabel,
    axis: TimeAxis,
    *,
    name: str,
) -> Markup:
    """Draw a row for each resource: who owned it when; a gap is time without an owner.

    Args:
        resources: Name of each resource from top to bottom, and its rows of `ownership`.
        numbers: The number of each member key, which its intervals carry.
        label: The run.
        axis: The time axis.
        name: Name of the group, for readers who do not see the chart.
    """
    by_member: dict[str, list[tuple[float, float, float, float]]] = {}
    words: list[Markup] = []
    for row_number, (_, intervals) in enumerate(resources):
        top = row_number * _ROW_HEIGHT
        for row in intervals:
            left, right = (
                axis.percent(seconds_of(row[end], label)) for end in ("from_us", "to_us")
            )
            key = row["member_key"]
            by_member.setdefault(key, []).append((left, right - left, top + 1, _ROW_HEIGHT - 2))
            if right - left >= _NUMBERED:
                middle = svg.percent((left + right) / 2)
                words.append(svg.element("text", str(numbers[key]), x=middle, y=top + 11))
    paths = svg.joined(
        svg.element(
            "path",
            svg.element("title", f"{numbers[key]}: {key}"),
            class_=f"m{numbers[key] % _HUES}",
            d=svg.bars_path(by_member[key]),
        )
        for key in sorted(by_member, key=lambda each: numbers[each])
    )
    height = _ROW_HEIGHT * len(resources)
    return svg.time_chart(
        [(n * _ROW_HEIGHT, svg.RowName(resource)) for n, (resource, _) in enumerate(resources)],
        svg.stretched(paths, height) + svg.element("g", svg.joined(words), class_="owner-numbers"),
        axis,
        row_height=_ROW_HEIGHT,
        label=f"Owners of {len(resources):,} resources of {name} over {axis.title}",
        height=height,
    )
