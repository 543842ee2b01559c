"""Rows of the page about findings: what happened, what it cost, what to change, how sure."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

from coordinator_sim_reports.formats import format_count, format_seconds, format_share
from coordinator_sim_reports.group_sections import source_lines
from coordinator_sim_reports.group_table import group_key
from coordinator_sim_reports.run_labels import RunLabel

Row = Mapping[str, Any]

_NO_SETTING: Final = "not computed: no replay can try the change"


def finding_rows(
    findings: Sequence[Row],
    labels: Mapping[str, RunLabel],
    anchors: Mapping[tuple[str, ...], str],
) -> list[dict[str, Any]]:
    """Return the findings as the page shows them, in the order given.

    Args:
        findings: Rows of the table `findings`.
        labels: Labels of the runs by trace id.
        anchors: Anchor of each group's section, by its key.

    Returns:
        Rows with `title` (the kind in words), `what`, `change`, `assumes`, `group_id`, `run_name`,
        `anchor` of the group's section (empty for none), `rebalances`, `cost`, `saves` (null where
        it is not computed), `command` (the one that computes it; null where there is none),
        `why_not`, `basis`, `confidence` and `lines`.
    """
    return [
        {
            "title": row["kind"].replace("-", " "),
            "what": row["what"],
            "change": row["change"],
            "assumes": list(row["assumes"] or ()),
            "setting": row["setting"],
            "group_id": row["group_id"],
            "run_name": labels[row["trace_id"]].name,
            "anchor": anchors.get(group_key(row), ""),
            "rebalances": format_count(row["rebalances"]),
            "cost": f"{format_seconds(row['cost_s'])} {row['cost_unit']}",
            "cost_s": row["cost_s"],
            "saves": _saves(row),
            "command": _command(row, labels[row["trace_id"]]),
            "why_not": _NO_SETTING,
            "basis": row["basis"],
            "confidence": format_share(row["confidence"]),
            "lines": source_lines(row["source_refs"] or ()),
        }
        for row in findings
    ]


def _saves(row: Row) -> str | None:
    if row["saves_s"] is None:
        return None
    more = row["more_rebalances"] or 0
    other = f", with {more} rebalance{'s' if more > 1 else ''} more" if more > 0 else ""
    return f"{format_seconds(row['saves_s'])} of {format_seconds(row['cost_s'])}{other}"


def _command(row: Row, label: RunLabel) -> str | None:
    """Return the command that computes what a change would save; null where it is known."""
    if row["saves_s"] is not None or row["setting"] is None:
        return None
    parts = ["coordinator-sim", "replay", label.path]
    return shlex.join([*parts, "--group", row["group_id"], "--set", row["setting"]])
