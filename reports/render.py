"""Renders the collected rows of a report as one self-contained HTML page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import jinja2
import plotly.io
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from coordinator_sim import __version__
from coordinator_sim_reports import figures
from coordinator_sim_reports.fault_rows import fault_rows
from coordinator_sim_reports.page_options import PageOptions
from coordinator_sim_reports.run_labels import RunLabel, are_beside, run_labels
from coordinator_sim_reports.side_by_side import shared_groups
from coordinator_sim_reports.timeline import Block, timeline_figure

Row = Mapping[str, Any]

UNKNOWN: Final = "n/a"
_SUMMED: Final = (
    *("events", "unparsed", "clock_regressions", "ghost_generations"),
    *("rebalances", "unknown_reasons", "open_rebalances", "lockstep_groups"),
)
"""Columns of the data-quality table that are counts."""
_PLOT: Final = {"displaylogo": False, "displayModeBar": False, "responsive": True}
_PROTOCOL_TITLES: Final = {"consumer": "Consumer groups", "connect": "Connect workers"}
"""Protocol types with the headings of their blocks, in the order of the page."""
_MARKS: Final = {"exact": "", "bound": "≤ ", "estimate": "~ "}


@dataclass(frozen=True, slots=True)
class ReportRows:
    """Rows of a page, as collected from the tables; see `reports.selection`.

    `totals` and `reason_counts` cover all runs. `groups` and their rows, `drawn` (rebalances of the
    timeline), `listed` (rebalances of the table), `windows` (fault windows) and `effects` (what
    happened to groups in them) cover the runs in `told` (`one_world_each`) and are cut to the
    options' limits, the worst first, of windows the earliest; `told_totals` has the uncut counts.
    `runs` and `told` are in the order in which the runs were named.
    """

    options: PageOptions
    totals: Row
    told_totals: Row
    runs: Sequence[Row]
    told: Sequence[Row]
    quality: Sequence[Row]
    comparison: Sequence[Row]
    groups: Sequence[Row]
    reasons: Sequence[Row]
    reason_counts: Mapping[str, int]
    drawn: Sequence[Row]
    listed: Sequence[Row]
    windows: Sequence[Row]
    window_count: int
    effects: Sequence[Row]
    durations: Sequence[Row]


def render_page(rows: ReportRows) -> str:
    """Return the report as HTML that needs no network."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(
        count=format_count,
        decimal=format_decimal,
        share=format_share,
        duration=format_duration,
        seconds=format_seconds,
        marked=mark_quality,
        count_spread=partial(spread_of, form=format_count),
        seconds_spread=partial(spread_of, form=format_seconds),
    )
    labels = run_labels(rows.told, is_compared=rows.options.is_compared)
    causes = _causes(rows, labels)
    limits = rows.options.limits
    listed = _labelled(rows.listed, labels)
    if len(listed) == rows.told_totals["rebalances"]:
        listed.sort(key=lambda row: row["shown_us"])
    beside = are_beside(rows.told, is_compared=rows.options.is_compared)
    template = environment.get_template("report.html.j2")
    return template.render(
        title=rows.options.title,
        version=__version__,
        plotly_js=Markup(get_plotlyjs()),  # noqa: S704 - the library's own script
        headline=_headline(rows),
        quality=_quality_of_worlds(rows.quality, labels),
        beside=[labels[run["trace_id"]] for run in rows.told] if beside else [],
        shared=shared_groups(rows.groups, rows.reasons, labels) if beside else [],
        comparisons=_comparisons(rows.comparison),
        has_assignments=any(row["moved"] is not None for row in rows.comparison),
        missing=[
            f"{row['group_id']} ({labels[row['trace_id']].name}): {row['missing_assignments']}"
            for row in rows.groups
            if row["missing_assignments"] is not None
        ],
        causes=causes,
        cause_groups=sum(row["is_first"] for row in causes),
        durations=sorted(rows.durations, key=lambda row: _PHASES.index(row["phase"])),
        reasons_chart=_html(figures.reasons_figure(rows.reason_counts))
        if rows.reason_counts
        else None,
        timeline_chart=_timeline_chart(rows, labels),
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


_PHASES: Final = ("join", "sync", "total")


def format_count(value: float | None) -> str:
    """Format a count: thousands separated, one decimal only for the mean of several runs."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def spread_of(
    row: Row, name: str, form: Callable[[float | None], str], *, stacked: bool = False
) -> str:
    """Format a cell of the comparison: the median over runs, with least and most if they differ.

    Args:
        row: Row of the comparison.
        name: A column of `transforms.summary.SPREAD`.
        form: Formats one value.
        stacked: Put the range on a line of its own, as a narrow terminal needs it.
    """
    median, low, high = (form(row[f"{name}_{part}"]) for part in ("median", "low", "high"))
    return with_range(median, low, high, stacked=stacked)


def with_range(median: str, low: str, high: str, *, stacked: bool = False) -> str:
    """Return a median with the least and the most beside it or, stacked, below it."""
    if low == high:
        return median
    return f"{median}\n{low}-{high}" if stacked else f"{median} ({low}-{high})"


def format_decimal(value: float | None, digits: int = 2) -> str:
    """Format a number with so many decimals."""
    return UNKNOWN if value is None else f"{value:,.{digits}f}"


def format_share(value: float | None) -> str:
    """Format a share of 1 as a percentage: more decimals close to 100 %, where they matter."""
    if value is None:
        return UNKNOWN
    return f"{value * 100:.2f} %" if 0.99 < value < 1 else f"{value * 100:.1f} %"  # noqa: PLR2004


def format_duration(milliseconds: float | None) -> str:
    """Format a duration in a readable unit."""
    if milliseconds is None:
        return UNKNOWN
    if milliseconds < 1_000:  # noqa: PLR2004 - a second
        return f"{milliseconds:,.0f} ms"
    seconds = milliseconds / 1_000
    if seconds < 120:  # noqa: PLR2004 - two minutes
        return f"{seconds:,.1f} s"
    return f"{seconds / 60:,.1f} min"


def format_seconds(seconds: float | None) -> str:
    """Format seconds, with fewer decimals for larger values."""
    if seconds is None:
        return UNKNOWN
    if seconds == 0:
        return "0"
    if seconds < 10:  # noqa: PLR2004 - two digits
        return f"{seconds:,.2f}"
    return f"{seconds:,.1f}" if seconds < 1_000 else f"{seconds:,.0f}"  # noqa: PLR2004


def mark_quality(text: str, quality: str) -> str:
    """Return a formatted value with the mark of its quality; unknown values stay `n/a`."""
    return text if text == UNKNOWN else _MARKS.get(quality, "") + text


def reading_order(row: Row) -> tuple[int, str, str, str]:
    """Sort key of a comparison: consumer groups first, then Connect, then unknown types."""
    known = [*_PROTOCOL_TITLES, row["protocol_type"]]
    return (
        known.index(row["protocol_type"]),
        row["protocol_type"],
        row["scenario"],
        row["assignor"],
    )


def _choice_of(run: Row) -> tuple[object, ...]:
    """Return the key shared by worlds of one scenario and assignor; other traces get their own."""
    if run["source"] != "sim" or run["seed"] is None:
        return (run["trace_id"],)
    return (run["scenario"], run["assignor"], run["profile"])


def one_world_each(runs: Sequence[Row]) -> list[Row]:
    """Return the runs whose groups are listed: per scenario and assignor the lowest seed.

    Worlds of one choice differ only by their random draws, so one of them is enough.
    """
    chosen: dict[tuple[object, ...], Row] = {}
    for run in sorted(runs, key=lambda run: run["seed"] or 0):
        chosen.setdefault(_choice_of(run), run)
    traces = {run["trace_id"] for run in chosen.values()}
    return [run for run in runs if run["trace_id"] in traces]


def _quality_of_worlds(rows: Sequence[Row], labels: Mapping[str, RunLabel]) -> list[dict[str, Any]]:
    """Return the data-quality table with worlds of one scenario and assignor in one row."""
    names = {
        _choice_of(row): labels[row["trace_id"]].name for row in rows if row["trace_id"] in labels
    }
    merged: dict[tuple[object, ...], dict[str, Any]] = {}
    for row in rows:
        first = merged.get(_choice_of(row))
        if first is None:
            merged[_choice_of(row)] = {
                **row,
                "run_name": names[_choice_of(row)],
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
        (format_count(len(rows.runs)), "runs", f"{sums['groups']:,} groups"),
        (
            format_count(sums["rebalances"]),
            "rebalances",
            f"{followups:,} of them follow-up rounds, {sums['open_rebalances']:,} unfinished",
        ),
    ]
    if total is not None:
        boxes += [
            (format_duration(total["p50_ms"]), "median rebalance", "finished ones"),
            (
                format_duration(total["max_ms"]),
                "longest rebalance",
                f"99 % within {format_duration(total['p99_ms'])}",
            ),
        ]
    if sums["moved"] is not None:
        resumed = sums["restarted_in_place"] or 0
        boxes += [
            (format_count(sums["moved"]), "resources moved", "all runs together"),
            (
                format_count(sums["interrupted"]),
                "interruptions",
                f"{resumed:,} for nothing: same owner",
            ),
            (format_seconds(sums["unowned_s"]), "partition-seconds unowned", "all runs"),
        ]
    return boxes


def _comparisons(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return one block per protocol type: rows by scenario, and charts if moves are known."""
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
                "moves": _html(figures.moves_figure(known)) if known else None,
                "interruptions": _html(figures.interruptions_figure(known)) if known else None,
                "unowned": _html(figures.unowned_figure(known)) if known else None,
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


def _causes(rows: ReportRows, labels: Mapping[str, RunLabel]) -> list[dict[str, Any]]:
    """Return the causes of rebalances: a row per group and reason, the worst group first.

    The list ends with the last group whose rows all fit the limit; the worst group is always in it.
    """
    reasons: dict[tuple[str, ...], list[Row]] = {}
    for row in rows.reasons:
        reasons.setdefault(_group_key(row), []).append(row)
    causes: list[dict[str, Any]] = []
    for group in rows.groups:
        own = sorted(reasons.get(_group_key(group), ()), key=lambda row: -row["count"])
        if causes and len(causes) + len(own) > rows.options.limits.causes:
            break
        named = {**group, "run_name": labels[group["trace_id"]].name}
        causes += [{**named, **row, "is_first": row is own[0]} for row in own]
    return causes


def _group_key(row: Row) -> tuple[str, ...]:
    return (row["trace_id"], row["cluster_id"], row["group_id"])


def _labelled(rebalances: Sequence[Row], labels: Mapping[str, RunLabel]) -> list[dict[str, Any]]:
    """Return rebalances with the page's texts for their run and time, and `shown_us`, to sort."""
    return [
        {
            **row,
            "run_name": labels[row["trace_id"]].name,
            "when": labels[row["trace_id"]].when(row["seen_us"]),
            "date": labels[row["trace_id"]].date(row["seen_us"]),
            "shown_us": row["seen_us"] - (labels[row["trace_id"]].origin_us or 0),
        }
        for row in rebalances
    ]


def _timeline_chart(rows: ReportRows, labels: Mapping[str, RunLabel]) -> Markup | None:
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
    return _html(timeline_figure(shown)) if shown else None


def _of_run(rows: Sequence[Row], trace_id: str) -> list[Row]:
    return [row for row in rows if row["trace_id"] == trace_id]


def _html(figure: Any) -> Markup:  # noqa: ANN401 - a Plotly figure, which has no types
    text = plotly.io.to_html(
        figure, include_plotlyjs=False, full_html=False, config=_PLOT, validate=False
    )
    return Markup(text)  # noqa: S704 - Plotly escapes what it draws
