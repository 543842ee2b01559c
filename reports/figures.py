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
    return _styled(figure, "rebalances", height=90 + _BAR_HEIGHT * len(ordered))


def timeline_figure(rows: Sequence[Row], origin_us: Mapping[str, int | None]) -> go.Figure:
    """Plot every rebalance as a mark at its start, one line per group, coloured by outcome.

    Args:
        rows: Rebalances with `label`, the name of their line.
        origin_us: Start of the time axis per trace, or None to show calendar time.
    """
    figure = go.Figure()
    labels = list(dict.fromkeys(row["label"] for row in rows))
    for outcome, colour in OUTCOME_COLOURS.items():
        chosen = [row for row in rows if row["outcome"] == outcome]
        if not chosen:
            continue
        figure.add_trace(
            go.Scatter(
                x=[_instant(row, origin_us) for row in chosen],
                y=[row["label"] for row in chosen],
                mode="markers",
                name=outcome,
                marker={"color": colour, "size": 9, "opacity": 0.8, "symbol": "line-ns-open"},
                customdata=[[row["reason"], _milliseconds(row["total_ms"])] for row in chosen],
                hovertemplate="%{customdata[0]}<br>%{customdata[1]}<extra>%{y}</extra>",
            )
        )
    figure.update_traces(marker_line_width=2)
    calendar = any(origin is None for origin in origin_us.values())
    title = "time (UTC)" if calendar else "seconds since the start of the run"
    styled = _styled(figure, title, height=_LEGEND_HEIGHT + 70 + 26 * len(labels))
    styled.update_yaxes(categoryorder="array", categoryarray=labels[::-1])
    return styled


def _instant(row: Row, origin_us: Mapping[str, int | None]) -> Any:  # noqa: ANN401 - axis value
    from datetime import UTC, datetime, timedelta

    origin = origin_us[row["trace_id"]]
    if origin is None:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=row["seen_us"])
    return (row["seen_us"] - origin) / 1e6


def _milliseconds(value: float | None) -> str:
    return "not finished" if value is None else f"{value:,.0f} ms"


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
    styled = _styled(figure, title, height=_LEGEND_HEIGHT + 70 + _BAR_HEIGHT * len(rows))
    styled.update_yaxes(autorange="reversed")
    return styled


def _styled(figure: go.Figure, axis_title: str, *, height: int) -> go.Figure:
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
