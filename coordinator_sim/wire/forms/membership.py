"""Members' requests and responses, and FindCoordinator's, as Kafka's fields."""

from typing import Final

from coordinator_sim.errors import UnsupportedVersion
from coordinator_sim.protocol.error_texts import error_message
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.messages import (
    CoordinatorOfKey,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupMember,
    JoinGroupProtocol,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeavingMember,
    LeftMember,
    SyncGroupAssignment,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordinator_sim.wire.forms.form import Form, error_of
from coordinator_sim.wire.schema import Data

_BATCHED_FIND: Final = 4
_BATCHED_LEAVE: Final = 3
NULLABLE_PROTOCOL: Final = 7
"""First version of JoinGroup whose answer may have no protocol name."""


# -- FindCoordinator -----------------------------------------------------------------------


def _read_find(data: Data, version: int) -> FindCoordinatorRequest:
    keys = data["coordinatorKeys"] if version >= _BATCHED_FIND else (data["key"],)
    return FindCoordinatorRequest(keys=tuple(keys), key_type=data.get("keyType", 0))


def _write_find(request: FindCoordinatorRequest, version: int) -> Data:
    if version >= _BATCHED_FIND:
        return {"keyType": request.key_type, "coordinatorKeys": list(request.keys)}
    if len(request.keys) != 1:
        raise UnsupportedVersion(
            f"FindCoordinator version {version} asks for one key, not {len(request.keys)}: "
            f"use {_BATCHED_FIND} or newer"
        )
    return {"key": request.keys[0], "keyType": request.key_type}


def _usual_message(error: ErrorCode, version: int) -> str:
    """What is said beside an error: its own text up to version 3, nothing from 4 on.

    Source: kafka 3.9, KafkaApis.handleFindCoordinatorRequestLessThanV4 and ...V4AndAbove.
    """
    return "" if version >= _BATCHED_FIND else error_message(error)


def _read_coordinator(entry: Data, key: str, version: int) -> CoordinatorOfKey:
    error = error_of(entry)
    message = entry.get("errorMessage")
    usual = message == _usual_message(error, version)
    return CoordinatorOfKey(
        key=key,
        node_id=entry["nodeId"],
        host=entry["host"],
        port=entry["port"],
        error_code=error,
        error_message=None if usual else message,
    )


def _read_found(
    data: Data, version: int, request: FindCoordinatorRequest | None
) -> FindCoordinatorResponse:
    if version >= _BATCHED_FIND:
        entries = tuple(
            _read_coordinator(entry, entry["key"], version) for entry in data["coordinators"]
        )
        return FindCoordinatorResponse(coordinators=entries)
    key = request.keys[0] if request is not None else ""
    return FindCoordinatorResponse(coordinators=(_read_coordinator(data, key, version),))


def _write_coordinator(coordinator: CoordinatorOfKey, version: int) -> Data:
    message = coordinator.error_message
    usual = _usual_message(coordinator.error_code, version)
    return {
        "key": coordinator.key,
        "nodeId": coordinator.node_id,
        "host": coordinator.host,
        "port": coordinator.port,
        "errorCode": int(coordinator.error_code),
        "errorMessage": usual if message is None else message,
    }


def _write_found(
    response: FindCoordinatorResponse, version: int, _request: FindCoordinatorRequest | None
) -> Data:
    if version < _BATCHED_FIND:
        return _write_coordinator(response.coordinators[0], version)
    return {"coordinators": [_write_coordinator(each, version) for each in response.coordinators]}


# -- JoinGroup -----------------------------------------------------------------------------


def _read_join(data: Data, _version: int) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=data["groupId"],
        session_timeout_ms=data["sessionTimeoutMs"],
        rebalance_timeout_ms=data.get("rebalanceTimeoutMs", -1),
        member_id=data["memberId"],
        group_instance_id=data.get("groupInstanceId"),
        protocol_type=data["protocolType"],
        protocols=tuple(
            JoinGroupProtocol(entry["name"], entry["metadata"]) for entry in data["protocols"]
        ),
        reason=data.get("reason"),
    )


def _write_join(request: JoinGroupRequest, _version: int) -> Data:
    return {
        "groupId": request.group_id,
        "sessionTimeoutMs": request.session_timeout_ms,
        "rebalanceTimeoutMs": request.rebalance_timeout_ms,
        "memberId": request.member_id,
        "groupInstanceId": request.group_instance_id,
        "protocolType": request.protocol_type,
        "protocols": [
            {"name": entry.name, "metadata": entry.metadata} for entry in request.protocols
        ],
        "reason": request.reason,
    }


def _read_joined(data: Data, _version: int, _request: JoinGroupRequest | None) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=error_of(data),
        generation_id=data["generationId"],
        protocol_type=data.get("protocolType"),
        protocol_name=data["protocolName"],
        leader=data["leader"],
        skip_assignment=data.get("skipAssignment", False),
        member_id=data["memberId"],
        members=tuple(
            JoinGroupMember(entry["memberId"], entry.get("groupInstanceId"), entry["metadata"])
            for entry in data["members"]
        ),
    )


def _write_joined(
    response: JoinGroupResponse, version: int, _request: JoinGroupRequest | None
) -> Data:
    """No protocol is an empty name before version 7 and null from it on.

    Source: JoinGroupResponse's constructor.
    """
    name = response.protocol_name or None
    return {
        "errorCode": int(response.error_code),
        "generationId": response.generation_id,
        "protocolType": response.protocol_type,
        "protocolName": "" if name is None and version < NULLABLE_PROTOCOL else name,
        "leader": response.leader,
        "skipAssignment": response.skip_assignment,
        "memberId": response.member_id,
        "members": [
            {
                "memberId": member.member_id,
                "groupInstanceId": member.group_instance_id,
                "metadata": member.metadata,
            }
            for member in response.members
        ],
    }


