"""Steps common to all client-side assignors: orders, topics and racks.

Source: kafka trunk, clients/.../consumer/internals/AbstractPartitionAssignor.java (assign,
MemberInfo.compareTo, useRackAwareAssignment).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from coordinator_sim.assignors.contract import AssignorMember, TopicRacks
from coordinator_sim.kafka.orders.iteration_order import java_hash_order, java_string_key
from coordinator_sim.kafka.resources import TopicPartition

V = TypeVar("V")


def members_in_map_order(members: Sequence[AssignorMember]) -> list[AssignorMember]:
    """Return the members in the order of a HashMap filled in JoinGroup order."""
    by_id = {member.member_id: member for member in members}
    return [by_id[member_id] for member_id in java_hash_order(by_id)]


def member_sort_key(member: AssignorMember) -> tuple[bool, bytes]:
    """Sort key that orders static members first, by instance id, then dynamic ones by member id.

    Source: AbstractPartitionAssignor.MemberInfo.compareTo.
    """
    instance_id = member.group_instance_id
    if instance_id is not None:
        return False, java_string_key(instance_id)
    return True, java_string_key(member.member_id)


def subscribed_topics(
    topics: TopicRacks, members: Sequence[AssignorMember]
) -> dict[str, Sequence[tuple[str, ...]]]:
    """Return the topics that some member subscribes to and that have partitions, in map order.

    Args:
        topics: Topics in the metadata; topics absent or without partitions are skipped.
        members: Members in map order.
    """
    wanted = [topic for member in members for topic in member.subscription.topics]
    known = [topic for topic in java_hash_order(wanted) if topics.get(topic)]
    return {topic: topics[topic] for topic in java_hash_order(known)}


def member_racks(members: Iterable[AssignorMember]) -> dict[str, str]:
    """Return member id -> rack, of the members that have one; an empty rack is none."""
    return {
        member.member_id: member.subscription.rack_id
        for member in members
        if member.subscription.rack_id
    }


def is_rack_aware(
    member_rack_ids: Iterable[str], partition_racks: Sequence[frozenset[str]]
) -> bool:
    """Whether racks can matter: some match, and some partitions lack some racks.

    Source: AbstractPartitionAssignor.useRackAwareAssignment.
    """
    all_racks = frozenset[str]().union(*partition_racks)
    if all_racks.isdisjoint(member_rack_ids):
        return False
    return any(racks != all_racks for racks in partition_racks)


def topic_partitions(
    topics: Iterable[str], counts: Mapping[str, Sequence[V]]
) -> list[TopicPartition]:
    """Return the partitions of the topics, ascending within a topic, topics in the order given."""
    return [
        TopicPartition(topic, partition)
        for topic in topics
        for partition in range(len(counts[topic]))
    ]
