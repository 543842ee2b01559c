"""Runs a plan: members act at the times of their lines, and the core answers.

No simulator is needed: the run has no randomness and no messages in transit. Alarms are delivered
when they are due, except an unknown initial delay: that alarm fires where the join phase ends in
the trace.
"""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

from coordinator_sim.coordinator.contract import CoordinatorConfig, CoordinatorResult, Reply
from coordinator_sim.coordinator.coordinator import GroupCoordinator
from coordinator_sim.coordinator.idle import SkippedBeat
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.orders.iteration_order import TABLE_ORDERS
from coordinator_sim.kafka.partitioning import partition_for
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.kafka.states import GroupState
from coordinator_sim.messages.heartbeat import HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupResponse
from coordinator_sim.messages.records import LogBatch, LogRecord
from coordinator_sim.messages.requests import GroupRequest
from coordinator_sim.replay import players as requests
from coordinator_sim.replay.course import Course
from coordinator_sim.replay.pace import Pace
from coordinator_sim.replay.plan import NEVER_MS, After, Ending, GroupPlan, Script, Step, StepKind
from coordinator_sim.replay.players import (
    DIRECT_JOIN_VERSION,
    HEARTBEAT_VERSION,
    JOIN_VERSION,
    LEAVE_VERSION,
    SYNC_VERSION,
    NamedIds,
    Player,
    player_of,
)
from coordinator_sim.replay.settings import Settings
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.history import LINE_SKEW_MS


class StoreFailures:
    """Accepts appends except where the trace says that storing an assignment failed."""

    def __init__(self) -> None:
        self.fails = False

    def append(self, batch: LogBatch) -> ErrorCode:
        """Return the error of a partition with too few replicas while failing, else NONE."""
        del batch
        return ErrorCode.NOT_ENOUGH_REPLICAS if self.fails else ErrorCode.NONE

    def takes_unacknowledged(self, batch: LogBatch) -> bool:
        """Return True: unacknowledged appends store no assignment."""
        del batch
        return True


class Muster:
    """The players that believe to be members, and the ids of all.

    No question looks at players that are long gone: a trace of years has many.
    """

    def __init__(self) -> None:
        self._members: dict[int, Player] = {}
        self._by_id: dict[str, Player] = {}
        self._by_instance: dict[str, Player] = {}

    def know(self, player: Player) -> None:
        """Remember the player's present member id."""
        self._by_id[player.member_id] = player

    def admit(self, player: Player) -> None:
        """Make it a member."""
        player.is_member = True
        self._members[player.actor.index] = player
        self.know(player)
        if player.actor.group_instance_id is not None:
            self._by_instance.setdefault(player.actor.group_instance_id, player)

    def dismiss(self, player: Player) -> None:
        """Make it a client without membership."""
        player.is_member = False
        self._members.pop(player.actor.index, None)

    def end(self, player: Player) -> None:
        """End its process."""
        player.is_over = True
        self.dismiss(player)

    def take_instance(self, newcomer: Player) -> Player | None:
        """Note who has an instance id now; return who had it before, None for nobody alive."""
        instance_id = newcomer.actor.group_instance_id
        if instance_id is None:
            return None
        former = self._by_instance.get(instance_id)
        self._by_instance[instance_id] = newcomer
        return None if former is None or former is newcomer or former.is_over else former

    def named(self, member_id: str | None) -> Player | None:
        """Return the player with a member id; None for an unknown id."""
        player = self._by_id.get(member_id or "")
        return player if player is not None and player.member_id == member_id else None

    def rejoining(self, now_ms: int) -> list[Player]:
        """Return the living members that wait for no answer; the silent ones are forgotten."""
        silent = [each for each in self._members.values() if each.is_silent(now_ms)]
        for player in silent:
            del self._members[player.actor.index]
        return [each for each in self._members.values() if not each.is_parked]


