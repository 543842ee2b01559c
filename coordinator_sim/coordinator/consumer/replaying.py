"""Records of consumer groups applied to the groups of a partition: the one way they change.

Used when a batch is appended, when it is taken back (applied, then undone by the timeline), and
when a log is loaded.

Source: kafka 4.4, GroupMetadataManager.replay and getOrMaybeCreatePersistedConsumerGroup.
"""

from typing import Protocol, assert_never

from msgspec.structs import replace

from coordinator_sim.coordinator.consumer.group import ConsumerGroup
from coordinator_sim.coordinator.consumer.member import (
    LEAVE_EPOCH,
    NONE_OWNED,
    ConsumerMember,
    with_assignment,
    with_metadata,
)
from coordinator_sim.coordinator.consumer.subscription import ResolvedRegex
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.consumer_records import (
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
from coordinator_sim.kafka.orders.iteration_order import java_string_key

_NO_EPOCH = -1


class HoldsGroups(Protocol):
    """Where consumer groups are kept; see `GroupTable`."""

    def persisted(self, group_id: str, *, create: bool) -> ConsumerGroup | None:
        """The group, made if there is none; None where it is not to be made."""
        ...

    def forget_group(self, group_id: str) -> None:
        """Remove the group."""
        ...


def replay(groups: HoldsGroups, key: ConsumerGroupKey, value: ConsumerGroupValue | None) -> None:
    """Apply one record; a tombstone of what is not there changes nothing.

    Raises:
        OperationAborted: the record contradicts what is known, such as a tombstone of a member
            that still has partitions. A broker that loads such a log gives the partition up.
    """
    group = groups.persisted(key.group_id, create=value is not None)
    if group is None:
        return
    match key:
        case ConsumerGroupMemberMetadataKey():
            _member(group, key.member_id, value)
        case ConsumerGroupMetadataKey():
            _group(groups, group, value)
        case ConsumerGroupPartitionMetadataKey():
            _topics(group, value)
        case ConsumerGroupTargetAssignmentMemberKey():
            _target(group, key.member_id, value)
        case ConsumerGroupTargetAssignmentMetadataKey():
            _target_epoch(group, value)
        case ConsumerGroupCurrentMemberAssignmentKey():
            _assignment(group, key.member_id, value)
        case ConsumerGroupRegularExpressionKey():
            _regex(group, key.regular_expression, value)
        case _:
            assert_never(key)


def _member(group: ConsumerGroup, member_id: str, value: ConsumerGroupValue | None) -> None:
    known = group.members.get(member_id)
    if isinstance(value, ConsumerGroupMemberMetadataValue):
        member = ConsumerMember(member_id=member_id) if known is None else known
        group.put_member(with_metadata(member, value))
        return
    if known is None:
        return
    if known.member_epoch != LEAVE_EPOCH:
        raise _contradiction(group, f"member {member_id} is removed while it has an epoch")
    if member_id in group.targets:
        raise _contradiction(group, f"member {member_id} is removed while it has a target")
    group.remove_member(member_id)


def _group(groups: HoldsGroups, group: ConsumerGroup, value: ConsumerGroupValue | None) -> None:
    if isinstance(value, ConsumerGroupMetadataValue):
        group.set_group_epoch(value.epoch, value.metadata_hash)
        return
    if group.members.entries:
        raise _contradiction(group, "the group is removed while it has members")
    if group.targets.entries:
        raise _contradiction(group, "the group is removed while it has targets")
    if group.heads.assignment_epoch != _NO_EPOCH:
        raise _contradiction(group, "the group is removed while its target has an epoch")
    groups.forget_group(group.group_id)


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
        group.put_target(member_id, target)
    else:
        group.remove_target(member_id)


def _target_epoch(group: ConsumerGroup, value: ConsumerGroupValue | None) -> None:
    if isinstance(value, ConsumerGroupTargetAssignmentMetadataValue):
        group.set_assignment_epoch(value.assignment_epoch, value.assignment_timestamp)
        return
    if group.targets.entries:
        raise _contradiction(group, "the target is removed while members have targets")
    group.set_assignment_epoch(_NO_EPOCH, 0)


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


def _contradiction(group: ConsumerGroup, what: str) -> OperationAborted:
    return OperationAborted(f"group {group.group_id}: {what}")
