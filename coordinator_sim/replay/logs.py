"""Replays what sources tell of coordinators: every group's episodes through the core.

A broker's log has the lines themselves. From requests and records of the offsets topic `ingest` has
worked out the lines that a coordinator would have logged, as far as they determine them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.clients.client_kind import kind_of_lines
from coordinator_sim.replay.charges import Charge, charges_in, trace_of
from coordinator_sim.replay.compare import compare
from coordinator_sim.replay.cost_sums import sums_of
from coordinator_sim.replay.plan import GroupPlan
from coordinator_sim.replay.planner import plan_episode
from coordinator_sim.replay.report import (
    Coverage,
    GroupFidelity,
    ReplayReport,
    ReplayResult,
    Tally,
)
from coordinator_sim.replay.settings import INITIAL_DELAY, UNKNOWN, Settings
from coordinator_sim.replay.versions import VERSION_ATTR, profile_for
from coordinator_sim.replay.what_if import Subject, assumed_of, drive, events_of, what_if
from coordinator_sim.replay.work import NOTHING_KNOWN, KnownGroups, OwnTimes
from coordinator_sim.trace.events import Event, RunInfo, Source, TraceEvent
from coordinator_sim.trace.history import (
    CLIENT_SOURCES,
    COORDINATOR_EVENTS,
    episodes_of,
    group_lines,
)
from coordinator_sim.trace.printed_settings import (
    ASSUMED,
    HEARTBEAT,
    NOTHING_PRINTED,
    PRINTED,
    SESSION,
    with_printed_settings,
)
from coordinator_sim.trace.rebalances import Episode, epoch_groups_in
from coordinator_sim.trace.schema import RunManifest
from coordinator_sim.trace.window import ALWAYS, Window

CERTAIN: Final = (
    "replay reproduces all rows that the source determines of these groups",
    "both runs have the same members and the same events from outside: only the setting differs",
    "the coordinator's part is computed by the core that was compared with Apache Kafka's own",
)
CONDITIONS: Final = (
    "a member that a line says failed fell silent one session timeout of the source before it",
    "members come and go when the source says so, whatever the settings",
    "in a rebalance that the source has, members rejoin and sync as fast as they did there",
    "while a rebalance waited for a member that was then removed, the others rejoined as usual",
    "a rebalance that the source does not have, or leaves open, takes as long as its usual ones",
    "a member that is removed alive joins again at once",
)
"""Further assumptions of a run with changed settings."""
UNTIMED_SOURCES: Final = frozenset({Source.FORMATTER_TEXT})
"""Sources that tell generations without any time."""
_TOLD: Final = COORDINATOR_EVENTS | {Event.ASSIGNED}
"""What is replayed of sources that also have requests and commits; assignments name members."""


class Trial(Struct, frozen=True, kw_only=True):
    """What to try on one group.

    Args:
        grid: Combinations of settings.
        windows: Windows of time, milliseconds, that have figures of their own.
    """

    grid: Sequence[Settings]
    windows: Sequence[tuple[int, int]] = ()


_NO_TRIAL: Final = Trial(grid=())
_File = tuple[str | None, str]
"""A group's file: its name, and the group."""


