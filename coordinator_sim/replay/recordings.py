"""Replays a trace that holds the requests: drives them unchanged, compares every answer.

Drives coordinators with the unchanged requests of a recorded trace.

Every answer is compared with the recorded one. Brokers and their offsets log are plain data here:
a load replays what was appended, and a crashed broker's coordinator is forgotten.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.coordinator.contract import CoordinatorConfig, CoordinatorResult
from coordinator_sim.coordinator.coordinator import GroupCoordinator
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import partition_for
from coordinator_sim.kafka.profiles import (
    ALIASES,
    DEFAULT_PROFILE,
    PROFILES,
    Profile,
    profile_named,
)
from coordinator_sim.kafka.states import GroupState
from coordinator_sim.messages.records import LogBatch
from coordinator_sim.replay.compare import compare_answers, compare_pairs
from coordinator_sim.replay.logs import charges_of, replay_log
from coordinator_sim.replay.names import split_member_id
from coordinator_sim.replay.plan import NEVER_MS
from coordinator_sim.replay.players import NamedIds
from coordinator_sim.replay.recording import REQUESTS, Recording, asked_by, context_of
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
from coordinator_sim.trace.window import ALWAYS, Window

ANSWERS: Final = frozenset({Event.JOIN_RESP, Event.SYNC_RESP, Event.HEARTBEAT, Event.OFFSET_COMMIT})
_LEADS: Final = frozenset(
    {
        Event.MEMBER_ID_ASSIGNED,
        Event.MEMBER_ADDED,
        Event.PREPARE_REBALANCE,
        Event.GROUP_UNLOADED,
        Event.STATIC_REPLACED,
        Event.JOIN_COMPLETE,
    }
)
"""Events that only the coordinator of a group emits."""
_BY_ALARM: Final = frozenset(
    {
        Event.MEMBER_FAILED,
        Event.MEMBER_KICKED,
        Event.PENDING_EXPIRED,
        Event.PREPARE_REBALANCE,
        Event.JOIN_COMPLETE,
        Event.GROUP_EMPTY,
    }
)
"""Events that a timer may cause: timers due at their instant fire before them."""


class RecordedDriver:
    """Replays one recording.

    Args:
        recording: The trace's events.
        profile: Kafka release to behave like.
        initial_delay_ms: `group.initial.rebalance.delay.ms` of the brokers.
        group_max_size: `group.max.size` of the brokers; None for no limit.
    """

    def __init__(
        self,
        recording: Recording,
        profile: Profile,
        *,
        initial_delay_ms: int,
        group_max_size: int | None = None,
    ) -> None:
        self.events: list[TraceEvent] = []
        self.answers: dict[int, TraceEvent] = {}
        """Answers by the position of the request that they answer."""
        self._recording = recording
        self._profile = profile
        self._delay_ms = initial_delay_ms
        self._max_size = group_max_size or NEVER_MS
        self._ids = NamedIds()
        self._coordinators: dict[int, GroupCoordinator] = {}
        self._logs: dict[int, list[LogBatch]] = {}
        self._epochs: dict[int, int] = {}
        self._catch_ups: list[tuple[int, int]] = []
        """When stalled replicas have caught up, and of which offsets partition."""

    def run(self) -> list[TraceEvent]:
        """Drive the whole recording and return the coordinators' events, in order."""
        self._lead_from_the_start()
        for position, event in enumerate(self._recording.events):
            now_ms = event.ts_us // 1000
            if event.event in REQUESTS:
                # Timers count in whole milliseconds: those of this one were due before its end.
                self._ring((event.ts_us - 1) // 1000)
                self._ask(position, event, now_ms)
            else:
                self._ring(now_ms if event.event in _BY_ALARM else now_ms - 1)
                self._happen(event, now_ms)
        return self.events

    def _lead_from_the_start(self) -> None:
        """Load partitions that a broker leads without a recorded load."""
        seen: set[int] = set()
        for event in self._recording.events:
            partition, broker_id = event.offsets_partition, event.broker_id
            if partition is None or broker_id is None or partition in seen:
                continue
            if event.event is Event.LOAD_START:
                seen.add(partition)
            elif event.event in _LEADS:
                seen.add(partition)
                self._load(broker_id, partition, 0)
        self.events.clear()

    # -- what happens to brokers -----------------------------------------------------------

    def _happen(self, event: TraceEvent, now_ms: int) -> None:
        broker_id, partition = event.broker_id, event.offsets_partition
        match event.event:
            case Event.LOAD_START if broker_id is not None and partition is not None:
                epoch = self._epochs[partition] = self._epochs.get(partition, 0) + 1
                self._take(self._coordinator(broker_id).begin_load(partition, epoch, now_ms))
            case Event.LOAD_DONE if broker_id is not None and partition is not None:
                self._finish_load(broker_id, partition, now_ms)
            case Event.GROUP_UNLOADED | Event.UNLOAD_DONE | Event.COORD_RESIGNED if (
                broker_id is not None and partition is not None
            ):
                self._take(self._coordinator(broker_id).unload(partition, None, now_ms))
            case Event.FAULT if event.reason_text == "CrashBroker":
                self._coordinators.pop(int(event.attrs.get("broker", "-1")), None)
            case Event.FAULT if event.reason_text == "HoldReplication":
                self._hold(event.attrs, now_ms)
            case _:
                pass

    def _hold(self, attrs: dict[str, str], now_ms: int) -> None:
        """Stop committing appends of its leader to a group's partition."""
        partition = partition_for(attrs["group_id"], self._recording.partition_count)
        for coordinator in self._coordinators.values():
            coordinator.hold_high_watermark(hold=True, partition=partition)
        self._catch_ups.append((now_ms + int(attrs["for_ms"]), partition))

    def _catch_up(self, at_ms: int, partition: int) -> None:
        """Let the replicas of a partition follow again: waiting requests are answered."""
        self._catch_ups.remove((at_ms, partition))
        for coordinator in self._coordinators.values():
            coordinator.hold_high_watermark(hold=False, partition=partition)
            end = coordinator.end_offset(partition)
            self._take(coordinator.advance_high_watermark(partition, end, at_ms))

    def _load(self, broker_id: int, partition: int, now_ms: int) -> None:
        self._take(self._coordinator(broker_id).begin_load(partition, 0, now_ms))
        self._finish_load(broker_id, partition, now_ms)

    def _finish_load(self, broker_id: int, partition: int, now_ms: int) -> None:
        coordinator = self._coordinator(broker_id)
        for batch in self._logs.get(partition, ()):
            coordinator.replay(partition, batch)
        self._take(coordinator.finish_load(partition, ErrorCode.NONE, now_ms))

    def _coordinator(self, broker_id: int) -> GroupCoordinator:
        coordinator = self._coordinators.get(broker_id)
        if coordinator is None:
            config = CoordinatorConfig(
                broker_id=broker_id,
                offsets_topic_num_partitions=self._recording.partition_count,
                group_min_session_timeout_ms=1,
                group_max_session_timeout_ms=NEVER_MS,
                group_initial_rebalance_delay_ms=self._delay_ms,
                group_max_size=self._max_size,
            )
            coordinator = GroupCoordinator(config, self._profile, ids=self._ids)
            self._coordinators[broker_id] = coordinator
        return coordinator

    # -- requests and alarms ---------------------------------------------------------------

    def _ask(self, position: int, event: TraceEvent, now_ms: int) -> None:
        request = self._recording.request(position)
        if request is None or event.broker_id is None:
            return
        if event.event is Event.JOIN_REQ and not event.member_id:
            self._prepare_id(position, event)
        context = context_of(event, position)
        coordinator = self._coordinator(event.broker_id)
        self._take(coordinator.handle(request, context, now_ms))

    def _prepare_id(self, position: int, event: TraceEvent) -> None:
        """Set the id that the trace says the coordinator issued."""
        issued = self._recording.issued_id(position)
        if issued is None:
            self._ids.next_uuid = f"00000000-0000-4000-8000-{position:012d}"
            return
        prefix = f"{event.group_instance_id or event.client_id}-"
        parts = split_member_id(issued)
        known = issued.startswith(prefix)
        self._ids.next_uuid = issued.removeprefix(prefix) if known else (parts or ("", issued))[1]

    def _ring(self, now_ms: int) -> None:
        """Fire the timers that are due, in order of time, over all brokers."""
        while (due_ms := self._due_ms()) is not None and due_ms <= now_ms:
            caught_up = [each for each in self._catch_ups if each[0] <= due_ms]
            if caught_up:
                self._catch_up(*min(caught_up))
                continue
            for coordinator in list(self._coordinators.values()):
                if coordinator.wake_up_ms() == due_ms:
                    self._take(coordinator.expire(due_ms))
                    break

    def _due_ms(self) -> int | None:
        """Return the next instant of a timer or of caught-up replicas; None for never."""
        alarms = [coordinator.wake_up_ms() for coordinator in self._coordinators.values()]
        times = [at_ms for at_ms in alarms if at_ms is not None]
        times.extend(at_ms for at_ms, _ in self._catch_ups)
        return min(times, default=None)

    def _take(self, result: CoordinatorResult) -> None:
        for batch in result.batches:
            self._logs.setdefault(batch.partition, []).append(batch)
        for event in result.events:
            self.events.append(event)
            if event.event in ANSWERS and event.correlation_id is not None:
                self.answers[event.correlation_id] = event


def recorded_answers(events: list[TraceEvent]) -> dict[int, TraceEvent]:
    """Return the recorded answers by the position of the request that they answer.

    A connection carries one request at a time, so an answer belongs to its latest request.
    """
    open_requests: dict[object, int] = {}
    answers: dict[int, TraceEvent] = {}
    for position, event in enumerate(events):
        if event.event in REQUESTS and event.event in ANSWERS:
            answers[position] = event
        elif event.event in REQUESTS:
            open_requests[asked_by(event)] = position
        elif event.event in ANSWERS:
            asked = open_requests.pop(asked_by(event), None)
            if asked is not None:
                answers[asked] = event
    return answers


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
    driver: RecordedDriver
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
    window: Window = ALWAYS,
) -> ReplayResult:
    """Replay a whole recorded trace.

    With settings, the coordinators' events are also replayed like a log, once for each combination:
    recorded requests cannot react to changed settings.

    Args:
        events: Events of the trace, in its order; groups with epochs are left out whole.
        info: Facts of the trace.
        grid: Combinations of settings to try; empty for none.
        given: Partitions of groups whose assignments the trace lacks.
        window: The time that counts; all requests are replayed.
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
    for group_id, tallies in _tallies(recording.events, best.driver, window).items():
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
    if window != ALWAYS:
        report.leave_out_silent()
    changed = replay_log(
        as_logged(events, profile),
        info,
        grid,
        known=known_groups(events, given),
        charges=charges_of(events, info) if grid else (),
        window=window,
    )
    covered = {each.group_id: each.coverage for each in changed.report.groups}
    for each in report.groups:
        each.coverage = covered.get(each.group_id, each.coverage)
    if not grid:
        return ReplayResult(report, best.driver.events)
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
    driver.run()
    return _Attempt(delay_ms, driver, _tallies(recording.events, driver, ALWAYS))


def _tallies(
    recorded: list[TraceEvent], driver: RecordedDriver, window: Window
) -> dict[str, dict[str, Tally]]:
    """Return the tallies of what lies within a window, by group and kind."""
    theirs, mine = _rebalances(recorded), _rebalances(driver.events)
    answers = compare_answers(recorded_answers(recorded), driver.answers, window)
    tallies: dict[str, dict[str, Tally]] = {}
    for group_id, rebalances in theirs.items():
        if not rebalances:
            continue
        pairs = _paired(rebalances, mine.get(group_id, []))
        tallies[group_id] = compare_pairs(pairs, window=window)
        tallies[group_id][ANSWERS_KIND] = answers.get(group_id, Tally())
    return tallies


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
