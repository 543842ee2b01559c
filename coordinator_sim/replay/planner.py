"""Makes a plan from an episode's lines: the members, as far as the lines determine them.

A broker log names few members. The planner keeps a roster while it reads: named members act at
their lines; unnamed members are added until the count of a completed join phase is met; where no
line counts, there are as few of them as the lines allow.

Chooses timeouts that no line gives: they fire where a line says so, and never before.

A failing member sends its last heartbeat one session timeout before the line; a rebalance that
removes members has the join timeout that ends at its last line; all other timeouts never end.
"""

from itertools import islice
from typing import Final

from msgspec.structs import replace

from coordinator_sim.kafka.states import GroupState
from coordinator_sim.replay.assumptions import say_what_is_assumed
from coordinator_sim.replay.names import instance_of, members_of, old_member_of
from coordinator_sim.replay.plan import (
    NEVER_MS,
    Actor,
    After,
    Ending,
    GroupPlan,
    Script,
    Step,
    StepKind,
)
from coordinator_sim.replay.roster import Roster
from coordinator_sim.trace.events import Event, RebalanceReason, TraceEvent
from coordinator_sim.trace.history import LINE_SKEW_MS
from coordinator_sim.trace.rebalances import Episode, Rebalance, follows_up

USUAL_INITIAL_DELAYS_MS: Final = (3_000, 0)
"""Kafka's default, and the value in the server.properties it ships."""
USUAL_SESSION_TIMEOUTS_MS: Final = (45_000, 30_000, 10_000, 6_000)
"""Defaults: Java consumer since 3.0, other clients, Java consumer before; then the minimum."""


def fit_timeouts(plan: GroupPlan) -> None:
    """Choose session, join and sync timeouts for a plan whose members are known."""
    _fit_sessions(plan)
    for actor in plan.actors:
        if actor.ending is Ending.ID_EXPIRED and actor.asked_ms is not None:
            waited_ms = max(1, (actor.ends_ms or 0) - actor.asked_ms)
            actor.session_timeout_ms = waited_ms
            actor.nominal_session_timeout_ms = _nearby(waited_ms, USUAL_SESSION_TIMEOUTS_MS)
    plan.assumed_initial_delay_ms = _initial_delay_ms(plan)
    for actor in plan.actors:
        if _begins_unseen(plan, actor):
            _let_leave(plan, actor)
    for position, kicked in sorted(_kicked(plan).items()):
        script = plan.scripts[position]
        length_ms = (script.done_ms or 0) - script.start_ms
        if length_ms > _sync_length_ms(plan, position - 1):
            script.rebalance_timeout_ms = length_ms
        else:
            # The same timeout bounds the longer sync phase before: so they left instead.
            for actor in kicked:
                _let_leave(plan, actor)


def _begins_unseen(plan: GroupPlan, actor: Actor) -> bool:
    """Whether it is removed in a rebalance whose beginning, and so its length, no line tells."""
    position = actor.ended
    if actor.ending is not Ending.KICKED or position is None or position >= len(plan.scripts):
        return False
    script = plan.scripts[position]
    return script.rebalance.start is None and (actor.ends_ms or 0) <= script.start_ms


def _let_leave(plan: GroupPlan, actor: Actor) -> None:
    """Replace a member's removal by a LeaveGroup at the same line."""
    actor.ending = Ending.LEFT
    step = Step(at_ms=actor.ends_ms or 0, kind=StepKind.LEAVE, actors=(actor.index,))
    plan.steps.append(step)


def _fit_sessions(plan: GroupPlan) -> None:
    """Set every failing member's last heartbeat to one session timeout before its line."""
    bounds = {
        actor.index: actor.ends_ms - armed_ms
        for actor in plan.actors
        if actor.ends_ms is not None and (armed_ms := _last_armed_ms(plan, actor)) is not None
    }
    told = _told(plan)
    only = next(iter(told.values())) if len(set(told.values())) == 1 else None
    plan.session_timeout_ms = max(told.values(), default=None)
    latest = min(bounds.values(), default=None)
    for index, bound_ms in bounds.items():
        actor = plan.actors[index]
        timeout_ms = told.get(actor.name or "") or only
        if timeout_ms is None:
            timeout_ms = _usual(latest)
            plan.assumed_session_timeout_ms = timeout_ms
        actor.session_timeout_ms = max(1, min(timeout_ms, bound_ms))
        actor.nominal_session_timeout_ms = timeout_ms
        actor.silent_ms = (actor.ends_ms or 0) - actor.session_timeout_ms


