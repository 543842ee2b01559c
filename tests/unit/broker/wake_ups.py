"""Whether the alarm of a cluster is armed in time."""

from coordinator_sim.broker.cluster import Cluster


def missed_wake_ups(cluster: Cluster) -> list[str]:
    """The clocks whose alarm is later than what all families together would arm."""
    scheduler = cluster.scheduler
    pushed = scheduler.group_ms, scheduler.wall_ms, scheduler.has_moved
    scheduler.arm()
    due = {"group": scheduler.group_ms, "wall": scheduler.wall_ms}
    scheduler.group_ms, scheduler.wall_ms, scheduler.has_moved = pushed
    return [
        f"{clock} clock: armed for {armed_ms}, due at {due_ms}"
        for (clock, due_ms), armed_ms in zip(due.items(), pushed, strict=False)
        if due_ms is not None and (armed_ms is None or armed_ms > due_ms)
    ]
