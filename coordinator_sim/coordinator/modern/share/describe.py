"""ShareGroupDescribe: what share groups are made of, as far as it is committed.

Source: kafka 4.4, ShareGroup.asDescribedGroup and ShareGroupMember.asShareGroupDescribeMember.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from coordinator_sim.assignors.share_simple import SIMPLE_NAME
from coordinator_sim.coordinator.inspection import Description
from coordinator_sim.coordinator.modern.share.group import ShareGroup, ShareGroupMember
from coordinator_sim.coordinator.runtime import PartitionState, Runtime, partition_error
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.states import GroupProtocol
from coordinator_sim.messages.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeResponse,
    TopicPartitions,
)


def _fields(runtime: Runtime, _request: object, group: ShareGroup, position: int) -> dict[str, Any]:
    members = tuple(_member(runtime, member) for _, member in group.members.items(position))
    return {"assignor_name": SIMPLE_NAME, "members": members}


def initialized_partitions(
    runtime: Runtime, group_id: str
) -> Mapping[bytes, frozenset[int]] | ErrorCode:
    """The partitions, by topic id, whose state is kept for a share group.

    Returns:
        Nothing for a group without any, also where it is no share group; an error where its
        partition is not led here.

    Source: GroupMetadataManager.initializedShareGroupPartitions.
    """
    partition = runtime.partitions.get(runtime.partition_index(group_id))
    if partition is None or partition.state is not PartitionState.ACTIVE:
        return partition_error(partition, runtime.profile)
    state = partition.share_states.get(group_id)
    if state is None:
        return {}
    return {topic_id: kept.partitions for topic_id, kept in state.initialized.items()}


def _member(runtime: Runtime, member: ShareGroupMember) -> Member:
    """A member; topics that are gone are left out of what it has."""
    by_id = runtime.topics.by_id
    return Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.subscribed_topic_names,
        assignment=Assignment(
            tuple(
                TopicPartitions(topic_id, by_id[topic_id].name, partitions)
                for topic_id, partitions in member.assigned
                if topic_id in by_id
            )
        ),
    )


def _topics(group: DescribedGroup) -> Iterator[str]:
    for member in group.members:
        yield from (each.topic_name for each in member.assignment.topic_partitions)


SHARE_GROUPS: Final = Description(
    GroupProtocol.SHARE,
    ShareGroupDescribeResponse,
    DescribedGroup,
    ShareGroup,
    _fields,
    _topics,
    has_texts=True,
)
