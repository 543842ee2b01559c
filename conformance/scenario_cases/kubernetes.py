"""Consumer groups whose members are pods that an autoscaler adds and takes away."""

from coordinator_sim.trace.events import Event
from coordinator_sim_conformance.scenario_cases.case import shows
from coordinator_sim_conformance.scenario_cases.seen import Seen

SETTLED_MS = 600_000
"""When the lag of the start is worked off."""


def _changes(seen: Seen) -> list[int]:
    """By how many each later decision changed the replicas."""
    decisions = [
        each.attrs
        for each in seen.of(Event.FAULT, after_ms=SETTLED_MS)
        if each.reason_text == "ScaleDecision"
    ]
    steps = [int(attrs["replicas"]) - int(attrs["before"]) for attrs in decisions]
    return [step for step in steps if step]


@shows("keda-thrash")
def replicas_rise_and_fall_under_a_constant_load(seen: Seen) -> None:
    """Lag is small while the group keeps up, so pods go, and come again when it falls behind."""
    changes = _changes(seen)
    seen.expect("up and down", (max(changes) > 0, min(changes) < 0), (True, True))


@shows("keda-thrash-cured")
def autoscaler_with_enough_pods_at_least_rests(seen: Seen) -> None:
    """After the lag of the start nothing changes."""
    seen.expect("changes", _changes(seen), [])
