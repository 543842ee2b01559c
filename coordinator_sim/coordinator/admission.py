"""The checks of a request of one group before the group is looked at.

Source: kafka trunk, GroupCoordinatorService and CoordinatorRuntime.withActiveContextOrThrow; in
Scala GroupCoordinator.validateGroupStatus.
"""

from typing import Final

from coordinator_sim.coordinator.consumer.heartbeat import invalid_heartbeat
from coordinator_sim.coordinator.epoch_refusals import refused
from coordinator_sim.coordinator.runtime import ACTIVE, Partition, Runtime, partition_error
from coordinator_sim.coordinator.share.heartbeat import invalid_share_heartbeat
from coordinator_sim.coordinator.streams.heartbeat import invalid_streams_heartbeat
from coordinator_sim.coordinator.txn_validation import verify
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from coordinator_sim.messages.heartbeat import HeartbeatRequest
from coordinator_sim.messages.join_group import JoinGroupRequest
from coordinator_sim.messages.leave_group import LeaveGroupRequest
from coordinator_sim.messages.offset_commit import OffsetCommitRequest
from coordinator_sim.messages.requests import OneGroupRequest, Response
from coordinator_sim.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from coordinator_sim.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from coordinator_sim.messages.sync_group import SyncGroupRequest
from coordinator_sim.messages.txn_offset_commit import TxnOffsetCommitRequest

_NAMELESS: Final = (
    OffsetCommitRequest,
    ConsumerGroupHeartbeatRequest,
    ShareGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequest,
)
"""Requests that may be of the group without a name, or whose form was checked before."""
_NAMELESS_BUT_JOIN: Final = (*_NAMELESS, SyncGroupRequest, HeartbeatRequest, LeaveGroupRequest)


def nameless_requests(profile: Profile) -> tuple[type[OneGroupRequest], ...]:
    """The requests whose group id is not checked here."""
    return _NAMELESS_BUT_JOIN if profile.only_join_checks_group_id else _NAMELESS


def admission_error(
    runtime: Runtime,
    request: OneGroupRequest,
    api_version: int,
    partition: Partition | None,
    nameless: tuple[type[OneGroupRequest], ...],
) -> ErrorCode:
    """Why a request is refused before its group is looked at; NONE if it is not.

    Args:
        runtime: The coordinator.
        request: The request.
        api_version: Of the request.
        partition: The offsets partition of its group; None for one never led.
        nameless: Requests whose group id is not checked.
    """
    profile, is_active = runtime.profile, runtime.is_active
    has_bad_name = not request.group_id and not isinstance(request, nameless)
    if has_bad_name and (is_active or profile.checks_group_id_first):
        return ErrorCode.INVALID_GROUP_ID
    if not is_active:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    own = NO_ERROR
    if type(request) is JoinGroupRequest:
        if not _is_in_bounds(runtime, request.session_timeout_ms):
            own = ErrorCode.INVALID_SESSION_TIMEOUT
    elif type(request) is TxnOffsetCommitRequest and profile.has_coordinator_runtime:
        own = verify(runtime.verifier, request, api_version)
    if partition is not None and partition.state is ACTIVE:
        return own
    if own is not NO_ERROR and not profile.ownership_first:
        return own
    return partition_error(partition, profile)


def invalid_form(runtime: Runtime, request: OneGroupRequest, api_version: int) -> Response | None:
    """The refusal of a heartbeat whose own fields are invalid; None for a valid request."""
    if not runtime.is_active:
        return None
    if type(request) is ConsumerGroupHeartbeatRequest:
        fault = invalid_heartbeat(request, api_version, runtime.config)
        return None if fault is None else refused(ConsumerGroupHeartbeatResponse, fault)
    if type(request) is ShareGroupHeartbeatRequest:
        fault = invalid_share_heartbeat(request)
        return None if fault is None else refused(ShareGroupHeartbeatResponse, fault)
    if type(request) is StreamsGroupHeartbeatRequest:
        refusal = invalid_streams_heartbeat(request, runtime.profile)
        return None if refusal is None else refused(StreamsGroupHeartbeatResponse, refusal)
    return None


def _is_in_bounds(runtime: Runtime, timeout_ms: int) -> bool:
    config = runtime.config
    return config.group_min_session_timeout_ms <= timeout_ms <= config.group_max_session_timeout_ms
