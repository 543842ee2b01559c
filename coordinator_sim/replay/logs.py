"""Replays brokers' logs: every group's episodes through the core."""

from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from typing import Final

from msgspec.structs import replace

from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.replay.compare import compare, figures
from coordinator_sim.replay.driver import Driver
from coordinator_sim.replay.plan import GroupPlan
from coordinator_sim.replay.planner import plan_episode
from coordinator_sim.replay.report import (
    GroupFidelity,
    ReplayReport,
    ReplayResult,
    RunFigures,
    Tally,
    WhatIf,
)
from coordinator_sim.replay.settings import UNKNOWN, Settings
from coordinator_sim.replay.versions import VERSION_ATTR, ProfileChoice, profile_for
from coordinator_sim.trace.events import RunInfo, Source, TraceEvent
from coordinator_sim.trace.history import episodes_of, group_lines
from coordinator_sim.trace.rebalances import Episode

_CONDITIONS: Final = (
    "a member that a line says failed fell silent one session timeout of the source before it",
    "members come and go when the source says so, whatever the settings",
    "in a rebalance that the source has, members rejoin and sync as fast as they did there",
    "a rebalance that the source does not have, or leaves open, takes as long as its usual ones",
    "a member that is removed alive joins again at once",
)
"""Further assumptions of a run with changed settings."""
_LOGS: Final = frozenset({Source.BROKER_LOG})


def replay_log(
    events: Iterable[TraceEvent],
    info: RunInfo,
    settings: Settings = UNKNOWN,
    *,
    on_progress: Callable[[int], None] | None = None,
) -> ReplayResult:
    """Replay brokers' logs.

    Every group is replayed unchanged. With settings it is replayed twice more, by members that
    react: under the assumptions and with the settings. The difference of these two is what the
    settings change. `on_progress` gets the number of events done.
    """
    report = ReplayReport(trace_id=info.trace_id, settings=settings.given)
    lines = list(_replayable(events, info, report))
    versions = _versions(lines)
    told: list[TraceEvent] = []
    done = 0
    for group_id, own in group_lines(lines).items():
        done += len(own)
        if on_progress is not None:
            on_progress(done)
        episodes = [each for each in episodes_of(group_id, own) if each.generation is not None]
        if not any(episode.rebalances for episode in episodes):
            report.silent_groups.append(group_id)
            continue
        told.extend(_replay_group(episodes, versions, settings, report))
    if report.what_if:
        report.conditions.extend(_CONDITIONS)
    told.sort(key=lambda event: event.ts_us)
    return ReplayResult(report, told)


def _replayable(
    events: Iterable[TraceEvent], info: RunInfo, report: ReplayReport
) -> Iterator[TraceEvent]:
    """Yield the events of coordinators; the others are counted."""
    for event in events:
        source = event.source or info.source
        if source in _LOGS:
            yield event
        else:
            count = report.other_sources.get(source.value, 0)
            report.other_sources[source.value] = count + 1


def _versions(lines: list[TraceEvent]) -> dict[str | None, str]:
    """Return the version range of every file; the last one noted is the narrowest."""
    return {
        line.source_ref: line.attrs[VERSION_ATTR] for line in lines if VERSION_ATTR in line.attrs
    }


def _replay_group(
    episodes: list[Episode],
    versions: dict[str | None, str],
    settings: Settings,
    report: ReplayReport,
) -> list[TraceEvent]:
    told: list[TraceEvent] = []
    by_file: dict[str | None, list[Episode]] = {}
    for episode in episodes:
        if episode.rebalances:
            by_file.setdefault(episode.source_ref, []).append(episode)
    for source_ref, own in by_file.items():
        version = versions.get(source_ref)
        choice = profile_for(version)
        fidelity = GroupFidelity(
            source_ref=source_ref,
            group_id=own[0].group_id,
            profile=choice.profile.name,
            version_range=version,
            is_nearest=choice.is_nearest,
        )
        report.groups.append(fidelity)
        told.extend(_replay_episodes(own, choice, settings, (fidelity, report)))
    return told