def _told(plan: GroupPlan) -> dict[str, int]:
    """Return the session timeouts that lines tell, by member id."""
    return {
        name: line.session_timeout_ms
        for line in plan.episode.lines
        if line.session_timeout_ms
        for name in members_of(line)
        if name is not None
    }


def _usual(bound_ms: int | None) -> int:
    """Return the longest usual session timeout within the bound, or else the bound itself."""
    if bound_ms is None:
        return USUAL_SESSION_TIMEOUTS_MS[0]
    allowed_ms = bound_ms + LINE_SKEW_MS
    return next((each for each in USUAL_SESSION_TIMEOUTS_MS if each <= allowed_ms), bound_ms)


def _nearby(duration_ms: int, usual: tuple[int, ...]) -> int:
    """Return the usual value within log skew of a measured duration, or else the duration."""
    return next((each for each in usual if abs(duration_ms - each) <= LINE_SKEW_MS), duration_ms)


def _initial_delay_ms(plan: GroupPlan) -> int | None:
    """Return the initial delay: the shortest join phase of a group that was Empty."""
    lengths = [
        script.done_ms - script.start_ms
        for script in plan.scripts
        if script.is_initial and script.done_ms is not None
    ]
    return _nearby(min(lengths), USUAL_INITIAL_DELAYS_MS) if lengths else None


def _kicked(plan: GroupPlan) -> dict[int, list[Actor]]:
    """Return the members that a join timer must have removed, by index of the rebalance."""
    kicked: dict[int, list[Actor]] = {}
    for actor in plan.actors:
        position = actor.ended
        if actor.ending is not Ending.KICKED or position is None or position >= len(plan.scripts):
            continue
        script = plan.scripts[position]
        if script.done_ms is not None and (actor.ends_ms or 0) > script.start_ms:
            kicked.setdefault(position, []).append(actor)
    return kicked


def _sync_length_ms(plan: GroupPlan, position: int) -> int:
    """Return how long the leader of that rebalance took to assign; 0 for none."""
    if position < 0:
        return 0
    script = plan.scripts[position]
    if script.sync_ms is None or script.done_ms is None:
        return 0
    return script.sync_ms - script.done_ms


def _last_armed_ms(plan: GroupPlan, actor: Actor) -> int | None:
    """Return when a failing member's session timer was last armed, except by a heartbeat.

    None for a member that does not fail, and for one that fails before its first generation: it
    has no session yet (GroupMetadataManager.addMemberThenRebalanceOrCompleteJoin).
    """
    if actor.ending is not Ending.FAILED or actor.ends_ms is None:
        return None
    armed_ms = plan.load_ms if actor.is_loaded else None
    for script in plan.scripts[max(actor.joined or 0, 0) : actor.ended]:
        for at_ms in (script.done_ms, script.sync_ms if actor.index in script.synced else None):
            if at_ms is not None and at_ms <= actor.ends_ms:
                armed_ms = at_ms
    return armed_ms


