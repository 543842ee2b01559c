"""What a StreamsGroupHeartbeat must look like, before any group is looked at.

Source: kafka 4.4, GroupCoordinatorService.throwIfStreamsGroupHeartbeatRequestIsInvalid and
throwIfStreamsGroupHeartbeatRequestIsUsingUnsupportedFeatures.
"""

from typing import Final

from coordinator_sim.coordinator.consumer.validation import empty_field
from coordinator_sim.coordinator.epoch_group import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from coordinator_sim.coordinator.epoch_refusals import Refusal
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest


def invalid_streams_heartbeat(
    request: StreamsGroupHeartbeatRequest, profile: Profile
) -> Refusal | None:
    """The first invalid field of a streams heartbeat; None for a valid request."""
    text = _unsupported(request, profile)
    if text is not None:
        return _invalid(text)
    empty = empty_field(
        MemberId=request.member_id,
        GroupId=request.group_id,
        InstanceId=request.instance_id,
        RackId=request.rack_id,
    )
    if empty is not None:
        return _invalid(f"{empty} can't be empty.")
    if request.member_epoch == JOIN_EPOCH:
        refusal = _join_fault(request)
        if refusal is not None:
            return refusal
    elif request.member_epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        return _invalid("InstanceId can't be null.")
    elif request.member_epoch < STATIC_LEAVE_EPOCH:
        return _invalid(
            f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -2."
        )
    roles = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    given = sum(each is not None for each in roles)
    if 0 < given < len(roles):
        return _invalid("If one task-type is non-null, all must be non-null.")
    if request.member_epoch != JOIN_EPOCH and request.topology is not None:
        return _invalid("Topology can only be provided when (re-)joining.")
    return None


def _unsupported(request: StreamsGroupHeartbeatRequest, profile: Profile) -> str | None:
    if not profile.streams_has_static_members and request.instance_id is not None:
        return "Static membership is not yet supported."
    if not profile.streams_takes_offsets:
        for name, is_set in (
            ("TaskOffsets", request.task_offsets is not None),
            ("TaskEndOffsets", request.task_end_offsets is not None),
            ("WarmupTasks", bool(request.warmup_tasks)),
        ):
            if is_set:
                return f"{name} are not supported yet."
    topology = request.topology
    if topology is not None and any(each.source_topic_regex for each in topology.subtopologies):
        return "Regular expressions for source topics are not supported yet."
    return None


def _join_fault(request: StreamsGroupHeartbeatRequest) -> Refusal | None:
    if request.rebalance_timeout_ms == -1:
        return _invalid("RebalanceTimeoutMs must be provided in first request.")
    for name, tasks in (
        ("ActiveTasks", request.active_tasks),
        ("StandbyTasks", request.standby_tasks),
        ("WarmupTasks", request.warmup_tasks),
    ):
        if tasks is None or tasks:
            return _invalid(f"{name} must be empty when (re-)joining.")
    if request.topology is None:
        return _invalid("Topology must be non-null when (re-)joining.")
    for part in request.topology.subtopologies:
        for info in part.state_changelog_topics:
            if info.partitions != 0:
                return Refusal(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY,
                    f"Changelog topic {info.name} must have an undefined partition count, but it "
                    f"is set to {info.partitions}.",
                )
    return None


def _invalid(text: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, text)


LEAVING: Final = (LEAVE_EPOCH, STATIC_LEAVE_EPOCH)
"""Epochs of heartbeats that leave."""