def replay_log(  # noqa: PLR0913 - a trace, and how it is replayed, by keyword
    events: Iterable[TraceEvent],
    info: RunInfo,
    grid: Sequence[Settings] = (),
    *,
    by_group: Mapping[str, Trial] = MappingProxyType({}),
    group_ids: Collection[str] | None = None,
    known: KnownGroups = NOTHING_KNOWN,
    charges: Sequence[Charge] = (),
    window: Window = ALWAYS,
    on_progress: Callable[[int], None] | None = None,
) -> ReplayResult:
    """Replay brokers' logs, request logs, captures and records of the offsets topic.

    Every group is replayed unchanged. With settings it is replayed again by members that react:
    under the assumptions, and with each combination. The difference is what the settings change.

    Args:
        events: Events of the trace, in its order; groups with epochs are left out whole.
        info: Facts of the trace.
        grid: Combinations of settings to try; empty for none.
        by_group: What else to try, for single groups.
        group_ids: The only groups to replay; None for all. Lines of others tell releases, too.
        known: What is known of the groups beside these lines.
        charges: What rebalances cost: as they are, groups have these times; without, a replay's.
        window: The time that counts; what was before it is played, and not counted.
        on_progress: Gets the number of events done.
    """
    events = list(events)
    left_out = epoch_groups_in(events)
    report = ReplayReport(
        trace_id=info.trace_id,
        grid=[settings.given for settings in grid],
        epoch_groups={
            name: kind for name, kind in left_out.items() if group_ids is None or name in group_ids
        },
    )
    classic = (event for event in events if event.group_id not in left_out)
    own = list(_replayable(classic, info, report, group_ids))
    lines = with_printed_settings(own, known.printed)
    versions = _versions(lines)
    by_file = _by_file(charges)
    told: list[TraceEvent] = []
    done = 0
    for group_id, own in group_lines(lines).items():
        if group_ids is not None and group_id not in group_ids:
            continue
        done += len(own)
        episodes = [each for each in episodes_of(group_id, own) if each.generation is not None]
        if any(episode.rebalances for episode in episodes):
            replayed = list(_replay_group(episodes, versions, known, report, window))
            subjects = _covered([subject for subject, _ in replayed], window, by_file)
            tried = [*grid, *(trial := by_group.get(group_id, _NO_TRIAL)).grid]
            if not tried:
                told.extend(event for _, plain in replayed for event in plain)
            for subject in subjects if tried else ():
                asked = replace(subject, windows=trial.windows, client_kind=kind_of_lines(own))
                entries, changed = what_if(asked, tried)
                report.what_if.extend(entries)
                told.extend(changed)
        else:
            report.silent_groups.append(group_id)
        if on_progress is not None:
            on_progress(done)
    if window != ALWAYS:
        report.leave_out_silent()
    if grid:
        report.certain.extend(CERTAIN)
        report.conditions.extend(conditions_of(grid))
    return ReplayResult(report, sorted(told, key=lambda event: event.ts_us))


def charges_of(
    events: Sequence[TraceEvent], info: RunInfo, group_ids: Collection[str] | None = None
) -> list[Charge]:
    """Return what the rebalances of groups cost, as `findings --costs` shows it.

    Args:
        events: All events of these groups, in the order of the trace.
        info: Facts of the trace; those of one on disk have its end.
        group_ids: The groups; None for all.
    """
    end_us = info.last_ts_us if isinstance(info, RunManifest) else None
    if group_ids is not None:
        events = [each for each in events if each.group_id is None or each.group_id in group_ids]
    return charges_in(trace_of(events, info.source, end_us))


def _by_file(charges: Iterable[Charge]) -> dict[_File, list[Charge]]:
    of: dict[_File, list[Charge]] = {}
    for each in charges:
        of.setdefault((each.source_ref, each.group_id), []).append(each)
    return of


def _covered(
    subjects: Sequence[Subject], window: Window, charges: Mapping[_File, Sequence[Charge]]
) -> list[Subject]:
    """Return a group's files with the time in which its stretches are reproduced, and its costs."""
    for subject in subjects:
        missed = [each.episode for each in subject.plans if not each.is_reproduced]
        subject.fidelity.coverage = Coverage(
            missed=tuple((each.first_ms * 1000, (each.last_ms + 1) * 1000) for each in missed)
        )
    every = [span for subject in subjects for span in subject.fidelity.coverage.missed]
    shown = window.but(every)
    for subject in subjects:
        rebalances = [each for plan in subject.plans for each in plan.episode.rebalances]
        starts_us = [each.first_line.ts_us for each in rebalances]
        held = [each for each in starts_us if shown.holds(each)]
        own = Coverage(
            rebalances=sum(map(window.holds, starts_us)),
            reproduced=len(held),
            first_us=min(held, default=None),
            last_us=max(held, default=None),
        )
        subject.fidelity.coverage = subject.fidelity.coverage.plus(own)
    return [
        replace(each, shown=shown, own_times=_own_times(charges.get(_file_of(each), ()), shown))
        for each in subjects
    ]


def _file_of(subject: Subject) -> _File:
    return subject.fidelity.source_ref, subject.fidelity.group_id


def _own_times(charges: Sequence[Charge], shown: Window) -> OwnTimes | None:
    """Return what the rebalances of a group's file cost in time; None where that is not known."""
    if not charges:
        return None
    own = [each for each in charges if shown.holds(each.seen_us)]
    sums = sums_of(own)
    return OwnTimes(
        rebalancing_ms=_ms(sums.rebalancing_s),
        paused_ms=_ms(sums.paused_s),
        stopped_ms=_ms(sums.stopped_s),
        unowned_ms=_ms(sums.unowned_s),
        is_bound=any(each.cost.is_bound for each in own),
    )


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)


