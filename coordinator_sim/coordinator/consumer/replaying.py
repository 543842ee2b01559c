"""Records of consumer groups applied to the groups of a partition: the one way they change.

Used when a batch is appended, when it is taken back (applied, then undone by the timeline), and
when a log is loaded.

Source: kafka 4.4, GroupMetadataManager.replay and getOrMaybeCreatePersistedConsumerGroup.
"""

from typing import assert_never

from msgspec.structs import replace

from coordinator_sim.coordinator.consumer.group import ConsumerGroup
from coordinator_sim.coordinator.consumer.member import (
    NONE_OWNED,
    ConsumerMember,
    with_assignment,
    with_metadata,
)
from coordinator_sim.coordinator.consumer.subscription import ResolvedRegex
from coordinator_sim.coordinator.epoch_group import LEAVE_EPOCH
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
)


def replay_consumer(
    group: ConsumerGroup, key: ConsumerGroupKey, value: ConsumerGroupValue | None
) -> bool:
    """Apply one record; a tombstone of what is not there changes nothing.

    Returns:
        Whether the group is gone.

    Raises:
        OperationAborted: the record contradicts the group, such as a tombstone of a member that
            still has partitions. A broker that loads such a log gives the partition up.
    """
    match key:
        case ConsumerGroupMemberMetadataKey():
            _member(group, key.member_id, value)
        case ConsumerGroupMetadataKey():
            return _is_group_gone(group, value)
        case ConsumerGroupPartitionMetadataKey():
            _topics(group, value)
        case ConsumerGroupTargetAssignmentMemberKey():
            _target(group, key.member_id, value)
        case ConsumerGroupTargetAssignmentMetadataKey():
            if isinstance(value, ConsumerGroupTargetAssignmentMetadataValue):
                group.set_assignment_epoch(value.assignment_epoch, value.assignment_timestamp)
            else:
                group.replay_target_epoch_tombstone()
        case ConsumerGroupCurrentMemberAssignmentKey():
            _assignment(group, key.member_id, value)
        case ConsumerGroupRegularExpressionKey():
            _regex(group, key.regular_expression, value)
        case _:
            assert_never(key)
    return False


def _member(group: ConsumerGroup, member_id: str, value: ConsumerGroupValue | None) -> None:
    if isinstance(value, ConsumerGroupMemberMetadataValue):
        known = group.members.get(member_id)
        member = ConsumerMember(member_id=member_id) if known is None else known
        group.put_member(with_metadata(member, value))
    else:
        group.replay_member_tombstone(member_id)


def _is_group_gone(group: ConsumerGroup, value: ConsumerGroupValue | None) -> bool:
    if isinstance(value, ConsumerGroupMetadataValue):
        group.set_group_epoch(value.epoch, value.metadata_hash)
        return False
    group.check_removable()
    return True


def _topics(group: ConsumerGroup, value: ConsumerGroupValue | None) -> None:
    if isinstance(value, ConsumerGroupPartitionMetadataValue):
        ordered = sorted(value.topics, key=lambda each: java_string_key(each.topic_name))
        # Records of the first releases have racks, which do not count.
        group.set_topics(tuple(replace(each, partition_metadata=()) for each in ordered))
    else:
        group.set_topics(None)


def _target(group: ConsumerGroup, member_id: str, value: ConsumerGroupValue | None) -> None:
    if isinstance(value, ConsumerGroupTargetAssignmentMemberValue):
        target = {each.topic_id: tuple(sorted(each.partitions)) for each in value.topic_partitions}
        group.targets.put(member_id, target)
    else:
        group.targets.remove(member_id)


def _assignment(group: ConsumerGroup, member_id: str, value: ConsumerGroupValue | None) -> None:
    known = group.members.get(member_id)
    if isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
        member = ConsumerMember(member_id=member_id) if known is None else known
        group.put_member(with_assignment(member, value))
    elif known is not None:
        left = replace(
            known,
            member_epoch=LEAVE_EPOCH,
            previous_member_epoch=LEAVE_EPOCH,
            assigned=NONE_OWNED,
            pending_revocation=NONE_OWNED,
        )
        group.put_member(left)


def _regex(group: ConsumerGroup, regex: str, value: ConsumerGroupValue | None) -> None:
    if isinstance(value, ConsumerGroupRegularExpressionValue):
        resolved = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
        group.resolve(regex, resolved)
    else:
        group.resolve(regex, None)
