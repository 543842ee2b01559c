"""Renders the collected rows of a report as one self-contained HTML page.

Tables of the page about costs: by day, by deploy, and storms of rebalances.

Rows of what an import read, and of the clocks of its sources, as the page shows them.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from typing import Any, Final

from markupsafe import Markup

from coordinator_sim import __version__
from coordinator_sim.replay.findings import COUNTS, MEMBER_SECONDS, unit_of
from coordinator_sim_reports import formats
from coordinator_sim_reports.charts.heatmap import density_chart
from coordinator_sim_reports.charts.svg import RowName
from coordinator_sim_reports.charts.timeline import Block, axis_of, timeline_chart
from coordinator_sim_reports.comparison import (
    CHURN,
    answers_of,
    churn_cells,
    comparison_blocks,
)
from coordinator_sim_reports.environment import page_environment
from coordinator_sim_reports.figures import reasons_chart
from coordinator_sim_reports.formats import (
    format_count,
    format_duration,
    format_seconds,
    format_share,
)
from coordinator_sim_reports.group_sections import group_anchors, group_sections, source_lines
from coordinator_sim_reports.group_table import Cell, Column, cell_of, group_key, group_table
from coordinator_sim_reports.page_range import (
    marks_of,
    overview_chart,
    range_data,
    span_of,
    summed,
)
from coordinator_sim_reports.page_rows import ReportRows
from coordinator_sim_reports.run_labels import RunLabel, are_beside, choice_of, run_labels

Row = Mapping[str, Any]

_UNKNOWN: Final = ""
_MS: Final = 1_000
"""Microseconds of a millisecond."""


def source_rows(rows: Sequence[Row], labels: Mapping[str, RunLabel]) -> list[dict[str, Any]]:
    """Return a row for each kind of source of each run.

    Args:
        rows: Rows of `selection.source_kinds`.
        labels: Labels of the runs, by trace id.
    """
    told = []
    for row in rows:
        concerned = row["parsed"] + row["known"] + row["unparsed"]
        skipped = row["skipped_bytes"]
        told.append(
            {
                **row,
                "run_name": labels[row["trace_id"]].name,
                "understood": 1 - row["unparsed"] / concerned if concerned else None,
                "coverage": 1 - row["missing_offsets"] / row["offsets"] if row["offsets"] else None,
                "skipped": _UNKNOWN if skipped is None else f"{format_count(skipped)} B",
            }
        )
    return sorted(told, key=lambda row: row["run_name"])


def skew_rows(rows: Sequence[Row], labels: Mapping[str, RunLabel]) -> list[dict[str, Any]]:
    """Return a row for each pair of sources of each run.

    Args:
        rows: Rows of the table `clock_skews`.
        labels: Labels of the runs, by trace id.
    """
    told = [
        {
            **row,
            "run_name": labels[row["trace_id"]].name,
            "shown": _apart(row),
            "widest": _shown(row["widest_us"]),
        }
        for row in rows
    ]
    return sorted(told, key=lambda row: row["run_name"])


def _apart(row: Row) -> str:
    median_us = row["median_us"]
    if not median_us:
        return f"as that of {row['first_source']}"
    side = "after" if median_us > 0 else "before"
    return f"{_shown(abs(median_us))} {side} that of {row['first_source']}"


def _shown(duration_us: int) -> str:
    """Return a distance of clocks: those of one host differ by less than a millisecond."""
    return format_duration(duration_us / _MS) if duration_us >= _MS else f"{duration_us / _MS} ms"


def shared_groups(
    groups: Sequence[Row], reasons: Sequence[Row], labels: Mapping[str, RunLabel]
) -> list[dict[str, Any]]:
    """Return the groups that several runs have under one name, in order of their names.

    Args:
        groups: Rows of `groups`.
        reasons: Rows of `reasons`.
        labels: Labels of the runs by trace id, in the order of the page.

    Returns:
        A row per such name with `group_id` and `runs`: for each run that has the group the row of
        `groups` with `run_name`, `longest_ms`, null where no rebalance is finished, and
        `reason_counts`, most frequent first.
    """
    order = {trace_id: number for number, trace_id in enumerate(labels)}
    by_group: dict[tuple[str, ...], list[Row]] = {}
    for reason in sorted(reasons, key=lambda row: (-row["count"], row["reason"])):
        by_group.setdefault(_group_key(reason), []).append(reason)
    by_name: dict[str, list[dict[str, Any]]] = {}
    for group in sorted(groups, key=lambda row: (row["group_id"], order[row["trace_id"]])):
        own = by_group.get(_group_key(group), [])
        finished = [row["max_ms"] for row in own if row["max_ms"] is not None]
        by_name.setdefault(group["group_id"], []).append(
            {
                **group,
                "run_name": labels[group["trace_id"]].name,
                "longest_ms": max(finished, default=None),
                "reason_counts": {row["reason"]: row["count"] for row in own},
            }
        )
    return [
        {"group_id": name, "runs": runs}
        for name, runs in by_name.items()
        if len({row["trace_id"] for row in runs}) > 1
    ]


def _group_key(row: Row) -> tuple[str, ...]:
    return (row["trace_id"], row["cluster_id"], row["group_id"])


_NO_SETTING: Final = "not computed: no replay can try the change"


def finding_rows(
    findings: Sequence[Row],
    labels: Mapping[str, RunLabel],
    anchors: Mapping[tuple[str, ...], str],
    words: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """Return the findings as the page shows them, in the order given.

    Args:
        findings: Rows of the table `findings`, with `saving` in words.
        labels: Labels of the runs by trace id.
        anchors: Anchor of each group's section, by its key.
        words: Options of commands that choose the time that the page is of.

    Returns:
        Rows with `title` (the kind in words), `what`, `change`, `assumes`, `group_id`, `run_name`,
        `anchor` of the group's section (empty for none), `rebalances`, `times` (first and last
        occurrence; empty where it is not told) and the same as `span`, `cost`, `saves`
        (a sentence; null where the page does not compute it), `is_computed`, `command` (it shows
        more; null where there is none), `why_not`, `basis`, `confidence` and `lines`.
    """
    return [
        {
            "number": number,
            "title": row["kind"].replace("-", " "),
            "what": row["what"],
            "change": row["change"],
            "assumes": list(row["assumes"] or ()),
            "setting": row["setting"],
            "group_id": row["group_id"],
            "run_name": labels[row["trace_id"]].name,
            "anchor": anchors.get(group_key(row), ""),
            "rebalances": format_count(row["rebalances"]),
            "times": _times(row, labels[row["trace_id"]]),
            "span": _span(row, labels) if row["first_us"] is not None else "",
            "cost": _cost(row["cost_s"], row["cost_unit"]),
            "cost_s": row["cost_s"],
            "saves": row["saving"],
            "is_computed": row["saves_s"] is not None,
            "command": _command(row, labels[row["trace_id"]], words),
            "why_not": _NO_SETTING,
            "basis": row["basis"],
            "confidence": format_share(row["confidence"]),
            "lines": source_lines(row["source_refs"] or ()),
        }
        for number, row in enumerate(findings, 1)
    ]


def _cost(cost: float, unit: str) -> str:
    form = format_count if unit in COUNTS else format_seconds
    return f"{form(cost)} {unit_of(cost, unit)}"


def _times(row: Row, label: RunLabel) -> str:
    """Return when a finding happened, first and last; empty where the trace does not tell."""
    if row["first_us"] is None:
        return ""
    first, last = label.when(row["first_us"]), label.when(row["last_us"])
    return first if first == last else f"{first} to {last}"


def finding_groups(
    rows: ReportRows,
    labels: Mapping[str, RunLabel],
    anchors: Mapping[tuple[str, ...], str],
) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the name and the findings of each run that is compared with others, numbered through.

    Time in which members stood still ranks before that of rebalances, in which members of a
    cooperative group work, and before counts.
    """
    order = list(labels)
    ranked = sorted(
        rows.findings,
        key=lambda row: (
            order.index(row["trace_id"]),
            row["cost_unit"] in COUNTS,
            row["cost_unit"] != MEMBER_SECONDS,
            -row["cost_s"],
        ),
    )
    told = finding_rows(ranked, labels, anchors, rows.options.words)
    return [(name, list(own)) for name, own in groupby(told, key=lambda row: row["run_name"])]


