"""Records of share groups applied to the groups of a partition: the one way they change.

Source: kafka 4.4, GroupMetadataManager.replay and getOrMaybeCreatePersistedShareGroup.
"""

from typing import assert_never

from msgspec.structs import replace

from coordinator_sim.assignors.share_contract import as_target, held
from coordinator_sim.coordinator.epoch_group import LEAVE_EPOCH
from coordinator_sim.coordinator.share.group import ShareGroup
from coordinator_sim.coordinator.share.member import NO_TARGET, with_assignment, with_metadata
from coordinator_sim.messages.share_group_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    ShareGroupValue,
)


def replay_share(group: ShareGroup, key: ShareGroupKey, value: ShareGroupValue | None) -> bool:
    """Apply one record; a tombstone of what is not there changes nothing.

    Returns:
        Whether the group is gone. What the share coordinator keeps for it stays.

    Raises:
        OperationAborted: the record contradicts the group, such as a tombstone of a member that
            still has an epoch. A broker that loads such a log gives the partition up.
    """
    match key:
        case ShareGroupMemberMetadataKey():
            _member(group, key.member_id, value)
        case ShareGroupMetadataKey():
            return _is_group_gone(group, value)
        case ShareGroupTargetAssignmentMemberKey():
            _target(group, key.member_id, value)
        case ShareGroupTargetAssignmentMetadataKey():
            if isinstance(value, ShareGroupTargetAssignmentMetadataValue):
                group.set_assignment_epoch(value.assignment_epoch, value.assignment_timestamp)
            else:
                group.replay_target_epoch_tombstone()
        case ShareGroupCurrentMemberAssignmentKey():
            _assignment(group, key.member_id, value)
        case ShareGroupStatePartitionMetadataKey():
            pass  # What the share coordinator keeps is no part of the group: `GroupTable`.
        case _:
            assert_never(key)
    return False


def _member(group: ShareGroup, member_id: str, value: ShareGroupValue | None) -> None:
    if isinstance(value, ShareGroupMemberMetadataValue):
        group.put_member(with_metadata(group.joined(member_id), value))
    else:
        group.replay_member_tombstone(member_id)


def _is_group_gone(group: ShareGroup, value: ShareGroupValue | None) -> bool:
    if isinstance(value, ShareGroupMetadataValue):
        group.set_group_epoch(value.epoch, value.metadata_hash)
        return False
    group.check_removable()
    return True


def _target(group: ShareGroup, member_id: str, value: ShareGroupValue | None) -> None:
    if isinstance(value, ShareGroupTargetAssignmentMemberValue):
        said = tuple((each.topic_id, each.partitions) for each in value.topic_partitions)
        group.targets.put(member_id, as_target(held(said)))
    else:
        group.targets.remove(member_id)


def _assignment(group: ShareGroup, member_id: str, value: ShareGroupValue | None) -> None:
    if isinstance(value, ShareGroupCurrentMemberAssignmentValue):
        group.put_member(with_assignment(group.joined(member_id), value))
        return
    known = group.members.get(member_id)
    if known is not None:
        left = replace(
            known,
            member_epoch=LEAVE_EPOCH,
            previous_member_epoch=LEAVE_EPOCH,
            assigned=NO_TARGET,
        )
        group.put_member(left)
