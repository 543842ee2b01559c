"""How failures become answers: the error of an append, the answer of a failed operation.

Source: kafka trunk, GroupCoordinatorService (handleOperationException and the error branches of
each API) and GroupMetadataManager.appendGroupMetadataErrorToResponseError.
"""

from typing import Final

from coordinator_sim.protocol.admin_messages import OffsetDeleteRequest, OffsetDeleteResponse
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeftMember,
    OffsetCommitResponse,
    OffsetCommitTopic,
    OffsetCommitTopicResult,
    PartitionError,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordinator_sim.protocol.profiles import Profile
from coordinator_sim.protocol.requests import Response, WaitingRequest
from coordinator_sim.protocol.transaction_messages import (
    CompleteTransaction,
    TransactionCompleted,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

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


def metadata_append_error(error: ErrorCode, profile: Profile) -> ErrorCode:
    """What a member is told when storing its group failed.

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


def operation_error(error: ErrorCode, profile: Profile) -> ErrorCode:
    """What a client is told when the operation itself failed. Source: handleOperationException."""
    if error is ErrorCode.NETWORK_EXCEPTION:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return metadata_append_error(error, profile)


def fetch_error(error: ErrorCode) -> ErrorCode:
    """What a require-stable OffsetFetch is told. Source: handleOffsetFetchException."""
    return _FETCH_ERRORS.get(error, error)


def same_outcomes(
    topics: tuple[OffsetCommitTopic, ...], error: ErrorCode
) -> tuple[OffsetCommitTopicResult, ...]:
    """The same outcome for every partition of a commit, which has no error of its own."""
    return tuple(
        OffsetCommitTopicResult(
            topic.name,
            tuple(PartitionError(p.partition, error) for p in topic.partitions),
            topic.topic_id,
        )
        for topic in topics
    )


def error_response(request: WaitingRequest, error: ErrorCode, profile: Profile) -> Response:
    """The answer of an operation that failed with that error.

    Source: GroupCoordinatorService.joinGroup, syncGroup, heartbeat, leaveGroup and commitOffsets.
    """
    if isinstance(request, CompleteTransaction):
        return TransactionCompleted(error_code=error)
    code = operation_error(error, profile)
    match request:
        case JoinGroupRequest():
            return JoinGroupResponse(error_code=code)
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
        case OffsetDeleteRequest():
            return OffsetDeleteResponse(error_code=code)
        case TxnOffsetCommitRequest():
            return TxnOffsetCommitResponse(topics=same_outcomes(request.topics, code))
        case _:
            return OffsetCommitResponse(topics=same_outcomes(request.topics, code))


def _leave_error(request: LeaveGroupRequest, error: ErrorCode) -> LeaveGroupResponse:
    """An unknown group is told entry by entry, anything else at the top."""
    if error is not ErrorCode.UNKNOWN_MEMBER_ID:
        return LeaveGroupResponse(error_code=error)
    return LeaveGroupResponse(
        members=tuple(
            LeftMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=error,
            )
            for member in request.members
        )
    )
