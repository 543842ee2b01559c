"""Horizontal bars: stacked by parts, or one bar a row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from coordinator_sim_reports.charts.scale import format_number, round_values
from coordinator_sim_reports.charts.svg import (
    RowName,
    element,
    joined,
    legend,
    percent,
    short,
)

_ROW_HEIGHT: Final = 32
_BAR_TOP: Final = 5
_BAR_HEIGHT: Final = 22
_ROOM: Final = 0.88
"""Share of the width for the longest bar, at most: the rest holds its number."""
_LEAST_ROOM: Final = 0.3
_LETTER: Final = 0.037
"""Share of the width that a letter behind a bar takes where charts stand three in a row."""
_READABLE: Final = 7.0
"""Least width in percent of a part whose number is written in it."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A row of bars.

    Args:
        name: Name of the row.
        values: Length of each part, from 0 on.
        note: Written behind the name in a softer colour.
        text: Number behind the bar; None for the sum of the parts.
        is_best: Whether the row is set off as the best.
    """

    name: str
    values: Sequence[float]
    note: str = ""
    text: str | None = None
    is_best: bool = False


def bar_chart(
    rows: Sequence[Bar], *, label: str, parts: Sequence[str] = (), title: str = ""
) -> Markup:
    """Return rows of bars.

    Args:
        rows: The rows from top to bottom; all have as many values as there are parts.
        label: The chart in one sentence, for readers who do not see it.
        parts: What each part is, for the legend; none where bars have one part.
        title: What the length of a bar means; without it there is no axis.
    """
    longest = max((sum(row.values) for row in rows), default=0.0)
    letters = max((len(_number_behind(row)) + 1 for row in rows), default=0)
    room = max(_LEAST_ROOM, min(_ROOM, 1 - letters * _LETTER))
    scale = 100 * room / longest if longest > 0 else 0.0
    height = _ROW_HEIGHT * len(rows)
    bodies = joined(
        _bar(row, number * _ROW_HEIGHT, scale, parts) for number, row in enumerate(rows)
    )
    ticks = round_values(0, longest / room, 6) if title and longest > 0 else ()
    grid = joined(
        element("line", x1=percent(at * scale), x2=percent(at * scale), y1="0", y2="100%")
        for at in ticks
    )
    plot = element(
        "svg",
        element("g", grid, class_="grid") + bodies,
        class_="plot",
        height=height,
        role="img",
        aria_label=_told(label, rows),
    )
    words = joined(
        element("text", format_number(at), x=percent(at * scale), y="15") for at in ticks
    )
    foot = (
        element("svg", words, class_="axis", height="20", aria_hidden="true")
        + element("div", title, class_="axis-title")
        if title
        else Markup("")
    )
    names = joined(_name(RowName(row.name, note=row.note), best=row.is_best) for row in rows)
    chart = element(
        "div",
        element("div", names, class_="names") + element("div", plot + foot, class_="area"),
        class_="chart bars",
    )
    return (legend((f"p{n}", part) for n, part in enumerate(parts)) if parts else "") + chart


def _bar(row: Bar, top: float, scale: float, parts: Sequence[str]) -> Markup:
    drawn: list[Markup] = []
    left = 0.0
    for number, value in enumerate(row.values):
        width = value * scale
        place = {"x": percent(left), "y": top + _BAR_TOP}
        told = f"{row.name}: {parts[number]}, {format_number(round(value, 1))}" if parts else ""
        if value > 0:
            drawn.append(
                element(
                    "rect",
                    element("title", told) if told else "",
                    class_=f"p{number}" + (" best" if row.is_best else ""),
                    width=percent(width),
                    height=_BAR_HEIGHT,
                    **place,
                )
            )
        if parts and width >= _READABLE:
            middle = percent(left + width / 2)
            number_text = format_number(round(value, 1 if value < 10 else 0))  # noqa: PLR2004 - a digit
            drawn.append(
                element("text", number_text, class_=f"in in{number}", x=middle, y=top + 20)
            )
        left += width
    text = f"\N{NO-BREAK SPACE}{_number_behind(row)}"
    behind = element("text", text, class_="total", x=percent(left), y=top + 20)
    return joined((*drawn, behind))


def _number_behind(row: Bar) -> str:
    if row.text is not None:
        return row.text
    total = sum(row.values)
    return format_number(round(total, 1 if total < 100 else 0))  # noqa: PLR2004 - three digits


def _name(name: RowName, *, best: bool) -> Markup:
    note = element("span", f" {name.note}", class_="soft") if name.note else Markup("")
    return element(
        "div",
        Markup("{}{}").format(name.text, note),
        class_="best" if best else None,
        style=f"height:{short(_ROW_HEIGHT)}px",
        title=f"{name.text} {name.note}".strip(),
    )


def _told(label: str, rows: Sequence[Bar]) -> str:
    numbers = (f"{row.name} {row.text or format_number(round(sum(row.values), 1))}" for row in rows)
    return f"{label}: {'; '.join(numbers)}"
