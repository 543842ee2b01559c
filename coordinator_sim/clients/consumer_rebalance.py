"""A consumer's part in a rebalance: when to rejoin, what to offer, what to revoke and adopt.

Source: kafka trunk, ConsumerCoordinator.java, rejoinNeededOrPending, metadata, onJoinPrepare,
onJoinComplete, onLeavePrepare.
"""

from functools import partial
from typing import NamedTuple

from coordinator_sim.assignors.contract import ConsumerAssignor, RebalanceProtocol
from coordinator_sim.clients.effects import CallbackKind
from coordinator_sim.clients.exceptions import ILLEGAL_STATE, KAFKA, RETRIABLE, SCHEMA, WAKEUP
from coordinator_sim.clients.generation import Generation
from coordinator_sim.clients.network import FOREVER, Future
from coordinator_sim.clients.positions import ConsumerPositions
from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.context import NO_GENERATION_ID, UNKNOWN_MEMBER_ID
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.consumer_protocol import (
    decode_assignment,
    encode_subscription,
)
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, Subscription
from coordinator_sim.messages.join_group import JoinGroupRequestProtocol

_VERSION_SIZE = 2
"""Size of the version field, the smallest valid assignment."""


class _Adoption(NamedTuple):
    """An assignment on its way through the application's callbacks."""

    assignor: ConsumerAssignor
    assignment: ConsumerAssignment
    partitions: tuple[TopicPartition, ...]
    generation_id: int