def _command(row: Row, label: RunLabel, words: Sequence[str]) -> str | None:
    """Return the command that replays a group with a setting; null where there is none to try."""
    if row["setting"] is None:
        return None
    parts = ["coordinator-sim", "replay", label.path]
    return shlex.join([*parts, "--group", row["group_id"], *words, "--set", row["setting"]])


def fault_rows(
    windows: Sequence[Row], effects: Sequence[Row], labels: Mapping[str, RunLabel]
) -> list[dict[str, Any]]:
    """Return the windows in order of time, one after another the same window of several runs.

    The n-th window of a name in one run is the same as the n-th of that name in another.

    Args:
        windows: Rows of `fault_windows`.
        effects: Rows of `window_effects` with `ownership_quality`, in the order of the page.
        labels: Labels of the runs by trace id, in the order of the page.

    Returns:
        Rows with `name`, `kind` (the class of a task, else empty), `run_name`, `when`, `date`,
        `span`, `length_ms`, `is_ended`; `effects` of the window; `is_first` of those that are the
        same window.
    """
    by_window: dict[tuple[object, ...], list[Row]] = {}
    for effect in effects:
        by_window.setdefault(_window_key(effect), []).append(effect)
    numbered = _numbered(windows)
    first_us: dict[tuple[str, int], int] = {}
    for same, window in numbered:
        start_us = _start_us(window, labels)
        first_us[same] = min(start_us, first_us.get(same, start_us))
    order = {trace_id: number for number, trace_id in enumerate(labels)}
    numbered.sort(key=lambda each: (first_us[each[0]], each[0], order[each[1]["trace_id"]]))
    rows: list[dict[str, Any]] = []
    told: tuple[str, int] | None = None
    for same, window in numbered:
        label = labels[window["trace_id"]]
        rows.append(
            {
                "name": window["name"],
                "kind": window["kind"] or "" if window["task"] is not None else "",
                "run_name": label.name,
                "when": label.when(window["from_us"]),
                "date": label.date(window["from_us"]),
                "span": span_of(label, window["from_us"], window["to_us"]),
                "length_ms": (window["to_us"] - window["from_us"]) / 1000,
                "is_ended": window["is_ended"],
                "effects": by_window.get(_window_key(window), []),
                "is_first": same != told,
            }
        )
        told = same
    return rows


