"""Records of streams groups applied to the groups of a partition: the one way they change.

Used when a batch is appended, when it is taken back (applied, then undone by the timeline), and
when a log is loaded.

Source: kafka 4.4, GroupMetadataManager.replay and getOrMaybeCreatePersistedStreamsGroup.
"""

from typing import Protocol, assert_never

from msgspec.structs import replace

from coordinator_sim.coordinator.consumer.member import LEAVE_EPOCH
from coordinator_sim.coordinator.streams.group import StreamsGroup
from coordinator_sim.coordinator.streams.member import (
    StreamsMember,
    with_assignment,
    with_metadata,
)
from coordinator_sim.coordinator.streams.tasks import NOTHING_HELD, Tasks, tasks_from
from coordinator_sim.coordinator.streams.topology import topology_from
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.streams_records import (
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

_NO_EPOCH = -1


class HoldsStreamsGroups(Protocol):
    """Where streams groups are kept; see `GroupTable`."""

    def persisted_streams(self, group_id: str, *, create: bool) -> StreamsGroup | None:
        """The group, made if there is none; None where it is not to be made."""
        ...

    def forget_group(self, group_id: str) -> None:
        """Remove a group."""
        ...


def replay_streams(
    groups: HoldsStreamsGroups, key: StreamsGroupKey, value: StreamsGroupValue | None
) -> None:
    """Apply one record.

    Raises:
        OperationAborted: it contradicts what the group says of itself.
    """
    group = groups.persisted_streams(key.group_id, create=value is not None)
    if group is None:
        return
    match key:
        case StreamsGroupMemberMetadataKey():
            _member(group, key.member_id, value)
        case StreamsGroupMetadataKey():
            _group(groups, group, value)
        case StreamsGroupTargetAssignmentMemberKey():
            _target(group, key.member_id, value)
        case StreamsGroupTargetAssignmentMetadataKey():
            _target_epoch(group, value)
        case StreamsGroupCurrentMemberAssignmentKey():
            _assignment(group, key.member_id, value)
        case StreamsGroupTopologyKey():
            group.set_topology(
                topology_from(value) if isinstance(value, StreamsGroupTopologyValue) else None
            )
        case _:
            assert_never(key)


def _uninitialised(group: StreamsGroup, member_id: str) -> StreamsMember:
    known = group.members.get(member_id)
    return StreamsMember(member_id=member_id, process_id=None) if known is None else known


def _member(group: StreamsGroup, member_id: str, value: StreamsGroupValue | None) -> None:
    if isinstance(value, StreamsGroupMemberMetadataValue):
        group.put_member(with_metadata(_uninitialised(group, member_id), value))
        return
    known = group.members.get(member_id)
    if known is None:
        return
    if known.member_epoch != LEAVE_EPOCH:
        raise _contradiction(group, f"member {member_id} is removed while it has an epoch")
    if member_id in group.targets:
        raise _contradiction(group, f"member {member_id} is removed while it has a target")
    group.remove_member(member_id)


def _group(
    groups: HoldsStreamsGroups, group: StreamsGroup, value: StreamsGroupValue | None
) -> None:
    if isinstance(value, StreamsGroupMetadataValue):
        settings = {each.key: each.value for each in value.last_assignment_configs or ()}
        group.set_group_epoch(
            replace(
                group.heads,
                group_epoch=value.epoch,
                metadata_hash=value.metadata_hash,
                validated_topology_epoch=value.validated_topology_epoch,
                settings=settings,
            )
        )
        return
    if group.members.entries:
        raise _contradiction(group, "the group is removed while it has members")
    if group.heads.assignment_epoch != _NO_EPOCH:
        raise _contradiction(group, "the group is removed while its target has an epoch")
    groups.forget_group(group.group_id)


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


def _target_epoch(group: StreamsGroup, value: StreamsGroupValue | None) -> None:
    if isinstance(value, StreamsGroupTargetAssignmentMetadataValue):
        group.set_assignment_epoch(value.assignment_epoch, value.assignment_timestamp)
        return
    if group.targets.entries:
        raise _contradiction(group, "the target is removed while members have targets")
    group.set_assignment_epoch(_NO_EPOCH, 0)


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


def _contradiction(group: StreamsGroup, what: str) -> OperationAborted:
    return OperationAborted(f"group {group.group_id}: {what}")
