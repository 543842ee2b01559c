"""The table of groups: the worst first, only columns of which some group knows a value."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from coordinator_sim_reports.formats import (
    UNKNOWN,
    format_count,
    format_decimal,
    format_duration,
    format_seconds,
    mark_quality,
)
from coordinator_sim_reports.run_labels import RunLabel

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of figures.

    Args:
        name: Name of the column in the rows.
        title: Heading.
        form: Formats a value.
        quality: Name of the column with the quality of its values; empty where all are exact.
        meaning: One sentence for readers who point at the heading.
        is_rare: Whether the column is left out where all its values are 0.
    """

    name: str
    title: str
    form: Callable[[float | None], str]
    quality: str = ""
    meaning: str = ""
    is_rare: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: text with the mark of its quality, the number to sort by, and the quality."""

    text: str
    value: float | None
    quality: str


@dataclass(frozen=True, slots=True)
class GroupTable:
    """The table of groups.

    Args:
        columns: Columns of figures that some group knows.
        unknown: Headings of the columns that none knows.
        rows: A row per group: `group_id`, `run_name`, `anchor` of its section (empty for none),
            `reason_counts` (texts, most frequent first) and `cells`, as many as columns.
    """

    columns: Sequence[Column]
    unknown: Sequence[str]
    rows: Sequence[Mapping[str, Any]]


_COLUMNS: Final = (
    Column("rebalances", "rebalances", format_count),
    Column(
        "open_rebalances",
        "unfinished",
        format_count,
        meaning="cut off by the end of the trace",
        is_rare=True,
    ),
    Column("longest_ms", "longest", format_duration, "timing_quality"),
    Column("rebalancing_ms", "in rebalances", format_duration, "timing_quality"),
    Column("most_members", "members", format_count, meaning="the most in a generation"),
    Column(
        "unowned_s",
        "unowned (partition·s)",
        format_seconds,
        "ownership_quality",
        "time without an owner, summed over resources",
    ),
    Column("stopped_s", "stopped (s)", format_seconds, "stopped_quality"),
    Column("interrupted", "interruptions", format_count, "ownership_quality"),
    Column("moved", "moved", format_count, "assignment_quality"),
    Column("excess_moves", "excess moves", format_count, "assignment_quality"),
    Column("spread", "spread", format_decimal, "assignment_quality", "most less fewest resources"),
)


def group_table(
    groups: Sequence[Row],
    reasons: Sequence[Row],
    labels: Mapping[str, RunLabel],
    anchors: Mapping[tuple[str, ...], str],
) -> GroupTable:
    """Return the table of groups.

    Args:
        groups: Rows of `groups`, worst first.
        reasons: Rows of `reasons` of these groups.
        labels: Labels of the runs by trace id.
        anchors: Anchor of each group's section, by its key (`group_key`).
    """
    by_group: dict[tuple[str, ...], list[Row]] = {}
    for reason in sorted(reasons, key=lambda row: (-row["count"], row["reason"])):
        by_group.setdefault(group_key(reason), []).append(reason)
    full = [{**group, **_longest(by_group.get(group_key(group), ()))} for group in groups]
    told = {each.name: [row[each.name] for row in full] for each in _COLUMNS}
    known = [each for each in _COLUMNS if any(value is not None for value in told[each.name])]
    shown = [each for each in known if not each.is_rare or any(told[each.name])]
    rows = [
        {
            "group_id": row["group_id"],
            "run_name": labels[row["trace_id"]].name,
            "anchor": anchors.get(group_key(row), ""),
            "reason_counts": [
                (reason["reason"], reason["count"]) for reason in by_group.get(group_key(row), ())
            ],
            "cells": [cell_of(row, column) for column in shown],
        }
        for row in full
    ]
    return GroupTable(shown, [each.title for each in _COLUMNS if each not in known], rows)


def group_key(row: Row) -> tuple[str, ...]:
    """Return the key of a row's group."""
    return (row["trace_id"], row["cluster_id"], row["group_id"])


def group_facts(group: Row) -> list[tuple[Column, Cell]]:
    """Return the figures that are known of one group, with their columns.

    Args:
        group: Row of `groups`, with `longest_ms`.
    """
    cells = [(column, cell_of(group, column)) for column in _COLUMNS]
    return [
        (column, cell)
        for column, cell in cells
        if cell.value or (cell.value is not None and not column.is_rare)
    ]


def _longest(reasons: Sequence[Row]) -> dict[str, float | None]:
    finished = [row["max_ms"] for row in reasons if row["max_ms"] is not None]
    return {"longest_ms": max(finished, default=None)}


def cell_of(row: Row, column: Column) -> Cell:
    """Return the cell of a row in a column."""
    quality = row[column.quality] if column.quality else "exact"
    text = column.form(row[column.name])
    is_known = text != UNKNOWN
    return Cell(mark_quality(text, quality), row[column.name], quality if is_known else UNKNOWN)