def _numbered(windows: Sequence[Row]) -> list[tuple[tuple[str, int], Row]]:
    """Return windows with their name, and their number among those of that name in their run."""
    counts: dict[tuple[str, str], int] = {}
    numbered = []
    for window in sorted(windows, key=lambda each: each["window_no"]):
        own = (window["trace_id"], window["name"])
        counts[own] = counts.get(own, 0) + 1
        numbered.append(((window["name"], counts[own]), window))
    return numbered


def _start_us(window: Row, labels: Mapping[str, RunLabel]) -> int:
    start_us: int = window["from_us"] - (labels[window["trace_id"]].origin_us or 0)
    return start_us


def _window_key(row: Row) -> tuple[object, ...]:
    return (row["trace_id"], row["cluster_id"], row["window_no"])


_STOPPED: Final = "stopped_quality"
_FIGURES: Final = (
    Column("rebalances", "rebalances", format_count),
    Column("rebalancing_s", "rebalancing (s)", format_seconds),
    Column(
        "paused_s",
        "paused (member·s)",
        format_seconds,
        _STOPPED,
        "members that had given up everything, until their next assignment",
    ),
    Column("stopped_s", "stopped (s)", format_seconds, _STOPPED, "nobody owned anything"),
    Column(
        "unowned_s",
        "unowned (partition·s)",
        format_seconds,
        meaning="time without an owner, summed over resources",
    ),
    Column("moved", "moved", format_count),
    Column("voluntary", "owner stayed", format_count, meaning="moved although the owner stayed"),
    Column("needless", "needless", format_count, meaning="beyond the fewest for a balanced result"),
    Column("reprocessed", "read again", format_count, meaning="records"),
)
_EPOCH: Final = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Name:
    """A cell that names a row: text, the number to sort by, and the anchor that it leads to."""

    text: str
    value: float | None = None
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class CostTable:
    """A table of costs.

    Args:
        names: Headings of the cells that name a row.
        columns: Columns of figures that some row knows.
        unknown: Headings of the columns that none knows.
        rows: Names, figures, and the time (`span_of`) of each row.
        total: Rows that there are, of which the costliest are shown.
    """

    title: str
    names: Sequence[str]
    columns: Sequence[Column]
    unknown: Sequence[str]
    rows: Sequence[tuple[Sequence[Name], Sequence[Cell], str]]
    total: int


