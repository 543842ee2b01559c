"""The records of a share group, made from its members and numbers.

Topics and partitions of members are in the order of Kafka's hash maps: the assignor's next outcome
depends on it.

Source: kafka 4.4, group-coordinator/.../GroupCoordinatorRecordHelpers.java.
"""

from typing import Final

from coordinator_sim.assignors.share_contract import Target
from coordinator_sim.coordinator.share.group import ShareGroup
from coordinator_sim.coordinator.share.member import ShareMember
from coordinator_sim.kafka.orders.iteration_order import java_string_key
from coordinator_sim.messages.records import LogRecord
from coordinator_sim.messages.share_group_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    ShareGroupValue,
    TopicPartition,
    TopicPartitions,
)

_VERSION: Final = 0


def _record(key: ShareGroupKey, value: ShareGroupValue) -> LogRecord:
    return LogRecord(key, value, _VERSION)


def _tombstone(key: ShareGroupKey) -> LogRecord:
    return LogRecord(key, None, _VERSION)


def member_record(group_id: str, member: ShareMember) -> LogRecord:
    """The record of a member's metadata: rack, client and subscribed topics."""
    value = ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.subscribed_topic_names, key=java_string_key)),
    )
    return _record(ShareGroupMemberMetadataKey(group_id, member.member_id), value)


def group_record(group_id: str, epoch: int, metadata_hash: int) -> LogRecord:
    """Another epoch of the group."""
    return _record(ShareGroupMetadataKey(group_id), ShareGroupMetadataValue(epoch, metadata_hash))


def target_record(group_id: str, member_id: str, target: Target) -> LogRecord:
    """What a member shall have."""
    value = ShareGroupTargetAssignmentMemberValue(
        tuple(TopicPartition(topic_id, partitions) for topic_id, partitions in target)
    )
    return _record(ShareGroupTargetAssignmentMemberKey(group_id, member_id), value)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> LogRecord:
    """For which epoch of the group the target was computed, and when."""
    value = ShareGroupTargetAssignmentMetadataValue(epoch, timestamp_ms)
    return _record(ShareGroupTargetAssignmentMetadataKey(group_id), value)


def assignment_record(group_id: str, member: ShareMember) -> LogRecord:
    """What a member has."""
    value = ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=int(member.state),
        assigned_partitions=tuple(
            TopicPartitions(topic_id, partitions) for topic_id, partitions in member.assigned
        ),
    )
    return _record(ShareGroupCurrentMemberAssignmentKey(group_id, member.member_id), value)


def state_record(group_id: str, value: ShareGroupStatePartitionMetadataValue) -> LogRecord:
    """Of which partitions the share coordinator keeps the group's state."""
    return _record(ShareGroupStatePartitionMetadataKey(group_id), value)


def member_tombstones(group_id: str, member_id: str) -> tuple[LogRecord, ...]:
    """Remove a member: a load wants what it has and shall have to go first."""
    return (
        _tombstone(ShareGroupCurrentMemberAssignmentKey(group_id, member_id)),
        _tombstone(ShareGroupTargetAssignmentMemberKey(group_id, member_id)),
        _tombstone(ShareGroupMemberMetadataKey(group_id, member_id)),
    )


def share_group_tombstones(group: ShareGroup) -> tuple[LogRecord, ...]:
    """Remove a group with all that is in it; only one without members is removed.

    Source: ShareGroup.createGroupTombstoneRecords.
    """
    group_id = group.group_id
    return (
        _tombstone(ShareGroupTargetAssignmentMetadataKey(group_id)),
        _tombstone(ShareGroupStatePartitionMetadataKey(group_id)),
        _tombstone(ShareGroupMetadataKey(group_id)),
    )
