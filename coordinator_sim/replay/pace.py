"""Typical durations of a group's rebalances in a trace, used where no line tells one."""

from statistics import median_low

from coordinator_sim.replay.plan import GroupPlan, Script


def usual_join_ms(plan: GroupPlan, *, is_initial: bool) -> int:
    """Return the join phase's usual length; of initial ones the shortest, which is the delay."""
    lengths = [
        script.done_ms - script.start_ms
        for script in plan.scripts
        if script.done_ms is not None and script.is_initial == is_initial
    ]
    if not lengths:
        return 0
    return min(lengths) if is_initial else median_low(lengths)


def usual_sync_ms(plan: GroupPlan, script: Script | None) -> int:
    """Return the leader's time to assign: from the trace's own rebalance, or the usual one."""
    if script is not None and script.sync_ms is not None and script.done_ms is not None:
        return script.sync_ms - script.done_ms
    lengths = [
        each.sync_ms - each.done_ms
        for each in plan.scripts
        if each.sync_ms is not None and each.done_ms is not None
    ]
    return median_low(lengths) if lengths else 0