class JoinTimeouts:
    """Chooses the timeouts of JoinGroups: they fire where the trace, or a known value, says so."""

    def __init__(self, plan: GroupPlan, settings: Settings) -> None:
        self._plan = plan
        self._session_ms = settings.session_timeout_ms
        self._rebalance_ms = settings.rebalance_timeout_ms

    def session_ms(self, player: Player) -> int:
        """Return its session timeout; one that never fires spares a living member heartbeats."""
        known_ms, actor = self._session_ms, player.actor
        if known_ms is None or actor.ending not in {Ending.FAILED, Ending.ID_EXPIRED}:
            return actor.session_timeout_ms
        return max(1, actor.session_timeout_ms + known_ms - actor.nominal_session_timeout_ms)

    def rebalance_ms(self, position: int, running: int) -> int:
        """Return the timeout of a JoinGroup in a rebalance, which counts for the next one.

        A JoinGroup that begins a rebalance counts for that one too.

        Args:
            position: Index of the rebalance that the JoinGroup belongs to.
            running: Index of the rebalance that began last.
        """
        fitted_ms = self._fitted_ms(position, running)
        known_ms = self._rebalance_ms
        if known_ms is None or abs(known_ms - fitted_ms) <= LINE_SKEW_MS:
            return fitted_ms
        return known_ms

    def _fitted_ms(self, position: int, running: int) -> int:
        """Return the timeout that fires where the trace shows a timeout."""
        scripts = self._plan.scripts
        chosen_ms = NEVER_MS
        if 0 <= position < len(scripts):
            chosen_ms = scripts[position].sync_timeout_ms
        if position + 1 < len(scripts) and chosen_ms == NEVER_MS:
            chosen_ms = scripts[position + 1].rebalance_timeout_ms
        begins = 0 <= position < len(scripts) and position > running
        return min(chosen_ms, scripts[position].rebalance_timeout_ms) if begins else chosen_ms


_STEP: Final = 0
_REJOIN: Final = 1
_ALARM: Final = 2
_AFTER_JOIN: Final = 3
_FOLLOWER_SYNC: Final = 4
_LEADER_SYNC: Final = 5
_AFTER_SYNC: Final = 6
"""Order of actions within one millisecond, after the timers due in it."""
_STEP_RANKS: Final = {After.NOTHING: _STEP, After.JOIN: _AFTER_JOIN, After.SYNC: _AFTER_SYNC}
_LEFT_OUT: Final = frozenset({Event.HEARTBEAT, Event.ASSIGNED, Event.EMPTY_ASSIGNMENT})
"""Events left out of a replay's trace, because the source determines neither."""

_Action = Callable[[], None]


