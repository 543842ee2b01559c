"""What the changes of findings would save, computed by replays of their groups."""

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.kafka.profiles import ALIASES, DEFAULT_PROFILE, PROFILES, profile_named
from coordinator_sim.replay.costs import costs_of
from coordinator_sim.replay.findings import Finding, findings_of, with_savings, worst_first
from coordinator_sim.replay.logs import replay_log
from coordinator_sim.replay.recordings import as_logged, is_recording
from coordinator_sim.replay.report import WhatIf
from coordinator_sim.replay.settings import Settings, parse_grid
from coordinator_sim.replay.work import Partitions, known_groups
from coordinator_sim.trace.events import RunInfo, Source, TraceEvent
from coordinator_sim.trace.history import coordinator_events, group_lines


class Weighed(Struct, frozen=True, kw_only=True):
    """A finding, and why its saving is not computed; empty where it is, or where there is none."""

    finding: Finding
    not_computed: str = ""


def findings_in(events: Sequence[TraceEvent], source: Source) -> list[Finding]:
    """Return the findings of all groups of a trace, worst first; `source` is its default."""
    groups = group_lines(list(coordinator_events(events, source)))
    return worst_first(
        finding
        for group_id, lines in groups.items()
        for finding in findings_of(group_id, costs_of(group_id, lines))
    )


def weigh(
    findings: Sequence[Finding],
    events: Sequence[TraceEvent],
    info: RunInfo,
    given: Partitions,
    *,
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
    result = replay_log(
        _logged(own, info),
        info,
        by_group=wanted,
        known=known_groups(own, given),
        on_progress=on_progress,
    )
    return [_weighed(finding, result.report.what_if) for finding in findings]


def _logged(events: list[TraceEvent], info: RunInfo) -> list[TraceEvent]:
    """Return the events of coordinators, as a log has them."""
    if not is_recording(info):
        return events
    is_known = info.profile in PROFILES or info.profile in ALIASES
    return list(as_logged(events, profile_named(info.profile) if is_known else DEFAULT_PROFILE))


def _weighed(finding: Finding, entries: Sequence[WhatIf]) -> Weighed:
    """Return a finding with the sum of what its setting saves in every file of its group."""
    if finding.setting is None:
        return Weighed(finding=finding)
    name, _, value = finding.setting.partition("=")
    own = [
        entry
        for entry in entries
        if entry.group_id == finding.group_id and str(entry.settings.get(name)) == value
    ]
    saved = [with_savings(finding, entry).saves_s for entry in own]
    known = [each for each in saved if each is not None]
    if not own or len(known) < len(saved):
        why = next((entry.not_computed for entry in own if entry.not_computed), "")
        return Weighed(finding=finding, not_computed=why or "no rebalance of the group is numbered")
    best = with_savings(finding, own[0])
    return Weighed(finding=replace(best, saves_s=round(sum(known), 3)))
