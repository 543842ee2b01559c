"""The members of every rebalance of a plan: who is present, who rejoins, who sends SyncGroup."""

from coordinator_sim.replay.names import members_of
from coordinator_sim.replay.plan import Actor, GroupPlan, Script, StepKind
from coordinator_sim.trace.events import RebalanceReason
from coordinator_sim.trace.history import LINE_SKEW_MS


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
