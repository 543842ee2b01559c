"""The answer to a heartbeat of a streams group: tasks, endpoints and what is the matter.

Source: kafka 4.4, GroupMetadataManager.streamsGroupHeartbeat and maybeSetTopologyStaleStatus;
streams/topics/EndpointToPartitionsManager.java and StreamsGroup.buildEndpointToPartitions.
"""

import re
from typing import Final

from msgspec import Struct

from coordinator_sim.coordinator.epoch_group import JOIN_EPOCH
from coordinator_sim.coordinator.epoch_members import Found
from coordinator_sim.coordinator.runtime import Runtime
from coordinator_sim.coordinator.streams.group import StreamsGroup
from coordinator_sim.coordinator.streams.member import StreamsGroupMember
from coordinator_sim.coordinator.streams.tasks import TaskSet, numbers_of, sorted_tasks, united
from coordinator_sim.coordinator.streams.topology import (
    ConfiguredSubtopology,
    ConfiguredTopology,
)
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.states import StreamsStatus
from coordinator_sim.messages.streams_group_heartbeat import (
    EndpointToPartitions,
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsGroupHeartbeatResponseEndpoint,
    StreamsGroupHeartbeatResponseTaskIds,
    TopicPartition,
)

_TAGS_VERSION: Final = 1
"""First version that tells of missing tags."""
_SEPARATOR: Final = re.compile(r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*")


class AnsweredHeartbeat(Struct, frozen=True, kw_only=True):
    """A heartbeat whose step is taken.

    Args:
        request: The heartbeat.
        api_version: Of the request.
        group: As it is.
        found: The member as it was.
        updated: The member with what the heartbeat says of it.
        after: The member after its step.
        configured: The topology with the topics that there are.
        delay: Why there is no target of the group's epoch, in Kafka's words; None if there is.
        is_stored: Whether the group is in its partition's table.
    """

    request: StreamsGroupHeartbeatRequest
    api_version: int
    group: StreamsGroup
    found: Found[StreamsGroupMember]
    updated: StreamsGroupMember
    after: StreamsGroupMember
    configured: ConfiguredTopology
    delay: str | None
    is_stored: bool

    @property
    def joins(self) -> bool:
        """Whether the member joins."""
        return self.request.member_epoch == JOIN_EPOCH

    @property
    def has_other_tasks(self) -> bool:
        """Whether the step gave the member other tasks, or the same since another epoch."""
        return self.found.member.assigned != self.after.assigned


def heartbeat_response(
    runtime: Runtime, heartbeat: AnsweredHeartbeat
) -> StreamsGroupHeartbeatResponse:
    """Answer a heartbeat; the endpoints of the group may have another epoch then.

    Raises:
        OperationAborted: the endpoints cannot be told.
    """
    config, after = runtime.config_of(heartbeat.group.group_id), heartbeat.after
    takes_offsets = runtime.profile.streams_takes_offsets
    endpoints = _endpoints(runtime, heartbeat)
    is_told = heartbeat.joins or heartbeat.has_other_tasks
    return StreamsGroupHeartbeatResponse(
        member_id=after.member_id,
        member_epoch=after.member_epoch,
        heartbeat_interval_ms=config.group_streams_heartbeat_interval_ms,
        task_offset_interval_ms=(
            config.group_streams_task_offset_interval_ms if takes_offsets else 0
        ),
        acceptable_recovery_lag=config.group_streams_acceptable_recovery_lag,
        status=_statuses(runtime, heartbeat),
        active_tasks=_listed(numbers_of(after.assigned.active)) if is_told else None,
        standby_tasks=_listed(after.assigned.standby) if is_told else None,
        warmup_tasks=_listed(after.assigned.warmup) if is_told else None,
        endpoint_information_epoch=heartbeat.group.endpoint_epoch if heartbeat.is_stored else 0,
        partitions_by_user_endpoint=endpoints,
    )


def _endpoints(
    runtime: Runtime, heartbeat: AnsweredHeartbeat
) -> tuple[EndpointToPartitions, ...] | None:
    """The endpoints of the group, for a member that does not know of them yet."""
    group, found, after = heartbeat.group, heartbeat.found, heartbeat.after
    is_told = heartbeat.joins or heartbeat.has_other_tasks
    has_endpoint = after.user_endpoint is not None
    if runtime.profile.streams_join_says_endpoint:
        has_moved = found.member.user_endpoint != after.user_endpoint
        if is_told or has_moved or found.replaced_id is not None:
            group.endpoints.pop(after.member_id, None)
            group.endpoints.pop(found.replaced_id or "", None)
        group.endpoint_epoch += has_moved or (heartbeat.has_other_tasks and has_endpoint)
    elif is_told:
        group.endpoints.pop(after.member_id, None)
        group.endpoint_epoch += has_endpoint
    if group.endpoint_epoch == heartbeat.request.endpoint_information_epoch:
        return None
    return _endpoints_of(runtime, group, after, found.replaced_id)


def _endpoints_of(
    runtime: Runtime, group: StreamsGroup, updated: StreamsGroupMember, replaced_id: str | None
) -> tuple[EndpointToPartitions, ...]:
    """The endpoints of all members that have one; the one whose heartbeat it is comes last.

    Raises:
        OperationAborted: a topic is gone, or the topology could not be configured.
    """
    skipped = (updated.member_id, replaced_id)
    members = [member for name, member in group.members.items() if name not in skipped]
    listed = []
    for member in (*members, updated):
        if member.user_endpoint is None:
            continue
        known = group.endpoints.get(member.member_id)
        if known is None:
            known = group.endpoints[member.member_id] = _endpoint(runtime, group, member)
        listed.append(known)
    return tuple(listed)


def _endpoint(
    runtime: Runtime, group: StreamsGroup, member: StreamsGroupMember
) -> EndpointToPartitions:
    configured = group.configured()
    parts = None if configured is None else configured.subtopologies
    endpoint = member.user_endpoint
    if parts is None or endpoint is None:
        raise OperationAborted(f"group {group.group_id}: no configured topology to ask")
    held = member.assigned
    copies = held.standby
    if runtime.profile.streams_tells_exact_partitions:
        copies = united(held.standby, held.warmup)
    return EndpointToPartitions(
        user_endpoint=StreamsGroupHeartbeatResponseEndpoint(endpoint.host, endpoint.port),
        active_partitions=_endpoint_partitions(runtime, numbers_of(held.active), parts),
        standby_partitions=_endpoint_partitions(runtime, copies, parts),
    )


def _endpoint_partitions(
    runtime: Runtime, tasks: TaskSet, parts: dict[str, ConfiguredSubtopology]
) -> tuple[TopicPartition, ...]:
    """The source partitions of tasks.

    QUIRK: up to 4.3 a topic with fewer partitions than there are tasks is told with as many
    numbers as it has, whichever they are.

    Source: topicPartitionListForTask.
    """
    listed = []
    for name, numbers in tasks.items():
        part = parts.get(name)
        if part is None:
            raise OperationAborted(f"subtopology {name} is not configured")
        for topic in dict.fromkeys((*part.source_topics, *part.repartition_source_topics)):
            known = runtime.topics.by_name.get(topic)
            if known is None:
                raise OperationAborted(f"topic {topic} is gone")
            count, ordered = known.partition_count, sorted(numbers)
            if runtime.profile.streams_tells_exact_partitions:
                partitions = [number for number in ordered if number < count]
                if not partitions:
                    continue
            else:
                partitions = ordered[:count]
            listed.append(TopicPartition(topic, tuple(partitions)))
    return tuple(listed)


def _listed(tasks: TaskSet) -> tuple[StreamsGroupHeartbeatResponseTaskIds, ...]:
    return tuple(
        StreamsGroupHeartbeatResponseTaskIds(each.subtopology_id, each.partitions)
        for each in sorted_tasks(tasks)
    )


def _statuses(runtime: Runtime, heartbeat: AnsweredHeartbeat) -> tuple[Status, ...]:
    statuses: list[tuple[StreamsStatus, str]] = []
    group, own_epoch = heartbeat.group, heartbeat.updated.topology_epoch
    topology, trouble = group.epochs.topology, heartbeat.configured.trouble
    if topology is not None and own_epoch < topology.epoch:
        text = (
            f"The member's topology epoch {own_epoch} is behind the group's topology epoch "
            f"{topology.epoch}."
        )
        statuses.append((StreamsStatus.STALE_TOPOLOGY, text))
    if heartbeat.delay is not None:
        statuses.append((StreamsStatus.ASSIGNMENT_DELAYED, heartbeat.delay))
    if trouble is not None:
        statuses.append((trouble.code, trouble.text))
    if group.shutdown_member_id is not None:
        text = (
            f"Streams group member {group.shutdown_member_id} encountered a fatal error and "
            "requested a shutdown for the entire application."
        )
        statuses.append((StreamsStatus.SHUTDOWN_APPLICATION, text))
    missing = _missing_tags(runtime, group.group_id, heartbeat.updated)
    if missing and heartbeat.api_version >= _TAGS_VERSION:
        text = (
            "Missing required client tags for rack-aware standby assignment: "
            f"[{', '.join(missing)}]. Configure them via 'client.tag.<tagKey>' in your Streams "
            "config."
        )
        statuses.append((StreamsStatus.MISSING_CLIENT_TAGS, text))
    return tuple(Status(int(code), text) for code, text in statuses)


def _missing_tags(runtime: Runtime, group_id: str, member: StreamsGroupMember) -> list[str]:
    config = runtime.config_of(group_id)
    tags = ",".join(config.group_streams_rack_aware_assignment_tags).strip()
    if not tags or not runtime.profile.streams_takes_offsets:
        return []
    return [tag for tag in _SEPARATOR.split(tags) if tag not in member.client_tags]
