"""Requests, responses and log records in the JSON form of Kafka's own converters.

Field names and the versions they exist in are those of Kafka's message schemas; bytes are base64.
What a version cannot say is adapted as the broker does it before sending.

Source: kafka trunk, clients/src/main/resources/common/message/*.json and the constructors of
JoinGroupResponse, LeaveGroupResponse and OffsetFetchResponse.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any, Final

from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.messages import (
    FetchedGroup,
    FetchedOffset,
    FetchedTopic,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupProtocol,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeavingMember,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopic,
    OffsetFetchGroup,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopic,
    SyncGroupAssignment,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordinator_sim.protocol.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    LogBatch,
    LogKey,
    LogValue,
    OffsetCommitValue,
    OpaqueKey,
    OpaqueValue,
)
from coordinator_sim.protocol.requests import GroupRequest, Response

Json = dict[str, Any]

_BATCHED_FETCH: Final = 8
_GROUP_ERROR_IN_FETCH: Final = 2
_TOPIC_ID_VERSION: Final = 4


def _text(data: bytes) -> str:
    return b64encode(data).decode("ascii")


# -- requests ------------------------------------------------------------------------------


def _read_join(data: Json, _version: int) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=data["groupId"],
        session_timeout_ms=data["sessionTimeoutMs"],
        rebalance_timeout_ms=data.get("rebalanceTimeoutMs", -1),
        member_id=data["memberId"],
        group_instance_id=data.get("groupInstanceId"),
        protocol_type=data["protocolType"],
        protocols=tuple(
            JoinGroupProtocol(entry["name"], b64decode(entry["metadata"]))
            for entry in data["protocols"]
        ),
        reason=data.get("reason"),
    )


def _read_sync(data: Json, _version: int) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=data["groupId"],
        generation_id=data["generationId"],
        member_id=data["memberId"],
        group_instance_id=data.get("groupInstanceId"),
        protocol_type=data.get("protocolType"),
        protocol_name=data.get("protocolName"),
        assignments=tuple(
            SyncGroupAssignment(entry["memberId"], b64decode(entry["assignment"]))
            for entry in data.get("assignments", ())
        ),
    )


def _read_heartbeat(data: Json, _version: int) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=data["groupId"],
        generation_id=data["generationId"],
        member_id=data["memberId"],
        group_instance_id=data.get("groupInstanceId"),
    )


def _read_leave(data: Json, _version: int) -> LeaveGroupRequest:
    members = data["members"] if "members" in data else ({"memberId": data["memberId"]},)
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


def _read_commit(data: Json, _version: int) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=data["groupId"],
        generation_id=data.get("generationIdOrMemberEpoch", -1),
        member_id=data.get("memberId", ""),
        group_instance_id=data.get("groupInstanceId"),
        retention_time_ms=data.get("retentionTimeMs", -1),
        topics=tuple(
            OffsetCommitTopic(
                topic["name"],
                tuple(
                    OffsetCommitPartition(
                        entry["partitionIndex"],
                        entry["committedOffset"],
                        entry.get("committedLeaderEpoch", -1),
                        entry["committedMetadata"],
                    )
                    for entry in topic["partitions"]
                ),
            )
            for topic in data["topics"]
        ),
    )


def _read_fetch(data: Json, version: int) -> OffsetFetchRequest:
    groups = data["groups"] if version >= _BATCHED_FETCH else (data,)
    return OffsetFetchRequest(
        groups=tuple(
            OffsetFetchGroup(
                group_id=group["groupId"],
                member_id=group.get("memberId"),
                member_epoch=group.get("memberEpoch", -1),
                topics=None
                if group["topics"] is None
                else tuple(
                    OffsetFetchTopic(topic["name"], tuple(topic["partitionIndexes"]))
                    for topic in group["topics"]
                ),
            )
            for group in groups
        ),
        require_stable=data.get("requireStable", False),
    )


_READERS: Final[dict[str, Callable[[Json, int], GroupRequest]]] = {
    "JoinGroup": _read_join,
    "SyncGroup": _read_sync,
    "Heartbeat": _read_heartbeat,
    "LeaveGroup": _read_leave,
    "OffsetCommit": _read_commit,
    "OffsetFetch": _read_fetch,
}


def read_request(api: str, version: int, data: Json) -> GroupRequest:
    """A request from its JSON, by the API's Kafka name."""
    return _READERS[api](data, version)