def cost_tables(
    costs: Sequence[Row],
    storms: Sequence[Row],
    labels: Mapping[str, RunLabel],
    anchors: Mapping[tuple[str, ...], str],
) -> list[CostTable]:
    """Return the tables of costs; one without rows is absent.

    Args:
        costs: Rows of the table `costs`.
        storms: Rows of the table `storms`.
        labels: Labels of the runs by trace id.
        anchors: Anchor of each group's section, by its key.
    """

    def group(row: Row) -> Name:
        return Name(row["group_id"], anchor=anchors.get(group_key(row), ""))

    def run(row: Row) -> Name:
        return Name(labels[row["trace_id"]].name)

    def since(row: Row) -> Name:
        return Name(labels[row["trace_id"]].when(row["first_us"]), row["first_us"])

    days = [row for row in costs if row["scope"] == "day"]
    deploys = [row for row in costs if row["scope"] == "deploy"]
    found = (
        _table("By day", ("day", "run"), days, lambda row: [_day(row, labels), run(row)], labels),
        _table(
            "By deploy",
            ("group", "run", "deploy", "from"),
            deploys,
            lambda row: [
                group(row),
                run(row),
                Name(str(row["deploy_no"]), row["deploy_no"]),
                since(row),
            ],
            labels,
        ),
        _table(
            "Storms and loops",
            ("group", "run", "kind", "from", "lasted", "members", "the first"),
            storms,
            lambda row: [group(row), run(row), Name(row["kind"]), since(row), *_storm(row)],
            labels,
        ),
    )
    return [table for table in found if table.rows]


def _table(
    title: str,
    names: Sequence[str],
    rows: Sequence[Row],
    named: Callable[[Row], Sequence[Name]],
    labels: Mapping[str, RunLabel],
) -> CostTable:
    told = {each.name: any(row[each.name] is not None for row in rows) for each in _FIGURES}
    columns = [each for each in _FIGURES if told[each.name]]
    full = [{**row, _STOPPED: _quality(row)} for row in rows]
    return CostTable(
        title=title,
        names=names,
        columns=columns,
        unknown=[each.title for each in _FIGURES if not told[each.name]],
        rows=[
            (named(row), [cell_of(row, each) for each in columns], _span(row, labels))
            for row in full
        ],
        total=max((row["of_rows"] for row in rows), default=0),
    )


def _span(row: Row, labels: Mapping[str, RunLabel]) -> str:
    return span_of(labels[row["trace_id"]], row["first_us"], row["last_us"])


