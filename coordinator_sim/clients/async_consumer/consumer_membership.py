"""The consumer's own part of its membership: fields of heartbeats, callbacks, what it fetches from.

The fields of a heartbeat: all when joining, afterwards only those that have changed.

Source: kafka 4.4, clients/.../consumer/internals/ConsumerMembershipManager.java,
ConsumerHeartbeatRequestManager.java (HeartbeatState.buildRequestData and its SentFields).
"""

from collections.abc import Iterable
from typing import Unpack

from msgspec import Struct

from coordinator_sim.clients.async_consumer.heartbeats import HeartbeatRequest, Step
from coordinator_sim.clients.async_consumer.membership import AppEvent
from coordinator_sim.clients.async_consumer.positions import AsyncPositions
from coordinator_sim.clients.async_consumer.promise import Promise
from coordinator_sim.clients.async_consumer.states import LocalAssignment, MemberState
from coordinator_sim.clients.background_requests import MemberSetup
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.effects import CallbackKind
from coordinator_sim.kafka.orders.iteration_order import java_hash_order, uuid_hash
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)


class Membership(Struct, frozen=True, kw_only=True):
    """The fields of a member from which its heartbeat is built.

    Args:
        member_epoch: 0 to join, -1 to leave, -2 for a static member that will come back.
        rebalance_timeout_ms: `max.poll.interval.ms`.
        topics: Topics of the subscription by name.
        regex: RE2 expression that the coordinator resolves; None for none.
        server_assignor: `group.remote.assignor`; None leaves the choice to the coordinator.
        assignment: The member's current assignment.
        is_joining: Whether the heartbeat has every field.
    """

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    topics: tuple[str, ...]
    regex: str | None
    server_assignor: str | None
    assignment: LocalAssignment
    is_joining: bool


class SentFields:
    """The fields sent last; the next heartbeat has those that changed, or all after a failure.

    After a reset an empty subscription by names is sent again, an absent regex is not.
    """

    __slots__ = ("_assignment", "_rebalance_timeout_ms", "_regex", "_server_assignor", "_topics")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything (SentFields.reset)."""
        self._rebalance_timeout_ms = -1
        self._topics: frozenset[str] | None = None
        self._regex: str | None = None
        self._server_assignor: str | None = None
        self._assignment: LocalAssignment | None = None

    def request(self, member: Membership) -> ConsumerGroupHeartbeatRequest:
        """Return the next heartbeat of the member, and remember what it tells."""
        joins = member.is_joining
        rebalance_timeout_ms = -1
        if joins or member.rebalance_timeout_ms != self._rebalance_timeout_ms:
            rebalance_timeout_ms = self._rebalance_timeout_ms = member.rebalance_timeout_ms
        topics: tuple[str, ...] | None = None
        named = frozenset(member.topics)
        if joins or named != self._topics:
            topics, self._topics = tuple(java_hash_order(member.topics)), named
        regex: str | None = None
        if (joins and member.regex is not None) or member.regex != self._regex:
            # An empty expression takes a subscribed one back.
            regex = member.regex or ""
            self._regex = member.regex
        assignor = member.server_assignor
        is_told = assignor is not None and (joins or assignor != self._server_assignor)
        if is_told:
            self._server_assignor = assignor
        partitions: tuple[TopicPartitions, ...] | None = None
        if joins or member.assignment != self._assignment:
            partitions, self._assignment = _owned(member.assignment), member.assignment
        return ConsumerGroupHeartbeatRequest(
            group_id=member.group_id,
            member_id=member.member_id,
            member_epoch=member.member_epoch,
            instance_id=member.instance_id,
            rack_id=member.rack_id if joins else None,
            rebalance_timeout_ms=rebalance_timeout_ms,
            subscribed_topic_names=topics,
            subscribed_topic_regex=regex,
            server_assignor=assignor if is_told else None,
            topic_partitions=partitions,
        )


def _owned(assignment: LocalAssignment) -> tuple[TopicPartitions, ...]:
    """Return the partitions as sent, in the order of Java's map (buildTopicPartitionsList)."""
    by_id = assignment.partitions
    return tuple(
        TopicPartitions(topic_id, by_id[topic_id])
        for topic_id in java_hash_order(by_id, hash_of=uuid_hash)
    )


class ConsumerMembership(AsyncPositions):
    """A member of a consumer group: an AsyncHeartbeats that commits and has callbacks."""

    __slots__ = ("_sent_fields",)

    def __init__(self, config: ConsumerConfig, **setup: Unpack[MemberSetup]) -> None:
        super().__init__(config, **setup)
        self._sent_fields = SentFields()

    def _heartbeat_request(self) -> HeartbeatRequest:
        config = self._config
        return self._sent_fields.request(
            Membership(
                group_id=self._group_id,
                member_id=self._member_id,
                member_epoch=self._generation_id,
                instance_id=config.group_instance_id,
                rack_id=config.client_rack or None,
                rebalance_timeout_ms=config.rebalance_timeout_ms,
                topics=self._subscription,
                regex=self._regex,
                server_assignor=config.group_remote_assignor,
                assignment=self._current,
                is_joining=self._member_state is MemberState.JOINING,
            )
        )

    def _reset_sent_fields(self) -> None:
        self._sent_fields.reset()

    def _longest_wait_ms(self, now_ms: int) -> int:
        """Look around for a commit, too (CommitRequestManager.maximumTimeToWait)."""
        config, longest_ms = self._config, super()._longest_wait_ms(now_ms)
        if not config.enable_auto_commit:
            return longest_ms
        if self._coordinator_id is None:
            return min(longest_ms, config.retry_backoff_ms)
        left_ms = self._auto_commit_due_ms - now_ms
        if left_ms <= 0 and self._auto_commit_in_flight:
            left_ms = config.auto_commit_interval_ms
        return min(longest_ms, left_ms)

    def _assign(self, step: Step) -> Promise:
        """Have the application own the new set, run its callback, and fetch then."""
        outcome = Promise()
        self._app_events.append(AppEvent(outcome, partitions=step.added, assignment=step.assigned))

        def enable(error: str | None, now_ms: int) -> None:
            del now_ms
            for partition in step.assigned if error is None else ():
                self._awaits_callback.pop(partition, None)

        outcome.then(enable, 0)
        return outcome

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

    def _clear_assignment(self) -> None:
        self._resets.clear()
        self._pending_revocation.clear()
        self._awaits_callback.clear()
        super()._clear_assignment()

    def _mark_pending_revocation(self, partitions: Iterable[TopicPartition]) -> None:
        self._pending_revocation.update(dict.fromkeys(partitions))

    def _call_back(
        self, kind: CallbackKind, partitions: Iterable[TopicPartition], now_ms: int
    ) -> Promise:
        """Have the application run a callback about partitions given up; none for no partitions.

        Source: ConsumerMembershipManager.enqueueConsumerRebalanceListenerCallback.
        """
        given_up = tuple(sorted(partitions))
        outcome = Promise()
        if given_up:
            self._app_events.append(AppEvent(outcome, kind=kind, partitions=given_up))
        else:
            outcome.complete(now_ms)
        return outcome
