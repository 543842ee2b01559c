"""How failures become answers: the error of an append, the answer of a failed operation.

Source: kafka trunk, GroupCoordinatorService (handleOperationException and the error branches of
each API) and GroupMetadataManager.appendGroupMetadataErrorToResponseError.
"""

from collections.abc import Callable, Iterable
from typing import Final, cast

from msgspec.structs import replace

from coordinator_sim.kafka.completion import CompleteTransaction, TransactionCompleted
from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.orders.offset_maps import asked_order
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from coordinator_sim.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from coordinator_sim.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupResponse
from coordinator_sim.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from coordinator_sim.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from coordinator_sim.messages.requests import Response, WaitingRequest
from coordinator_sim.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from coordinator_sim.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from coordinator_sim.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

NOT_LED: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})
"""What the work of a timer is not repeated for. Source: CoordinatorTimerImpl.schedule."""

_METADATA_ERRORS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
_FETCH_ERRORS: Final = {
    **_METADATA_ERRORS,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.NOT_COORDINATOR,
}
_COMMIT_ERRORS: Final = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}


def numbered(response: JoinGroupResponse, generation_id: int) -> JoinGroupResponse:
    """A JoinGroup's answer; a refusal that names no generation names that one."""
    is_thrown = response.error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    if response.generation_id != -1 or is_thrown:
        return response
    return replace(response, generation_id=generation_id)


def metadata_append_error(error: ErrorCode, profile: Profile) -> ErrorCode:
    """The error that a member receives when storing its group failed.

    Source: GroupMetadataManager.appendGroupMetadataErrorToResponseError.
    """
    if error is ErrorCode.REQUEST_TIMED_OUT:
        if profile.append_timeout_is_not_available:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return ErrorCode.REBALANCE_IN_PROGRESS
    if (
        error is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        and profile.under_replicated_append_is_not_available
    ):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return _METADATA_ERRORS.get(error, error)


def dead_error(profile: Profile) -> ErrorCode:
    """The error code of a response to a request for a Dead group."""
    if profile.dead_group_is_unknown:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.COORDINATOR_NOT_AVAILABLE


def operation_error(error: ErrorCode, profile: Profile) -> ErrorCode:
    """The error a client receives when the operation failed. Source: handleOperationException."""
    if error is ErrorCode.NETWORK_EXCEPTION:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return metadata_append_error(error, profile)


def fetch_error(error: ErrorCode) -> ErrorCode:
    """The error of a require-stable OffsetFetch. Source: handleOffsetFetchException."""
    return _FETCH_ERRORS.get(error, error)


def same_outcomes(
    topics: tuple[OffsetCommitRequestTopic, ...], error: ErrorCode
) -> tuple[OffsetCommitResponseTopic, ...]:
    """The same outcome for every partition of a commit, which has no error of its own."""
    return tuple(
        OffsetCommitResponseTopic(
            topic.name,
            partitions=tuple(
                OffsetCommitResponsePartition(p.partition_index, error) for p in topic.partitions
            ),
            topic_id=topic.topic_id,
        )
        for topic in topics
    )


def outcomes_by_topic(
    outcomes: Iterable[tuple[TopicPartition, ErrorCode]],
) -> tuple[OffsetCommitResponseTopic, ...]:
    """Outcomes of partitions, gathered by topic in the order in which the topics come up."""
    topics: dict[str, list[OffsetCommitResponsePartition]] = {}
    for place, error in outcomes:
        topics.setdefault(place.topic, []).append(
            OffsetCommitResponsePartition(place.partition, error)
        )
    return tuple(
        OffsetCommitResponseTopic(name, partitions=tuple(found)) for name, found in topics.items()
    )


def commit_error(error: ErrorCode) -> ErrorCode:
    """The error that a client of the Scala coordinator receives when storing offsets failed.

    Source: kafka 3.9, GroupMetadataManager.maybeConvertOffsetCommitError.
    """
    return _COMMIT_ERRORS.get(error, error)


def _refused_commit(
    topics: tuple[OffsetCommitRequestTopic, ...],
    error: ErrorCode,
    profile: Profile,
    *,
    transactional: bool = False,
) -> tuple[OffsetCommitResponseTopic, ...]:
    if profile.has_coordinator_runtime:
        return same_outcomes(topics, operation_error(error, profile))
    places = tuple(
        TopicPartition(topic.name, p.partition_index) for topic in topics for p in topic.partitions
    )
    code = commit_error(error)
    ordered = asked_order(profile.offset_maps, places, transactional=transactional)
    return outcomes_by_topic((place, code) for place in ordered)


def _altered(error: ErrorCode) -> Response:
    return AlterShareGroupOffsetsResponse(error_code=error, error_message=error_message(error))


def _deleted(error: ErrorCode) -> Response:
    return DeleteShareGroupOffsetsResponse(error_code=error, error_message=error_message(error))


_ALONE: Final[dict[type, Callable[[ErrorCode], Response]]] = {
    OffsetDeleteRequest: lambda error: OffsetDeleteResponse(error_code=error),
    ConsumerGroupHeartbeatRequest: lambda error: ConsumerGroupHeartbeatResponse(error_code=error),
    ShareGroupHeartbeatRequest: lambda error: ShareGroupHeartbeatResponse(error_code=error),
    StreamsGroupHeartbeatRequest: lambda error: StreamsGroupHeartbeatResponse(error_code=error),
    AlterShareGroupOffsetsRequest: _altered,
    DeleteShareGroupOffsetsRequest: _deleted,
}
"""Answers that have nothing but the error, some with its text."""


def error_response(request: WaitingRequest, error: ErrorCode, profile: Profile) -> Response:
    """The answer of an operation that failed with that error.

    Source: GroupCoordinatorService.joinGroup, syncGroup, heartbeat, leaveGroup and commitOffsets.
    """
    if isinstance(request, CompleteTransaction):
        return TransactionCompleted(error_code=error)
    code = operation_error(error, profile)
    alone = _ALONE.get(type(request))
    if alone is not None:
        return alone(code)
    match request:
        case JoinGroupRequest():
            return JoinGroupResponse(error_code=code, protocol_name=None)
        case SyncGroupRequest():
            if profile.sync_loading_is_rebalance and code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                code = ErrorCode.REBALANCE_IN_PROGRESS
            return SyncGroupResponse(error_code=code)
        case HeartbeatRequest():
            # The offsets topic is being loaded; the member is told that all is well.
            if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                code = ErrorCode.NONE
            return HeartbeatResponse(error_code=code)
        case LeaveGroupRequest():
            return _leave_error(request, code)
        case TxnOffsetCommitRequest():
            topics = _refused_commit(request.topics, error, profile, transactional=True)
            return TxnOffsetCommitResponse(topics=topics)
        case _:
            # The other types are in `_ALONE`.
            commit = cast("OffsetCommitRequest", request)
            return OffsetCommitResponse(topics=_refused_commit(commit.topics, error, profile))


def _leave_error(request: LeaveGroupRequest, error: ErrorCode) -> LeaveGroupResponse:
    """An unknown group is told entry by entry, anything else at the top."""
    if error is not ErrorCode.UNKNOWN_MEMBER_ID:
        return LeaveGroupResponse(error_code=error)
    return LeaveGroupResponse(
        members=tuple(
            MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=error,
            )
            for member in request.members
        )
    )