def cast(plan: GroupPlan) -> None:
    """Set the members of every script, once all members are known."""
    joining: dict[int, list[Actor]] = {}
    ending: dict[int, list[Actor]] = {}
    for actor in plan.actors:
        if actor.joined is not None:
            joining.setdefault(actor.joined, []).append(actor)
            ending.setdefault(-1 if actor.ended is None else actor.ended, []).append(actor)
    rejoined: dict[int, set[int]] = {}
    for step in plan.steps:
        if step.kind is StepKind.REJOIN:
            rejoined.setdefault(step.at_ms, set()).update(step.actors)
    first = joining.get(-1, [])
    loaded = [actor for actor in first if actor.is_loaded]
    plan.loaded = tuple(actor.index for actor in sorted(loaded, key=_leads_first(plan)))
    present = {actor.index: actor for actor in first}
    for position, script in enumerate(plan.scripts):
        script.is_initial = not present and script.rebalance.start is not None
        for actor in ending.get(position, ()):
            present.pop(actor.index, None)
        triggers = rejoined.get(script.start_ms, set())
        script.rejoiners = tuple(index for index in present if index not in triggers)
        for actor in joining.get(position, ()):
            if actor.ended is None or actor.ended > position:
                present[actor.index] = actor
        script.members = tuple(present)
        _assign_syncs(plan, position, list(present.values()))


def _assign_syncs(plan: GroupPlan, position: int, members: list[Actor]) -> None:
    """Set when the assignment comes and which members send SyncGroup."""
    script = plan.scripts[position]
    if script.fails_to_store:
        _wait_for_replicas(plan, script, plan.scripts[position + 1].start_ms)
        script.synced = script.members
    elif script.sync_ms is not None:
        script.synced = tuple(
            actor.index for actor in members if _lives_until(actor, script.sync_ms)
        )


def _wait_for_replicas(plan: GroupPlan, script: Script, failed_ms: int) -> None:
    """Have an assignment wait for replicas from the line that tells it until its failure.

    Without such a line, or if it fails at once, the assignment comes at the failure.
    """
    if script.sync_ms is None or failed_ms - script.sync_ms <= LINE_SKEW_MS:
        script.sync_ms = failed_ms
        return
    script.waits_for_replicas = True
    plan.commit_timeout_ms = max(plan.commit_timeout_ms or 0, failed_ms - script.sync_ms)


def _lives_until(actor: Actor, sync_ms: int) -> bool:
    return actor.ends_ms is None or actor.ends_ms > sync_ms


def _leads_first(plan: GroupPlan) -> "_LeadsFirst":
    first = plan.scripts[0].rebalance
    names: list[str | None] = []
    if first.reason is RebalanceReason.LEADER_REJOIN and first.start is not None:
        names.extend(members_of(first.start))
    names.append(first.leader_id)
    follower = None
    if first.reason is RebalanceReason.METADATA_CHANGED and first.start is not None:
        follower = members_of(first.start)[0]
    return _LeadsFirst([name for name in names if name], follower)


class _LeadsFirst:
    """Sort key that puts the leader of the loaded generation first, if lines identify it."""

    def __init__(self, leaders: list[str], follower: str | None) -> None:
        self._leaders = leaders
        self._follower = follower

    def __call__(self, actor: Actor) -> int:
        """Return 0 for the leader, 1 for members that may have led, 2 for one that did not."""
        if actor.name in self._leaders:
            return 0
        return 2 if actor.name is not None and actor.name == self._follower else 1


_LOAD_LEAD_MS: Final = 120_000
"""Time from a group's load to the first line: longer than a usual session timeout."""
_ENDINGS: Final = {
    Event.MEMBER_LEFT: Ending.LEFT,
    Event.MEMBER_FAILED: Ending.FAILED,
    Event.MEMBER_KICKED: Ending.KICKED,
}
_REJOINS: Final = frozenset(
    {
        RebalanceReason.LEADER_REJOIN,
        RebalanceReason.METADATA_CHANGED,
        RebalanceReason.MEMBER_REJOIN,
    }
)
_PHASES: Final = {
    Event.JOIN_COMPLETE: After.JOIN,
    Event.GROUP_EMPTY: After.JOIN,
    Event.SYNC_LEADER: After.SYNC,
}
_UNLOADS: Final = frozenset({Event.COORD_RESIGNED, Event.UNLOAD_DONE, Event.GROUP_UNLOADED})
_STEP_ORDER: Final = {
    StepKind.ASK_ID: 0,
    StepKind.LEAVE: 1,
    StepKind.REPLACE: 1,
    StepKind.REJOIN: 1,
    StepKind.ARRIVE: 2,
    StepKind.UNLOAD: 3,
    StepKind.CLEAN_UP: 3,
}
"""Order within one millisecond: causes of a rebalance first, the JoinGroup that ends it last."""


