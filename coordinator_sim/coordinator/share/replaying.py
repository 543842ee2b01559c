"""Records of share groups applied to the groups of a partition: the one way they change.

Source: kafka 4.4, GroupMetadataManager.replay and getOrMaybeCreatePersistedShareGroup.
"""

from typing import Protocol, assert_never

from msgspec.structs import replace

from coordinator_sim.assignors.share_contract import as_target, held
from coordinator_sim.coordinator.consumer.member import LEAVE_EPOCH
from coordinator_sim.coordinator.share.group import ShareGroup
from coordinator_sim.coordinator.share.member import NO_TARGET, with_assignment, with_metadata
from coordinator_sim.coordinator.share.state import ShareState, state_of
from coordinator_sim.coordinator.timeline import TimelineTable
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.share_records import (
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
)

_NO_EPOCH = -1


class HoldsShareGroups(Protocol):
    """Where share groups are kept; see `GroupTable`."""

    @property
    def share_states(self) -> TimelineTable[str, ShareState]:
        """What the share coordinator keeps, by group; a group's tombstone leaves it."""
        ...

    def persisted_share(self, group_id: str, *, create: bool) -> ShareGroup | None:
        """The group, made if there is none; None where it is not to be made."""
        ...

    def forget_group(self, group_id: str) -> None:
        """Remove the group."""
        ...

    def present_ms(self) -> int:
        """The present, for stamps."""
        ...


def replay_share(
    groups: HoldsShareGroups, key: ShareGroupKey, value: ShareGroupValue | None
) -> None:
    """Apply one record; a tombstone of what is not there changes nothing.

    Raises:
        OperationAborted: the record contradicts what is known, such as a tombstone of a member
            that still has an epoch. A broker that loads such a log gives the partition up.
    """
    group = groups.persisted_share(key.group_id, create=value is not None)
    if isinstance(key, ShareGroupStatePartitionMetadataKey):
        _state(groups, key.group_id, value)
        return
    if group is None:
        return
    match key:
        case ShareGroupMemberMetadataKey():
            _member(group, key.member_id, value)
        case ShareGroupMetadataKey():
            _group(groups, group, value)
        case ShareGroupTargetAssignmentMemberKey():
            _target(group, key.member_id, value)
        case ShareGroupTargetAssignmentMetadataKey():
            _target_epoch(group, value)
        case ShareGroupCurrentMemberAssignmentKey():
            _assignment(group, key.member_id, value)
        case _:
            assert_never(key)


def _state(groups: HoldsShareGroups, group_id: str, value: ShareGroupValue | None) -> None:
    if isinstance(value, ShareGroupStatePartitionMetadataValue):
        groups.share_states.put(group_id, state_of(value, groups.present_ms()))
    else:
        groups.share_states.remove(group_id)


def _member(group: ShareGroup, member_id: str, value: ShareGroupValue | None) -> None:
    if isinstance(value, ShareGroupMemberMetadataValue):
        group.put_member(with_metadata(group.joined(member_id), value))
        return
    known = group.members.get(member_id)
    if known is None:
        return
    if known.member_epoch != LEAVE_EPOCH:
        raise _contradiction(group, f"member {member_id} is removed while it has an epoch")
    if member_id in group.targets:
        raise _contradiction(group, f"member {member_id} is removed while it has a target")
    group.remove_member(member_id)


def _group(groups: HoldsShareGroups, group: ShareGroup, value: ShareGroupValue | None) -> None:
    if isinstance(value, ShareGroupMetadataValue):
        group.set_group_epoch(value.epoch, value.metadata_hash)
        return
    if group.members.entries:
        raise _contradiction(group, "the group is removed while it has members")
    if group.targets.entries:
        raise _contradiction(group, "the group is removed while it has targets")
    if group.heads.assignment_epoch != _NO_EPOCH:
        raise _contradiction(group, "the group is removed while its target has an epoch")
    groups.forget_group(group.group_id)


def _target(group: ShareGroup, member_id: str, value: ShareGroupValue | None) -> None:
    if isinstance(value, ShareGroupTargetAssignmentMemberValue):
        said = tuple((each.topic_id, each.partitions) for each in value.topic_partitions)
        group.put_target(member_id, as_target(held(said)))
    else:
        group.remove_target(member_id)


def _target_epoch(group: ShareGroup, value: ShareGroupValue | None) -> None:
    if isinstance(value, ShareGroupTargetAssignmentMetadataValue):
        group.set_assignment_epoch(value.assignment_epoch, value.assignment_timestamp)
        return
    if group.targets.entries:
        raise _contradiction(group, "the target is removed while members have targets")
    group.set_assignment_epoch(_NO_EPOCH, 0)


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


def _contradiction(group: ShareGroup, what: str) -> OperationAborted:
    return OperationAborted(f"group {group.group_id}: {what}")
