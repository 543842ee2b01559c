"""The section of each group: its rebalances, members, owners, causes and balance."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

from coordinator_sim.trace.epoch_records import SHARE
from coordinator_sim_reports.charts.durations import duration_chart
from coordinator_sim_reports.charts.gantt import gantt_chart
from coordinator_sim_reports.charts.lanes import lanes_chart
from coordinator_sim_reports.charts.scale import TimeAxis
from coordinator_sim_reports.charts.steps import step_chart
from coordinator_sim_reports.charts.timeline import axis_of, seconds_of
from coordinator_sim_reports.formats import format_duration, mark_quality
from coordinator_sim_reports.group_table import group_facts, group_key
from coordinator_sim_reports.page_range import span_of
from coordinator_sim_reports.page_rows import ReportRows
from coordinator_sim_reports.run_labels import RunLabel

Row = Mapping[str, Any]

_LINES: Final = 12
"""Rebalances of a reason whose source lines are listed; the longest ones."""
_SHORT_ID: Final = 13
"""Characters of a member id's random part that a name keeps: as many as tell members apart."""


def group_anchors(groups: Sequence[Row], limit: int) -> dict[tuple[str, ...], str]:
    """Return the anchor of each group that has a section, by its key: the first so many.

    Args:
        groups: Rows of `groups`, worst first.
        limit: Number of sections.
    """
    return {group_key(row): f"g{number}" for number, row in enumerate(groups[:limit], 1)}


def group_sections(
    rows: ReportRows, labels: Mapping[str, RunLabel], anchors: Mapping[tuple[str, ...], str]
) -> list[dict[str, Any]]:
    """Return a section for each group with an anchor, worst first.

    Args:
        rows: Rows of the page.
        labels: Labels of the runs by trace id.
        anchors: `group_anchors`.

    Returns:
        Sections with `anchor`, `group_id`, `run_name`, `facts`; the charts `durations`, `lanes`,
        `owners` and `balance`, null where nothing is known; `causes`, `rebalances`; and `notes`
        that say what was cut.
    """
    parts = {
        name: _by_group(getattr(rows, name))
        for name in ("drawn", "sessions", "waits", "owners", "imbalance", "reasons")
    }
    chosen = [group for group in rows.groups if group_key(group) in anchors]
    return [
        _section(
            group,
            {name: own.get(group_key(group), []) for name, own in parts.items()},
            labels[group["trace_id"]],
            anchors[group_key(group)],
            rows.options.limits.section_rows,
        )
        for group in chosen
    ]


def source_lines(refs: Sequence[str]) -> list[tuple[str, str]]:
    """Return source lines as readers name them, with their full names: `server.log:12`.

    Args:
        refs: Lines as `file:line`.
    """
    return [(PurePath(ref).name, ref) for ref in refs]


def _section(
    group: Row, parts: Mapping[str, Sequence[Row]], label: RunLabel, anchor: str, limit: int
) -> dict[str, Any]:
    axis = axis_of([label])
    name = group["group_id"]
    drawn = [_told(row, label) for row in parts["drawn"]]
    members = _members(parts["sessions"], parts["waits"])
    numbers = _numbers(members, parts["owners"])
    resources = _by_resource(parts["owners"])
    finished = [row["max_ms"] for row in parts["reasons"] if row["max_ms"] is not None]
    full = {**group, "longest_ms": max(finished, default=None)}
    return {
        "anchor": anchor,
        "group_id": name,
        "run_name": label.name,
        "protocol": _protocol(group),
        "facts": group_facts(full),
        "causes": _causes(parts["reasons"], drawn, group["timing_quality"]),
        "durations": duration_chart(drawn, label, axis, name=name) if drawn else None,
        "lanes": lanes_chart(_named(members, numbers), label, axis, name=name) if members else None,
        "owners": gantt_chart(resources, numbers, label, axis, name=name) if resources else None,
        "owner_names": sorted((number, key) for key, number in numbers.items())
        if resources
        else [],
        "balance": _balance(parts["imbalance"], label, axis, name),
        "rebalances": sorted(drawn, key=lambda row: -row["lasted_us"])[:limit],
        "notes": _notes(group, parts),
    }


def _told(row: Row, label: RunLabel) -> dict[str, Any]:
    took = "not finished" if row["total_ms"] is None else format_duration(row["total_ms"])
    return {
        **row,
        "when": label.when(row["seen_us"]),
        "date": label.date(row["seen_us"]),
        "span": span_of(label, row["seen_us"]),
        "took": mark_quality(took, row["timing_quality"]),
        "lines": source_lines(row["source_refs"] or ()),
    }


def _protocol(group: Row) -> str:
    known = (group["protocol_type"], group["assignor"])
    return ", ".join(dict.fromkeys(part for part in known if part and part != "unknown"))


