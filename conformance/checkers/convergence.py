"""I7: that a group comes to rest once nothing disturbs it."""

from conformance.bounds import convergence_bound_ms
from conformance.checkers.contract import Checker, Findings, Violation
from conformance.checkers.history import History, Tenancy
from coordinator_sim.trace.events import Event, TraceEvent

RESTING = frozenset({Event.GROUP_STABLE, Event.GROUP_EMPTY, Event.GROUP_DEAD})
LIFE = frozenset({Event.GROUP_LOADED})
MOVING = frozenset({Event.PREPARE_REBALANCE, Event.JOIN_COMPLETE})


def judge(history: History) -> Findings:
    """After the last disturbance a group is at rest within the bound, and stays so.

    A trace that names no disturbance, or ends before the bound is over, lets nothing be judged.
    """
    calm_us = history.calm_from_us
    if calm_us is None:
        return Findings(0)
    judged = 0
    violations: list[Violation] = []
    for tenancy in _last_tenancies(history):
        due_us = calm_us + convergence_bound_ms(history.timing_of(tenancy.group_id)) * 1_000
        if history.ends_at_us < due_us:
            continue
        judged += 1
        restless = _restless(tenancy, due_us)
        if restless is not None:
            violations.append(_unrest(tenancy, restless, due_us))
    return Findings(judged, tuple(violations))


def _last_tenancies(history: History) -> list[Tenancy]:
    """The latest tenancy in which each group lived: earlier ones ended with a failover.

    A broker that only refuses requests for a group leaves a tenancy without its life.
    """
    lived = LIFE | MOVING | RESTING
    return list(
        {
            tenancy.group_id: tenancy
            for tenancy in history.tenancies
            if any(event.event in lived for event in tenancy.events)
        }.values()
    )


def _restless(tenancy: Tenancy, due_us: int) -> TraceEvent | None:
    """The event that proves unrest: a group not at rest when due, or moving after it."""
    last: TraceEvent | None = None
    for event in tenancy.events:
        if event.event in MOVING and event.ts_us > due_us:
            return event
        if event.event in MOVING or event.event in RESTING:
            last = event
    return last if last is not None and last.event in MOVING else None


def _unrest(tenancy: Tenancy, event: TraceEvent, due_us: int) -> Violation:
    return Violation(
        invariant="I7",
        at_us=max(event.ts_us, due_us),
        group_id=tenancy.group_id,
        message=f"not at rest {due_us // 1_000} ms into the trace, when it had to be: "
        f"{event.event.value} of generation {event.generation} at {event.ts_us // 1_000} ms",
        evidence=(event.seq,),
    )


CONVERGES = Checker(invariant="I7", name="converges", judge=judge)
