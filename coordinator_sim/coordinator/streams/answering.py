"""The answer to a heartbeat of a streams group: tasks, endpoints and what is the matter.

Source: kafka 4.4, GroupMetadataManager.streamsGroupHeartbeat and maybeSetTopologyStaleStatus.
"""

import re
from typing import Final

from msgspec import Struct

from coordinator_sim.coordinator.epoch_group import JOIN_EPOCH
from coordinator_sim.coordinator.epoch_joining import Found
from coordinator_sim.coordinator.runtime import Runtime
from coordinator_sim.coordinator.streams.endpoints import told_endpoints
from coordinator_sim.coordinator.streams.group import StreamsGroup
from coordinator_sim.coordinator.streams.member import StreamsMember
from coordinator_sim.coordinator.streams.tasks import TaskSet, numbers_of, sorted_tasks
from coordinator_sim.coordinator.streams.topology import ConfiguredTopology, StatusCode
from coordinator_sim.messages.streams_group_heartbeat import (
    EndpointToPartitions,
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsGroupHeartbeatResponseTaskIds,
)

_TAGS_VERSION: Final = 1
"""First version that tells of missing tags."""
_SEPARATOR: Final = re.compile(r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*")


class Beat(Struct, frozen=True, kw_only=True):
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
        is_known: Whether the group is in its partition's table.
    """

    request: StreamsGroupHeartbeatRequest
    api_version: int
    group: StreamsGroup
    found: Found[StreamsMember]
    updated: StreamsMember
    after: StreamsMember
    configured: ConfiguredTopology
    delay: str | None
    is_known: bool

    @property
    def joins(self) -> bool:
        """Whether the member joins."""
        return self.request.member_epoch == JOIN_EPOCH

    @property
    def has_other_tasks(self) -> bool:
        """Whether the step gave the member other tasks, or the same since another epoch."""
        return self.found.member.assigned != self.after.assigned


def told_answer(runtime: Runtime, beat: Beat) -> StreamsGroupHeartbeatResponse:
    """Answer a heartbeat; the endpoints of the group may have another epoch then.

    Raises:
        OperationAborted: the endpoints cannot be told.
    """
    config, after = runtime.config_of(beat.group.group_id), beat.after
    takes_offsets = runtime.profile.streams_takes_offsets
    endpoints = _endpoints(runtime, beat)
    is_told = beat.joins or beat.has_other_tasks
    return StreamsGroupHeartbeatResponse(
        member_id=after.member_id,
        member_epoch=after.member_epoch,
        heartbeat_interval_ms=config.group_streams_heartbeat_interval_ms,
        task_offset_interval_ms=(
            config.group_streams_task_offset_interval_ms if takes_offsets else 0
        ),
        acceptable_recovery_lag=config.group_streams_acceptable_recovery_lag,
        status=_statuses(runtime, beat),
        active_tasks=_listed(numbers_of(after.assigned.active)) if is_told else None,
        standby_tasks=_listed(after.assigned.standby) if is_told else None,
        warmup_tasks=_listed(after.assigned.warmup) if is_told else None,
        endpoint_information_epoch=beat.group.endpoint_epoch if beat.is_known else 0,
        partitions_by_user_endpoint=endpoints,
    )


def _endpoints(runtime: Runtime, beat: Beat) -> tuple[EndpointToPartitions, ...] | None:
    """The endpoints of the group, for a member that does not know of them yet."""
    group, found, after = beat.group, beat.found, beat.after
    is_told = beat.joins or beat.has_other_tasks
    has_endpoint = after.user_endpoint is not None
    if runtime.profile.streams_join_says_endpoint:
        has_moved = found.member.user_endpoint != after.user_endpoint
        if is_told or has_moved or found.replaced_id is not None:
            group.endpoints.pop(after.member_id, None)
            group.endpoints.pop(found.replaced_id or "", None)
        group.endpoint_epoch += has_moved or (beat.has_other_tasks and has_endpoint)
    elif is_told:
        group.endpoints.pop(after.member_id, None)
        group.endpoint_epoch += has_endpoint
    if group.endpoint_epoch == beat.request.endpoint_information_epoch:
        return None
    return told_endpoints(runtime, group, after, found.replaced_id)


def _listed(tasks: TaskSet) -> tuple[StreamsGroupHeartbeatResponseTaskIds, ...]:
    return tuple(
        StreamsGroupHeartbeatResponseTaskIds(each.subtopology_id, each.partitions)
        for each in sorted_tasks(tasks)
    )


def _statuses(runtime: Runtime, beat: Beat) -> tuple[Status, ...]:
    told: list[tuple[StatusCode, str]] = []
    group, own_epoch = beat.group, beat.updated.topology_epoch
    topology, trouble = group.epochs.topology, beat.configured.trouble
    if topology is not None and own_epoch < topology.epoch:
        text = (
            f"The member's topology epoch {own_epoch} is behind the group's topology epoch "
            f"{topology.epoch}."
        )
        told.append((StatusCode.STALE_TOPOLOGY, text))
    if beat.delay is not None:
        told.append((StatusCode.ASSIGNMENT_DELAYED, beat.delay))
    if trouble is not None:
        told.append((trouble.code, trouble.text))
    if group.shutdown_member_id is not None:
        text = (
            f"Streams group member {group.shutdown_member_id} encountered a fatal error and "
            "requested a shutdown for the entire application."
        )
        told.append((StatusCode.SHUTDOWN_APPLICATION, text))
    missing = _missing_tags(runtime, group.group_id, beat.updated)
    if missing and beat.api_version >= _TAGS_VERSION:
        text = (
            "Missing required client tags for rack-aware standby assignment: "
            f"[{', '.join(missing)}]. Configure them via 'client.tag.<tagKey>' in your Streams "
            "config."
        )
        told.append((StatusCode.MISSING_CLIENT_TAGS, text))
    return tuple(Status(int(code), text) for code, text in told)


def _missing_tags(runtime: Runtime, group_id: str, member: StreamsMember) -> list[str]:
    config = runtime.config_of(group_id)
    tags = ",".join(config.group_streams_rack_aware_assignment_tags).strip()
    if not tags or not runtime.profile.streams_takes_offsets:
        return []
    return [tag for tag in _SEPARATOR.split(tags) if tag not in member.client_tags]
