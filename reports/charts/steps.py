"""A figure of a group that holds from one generation to the next, as steps."""

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from coordinator_sim_reports.charts.scale import TimeAxis, format_number, round_values
from coordinator_sim_reports.charts.svg import (
    WIDE,
    RowName,
    element,
    short,
    stretched,
    time_chart,
)

_HEIGHT: Final = 64


def step_chart(
    steps: Sequence[tuple[float, float]], end_s: float, axis: TimeAxis, *, label: str
) -> Markup:
    """Draw a line that keeps each value until the next one.

    Args:
        steps: Instants in seconds on the axis, ascending, each with the value from then on.
        end_s: Where the last value ends.
        axis: The time axis.
        label: The chart in one sentence, for readers who do not see it.
    """
    highest = max((value for _, value in steps), default=0.0)
    top = max(1.0, highest)

    def y(value: float) -> float:
        return _HEIGHT - 6 - value / top * (_HEIGHT - 14)

    places = [(round(axis.percent(at_s) * WIDE / 100), short(y(value))) for at_s, value in steps]
    path = "".join(
        f"H{x}V{high}" if number else f"M{x} {high}" for number, (x, high) in enumerate(places)
    )
    path += f"H{round(axis.percent(end_s) * WIDE / 100)}"
    told = element("path", class_="step", d=path)
    return time_chart(
        [(y(value) - 8, RowName(format_number(value))) for value in round_values(0, top, 2)],
        stretched(told, _HEIGHT),
        axis,
        row_height=16,
        label=label,
        height=_HEIGHT,
    )
