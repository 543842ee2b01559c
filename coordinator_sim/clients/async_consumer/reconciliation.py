"""Reconciliation: from the partitions that a member has to those that it is to have.

Commit, give up, take over, acknowledge: one reconciliation at a time. Topics whose names are not
known yet are left out, and the rest is acknowledged without them.

Source: kafka 4.4, clients/.../consumer/internals/AbstractMembershipManager.java, maybeReconcile
and what it calls.
"""

from typing import NamedTuple, Unpack

from coordinator_sim.clients.async_consumer.membership import AppEvent, AsyncMembership
from coordinator_sim.clients.async_consumer.promise import Promise, kept
from coordinator_sim.clients.async_consumer.states import (
    NO_EPOCH,
    LocalAssignment,
    MemberState,
    PartitionsById,
)
from coordinator_sim.clients.background_requests import MemberSetup
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.effects import CallbackKind
from coordinator_sim.clients.exceptions import KAFKA
from coordinator_sim.kafka.resources import TopicPartition


class _Step(NamedTuple):
    """A reconciliation under way.

    Args:
        resolved: The part of the target whose topics have names.
        assigned: The same by name, sorted.
        added: Those of them that the member has not, sorted.
        revoked: Partitions that it has and is to give up, sorted.
    """

    resolved: LocalAssignment
    assigned: tuple[TopicPartition, ...]
    added: tuple[TopicPartition, ...]
    revoked: tuple[TopicPartition, ...]


