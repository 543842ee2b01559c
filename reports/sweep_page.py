"""Renders the rows of a sweep as one self-contained HTML page.

The charts of a sweep's candidates, as inline SVG.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import floor, log10
from typing import Any, Final

from markupsafe import Markup

from coordinator_sim import __version__
from coordinator_sim_reports.charts.bars import Bar, bar_chart
from coordinator_sim_reports.environment import page_environment
from coordinator_sim_reports.formats import terse_seconds, whole, with_range
from coordinator_sim_reports.objective import FIGURES, LAG_AXES, Answer, figure_text
from coordinator_sim_reports.tradeoffs import OBJECTIVES, Candidate
from coordinator_sim_reports.winners import choices_of, figure_of, figures_of, is_best, verdict

WIDTH: Final = 760
HEIGHT: Final = 380
_LEFT: Final = 64
_BOTTOM: Final = 44
_TOP: Final = 14
_RADIUS: Final = 10
_STRIP_WIDTH: Final = 120
_STRIP_HEIGHT: Final = 16
_LOG_FROM: Final = 30
"""Ratio of the largest to the smallest value from which on an axis is logarithmic."""


class _Axis:
    """An axis from 0, or a logarithmic one where the values differ much."""

    def __init__(self, values: Sequence[float], length: float) -> None:
        self._length = length
        positive = [value for value in values if value > 0]
        self._high = max(positive, default=1.0) * 1.08
        low = min(positive, default=1.0)
        self.is_log = len(positive) == len(values) and self._high / low > _LOG_FROM
        self._low = low / 1.3 if self.is_log else 0.0

    def at(self, value: float) -> float:
        """The distance of a value from the axis's beginning."""
        if self.is_log:
            share = log10(value / self._low) / log10(self._high / self._low)
        else:
            share = value / self._high
        return round(share * self._length, 1)

    def ticks(self) -> list[float]:
        """Round values on the axis."""
        if self.is_log:
            first = floor(log10(self._low)) + 1
            decades = [10.0**power for power in range(first, floor(log10(self._high)) + 1)]
            return decades or [self._low * 2]
        step = 10.0 ** floor(log10(self._high / 2))
        factor = next(each for each in (1, 2, 5, 10) if self._high / (step * each) <= 5)  # noqa: PLR2004 - ticks that fit
        return [step * factor * n for n in range(int(self._high / (step * factor)) + 1)]


def scatter(found: Sequence[Candidate], axes: Mapping[str, str] | None = None) -> str:
    """Draw the candidates of one unit: moves to the right, unowned time upwards.

    Each is a circle with its number; those on the front are filled. Bars reach from the least to
    the most of the drawn worlds.

    Args:
        found: The candidates, at least one.
        axes: Other columns to draw with their words, to the right and upwards.
    """
    unit = found[0].unit
    axes = axes or {"moved": f"{unit}s moved", "unowned_s": f"{unit}-seconds unowned"}
    across, upwards = ([v for each in found for v in each.spreads[name].values] for name in axes)
    x, y = _Axis(across, WIDTH - _LEFT - 24), _Axis(upwards, HEIGHT - _BOTTOM - _TOP)
    right, up = axes.values()
    label = f"{right} against {up}, a circle a candidate"
    parts = [
        f'<svg class="scatter" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">'
    ]
    for value in x.ticks():
        at = _LEFT + x.at(value)
        parts.append(
            f'<line class="tick" x1="{at}" x2="{at}" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}"/>'
            f'<text x="{at}" y="{HEIGHT - _BOTTOM + 16}" text-anchor="middle">{value:,.4g}</text>'
        )
    for value in y.ticks():
        at = HEIGHT - _BOTTOM - y.at(value)
        parts.append(
            f'<line class="tick" x1="{_LEFT}" x2="{WIDTH - 24}" y1="{at}" y2="{at}"/>'
            f'<text x="{_LEFT - 6}" y="{at + 4}" text-anchor="end">{value:,.4g}</text>'
        )
    parts.append(
        f'<text x="{WIDTH - 24}" y="{HEIGHT - 6}" text-anchor="end">{right}'
        f"{' (logarithmic)' if x.is_log else ''}</text>"
        f'<text x="4" y="{_TOP - 3}">{up}{" (logarithmic)" if y.is_log else ""}'
        "</text>"
    )
    parts += [_mark(each, (x, y), axes) for each in sorted(found, key=lambda one: one.is_best)]
    return "".join([*parts, "</svg>"])


