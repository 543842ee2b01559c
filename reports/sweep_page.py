"""Renders the rows of a sweep as one self-contained HTML page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from coordinator_sim import __version__
from coordinator_sim_reports.charts.bars import Bar, bar_chart
from coordinator_sim_reports.formats import format_count, format_seconds, with_range
from coordinator_sim_reports.render import page_environment

Row = Mapping[str, Any]

TITLES: Final = {
    "protocol": "Connect: eager or incremental cooperative",
    "assignor": "Assignor: range, sticky or cooperative-sticky",
    "membership": "Membership: dynamic or static",
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


def render_sweep(
    *,
    choices: Sequence[Row],
    by_scenario: Sequence[Row],
    runs: int,
    seeds: int,
    left_out: Mapping[str, str],
) -> str:
    """Return the comparison as HTML that needs no network.

    Args:
        choices: Rows by question and choice, in reading order.
        by_scenario: Rows by question, scenario and choice, in reading order.
        runs: Number of runs simulated.
        seeds: Number of seeds of each.
        left_out: Scenarios that are not compared, with the reason.
    """
    questions = dict.fromkeys(row["question"] for row in choices)
    template = page_environment().get_template("sweep.html.j2")
    return template.render(
        title="What each choice costs",
        version=__version__,
        runs=runs,
        seeds=seeds,
        left_out=left_out,
        scenarios=len({row["scenario"] for row in by_scenario}),
        blocks=[_block(question, choices, by_scenario) for question in questions],
    )


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
        "title": TITLES[question],
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
