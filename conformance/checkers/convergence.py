"""I7: that a group comes to rest, with everyone in it, once nothing disturbs it."""

from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.rebalances import is_of_epoch_group
from coordinator_sim_conformance.bounds import convergence_bound_ms
from coordinator_sim_conformance.checkers.contract import Checker, Findings, Violation
from coordinator_sim_conformance.checkers.history import History, Tenancy

LOADED = frozenset({Event.GROUP_LOADED})
RESTING = LOADED | {
    Event.SYNC_LEADER,
    Event.GROUP_STABLE,
    Event.GROUP_EMPTY,
    Event.GROUP_DEAD,
}
"""Events of a group at rest; logs show the leader's sync, and not Stable."""
MOVING = frozenset({Event.PREPARE_REBALANCE, Event.JOIN_COMPLETE})


_SHARE = "share"
"""Share groups have no generations: I7 leaves them open."""


def judge(history: History) -> Findings:
    """Check that a group is at rest within the bound after the last disturbance, and stays so.

    If the trace records the clients' processes, the group at rest has as many members as running
    processes. A trace without a disturbance, or that ends before the bound is over, cannot be
    judged; nor can a group with epochs, of which only its members tell when it rests.
    """
    calm_us = history.calm_from_us
    if calm_us is None:
        return Findings(0)
    running = _running_clients(history)
    told_by_members = _told_by_members(history)
    tenancies = _last_tenancies(history)
    judged = 0
    violations: list[Violation] = []
    for group_id in dict.fromkeys([*tenancies, *running]):
        due_us = calm_us + convergence_bound_ms(history.timing_of(group_id)) * 1_000
        if history.ends_at_us < due_us:
            continue
        clients = None if group_id not in running else len(running[group_id])
        tenancy = tenancies.get(group_id)
        if tenancy is None and (not clients or group_id in told_by_members):
            continue
        event = None if tenancy is None else _last_step(tenancy, due_us)
        if event is not None and is_of_epoch_group(event):
            continue
        judged += 1
        fault = _fault(event, clients, due_us)
        if fault is not None:
            violations.append(_violation(group_id, due_us, event, fault))
    return Findings(judged, tuple(violations))


def _told_by_members(history: History) -> frozenset[str | None]:
    """Return the groups whose members tell themselves what they are assigned, and share groups."""
    return frozenset(
        event.group_id
        for event in history.events
        if (event.event is Event.ASSIGNED and event.broker_id is None)
        or event.protocol_type == _SHARE
    )


def _running_clients(history: History) -> dict[str, dict[str, None]]:
    """Return the processes that run at the end, by group; groups without any are absent."""
    running: dict[str, dict[str, None]] = {}
    for event in history.events:
        if event.event is not Event.LIFECYCLE or event.group_id is None or event.client_id is None:
            continue
        clients = running.setdefault(event.group_id, {})
        if event.reason_text == "started":
            clients[event.client_id] = None
        elif event.reason_text == "gone":
            clients.pop(event.client_id, None)
    return running


def _last_tenancies(history: History) -> dict[str, Tenancy]:
    """Return each group's latest tenancy with life: earlier ones ended with a failover.

    A broker that only refuses requests for a group leaves a tenancy without life, and one that was
    paused may begin a group of which another broker is the coordinator by then.
    """
    lived = MOVING | RESTING
    return {
        tenancy.group_id: tenancy
        for tenancy in history.tenancies
        if not tenancy.is_deposed and any(event.event in lived for event in tenancy.events)
    }


def _last_step(tenancy: Tenancy, due_us: int) -> TraceEvent | None:
    """Return the first event after the group had to be at rest, or else its last event."""
    last: TraceEvent | None = None
    for event in tenancy.events:
        if event.event in MOVING and event.ts_us > due_us:
            return event
        if event.event in MOVING or event.event in RESTING:
            last = event
    return last


def _fault(event: TraceEvent | None, clients: int | None, due_us: int) -> str | None:
    """Return the fault of a group that ended with this event; None for none."""
    if event is None:
        return f"{clients} clients run, and the group has no generation"
    if event.event in MOVING:
        when = "after" if event.ts_us > due_us else "before"
        return f"{event.event.value} of generation {event.generation} {when} it had to be at rest"
    members = 0 if event.event is Event.GROUP_DEAD else event.members
    if clients is not None and members is not None and members != clients:
        return f"at rest with {members} members, and {clients} clients run"
    return None


def _violation(group_id: str, due_us: int, event: TraceEvent | None, fault: str) -> Violation:
    return Violation(
        invariant="I7",
        at_us=due_us if event is None else max(event.ts_us, due_us),
        group_id=group_id,
        message=f"{fault} (due {due_us // 1_000} ms into the trace)",
        evidence=() if event is None else (event.seq,),
    )


CONVERGES = Checker(
    invariant="I7",
    name="converges",
    title="convergence",
    judge=judge,
)
