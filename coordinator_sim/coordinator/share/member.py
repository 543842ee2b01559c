"""A member of a share group, as the log last said: a value that is replaced, never changed.

Source: kafka 4.4, group-coordinator/.../modern/share/ShareGroupMember.java.
"""

from collections.abc import Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.assignors.share_contract import Target, as_target, held
from coordinator_sim.coordinator.consumer.member import MemberState, member_state
from coordinator_sim.coordinator.epoch_group import JOIN_EPOCH
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


class ShareMember(Struct, frozen=True, kw_only=True, gc=False):
    """A member.

    Args:
        member_id: Its id.
        member_epoch: Of the target that it has; `JOIN_EPOCH` and `LEAVE_EPOCH` are of no target.
        previous_member_epoch: What it was before; a member whose last answer was lost repeats it.
        state: Always stable, but for what a record says.
        rack_id: Where it is.
        client_id: Of its last heartbeat.
        client_host: Of its last heartbeat.
        topic_names: Topics that it names, in the order of its set.
        assigned: What it has, in the order of its map.
    """

    member_id: str
    member_epoch: int = JOIN_EPOCH
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: tuple[str, ...] = ()
    assigned: Target = NO_TARGET

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether it has the target of that epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == epoch


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


def is_same_member(one: ShareMember, other: ShareMember) -> bool:
    """Whether nothing of a member has changed. Source: ShareGroupMember.equals."""
    if one == other:
        return True
    if set(one.topic_names) != set(other.topic_names) or not is_same(one.assigned, other.assigned):
        return False
    return replace(one, topic_names=(), assigned=()) == replace(other, topic_names=(), assigned=())


def with_metadata(member: ShareMember, value: ShareGroupMemberMetadataValue) -> ShareMember:
    """The member as its record says. Source: ShareGroupMember.Builder.updateWith."""
    return replace(
        member,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topic_names=set_order(value.subscribed_topic_names),
    )


def with_assignment(
    member: ShareMember, value: ShareGroupCurrentMemberAssignmentValue
) -> ShareMember:
    """The member with what its record says that it has. Source: as above."""
    return replace(
        member,
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=member_state(value.state),
        assigned=as_target(
            held(tuple((each.topic_id, each.partitions) for each in value.assigned_partitions))
        ),
    )
