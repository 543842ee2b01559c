"""What the changes of findings would save, computed by replays of their groups."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.kafka.profiles import ALIASES, DEFAULT_PROFILE, PROFILES, profile_named
from coordinator_sim.replay.charges import Charge, charges_in, trace_of
from coordinator_sim.replay.client_view import NO_GROUP, client_findings, client_views
from coordinator_sim.replay.cost_sums import CostSum
from coordinator_sim.replay.costs import RebalanceCost
from coordinator_sim.replay.findings import (
    ESTIMATED,
    REPLAYED,
    STATIC,
    Finding,
    findings_of,
    with_savings,
    worst_first,
)
from coordinator_sim.replay.logs import Trial, charges_of, replay_log
from coordinator_sim.replay.process_findings import with_process_findings
from coordinator_sim.replay.recordings import as_logged, is_recording
from coordinator_sim.replay.report import Coverage, WhatIf, sum_of
from coordinator_sim.replay.settings import Settings, parse_grid
from coordinator_sim.replay.work import Partitions, known_groups
from coordinator_sim.replay.work_findings import work_findings
from coordinator_sim.trace.events import RunInfo, Source, TraceEvent
from coordinator_sim.trace.history import LINE_SKEW_MS, coordinator_events, group_lines
from coordinator_sim.trace.printed_settings import NOTHING_PRINTED, printed_settings
from coordinator_sim.trace.window import ALWAYS, Window

_FOR_EVER_MS: Final = 1 << 62


class Saved(Struct, frozen=True, kw_only=True):
    """What a setting would have saved in a deploy.

    Args:
        setting: As `replay --set` takes it; None where nothing is computed.
        saves_s: Seconds of rebalancing, at most what the deploy cost, and negative for a loss; None
            where nothing is computed.
        basis: `replayed`; `estimated` where some restarts are paired by time alone.
        not_computed: Why there is none; empty otherwise.
    """

    setting: str | None = None
    saves_s: float | None = None
    basis: str | None = None
    not_computed: str = ""


class Weighed(Struct, frozen=True, kw_only=True):
    """A finding, what its setting saves, and the present settings.

    Args:
        finding: The finding; `saves_s` is of the rebalances of `coverage`.
        not_computed: Why there is no saving; empty if computed, or if no replay can try a change.
        of_s: What the finding cost in the rebalances of `coverage`, in its unit.
        coverage: The rebalances of its group that the saving is computed of.
        printed: What clients printed of the settings that its change names.
    """

    finding: Finding
    not_computed: str = ""
    of_s: float = 0.0
    coverage: Coverage = Coverage()
    printed: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """What the setting saves, and in which rebalances; or why that is not computed."""
        finding, saves_s = self.finding, self.finding.saves_s
        if finding.setting is None:
            return "not computed, no replay can try the change"
        if saves_s is None:
            return f"not computed, {self.not_computed}"
        more = finding.more_rebalances or 0
        other = f"; {more} rebalance{'s' if more > 1 else ''} more than before" if more > 0 else ""
        saved = "nothing when"
        if saves_s > 0:
            saved = f"{saves_s:.3f} of {self.of_s:.3f} {finding.cost_unit},"
        elif saves_s < 0:
            saved = f"nothing, {-saves_s:.3f} {finding.cost_unit} more,"
        return f"{saved} replayed with {finding.setting} {self.coverage.words}{other}"


def findings_in(
    events: Sequence[TraceEvent],
    source: Source,
    end_us: int | None = None,
    window: Window = ALWAYS,
) -> list[Finding]:
    """Return what of the findings of all groups lies within a window, worst first.

    Other arguments as of `trace_of`.
    """
    by_group: dict[str, list[RebalanceCost]] = {}
    for each in charges_in(trace_of(events, source, end_us)):
        by_group.setdefault(each.group_id, []).append(each.cost)
    found: list[Finding] = []
    told = group_lines(coordinator_events(events, source))
    for group_id, lines in told.items():
        costs = by_group.get(group_id, [])
        found += findings_of(group_id, costs, window)
        found += work_findings(group_id, lines, costs, window)
    # A departure without a group may be one that the coordinator tells of.
    views = client_views(events, source, window)
    found += client_findings(each for each in views if not told or each.group_id != NO_GROUP)
    return worst_first(with_process_findings(found, events, by_group, window))


def weigh(
    findings: Sequence[Finding],
    events: Sequence[TraceEvent],
    info: RunInfo,
    given: Partitions,
    *,
    window: Window = ALWAYS,
    on_progress: Callable[[int], None] | None = None,
) -> list[Weighed]:
    """Return findings with what their settings save, in the same order.

    Each group of a finding that has a setting is replayed once as it is and once for each of its
    settings; other groups are not replayed.

    Args:
        findings: Findings of the trace.
        events: All events of the trace, in its order.
        info: Facts of the trace.
        given: Partitions of groups whose assignments the trace lacks.
        window: The time that the findings are of.
        on_progress: Gets the number of events done.
    """
    wanted: dict[str, list[Settings]] = {}
    for finding in findings:
        if finding.setting is not None:
            (settings,) = parse_grid([finding.setting])
            tried = wanted.setdefault(finding.group_id, [])
            if settings not in tried:
                tried.append(settings)
    own = [event for event in events if event.group_id is None or event.group_id in wanted]
    charges = charges_of(own, info)
    report = replay_log(
        logged(events, info),
        info,
        by_group={group_id: Trial(grid=grid) for group_id, grid in wanted.items()},
        group_ids=wanted,
        known=known_groups(own, given),
        charges=charges,
        window=window,
        on_progress=on_progress,
    ).report
    costs: dict[str, list[RebalanceCost]] = {}
    for each in charges:
        costs.setdefault(each.group_id, []).append(each.cost)
    printed = printed_settings(events)
    return [
        replace(
            _weighed(finding, report.what_if, costs, window),
            printed=printed.get(finding.group_id, NOTHING_PRINTED).named_in(finding.change),
        )
        for finding in findings
    ]


def weigh_deploys(
    deploys: Sequence[CostSum],
    charges: Sequence[Charge],
    events: Sequence[TraceEvent],
    info: RunInfo,
    given: Partitions,
    window: Window = ALWAYS,
) -> list[Saved]:
    """Return what static membership would have saved in each deploy, in the same order.

    A deploy lasts from its first rebalance to the first one after its last. Its group is replayed
    once as it is and once with the setting, over the whole trace.

    Args:
        deploys: Costs of deploys.
        charges: Costs of all rebalances of the trace.
        events: All events of the trace, in its order.
        info: Facts of the trace.
        given: Partitions of groups whose assignments the trace lacks.
        window: The time that the costs of the deploys are of.
    """
    (settings,) = parse_grid([STATIC])
    by_group: dict[str, list[Charge]] = {deploy.group_id or "": [] for deploy in deploys}
    for each in charges:
        by_group.get(each.group_id, []).append(each)
    windows: dict[str, list[tuple[int, int]]] = {group_id: [] for group_id in by_group}
    for deploy in deploys:
        group_id = deploy.group_id or ""
        lasted_ms = _window(deploy.deploy_no, by_group[group_id])
        from_ms, until_ms = (window.nearest_us(at_ms * 1000) // 1000 for at_ms in lasted_ms)
        windows[group_id].append((from_ms, until_ms))
    wanted = [event for event in events if event.group_id is None or event.group_id in windows]
    result = replay_log(
        logged(events, info),
        info,
        by_group={
            group_id: Trial(grid=[settings], windows=own) for group_id, own in windows.items()
        },
        group_ids=windows,
        known=known_groups(wanted, given),
    )
    places = dict.fromkeys(windows, 0)
    saved = []
    for deploy in deploys:
        group_id = deploy.group_id or ""
        entries = [each for each in result.report.what_if if each.group_id == group_id]
        place = places[group_id]
        from_ms, until_ms = windows[group_id][place]
        missed = sum_of(each.coverage for each in entries).missed
        if any(first < until_ms * 1000 and from_ms * 1000 < last for first, last in missed):
            saved.append(Saved(not_computed="replay does not reproduce the deploy's rebalances"))
        else:
            saved.append(_saved(entries, place, deploy.sums.rebalancing_s or 0.0))
        places[group_id] += 1
    return saved


def _window(deploy_no: int | None, charges: Sequence[Charge]) -> tuple[int, int]:
    """Return when a deploy of a group lasted, milliseconds; lines may be a little off."""
    own = [place for place, each in enumerate(charges) if each.cost.deploy == deploy_no]
    after = charges[own[-1] + 1 :]
    from_ms = charges[own[0]].cost.start_ms - LINE_SKEW_MS
    return from_ms, after[0].cost.start_ms - LINE_SKEW_MS if after else _FOR_EVER_MS


def _saved(entries: Sequence[WhatIf], place: int, cost_s: float) -> Saved:
    """Return what the entries of a group save in the window at `place`, which cost `cost_s`."""
    entries = [each for each in entries if each.as_is is not None or not each.coverage.missed]
    pairs = [
        (each.as_is.within_ms[place], each.with_settings.within_ms[place])
        for each in entries
        if each.as_is is not None and each.with_settings is not None
    ]
    if not entries or len(pairs) < len(entries):
        why = next((each.not_computed for each in entries if each.not_computed), "")
        return Saved(not_computed=why or "no rebalance of the group is numbered")
    is_guessed = any(each.paired_by_time for each in entries)
    return Saved(
        setting=STATIC,
        saves_s=min(cost_s, sum(as_is - changed for as_is, changed in pairs) / 1000),
        basis=ESTIMATED if is_guessed else REPLAYED,
    )


def logged(events: Sequence[TraceEvent], info: RunInfo) -> Sequence[TraceEvent]:
    """Return the events of coordinators, as a log has them."""
    if not is_recording(info):
        return events
    is_known = info.profile in PROFILES or info.profile in ALIASES
    return list(as_logged(events, profile_named(info.profile) if is_known else DEFAULT_PROFILE))


def _weighed(
    finding: Finding,
    entries: Sequence[WhatIf],
    costs: Mapping[str, Sequence[RebalanceCost]],
    window: Window,
) -> Weighed:
    """Return a finding with the sum of what its setting saves in every file of its group."""
    if finding.setting is None:
        return Weighed(finding=finding)
    name, _, value = finding.setting.partition("=")
    own = [
        entry
        for entry in entries
        if entry.group_id == finding.group_id and str(entry.settings.get(name)) == value
    ]
    coverage = sum_of(entry.coverage for entry in own)
    part = finding
    if coverage.missed:
        shown = window.but(coverage.missed)
        # Other clients count as if they stayed, so that the part is of the same client.
        behind = [
            replace(each, restart="") if finding.client not in {"", each.client} else each
            for each in costs[finding.group_id]
        ]
        found = findings_of(finding.group_id, behind, shown)
        same = [each for each in found if each.kind == finding.kind]
        part = same[0] if same else replace(finding, cost_s=0.0)
    saved = with_savings(part, own)
    if saved.saves_s is not None:
        told = replace(
            finding,
            saves_s=saved.saves_s,
            more_rebalances=saved.more_rebalances,
            basis=saved.basis,
        )
        return Weighed(finding=told, of_s=part.cost_s, coverage=coverage)
    why = next((entry.not_computed for entry in own if entry.not_computed), "")
    if own and not why:
        why = "the group's assignor is not one that replay can play"
    why = why or "no rebalance of the group is numbered"
    return Weighed(finding=finding, not_computed=why, coverage=coverage)