def _quality(row: Row) -> str:
    """Return how sure pauses and standstill are: without assignments they are upper bounds."""
    is_whole = row["unowned_s"] is not None and row["assigned"] == row["rebalances"]
    return "exact" if is_whole else "bound"


def _day(row: Row, labels: Mapping[str, RunLabel]) -> Name:
    """Return a day: its date, or of a simulation, which has no calendar, its number."""
    number = date.fromisoformat(row["day"]).toordinal()
    if labels[row["trace_id"]].is_simulated:
        return Name(f"day {number - _EPOCH.toordinal() + 1}", number)
    return Name(row["day"], number)


def _storm(row: Row) -> list[Name]:
    lasted_s = (row["last_us"] - row["first_us"]) / 1_000_000
    who = f" by {row['trigger_client']}" if row["trigger_client"] else ""
    return [
        Name(f"{format_seconds(lasted_s)} s", lasted_s),
        Name(format_count(row["members"]), row["members"]),
        Name(f"#{row['first_no']}, {row['trigger']}{who}"),
    ]


_SHARE_FIGURES: Final = (
    Column("done", "done", format_count, meaning="records acknowledged or archived"),
    Column("deliveries", "deliveries", format_count),
    Column("again", "again", format_count, meaning="deliveries after a record's first"),
    Column("rejected", "rejected", format_count),
    Column("used_up", "used up", format_count, meaning="archived at the limit of deliveries"),
    Column("held_s", "held (s)", format_seconds, meaning="longest from first delivery to archive"),
    Column("lost_locks", "lost locks", format_count, meaning="ran out before an acknowledgement"),
    Column("late", "late", format_count, meaning="of these, acknowledged afterwards"),
    Column("silent_s", "silent (record·s)", format_seconds, meaning="locked, never acknowledged"),
    Column("max_lag", "most waiting", format_count, meaning="records of one partition"),
    Column("final_lag", "at the end", format_count, meaning="records waiting then"),
)


def share_rows(
    rows: Sequence[Row], labels: Mapping[str, RunLabel], anchors: Mapping[tuple[str, ...], str]
) -> list[tuple[list[Name], list[Cell]]]:
    """Return the names and the figures (`_SHARE_FIGURES`) of each share group and topic.

    Args:
        rows: Rows of the table `share_records`.
        labels: Labels of the runs by trace id.
        anchors: Anchor of each group's section, by its key.
    """
    return [
        (
            [
                Name(row["group_id"], anchor=anchors.get(group_key(row), "")),
                Name(labels[row["trace_id"]].name),
                Name(row["topic"]),
            ],
            [
                cell_of(
                    {**row, "held_s": row["held_us"] / 1e6, "silent_s": row["silent_us"] / 1e6},
                    column,
                )
                for column in _SHARE_FIGURES
            ],
        )
        for row in rows
    ]


_SUMMED: Final = (
    *("events", "unparsed", "clock_regressions", "ghost_generations"),
    *("rebalances", "unknown_reasons", "open_rebalances", "lockstep_groups"),
)
"""Columns of the data-quality table that are counts."""
_PHASES: Final = ("join", "sync", "total")


