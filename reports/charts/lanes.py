"""Lanes of members: when each was there, how it went, and when the group waited for it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup

from coordinator_sim_reports.charts import svg
from coordinator_sim_reports.charts.scale import TimeAxis, format_number
from coordinator_sim_reports.charts.timeline import seconds_of
from coordinator_sim_reports.run_labels import RunLabel

Row = Mapping[str, Any]

_ROW_HEIGHT: Final = 20
ENDS: Final = {
    "LEFT": ("\N{LEFTWARDS ARROW}", "left"),
    "FAILED": ("\N{MULTIPLICATION SIGN}", "failed"),
    "KICKED": ("\N{MULTIPLICATION SIGN}", "removed"),
    "FENCED": ("\N{MULTIPLICATION SIGN}", "fenced"),
    "REPLACED": ("\N{CLOCKWISE OPEN CIRCLE ARROW}", "came back under another id"),
}
"""Ends of a session with their sign and words; an OPEN one lasts to the end of the trace."""


def lanes_chart(
    members: Sequence[tuple[str, Sequence[Row], Sequence[Row]]],
    label: RunLabel,
    axis: TimeAxis,
    *,
    name: str,
) -> Markup:
    """Draw a lane for each member.

    Args:
        members: Name of each member from top to bottom, its sessions (rows of
            `member_sessions`), and its waits (rows of `waits`).
        label: The run.
        axis: The time axis.
        name: Name of the group, for readers who do not see the chart.
    """
    height = _ROW_HEIGHT * len(members)
    lives, paths, signs = [], [], []
    for number, (member, sessions, waits) in enumerate(members):
        top = number * _ROW_HEIGHT
        lives += [_life(row, member, top, label, axis) for row in sessions]
        paths += _waits(waits, member, top, label, axis)
        signs += [_signs(row, top, label, axis) for row in sessions]
    body = svg.joined(lives) + svg.stretched(svg.joined(paths), height) + svg.joined(signs)
    kinds = {row["kind"] for _, _, waits in members for row in waits}
    entries = [("session", "member of the group")]
    entries += [("waited", "waited for until it rejoined")] if "JOINED" in kinds else []
    entries += [("waited lost", "waited for in vain")] if kinds - {"JOINED"} else []
    ends = {row["end_kind"] for _, sessions, _ in members for row in sessions}
    signs_told = ", ".join(
        f"{sign} {words}" for kind, (sign, words) in ENDS.items() if kind in ends
    )
    told = svg.element(
        "p",
        f"\N{BLACK RIGHT-POINTING SMALL TRIANGLE} joined, {signs_told}".rstrip(", "),
        class_="signs",
    )
    return (
        svg.legend(entries)
        + told
        + svg.time_chart(
            [(n * _ROW_HEIGHT, svg.RowName(member)) for n, (member, _, _) in enumerate(members)],
            body,
            axis,
            row_height=_ROW_HEIGHT,
            label=f"Sessions of {len(members):,} members of {name} over {axis.title}",
            height=height,
        )
    )


def _life(row: Row, member: str, top: float, label: RunLabel, axis: TimeAxis) -> Markup:
    left, right = _ends(row, label, axis)
    _, how = ENDS.get(row["end_kind"], ("", "still there at the end of the trace"))
    told = f"{member}: from {label.when(row['first_seen_us'])}, {how}"
    if row["end_us"] is not None:
        told += f" at {label.when(row['end_us'])}"
    return svg.element(
        "rect",
        svg.element("title", told),
        class_="session",
        x=svg.percent(left),
        y=top + 5,
        width=svg.percent(right - left),
        height=_ROW_HEIGHT - 10,
    )


def _waits(
    waits: Sequence[Row], member: str, top: float, label: RunLabel, axis: TimeAxis
) -> list[Markup]:
    drawn = []
    for kind in dict.fromkeys(row["kind"] for row in waits):
        own = [row for row in waits if row["kind"] == kind]
        seconds = sum(row["to_us"] - row["from_us"] for row in own) / 1e6
        vain = "" if kind == "JOINED" else ", in vain"
        told = (
            f"{member}: waited for in {len(own):,} rebalances{vain}, "
            f"{format_number(round(seconds, 1))} s"
        )
        places = (
            [axis.percent(seconds_of(row[end], label)) for end in ("from_us", "to_us")]
            for row in own
        )
        path = svg.bars_path(
            (left, right - left, top + 3, _ROW_HEIGHT - 6) for left, right in places
        )
        kind_class = "waited" if kind == "JOINED" else "waited lost"
        drawn.append(svg.element("path", svg.element("title", told), class_=kind_class, d=path))
    return drawn


def _signs(row: Row, top: float, label: RunLabel, axis: TimeAxis) -> Markup:
    left, right = _ends(row, label, axis)
    begin = svg.element(
        "text",
        "\N{BLACK RIGHT-POINTING SMALL TRIANGLE}",
        class_="begin",
        x=svg.percent(left),
        y=top + 15,
    )
    if row["end_kind"] not in ENDS:
        return begin
    sign = ENDS[row["end_kind"]][0]
    kind = f"sign {row['end_kind'].lower()}"
    return begin + svg.element("text", sign, class_=kind, x=svg.percent(right), y=top + 15)


def _ends(row: Row, label: RunLabel, axis: TimeAxis) -> tuple[float, float]:
    end_us = label.end_us if row["end_us"] is None else row["end_us"]
    left = axis.percent(seconds_of(row["first_seen_us"], label))
    return left, max(left, axis.percent(seconds_of(end_us, label)))
