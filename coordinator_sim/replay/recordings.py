"""Replays a trace that holds the requests: drives them unchanged, compares every answer."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.kafka.profiles import (
    ALIASES,
    DEFAULT_PROFILE,
    PROFILES,
    Profile,
    profile_named,
)
from coordinator_sim.kafka.states import GroupState
from coordinator_sim.replay.compare import compare_answers, compare_pairs
from coordinator_sim.replay.logs import replay_log, with_own_times
from coordinator_sim.replay.recorded import RecordedDriver, recorded_answers
from coordinator_sim.replay.recording import Recording
from coordinator_sim.replay.report import (
    ANSWERS_KIND,
    GroupFidelity,
    ReplayReport,
    ReplayResult,
    Tally,
)
from coordinator_sim.replay.settings import INITIAL_DELAY, Settings
from coordinator_sim.replay.versions import VERSION_ATTR
from coordinator_sim.replay.work import Partitions, known_groups
from coordinator_sim.trace.events import Event, RunInfo, Source, TraceEvent
from coordinator_sim.trace.history import episodes_of, group_lines
from coordinator_sim.trace.rebalances import Rebalance, epoch_groups_in

_DEFAULT_DELAY_MS: Final = 3_000
"""Kafka's default of `group.initial.rebalance.delay.ms`; its shipped server.properties sets 0."""
_WITH_REQUESTS: Final = frozenset({Source.SIM, Source.WIRE})
_INGESTED: Final = "ingested"
"""Profile of a trace that `ingest` made."""
_LOGGED: Final = frozenset(
    {
        Event.MEMBER_ID_ASSIGNED,
        Event.MEMBER_ADDED,
        Event.MEMBER_LEFT,
        Event.MEMBER_FAILED,
        Event.MEMBER_KICKED,
        Event.STATIC_REPLACED,
        Event.PENDING_EXPIRED,
        Event.PREPARE_REBALANCE,
        Event.JOIN_COMPLETE,
        Event.SYNC_LEADER,
        Event.GROUP_EMPTY,
        Event.GROUP_LOADED,
        Event.GROUP_UNLOADED,
    }
)
"""Events of a recording that a broker's log also holds."""


class _Attempt(Struct, frozen=True):
    """A replay of the recording with one guess of its unknown settings."""

    delay_ms: int
    events: list[TraceEvent]
    tallies: dict[str, dict[str, Tally]]

    @property
    def missed(self) -> int:
        """Number of rows that were not reproduced."""
        return sum(
            tally.in_source - tally.reproduced
            for kinds in self.tallies.values()
            for tally in kinds.values()
        )


def is_recording(info: RunInfo) -> bool:
    """Whether a trace holds every request beside the events of its coordinators.

    What `ingest` reads of a capture has the requests that passed by, and no broker's own events.
    """
    return info.source in _WITH_REQUESTS and info.profile != _INGESTED


def replay_recording(
    events: list[TraceEvent],
    info: RunInfo,
    grid: Sequence[Settings] = (),
    *,
    given: Partitions = Partitions({}),  # noqa: B008 - frozen
) -> ReplayResult:
    """Replay a whole recorded trace.

    With settings, the coordinators' events are also replayed like a log, once for each combination:
    recorded requests cannot react to changed settings.

    Args:
        events: Events of the trace, in its order; groups with epochs are left out whole.
        info: Facts of the trace.
        grid: Combinations of settings to try; empty for none.
        given: Partitions of groups whose assignments the trace lacks.
    """
    left_out = epoch_groups_in(events)
    events = [each for each in events if each.group_id not in left_out]
    recording = Recording(events, info.assignor)
    is_known = info.profile in PROFILES or info.profile in ALIASES
    profile = profile_named(info.profile) if is_known else DEFAULT_PROFILE
    told_ms = _told_delay_ms(info)
    best = _best_attempt(recording, profile, _delays(events) if told_ms is None else [told_ms])
    report = ReplayReport(
        trace_id=info.trace_id,
        grid=[settings.given for settings in grid],
        epoch_groups=left_out,
    )
    assumed = recording.assumptions()
    if told_ms is None:
        assumed = [f"{INITIAL_DELAY}={best.delay_ms}, the guess that fits best", *assumed]
    for group_id, tallies in best.tallies.items():
        report.groups.append(
            GroupFidelity(
                source_ref=None,
                group_id=group_id,
                profile=profile.name,
                version_range=info.profile,
                is_nearest=not is_known,
                tallies=tallies,
                assumed=list(assumed),
            )
        )
    if not grid:
        return ReplayResult(report, best.events)
    known = with_own_times(known_groups(events, given), events, info)
    changed = replay_log(as_logged(events, profile), info, grid, known=known)
    report.what_if = changed.report.what_if
    report.certain = changed.report.certain
    report.conditions = changed.report.conditions
    return ReplayResult(report, changed.events)