def render_page(rows: ReportRows) -> str:
    """Return the report as HTML that needs no network."""
    labels = run_labels(rows.told, is_compared=rows.options.is_compared)
    limits = rows.options.limits
    anchors = group_anchors(rows.groups, limits.drawn_groups)
    listed = _labelled(rows.listed, labels, anchors)
    if len(listed) == rows.told_totals["rebalances"]:
        listed.sort(key=lambda row: row["shown_us"])
    beside = are_beside(rows.told, is_compared=rows.options.is_compared)
    template = page_environment().get_template("report.html.j2")
    return template.render(
        title=rows.options.title,
        shown=rows.options.shown,
        marks_of=marks_of,
        overview=overview_chart(rows, labels),
        range_data=range_data(rows, labels),
        version=__version__,
        answers=answers_of(rows.comparison),
        churn_columns=CHURN.values(),
        churn_cells=churn_cells,
        findings=finding_rows(rows.findings, labels, anchors, rows.options.words),
        finding_groups=finding_groups(rows, labels, anchors),
        headline=_headline(rows),
        costs=cost_tables(rows.costs, rows.storms, labels, anchors),
        is_cost_known=any(row["unowned_s"] is not None for row in rows.costs),
        share_columns=_SHARE_FIGURES,
        share_records=share_rows(rows.share_records, labels, anchors),
        groups=group_table(rows.groups, rows.reasons, labels, anchors),
        density_chart=_density_chart(rows, labels, anchors),
        mapped_groups=min(limits.mapped_groups, rows.told_totals["groups"]),
        sections=group_sections(rows, labels, anchors),
        quality=_quality_of_worlds(rows.quality, labels),
        sources=source_rows(rows.sources, labels),
        skews=skew_rows(rows.skews, labels),
        beside=[labels[run["trace_id"]] for run in rows.told] if beside else [],
        shared=shared_groups(rows.groups, rows.reasons, labels) if beside else [],
        comparisons=comparison_blocks(rows.comparison),
        has_assignments=any(row["moved"] is not None for row in rows.comparison),
        missing=[
            f"{row['group_id']} ({labels[row['trace_id']].name}): {row['missing_assignments']}"
            for row in rows.groups
            if row["missing_assignments"] is not None
        ],
        durations=sorted(rows.durations, key=lambda row: _PHASES.index(row["phase"])),
        reasons_chart=reasons_chart(rows.reason_counts) if rows.reason_counts else None,
        timeline_chart=_timeline_chart(rows, labels, anchors),
        drawn=len(rows.drawn),
        drawn_groups=min(limits.drawn_groups, len(rows.groups)),
        drawn_total=sum(row["rebalances"] for row in rows.groups[: limits.drawn_groups]),
        window_count=rows.window_count,
        faults=fault_rows(rows.windows, rows.effects, labels),
        rebalances=listed,
        totals=rows.told_totals,
        world_count=len(rows.runs),
        told_count=len(rows.told),
    )


def _quality_of_worlds(rows: Sequence[Row], labels: Mapping[str, RunLabel]) -> list[dict[str, Any]]:
    """Return the data-quality table with worlds of one scenario and assignor in one row."""
    names = {
        choice_of(row): labels[row["trace_id"]].name for row in rows if row["trace_id"] in labels
    }
    merged: dict[tuple[object, ...], dict[str, Any]] = {}
    for row in rows:
        first = merged.get(choice_of(row))
        if first is None:
            merged[choice_of(row)] = {
                **row,
                "run_name": names[choice_of(row)],
                "seeds": [row["seed"]],
            }
            continue
        first["seeds"].append(row["seed"])
        first["parsed_share"] = min(first["parsed_share"] or 0, row["parsed_share"] or 0)
        for name in _SUMMED:
            first[name] += row[name]
    return list(merged.values())


def _headline(rows: ReportRows) -> list[tuple[str, str, Markup, str]]:
    """Return number, name, footnote and the number's name in a range of the boxes on top."""
    total = next((row for row in rows.durations if row["phase"] == "total"), None)
    sums = rows.totals
    followups = summed("followups", f"{sums['rebalances'] - sums['logical_rebalances']:,}")
    unfinished = summed("open_rebalances", f"{sums['open_rebalances']:,}")
    note = Markup("{} of them follow-up rounds, {} unfinished").format(followups, unfinished)
    runs, rebalances, moved = (
        formats.format_count(each) for each in (len(rows.runs), sums["rebalances"], sums["moved"])
    )
    boxes = [
        (runs, f"run{'s' * (runs != '1')}", _groups(sums["groups"]), "runs"),
        (rebalances, f"rebalance{'s' * (rebalances != '1')}", note, "rebalances"),
    ]
    if total is not None:
        most = summed("p99_ms", formats.format_duration(total["p99_ms"]))
        median, longest = (formats.format_duration(total[name]) for name in ("p50_ms", "max_ms"))
        boxes += [
            (median, "median rebalance", Markup("finished ones"), "p50_ms"),
            (longest, "longest rebalance", Markup("99 % within {}").format(most), "max_ms"),
        ]
    if sums["moved"] is not None:
        resumed = Markup("{:,} for nothing: same owner").format(sums["restarted_in_place"] or 0)
        interrupted = formats.format_count(sums["interrupted"])
        unowned = formats.format_seconds(sums["unowned_s"])
        boxes += [
            (moved, "resources moved", Markup("all runs together"), "moved"),
            (interrupted, "interruptions", resumed, "interrupted"),
            (unowned, "partition-seconds unowned", Markup("all runs"), "unowned_s"),
        ]
    return boxes


