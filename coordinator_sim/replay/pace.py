"""Durations of a group's rebalances: typical ones, and what other heartbeats make of them."""

from bisect import bisect_left
from statistics import median_low
from typing import Final

from coordinator_sim.replay.plan import NEVER_MS, GroupPlan, Script
from coordinator_sim.trace.history import LINE_SKEW_MS

USUAL_HEARTBEAT_MS: Final = 3_000
"""Default of `heartbeat.interval.ms` of consumers and Connect workers, in every release."""


class Pace:
    """How fast the members of a plan rejoin and their leaders assign.

    Args:
        plan: The plan.
        heartbeat_ms: Heartbeat interval of the members; None for the one of the trace.
    """

    def __init__(self, plan: GroupPlan, heartbeat_ms: int | None = None) -> None:
        joins: dict[bool, list[int]] = {True: [], False: []}
        free: list[int] = []
        syncs: list[int] = []
        for script in plan.scripts:
            if script.done_ms is None:
                continue
            length_ms = script.done_ms - script.start_ms
            joins[script.is_initial].append(length_ms)
            if not script.is_initial and not is_held(script):
                free.append(length_ms)
            if script.sync_ms is not None:
                syncs.append(script.sync_ms - script.done_ms)
        initial, later = joins[True], joins[False]
        self._initial_ms = min(initial) if initial else 0
        self._later_ms = median_low(later) if later else 0
        self._free_ms = median_low(free) if free else None
        self._sync_ms = median_low(syncs) if syncs else 0
        self._rejoins_ms = plan.rejoins_ms
        self._told_ms = plan.heartbeat_interval_ms or USUAL_HEARTBEAT_MS
        self._heartbeat_ms = self._told_ms if heartbeat_ms is None else heartbeat_ms

    @property
    def as_told(self) -> bool:
        """Whether members send heartbeats as often as in the trace."""
        return self._heartbeat_ms == self._told_ms

    @property
    def own_ms(self) -> int:
        """How long the slowest member usually takes to rejoin, beyond one heartbeat interval."""
        return max(0, (self._free_ms or 0) - self._told_ms)

    def join_ms(self, *, is_initial: bool) -> int:
        """Return the usual length of join phases; of initial ones the shortest: the delay."""
        return self._initial_ms if is_initial else self.with_heartbeats(self._later_ms)

    def sync_ms(self, script: Script | None) -> int:
        """Return the leader's time to assign: from the trace's own rebalance, or the usual one."""
        if script is not None and script.sync_ms is not None and script.done_ms is not None:
            return script.sync_ms - script.done_ms
        return self._sync_ms

    def rejoin_ms(self, script: Script) -> int:
        """Return how long the last living member takes to rejoin in a rebalance of the trace.

        Where the join phase waited for a member that was then removed, the others had rejoined
        before: as usual in this group, or at the removal where no phase shows what is usual.
        """
        if script.done_ms is None:
            return NEVER_MS * 1_000_000
        length_ms = script.done_ms - script.start_ms
        if script.is_initial:
            return length_ms
        if is_held(script) and self._free_ms is not None:
            length_ms = min(length_ms, self._free_ms)
        return self.with_heartbeats(length_ms)

    def gives_up_ms(
        self, member_id: str | None, script: Script | None, *, as_in_trace: bool
    ) -> int | None:
        """Return how long after the start a member sends its JoinGroup; None where not known.

        Args:
            member_id: The member, as the trace names it; None for one that it does not name.
            script: The rebalance of the trace; None for one that it does not have.
            as_in_trace: Whether members act when the trace says so.
        """
        sent_ms = self._rejoins_ms.get(member_id or "", ())
        if script is None or script.done_ms is None:
            return None
        place = bisect_left(sent_ms, script.start_ms)
        if place == len(sent_ms) or sent_ms[place] > script.done_ms:
            return None
        after_ms = sent_ms[place] - script.start_ms
        return after_ms if as_in_trace and self.as_told else self.with_heartbeats(after_ms)

    def with_heartbeats(self, rejoin_ms: int) -> int:
        """Return how long a rejoin takes at this heartbeat interval.

        A member learns of a rebalance with its next heartbeat: as much of its delay as one interval
        is long grows and shrinks with the interval, the rest is the member's own.
        """
        waiting_ms = min(rejoin_ms, self._told_ms)
        return rejoin_ms - waiting_ms + waiting_ms * self._heartbeat_ms // self._told_ms


def is_held(script: Script) -> bool:
    """Whether the join phase ended with the removal of a member that it had waited for."""
    removed_ms = script.rebalance.removed_ms
    return (
        script.done_ms is not None
        and removed_ms is not None
        and removed_ms > script.start_ms + LINE_SKEW_MS
        and abs(script.done_ms - removed_ms) <= LINE_SKEW_MS
    )