class Driver:
    """Drives one episode's plan through a coordinator of its own.

    Args:
        plan: The plan; it is not changed.
        profile: Kafka release to behave like.
        settings: Known settings; a known one that equals the plan's assumption changes nothing.
        until_ms: End of a run whose members react: they follow the trace as long as the core does
            what it tells, and then act as clients would. None for a run whose members follow the
            trace to its last line whatever the core does.
        heartbeats_always: Whether heartbeats that change nothing are sent too.
    """

    def __init__(
        self,
        plan: GroupPlan,
        profile: Profile,
        settings: Settings,
        *,
        until_ms: int | None = None,
        heartbeats_always: bool = False,
    ) -> None:
        self.events: list[TraceEvent] = []
        self.course = Course()
        self._plan = plan
        self._profile = profile
        self._timeouts_ms = JoinTimeouts(plan, settings)
        self._pace = Pace(plan, settings.heartbeat_interval_ms)
        self._group_id = plan.episode.group_id
        delay_ms = settings.group_initial_rebalance_delay_ms
        if delay_ms == plan.assumed_initial_delay_ms:
            delay_ms = None
        self._initial_delay_ms = delay_ms
        config = CoordinatorConfig(
            broker_id=plan.episode.lines[0].broker_id or 0,
            group_min_session_timeout_ms=1,
            group_max_session_timeout_ms=NEVER_MS,
            group_initial_rebalance_delay_ms=delay_ms or 0,
            group_max_size=settings.group_max_size or plan.group_max_size,
            # A log does not show the offsets that keep an empty group alive.
            offsets_retention_check_interval_ms=NEVER_MS,
            offsets_commit_timeout_ms=plan.commit_timeout_ms or NEVER_MS,
        )
        self._partition = partition_for(self._group_id, config.offsets_topic_num_partitions)
        self._ids = NamedIds()
        self._failures = StoreFailures()
        self._coordinator = GroupCoordinator(
            config, profile, ids=self._ids, partition_writer=self._failures
        )
        self._players = [
            player_of(actor, TABLE_ORDERS[profile.hash_order]) for actor in plan.actors
        ]
        self._muster = Muster()
        self._queue: list[tuple[int, int, int, _Action]] = []
        self._order = 0
        self._now_ms = plan.load_ms
        self._reacts = until_ms is not None
        self._parted = False
        self._horizon_ms = plan.episode.last_ms if until_ms is None else until_ms
        self._tokens: dict[int, Player] = {}
        self._token = 0
        self._position = -1
        self._script: Script | None = None
        self._unused = deque(plan.scripts)
        self._by_generation = {each.rebalance.old_generation: each for each in plan.scripts}
        self._holds = False
        self._heartbeats_always = heartbeats_always
        self._resting: list[tuple[int, int, _Action]] = []
        """Last heartbeat and interval of members that send none until the next rebalance."""

    def run(self) -> list[TraceEvent]:
        """Run the plan and return the coordinator's events, in order."""
        self._load()
        for step in self._plan.steps:
            self._at(step.at_ms, _STEP_RANKS[step.after], self._stepper(step))
        while True:
            due_ms = None if self._holds else self._coordinator.wake_up_ms()
            next_ms = self._queue[0][0] if self._queue else None
            if due_ms is not None and (next_ms is None or due_ms <= next_ms):
                if due_ms > self._horizon_ms:
                    return self.events
                self._now_ms = max(self._now_ms, due_ms)
                self._take(self._coordinator.expire(self._now_ms))
            elif next_ms is None or next_ms > self._horizon_ms:
                return self.events
            else:
                at_ms, _, _, action = heappop(self._queue)
                self._now_ms = max(self._now_ms, at_ms)
                action()

    # -- the beginning ---------------------------------------------------------------------

    def _load(self) -> None:
        """Load the group in the state it had before the first line."""
        plan, coordinator, now_ms = self._plan, self._coordinator, self._now_ms
        coordinator.begin_load(self._partition, 0, now_ms)
        if plan.load_generation is not None:
            coordinator.replay(self._partition, self._stored_group(plan.load_generation))
        self._take(coordinator.finish_load(self._partition, ErrorCode.NONE, now_ms))

    def _stored_group(self, generation: int) -> LogBatch:
        loaded = [self._players[index] for index in self._plan.loaded]
        for player in loaded:
            player.generation = generation
            self._muster.admit(player)
            self._schedule_heartbeats(player)
        timeouts_ms = [
            (self._timeouts_ms.session_ms(player), self._timeouts_ms.rebalance_ms(-1, -1))
            for player in loaded
        ]
        record = requests.stored_group(
            self._group_id, generation, self._now_ms, list(zip(loaded, timeouts_ms, strict=True))
        )
        return LogBatch(
            partition=self._partition,
            base_offset=0,
            timestamp_ms=self._now_ms,
            records=(LogRecord(*record, self._profile.group_value_version),),
        )

    # -- steps -----------------------------------------------------------------------------

    def _stepper(self, step: Step) -> _Action:
        def act() -> None:
            self._act(step)

        return act

    def _act(self, step: Step) -> None:
        players = [self._players[index] for index in step.actors]
        match step.kind:
            case StepKind.ASK_ID:
                self._join(players[0], JOIN_VERSION)
            case StepKind.ARRIVE | StepKind.REPLACE:
                player = players[0]
                player.has_one_protocol = step.changes_protocol
                self._take_instance(player)
                static = player.actor.group_instance_id is not None
                direct = not player.member_id and not static
                self._join(player, DIRECT_JOIN_VERSION if direct else JOIN_VERSION)
            case StepKind.REJOIN if not self._has_had(step.follows_ms):
                pass
            case StepKind.REJOIN:
                players[0].metadata_version += 1
                self._join(players[0], JOIN_VERSION)
            case StepKind.LEAVE:
                for player in players:
                    self._muster.end(player)
                self._send(players[0], requests.leave(players, self._group_id), LEAVE_VERSION)
            case StepKind.CLEAN_UP if not self._is_empty():
                pass
            case StepKind.UNLOAD | StepKind.CLEAN_UP:
                self._take(self._coordinator.unload(self._partition, None, self._now_ms))

    def _has_had(self, rebalance_ms: int | None) -> bool:
        """Whether the core has rebalanced at that time of the source, or since; None is always."""
        if rebalance_ms is None or self._follows:
            return True
        rounds = self.course.rounds
        return bool(rounds) and rounds[-1].start_ms >= rebalance_ms - LINE_SKEW_MS

    def _is_empty(self) -> bool:
        group = self._coordinator.group(self._group_id)
        return group is not None and group.state is GroupState.EMPTY

    def _take_instance(self, newcomer: Player) -> None:
        """End the process that had the instance id of a static member that comes."""
        former = self._muster.take_instance(newcomer)
        if former is None:
            return
        newcomer.takes_over = True
        if former.is_silent(self._now_ms):
            self.course.absent(former, self._now_ms, is_dead=False)
        self._muster.end(former)

    # -- requests --------------------------------------------------------------------------

    def _join(self, player: Player, version: int) -> None:
        """Send the player's JoinGroup; one without an id issues the id that the trace names."""
        member_id = player.member_id
        if not member_id:
            self._ids.next_uuid = player.uuid
            if version == DIRECT_JOIN_VERSION or player.actor.group_instance_id is not None:
                player.member_id = f"{player.prefix}-{player.uuid}"
                self._muster.know(player)
        player.is_parked = True
        is_rejoin, sent_ms = player.is_member, self._now_ms
        request = requests.join(player, self._group_id, member_id, self._timeouts(player))
        self._send(player, request, version)
        if is_rejoin:
            self.course.rejoin(player, sent_ms)

    def _timeouts(self, player: Player) -> tuple[int, int]:
        rebalance_ms = self._timeouts_ms.rebalance_ms(self._joining_position(), self._position)
        return self._timeouts_ms.session_ms(player), rebalance_ms

    def _joining_position(self) -> int:
        """Return the index of the rebalance that a JoinGroup sent now belongs to."""
        group = self._coordinator.group(self._group_id)
        prepares = group is not None and group.state is GroupState.PREPARING_REBALANCE
        return self._position if prepares else self._position + 1

    def _send(self, player: Player, request: GroupRequest, version: int) -> None:
        self._token += 1
        self._tokens[self._token] = player
        context = RequestContext(token=self._token, api_version=version, client_id=player.client_id)
        self._take(self._coordinator.handle(request, context, self._now_ms))

    # -- what the core tells ---------------------------------------------------------------

    def _take(self, result: CoordinatorResult) -> None:
        for event in result.events:
            self._note(event)
        for reply in result.replies:
            self._answered(reply)

    def _note(self, event: TraceEvent) -> None:
        if event.event not in _LEFT_OUT:
            self.events.append(event)
        if self._follows and self._parts(event):
            self._parted = True
        self.course.tell(event, self._now_ms)
        match event.event:
            case Event.PREPARE_REBALANCE:
                self._begin(event)
            case Event.JOIN_COMPLETE | Event.GROUP_EMPTY:
                self._holds = False
            case Event.MEMBER_FAILED | Event.MEMBER_KICKED:
                player = self._muster.named(event.member_id)
                if player is not None:
                    self.course.absent(player, self._now_ms, is_dead=True)
            case _:
                pass

    @property
    def _follows(self) -> bool:
        """Whether members follow the trace: the core has done so too, or members do not react."""
        parts_ms = self._plan.parts_ms
        parts = parts_ms is not None and self._now_ms >= parts_ms
        return not (self._reacts and (self._parted or parts))

    def _parts(self, event: TraceEvent) -> bool:
        """Whether the core deviates from the trace, in what it does or when."""
        if not self._reacts:
            return False
        told_ms: int | None = self._now_ms
        match event.event:
            case Event.PREPARE_REBALANCE:
                script = self._by_generation.get(event.generation)
                told_ms = None if script is None else script.start_ms
            case Event.JOIN_COMPLETE | Event.GROUP_EMPTY if self._script is not None:
                told_ms = self._script.done_ms
            case Event.MEMBER_FAILED | Event.MEMBER_KICKED:
                player = self._muster.named(event.member_id)
                told_ms = None if player is None else player.actor.ends_ms
            case _:
                pass
        return told_ms is None or abs(told_ms - self._now_ms) > LINE_SKEW_MS

    def _begin(self, event: TraceEvent) -> None:
        """Begin a rebalance of the group: members rejoin as the trace says."""
        self._position += 1
        for sent_ms, interval_ms, act in self._resting:
            intervals = 1 + max(0, self._now_ms - sent_ms - 1) // interval_ms
            self._at(sent_ms + intervals * interval_ms, _STEP, act)
        self._resting.clear()
        script = self._script = self._script_of(event)
        self.course.begin(self._now_ms, is_follow_up=script is not None and script.is_follow_up)
        initial = event.state_from is GroupState.EMPTY and self._profile.initial_rebalance_delay
        if initial and self._initial_delay_ms is None:
            self._holds = True
            self._at(self._done_ms(script, is_initial=True), _ALARM, self._release)
        returning = self._returning(script)
        done_ms = self._done_ms(script, is_initial=initial)
        for player in returning:
            is_last = player is returning[-1] and not (script is not None and script.kicks)
            after_ms = self._pace.gives_up_ms(player.actor.name, script, as_in_trace=self._follows)
            rejoin_ms = min(done_ms, self._now_ms + (after_ms or 0))
            if after_ms is not None:
                self.course.rejoin(player, rejoin_ms)
            self._at(done_ms if is_last else rejoin_ms, _REJOIN, self._rejoiner(player))

    def _script_of(self, event: TraceEvent) -> Script | None:
        """Return the trace's script of this rebalance; None for one the trace does not have."""
        if self._follows:
            return self._by_generation.get(event.generation)
        while self._unused and self._unused[0].start_ms < self._now_ms - LINE_SKEW_MS:
            self._unused.popleft()
        if self._unused and self._unused[0].start_ms <= self._now_ms + LINE_SKEW_MS:
            return self._unused.popleft()
        return None

    def _done_ms(self, script: Script | None, *, is_initial: bool) -> int:
        """Return when the join phase that begins now ends, as far as members decide."""
        is_like = script is not None and (self._follows or script.is_initial == is_initial)
        if script is None or not is_like or (self._reacts and script.done_ms is None):
            return self._now_ms + self._pace.join_ms(is_initial=is_initial)
        if script.done_ms is None:
            return NEVER_MS * 1_000_000
        rejoin_ms = self._pace.rejoin_ms(script) if self._reacts else None
        if self._follows and rejoin_ms in {None, script.done_ms - script.start_ms}:
            return script.done_ms
        return self._now_ms + (rejoin_ms or 0)

    def _returning(self, script: Script | None) -> list[Player]:
        if script is not None and self._follows:
            return [self._players[index] for index in script.rejoiners]
        planned = set(script.rejoiners) if script is not None else set()
        return sorted(
            self._muster.rejoining(self._now_ms),
            key=lambda player: (player.actor.index in planned, player.actor.index),
        )

    def _rejoiner(self, player: Player) -> _Action:
        def rejoin() -> None:
            if player.is_member and not player.is_parked and not player.is_over:
                self._join(player, JOIN_VERSION)

        return rejoin

    def _release(self) -> None:
        """End the unknown initial delay now."""
        self._holds = False
        self._take(self._coordinator.expire(self._now_ms))

    def _answered(self, reply: Reply) -> None:
        player = self._tokens.pop(reply.token)
        response = reply.response
        if isinstance(response, JoinGroupResponse):
            self._joined(player, response)
        elif isinstance(response, HeartbeatResponse):
            lost = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION}
            if response.error_code in lost and not self._follows:
                self._come_back(player)

    def _joined(self, player: Player, response: JoinGroupResponse) -> None:
        player.is_parked = False
        match response.error_code:
            case ErrorCode.NONE:
                player.member_id = response.member_id
                player.generation = response.generation_id
                self._muster.admit(player)
                self.course.seat(response)
                self._schedule_heartbeats(player)
                self._schedule_sync(player, response)
                if player.takes_over:
                    # QUIRK: the first session of the new id runs with the old timeout.
                    player.takes_over = False
                    self._at(self._now_ms + 1, _STEP, self._heartbeater(player))
            case ErrorCode.MEMBER_ID_REQUIRED:
                player.member_id = response.member_id
                self._muster.know(player)
                if player.rejoin_count:
                    self._join(player, JOIN_VERSION)
            case ErrorCode.UNKNOWN_MEMBER_ID if not self._follows:
                self._come_back(player)
            case _:
                self._muster.dismiss(player)

    def _come_back(self, player: Player) -> None:
        """Have a live client that lost its membership join as a new member, as real clients do."""
        self._muster.dismiss(player)
        if player.is_over or player.is_silent(self._now_ms) or player.is_parked:
            return
        player.rejoin_count += 1
        player.member_id = ""
        player.uuid = f"{player.rejoin_count:08x}-0000-4000-8000-{player.actor.index:012d}"
        self._join(player, JOIN_VERSION)

    # -- sync and heartbeats ---------------------------------------------------------------

    def _schedule_sync(self, player: Player, response: JoinGroupResponse) -> None:
        sync_ms = self._sync_ms(player)
        if sync_ms is None:
            return
        script = self._script
        generation = response.generation_id
        is_leader = response.leader == response.member_id
        member_ids = tuple(member.member_id for member in response.members)

        def act() -> None:
            if player.generation != generation or player.is_over:
                return
            if is_leader and script is not None:
                self._failures.fails = script.fails_to_store and not script.waits_for_replicas
                self._stall(stalls=script.waits_for_replicas)
            self._send(player, requests.sync(player, self._group_id, member_ids), SYNC_VERSION)
            self._failures.fails = False

        if is_leader:
            self._at(max(sync_ms, self._now_ms), _LEADER_SYNC, act)
        else:
            self._at(self._now_ms, _FOLLOWER_SYNC, act)

    def _stall(self, *, stalls: bool) -> None:
        """Set whether replicas stall; once they follow again, waiting appends are stored."""
        coordinator, partition = self._coordinator, self._partition
        coordinator.hold_high_watermark(hold=stalls, partition=partition)
        if not stalls:
            end = coordinator.end_offset(partition)
            self._take(coordinator.advance_high_watermark(partition, end, self._now_ms))

    def _sync_ms(self, player: Player) -> int | None:
        """Return when this member syncs in the present generation; None if it never does."""
        script = self._script
        is_cut_off = script is not None and script.is_cut_off and self._reacts
        if script is not None and self._follows and not is_cut_off:
            return script.sync_ms if player.actor.index in script.synced else None
        never_synced = script is not None and script.sync_ms is None and script.rebalance.followed
        if never_synced or player.is_silent(self._now_ms + LINE_SKEW_MS):
            return None
        return self._now_ms + self._pace.sync_ms(script)

    def _schedule_heartbeats(self, player: Player) -> None:
        """Schedule heartbeats late: every two thirds of the session timeout, and the last one.

        While the group is idle, others than the last one would merely keep the session alive: they
        are left out until a rebalance begins, and the session is prolonged beyond the last one.
        """
        timeout_ms = self._timeouts_ms.session_ms(player)
        generation = player.generation
        interval_ms = max(1, timeout_ms * 2 // 3)
        silent_ms = player.actor.silent_ms

        def act() -> None:
            current = player.generation == generation and player.is_member
            if not current or player.is_over or player.is_silent(self._now_ms):
                return
            self._heartbeater(player)()
            if silent_ms is not None and self._now_ms + interval_ms > silent_ms:
                return
            if silent_ms is not None and self._is_idle(player.member_id, generation):
                last = SkippedBeat(self._group_id, player.member_id, silent_ms)
                self._coordinator.skip_heartbeats((last,))
                self._resting.append((self._now_ms, interval_ms, act))
            else:
                self._at(self._now_ms + interval_ms, _STEP, act)

        self._at(self._now_ms + interval_ms, _STEP, act)
        if silent_ms is not None and silent_ms > self._now_ms:
            self._at(silent_ms, _STEP, act)

    def _is_idle(self, member_id: str, generation: int) -> bool:
        """Whether a member's heartbeats change nothing but its session until a rebalance begins."""
        group = self._coordinator.group(self._group_id)
        if self._heartbeats_always or group is None or group.generation_id != generation:
            return False
        sessions = self._coordinator.idle_sessions()
        return sessions is not None and (self._group_id, member_id) in sessions

    def _heartbeater(self, player: Player) -> _Action:
        def beat() -> None:
            if player.is_member and not player.is_parked and not player.is_over:
                self._send(player, requests.heartbeat(player, self._group_id), HEARTBEAT_VERSION)

        return beat

    def _at(self, at_ms: int, rank: int, action: _Action) -> None:
        if at_ms <= self._horizon_ms:
            self._order += 1
            heappush(self._queue, (at_ms, rank, self._order, action))
