"""The charts of a report, as Plotly figures made of plain rows."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import plotly.graph_objects as go

Row = Mapping[str, Any]

FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
INK: Final = "#1f2933"
GRID: Final = "#e4e7eb"
_LEGEND_HEIGHT: Final = 70
_BAR_HEIGHT: Final = 34
OUTCOME_COLOURS: Final = {
    "STABLE": "#2a7f62",
    "EMPTY": "#8a94a0",
    "NO_SYNC": "#d1495b",
    "SUPERSEDED": "#8b1e3f",
    "COORDINATOR_MOVED": "#e58f29",
    "OPEN": "#5b6bbf",
}
"""Outcomes of a rebalance with their colours, in the order of the legend."""


def moves_figure(rows: Sequence[Row]) -> go.Figure:
    """Plot moved resources per run, by necessity. One bar per row of the comparison."""
    known = [row for row in rows if row["moved"] is not None]
    necessary = [_necessary(row) for row in known]
    parts = (
        ("old owner gone", [row["orphaned"] for row in known], "#3d5a80"),
        ("needed for balance", necessary, "#98c1d9"),
        (
            "avoidable",
            [
                max(0, row["moved"] - row["orphaned"] - needed)
                for row, needed in zip(known, necessary, strict=True)
            ],
            "#e07a5f",
        ),
    )
    return _stacked(known, parts, "resources moved per run (mean)")


def _necessary(row: Row) -> float:
    bound = row["lb_balanced"]
    surviving = row["moved"] - row["orphaned"]
    return 0.0 if bound is None else max(0.0, min(surviving, bound - row["orphaned"]))


def unowned_figure(rows: Sequence[Row]) -> go.Figure:
    """Plot partition-seconds without an owner per run, by the group's activity meanwhile."""
    known = [row for row in rows if row["unowned_s"] is not None]
    parts = (
        ("waiting (detection, delays)", [row["waiting_s"] for row in known], "#adb5bd"),
        ("members joining", [row["joining_s"] for row in known], "#5b8e7d"),
        ("assignment under way", [row["syncing_s"] for row in known], "#f4a259"),
    )
    return _stacked(known, parts, "partition-seconds without an owner per run (mean)")


def interruptions_figure(rows: Sequence[Row]) -> go.Figure:
    """Plot owned resources that were given up per run, by their next owner."""
    known = [row for row in rows if row["interrupted"] is not None]
    parts = (
        (
            "taken up by another member",
            [row["interrupted"] - row["restarted_in_place"] for row in known],
            "#3d5a80",
        ),
        (
            "stopped and resumed by the same member",
            [row["restarted_in_place"] for row in known],
            "#e9c46a",
        ),
    )
    return _stacked(known, parts, "interruptions per run (mean)")


def reasons_figure(counts: Mapping[str, int]) -> go.Figure:
    """Plot the number of rebalances per reason, most frequent first."""
    ordered = sorted(counts.items(), key=lambda entry: (entry[1], entry[0]))
    figure = go.Figure(
        go.Bar(
            x=[count for _, count in ordered],
            y=[reason for reason, _ in ordered],
            orientation="h",
            marker_color="#3d5a80",
            text=[f"{count:,}" for _, count in ordered],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{y}: %{x:,}<extra></extra>",
        )
    )
    return styled(figure, "rebalances", height=90 + _BAR_HEIGHT * len(ordered))


def _stacked(
    rows: Sequence[Row], parts: Sequence[tuple[str, Sequence[float], str]], title: str
) -> go.Figure:
    figure = go.Figure()
    scenarios = [row["scenario"] for row in rows]
    several = len(set(scenarios)) > 1
    names = [row["assignor"] for row in rows]
    axis: Any = [scenarios, names] if several else names
    for name, values, colour in parts:
        figure.add_trace(
            go.Bar(
                y=axis,
                x=list(values),
                name=name,
                orientation="h",
                marker_color=colour,
                hovertemplate=f"{name}: %{{x:,.1f}}<extra>%{{y}}</extra>",
            )
        )
    figure.update_layout(barmode="stack", bargap=0.35)
    drawn = styled(figure, title, height=_LEGEND_HEIGHT + 70 + _BAR_HEIGHT * len(rows))
    drawn.update_yaxes(autorange="reversed")
    return drawn


def styled(figure: go.Figure, axis_title: str, *, height: int) -> go.Figure:
    """Give a figure the looks of all charts of a page; return the figure."""
    figure.update_layout(
        height=height,
        margin={"l": 10, "r": 40, "t": 10, "b": 10},
        font={"family": FONT, "size": 13, "color": INK},
        plot_bgcolor="white",
        paper_bgcolor="white",
        legend={
            "orientation": "h",
            "yanchor": "bottom",
            "y": 1.0,
            "x": 0,
            "traceorder": "normal",
        },
        hoverlabel={"font": {"family": FONT}},
    )
    figure.update_xaxes(
        title={"text": axis_title, "standoff": 8}, gridcolor=GRID, zeroline=False, automargin=True
    )
    figure.update_yaxes(automargin=True, ticksuffix="  ")
    return figure