def _mark(each: Candidate, scales: tuple[_Axis, _Axis], axes: Iterable[str]) -> str:
    (x, y), (moved, unowned) = scales, (each.spreads[name] for name in axes)
    at_x, at_y = _LEFT + x.at(moved.middle), HEIGHT - _BOTTOM - y.at(unowned.middle)
    left, right = (_LEFT + x.at(value) for value in (moved.values[0], moved.values[-1]))
    top, bottom = (
        HEIGHT - _BOTTOM - y.at(value) for value in (unowned.values[-1], unowned.values[0])
    )
    figures = ", ".join(f"{name} {spread.middle:,.4g}" for name, spread in each.spreads.items())
    title = f"{each.name}: {figures}"
    return (
        f'<g class="{"best" if each.is_best else "other"}"><title>{escape(title)}</title>'
        f'<path d="M{left} {at_y}H{right}M{at_x} {top}V{bottom}"/>'
        f'<circle cx="{at_x}" cy="{at_y}" r="{_RADIUS}"/>'
        f'<text x="{at_x}" y="{at_y + 4}" text-anchor="middle">{each.number}</text></g>'
    )


def strip(each: Candidate, objective: str, largest: float) -> str:
    """Draw an objective's value in each drawn world as a tick on a line from 0 to the largest."""
    spread = each.spreads[objective]
    scale = (_STRIP_WIDTH - 6) / largest if largest else 0.0
    middle = _STRIP_HEIGHT / 2
    ticks = "".join(
        f"M{3 + round(value * scale, 1)} 3V{_STRIP_HEIGHT - 3}" for value in spread.values
    )
    return (
        f'<svg class="strip" width="{_STRIP_WIDTH}" height="{_STRIP_HEIGHT}" aria-hidden="true">'
        f'<path class="base" d="M3 {middle}H{_STRIP_WIDTH - 3}"/><path d="{ticks}"/>'
        f'<circle cx="{3 + round(spread.middle * scale, 1)}" cy="{middle}" r="3.5"/></svg>'
    )


Row = Mapping[str, Any]

_TITLES: Final = {
    "protocol": "Connect: eager or incremental cooperative",
    "assignor": "Assignor: {choices}",
    "membership": "Membership: {choices}",
    "settings": "Settings",
    "processing": "Assignor by typical processing time",
}
NAMES: Final = {
    "eager": "eager",
    "sessioned": "incremental",
}
"""Names of choices whose value is not a good name; others are shown by their value."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One column of the comparison.

    Args:
        column: Name of the column in the rows.
        word: Name of the measure in a sentence.
        title: Title, with `{unit}` for the group's resources: tasks or partitions.
        is_seconds: Whether it is a time; otherwise a count.
    """

    column: str
    word: str
    title: str
    is_seconds: bool = False


_LEAST_CANDIDATES: Final = 2
_WEIGHED: Final = ("moved", "unowned_s", "stopped_s", "duplicates")
"""What the sentence of a question tells; the weightier first."""
PACED: Final = ("interrupted", "unowned_s", "stopped_s")
"""What is told and printed of assignors at several processing times."""

MEASURES: Final = (
    Measure("interrupted", "interrupted", "{unit}s interrupted"),
    Measure("moved", "moved", "{unit}s moved"),
    Measure("unowned_s", "unowned", "unowned {unit}-seconds", is_seconds=True),
    Measure("stopped_s", "stopped", "seconds stopped", is_seconds=True),
    Measure("duplicates", "duplicates", "records processed again"),
    Measure("reprocessed", "reprocessed", "of these by a successor"),
    Measure("double_run_s", "run twice", "{unit}-seconds run twice", is_seconds=True),
)