# -- responses -----------------------------------------------------------------------------


def _since(version: int, first: int, **fields: object) -> Json:
    """The fields if the version has them."""
    return fields if version >= first else {}


def _write_join(response: JoinGroupResponse, version: int) -> Json:
    name = response.protocol_name
    # protocolName may be null from version 7 on.
    nameless = None if version >= 7 else ""  # noqa: PLR2004 - version 7 of JoinGroup
    return {
        **_since(version, 2, throttleTimeMs=0),
        "errorCode": int(response.error_code),
        "generationId": response.generation_id,
        **_since(version, 7, protocolType=response.protocol_type),
        "protocolName": nameless if name is None else name,
        "leader": response.leader,
        **_since(version, 9, skipAssignment=response.skip_assignment),
        "memberId": response.member_id,
        "members": [
            {
                "memberId": member.member_id,
                **_since(version, 5, groupInstanceId=member.group_instance_id),
                "metadata": _text(member.metadata),
            }
            for member in response.members
        ],
    }


def _write_sync(response: SyncGroupResponse, version: int) -> Json:
    return {
        **_since(version, 1, throttleTimeMs=0),
        "errorCode": int(response.error_code),
        **_since(
            version,
            5,
            protocolType=response.protocol_type,
            protocolName=response.protocol_name,
        ),
        "assignment": _text(response.assignment),
    }


def _write_heartbeat(response: HeartbeatResponse, version: int) -> Json:
    return {**_since(version, 1, throttleTimeMs=0), "errorCode": int(response.error_code)}


def _write_leave(response: LeaveGroupResponse, version: int) -> Json:
    error = response.error_code
    if version < 3 and error is ErrorCode.NONE:  # noqa: PLR2004 - version 3 has a list
        error = response.members[0].error_code
    return {
        **_since(version, 1, throttleTimeMs=0),
        "errorCode": int(error),
        **_since(
            version,
            3,
            members=[
                {
                    "memberId": member.member_id,
                    "groupInstanceId": member.group_instance_id,
                    "errorCode": int(member.error_code),
                }
                for member in response.members
            ],
        ),
    }


def _write_commit(response: OffsetCommitResponse, version: int) -> Json:
    return {
        **_since(version, 3, throttleTimeMs=0),
        "topics": [
            {
                "name": topic.name,
                "partitions": [
                    {"partitionIndex": entry.partition, "errorCode": int(entry.error_code)}
                    for entry in topic.partitions
                ],
            }
            for topic in response.topics
        ],
    }


def _write_fetched_topic(topic: FetchedTopic, version: int) -> Json:
    return {
        "name": topic.name,
        "partitions": [
            {
                "partitionIndex": entry.partition,
                "committedOffset": entry.offset,
                **_since(version, 5, committedLeaderEpoch=entry.leader_epoch),
                "metadata": entry.metadata,
                "errorCode": int(entry.error_code),
            }
            for entry in topic.partitions
        ],
    }


def _write_fetch(response: OffsetFetchResponse, version: int, request: OffsetFetchRequest) -> Json:
    throttle = _since(version, 3, throttleTimeMs=0)
    if version >= _BATCHED_FETCH:
        return {
            **throttle,
            "groups": [
                {
                    "groupId": group.group_id,
                    "topics": [_write_fetched_topic(topic, version) for topic in group.topics],
                    "errorCode": int(group.error_code),
                }
                for group in response.groups
            ],
        }
    group = response.groups[0]
    topics = group.topics
    if version < _GROUP_ERROR_IN_FETCH and group.error_code is not ErrorCode.NONE:
        topics = _spread_error(group, request)
    return {
        **throttle,
        "topics": [_write_fetched_topic(topic, version) for topic in topics],
        **_since(version, _GROUP_ERROR_IN_FETCH, errorCode=int(group.error_code)),
    }


