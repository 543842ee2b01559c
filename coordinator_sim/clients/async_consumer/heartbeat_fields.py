"""The fields of a heartbeat: all when joining, afterwards only those that have changed.

Source: kafka 4.4, clients/.../consumer/internals/ConsumerHeartbeatRequestManager.java,
HeartbeatState.buildRequestData and its SentFields.
"""

from msgspec import Struct

from coordinator_sim.clients.async_consumer.states import LocalAssignment
from coordinator_sim.kafka.orders.iteration_order import java_hash_order, uuid_hash
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