class AsyncReconciliation(AsyncMembership):
    """Takes assignments, and works towards them."""

    __slots__ = ("_ids_version", "_names_by_id")

    def __init__(self, config: ConsumerConfig, **setup: Unpack[MemberSetup]) -> None:
        super().__init__(config, **setup)
        self._names_by_id: dict[bytes, str] = {}
        self._ids_version = -1

    def _take_assignment(self, partitions: PartitionsById) -> None:
        """Adopt a target, to be reconciled later (processAssignmentReceived)."""
        target = self._target.changed_to(partitions)
        if target is not None:
            self._target = target
        if self._current != self._target:
            self._transition(MemberState.RECONCILING)
        elif self._member_state in (MemberState.RECONCILING, MemberState.JOINING):
            self._transition(MemberState.STABLE)

    def _maybe_reconcile(self, now_ms: int, *, may_commit: bool) -> None:
        """Begin to reconcile, where there is something to do (maybeReconcile).

        Args:
            now_ms: The present instant.
            may_commit: Whether the application polls right now. Without it nothing is given up, and
                nothing is committed: the application may be about to return records.
        """
        if self._member_state is not MemberState.RECONCILING:
            return
        if self._current == self._target or self._is_reconciling:
            return
        step = self._next_step()
        is_known = step.resolved.partitions == self._current.partitions
        if self._current.epoch != NO_EPOCH and is_known:
            if self._current.epoch != step.resolved.epoch:
                self._current = step.resolved
                self._transition(MemberState.ACKNOWLEDGING)
            return
        if not may_commit and (self._config.enable_auto_commit or step.revoked):
            return
        self._is_reconciling, self._rejoined_meanwhile = True, False
        self._mark_pending_revocation(step.revoked)
        deadline_ms = now_ms + self._config.rebalance_timeout_ms

        def committed(error: str | None, at_ms: int) -> None:
            # A commit that failed does not keep the member from going on.
            del error
            if not self._maybe_abort():
                self._revoke_and_assign(step, at_ms)

        self._commit_before_rebalance(deadline_ms, now_ms).then(committed, now_ms)

    def _next_step(self) -> _Step:
        resolved: PartitionsById = {}
        assigned: list[TopicPartition] = []
        for topic_id, partitions in self._target.partitions.items():
            name = self._name_of(topic_id)
            if name is None:
                # Source: findResolvableAssignmentAndTriggerMetadataUpdate.
                self._metadata.request_update(has_reason=True)
            else:
                resolved[topic_id] = partitions
                assigned += (TopicPartition(name, number) for number in partitions)
        wanted = dict.fromkeys(assigned)
        return _Step(
            resolved=LocalAssignment(self._target.epoch, resolved),
            assigned=tuple(sorted(assigned)),
            added=tuple(sorted(tp for tp in assigned if tp not in self._assigned)),
            revoked=tuple(sorted(tp for tp in self._assigned if tp not in wanted)),
        )

    def _name_of(self, topic_id: bytes) -> str | None:
        """Return a topic's name from the metadata, or as it was known (findTopicName...)."""
        metadata = self._metadata
        if metadata.version != self._ids_version:
            self._ids_version = metadata.version
            self._names_by_id = {t.topic_id: name for name, t in metadata.topics.items()}
        name = self._names_by_id.get(topic_id)
        if name is None:
            return self._topic_names.get(topic_id)
        self._topic_names[topic_id] = name
        return name

    def _maybe_abort(self) -> bool:
        """Whether the reconciliation is of no use any more; it ends then (maybeAbort...)."""
        is_over = self._member_state is not MemberState.RECONCILING or self._rejoined_meanwhile
        if is_over:
            self._end_reconciliation()
        return is_over

    def _end_reconciliation(self) -> None:
        self._is_reconciling = self._rejoined_meanwhile = False

    def _revoke_and_assign(self, step: _Step, now_ms: int) -> None:
        """Give up, take over, acknowledge; a failed callback leaves the member RECONCILING.

        Source: revokeAndAssign.
        """

        def revoked(error: str | None, at_ms: int) -> None:
            if error is not None:
                self._end_reconciliation()
            elif not self._maybe_abort():
                self._assign(step).then(assigned, at_ms)

        def assigned(error: str | None, at_ms: int) -> None:
            if error is not None:
                self._end_reconciliation()
                return
            self._enable(step)
            if self._is_reconciling and not self._maybe_abort():
                self._current = step.resolved
                self._restart_auto_commit(at_ms)
                self._transition(MemberState.ACKNOWLEDGING)
                self._end_reconciliation()

        outcome = self._revoke(step.revoked, now_ms) if step.revoked else kept()
        outcome.then(revoked, now_ms)

    def _revoke(self, revoked: tuple[TopicPartition, ...], now_ms: int) -> Promise:
        """Have the application give partitions up (revokePartitions)."""
        owned = [tp for tp in revoked if tp in self._assigned]
        self._mark_pending_revocation(owned)
        if self._member_state is MemberState.FATAL:
            outcome = Promise()
            outcome.complete(now_ms, KAFKA)
            return outcome
        return self._call_back(CallbackKind.PARTITIONS_REVOKED, owned, now_ms)

    def _assign(self, step: _Step) -> Promise:
        """Have the application own the new set, then run its callback (assignPartitions)."""
        outcome = Promise()
        self._app_events.append(AppEvent(outcome, partitions=step.added, assignment=step.assigned))
        # Names of topics without a partition are forgotten.
        self._topic_names = {
            topic_id: name
            for topic_id, name in self._topic_names.items()
            if topic_id in step.resolved.partitions
        }
        return outcome

    def _enable(self, step: _Step) -> None:
        """Let assigned partitions be fetched from (enablePartitionsAwaitingCallback)."""
        for partition in step.assigned:
            self._awaits_callback.pop(partition, None)

    def _apply_assignment(
        self, assigned: tuple[TopicPartition, ...], added: tuple[TopicPartition, ...]
    ) -> None:
        """Own these partitions; those kept keep their positions (applyAssignment)."""
        owned = self._assigned
        self._assigned = {tp: owned.get(tp) for tp in assigned}
        self._resets = {tp: None for tp in self._resets if tp in self._assigned}
        self._pending_revocation = {
            tp: None for tp in self._pending_revocation if tp in self._assigned and tp in owned
        }
        self._awaits_callback = {tp: None for tp in self._awaits_callback if tp in self._assigned}
        self._awaits_callback.update(dict.fromkeys(added))
