"""Chooses timeouts that no line gives: they fire where a line says so, and never before.

A failing member sends its last heartbeat one session timeout before the line; a rebalance that
removes members has the join timeout that ends at its last line; all other timeouts never end.
"""

from typing import Final

from coordinator_sim.replay.names import members_of
from coordinator_sim.replay.plan import Actor, Ending, GroupPlan, Step, StepKind
from coordinator_sim.trace.history import LINE_SKEW_MS

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
    plan.session_timeout_ms = max(told.values(), default=None)
    latest = min(bounds.values(), default=None)
    for index, bound_ms in bounds.items():
        actor = plan.actors[index]
        timeout_ms = told.get(actor.name or "") or next(iter(told.values()), None)
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
