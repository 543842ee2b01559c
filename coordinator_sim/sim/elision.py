"""Skips idle time: heartbeats and empty polls of stable groups, in closed form.

A stretch is skipped where nothing but the rhythms of idle consumers can happen up to the next
call of the clock that is anything else: a happening, a message on its way, a session that will run
out. Consumers are then taken out of the clock's queue and put back shortly before that call, each
at one of its polls, in the state in which it would have been; what else the brokers do meanwhile,
such as looking for expired offsets, they do. The time from there to the call is lived through, so
that alarms of one instant ring in the order of a run without skips. A stretch ends where one of
several consumers in step refreshes its metadata: large groups are skipped for long only where
`metadata.max.age.ms` is long.

Skipped is what can be computed exactly, and nothing else: constant latencies, ties first in first
out, Java's consumers of topics without new records up to the end of the stretch, without automatic
commits, with a fixed time between polls and heartbeats on the grid of the heartbeat thread's looks.
Every other world is simulated as ever; `Elision.reason` names what kept it from being skipped.
"""

from collections import Counter
from collections.abc import Iterable
from functools import partial
from operator import itemgetter
from typing import Final, NamedTuple

from msgspec import Struct

from coordinator_sim.clock import Action
from coordinator_sim.coordinator.idle import MemberOf, SkippedBeat
from coordinator_sim.sim.brokers import ClusterDriver
from coordinator_sim.sim.consumers import ConsumerProcess
from coordinator_sim.sim.environment import Call, Entry, Scheduled
from coordinator_sim.sim.idle_rhythm import IdleRhythm, Landing
from coordinator_sim.sim.world import US_PER_MS, World
from coordinator_sim.trace.events import Event, TraceEvent

_RETRY_US: Final = 1_000_137
"""From one look to the next; not a whole millisecond, as most messages are sent at one."""
_LONGEST_RETRY_US: Final = 64 * _RETRY_US
_WORTHWHILE: Final = 2
"""Least length of a skipped stretch, in times of what has to be lived through after it."""


class Elided(Struct, frozen=True):
    """What was skipped.

    Args:
        stretches: Number of stretches.
        us: Their virtual time together.
        heartbeats: Heartbeats in them.
        reason: What kept other time from being skipped, most often; empty if nothing did.
    """

    stretches: int
    us: int
    heartbeats: int
    reason: str


class _Idle(Struct, frozen=True):
    """An idle consumer.

    Args:
        process: The consumer.
        rhythm: Its rhythm.
        polled_key: Place of the next end of its poll or of its processing among the clock's calls.
        beat_key: Place of its next heartbeat.
    """

    process: ConsumerProcess
    rhythm: IdleRhythm
    polled_key: int
    beat_key: int


class _Ask(NamedTuple):
    """When a consumer asks for a call of the clock, and its place among those of that instant.

    Args:
        at_us: The instant.
        before_us: For an alarm: when the alarms before it were asked for.
        rang_us: For the end of a poll: when a heartbeat was last sent within a poll.
        key: Place among the calls of the clock before the stretch.
    """

    at_us: int
    before_us: tuple[int, ...] = ()
    rang_us: int = 0
    key: int = 0


class _Busy(Exception):
    """Something else than idle consumers goes on.

    Args:
        what: Words for it.
        until_us: When there may be a stretch to skip again; None where nobody knows.
    """

    def __init__(self, what: str, until_us: int | None = None) -> None:
        super().__init__(what, until_us)
        self.what = what
        self.until_us = until_us


