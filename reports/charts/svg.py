"""Elements of SVG and HTML as escaped markup, and the frame of a chart along a time axis."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup, escape

from coordinator_sim_reports.charts.scale import TimeAxis

WIDE: Final = 10_000
"""Width of the coordinates of paths, which cannot be written in percent."""


@dataclass(frozen=True, slots=True)
class RowName:
    """The name of a row of a chart, left of it.

    Args:
        text: The name.
        link: Where it leads to on the page; empty for nowhere.
        note: Shown behind the name in a softer colour.
    """

    text: str
    link: str = ""
    note: str = ""


def element(name: str, content: str = "", /, **attributes: object) -> Markup:
    """Return an element; its attributes and, unless it is markup, its content are escaped.

    Args:
        name: Name of the element.
        content: Text or markup inside.
        attributes: `class_` is written `class`, other underscores are hyphens; None is left out.
    """
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_text(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if content == "" and name in {"rect", "line", "path", "circle"}:
        return Markup(f"<{name}{told}/>")  # noqa: S704 - its parts are escaped
    return Markup(f"<{name}{told}>{escape(content)}</{name}>")  # noqa: S704 - as above


def joined(parts: Iterable[str]) -> Markup:
    """Return parts of markup one behind another."""
    return Markup("").join(parts)


def percent(value: float) -> str:
    """Format a percentage for an attribute."""
    return f"{short(value)}%"


def short(value: float) -> str:
    """Format a number with at most three decimals."""
    text = f"{value:.3f}".rstrip("0").rstrip(".")
    return "0" if text in {"-0", ""} else text


def bars_path(bars: Iterable[tuple[float, float, float, float]]) -> str:
    """Return the path of many rectangles.

    Args:
        bars: Place and width in percent, top and height in pixels.
    """
    scale = WIDE / 100
    return "".join(
        f"M{round(left * scale)} {short(top)}h{max(1, round(width * scale))}v{short(height)}"
        f"h-{max(1, round(width * scale))}z"
        for left, width, top, height in bars
    )


def stretched(content: Markup, height: float) -> Markup:
    """Return paths (`bars_path`) stretched over the width of their chart."""
    return element(
        "svg",
        content,
        viewBox=f"0 0 {WIDE} {short(height)}",
        preserveAspectRatio="none",
        width="100%",
        height=short(height),
    )


def time_chart(
    names: Sequence[tuple[float, RowName]],
    body: Markup,
    axis: TimeAxis,
    *,
    row_height: float,
    label: str,
    height: float,
) -> Markup:
    """Return a chart of rows along a time axis, with the rows' names left of it.

    Args:
        names: Names of rows, each with its top in pixels.
        body: What is drawn, `height` pixels high; places across are percentages.
        axis: The time axis.
        row_height: Height of a row in pixels.
        label: The chart in one sentence, for readers who do not see it.
        height: Height in pixels.
    """
    high = short(height)
    ticks = axis.ticks()
    grid = joined(
        element("line", x1=percent(at), x2=percent(at), y1="0", y2="100%") for at, _ in ticks
    )
    words = joined(element("text", text, x=percent(at), y="15") for at, text in ticks)
    plot = element(
        "svg",
        element("g", grid, class_="grid")
        + element("svg", body, class_="moved", x="0%", width="100%", height=high),
        class_="plot",
        height=high,
        role="img",
        aria_label=label,
    )
    foot = element("svg", words, class_="axis", height="20", aria_hidden="true")
    area = element(
        "div",
        plot + foot + element("div", axis.title, class_="axis-title"),
        class_="area",
    )
    return element(
        "div",
        element(
            "div",
            joined(_name(name, top, row_height) for top, name in names),
            class_="names",
            style=f"height:{high}px",
        )
        + area,
        class_="chart",
        data_from=short(axis.from_s),
        data_to=short(axis.to_s),
        data_calendar="1" if axis.is_calendar else None,
    )


def legend(entries: Iterable[tuple[str, str]]) -> Markup:
    """Return the legend of a chart.

    Args:
        entries: Class of the mark, and what it means.
    """
    items = (
        element(
            "li",
            element(
                "svg",
                element("rect", class_=kind, x="1", y="1", width="14", height="12"),
                width="16",
                height="14",
                aria_hidden="true",
            )
            + f" {text}",
        )
        for kind, text in entries
    )
    return element("ul", joined(items), class_="legend")


def _name(name: RowName, top: float, height: float) -> Markup:
    text = element("a", name.text, href=f"#{name.link}") if name.link else escape(name.text)
    note = element("span", name.note, class_="soft") if name.note else ""
    return element(
        "div",
        text + (Markup(" ") + note if note else ""),
        style=f"top:{short(top)}px;height:{short(height)}px;line-height:{short(height)}px",
        title=f"{name.text} {name.note}".strip(),
    )


def _text(value: object) -> str:
    return short(value) if isinstance(value, float) else str(value)
