"""The records of a streams group, made from its members and numbers.

Source: kafka 4.4, group-coordinator/.../streams/StreamsCoordinatorRecordHelpers.java.
"""

from collections.abc import Iterable
from typing import Final

from coordinator_sim.coordinator.streams.group import StreamsGroup, StreamsGroupEpochs
from coordinator_sim.coordinator.streams.member import StreamsMember
from coordinator_sim.coordinator.streams.tasks import HeldTasks, Tasks, sorted_epochs, sorted_tasks
from coordinator_sim.kafka.orders.iteration_order import java_string_key
from coordinator_sim.messages.records import LogRecord
from coordinator_sim.messages.streams_group_records import (
    KeyValue,
    LastAssignmentConfig,
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
    TaskIds,
)

_VERSION: Final = 0


def _record(key: StreamsGroupKey, value: StreamsGroupValue) -> LogRecord:
    return LogRecord(key, value, _VERSION)


def _tombstone(key: StreamsGroupKey) -> LogRecord:
    return LogRecord(key, None, _VERSION)


def member_record(group_id: str, member: StreamsMember) -> LogRecord:
    """The record of a member's metadata: client, topology, process, endpoint and tags."""
    tags = member.client_tags
    value = StreamsGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id or "",
        user_endpoint=member.user_endpoint,
        client_tags=tuple(KeyValue(key, tags[key]) for key in sorted(tags, key=java_string_key)),
    )
    return _record(StreamsGroupMemberMetadataKey(group_id, member.member_id), value)


def group_record(group_id: str, epochs: StreamsGroupEpochs) -> LogRecord:
    """Another epoch of the group."""
    settings = epochs.settings
    value = StreamsGroupMetadataValue(
        epoch=epochs.group_epoch,
        metadata_hash=epochs.metadata_hash,
        validated_topology_epoch=epochs.validated_topology_epoch,
        last_assignment_configs=tuple(
            LastAssignmentConfig(key, settings[key])
            for key in sorted(settings, key=java_string_key)
        ),
    )
    return _record(StreamsGroupMetadataKey(group_id), value)


def topology_record(group_id: str, value: StreamsGroupTopologyValue) -> LogRecord:
    """The topology that the group runs."""
    return _record(StreamsGroupTopologyKey(group_id), value)


def target_record(group_id: str, member_id: str, target: Tasks) -> LogRecord:
    """What a member shall have."""
    value = StreamsGroupTargetAssignmentMemberValue(
        sorted_tasks(target.active), sorted_tasks(target.standby), sorted_tasks(target.warmup)
    )
    return _record(StreamsGroupTargetAssignmentMemberKey(group_id, member_id), value)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> LogRecord:
    """For which epoch of the group the target was computed, and when."""
    value = StreamsGroupTargetAssignmentMetadataValue(epoch, timestamp_ms)
    return _record(StreamsGroupTargetAssignmentMetadataKey(group_id), value)


def assignment_record(group_id: str, member: StreamsMember) -> LogRecord:
    """What a member has."""
    has, gives_up = _listed(member.assigned), _listed(member.pending_revocation)
    value = StreamsGroupCurrentMemberAssignmentValue(
        member.member_epoch, member.previous_member_epoch, int(member.state), *has, *gives_up
    )
    return _record(StreamsGroupCurrentMemberAssignmentKey(group_id, member.member_id), value)


def _listed(
    held: HeldTasks,
) -> tuple[tuple[TaskIds, ...], tuple[TaskIds, ...], tuple[TaskIds, ...]]:
    return (
        sorted_epochs(held.active, with_epochs=True),
        sorted_tasks(held.standby),
        sorted_tasks(held.warmup),
    )


def member_tombstones(group_id: str, member_id: str) -> tuple[LogRecord, ...]:
    """Remove a member: a load wants what it has and shall have to go first."""
    return (
        _tombstone(StreamsGroupCurrentMemberAssignmentKey(group_id, member_id)),
        _tombstone(StreamsGroupTargetAssignmentMemberKey(group_id, member_id)),
        _tombstone(StreamsGroupMemberMetadataKey(group_id, member_id)),
    )


def group_tombstones(group: StreamsGroup) -> tuple[LogRecord, ...]:
    """Remove a group with all that is in it.

    Source: StreamsGroup.createGroupTombstoneRecords.
    """
    group_id, member_ids = group.group_id, group.members.keys()
    keys: Iterable[StreamsGroupKey] = (
        *(StreamsGroupCurrentMemberAssignmentKey(group_id, each) for each in member_ids),
        *(StreamsGroupTargetAssignmentMemberKey(group_id, each) for each in member_ids),
        StreamsGroupTargetAssignmentMetadataKey(group_id),
        *(StreamsGroupMemberMetadataKey(group_id, each) for each in member_ids),
        StreamsGroupMetadataKey(group_id),
        StreamsGroupTopologyKey(group_id),
    )
    return tuple(_tombstone(key) for key in keys)
