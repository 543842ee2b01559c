"""The records of a consumer group, made from its members and numbers.

Topic ids and partitions are in ascending order in every record, where Kafka has the order of its
hash maps. UNSPECIFIED: no client sees that order, and a load does not depend on it.

Source: kafka 4.4, group-coordinator/.../GroupCoordinatorRecordHelpers.java.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from coordinator_sim.coordinator.consumer.group import ConsumerGroup, Target
from coordinator_sim.coordinator.consumer.member import ConsumerMember, Epochs
from coordinator_sim.coordinator.consumer.subscription import ResolvedRegex
from coordinator_sim.kafka.orders.iteration_order import java_string_key
from coordinator_sim.messages.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    ConsumerGroupValue,
    TopicMetadata,
    TopicPartition,
    TopicPartitions,
)
from coordinator_sim.messages.records import LogRecord

_VERSION: Final = 0


def _record(key: ConsumerGroupKey, value: ConsumerGroupValue) -> LogRecord:
    return LogRecord(key, value, _VERSION)


def _tombstone(key: ConsumerGroupKey) -> LogRecord:
    return LogRecord(key, None, _VERSION)


def member_record(group_id: str, member: ConsumerMember) -> LogRecord:
    """Make the record of a member's metadata."""
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.subscribed_topic_names, key=java_string_key)),
        subscribed_topic_regex=member.subscribed_topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=member.classic,
    )
    return _record(ConsumerGroupMemberMetadataKey(group_id, member.member_id), value)


def group_record(group_id: str, epoch: int, metadata_hash: int) -> LogRecord:
    """Another epoch of the group."""
    value = ConsumerGroupMetadataValue(epoch, metadata_hash)
    return _record(ConsumerGroupMetadataKey(group_id), value)


def target_record(group_id: str, member_id: str, target: Target) -> LogRecord:
    """What a member shall have."""
    topics = tuple(TopicPartition(topic_id, target[topic_id]) for topic_id in sorted(target))
    value = ConsumerGroupTargetAssignmentMemberValue(topics)
    return _record(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), value)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> LogRecord:
    """For which epoch of the group the target was computed, and when."""
    value = ConsumerGroupTargetAssignmentMetadataValue(epoch, timestamp_ms)
    return _record(ConsumerGroupTargetAssignmentMetadataKey(group_id), value)


def assignment_record(group_id: str, member: ConsumerMember, *, with_epochs: bool) -> LogRecord:
    """What a member has.

    Args:
        group_id: The group.
        member: The member.
        with_epochs: Whether the epoch at which it got each partition is stored.
    """
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=int(member.state),
        assigned_partitions=_held(member.assigned, with_epochs=with_epochs),
        partitions_pending_revocation=_held(member.pending_revocation, with_epochs=with_epochs),
    )
    return _record(ConsumerGroupCurrentMemberAssignmentKey(group_id, member.member_id), value)


def _held(held: Epochs, *, with_epochs: bool) -> tuple[TopicPartitions, ...]:
    topics = []
    for topic_id in sorted(held):
        epochs = held[topic_id]
        partitions = tuple(sorted(epochs))
        stored = tuple(epochs[index] for index in partitions) if with_epochs else None
        topics.append(TopicPartitions(topic_id, partitions, stored))
    return tuple(topics)


def regex_record(group_id: str, regex: str, resolved: ResolvedRegex) -> LogRecord:
    """What an expression matched."""
    value = ConsumerGroupRegularExpressionValue(
        topics=tuple(sorted(resolved.topics, key=java_string_key)),
        version=resolved.version,
        timestamp=resolved.timestamp_ms,
    )
    return _record(ConsumerGroupRegularExpressionKey(group_id, regex), value)


def regex_tombstone(group_id: str, regex: str) -> LogRecord:
    """Make the tombstone of an expression that no member subscribes by."""
    return _tombstone(ConsumerGroupRegularExpressionKey(group_id, regex))


def topics_record(group_id: str, topics: tuple[TopicMetadata, ...]) -> LogRecord:
    """The topics of the group, in releases without a hash of them."""
    value = ConsumerGroupPartitionMetadataValue(topics)
    return _record(ConsumerGroupPartitionMetadataKey(group_id), value)


def topics_tombstone(group_id: str) -> LogRecord:
    """The topics of the group are stored as a hash now, or the group goes."""
    return _tombstone(ConsumerGroupPartitionMetadataKey(group_id))


def member_tombstones(group_id: str, member_id: str) -> tuple[LogRecord, ...]:
    """Remove a member: a load wants what it has and shall have to go first."""
    return (
        _tombstone(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id)),
        _tombstone(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id)),
        _tombstone(ConsumerGroupMemberMetadataKey(group_id, member_id)),
    )


def group_tombstones(
    group: ConsumerGroup, renamed: Mapping[str, str] | None = None
) -> tuple[LogRecord, ...]:
    """Remove a group with all that is in it.

    Args:
        group: As it is.
        renamed: Members that records of the same batch have put others in the place of.

    Source: ConsumerGroup.createGroupTombstoneRecords and
    createGroupTombstoneRecordsWithReplacedMember.
    """
    group_id = group.group_id
    names = renamed or {}
    member_ids = [names.get(each, each) for each in group.members.keys()]  # noqa: SIM118 - ordered
    regexes = group.resolved.keys()
    keys: Iterable[ConsumerGroupKey] = (
        *(ConsumerGroupCurrentMemberAssignmentKey(group_id, each) for each in member_ids),
        *(ConsumerGroupTargetAssignmentMemberKey(group_id, each) for each in member_ids),
        ConsumerGroupTargetAssignmentMetadataKey(group_id),
        *(ConsumerGroupMemberMetadataKey(group_id, each) for each in member_ids),
        *(ConsumerGroupRegularExpressionKey(group_id, each) for each in regexes),
        ConsumerGroupPartitionMetadataKey(group_id),
        ConsumerGroupMetadataKey(group_id),
    )
    return tuple(_tombstone(key) for key in keys)