@dataclass(frozen=True, slots=True)
class Scope:
    """What a sweep covers.

    Args:
        runs: Number of runs simulated.
        seeds: Number of seeds of each.
        left_out: Scenarios that are not compared, with the reason.
        is_own: Whether scenarios are the user's own.
        seeds_left: Number of further seeds that there was no time for.
    """

    runs: int
    seeds: int
    left_out: Mapping[str, str]
    is_own: bool = False
    seeds_left: int = 0


def render_sweep(
    scope: Scope,
    *,
    choices: Sequence[Row],
    by_scenario: Sequence[Row],
    candidates: Sequence[Candidate],
    answers: Sequence[Answer] = (),
) -> str:
    """Return the comparison as HTML that needs no network.

    Args:
        scope: What was run.
        choices: Rows by question and choice, in reading order.
        by_scenario: Rows by question, scenario and choice, in reading order.
        candidates: Every combination of choices (`tradeoffs.candidates`).
        answers: What keeping the lag objective costs; the page begins with it.
    """
    named = Counter(row["question"] for row in choices)
    questions = [question for question, count in named.items() if count > 1]
    blocks = [_block(question, choices, by_scenario) for question in questions]
    template = page_environment().get_template("sweep.html.j2")
    return template.render(
        title="What keeping the lag costs" if answers else "What each choice costs",
        answers=[
            {"answer": each, "chart": Markup(scatter(each.points, LAG_AXES))}  # noqa: S704 - as below
            if each.points
            else {"answer": each}
            for each in answers
        ],
        figures=FIGURES,
        figure_text=figure_text,
        version=__version__,
        runs=scope.runs,
        seeds=scope.seeds,
        seeds_left=scope.seeds_left,
        left_out=scope.left_out,
        is_own=scope.is_own,
        tradeoffs=_tradeoffs(candidates),
        scenarios=list(dict.fromkeys(row["scenario"] for row in by_scenario)),
        blocks=blocks,
    )


def title_of(question: str, rows: Sequence[Row]) -> str:
    """Return the title of a question, with its choices in the order of its rows."""
    names = list(dict.fromkeys(choice_name(row["choice"]) for row in rows))
    listed = " or ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
    return _TITLES[question].format(choices=listed)


def _tradeoffs(candidates: Sequence[Candidate]) -> list[dict[str, Any]]:
    """Return a chart and a table for each unit with something to choose between."""
    blocks = []
    for unit in dict.fromkeys(each.unit for each in candidates):
        own = [each for each in candidates if each.unit == unit]
        if len(own) < _LEAST_CANDIDATES:
            continue
        largest = {name: max(each.spreads[name].values[-1] for each in own) for name in OBJECTIVES}
        blocks.append(
            {
                "unit": unit,
                "chart": Markup(scatter(own)),  # noqa: S704 - its texts are escaped
                "lines": [
                    {
                        "candidate": each,
                        "cells": [
                            {
                                "text": _spread_text(each, name),
                                "value": each.spreads[name].middle,
                                "strip": Markup(strip(each, name, largest[name])),  # noqa: S704 - numbers
                            }
                            for name in OBJECTIVES
                        ],
                    }
                    for each in own
                ],
            }
        )
    return blocks


def _spread_text(each: Candidate, objective: str) -> str:
    values = each.spreads[objective].values
    texts = [
        f"{value:.2f}" if objective == "imbalance" else whole(value)
        for value in (each.spreads[objective].middle, values[0], values[-1])
    ]
    return texts[0] if texts[1] == texts[2] else f"{texts[0]} ({texts[1]}-{texts[2]})"