def _groups(count: int) -> Markup:
    return Markup("{:,} group{}").format(count, "s" * (count != 1))


def _labelled(
    rebalances: Sequence[Row],
    labels: Mapping[str, RunLabel],
    anchors: Mapping[tuple[str, ...], str],
) -> list[dict[str, Any]]:
    """Return rebalances with the page's texts for their run and time, and `shown_us`, to sort."""
    return [
        {
            **row,
            "run_name": labels[row["trace_id"]].name,
            "anchor": anchors.get(group_key(row), ""),
            "when": labels[row["trace_id"]].when(row["seen_us"]),
            "date": labels[row["trace_id"]].date(row["seen_us"]),
            "span": span_of(labels[row["trace_id"]], row["seen_us"]),
            "shown_us": row["seen_us"] - (labels[row["trace_id"]].origin_us or 0),
            "lines": source_lines(row["source_refs"] or ()),
        }
        for row in rebalances
    ]


def _timeline_chart(
    rows: ReportRows,
    labels: Mapping[str, RunLabel],
    anchors: Mapping[tuple[str, ...], str],
) -> Markup | None:
    """Return the timeline, a block for each run and in it a line for each of the worst groups."""
    drawn_groups = rows.groups[: rows.options.limits.drawn_groups]
    blocks = [
        Block(
            label=label,
            group_ids=[row["group_id"] for row in _of_run(drawn_groups, trace_id)],
            rebalances=_of_run(rows.drawn, trace_id),
            windows=_of_run(rows.windows, trace_id),
        )
        for trace_id, label in labels.items()
    ]
    shown = [block for block in blocks if block.group_ids or block.windows]
    links = {
        (labels[row["trace_id"]].name, row["group_id"]): anchors[group_key(row)]
        for row in drawn_groups
    }
    return timeline_chart(shown, links) if shown else None


def _density_chart(
    rows: ReportRows,
    labels: Mapping[str, RunLabel],
    anchors: Mapping[tuple[str, ...], str],
) -> Markup | None:
    """Return the map of densities, a row for each of the worst groups, and one for the others."""
    limits = rows.options.limits
    if rows.told_totals["groups"] <= limits.drawn_groups:
        return None
    counts: dict[tuple[str | None, ...], dict[int, int]] = {}
    for row in rows.densities:
        counts.setdefault(group_key(row), {})[row["slice"]] = row["count"]
    mapped = rows.groups[: limits.mapped_groups]
    several = len(labels) > 1
    named = [
        (
            RowName(
                row["group_id"],
                link=anchors.get(group_key(row), ""),
                note=f"({labels[row['trace_id']].name})" if several else "",
            ),
            counts.get(group_key(row), {}),
        )
        for row in mapped
    ]
    others = rows.told_totals["groups"] - len(mapped)
    rest = [(RowName(f"{others:,} others"), counts.get((None,) * 3, {}))] if others else []
    return density_chart([*named, *rest], limits.slices, axis_of(list(labels.values())))


def _of_run(rows: Sequence[Row], trace_id: str) -> list[Row]:
    return [row for row in rows if row["trace_id"] == trace_id]
