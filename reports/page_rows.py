"""Collects the rows of a page from the tables: short tables whole, long ones up to a limit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports import selection
from coordinator_sim_reports.charts.timeline import axis_of
from coordinator_sim_reports.comparison import reading_order
from coordinator_sim_reports.local_frames import listed
from coordinator_sim_reports.page_options import PageLimits, PageOptions
from coordinator_sim_reports.run_labels import one_world_each, run_labels

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRows:
    """Rows of a page, as collected from the tables; see `reports.selection`.

    `totals` and `reason_counts` cover all runs. `groups` and their rows, `drawn` (rebalances of the
    charts), `listed` (rebalances of the table), `windows` (fault windows) and `effects` (what
    happened to groups in them) cover the runs in `told` (`one_world_each`) and are cut to the
    options' limits, the worst first, of windows the earliest; `told_totals` has the uncut counts.
    `costs` are those of days and deploys. `sessions`, `waits`, `owners`, `imbalance` and
    `share_records` are those of the groups with a section; `densities` is empty where all groups
    have one. `runs` and `told` are in the order in which the runs were named.
    """

    options: PageOptions
    totals: Row
    told_totals: Row
    runs: Sequence[Row]
    told: Sequence[Row]
    quality: Sequence[Row]
    sources: Sequence[Row]
    skews: Sequence[Row]
    findings: Sequence[Row]
    costs: Sequence[Row]
    storms: Sequence[Row]
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
    sessions: Sequence[Row]
    waits: Sequence[Row]
    owners: Sequence[Row]
    imbalance: Sequence[Row]
    densities: Sequence[Row]
    share_records: Sequence[Row]


def page_rows(
    spark: "SparkSession",
    tables: "dict[str, DataFrame]",
    options: PageOptions,
    trace_ids: Sequence[str],
) -> ReportRows:
    """Collect the rows of a page.

    Args:
        spark: The session of the job.
        tables: All tables of the report, by name.
        options: Heading and limits of the page.
        trace_ids: The runs in the order of the page.
    """
    limits = options.limits
    order = {trace_id: number for number, trace_id in enumerate(trace_ids)}
    runs = sorted(_rows(tables["runs"]), key=lambda run: order[run["trace_id"]])
    told = one_world_each(runs)
    is_told = F.col(C.TRACE_ID).isin([run["trace_id"] for run in told])
    groups = tables["groups"].where(is_told)
    windows = selection.first_windows(tables["fault_windows"].where(is_told), limits.windows)
    worst = selection.worst_groups(groups, limits.groups)
    told_totals = selection.totals(groups)
    drawn_groups = selection.worst_groups(groups, min(limits.groups, limits.drawn_groups))
    rebalances = selection.with_group_names(tables["rebalances"], groups)
    longest = (
        selection.longest
        if told_totals["rebalances"] > limits.listed
        else selection.longest_in_time
    )
    counts = tables["reasons"].groupBy("reason").agg(F.sum("count").alias("count"))
    of_sections = {
        name: selection.of_groups(tables[name], drawn_groups)
        for name in ("member_sessions", "waits", "ownership", "imbalance", "share_records")
    }
    return ReportRows(
        options=options,
        totals=told_totals if len(told) == len(runs) else selection.totals(tables["groups"]),
        told_totals=told_totals,
        runs=runs,
        told=told,
        quality=sorted(_rows(tables["data_quality"]), key=lambda row: order[row["trace_id"]]),
        sources=_rows(selection.source_kinds(tables["source_files"].where(is_told)), "kind"),
        skews=_rows(tables["clock_skews"].where(is_told), "first_source", "second_source"),
        findings=_findings(tables, [run["trace_id"] for run in told], limits),
        costs=selection.costliest(
            tables["costs"].where(is_told), {"day": limits.days, "deploy": limits.deploys}
        ),
        storms=selection.costliest_storms(tables["storms"].where(is_told), limits.storms),
        comparison=sorted(_rows(tables["comparison"]), key=reading_order),
        groups=_rows(worst),
        reasons=_rows(selection.of_groups(tables["reasons"], worst), "group_id", "reason"),
        reason_counts={row["reason"]: row["count"] for row in _rows(counts)},
        drawn=selection.longest_in_time(
            selection.of_groups(rebalances, drawn_groups), limits.drawn
        ),
        listed=longest(rebalances, limits.listed),
        windows=_rows(windows),
        window_count=tables["fault_windows"].where(is_told).count(),
        effects=selection.effects_on(tables["window_effects"], windows, drawn_groups),
        durations=_rows(tables["durations"], "phase"),
        sessions=selection.drawn_sessions(of_sections["member_sessions"], limits.members),
        waits=selection.drawn_waits(of_sections["waits"], limits.intervals),
        owners=selection.drawn_owners(of_sections["ownership"], limits.resources, limits.intervals),
        imbalance=selection.drawn_imbalance(of_sections["imbalance"], limits.intervals),
        densities=_densities(spark, rebalances, groups, told, options)
        if told_totals["groups"] > limits.drawn_groups
        else [],
        share_records=_rows(of_sections["share_records"], *C.GROUP_KEY, "topic"),
    )


def _findings(
    tables: "dict[str, DataFrame]", trace_ids: Sequence[str], limits: PageLimits
) -> list[dict[str, Any]]:
    """Return the costliest findings of these runs, over all of them."""
    own = tables["findings"].where(F.col(C.TRACE_ID).isin(list(trace_ids)))
    order = (F.col("cost_s").desc(), C.TRACE_ID, C.CLUSTER_ID, C.GROUP_ID, "kind")
    return [row.asDict() for row in own.orderBy(*order).limit(limits.findings).collect()]


def _densities(
    spark: "SparkSession",
    rebalances: "DataFrame",
    groups: "DataFrame",
    told: Sequence[Row],
    options: PageOptions,
) -> list[dict[str, Any]]:
    labels = run_labels(told, is_compared=options.is_compared)
    axis = axis_of(list(labels.values()))
    slice_us = (axis.to_s - axis.from_s) * 1e6 / options.limits.slices
    spans = [
        (trace_id, (label.origin_us or 0) + axis.from_s * 1e6, slice_us)
        for trace_id, label in labels.items()
    ]
    frame = listed(spark, spans, "trace_id string, since_us double, slice_us double")
    mapped = selection.worst_groups(groups, options.limits.mapped_groups)
    return selection.densities(rebalances, mapped, frame, options.limits.slices)


def _rows(table: "DataFrame", *order: str) -> list[dict[str, Any]]:
    ordered = table.orderBy(*order) if order else table
    return [row.asDict(recursive=True) for row in ordered.collect()]