def conditions_of(grid: Sequence[Settings]) -> list[str]:
    """Return what the figures under these settings assume, each sentence once."""
    special = (text for settings in grid for text in assumed_of(settings))
    return list(dict.fromkeys([*CONDITIONS, *special]))


def _replayable(
    events: Iterable[TraceEvent],
    info: RunInfo,
    report: ReplayReport,
    group_ids: Collection[str] | None,
) -> Iterator[TraceEvent]:
    """Yield the events of coordinators that have times; those of other sources are counted."""
    for event in events:
        source = event.source or info.source
        if source not in UNTIMED_SOURCES | CLIENT_SOURCES:
            if event.event in _TOLD or source is Source.BROKER_LOG:
                yield event
        elif group_ids is None or event.group_id is None or event.group_id in group_ids:
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
    known: KnownGroups,
    report: ReplayReport,
    window: Window,
) -> Iterator[tuple[Subject, list[TraceEvent]]]:
    """Replay a group unchanged, and yield it with the core's events, file by file."""
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
        plans = [plan_episode(episode) for episode in own]
        _share_initial_delay(plans)
        for plan in plans:
            _take_printed(plan, known)
        told: list[TraceEvent] = []
        # The timeouts of a replay are its own, so that they must be changeable in every version.
        profile = replace(choice.profile, refreshes_timeouts=True)
        for plan in plans:
            events = events_of(drive(plan, profile, UNKNOWN), plan)
            _judge(plan, events, fidelity, window)
            told.extend(events)
            plan.rejoins_ms = known.rejoins_ms.get(fidelity.group_id, {})
        subject = Subject(
            fidelity=fidelity,
            plans=plans,
            profile=choice.profile,
            work=known.work_of(fidelity.group_id),
        )
        yield subject, told


def _take_printed(plan: GroupPlan, facts: KnownGroups) -> None:
    """Give a plan what clients and brokers printed, where its lines do not tell it."""
    group_id = plan.episode.group_id
    plan.heartbeat_interval_ms = facts.heartbeats_ms.get(group_id)
    for whose, name, field in (
        (group_id, SESSION, "session_timeout_ms"),
        (group_id, HEARTBEAT, "heartbeat_interval_ms"),
        (None, INITIAL_DELAY, "assumed_initial_delay_ms"),
    ):
        said = facts.printed.get(whose, NOTHING_PRINTED).of(name)
        if said is not None and said.number is not None and getattr(plan, field) is None:
            setattr(plan, field, said.number)
            plan.printed.append(said.words)
    told = (line.attrs.get(PRINTED) for line in plan.episode.lines)
    plan.printed = list(dict.fromkeys([*filter(None, told), *plan.printed]))
    guessed = (line.attrs.get(ASSUMED) for line in plan.episode.lines)
    plan.assumed.extend(dict.fromkeys(filter(None, guessed)))


def _share_initial_delay(plans: list[GroupPlan]) -> None:
    """Copy a group's initial delay to the episodes whose lines do not show it."""
    told = (plan.assumed_initial_delay_ms for plan in plans)
    known = next((delay_ms for delay_ms in told if delay_ms is not None), None)
    for plan in plans:
        if plan.assumed_initial_delay_ms is None:
            plan.assumed_initial_delay_ms = known


def _judge(
    plan: GroupPlan, events: list[TraceEvent], fidelity: GroupFidelity, window: Window
) -> None:
    tallies = compare(plan.episode, events, window)
    # A stretch is reproduced or not, whatever part is shown: figures of windows add up.
    whole = tallies if window == ALWAYS else compare(plan.episode, events)
    plan.is_reproduced = all(each.is_whole for each in whole.values())
    for kind, tally in tallies.items():
        fidelity.tallies.setdefault(kind, Tally()).add(tally)
    if plan.episode.resumed:
        fidelity.assumed.append(f"begins anew, because {plan.episode.resumed}")
    fidelity.assumed.extend(plan.assumed)
    fidelity.printed.extend(plan.printed)
    fidelity.unexplained.extend(plan.unexplained)
