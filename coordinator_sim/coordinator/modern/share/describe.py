"""ShareGroupDescribe: what share groups are made of, as far as it is committed.

Source: kafka 4.4, GroupCoordinatorService.shareGroupDescribe, ShareGroup.asDescribedGroup and
ShareGroupMember.asShareGroupDescribeMember.
"""

from collections.abc import Iterable, Mapping

from coordinator_sim.assignors.share_simple import SIMPLE_NAME
from coordinator_sim.coordinator.epoch_refusals import Refusal, group_of_type
from coordinator_sim.coordinator.modern.share.group import ShareGroup, ShareGroupMember
from coordinator_sim.coordinator.runtime import Partition, PartitionState, Runtime, partition_error
from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeResponse,
    TopicPartitions,
)


def undescribed_shares(names: Iterable[str], error: ErrorCode) -> ShareGroupDescribeResponse:
    """The answer that refuses each of some groups."""
    text = error_message(error)
    refused = tuple(
        DescribedGroup(group_id=name, error_code=error, error_message=text) for name in names
    )
    return ShareGroupDescribeResponse(groups=refused)


def described_share_group(
    runtime: Runtime, partition: Partition | None, group_id: str
) -> DescribedGroup:
    """The description of one share group, or the error that prevents it."""
    if partition is None or partition.state is not PartitionState.ACTIVE:
        refused = undescribed_shares((group_id,), partition_error(partition, runtime.profile))
        return refused.groups[0]
    position = partition.high_watermark
    group = group_of_type(ShareGroup, group_id, partition.group_as_of(group_id, position))
    if isinstance(group, Refusal):
        return DescribedGroup(group_id=group_id, error_code=group.error, error_message=group.text)
    epochs = group.epochs_as_of(position)
    return DescribedGroup(
        group_id=group_id,
        group_state=epochs.state.value,
        group_epoch=epochs.group_epoch,
        assignment_epoch=epochs.assignment_epoch,
        assignor_name=SIMPLE_NAME,
        members=tuple(_member(runtime, member) for _, member in group.members.items(position)),
    )


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