class ConsumerRebalance(ConsumerPositions):
    """Implements the hooks of AbstractCoordinator for a consumer."""

    __slots__ = ("_auto_commit_future", "_join_prepare_deadline_ms")

    def _init_rebalance(self) -> None:
        self._auto_commit_future: Future | None = None
        self._join_prepare_deadline_ms = FOREVER

    # Rejoin rules.

    def _rejoin_needed_or_pending(self) -> bool:
        if not self._subscriptions.is_automatic:
            return False
        reason = None
        if self._is_assignment_outdated():
            reason = "cached metadata has changed"
        elif self._joined_subscription not in (None, self._subscriptions.topics):
            reason = "subscription has changed"
        if reason is not None:
            if not self._rejoin_needed:
                self.request_rejoin(reason)
            return True
        return super()._rejoin_needed_or_pending()

    def _join_metadata(self, now_ms: int) -> tuple[JoinGroupRequestProtocol, ...]:  # noqa: ARG002 - hook
        topics = self._joined_subscription = self._subscriptions.topics
        rack = self._consumer_config.client_rack
        return tuple(
            JoinGroupRequestProtocol(
                assignor.name,
                encode_subscription(
                    Subscription(
                        topics=topics,
                        user_data=assignor.subscription_user_data(topics),
                        owned_partitions=self.owned_partitions,
                        generation_id=self._generation.generation_id,
                        rack_id=rack or None,
                    )
                ),
            )
            for assignor in self._assignors
        )

    # onJoinPrepare

    def _on_join_prepare(self, now_ms: int) -> None:
        """Auto-commit if enabled, then give up what the rebalance protocol demands."""
        if self._join_prepare_deadline_ms == FOREVER:
            self._join_prepare_deadline_ms = now_ms + self._config.rebalance_timeout_ms
        if self._consumer_config.enable_auto_commit and self._auto_commit_future is None:
            # Source: kafka trunk, ConsumerCoordinator.maybeMarkPartitionsPendingRevocation.
            self._pending_revocation = self._protocol is RebalanceProtocol.EAGER
            self._auto_commit_future = self._commit_async(None, self.positions, now_ms)
        future = self._auto_commit_future
        if future is not None and now_ms < self._join_prepare_deadline_ms:
            retry = future.error is not None and future.error in RETRIABLE
            if future.done:
                self._auto_commit_future = None
            if retry or not future.done:
                self._join_prepared(completed=False, now_ms=now_ms)
                return
        self._give_up_partitions(now_ms)

    def _give_up_partitions(self, now_ms: int) -> None:
        owned = self.owned_partitions
        if self._is_out_of_group():
            kind, given_up = CallbackKind.PARTITIONS_LOST, owned
            needed = bool(owned)
        elif self._protocol is RebalanceProtocol.EAGER:
            kind, given_up = CallbackKind.PARTITIONS_REVOKED, owned
            needed = True
        else:
            kind = CallbackKind.PARTITIONS_REVOKED
            given_up = tuple(tp for tp in owned if tp.topic not in self._subscriptions.topics)
            needed = bool(given_up)
        then = partial(self._join_prepare_ended, given_up)
        if needed:
            self._run_callback(kind, then, partitions=given_up)
        else:
            then(None, now_ms)

    def _is_out_of_group(self) -> bool:
        """Whether the generation or the member id was reset, so that it owns nothing any more."""
        generation_id, member_id, _ = self._generation
        return generation_id == NO_GENERATION_ID or member_id == UNKNOWN_MEMBER_ID

    def _join_prepare_ended(
        self, given_up: tuple[TopicPartition, ...], outcome: str | None, now_ms: int
    ) -> None:
        if outcome == WAKEUP:
            # QUIRK: a wake-up inside the callback skips everything that follows it: the
            # member joins at the next poll with the partitions it was about to give up.
            self._end_call(now_ms, WAKEUP)
            return
        self._drop(given_up)
        self._pending_revocation = False
        self._stop_leading()
        self._join_prepare_deadline_ms = FOREVER
        self._auto_commit_future = None
        if outcome is not None:
            self._end_call(now_ms, KAFKA)
        else:
            self._join_prepared(completed=True, now_ms=now_ms)

    # onJoinComplete

    def _on_join_complete(self, generation: Generation, assignment: bytes, now_ms: int) -> None:
        """Adopt an assignment: revoke first (cooperative), then assign."""
        if not self._is_leader:
            self._assignment_snapshot = None
        assignor = self._assignor(generation.protocol_name)
        if assignor is None or len(assignment) < _VERSION_SIZE:
            self._end_call(now_ms, ILLEGAL_STATE)
            return
        try:
            assigned = decode_assignment(assignment)
        except WireFormatError:
            self._end_call(now_ms, SCHEMA)
            return
        partitions = tuple(sorted(dict.fromkeys(assigned.partitions)))
        if not self._subscriptions.admits(partitions):
            self.request_rejoin("received assignment does not match the current subscription")
            self._join_completed(now_ms)
            return
        adoption = _Adoption(assignor, assigned, partitions, generation.generation_id)
        revoked = tuple(tp for tp in self._assigned if tp not in partitions)
        if self._protocol is RebalanceProtocol.COOPERATIVE and revoked:
            then = partial(self._revoked_in_join, adoption)
            self._run_callback(CallbackKind.PARTITIONS_REVOKED, then, partitions=revoked)
        else:
            self._adopt_assignment(adoption, None, now_ms)

    def _revoked_in_join(self, adoption: _Adoption, outcome: str | None, now_ms: int) -> None:
        if outcome == WAKEUP:
            self._end_call(now_ms, WAKEUP)
            return
        self.request_rejoin("need to revoke partitions and re-join")
        self._adopt_assignment(adoption, outcome, now_ms)

    def _adopt_assignment(self, adoption: _Adoption, error: str | None, now_ms: int) -> None:
        self._join_assigned_topics(adoption.partitions)
        adoption.assignor.on_assignment(adoption.assignment, adoption.generation_id)
        self._next_auto_commit_ms = now_ms + self._consumer_config.auto_commit_interval_ms
        added = tuple(tp for tp in adoption.partitions if tp not in self._assigned)
        self._adopt_partitions(adoption.partitions)
        then = partial(self._assigned_in_join, error)
        self._run_callback(CallbackKind.PARTITIONS_ASSIGNED, then, partitions=added)

    def _assigned_in_join(self, error: str | None, outcome: str | None, now_ms: int) -> None:
        """Throw what the first callback raised (`error`), now that both have run."""
        if outcome == WAKEUP:
            self._end_call(now_ms, WAKEUP)
        elif error is not None or outcome is not None:
            self._end_call(now_ms, KAFKA)
        else:
            self._join_completed(now_ms)

    # onLeavePrepare

    def _on_leave_prepare(self, now_ms: int) -> None:
        owned = self.owned_partitions
        if not owned or not self._subscriptions.is_automatic:
            self._leave_prepared(None, now_ms)
            return
        lost = self._is_out_of_group() or self._is_rebalancing()
        kind = CallbackKind.PARTITIONS_LOST if lost else CallbackKind.PARTITIONS_REVOKED
        self._run_callback(kind, self._left_partitions, partitions=owned)

    def _left_partitions(self, outcome: str | None, now_ms: int) -> None:
        if outcome != WAKEUP:
            self._drop(self.owned_partitions)
        self._leave_prepared(outcome, now_ms)
