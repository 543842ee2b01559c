"""What replays assume, in sentences for people: where lines leave it open, and of settings."""

from typing import Final

from coordinator_sim.replay.pace import USUAL_HEARTBEAT_MS
from coordinator_sim.replay.plan import GroupPlan

ASSUMED_OF_SETTINGS: Final = {
    "group_instance_id": "a process keeps its group.instance.id over a restart, and a "
    "restarted process is told by its client.id; a closed static consumer sends no LeaveGroup",
    "session_timeout_ms": "a dead member falls silent when it did in the source, and is removed "
    "one session timeout later",
    "group_initial_rebalance_delay_ms": "members join an empty group when the source says so, "
    "however long it waits for more",
    "heartbeat_interval_ms": "members learn of a rebalance at their next heartbeat: of their "
    f"time to rejoin, up to one interval of the source ({USUAL_HEARTBEAT_MS} ms unless the "
    "trace tells) grows or shrinks with the interval",
    "partition_assignment_strategy": "memberships stay those of the run; members of an eager "
    "group stop when they rejoin, or where no line tells that as the rebalance begins, and work "
    "when its assignment comes; a second cooperative round takes as long as the group's usual "
    "rebalance",
    "connect_protocol": "workers come and go as in the run; rounds with the same workers as "
    "before are the protocol's own, so they are computed anew",
    "scheduled_rebalance_max_delay_ms": "work lost with a worker waits for it for the delay, "
    "then one more usual rebalance hands it out",
    "profile": "members behave as in the source, only the broker is of another release",
}
"""What the figures under a setting assume beside what every what-if assumes; by its field."""


def _starts_assumed(plan: GroupPlan) -> list[str]:
    """Return what is assumed of the beginnings of rebalances, however many there are."""
    rebalances = [script.rebalance for script in plan.scripts]
    untold = [each.generation for each in rebalances if each.start is None]
    inferred = sum(each.start is not None and each.start.confidence < 1 for each in rebalances)
    found = []
    if len(untold) == 1:
        found.append(f"the start of the rebalance to generation {untold[0]}")
    elif untold:
        found.append(
            f"the starts of {len(untold)} rebalances, to generations {untold[0]} to {untold[-1]}: "
            "each begins when its join phase ends"
        )
    if inferred:
        found.append(f"{inferred} rebalances begin when the first request shows them")
    return found


def say_what_is_assumed(plan: GroupPlan) -> None:
    """List the assumptions for what the lines do not tell."""
    plan.assumed[:0] = _starts_assumed(plan)
    if plan.load_generation is not None:
        unnamed = sum(plan.actors[index].name is None for index in plan.loaded)
        plan.assumed.insert(
            0,
            f"generation {plan.load_generation} is loaded with {len(plan.loaded)} "
            f"member{'' if len(plan.loaded) == 1 else 's'}, "
            f"{unnamed} of them named by no line",
        )
    later = sum(actor.name is None and not actor.is_loaded for actor in plan.actors)
    if later:
        who = "1 member joins" if later == 1 else f"{later} members join"
        plan.assumed.append(f"{who} that no line names")
    if any(script.rejoiners for script in plan.scripts):
        plan.assumed.append(
            "members rejoin when their rebalance begins, the last when its join phase ends"
        )
    if plan.assumed_initial_delay_ms is not None:
        plan.assumed.append(
            f"group.initial.rebalance.delay.ms={plan.assumed_initial_delay_ms}: the initial delay "
            "ends where a join phase of a group that was Empty ends"
        )
    if plan.commit_timeout_ms is not None:
        plan.assumed.append(
            "an assignment that fails long after it came waits for replicas in vain: "
            f"offsets.commit.timeout.ms={plan.commit_timeout_ms}"
        )
    if plan.assumed_session_timeout_ms is not None:
        plan.assumed.append(
            f"members that failed had session.timeout.ms={plan.assumed_session_timeout_ms}, the "
            "longest usual one that the lines allow"
        )
