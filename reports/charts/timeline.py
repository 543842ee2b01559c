"""The timeline of a report: rebalances of each group, and the fault windows behind them.

Each run is a block of rows: lanes with the names of its fault windows, then a row for each of its
groups. A window is shaded over the whole block of its run, and over no other run.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from coordinator_sim_reports.charts import svg
from coordinator_sim_reports.charts.scale import TimeAxis
from coordinator_sim_reports.run_labels import RunLabel

Row = Mapping[str, Any]

OUTCOMES: Final = {
    "STABLE": "stable",
    "EMPTY": "empty",
    "NO_SYNC": "no-sync",
    "SUPERSEDED": "superseded",
    "COORDINATOR_MOVED": "coordinator-moved",
    "OPEN": "open",
}
"""Outcomes of a rebalance with the classes of their marks, in the order of the legend."""
_ROW_HEIGHT: Final = 26
_GAP: Final = 0.5
"""Rows left free between two runs."""
_LETTER_SHARE: Final = 0.009
"""Share of the time axis that a letter of a name covers on a narrow window of a desk."""
_FREE_SHARE: Final = 0.015
"""Share of the time axis left free at both ends."""


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
class Bar:
    """A fault window with its name, which is written leftwards from its end, or from its start.

    Args:
        window: Row of the table of fault windows.
        from_s: Start on the axis.
        to_s: End on the axis.
        name_s: Time that the name covers.
        is_leftwards: Whether the name ends with the window.
    """

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
class Placed:
    """A block on the timeline.

    Args:
        block: The block.
        first_row: Its first row, from 0 on.
        bars: Its windows, each with its row.
    """

    block: Block
    first_row: float
    bars: Sequence[tuple[Bar, float]]

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

    @property
    def row_names(self) -> Iterator[tuple[float, str]]:
        """The rows that have a name: that of the lanes, and a group."""
        if self.bars:
            yield self.first_row, "faults"
        yield from ((row, group_id) for group_id, row in self.group_rows.items())


def placed_blocks(blocks: Sequence[Block]) -> tuple[TimeAxis, list[Placed]]:
    """Return the axis of these runs, and where each stands.

    Args:
        blocks: The runs from top to bottom, at least one; calendar times in all of them or in none.
    """
    axis = axis_of([block.label for block in blocks])
    placed: list[Placed] = []
    for block in blocks:
        first_row = placed[-1].end_row + _GAP if placed else 0.0
        bars = [_bar(window, block, axis) for window in block.windows]
        lanes = lanes_of([bar.occupied for bar in bars])
        rows = [first_row + lane for lane in lanes]
        placed.append(Placed(block, first_row, list(zip(bars, rows, strict=True))))
    return axis, placed


def timeline_chart(
    blocks: Sequence[Block], links: Mapping[tuple[str, str], str] | None = None
) -> Markup:
    """Draw every rebalance as a mark at its start, told by outcome, and shade fault windows.

    Args:
        blocks: As in `placed_blocks`.
        links: Where the name of a group leads to, by the run's name and the group's.
    """
    axis, placed = placed_blocks(blocks)
    height = placed[-1].end_row * _ROW_HEIGHT
    body = svg.joined(_shades(each, axis) for each in placed)
    body += svg.stretched(svg.joined(_marks(each, axis) for each in placed), height)
    body += svg.joined(_window_names(each, axis) for each in placed)
    seen = {row["outcome"] for block in blocks for row in block.rebalances}
    counted = sum(len(block.rebalances) for block in blocks)
    windows = sum(len(block.windows) for block in blocks)
    return svg.legend(
        (f"mark {kind}", outcome) for outcome, kind in OUTCOMES.items() if outcome in seen
    ) + svg.time_chart(
        list(_row_names(placed, links or {})),
        body,
        axis,
        row_height=_ROW_HEIGHT,
        label=f"{counted:,} rebalances of {sum(len(b.group_ids) for b in blocks):,} groups over "
        f"{axis.title}, with {windows:,} fault windows",
        height=height,
    )


def axis_of(labels: Sequence[RunLabel]) -> TimeAxis:
    """Return the axis that holds these runs, with some room at both ends."""
    from_s = min(seconds_of(label.start_us, label) for label in labels)
    to_s = max(seconds_of(label.end_us, label) for label in labels)
    to_s = max(to_s, from_s + 1)
    free_s = _FREE_SHARE * (to_s - from_s)
    return TimeAxis(from_s - free_s, to_s + free_s, is_calendar=labels[0].origin_us is None)


def seconds_of(ts_us: int, label: RunLabel) -> float:
    """Return an instant of a run on the axis of its page."""
    return (ts_us - (label.origin_us or 0)) / 1e6


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


def _bar(window: Row, block: Block, axis: TimeAxis) -> Bar:
    from_s, to_s = (seconds_of(window[name], block.label) for name in ("from_us", "to_us"))
    name_s = (len(window["name"]) + 2) * _LETTER_SHARE * (axis.to_s - axis.from_s)
    return Bar(window, from_s, to_s, name_s, is_leftwards=from_s + name_s > axis.to_s)


def _shades(placed: Placed, axis: TimeAxis) -> Markup:
    """Draw how long the trace shows each group, and the windows over all rows of the run."""
    label = placed.block.label
    begin, end = (axis.percent(seconds_of(at, label)) for at in (label.start_us, label.end_us))
    middles = (_pixels(row + 0.5) for row in placed.group_rows.values())
    lives = [
        svg.element("line", class_="life", x1=svg.percent(begin), x2=svg.percent(end), y1=y, y2=y)
        for y in middles
    ]
    boxes = []
    for bar, row in placed.bars:
        left = axis.percent(bar.from_s)
        across = {"x": svg.percent(left), "width": svg.percent(axis.percent(bar.to_s) - left)}
        below = (placed.end_row - row) * _ROW_HEIGHT
        told = f"{bar.window['name']} {bar.window['kind'] or ''}: {_length(bar)}"
        boxes += [
            svg.element("rect", class_="shade", y=_pixels(row), height=float(below), **across),
            svg.element(
                "rect",
                svg.element("title", told),
                class_="fault",
                y=_pixels(row + 0.14),
                height=_pixels(0.72),
                **across,
            ),
        ]
    return svg.joined([*boxes, *lives])


def _window_names(placed: Placed, axis: TimeAxis) -> Markup:
    return svg.joined(
        svg.element(
            "text",
            f"\N{NO-BREAK SPACE}{bar.window['name']}\N{NO-BREAK SPACE}",
            class_="fault-name" + (" end" if bar.is_leftwards else ""),
            x=svg.percent(axis.percent(bar.to_s if bar.is_leftwards else bar.from_s)),
            y=_pixels(row + 0.66),
        )
        for bar, row in placed.bars
    )


def _marks(placed: Placed, axis: TimeAxis) -> Markup:
    """Draw the marks of each group and outcome as one path."""
    label, rows = placed.block.label, placed.group_rows
    by_kind: dict[tuple[str, str], list[float]] = {}
    for row in placed.block.rebalances:
        at = axis.percent(seconds_of(row["seen_us"], label))
        by_kind.setdefault((row["group_id"], row["outcome"]), []).append(at)
    drawn = []
    for (group_id, outcome), places in by_kind.items():
        top = (rows[group_id] + 0.2) * _ROW_HEIGHT
        told = f"{group_id}: {len(places):,} {outcome}"
        path = svg.bars_path((at, 0.0, top, 0.6 * _ROW_HEIGHT) for at in places)
        kind = f"mark {OUTCOMES.get(outcome, 'open')}"
        drawn.append(svg.element("path", svg.element("title", told), class_=kind, d=path))
    return svg.joined(drawn)


def _row_names(
    placed: Sequence[Placed], links: Mapping[tuple[str, str], str]
) -> Iterator[tuple[float, svg.RowName]]:
    for each in placed:
        run = each.block.label.name
        for row, text in each.row_names:
            yield _pixels(row), svg.RowName(text, link=links.get((run, text), ""), note=f"({run})")


def _length(bar: Bar) -> str:
    ended = "" if bar.window["is_ended"] else ", to the end of the trace"
    return f"{bar.to_s - bar.from_s:,.3f} s{ended}"


def _pixels(rows: float) -> float:
    """Return the height of so many rows in pixels."""
    return rows * _ROW_HEIGHT