def _spread_error(group: FetchedGroup, request: OffsetFetchRequest) -> tuple[FetchedTopic, ...]:
    """The group's error on each partition asked for. Source: OffsetFetchResponse.groupError."""
    return tuple(
        FetchedTopic(
            topic.name,
            tuple(FetchedOffset(index, error_code=group.error_code) for index in topic.partitions),
        )
        for topic in request.groups[0].topics or ()
    )


def write_response(request: GroupRequest, version: int, response: Response) -> Json:
    """A response as JSON, in the version its request came in.

    Raises:
        TypeError: the response is not one of the group APIs.
    """
    match response:
        case JoinGroupResponse():
            return _write_join(response, version)
        case SyncGroupResponse():
            return _write_sync(response, version)
        case HeartbeatResponse():
            return _write_heartbeat(response, version)
        case LeaveGroupResponse():
            return _write_leave(response, version)
        case OffsetCommitResponse():
            return _write_commit(response, version)
        case OffsetFetchResponse() if isinstance(request, OffsetFetchRequest):
            return _write_fetch(response, version, request)
        case _:
            raise TypeError(f"no JSON form of {type(response).__name__}")


# -- records -------------------------------------------------------------------------------


def _write_key(key: LogKey) -> Json:
    if isinstance(key, GroupMetadataKey):
        return {"type": 2, "data": {"group": key.group_id}}
    if isinstance(key, OpaqueKey):
        return {"type": key.version, "data": {"bytes": _text(key.body)}}
    data = {"group": key.group_id, "topic": key.topic, "partition": key.partition}
    return {"type": 1, "data": data}


def _write_value(value: LogValue, version: int) -> Json:
    if isinstance(value, OffsetCommitValue):
        return _write_offset_value(value, version)
    if isinstance(value, OpaqueValue):
        return {"bytes": _text(value.data)}
    return _write_group_value(value, version)


def _write_offset_value(value: OffsetCommitValue, version: int) -> Json:
    data = {
        "offset": value.offset,
        **_since(version, 3, leaderEpoch=value.leader_epoch),
        "metadata": value.metadata,
        "commitTimestamp": value.commit_timestamp_ms,
    }
    if version == 1:
        data["expireTimestamp"] = value.expire_timestamp_ms
    if version >= _TOPIC_ID_VERSION and value.topic_id is not None:
        data["topicId"] = b64encode(value.topic_id, b"-_").decode("ascii").rstrip("=")
    return data


def _write_group_value(value: GroupMetadataValue, version: int) -> Json:
    return {
        "protocolType": value.protocol_type,
        "generation": value.generation_id,
        "protocol": value.protocol_name,
        "leader": value.leader,
        **_since(version, 2, currentStateTimestamp=value.current_state_timestamp_ms),
        "members": [
            {
                "memberId": member.member_id,
                **_since(version, 3, groupInstanceId=member.group_instance_id),
                "clientId": member.client_id,
                "clientHost": member.client_host,
                **_since(version, 1, rebalanceTimeout=member.rebalance_timeout_ms),
                "sessionTimeout": member.session_timeout_ms,
                "subscription": _text(member.subscription),
                "assignment": _text(member.assignment),
            }
            for member in value.members
        ],
    }


def write_records(batch: LogBatch) -> list[Json]:
    """The records of a batch, each with its partition, offset and time."""
    return [
        {
            "partition": batch.partition,
            "offset": batch.base_offset + index,
            "ts": batch.timestamp_ms,
            "key": _write_key(record.key),
            "value": None
            if record.value is None
            else {
                "version": record.value_version,
                "data": _write_value(record.value, record.value_version),
            },
        }
        for index, record in enumerate(batch.records)
    ]
