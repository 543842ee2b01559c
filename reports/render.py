"""Renders the collected rows of a report as one self-contained HTML page."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup

from coordinator_sim import __version__
from coordinator_sim_reports import formats
from coordinator_sim_reports.charts.heatmap import density_chart
from coordinator_sim_reports.charts.svg import RowName
from coordinator_sim_reports.charts.timeline import Block, axis_of, timeline_chart
from coordinator_sim_reports.comparison import comparison_blocks
from coordinator_sim_reports.cost_rows import cost_tables
from coordinator_sim_reports.environment import page_environment
from coordinator_sim_reports.fault_rows import fault_rows
from coordinator_sim_reports.figures import reasons_chart
from coordinator_sim_reports.finding_rows import finding_rows
from coordinator_sim_reports.group_sections import group_anchors, group_sections, source_lines
from coordinator_sim_reports.group_table import group_key, group_table
from coordinator_sim_reports.page_rows import ReportRows
from coordinator_sim_reports.run_labels import RunLabel, are_beside, choice_of, run_labels
from coordinator_sim_reports.side_by_side import shared_groups
from coordinator_sim_reports.source_rows import skew_rows, source_rows

Row = Mapping[str, Any]

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
        version=__version__,
        findings=finding_rows(rows.findings, labels, anchors),
        headline=_headline(rows),
        costs=cost_tables(rows.costs, rows.storms, labels, anchors),
        is_cost_known=any(row["unowned_s"] is not None for row in rows.costs),
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


def _headline(rows: ReportRows) -> list[tuple[str, str, str]]:
    """Return number, name and footnote of the boxes on top."""
    total = next((row for row in rows.durations if row["phase"] == "total"), None)
    sums = rows.totals
    followups = sums["rebalances"] - sums["logical_rebalances"]
    boxes = [
        (formats.format_count(len(rows.runs)), "runs", f"{sums['groups']:,} groups"),
        (
            formats.format_count(sums["rebalances"]),
            "rebalances",
            f"{followups:,} of them follow-up rounds, {sums['open_rebalances']:,} unfinished",
        ),
    ]
    if total is not None:
        boxes += [
            (formats.format_duration(total["p50_ms"]), "median rebalance", "finished ones"),
            (
                formats.format_duration(total["max_ms"]),
                "longest rebalance",
                f"99 % within {formats.format_duration(total['p99_ms'])}",
            ),
        ]
    if sums["moved"] is not None:
        resumed = sums["restarted_in_place"] or 0
        boxes += [
            (formats.format_count(sums["moved"]), "resources moved", "all runs together"),
            (
                formats.format_count(sums["interrupted"]),
                "interruptions",
                f"{resumed:,} for nothing: same owner",
            ),
            (formats.format_seconds(sums["unowned_s"]), "partition-seconds unowned", "all runs"),
        ]
    return boxes


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
    if not rows.densities:
        return None
    counts: dict[tuple[str | None, ...], dict[int, int]] = {}
    for row in rows.densities:
        counts.setdefault(group_key(row), {})[row["slice"]] = row["count"]
    limits = rows.options.limits
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
