"""The timeline of a report: rebalances of each group, and the fault windows behind them.

Each run is a block of rows: lanes with the names of its fault windows, then a row for each of its
groups. A window is shaded over the whole block of its run, and over no other run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import escape
from typing import Final

import plotly.graph_objects as go

from coordinator_sim_reports.figures import INK, OUTCOME_COLOURS, Row, styled
from coordinator_sim_reports.run_labels import RunLabel

_ROW_HEIGHT: Final = 26
_AXES_HEIGHT: Final = 140
_GAP: Final = 0.5
"""Rows left free between two runs."""
_PAGE_WIDTH: Final = 1_100
"""Width of a chart on the page in pixels, its row labels included."""
_LETTER_WIDTH: Final = 7.2
"""Mean width of a letter of 12 pixels, rounded up."""
_FREE_SHARE: Final = 0.015
"""Share of the time axis left free at both ends."""
_SHADE: Final = "rgba(240, 180, 41, 0.16)"
_EDGE: Final = "rgba(141, 43, 11, 0.35)"
_BAR: Final = "#f7d070"
_LIFE: Final = "#bcc5cf"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Block:
    """One run on the timeline.

    Args:
        label: Name and times of the run.
        group_ids: Groups, a row each, in order.
        rebalances: Rebalances to mark, each of one of these groups.
        windows: Fault windows to shade.
    """

    label: RunLabel
    group_ids: Sequence[str]
    rebalances: Sequence[Row]
    windows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class _Axis:
    """The time axis in seconds: since the start of each run, or since 1970."""

    from_s: float
    to_s: float
    letter_s: float
    """Time that a letter covers."""
    is_calendar: bool

    def at(self, seconds: float) -> float | datetime:
        """Return the value of an instant on the axis."""
        return _EPOCH + timedelta(seconds=seconds) if self.is_calendar else seconds


@dataclass(frozen=True, slots=True)
class _Bar:
    """A fault window with its name, which is written leftwards from its end, or from its start."""

    window: Row
    from_s: float
    to_s: float
    name_s: float
    is_leftwards: bool

    @property
    def occupied(self) -> tuple[float, float]:
        """From when to when the window or its name takes up a lane."""
        if self.is_leftwards:
            return min(self.from_s, self.to_s - self.name_s), self.to_s
        return self.from_s, max(self.to_s, self.from_s + self.name_s)


@dataclass(frozen=True, slots=True)
class _Placed:
    """A block with its first row, and its windows with the row of each."""

    block: Block
    first_row: float
    bars: Sequence[tuple[_Bar, float]]

    @property
    def group_rows(self) -> dict[str, float]:
        """The row of each group, below the lanes."""
        first = max((row + 1 for _, row in self.bars), default=self.first_row)
        return {group_id: first + n for n, group_id in enumerate(self.block.group_ids)}

    @property
    def end_row(self) -> float:
        """The row below the last one."""
        taken = [*self.group_rows.values(), *(row for _, row in self.bars)]
        return max(taken, default=self.first_row - 1) + 1


def timeline_figure(blocks: Sequence[Block]) -> go.Figure:
    """Plot every rebalance as a mark at its start, coloured by outcome, and shade fault windows.

    Args:
        blocks: The runs from top to bottom, at least one; calendar times in all of them or in none.
    """
    axis = _axis(blocks)
    placed: list[_Placed] = []
    for block in blocks:
        first_row = placed[-1].end_row + _GAP if placed else 0.0
        bars = [_bar(window, block, axis) for window in block.windows]
        lanes = lanes_of([bar.occupied for bar in bars])
        rows = [first_row + lane for lane in lanes]
        placed.append(_Placed(block, first_row, list(zip(bars, rows, strict=True))))
    figure = go.Figure()
    for each in placed:
        _shade(figure, each, axis)
        _write_names(figure, each, axis)
    _mark(figure, placed, axis)
    rows_drawn = placed[-1].end_row
    title = "time (UTC)" if axis.is_calendar else "seconds since the start of the run"
    styled(figure, title, height=round(_AXES_HEIGHT + _ROW_HEIGHT * rows_drawn))
    ticks = dict(_ticks(placed))
    figure.update_yaxes(
        tickmode="array",
        tickvals=list(ticks),
        ticktext=list(ticks.values()),
        range=[rows_drawn - 0.5, -0.5],
        showgrid=False,
        zeroline=False,
    )
    free_s = _FREE_SHARE * (axis.to_s - axis.from_s)
    figure.update_xaxes(range=[axis.at(axis.from_s - free_s), axis.at(axis.to_s + free_s)])
    return figure


def lanes_of(occupied: Sequence[tuple[float, float]]) -> list[int]:
    """Return the lane of each interval, from 0 on, so that none overlaps another in its lane.

    Args:
        occupied: Begin and end of the intervals, in any order.
    """
    lanes = [0] * len(occupied)
    free_from: list[float] = []
    for number in sorted(range(len(occupied)), key=lambda each: occupied[each]):
        begin, end = occupied[number]
        is_free = (lane for lane, since in enumerate(free_from) if since <= begin)
        lane = next(is_free, len(free_from))
        free_from[lane : lane + 1] = [end]
        lanes[number] = lane
    return lanes


def _seconds(ts_us: int, label: RunLabel) -> float:
    return (ts_us - (label.origin_us or 0)) / 1e6


def _axis(blocks: Sequence[Block]) -> _Axis:
    labels = [block.label for block in blocks]
    from_s = min(_seconds(label.start_us, label) for label in labels)
    to_s = max(_seconds(label.end_us, label) for label in labels)
    to_s = max(to_s, from_s + 1)
    names = (len(text) for block in blocks for text in _row_names(block))
    plot_width = max(_PAGE_WIDTH - _LETTER_WIDTH * max(names, default=0), _PAGE_WIDTH / 3)
    letter_s = (to_s - from_s) / plot_width * _LETTER_WIDTH
    return _Axis(from_s, to_s, letter_s, is_calendar=labels[0].origin_us is None)


def _bar(window: Row, block: Block, axis: _Axis) -> _Bar:
    from_s, to_s = (_seconds(window[name], block.label) for name in ("from_us", "to_us"))
    name_s = (len(window["name"]) + 2) * axis.letter_s
    return _Bar(window, from_s, to_s, name_s, is_leftwards=from_s + name_s > axis.to_s)


def _shade(figure: go.Figure, placed: _Placed, axis: _Axis) -> None:
    """Draw how long the trace shows each group, and the windows over all rows of the run."""
    label = placed.block.label
    begin, end = (axis.at(_seconds(ts_us, label)) for ts_us in (label.start_us, label.end_us))
    for row in placed.group_rows.values():
        figure.add_shape(
            type="line", x0=begin, x1=end, y0=row, y1=row, layer="between", line_color=_LIFE
        )
    for bar, row in placed.bars:
        box = {
            "type": "rect",
            "layer": "between",
            "x0": axis.at(bar.from_s),
            "x1": axis.at(bar.to_s),
            "line": {"color": _EDGE, "width": 1},
        }
        figure.add_shape(y0=row, y1=placed.end_row - 0.5, fillcolor=_SHADE, **box)
        figure.add_shape(y0=row - 0.36, y1=row + 0.36, fillcolor=_BAR, **box)


def _write_names(figure: go.Figure, placed: _Placed, axis: _Axis) -> None:
    bars = [bar for bar, _ in placed.bars]
    figure.add_trace(
        go.Scatter(
            x=[axis.at(bar.to_s if bar.is_leftwards else bar.from_s) for bar in bars],
            y=[row for _, row in placed.bars],
            mode="text",
            text=[
                f"\N{NO-BREAK SPACE}{escape(bar.window['name'])}\N{NO-BREAK SPACE}" for bar in bars
            ],
            textposition=["middle left" if bar.is_leftwards else "middle right" for bar in bars],
            textfont={"color": INK, "size": 12},
            customdata=[[escape(bar.window["kind"] or ""), _length(bar)] for bar in bars],
            hovertemplate="%{text}<br>%{customdata[0]}<br>%{customdata[1]}<extra></extra>",
            showlegend=False,
        )
    )


def _length(bar: _Bar) -> str:
    ended = "" if bar.window["is_ended"] else ", to the end of the trace"
    return f"{bar.to_s - bar.from_s:,.3f} s{ended}"


def _mark(figure: go.Figure, placed: Sequence[_Placed], axis: _Axis) -> None:
    marks = [
        (row, each.group_rows[row["group_id"]], each.block.label)
        for each in placed
        for row in each.block.rebalances
    ]
    for outcome, colour in OUTCOME_COLOURS.items():
        chosen = [mark for mark in marks if mark[0]["outcome"] == outcome]
        if not chosen:
            continue
        figure.add_trace(
            go.Scatter(
                x=[axis.at(_seconds(row["seen_us"], label)) for row, _, label in chosen],
                y=[number for _, number, _ in chosen],
                mode="markers",
                name=outcome,
                marker={
                    "color": colour,
                    "size": 9,
                    "opacity": 0.8,
                    "symbol": "line-ns-open",
                    "line": {"width": 2},
                },
                customdata=[
                    [row["reason"], _milliseconds(row["total_ms"]), escape(row["group_id"])]
                    for row, *_ in chosen
                ],
                hovertemplate=(
                    "%{customdata[0]}<br>%{customdata[1]}<extra>%{customdata[2]}</extra>"
                ),
            )
        )


def _row_names(block: Block) -> list[str]:
    groups = [f"{group_id} ({block.label.name})" for group_id in block.group_ids]
    return [f"faults ({block.label.name})", *groups] if block.windows else groups


def _ticks(placed: Sequence[_Placed]) -> Iterator[tuple[float, str]]:
    for each in placed:
        rows = [each.first_row, *each.group_rows.values()]
        if not each.bars:
            del rows[0]
        for row, name in zip(rows, _row_names(each.block), strict=True):
            yield row, escape(name)


def _milliseconds(value: float | None) -> str:
    return "not finished" if value is None else f"{value:,.0f} ms"