class Elision:
    """Advances a world, without its idle time.

    Args:
        world: Shared parts of the run.
        brokers: The driver of its cluster.
        ends_at_us: When the run ends.
    """

    def __init__(self, world: World, brokers: ClusterDriver, ends_at_us: int) -> None:
        self._world = world
        self._brokers = brokers
        self._ends_at_us = ends_at_us
        self._looks_at_us = _RETRY_US
        self._retry_us = _RETRY_US
        self._image_version = world.cluster.image.version
        self._image_changed_ms = -1
        self._reasons: Counter[str] = Counter()
        self._stretches = 0
        self._skipped_us = 0
        self._heartbeats = 0

    def elided(self) -> Elided:
        """Return what was skipped so far."""
        reason = self._reasons.most_common(1)
        return Elided(
            self._stretches, self._skipped_us, self._heartbeats, reason[0][0] if reason else ""
        )

    def run_until(self, end_us: int) -> None:
        """Advance to an instant; everything due up to and including it has happened then."""
        environment = self._world.environment
        while self._looks_at_us < end_us:
            environment.run_until(self._looks_at_us)
            try:
                self._looks_at_us = self._skip() + _RETRY_US
                self._retry_us = _RETRY_US
            except _Busy as busy:
                self._look_later(busy)
        environment.run_until(end_us)

    def _look_later(self, busy: _Busy) -> None:
        now_us = self._world.environment.now_us
        if busy.until_us is None:
            self._looks_at_us = now_us + self._retry_us
            self._retry_us = min(2 * self._retry_us, _LONGEST_RETRY_US)
        else:
            self._looks_at_us = max(busy.until_us, now_us) + _RETRY_US
            self._retry_us = _RETRY_US
        self._reasons[busy.what] += self._looks_at_us - now_us

    def _skip(self) -> int:
        """Skip a stretch that begins now; return when something else goes on.

        Raises:
            _Busy: there is none.
        """
        now_us = self._world.environment.now_us
        self._check_world()
        horizon_us, idle = self._idle_consumers()
        members = {each.process.member_key: each for each in idle}
        horizon_us = min(horizon_us, self._first_lapse_us(members), _first_refresh_us(idle))
        settling_us = max((each.rhythm.settling_us for each in idle), default=0)
        earliest_us = horizon_us - settling_us
        if not idle or earliest_us - now_us < _WORTHWHILE * settling_us:
            raise _Busy("something else is due too soon", horizon_us)
        landings = _landings(idle, earliest_us, horizon_us)
        self._tell(landings)
        self._take_out(each for each, _ in landings)
        self._keep_sessions(landings)
        self._go_on(landings)
        self._stretches += 1
        self._skipped_us += earliest_us - now_us
        return horizon_us

    def _check_world(self) -> None:
        world = self._world
        environment, cluster = world.environment, world.cluster
        image = cluster.image
        if image.version != self._image_version:
            self._image_version = image.version
            self._image_changed_ms = environment.now_us // US_PER_MS
        if environment.shuffles_ties:
            raise _Busy("the order of simultaneous happenings is drawn")
        if world.choices.is_taped:
            raise _Busy("choices are kept on a tape")
        if world.variety is not None or world.network.constant_us is None:
            raise _Busy("latencies or durations are drawn")
        if not world.network.is_exact or cluster.faults.is_pending or self._brokers.held:
            raise _Busy("the network or a broker is disturbed")
        if cluster.scheduler.has_tasks:
            raise _Busy("a broker has something to do")

    def _idle_consumers(self) -> tuple[int, list[_Idle]]:
        """Return when anything but idle consumers and brokers goes on, and these consumers."""
        horizon_us = self._ends_at_us
        entries: dict[ConsumerProcess, list[Entry]] = {}
        for entry in self._world.environment.pending():
            owner = owner_of(entry[3])
            if type(owner) is ConsumerProcess:
                entries.setdefault(owner, []).append(entry)
            elif owner is not self._brokers:
                horizon_us = min(horizon_us, entry[0])
        idle: list[_Idle] = []
        for process, own in entries.items():
            processed = [entry for entry in own if process.ends_processing(entry[3])]
            rhythm = process.idle_rhythm(processed[0][0] if processed else None)
            if rhythm is None or not rhythm.is_steady():
                raise _Busy("a consumer processes, commits, rebalances or is disturbed")
            if rhythm.phases.refreshed_ms <= self._image_changed_ms:
                raise _Busy("a consumer has not seen the newest metadata")
            beat_us = rhythm.phases.heartbeat_due_ms * US_PER_MS
            beats = [key for at_us, _, key, _ in own if at_us == beat_us]
            polled_key = min(processed or own)[2]
            record_us = process.next_record_us()
            horizon_us = horizon_us if record_us is None else min(horizon_us, record_us)
            idle.append(_Idle(process, rhythm, polled_key, min(beats, default=polled_key)))
        return horizon_us, idle

    def _first_lapse_us(self, members: dict[MemberOf, _Idle]) -> int:
        """Return when the first session runs out of a member that is not among the idle ones."""
        lapses: list[int] = []
        known = 0
        for broker in self._world.cluster.groups.living.values():
            sessions = broker.coordinator.idle_sessions()
            if sessions is None:
                raise _Busy("a group rebalances, or a write waits")
            known += sum(key in members for key in sessions)
            lapses += [at_ms for key, at_ms in sessions.items() if key not in members]
        if known < len(members):
            raise _Busy("a consumer processes, commits, rebalances or is disturbed")
        return min(lapses, default=1 << 62) * US_PER_MS

    def _tell(self, landings: list[tuple[_Idle, Landing]]) -> None:
        """Record how many heartbeats each group sends in the stretch."""
        counts: Counter[str] = Counter()
        for each, landing in landings:
            counts[each.process.member_key[0]] += landing.skip.beat_count
        until_us = min(landing.poll_us for _, landing in landings)
        for group_id, count in sorted(counts.items()):
            attrs = {"heartbeats": str(count), "until_us": str(until_us)}
            self._world.record(
                TraceEvent(
                    event=Event.HEARTBEATS_ELIDED,
                    ts_us=self._world.environment.now_us,
                    group_id=group_id,
                    attrs=attrs,
                )
            )
        self._heartbeats += counts.total()

    def _take_out(self, idle: Iterable[_Idle]) -> None:
        processes = {id(each.process) for each in idle}
        self._world.environment.withdraw(lambda event: id(owner_of(event)) in processes)

    def _go_on(self, landings: list[tuple[_Idle, Landing]]) -> None:
        """Have the consumers ask for their calls when they would have, and in that order."""
        environment = self._world.environment
        asks: list[tuple[_Ask, Action]] = []
        for each, landing in landings:
            process, rang_us = each.process, landing.rang_us
            process.skip_idle(landing)
            ended = _Ask(
                at_us=landing.poll_us - each.rhythm.busy_us,
                rang_us=rang_us,
                key=each.beat_key if rang_us else each.polled_key,
            )
            asks.append((ended, partial(process.poll_again, landing)))
            at_us, *before_us = landing.beat_order
            asked = _Ask(at_us, tuple(before_us), key=each.beat_key)
            asks.append((asked, partial(process.expect_beat, landing)))
        for place, ask in sorted(asks, key=itemgetter(0)):
            environment.call_at(max(environment.now_us, place.at_us), ask)

    def _keep_sessions(self, landings: list[tuple[_Idle, Landing]]) -> None:
        """Restart the sessions at their brokers, in the order in which the heartbeats arrive."""
        beats: list[tuple[int, SkippedBeat]] = []
        for each, landing in landings:
            group_id, member_id = each.process.member_key
            arrives_us = landing.skip.beat_ms * US_PER_MS + each.rhythm.latency_us
            beat = SkippedBeat(group_id, member_id, arrives_us // US_PER_MS)
            beats.append((arrives_us, beat))
        beats.sort(key=itemgetter(0))
        for broker in self._world.cluster.groups.living.values():
            sessions = broker.coordinator.idle_sessions() or {}
            own = [beat for _, beat in beats if (beat.group_id, beat.member_id) in sessions]
            broker.coordinator.skip_heartbeats(own)


def _first_refresh_us(idle: list[_Idle]) -> int:
    """Return the first refresh of metadata that may change the order of alarms of one instant.

    Between consumers that send heartbeats or poll at the same instants, the order of their alarms
    decides who is first. A refresh is an alarm more, and changes it, unless all of them refresh
    together.
    """
    in_step: dict[tuple[str, int, int], list[IdleRhythm]] = {}
    for each in idle:
        for step in each.rhythm.steps:
            in_step.setdefault(step, []).append(each.rhythm)
    dues_ms = [
        rhythm.phases.metadata_due_ms
        for together in in_step.values()
        if len({rhythm.refresh_step for rhythm in together}) > 1
        for rhythm in together
    ]
    return min(dues_ms, default=1 << 62) * US_PER_MS


def _landings(idle: list[_Idle], earliest_us: int, horizon_us: int) -> list[tuple[_Idle, Landing]]:
    """Find where each consumer goes on; those that poll in step go on together.

    Raises:
        _Busy: one of them cannot before the horizon.
    """
    in_step: dict[tuple[int, int], list[_Idle]] = {}
    for each in idle:
        cycle_us = each.rhythm.cycle_us
        in_step.setdefault((cycle_us, each.rhythm.next_poll_us % cycle_us), []).append(each)
    found: list[tuple[_Idle, Landing]] = []
    for together in in_step.values():
        from_us, are_apart = earliest_us, True
        while are_apart:
            landings = [each.rhythm.landing(from_us) for each in together]
            polls = [landing.poll_us for landing in landings if landing is not None]
            from_us = max(polls, default=horizon_us)
            if len(polls) < len(together) or from_us >= horizon_us - together[0].rhythm.cycle_us:
                raise _Busy("heartbeats and polls of a consumer meet at one instant")
            are_apart = min(polls) < from_us
        found += [(each, one) for each, one in zip(together, landings, strict=True) if one]
    return found


def owner_of(event: Scheduled) -> object:
    """Return the object whose method an event calls; None for a function, or simpy's events."""
    action = event.action if type(event) is Call else None
    method = action.func if isinstance(action, partial) else action
    return getattr(method, "__self__", None)