def _causes(reasons: Sequence[Row], drawn: Sequence[Row], quality: str) -> list[dict[str, Any]]:
    """Return the reasons of a group, most frequent first, with the lines behind each."""
    most = max((row["count"] for row in reasons), default=1)
    causes = []
    for reason in sorted(reasons, key=lambda row: (-row["count"], row["reason"])):
        own = [row for row in drawn if row["reason"] == reason["reason"]]
        longest = sorted(own, key=lambda row: -row["lasted_us"])[:_LINES]
        causes.append(
            {
                **reason,
                "width": 100 * reason["count"] / most,
                "timing_quality": quality,
                "lines": [line for row in longest for line in row["lines"]],
                "is_cut": len(longest) < reason["count"],
            }
        )
    return causes


def _members(
    sessions: Sequence[Row], waits: Sequence[Row]
) -> list[tuple[str, list[Row], list[Row]]]:
    """Return each member key with its sessions and waits, in the order of its first session."""
    found: dict[str, tuple[list[Row], list[Row]]] = {}
    for row in sessions:
        found.setdefault(row["member_key"], ([], []))[0].append(row)
    for row in waits:
        if row["member_key"] in found:
            found[row["member_key"]][1].append(row)
    return [(key, *own) for key, own in found.items()]


def _numbers(members: Sequence[tuple[str, Any, Any]], owners: Sequence[Row]) -> dict[str, int]:
    keys = dict.fromkeys([*(key for key, *_ in members), *(row["member_key"] for row in owners)])
    return {key: number for number, key in enumerate(keys, 1)}


def _named(
    members: Sequence[tuple[str, list[Row], list[Row]]], numbers: Mapping[str, int]
) -> list[tuple[str, list[Row], list[Row]]]:
    return [(f"{numbers[key]}: {_short(key)}", sessions, waits) for key, sessions, waits in members]


def _short(key: str) -> str:
    """Return a member's name without most of a generated id's random part, which is 36 long."""
    stem, dash, uuid = key[:-36], key[-37:-36], key[-36:]
    is_generated = dash == "-" and [len(part) for part in uuid.split("-")] == [8, 4, 4, 4, 12]
    return f"{stem}{uuid[:_SHORT_ID]}…" if is_generated else key


def _by_resource(owners: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    found: dict[str, list[Row]] = {}
    for row in owners:
        found.setdefault(row["resource"], []).append(row)
    return [(_bare(name), found[name]) for name in sorted(found, key=_natural)]


def _bare(resource: str) -> str:
    """Return a resource without the letter of its kind: `orders-3` of `p:orders-3`."""
    kind, colon, name = resource.partition(":")
    return name if colon and len(kind) == 1 else resource


def _natural(name: str) -> tuple[str, int, str]:
    stem, _, number = name.rpartition("_" if name.startswith("s:") else "-")
    return (stem, int(number), "") if number.isdecimal() else (name, 0, "")


def _balance(
    imbalance: Sequence[Row], label: RunLabel, axis: TimeAxis, name: str
) -> list[tuple[str, Any]]:
    """Return a chart of the spread of each kind of resources, those that were ever uneven."""
    charts = []
    for kind in sorted({row["kind"] for row in imbalance}):
        own = [row for row in imbalance if row["kind"] == kind and row["sync_us"] is not None]
        steps = [(seconds_of(row["sync_us"], label), float(row["spread"])) for row in own]
        if any(value for _, value in steps):
            end_s = seconds_of(label.end_us, label)
            told = f"Spread of {kind}s over the members of {name} over {axis.title}"
            charts.append((kind, step_chart(steps, end_s, axis, label=told)))
    return charts


def _notes(group: Row, parts: Mapping[str, Sequence[Row]]) -> list[str]:
    """Say what of the group is not drawn."""
    notes = []
    if group["protocol_type"] == SHARE:
        notes.append(
            "Several members of a share group have a partition at once: its epochs are told, and "
            "no owners, moves or times without an owner."
        )
    if len(parts["drawn"]) < group["rebalances"]:
        notes.append(
            f"{len(parts['drawn']):,} of {group['rebalances']:,} rebalances are drawn, those that "
            "are among the longest of all groups."
        )
    for name, what in (("sessions", "members"), ("owners", "intervals of ownership")):
        of_rows = parts[name][0]["of_rows"] if parts[name] else 0
        if len(parts[name]) < of_rows:
            notes.append(f"{len(parts[name]):,} of {of_rows:,} {what} are drawn.")
    listed = len({row["resource"] for row in parts["owners"]})
    if 0 < listed < (group["resource_count"] or 0):
        notes.append(
            f"Of {group['resource_count']:,} resources the {listed:,} with most owners are drawn."
        )
    return notes


def _by_group(rows: Sequence[Row]) -> dict[tuple[str, ...], list[Row]]:
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(group_key(row), []).append(row)
    return found
