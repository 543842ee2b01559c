"""Connect's incremental cooperative assignor: moves little, and waits for workers that left.

Source: kafka trunk, connect/runtime/.../distributed/IncrementalCooperativeAssignor.java.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from coordinator_sim.assignors.connect_work import Work
from coordinator_sim.assignors.contract import ConnectAssignmentPlan, ConnectMember
from coordinator_sim.kafka.orders.iteration_order import java_hash_order, java_string_key

T = TypeVar("T")

BACKOFF_MULTIPLIER: Final = 40
"""Growth of the delay between successive rounds that revoke, which starts at 1 ms."""


class IncrementalConnectAssignor:
    """The leader's assignor under the compatible and sessioned protocols.

    The assignor remembers what it assigned and revoked, so one instance must see every assignment
    that its worker makes as leader.

    Args:
        scheduled_rebalance_max_delay_ms: How long lost work waits for its worker to return;
            0 reassigns at once.
    """

    def __init__(self, scheduled_rebalance_max_delay_ms: int) -> None:
        self._max_delay_ms = scheduled_rebalance_max_delay_ms
        self._previous_assignment = Work()
        self._previous_revocation = Work()
        self._previous_generation_id = -1
        self._previous_members: frozenset[str] = frozenset()
        self._revoked_in_previous = False
        self._successive_revoking_count = 0
        self._candidates: dict[str, None] = {}
        self._scheduled_rebalance_ms = 0
        self._delay_ms = 0

    def assign(
        self,
        *,
        configured: Mapping[str, int],
        members: Sequence[ConnectMember],
        generation_id: int,
        last_completed_generation_id: int,
        now_ms: int,
    ) -> ConnectAssignmentPlan:
        """Decide the work to add to and to revoke from each worker.

        Args:
            configured: Connector -> number of its tasks.
            members: Members in JoinGroup order, with their running work as decoded from the wire.
            generation_id: The generation this assignment is for.
            last_completed_generation_id: Last generation whose assignment this worker received.
            now_ms: Instant on the worker's clock, for the scheduled rebalance.

        Source: IncrementalCooperativeAssignor.performTaskAssignment.
        """
        by_id = {m.member_id: Work(list(m.connectors), list(m.tasks)) for m in members}
        reported = {member_id: by_id[member_id] for member_id in java_hash_order(by_id)}
        if not reported:
            return ConnectAssignmentPlan(assigned={}, revoked={})
        everything = Work.configured(configured)
        active = Work.union(reported.values())
        self._recall(active, last_completed_generation_id)
        deleted = self._previous_assignment.difference(everything)
        lost = self._previous_assignment.difference(active, deleted)
        created = everything.difference(self._previous_assignment, active)
        current = {member_id: work.minus(deleted) for member_id, work in reported.items()}
        revoked = _to_revoke(reported, deleted, active.repeated())
        upcoming = {
            member_id: reported[member_id].minus(revoked[member_id]) for member_id in reported
        }
        to_assign = created
        to_assign.add(self._handle_lost(lost, upcoming, now_ms))
        self._balance(everything, upcoming, revoked, now_ms)
        _deal(upcoming, to_assign)
        self._remember(upcoming, revoked, lost, generation_id)
        return ConnectAssignmentPlan(
            assigned={
                member_id: work.minus(current[member_id]).load()
                for member_id, work in upcoming.items()
            },
            revoked={member_id: work.load() for member_id, work in revoked.items() if work},
            delay_ms=self._delay_ms,
        )

    def _recall(self, active: Work, last_completed_generation_id: int) -> None:
        """Correct the memory if work was not delivered, or revoked work is still running."""
        if self._previous_generation_id != last_completed_generation_id:
            self._previous_assignment = Work()
        if self._previous_revocation.shares_with(active):
            self._previous_assignment = active
        self._previous_revocation = Work()

    def _remember(
        self,
        upcoming: Mapping[str, Work],
        revoked: Mapping[str, Work],
        lost: Work,
        generation_id: int,
    ) -> None:
        """Keep this round's assignment for the next round.

        Source: IncrementalCooperativeAssignor.computePreviousAssignment.
        """
        self._previous_revocation = Work.union(revoked.values())
        kept = Work.union(upcoming.values()).minus(self._previous_revocation)
        self._previous_assignment = Work.union([kept, lost])
        self._previous_generation_id = generation_id
        self._previous_members = frozenset(upcoming)

    def _handle_lost(self, lost: Work, upcoming: Mapping[str, Work], now_ms: int) -> Work:
        """Return the lost work to assign now; otherwise a rebalance is scheduled for it.

        Source: IncrementalCooperativeAssignor.handleLostAssignments.
        """
        # QUIRK: after a round that revoked, a worker that leaves without any lost work still starts
        # the full delay.
        if not lost and not self._revoked_in_previous:
            self._reset_delay()
            return Work()
        nobody_left = self._scheduled_rebalance_ms <= 0 and self._previous_members.issubset(
            upcoming
        )
        if nobody_left or self._max_delay_ms == 0:
            return lost
        if 0 < self._scheduled_rebalance_ms <= now_ms:
            candidates = [upcoming[m] for m in self._candidates if m in upcoming]
            self._reset_delay()
            self._revoked_in_previous = False
            if not candidates:
                return lost
            _deal_round_robin(candidates, lost)
            return Work()
        empty = [member_id for member_id, work in upcoming.items() if not work]
        self._candidates.update(dict.fromkeys(java_hash_order(empty)))
        remaining_ms = self._scheduled_rebalance_ms - now_ms
        self._delay_ms = (
            min(remaining_ms, self._max_delay_ms) if remaining_ms > 0 else self._max_delay_ms
        )
        self._scheduled_rebalance_ms = now_ms + self._delay_ms
        return Work()

    def _reset_delay(self) -> None:
        self._candidates.clear()
        self._scheduled_rebalance_ms = 0
        self._delay_ms = 0

    def _balance(
        self, everything: Work, upcoming: dict[str, Work], revoked: Mapping[str, Work], now_ms: int
    ) -> None:
        """Revoke from overloaded workers, unless a delay runs or the last round revoked too."""
        # QUIRK: lost work that a candidate was assigned in this round counts as its load, so it may
        # be revoked from it before it was ever started.
        if self._delay_ms != 0:
            self._revoked_in_previous = False
            return
        excess = _excess(everything, upcoming)
        if not excess:
            if self._revoked_in_previous:
                self._revoked_in_previous = False
                self._successive_revoking_count = 0
            return
        if self._revoked_in_previous:
            self._successive_revoking_count += 1
            self._delay_ms = _revoking_backoff_ms(
                self._successive_revoking_count, self._max_delay_ms
            )
            if self._delay_ms != 0:
                self._scheduled_rebalance_ms = now_ms + self._delay_ms
                return
        self._revoked_in_previous = True
        for member_id, work in excess.items():
            revoked[member_id].add(work)
            upcoming[member_id] = upcoming[member_id].minus(work)


def _to_revoke(reported: Mapping[str, Work], deleted: Work, duplicated: Work) -> dict[str, Work]:
    revoked = {}
    for member_id, work in reported.items():
        revoked[member_id] = work.hashed_intersection(deleted)
        revoked[member_id].add(work.hashed_intersection(duplicated))
    return revoked


def _excess(everything: Work, upcoming: Mapping[str, Work]) -> dict[str, Work]:
    """Return member id -> work above its share; members without excess are absent.

    Source: IncrementalCooperativeAssignor.performLoadBalancingRevocations.
    """
    if not everything or not any(upcoming.values()):
        return {}
    connectors = _over_share(
        len(everything.connectors), {m: work.connectors for m, work in upcoming.items()}
    )
    tasks = _over_share(len(everything.tasks), {m: work.tasks for m, work in upcoming.items()})
    excess = {m: Work(connectors.get(m, []), tasks.get(m, [])) for m in upcoming}
    return {member_id: work for member_id, work in excess.items() if work}


def _over_share(total: int, held: Mapping[str, list[T]]) -> dict[str, list[T]]:
    """Return member id -> items of one kind above its share.

    Source: IncrementalCooperativeAssignor.loadBalancingRevocations.
    """
    least, extras = divmod(total, len(held))
    loads = [len(items) for items in held.values()]
    with_extra = loads.count(least + 1)
    if with_extra == extras and loads.count(least) + with_extra == len(held):
        return {}
    over: dict[str, list[T]] = {}
    for member_id, items in held.items():
        if len(items) <= least:
            continue
        keep = least
        if extras > 0:
            extras -= 1
            keep += 1
        if len(items) > keep:
            # The first items go: the worker's own order decides what is revoked.
            over[member_id] = items[: len(items) - keep]
    return over


def _revoking_backoff_ms(attempts: int, max_delay_ms: int) -> int:
    """Return 1 ms times 40 to the power of the attempts, up to the maximum.

    Floating point on purpose: the capped value is computed through logarithms and truncated to
    whole milliseconds, so that it can be one below the maximum.

    Source: kafka trunk, ExponentialBackoff.backoff with initial interval 1 and no jitter.
    """
    if max_delay_ms == 0:
        return 0
    cap = math.log(max_delay_ms) / math.log(BACKOFF_MULTIPLIER) if max_delay_ms > 1 else 0.0
    return min(int(BACKOFF_MULTIPLIER ** min(float(attempts), cap)), max_delay_ms)


def _deal_round_robin(workers: Sequence[Work], lost: Work) -> None:
    for index, connector in enumerate(lost.connectors):
        workers[index % len(workers)].connectors.append(connector)
    for index, task in enumerate(lost.tasks):
        workers[index % len(workers)].tasks.append(task)


def _deal(upcoming: Mapping[str, Work], work: Work) -> None:
    by_id = sorted(upcoming, key=java_string_key)
    connector_lists = [upcoming[member_id].connectors for member_id in by_id]
    _deal_to_least_loaded(connector_lists, work.connectors)
    _deal_to_least_loaded([upcoming[member_id].tasks for member_id in by_id], work.tasks)


def _deal_to_least_loaded(lists: list[list[T]], items: Sequence[T]) -> None:
    """Give one item each to the leading lists no longer than the first, repeatedly.

    The lists are sorted by length once.

    Source: IncrementalCooperativeAssignor.assignConnectors and assignTasks.
    """
    lists.sort(key=len)
    remaining = iter(items)
    dealt = 0
    while dealt < len(items):
        level = len(lists[0])
        run = next((i for i, held in enumerate(lists) if len(held) > level), len(lists))
        for held, item in zip(lists[:run], remaining, strict=False):
            held.append(item)
            dealt += 1
