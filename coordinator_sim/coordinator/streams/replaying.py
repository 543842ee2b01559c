"""Records of streams groups applied to the groups of a partition: the one way they change.

Used when a batch is appended, when it is taken back (applied, then undone by the timeline), and
when a log is loaded.

Source: kafka 4.4, GroupMetadataManager.replay and getOrMaybeCreatePersistedStreamsGroup.
"""

from typing import assert_never

from msgspec.structs import replace

from coordinator_sim.coordinator.epoch_group import LEAVE_EPOCH
from coordinator_sim.coordinator.streams.group import StreamsGroup
from coordinator_sim.coordinator.streams.member import (
    StreamsMember,
    with_assignment,
    with_metadata,
)
from coordinator_sim.coordinator.streams.tasks import NOTHING_HELD, Tasks, tasks_from
from coordinator_sim.coordinator.streams.topology import topology_from
from coordinator_sim.messages.streams_group_records import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
    StreamsGroupValue,
)


def replay_streams(
    group: StreamsGroup, key: StreamsGroupKey, value: StreamsGroupValue | None
) -> bool:
    """Apply one record; a tombstone of what is not there changes nothing.

    Returns:
        Whether the group is gone.

    Raises:
        OperationAborted: the record contradicts the group.
    """
    match key:
        case StreamsGroupMemberMetadataKey():
            _member(group, key.member_id, value)
        case StreamsGroupMetadataKey():
            return _is_group_gone(group, value)
        case StreamsGroupTargetAssignmentMemberKey():
            _target(group, key.member_id, value)
        case StreamsGroupTargetAssignmentMetadataKey():
            if isinstance(value, StreamsGroupTargetAssignmentMetadataValue):
                group.set_assignment_epoch(value.assignment_epoch, value.assignment_timestamp)
            else:
                group.replay_target_epoch_tombstone()
        case StreamsGroupCurrentMemberAssignmentKey():
            _assignment(group, key.member_id, value)
        case StreamsGroupTopologyKey():
            group.set_topology(
                topology_from(value) if isinstance(value, StreamsGroupTopologyValue) else None
            )
        case _:
            assert_never(key)
    return False


def _uninitialised(group: StreamsGroup, member_id: str) -> StreamsMember:
    known = group.members.get(member_id)
    return StreamsMember(member_id=member_id, process_id=None) if known is None else known


def _member(group: StreamsGroup, member_id: str, value: StreamsGroupValue | None) -> None:
    if isinstance(value, StreamsGroupMemberMetadataValue):
        group.put_member(with_metadata(_uninitialised(group, member_id), value))
    else:
        group.replay_member_tombstone(member_id)


def _is_group_gone(group: StreamsGroup, value: StreamsGroupValue | None) -> bool:
    if isinstance(value, StreamsGroupMetadataValue):
        settings = {each.key: each.value for each in value.last_assignment_configs or ()}
        group.set_group_epoch(
            replace(
                group.epochs,
                group_epoch=value.epoch,
                metadata_hash=value.metadata_hash,
                validated_topology_epoch=value.validated_topology_epoch,
                settings=settings,
            )
        )
        return False
    group.check_members_gone()
    group.check_target_epoch_gone()
    return True


def _target(group: StreamsGroup, member_id: str, value: StreamsGroupValue | None) -> None:
    if isinstance(value, StreamsGroupTargetAssignmentMemberValue):
        target = Tasks(
            tasks_from(value.active_tasks),
            tasks_from(value.standby_tasks),
            tasks_from(value.warmup_tasks),
        )
        group.targets.put(member_id, target)
    else:
        group.targets.remove(member_id)


def _assignment(group: StreamsGroup, member_id: str, value: StreamsGroupValue | None) -> None:
    if isinstance(value, StreamsGroupCurrentMemberAssignmentValue):
        group.put_member(with_assignment(_uninitialised(group, member_id), value))
        return
    known = group.members.get(member_id)
    if known is not None:
        left = replace(
            known,
            member_epoch=LEAVE_EPOCH,
            previous_member_epoch=LEAVE_EPOCH,
            assigned=NOTHING_HELD,
            pending_revocation=NOTHING_HELD,
        )
        group.put_member(left)