def as_logged(events: Iterable[TraceEvent], profile: Profile) -> Iterator[TraceEvent]:
    """Yield the events of a recording that a broker's log also holds, as a log's.

    The first tells the release, as the first line of a log does.
    """
    attrs = {VERSION_ATTR: profile.name}
    for event in events:
        if event.event in _LOGGED:
            yield replace(event, source=Source.BROKER_LOG, attrs=event.attrs | attrs)
            attrs = {}


def _told_delay_ms(info: RunInfo) -> int | None:
    """Return the initial delay that a trace of this simulator records."""
    told = info.options.get(INITIAL_DELAY, "")
    return int(told) if told.isdecimal() else None


def _delays(events: list[TraceEvent]) -> list[int]:
    """Return initial delays to try: Kafka's default, and those that the trace suggests."""
    starts: dict[str | None, int] = {}
    lengths: list[int] = []
    for event in events:
        if event.event is Event.PREPARE_REBALANCE and event.state_from is GroupState.EMPTY:
            starts[event.group_id] = event.ts_us // 1000
        elif event.event in {Event.JOIN_COMPLETE, Event.GROUP_EMPTY}:
            start_ms = starts.pop(event.group_id, None)
            if start_ms is not None:
                lengths.append(event.ts_us // 1000 - start_ms)
    # A phase that was extended once or twice is two or three delays long.
    shortest = min(lengths, default=_DEFAULT_DELAY_MS)
    guesses = (_DEFAULT_DELAY_MS, shortest, shortest // 2, shortest // 3)
    return list(dict.fromkeys(guesses))


def _best_attempt(recording: Recording, profile: Profile, delays_ms: list[int]) -> _Attempt:
    """Return the first attempt that reproduces everything, or the best one."""
    attempts: list[_Attempt] = []
    for delay_ms in delays_ms:
        attempt = _attempt(recording, profile, delay_ms)
        if not attempt.missed:
            return attempt
        attempts.append(attempt)
    return min(attempts, key=lambda attempt: attempt.missed)


def _attempt(recording: Recording, profile: Profile, delay_ms: int) -> _Attempt:
    driver = RecordedDriver(recording, profile, initial_delay_ms=delay_ms)
    events = driver.run()
    theirs, mine = _rebalances(recording.events), _rebalances(events)
    answers = compare_answers(recorded_answers(recording.events), driver.answers)
    tallies: dict[str, dict[str, Tally]] = {}
    for group_id, rebalances in theirs.items():
        if not rebalances:
            continue
        pairs = _paired(rebalances, mine.get(group_id, []))
        tallies[group_id] = compare_pairs(pairs)
        tallies[group_id][ANSWERS_KIND] = answers.get(group_id, Tally())
    return _Attempt(delay_ms, events, tallies)


def _rebalances(events: list[TraceEvent]) -> dict[str, list[Rebalance]]:
    return {
        group_id: [
            rebalance
            for episode in episodes_of(group_id, lines)
            for rebalance in episode.rebalances
        ]
        for group_id, lines in group_lines(events).items()
    }


def _paired(
    theirs: list[Rebalance], mine: list[Rebalance]
) -> list[tuple[Rebalance, Rebalance | None]]:
    """Pair rebalances in order: a failover may use one generation number twice."""
    pairs = zip_longest(theirs, mine)
    return [(told, done) for told, done in pairs if told is not None]