# -- SyncGroup -----------------------------------------------------------------------------


def _read_sync(data: Data, _version: int) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=data["groupId"],
        generation_id=data["generationId"],
        member_id=data["memberId"],
        group_instance_id=data.get("groupInstanceId"),
        protocol_type=data.get("protocolType"),
        protocol_name=data.get("protocolName"),
        assignments=tuple(
            SyncGroupAssignment(entry["memberId"], entry["assignment"])
            for entry in data["assignments"]
        ),
    )


def _write_sync(request: SyncGroupRequest, _version: int) -> Data:
    return {
        "groupId": request.group_id,
        "generationId": request.generation_id,
        "memberId": request.member_id,
        "groupInstanceId": request.group_instance_id,
        "protocolType": request.protocol_type,
        "protocolName": request.protocol_name,
        "assignments": [
            {"memberId": entry.member_id, "assignment": entry.assignment}
            for entry in request.assignments
        ],
    }


def _read_synced(data: Data, _version: int, _request: SyncGroupRequest | None) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=error_of(data),
        protocol_type=data.get("protocolType"),
        protocol_name=data.get("protocolName"),
        assignment=data["assignment"],
    )


def _write_synced(
    response: SyncGroupResponse, _version: int, _request: SyncGroupRequest | None
) -> Data:
    return {
        "errorCode": int(response.error_code),
        "protocolType": response.protocol_type,
        "protocolName": response.protocol_name,
        "assignment": response.assignment,
    }


# -- Heartbeat -----------------------------------------------------------------------------


def _read_heartbeat(data: Data, _version: int) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=data["groupId"],
        generation_id=data["generationId"],
        member_id=data["memberId"],
        group_instance_id=data.get("groupInstanceId"),
    )


def _write_heartbeat(request: HeartbeatRequest, _version: int) -> Data:
    return {
        "groupId": request.group_id,
        "generationId": request.generation_id,
        "memberId": request.member_id,
        "groupInstanceId": request.group_instance_id,
    }


def _read_beaten(data: Data, _version: int, _request: HeartbeatRequest | None) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=error_of(data))


def _write_beaten(
    response: HeartbeatResponse, _version: int, _request: HeartbeatRequest | None
) -> Data:
    return {"errorCode": int(response.error_code)}


# -- LeaveGroup ----------------------------------------------------------------------------


def _read_leave(data: Data, version: int) -> LeaveGroupRequest:
    members = data["members"] if version >= _BATCHED_LEAVE else (data,)
    return LeaveGroupRequest(
        group_id=data["groupId"],
        members=tuple(
            LeavingMember(
                member_id=entry["memberId"],
                group_instance_id=entry.get("groupInstanceId"),
                reason=entry.get("reason"),
            )
            for entry in members
        ),
    )


def _write_leave(request: LeaveGroupRequest, version: int) -> Data:
    """Before version 3 one member leaves. Source: LeaveGroupRequest.Builder.build."""
    if version >= _BATCHED_LEAVE:
        members = [
            {
                "memberId": member.member_id,
                "groupInstanceId": member.group_instance_id,
                "reason": member.reason,
            }
            for member in request.members
        ]
        return {"groupId": request.group_id, "members": members}
    if len(request.members) != 1:
        raise UnsupportedVersion(
            f"LeaveGroup version {version} names one member, not {len(request.members)}: "
            f"use {_BATCHED_LEAVE} or newer"
        )
    return {"groupId": request.group_id, "memberId": request.members[0].member_id}


def _read_left(data: Data, _version: int, _request: LeaveGroupRequest | None) -> LeaveGroupResponse:
    return LeaveGroupResponse(
        error_code=error_of(data),
        members=tuple(
            LeftMember(
                member_id=entry["memberId"],
                group_instance_id=entry["groupInstanceId"],
                error_code=error_of(entry),
            )
            for entry in data.get("members", ())
        ),
    )


def _write_left(
    response: LeaveGroupResponse, version: int, _request: LeaveGroupRequest | None
) -> Data:
    """Before version 3 the member's error is the answer's.

    Source: LeaveGroupResponse's constructor, getError.
    """
    if version >= _BATCHED_LEAVE:
        members = [
            {
                "memberId": member.member_id,
                "groupInstanceId": member.group_instance_id,
                "errorCode": int(member.error_code),
            }
            for member in response.members
        ]
        return {"errorCode": int(response.error_code), "members": members}
    error = response.error_code
    if error is ErrorCode.NONE and response.members:
        error = response.members[0].error_code
    return {"errorCode": int(error)}


FIND_COORDINATOR: Final = Form(
    read_request=_read_find,
    write_request=_write_find,
    read_response=_read_found,
    write_response=_write_found,
)
JOIN_GROUP: Final = Form(
    read_request=_read_join,
    write_request=_write_join,
    read_response=_read_joined,
    write_response=_write_joined,
)
SYNC_GROUP: Final = Form(
    read_request=_read_sync,
    write_request=_write_sync,
    read_response=_read_synced,
    write_response=_write_synced,
)
HEARTBEAT: Final = Form(
    read_request=_read_heartbeat,
    write_request=_write_heartbeat,
    read_response=_read_beaten,
    write_response=_write_beaten,
)
LEAVE_GROUP: Final = Form(
    read_request=_read_leave,
    write_request=_write_leave,
    read_response=_read_left,
    write_response=_write_left,
)