def shown(row: Row, measure: Measure, *, stacked: bool = False) -> str:
    """Return a cell's text: the median over the seeds, with least and most if they differ.

    Args:
        row: Row of the costs by choice, or by scenario and choice.
        measure: Column to show.
        stacked: Put the range on a line of its own.
    """
    names = (measure.column, f"{measure.column}_low", f"{measure.column}_high")
    median, low, high = (_value(row[name], measure) for name in names)
    return with_range(median, low, high, stacked=stacked)


def _value(value: float, measure: Measure) -> str:
    return (terse_seconds if measure.is_seconds else whole)(value)


def unit_of(question: str) -> str:
    """Return the unit of the resources in a question's groups."""
    return "task" if question == "protocol" else "partition"


def choice_name(choice: str) -> str:
    """Return the name of a choice for readers."""
    return NAMES.get(choice, choice)


def answers_of(choices: Sequence[Row]) -> list[str]:
    """Return sentences for each question with several answers: which choice wins, and by how much.

    Args:
        choices: Rows by question and choice, in reading order.
    """
    return [
        sentence
        for question in dict.fromkeys(row["question"] for row in choices)
        for rows in ([row for row in choices if row["question"] == question],)
        if len(rows) > 1
        for sentence in _answers(question, rows)
    ]


def _answers(question: str, rows: Sequence[Row]) -> Iterator[str]:
    """Yield the sentence of a question; where choices are made at several paces, of each pace."""
    columns = PACED if question == "processing" else _WEIGHED
    by_pace: dict[str, list[tuple[str, Row]]] = {}
    for row in rows:
        pace, _, name = row["choice"].rpartition(", " if question == "processing" else "\n")
        by_pace.setdefault(pace, []).append((choice_name(name), row))
    for pace, named in by_pace.items():
        sentence = verdict(choices_of(named, columns), figures_of(f"{unit_of(question)}s", columns))
        if sentence:
            yield f"{pace or _TITLES[question].partition(':')[0]}: {sentence}"


def _block(question: str, choices: Sequence[Row], by_scenario: Sequence[Row]) -> dict[str, Any]:
    rows = [row for row in choices if row["question"] == question]
    unit = unit_of(question)
    return {
        "anchor": question,
        "title": title_of(question, rows),
        "scenarios": max(row["scenarios"] for row in rows),
        "answers": list(_answers(question, rows)),
        "measures": [
            {
                "title": measure.title.format(unit=unit),
                "chart": _chart(rows, measure, unit),
            }
            for measure in MEASURES
        ],
        "columns": [measure.title.format(unit=unit) for measure in MEASURES],
        "lines": _lines(rows),
        "details": _details(
            [row for row in by_scenario if row["question"] == question],
        ),
    }


def _chart(rows: Sequence[Row], measure: Measure, unit: str) -> Markup:
    bars = [
        Bar(cell["name"], (row[measure.column],), text=cell["text"], is_best=cell["is_best"])
        for row, cell in zip(rows, _cells(rows, measure), strict=True)
    ]
    return bar_chart(bars, label=measure.title.format(unit=unit))


def _cells(rows: Sequence[Row], measure: Measure) -> list[dict[str, Any]]:
    """Return name, text and whether it is the best of each row."""
    choices = choices_of([(row["choice"], row) for row in rows], (measure.column,))
    best = {each.name for each in choices if is_best(each, choices, figure_of(measure.column))}
    return [
        {
            "name": choice_name(row["choice"]),
            "text": shown(row, measure),
            "is_best": row["choice"] in best,
        }
        for row in rows
    ]


def _lines(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return a table's rows: each choice with its cells, the best ones marked."""
    columns = [_cells(rows, measure) for measure in MEASURES]
    return [
        {"choice": choice_name(row["choice"]), "cells": [column[number] for column in columns]}
        for number, row in enumerate(rows)
    ]


def _details(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the rows of each scenario whose choices differ, with the best cells marked."""
    details = []
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        lines = _lines([row for row in rows if row["scenario"] == scenario])
        if len({tuple(cell["text"] for cell in line["cells"]) for line in lines}) > 1:
            details.append({"scenario": scenario, "lines": lines})
    return details
