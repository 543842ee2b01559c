"""A member of a share group, as the log last said: a value that is replaced, never changed.

Source: kafka 4.4, group-coordinator/.../modern/share/ShareGroupMember.java.
"""

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from coordinator_sim.assignors.share_contract import Target, as_target, held
from coordinator_sim.coordinator.modern.member import MemberState, ModernGroupMember
from coordinator_sim.kafka.orders.iteration_order import (
    java_copy_capacity,
    java_hash_order,
    uuid_hash,
)
from coordinator_sim.kafka.orders.java_map import JavaHashMap, sized_capacity
from coordinator_sim.messages.share_group_records import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
)

NO_TARGET: Target = ()
"""No partitions."""


class ShareGroupMember(ModernGroupMember, frozen=True, kw_only=True, gc=False):
    """A member of a share group.

    Args:
        subscribed_topic_names: Topics that it names, in the order of its set.
        assigned: What it has, in the order of its map.
    """

    subscribed_topic_names: tuple[str, ...] = ()
    assigned: Target = NO_TARGET


def set_order(names: Sequence[str]) -> tuple[str, ...]:
    """The names in the order of a HashSet made of the list."""
    return tuple(java_hash_order(names, java_copy_capacity(len(names))))


def is_same(one: Target, other: Target) -> bool:
    """Whether two targets have the same partitions; their order is ignored."""
    return one == other or _as_sets(one) == _as_sets(other)


def without_topics(target: Target, topic_ids: Collection[bytes]) -> Target:
    """The target without some topics, in the order of a copy of its map.

    Source: ShareGroupAssignmentBuilder.filterAssignedPartitions.
    """
    if not topic_ids:
        return target
    capacity = sized_capacity(int(len(target) / 0.75 + 1))
    copied = JavaHashMap(uuid_hash, target, capacity=capacity)
    return tuple((topic_id, each) for topic_id, each in copied.items() if topic_id not in topic_ids)


def _as_sets(target: Target) -> dict[bytes, frozenset[int]]:
    return {topic_id: frozenset(partitions) for topic_id, partitions in target}


def is_same_member(one: ShareGroupMember, other: ShareGroupMember) -> bool:
    """Whether nothing of a member has changed. Source: ShareGroupMember.equals."""
    if one == other:
        return True
    names = set(one.subscribed_topic_names), set(other.subscribed_topic_names)
    if names[0] != names[1] or not is_same(one.assigned, other.assigned):
        return False
    like = replace(other, subscribed_topic_names=one.subscribed_topic_names, assigned=one.assigned)
    return one == like


def with_metadata(
    member: ShareGroupMember, value: ShareGroupMemberMetadataValue
) -> ShareGroupMember:
    """The member as its record says. Source: ShareGroupMember.Builder.updateWith."""
    return replace(
        member,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topic_names=set_order(value.subscribed_topic_names),
    )


def with_assignment(
    member: ShareGroupMember, value: ShareGroupCurrentMemberAssignmentValue
) -> ShareGroupMember:
    """The member with what its record says that it has. Source: as above."""
    return replace(
        member,
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=MemberState(value.state),
        assigned=as_target(
            held(tuple((each.topic_id, each.partitions) for each in value.assigned_partitions))
        ),
    )
