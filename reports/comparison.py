"""Blocks of the page that compare assignors, one for each type of protocol."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from coordinator_sim_reports import figures

Row = Mapping[str, Any]

_PROTOCOL_TITLES: Final = {
    "consumer": "Consumer groups",
    "connect": "Connect workers",
    "streams": "Streams groups",
    "share": "Share groups",
}
"""Protocol types with the headings of their blocks, in the order of the page."""


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
                "best": _best(listed),
                "cooperative": any(row["assignor"] == "cooperative-sticky" for row in known),
                "connect": protocol_type == "connect",
                "is_known": bool(known),
                "moves": figures.moves_chart(known) if known else None,
                "interruptions": figures.interruptions_chart(known) if known else None,
                "unowned": figures.unowned_chart(known) if known else None,
            }
        )
    return blocks


def _best(rows: Sequence[Row]) -> dict[tuple[str, str], float]:
    """Return the best value per (scenario, column), where assignors differ."""
    best: dict[tuple[str, str], float] = {}
    low = ("moved", "excess_moves", "interrupted", "unowned_s", "stopped_s", "spread")
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        compared = [row for row in rows if row["scenario"] == scenario]
        for column in (*low, "stickiness", "kept"):
            values = [row[column] for row in compared if row[column] is not None]
            if len(set(values)) > 1:
                best[scenario, column] = min(values) if column in low else max(values)
    return best
