"""Renders the rows of a sweep as one self-contained HTML page."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from coordinator_sim import __version__
from coordinator_sim_reports.charts.bars import Bar, bar_chart
from coordinator_sim_reports.environment import page_environment
from coordinator_sim_reports.formats import format_count, format_seconds, with_range
from coordinator_sim_reports.tradeoffs import OBJECTIVES, Candidate
from coordinator_sim_reports.tradeoffs_chart import scatter, strip

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
_WHOLE_FROM_S: Final = 100
"""Seconds from which on three digits are enough."""
_NEAR: Final = 1.02
"""Values within two percent of the least count as equally good."""

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
) -> str:
    """Return the comparison as HTML that needs no network.

    Args:
        scope: What was run.
        choices: Rows by question and choice, in reading order.
        by_scenario: Rows by question, scenario and choice, in reading order.
        candidates: Every combination of choices (`tradeoffs.candidates`).
    """
    named = Counter(row["question"] for row in choices)
    questions = [question for question, count in named.items() if count > 1]
    template = page_environment().get_template("sweep.html.j2")
    return template.render(
        title="What each choice costs",
        version=__version__,
        runs=scope.runs,
        seeds=scope.seeds,
        seeds_left=scope.seeds_left,
        left_out=scope.left_out,
        is_own=scope.is_own,
        tradeoffs=_tradeoffs(candidates),
        scenarios=len({row["scenario"] for row in by_scenario}),
        blocks=[_block(question, choices, by_scenario) for question in questions],
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
        f"{value:.2f}" if objective == "imbalance" else format_count(round(value))
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
    if measure.is_seconds and value < _WHOLE_FROM_S:
        return format_seconds(value)
    return format_count(round(value))


def unit_of(question: str) -> str:
    """Return the unit of the resources in a question's groups."""
    return "task" if question == "protocol" else "partition"


def choice_name(choice: str) -> str:
    """Return the name of a choice for readers."""
    return NAMES.get(choice, choice)


def in_short(rows: Sequence[Row]) -> str:
    """Return the change from the first to the last choice, as one line.

    Args:
        rows: Rows of one question, in reading order: from the oldest choice to the newest.
    """
    first, last = rows[0], rows[-1]
    changes = ", ".join(
        f"{_change(first[measure.column], last[measure.column])} {measure.word}"
        for measure in MEASURES
        if measure.column != "reprocessed"
    )
    return f"{choice_name(last['choice'])} instead of {choice_name(first['choice'])}: {changes}"


def _change(before: float, after: float) -> str:
    if before == 0:
        return "no" if after == 0 else "some"
    percent = round(100 * (after - before) / before)
    sign = "\N{MINUS SIGN}" if percent < 0 else "+"
    return f"{sign}{abs(percent):,} %"


def _block(question: str, choices: Sequence[Row], by_scenario: Sequence[Row]) -> dict[str, Any]:
    rows = [row for row in choices if row["question"] == question]
    unit = unit_of(question)
    return {
        "title": title_of(question, rows),
        "scenarios": max(row["scenarios"] for row in rows),
        "in_short": in_short(rows),
        "measures": [
            {
                "title": measure.title.format(unit=unit),
                "chart": _chart(rows, measure, unit),
            }
            for measure in MEASURES
        ],
        "columns": [measure.title.format(unit=unit) for measure in MEASURES],
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
    values = [row[measure.column] for row in rows]
    largest, least = max(values), min(values)
    return [
        {
            "name": choice_name(row["choice"]),
            "text": shown(row, measure),
            "is_best": value <= least * _NEAR < largest,
        }
        for row, value in zip(rows, values, strict=True)
    ]


def _details(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the rows of each scenario whose choices differ, with the best cells marked."""
    details = []
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        own = [row for row in rows if row["scenario"] == scenario]
        cells = [_cells(own, measure) for measure in MEASURES]
        if any(cell["is_best"] for column in cells for cell in column):
            lines = [
                {"choice": choice_name(row["choice"]), "cells": [column[i] for column in cells]}
                for i, row in enumerate(own)
            ]
            details.append({"scenario": scenario, "lines": lines})
    return details
