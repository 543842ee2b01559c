"""Collects the rows of a page from the tables: short tables whole, long ones up to a limit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports import selection
from coordinator_sim_reports.charts.timeline import axis_of
from coordinator_sim_reports.comparison import reading_order
from coordinator_sim_reports.page_options import PageOptions
from coordinator_sim_reports.run_labels import one_world_each, run_labels
from coordinator_sim_reports.selection import WrittenTable

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRows:
    """Rows of a page, as collected from the tables; see `reports.selection`.

    `totals` and `reason_counts` cover all runs. `groups` and their rows, `drawn` (rebalances of the
    charts), `listed` (rebalances of the table), `windows` (fault windows) and `effects` (what
    happened to groups in them) cover the runs in `told` (`one_world_each`) and are cut to the
    options' limits, the worst first, of windows the earliest; `told_totals` has the uncut counts.
    `costs` are those of days and deploys. `sessions`, `waits`, `owners`, `imbalance` and
    `share_records` are those of the groups with a section; `densities` are those of all rebalances
    of these runs. `ranged` are all rebalances of all runs in order of time, with what they cost;
    empty where they are more than the options' limit. `runs` and `told` are in the order in which
    the runs were named.
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
    ranged: Sequence[Row]
    share_records: Sequence[Row]


def page_rows(folder: Path, runs: Sequence[Row], options: PageOptions) -> ReportRows:
    """Collect the rows of a page.

    Args:
        folder: Has a folder of Parquet files for each table of the report.
        runs: Rows of the runs, in the order of the page.
        options: Heading and limits of the page.
    """
    limits = options.limits
    order = {run[C.TRACE_ID]: number for number, run in enumerate(runs)}
    told = one_world_each(runs)
    trace_ids = [run[C.TRACE_ID] for run in told]

    def written(name: str) -> WrittenTable:
        return WrittenTable(folder / name, trace_ids)

    def of_all(name: str) -> WrittenTable:
        return WrittenTable(folder / name)

    groups = selection.worst_first(written("groups").whole())
    worst = groups.slice(0, limits.groups)
    drawn_groups = worst.slice(0, limits.drawn_groups)
    told_totals = selection.totals(groups)
    totals = told_totals if len(told) == len(runs) else selection.totals(of_all("groups").whole())
    rebalances = written("rebalances")
    listed = selection.longest(selection.named_rebalances(rebalances, groups), limits.listed)
    drawn = selection.longest(selection.named_rebalances(rebalances, drawn_groups), limits.drawn)
    windows = written("fault_windows").rows("window_no", C.TRACE_ID, C.CLUSTER_ID)
    shown_windows = windows[: limits.windows]
    return ReportRows(
        options=options,
        totals=totals,
        told_totals=told_totals,
        runs=runs,
        told=told,
        quality=sorted(of_all("data_quality").rows(), key=lambda row: order[row[C.TRACE_ID]]),
        sources=selection.source_kinds(written("source_files").rows()),
        skews=written("clock_skews").rows("first_source", "second_source"),
        findings=written("findings").first(limits.findings, "-cost_s", *C.GROUP_KEY, "kind"),
        costs=selection.costliest(written("costs"), {"day": limits.days, "deploy": limits.deploys}),
        storms=selection.costliest_storms(written("storms"), limits.storms),
        comparison=sorted(of_all("comparison").rows(), key=reading_order),
        groups=worst.to_pylist(),
        reasons=selection.sorted_rows(written("reasons").of_groups(worst), C.GROUP_ID, "reason"),
        reason_counts=selection.reason_counts(of_all("reasons").parts()),
        drawn=selection.in_time(drawn),
        listed=listed if told_totals["rebalances"] > limits.listed else selection.in_time(listed),
        windows=shown_windows,
        window_count=len(windows),
        effects=selection.effects_on(
            written("window_effects").of_groups(drawn_groups), shown_windows, drawn_groups
        ),
        durations=of_all("durations").rows("phase"),
        sessions=selection.drawn_sessions(
            written("member_sessions").of_groups(drawn_groups), limits.members
        ),
        waits=selection.drawn_waits(written("waits").of_groups(drawn_groups), limits.intervals),
        owners=selection.drawn_owners(
            written("ownership"), drawn_groups, limits.resources, limits.intervals
        ),
        imbalance=selection.drawn_imbalance(
            written("imbalance").of_groups(drawn_groups), limits.intervals
        ),
        densities=_densities(rebalances, groups, told, options),
        ranged=_ranged(folder) if totals["rebalances"] <= limits.ranged else [],
        share_records=selection.sorted_rows(
            written("share_records").of_groups(drawn_groups), *C.GROUP_KEY, "topic"
        ),
    )


def _ranged(folder: Path) -> list[dict[str, Any]]:
    """Return the rebalances of all runs with what they cost, in order of time."""
    key = [*C.GROUP_KEY, C.REBALANCE_NO]
    told = (*key, "seen_us", "reason", "outcome", "followup", "total_ms", "members")
    charged = (*key, "stopped_us", "unowned_us", "moved")
    left, right = (
        pa.concat_tables(part.select(names) for part in WrittenTable(folder / name).parts())
        for name, names in (("rebalances", told), ("rebalance_costs", charged))
    )
    return selection.sorted_rows([left.join(right, key)], "seen_us", *key)


def _densities(
    rebalances: WrittenTable, groups: pa.Table, told: Sequence[Row], options: PageOptions
) -> list[dict[str, Any]]:
    labels = run_labels(told, is_compared=options.is_compared)
    axis = axis_of(list(labels.values()))
    slice_us = (axis.to_s - axis.from_s) * 1e6 / options.limits.slices
    spans = {
        trace_id: ((label.origin_us or 0) + axis.from_s * 1e6, slice_us)
        for trace_id, label in labels.items()
    }
    mapped = groups.slice(0, options.limits.mapped_groups)
    return selection.densities(rebalances.parts(), mapped, spans, options.limits.slices)
