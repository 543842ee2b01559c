"""A member of a consumer group, as the log last said: a value that is replaced, never changed.

Source: kafka 4.4, group-coordinator/.../modern/consumer/ConsumerGroupMember.java.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import field
from msgspec.structs import replace

from coordinator_sim.coordinator.modern.member import MemberState, ModernGroupMember
from coordinator_sim.messages.consumer_group_records import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    TopicPartitions,
)

Epochs = Mapping[bytes, Mapping[int, int]]
"""Partitions by topic id, each with the epoch at which the member got it."""
Owned = tuple[tuple[bytes, tuple[int, ...]], ...]
"""Partitions that a member reports."""

NONE_OWNED: Final[Epochs] = {}
"""No partitions: what a member has before a record tells it; such a record makes another map."""


class ConsumerGroupMember(ModernGroupMember, frozen=True, kw_only=True, gc=False):
    """A member of a consumer group.

    Args:
        subscribed_topic_names: Topics that it named.
        subscribed_topic_regex: Expression for more topics; empty or None for none.
        server_assignor: The assignor that it would like.
        assigned: What it has and may use.
        pending_revocation: What it has and must give up.
        classic: What a member of the classic protocol has beside; None for others.
    """

    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str | None = ""
    server_assignor: str | None = None
    assigned: Epochs = field(default_factory=lambda: NONE_OWNED)
    pending_revocation: Epochs = NONE_OWNED
    classic: ClassicMemberMetadata | None = None

    @property
    def uses_classic_protocol(self) -> bool:
        """Whether it joins by JoinGroup."""
        return self.classic is not None

    @property
    def is_revoking(self) -> bool:
        """Whether it has partitions that it must give up."""
        return self.state is MemberState.UNREVOKED_PARTITIONS

    def protocol_names(self) -> tuple[str, ...]:
        """The protocols that a classic member supports, as it prefers them; none of others."""
        classic = self.classic
        return () if classic is None else tuple([each.name for each in classic.supported_protocols])


def with_metadata(
    member: ConsumerGroupMember, value: ConsumerGroupMemberMetadataValue
) -> ConsumerGroupMember:
    """The member as its record says. Source: ConsumerGroupMember.Builder.updateWith."""
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topic_names=frozenset(value.subscribed_topic_names),
        subscribed_topic_regex=value.subscribed_topic_regex,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        classic=value.classic_member_metadata,
    )


def with_assignment(
    member: ConsumerGroupMember, value: ConsumerGroupCurrentMemberAssignmentValue
) -> ConsumerGroupMember:
    """The member with what its record says that it has. Source: as above."""
    return replace(
        member,
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=MemberState(value.state),
        assigned=_epochs(value.assigned_partitions, value.member_epoch),
        pending_revocation=_epochs(value.partitions_pending_revocation, value.member_epoch),
    )


def _epochs(topics: Iterable[TopicPartitions], member_epoch: int) -> Epochs:
    """Partitions with their epochs; where the record has none, the member's own.

    Source: Utils.assignmentFromTopicPartitions.
    """
    usual = max(member_epoch, 0)
    found: dict[bytes, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            found[topic.topic_id] = dict.fromkeys(topic.partitions, usual)
        else:
            found[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return found


def owns_any(owned: Owned | None, partitions: Epochs) -> bool:
    """Whether a member that reports these still has some of the partitions.

    A member that reports nothing at all says that it has what it had.

    Source: CurrentAssignmentBuilder.ownsRevokedPartitions.
    """
    if owned is None:
        return True
    return any(
        index in held
        for topic_id, indexes in owned
        if (held := partitions.get(topic_id)) is not None
        for index in indexes
    )


def is_subset(owned: Owned | None, partitions: Epochs) -> bool:
    """Whether a member reports no more than these. Source: GroupMetadataManager.isSubset."""
    if owned is None:
        return False
    for topic_id, indexes in owned:
        held = partitions.get(topic_id)
        if held is None or any(index not in held for index in indexes):
            return False
    return True