def _replay_episodes(
    episodes: list[Episode],
    choice: ProfileChoice,
    settings: Settings,
    into: tuple[GroupFidelity, ReplayReport],
) -> list[TraceEvent]:
    fidelity, report = into
    # The timeouts of a replay are its own, so that they must be changeable in every version.
    profile = replace(choice.profile, refreshes_timeouts=True)
    told: list[TraceEvent] = []
    as_is: list[RunFigures] = []
    changed: list[RunFigures] = []
    plans = [plan_episode(episode) for episode in episodes]
    _share_initial_delay(plans)
    for plan, following in zip_longest(plans, episodes[1:]):
        silences = {
            actor.name: actor.silent_ms
            for actor in plan.actors
            if actor.name is not None and actor.silent_ms is not None
        }
        events = _drive(plan, profile, UNKNOWN)
        _judge(plan, events, fidelity)
        if not settings.is_empty:
            until_ms = _until_ms(plan.episode, following, settings)
            plain = _drive(plan, profile, UNKNOWN, until_ms=until_ms)
            as_is.append(figures(plain, silences))
            events = _drive(plan, profile, settings, until_ms=until_ms)
            changed.append(figures(events, silences))
        told.extend(events)
    if changed:
        report.what_if.append(
            WhatIf(
                source_ref=fidelity.source_ref,
                group_id=fidelity.group_id,
                is_reproduced=fidelity.is_reproduced,
                as_is=_sum(as_is),
                with_settings=_sum(changed),
            )
        )
    return told


def _share_initial_delay(plans: list[GroupPlan]) -> None:
    """Assume in episodes that tell no initial delay what the others of the group tell."""
    told = (plan.assumed_initial_delay_ms for plan in plans)
    known = next((delay_ms for delay_ms in told if delay_ms is not None), None)
    for plan in plans:
        if plan.assumed_initial_delay_ms is None:
            plan.assumed_initial_delay_ms = known


def _until_ms(episode: Episode, following: Episode | None, settings: Settings) -> int:
    """How far both runs of a comparison go: until no timer is left, or the next episode begins."""
    until_ms = episode.last_ms + settings.slack_ms
    if following is not None:
        until_ms = min(until_ms, following.first_ms - 1)
    return max(episode.last_ms, until_ms)


def _drive(
    plan: GroupPlan, profile: Profile, settings: Settings, *, until_ms: int | None = None
) -> list[TraceEvent]:
    """The core's events from the source's first line on."""
    first_us = plan.episode.first_ms * 1000
    incarnation = plan.episode.incarnation
    events = Driver(plan, profile, settings, until_ms=until_ms).run()
    return [
        replace(event, incarnation=incarnation) if incarnation else event
        for event in events
        if event.ts_us >= first_us
    ]


def _judge(plan: GroupPlan, events: list[TraceEvent], fidelity: GroupFidelity) -> None:
    for kind, tally in compare(plan.episode, events).items():
        fidelity.tallies.setdefault(kind, Tally()).add(tally)
    if plan.episode.resumed:
        fidelity.assumed.append(f"begins anew, because {plan.episode.resumed}")
    fidelity.assumed.extend(plan.assumed)
    fidelity.unexplained.extend(plan.unexplained)


def _sum(runs: list[RunFigures]) -> RunFigures:
    outcomes: dict[str, int] = {}
    for run in runs:
        for name, count in run.outcomes.items():
            outcomes[name] = outcomes.get(name, 0) + count
    return RunFigures(
        rebalances=sum(run.rebalances for run in runs),
        last_generation=runs[-1].last_generation,
        join_ms=sum(run.join_ms for run in runs),
        rebalancing_ms=sum(run.rebalancing_ms for run in runs),
        removed=sum(run.removed for run in runs),
        unnoticed_ms=sum(run.unnoticed_ms for run in runs),
        outcomes=dict(sorted(outcomes.items())),
    )
