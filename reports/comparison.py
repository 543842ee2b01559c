"""Blocks of the page that compare assignors, one for each type of protocol."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from coordinator_sim.assignors.registry import CONSUMER_ASSIGNORS
from coordinator_sim.sim.scenario.settings import CONNECT_PROTOCOLS
from coordinator_sim_reports import figures
from coordinator_sim_reports.formats import format_decimal, spread_of, terse_seconds, whole
from coordinator_sim_reports.winners import (
    Choice,
    choices_of,
    figure_of,
    figures_of,
    is_best,
    verdict,
)

Row = Mapping[str, Any]

_PROTOCOL_TITLES: Final = {
    "consumer": "Consumer groups",
    "connect": "Connect workers",
    "streams": "Streams groups",
    "share": "Share groups",
}
"""Protocol types with the headings of their blocks, in the order of the page."""
_WEIGHED: Final = ("moved", "unowned_s", "stopped_s")
"""What the sentence of a comparison tells; the weightier first."""
CHURN: Final = {
    "rebalances": "rebal.",
    "moved": "moved",
    "excess_moves": "excess",
    "stickiness": "sticky",
    "interrupted": "interr.",
    "unowned_s": "unowned",
    "stopped_s": "stopped",
}
"""Columns of the short table of a comparison, with their headings."""
_MARKED: Final = (*_WEIGHED, "excess_moves", "interrupted")


def reading_order(row: Row) -> tuple[int, str, str, str]:
    """Sort key of a comparison: known types of protocols first, then unknown ones."""
    known = [*_PROTOCOL_TITLES, row["protocol_type"]]
    return (
        known.index(row["protocol_type"]),
        row["protocol_type"],
        row["scenario"],
        row["assignor"],
    )


def comparison_blocks(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return one block per protocol type: rows by scenario, and charts if moves are known.

    Args:
        rows: Rows of the table `comparison`.
    """
    ordered = sorted(rows, key=reading_order)
    blocks = []
    for protocol_type, members in groupby(ordered, key=lambda row: row["protocol_type"]):
        listed = list(members)
        known = [row for row in listed if row["moved"] is not None]
        blocks.append(
            {
                "title": _PROTOCOL_TITLES.get(protocol_type, "Groups of unknown protocol type"),
                "rows": listed,
                "best": best_cells(listed),
                "cooperative": any(row["assignor"] == "cooperative-sticky" for row in known),
                "connect": protocol_type == "connect",
                "is_known": bool(known),
                "moves": figures.moves_chart(known) if known else None,
                "interruptions": figures.interruptions_chart(known) if known else None,
                "unowned": figures.unowned_chart(known) if known else None,
            }
        )
    return blocks


def answers_of(rows: Sequence[Row]) -> list[str]:
    """Return a sentence for each scenario that was run under several assignors: which of them wins.

    Args:
        rows: Rows of the table `comparison`.
    """
    told = []
    for scenario, own in _scenarios(sorted(rows, key=reading_order)):
        sentence = verdict(_choices(own, _WEIGHED), figures_of(_what(own), _WEIGHED))
        if sentence and len(own) > 1:
            told.append(f"{scenario}: {sentence}")
    return told


def churn_cells(row: Row, *, stacked: bool = False) -> list[tuple[str, str]]:
    """Return the columns and texts of a row of the short table.

    Args:
        row: Row of the table `comparison` whose moves are known.
        stacked: Put ranges on a line of their own.
    """
    told = []
    for column in CHURN:
        if column == "stickiness":
            told.append((column, format_decimal(row[column], 3)))
            continue
        form = terse_seconds if column.endswith("_s") else whole
        text = spread_of(row, column, form, stacked=stacked)
        is_bound = column == "stopped_s" and row["stopped_quality"] == "bound"
        told.append((column, f"<= {text}" if is_bound else text))
    return told


def best_cells(rows: Sequence[Row]) -> frozenset[tuple[str, str, str]]:
    """Return the cells (scenario, assignor, column) that are best in the worlds that all met."""
    return frozenset(
        (scenario, each.name, column)
        for scenario, own in _scenarios(rows)
        for column in _MARKED
        for choices in (_choices(own, (column,)),)
        for each in choices
        if is_best(each, choices, figure_of(column))
    )


def _scenarios(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """Return the rows of each scenario; assignors in Kafka's order, unknown ones last."""
    order = (*CONSUMER_ASSIGNORS, *(f"connect-{name}" for name in CONNECT_PROTOCOLS))
    by_scenario: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_scenario.setdefault((row["protocol_type"], row["scenario"]), []).append(row)
    return [
        (scenario, sorted(own, key=lambda row: [*order, row["assignor"]].index(row["assignor"])))
        for (_, scenario), own in by_scenario.items()
    ]


def _choices(rows: Sequence[Row], columns: Sequence[str]) -> list[Choice]:
    return choices_of([(row["assignor"], row) for row in rows], columns)


def _what(rows: Sequence[Row]) -> str:
    return "connectors and tasks" if rows[0]["protocol_type"] == "connect" else "partitions"