def plan_episode(episode: Episode) -> GroupPlan:
    """Return the plan of one episode, with steps and scripts in time order.

    An episode without a numbered rebalance has no scripts: it cannot be compared.
    """
    # A generation 0 that lost its members looks like a new group, which serves as well.
    plan = GroupPlan(
        episode=episode,
        load_generation=episode.generation or None,
        load_ms=_load_ms(episode),
    )
    if episode.rebalances and episode.generation is not None:
        _Planner(plan).run()
        cast(plan)
        fit_timeouts(plan)
        plan.steps.sort(key=lambda step: (step.at_ms, step.after, _STEP_ORDER[step.kind]))
        say_what_is_assumed(plan)
    return plan


def _load_ms(episode: Episode) -> int:
    """Return when the group is loaded: at its load lines, or long before the first line."""
    loads = [line for line in episode.lines if line.event is Event.GROUP_LOADED]
    return loads[-1].ts_us // 1000 if loads else episode.first_ms - _LOAD_LEAD_MS


class _Planner:
    """Reads one episode, line by line."""

    def __init__(self, plan: GroupPlan) -> None:
        self._plan = plan
        self._starts = {id(each.first_line): each for each in plan.episode.rebalances}
        lines = plan.episode.lines
        self._roster = Roster(plan, _mentions(lines), _never_members(lines))
        self._index = 0
        self._follows_ms: int | None = None
        self._after = (0, After.NOTHING)

    def run(self) -> None:
        """Fill the plan."""
        for index, line in enumerate(self._plan.episode.lines):
            self._index = index
            known = len(self._plan.steps)
            rebalance = self._starts.get(id(line))
            if rebalance is not None:
                self._begin(rebalance)
            self._note_state(line)
            if line.event is Event.GROUP_LOADED:
                self._load(line)
            self._read(line, line.ts_us // 1000)
            self._put_in_line_order(line, known)

    def _put_in_line_order(self, line: TraceEvent, known: int) -> None:
        """Mark which steps of this line come after other lines of their millisecond."""
        ends = _PHASES.get(line.event)
        if ends is not None:
            self._after = (line.ts_us // 1000, ends)
            return
        at_ms, after = self._after
        if line.ts_us // 1000 != at_ms:
            return
        steps = self._plan.steps
        steps[known:] = [
            replace(step, after=after) if step.at_ms == at_ms else step for step in steps[known:]
        ]

    def _note_state(self, line: TraceEvent) -> None:
        """Use a line that says that the group is Empty: then there were no members before."""
        if line.attrs.get("in_state") == GroupState.EMPTY.value and self._roster.position < 0:
            self._roster.counted()

    def _read(self, line: TraceEvent, at_ms: int) -> None:
        roster = self._roster
        match line.event:
            case Event.MEMBER_ID_ASSIGNED:
                roster.ask(members_of(line), at_ms)
            case Event.PENDING_EXPIRED:
                roster.expire_ids(members_of(line), at_ms)
            case Event.MEMBER_ADDED:
                roster.admit(members_of(line), at_ms, instance_of(line))
            case Event.MEMBER_LEFT | Event.MEMBER_FAILED | Event.MEMBER_KICKED:
                is_pending = line.attrs.get("pending") == "1"
                roster.end(members_of(line), at_ms, _ENDINGS[line.event], is_pending=is_pending)
            case Event.STATIC_REPLACED:
                self._replace(line, at_ms, rebalances=roster.is_open)
            case Event.JOIN_COMPLETE | Event.SYNC_LEADER if roster.is_open:
                self._complete(at_ms)
            case Event.GROUP_EMPTY if roster.is_open:
                self._empty(at_ms)
            case event if event in _UNLOADS:
                self._plan.steps.append(Step(at_ms=at_ms, kind=StepKind.UNLOAD))
            case Event.GROUP_DEAD:
                self._plan.steps.append(Step(at_ms=at_ms, kind=StepKind.CLEAN_UP))
            case _:
                pass

    def _load(self, line: TraceEvent) -> None:
        """Use the member count of a line about the load of the group.

        Names do not help: a Scala broker logs the members of every record that it reads, those of
        earlier generations too (GroupMetadata.loadGroup).
        """
        roster = self._roster
        if line.members is not None and roster.may_add:
            for _ in range(line.members - len(roster.present)):
                roster.add()
            roster.counted()

    # -- a rebalance begins ----------------------------------------------------------------

    def _begin(self, rebalance: Rebalance) -> None:
        roster = self._roster
        at_ms = rebalance.first_line.ts_us // 1000
        roster.is_open = False
        self._roster.rejoined.clear()
        last = self._plan.scripts[-1] if self._plan.scripts else None
        is_follow_up = last is not None and follows_up(rebalance, last.rebalance)
        self._follows_ms = last.start_ms if last is not None and is_follow_up else None
        self._trigger(rebalance, at_ms)
        self._plan.scripts.append(
            Script(rebalance=rebalance, start_ms=at_ms, is_follow_up=is_follow_up)
        )
        roster.position += 1
        roster.is_open = True

    def _trigger(self, rebalance: Rebalance, at_ms: int) -> None:
        """Add the cause that a rebalance's reason names, unless an earlier line added it."""
        roster = self._roster
        line = rebalance.first_line
        names = members_of(line) if rebalance.start is not None else (None,)
        match rebalance.reason:
            case RebalanceReason.MEMBER_JOINED if names[0] is not None or line.confidence == 1:
                roster.admit(names, at_ms, instance_of(line))
            case RebalanceReason.MEMBER_LEFT:
                roster.end(names, at_ms, Ending.LEFT)
            case RebalanceReason.MEMBER_FAILED:
                roster.end(names, at_ms, Ending.FAILED)
            case RebalanceReason.SYNC_TIMEOUT:
                self._evict(names, at_ms)
            case RebalanceReason.STATIC_PROTOCOL_CHANGE:
                self._replace(line, at_ms, rebalances=True)
                roster.change_protocol(at_ms)
            case reason if reason in _REJOINS:
                self._rejoin(names[0], at_ms)
            case _:
                self._trigger_of_group(rebalance, at_ms)

    def _trigger_of_group(self, rebalance: Rebalance, at_ms: int) -> None:
        """Add a cause that is no member's doing, or that no line explains."""
        roster = self._roster
        match rebalance.reason:
            case RebalanceReason.STORE_ERROR if self._plan.scripts:
                self._plan.scripts[-1].fails_to_store = True
            case RebalanceReason.OVER_CAPACITY if roster.position < 0:
                self._overflow(at_ms)
            case _ if rebalance.start is None and rebalance.empty is rebalance.first_line:
                self._leave_all(at_ms)
            case _ if roster.changed_near(at_ms, since_ms=self._told_until_ms(rebalance)):
                pass
            case _ if rebalance.empty is not None:
                self._go_away(rebalance.empty.ts_us // 1000, at_ms)
            case _:
                self._rejoin(None, at_ms)

    def _told_until_ms(self, rebalance: Rebalance) -> int:
        """Return up to when changes are explained by the rebalance before one without a start."""
        last = self._plan.scripts[-1] if self._plan.scripts else None
        if rebalance.start is not None or last is None or last.done_ms is None:
            return -NEVER_MS
        return last.done_ms

    def _overflow(self, at_ms: int) -> None:
        """Load the group with one member more than `group.max.size`."""
        self._plan.is_over_capacity = True
        self._plan.load_ms = at_ms
        for _ in range(2 - len(self._roster.present)):
            if self._roster.may_add:
                self._roster.add()

    def _go_away(self, empty_ms: int, at_ms: int) -> None:
        """Have a member leave to begin a group's last rebalance; the others never rejoined.

        Without a reason a log tells no more: a rejoining client would be a member afterwards.
        """
        roster = self._roster
        if empty_ms - at_ms <= LINE_SKEW_MS:
            self._leave_all(at_ms)
            return
        for _ in range(2 - len(roster.present)):
            if roster.may_add:
                roster.add()
        if roster.present:
            roster.go(roster.present[0], at_ms, Ending.LEFT)

    def _leave_all(self, at_ms: int) -> None:
        """Have all present members leave when the group becomes empty."""
        roster = self._roster
        if not roster.present and roster.may_add:
            roster.add()
        for actor in list(roster.present):
            roster.go(actor, at_ms, Ending.LEFT)

    def _evict(self, names: tuple[str | None, ...], at_ms: int) -> None:
        """Remove members that did not sync: the sync timer fires at this line."""
        self._roster.end(names, at_ms, Ending.KICKED)
        last = self._plan.scripts[-1] if self._plan.scripts else None
        if last is not None and last.done_ms is not None:
            last.sync_timeout_ms = at_ms - last.done_ms

    def _rejoin(self, name: str | None, at_ms: int) -> None:
        """Have a member rejoin unprompted; without any member, a new one joins."""
        roster = self._roster
        actor = roster.member(name) or roster.bind(name) if name is not None else None
        if actor is None and roster.present:
            actor = roster.present[0]
        if actor is None and roster.may_add:
            actor = roster.add()
        if actor is None:
            roster.admit((None,), at_ms)
            return
        roster.rejoined.add(actor.index)
        self._plan.steps.append(
            Step(
                at_ms=at_ms,
                kind=StepKind.REJOIN,
                actors=(actor.index,),
                follows_ms=self._follows_ms,
            )
        )

    def _replace(self, line: TraceEvent, at_ms: int, *, rebalances: bool) -> None:
        """Have a static member rejoin under a new id."""
        roster = self._roster
        instance_id = instance_of(line)
        new_name = members_of(line)[0] if line.event is Event.STATIC_REPLACED else None
        old_name = old_member_of(line)
        if line.event is not Event.STATIC_REPLACED and roster.static_member(instance_id):
            return
        old = roster.static_member(instance_id)
        if old is None and old_name is not None:
            old = roster.member(old_name) or roster.bind(old_name)
        if old is None and roster.may_add:
            old = roster.add(old_name)
        if old is None or instance_id is None or not roster.may_be_static(old, instance_id):
            roster.admit((new_name,), at_ms, instance_id)
            return
        old.group_instance_id = instance_id
        roster.replace_static(old, new_name, at_ms, rebalances=rebalances)

    # -- a join phase ends -----------------------------------------------------------------

    def _complete(self, at_ms: int) -> None:
        """Match the leader and the count of the completed join phase."""
        roster = self._roster
        script = self._plan.scripts[-1]
        script.done_ms = at_ms
        script.sync_ms = script.rebalance.sync_ms
        count = script.rebalance.members
        surplus = 1 if self._plan.is_over_capacity and roster.position == 0 else 0
        self._seat_leader(script)
        self._dethrone(script, at_ms)
        last_ms = script.start_ms if self._has_rejoiner() else at_ms
        missing = None if count is None else max(0, count - len(roster.present))
        roster.admit_waiting(script.start_ms, last_ms, missing)
        if count is not None:
            self._fill(count + surplus - len(roster.present), script)
            roster.kick(len(roster.present) - count, at_ms)
            roster.counted()
        else:
            # No line counts, but a join phase without members would have left the group Empty.
            self._fill(1 - len(roster.present), script)
            self._explain_waiting(script, at_ms)
            roster.kick(surplus, at_ms)
        roster.is_open = False

    def _seat_leader(self, script: Script) -> None:
        leader = script.rebalance.leader_id
        roster = self._roster
        if leader is None or roster.member(leader) is not None:
            return
        if roster.is_candidate(leader):
            roster.admit((leader,), script.start_ms)
        elif roster.has_unnamed or roster.may_add_before:
            roster.bind(leader)
        elif len(roster.present) < (script.rebalance.members or NEVER_MS):
            begins_unseen = script.rebalance.start is None and self._may_be_initial()
            if begins_unseen:
                roster.admit_leader(leader, script.start_ms)
            else:
                roster.admit((leader,), script.start_ms)
        else:
            self._plan.unexplained.append(f"{leader} leads, but is no member by the counts")

    def _dethrone(self, script: Script, at_ms: int) -> None:
        """End the former leader where another one leads: a leader that rejoins keeps leading.

        Source: ClassicGroup.maybeElectNewJoinedLeader.
        """
        roster = self._roster
        leader = roster.member(script.rebalance.leader_id or "")
        if leader is None or roster.last_gone == roster.position:
            return
        former = self._former_leader(script, leader)
        if former is None:
            return
        if at_ms - script.start_ms <= LINE_SKEW_MS:
            roster.go(former, script.start_ms, Ending.LEFT)
        else:
            roster.go(former, at_ms, Ending.KICKED)

    def _former_leader(self, script: Script, leader: Actor) -> Actor | None:
        """Return the former leader that must be gone by the counts; None when none is needed."""
        roster = self._roster
        count = script.rebalance.members or NEVER_MS
        if roster.position > 0:
            name = self._plan.scripts[-2].rebalance.leader_id
            former = roster.member(name) if name is not None else None
            return former if former is not leader and len(roster.present) > count else None
        is_new = leader.joined == roster.position and self._plan.load_generation is not None
        newcomers = sum(actor.joined == roster.position for actor in roster.present)
        unseen = is_new and roster.may_add_before and newcomers < count < NEVER_MS
        return roster.add() if unseen else None

    def _fill(self, count: int, script: Script) -> None:
        """Add unnamed members, to the loaded generation while that is possible."""
        roster = self._roster
        if count <= 0:
            return
        if roster.may_add_before:
            for _ in range(count):
                roster.add()
            return
        waits = not self._has_rejoiner() and not self._may_be_initial()
        roster.arrive_unnamed(
            count, script.start_ms, script.done_ms or script.start_ms, waits=waits
        )

    def _explain_waiting(self, script: Script, at_ms: int) -> None:
        """Add an earlier member to wait for, when an uncounted join phase took long."""
        roster = self._roster
        took_ms = at_ms - script.start_ms
        if took_ms <= LINE_SKEW_MS or self._may_be_initial() or self._has_rejoiner():
            return
        if roster.changed_near(at_ms):
            return
        if roster.may_add_before:
            roster.add()

    def _has_rejoiner(self) -> bool:
        """Whether a member of the old generation can be the last to rejoin."""
        position = self._roster.position
        return any(
            actor.joined is not None
            and actor.joined < position
            and actor.index not in self._roster.rejoined
            for actor in self._roster.present
        )

    def _may_be_initial(self) -> bool:
        """Whether the group may have had no members before the running rebalance."""
        roster = self._roster
        return roster.last_gone != roster.position and not any(
            actor.joined is not None and actor.joined < roster.position for actor in roster.present
        )

    def _empty(self, at_ms: int) -> None:
        """End all members; the lines just after may say how the last ones left."""
        roster = self._roster
        script = self._plan.scripts[-1]
        script.done_ms = at_ms
        for later in islice(self._plan.episode.lines, self._index + 1, None):
            if later.ts_us // 1000 - at_ms > LINE_SKEW_MS:
                break
            if later.event in _ENDINGS:
                roster.end(members_of(later), at_ms, _ENDINGS[later.event])
        roster.kick(len(roster.present), at_ms)
        roster.counted()
        roster.is_open = False


def _mentions(lines: list[TraceEvent]) -> dict[str, list[int]]:
    """Return the times at which each member id is named."""
    mentions: dict[str, list[int]] = {}
    for line in lines:
        for name in (*members_of(line), line.leader_id):
            if name:
                mentions.setdefault(name, []).append(line.ts_us // 1000)
    return mentions


def _never_members(lines: list[TraceEvent]) -> frozenset[str]:
    """Return ids that expired, or left, before they were used."""
    return frozenset(
        name
        for line in lines
        if line.event is Event.PENDING_EXPIRED or line.attrs.get("pending") == "1"
        for name in members_of(line)
        if name is not None
    )
