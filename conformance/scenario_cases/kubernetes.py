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


@shows("node-drain")
def pods_of_a_node_go_one_at_a_time(seen: Seen) -> None:
    """The first pod is evicted at once, the second when a replacement is Ready."""
    told = [
        (each.reason_text, each.ts_us // 5_000_000, (each.attrs or {}).get("member"))
        for each in seen.of(Event.FAULT)
        if each.reason_text in {"PodEvicted", "EvictionRefused"}
    ]
    (_, first, one), *refused, (_, last, other) = told
    times = range(first, last)
    seen.expect("asked", refused, [("EvictionRefused", each, other) for each in times])
    gone = [
        each for each in seen.of(Event.LIFECYCLE, after_ms=60_000) if each.reason_text == "gone"
    ]
    seen.expect("gone", [each.client_id for each in gone], [one, other])
