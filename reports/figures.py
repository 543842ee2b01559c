"""The charts of the comparison of assignors, made of its rows: medians, as in the tables."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from coordinator_sim_reports.charts.bars import Bar, bar_chart
from coordinator_sim_reports.formats import terse_seconds, whole

Row = Mapping[str, Any]


def moves_chart(rows: Sequence[Row]) -> Markup:
    """Draw moved resources per run, by necessity. One bar per row of the comparison."""
    known = [row for row in rows if row["moved"] is not None]
    necessary = [_necessary(row) for row in known]
    values = [
        (row["orphaned"], needed, max(0, row["moved"] - row["orphaned"] - needed))
        for row, needed in zip(known, necessary, strict=True)
    ]
    parts = ("old owner gone", "needed for balance", "avoidable")
    return _stacked(known, "moved", values, parts, "resources moved per run")


def _necessary(row: Row) -> float:
    bound = row["lb_balanced"]
    surviving = row["moved"] - row["orphaned"]
    return 0.0 if bound is None else max(0.0, min(surviving, bound - row["orphaned"]))


def unowned_chart(rows: Sequence[Row]) -> Markup:
    """Draw partition-seconds without an owner per run, by the group's activity meanwhile."""
    known = [row for row in rows if row["unowned_s"] is not None]
    values = [(row["waiting_s"], row["joining_s"], row["syncing_s"]) for row in known]
    parts = ("waiting (detection, delays)", "members joining", "assignment under way")
    return _stacked(known, "unowned_s", values, parts, "partition-seconds without an owner per run")


def interruptions_chart(rows: Sequence[Row]) -> Markup:
    """Draw owned resources that were given up per run, by their next owner."""
    known = [row for row in rows if row["interrupted"] is not None]
    values = [
        (row["interrupted"] - row["restarted_in_place"], row["restarted_in_place"]) for row in known
    ]
    parts = ("taken up by another member", "stopped and resumed by the same member")
    return _stacked(known, "interrupted", values, parts, "interruptions per run")


def reasons_chart(counts: Mapping[str, int]) -> Markup:
    """Draw the number of rebalances per reason, most frequent first."""
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    rows = [Bar(reason, (count,), text=f"{count:,}") for reason, count in ordered]
    return bar_chart(rows, label="Rebalances by reason", title="rebalances")


def _stacked(
    rows: Sequence[Row],
    column: str,
    values: Sequence[Sequence[float]],
    parts: Sequence[str],
    title: str,
) -> Markup:
    """Draw the medians of a column, each divided as the means of its parts are."""
    several = len({row["scenario"] for row in rows}) > 1
    bars = []
    for row, own in zip(rows, values, strict=True):
        share = row[f"{column}_median"] / sum(own) if sum(own) else 0
        note = row["scenario"] if several else ""
        text = (terse_seconds if column.endswith("_s") else whole)(row[f"{column}_median"])
        bars.append(Bar(row["assignor"], [value * share for value in own], text=text, note=note))
    if any(row["runs"] > 1 for row in rows):
        title += " (median)"
    return bar_chart(bars, label=title, parts=parts, title=title)
