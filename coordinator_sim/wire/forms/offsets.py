"""Requests and responses for committed offsets, as Kafka's fields."""

from typing import Final

from coordinator_sim.errors import UnsupportedVersion
from coordinator_sim.protocol.admin_messages import (
    DeletedOffset,
    DeletedOffsetTopic,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteTopic,
)
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.messages import (
    FetchedGroup,
    FetchedOffset,
    FetchedTopic,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopic,
    OffsetCommitTopicResult,
    OffsetFetchGroup,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopic,
    PartitionError,
)
from coordinator_sim.wire.forms.form import Form, error_of, id_or_none, topic_fields
from coordinator_sim.wire.schema import Data

_BATCHED_FETCH: Final = 8
_GROUP_ERROR_IN_FETCH: Final = 2


def read_committed_topics(data: Data) -> tuple[OffsetCommitTopic, ...]:
    """The topics of an OffsetCommit or a TxnOffsetCommit."""
    return tuple(
        OffsetCommitTopic(
            topic.get("name", ""),
            tuple(
                OffsetCommitPartition(
                    entry["partitionIndex"],
                    entry["committedOffset"],
                    entry.get("committedLeaderEpoch", -1),
                    entry["committedMetadata"],
                    entry.get("commitTimestamp", -1),
                )
                for entry in topic["partitions"]
            ),
            id_or_none(topic),
        )
        for topic in data["topics"]
    )


def write_committed_topics(topics: tuple[OffsetCommitTopic, ...]) -> list[Data]:
    """The topics of an OffsetCommit or a TxnOffsetCommit."""
    return [
        {
            **topic_fields(topic.name, topic.topic_id),
            "partitions": [
                {
                    "partitionIndex": entry.partition,
                    "committedOffset": entry.offset,
                    "committedLeaderEpoch": entry.leader_epoch,
                    "commitTimestamp": entry.commit_timestamp_ms,
                    "committedMetadata": entry.metadata,
                }
                for entry in topic.partitions
            ],
        }
        for topic in topics
    ]


def read_outcomes(data: Data) -> tuple[OffsetCommitTopicResult, ...]:
    """One error a partition, by topic."""
    return tuple(
        OffsetCommitTopicResult(
            topic.get("name", ""),
            tuple(
                PartitionError(entry["partitionIndex"], error_of(entry))
                for entry in topic["partitions"]
            ),
            id_or_none(topic),
        )
        for topic in data["topics"]
    )


def write_outcomes(topics: tuple[OffsetCommitTopicResult, ...]) -> list[Data]:
    """One error a partition, by topic."""
    return [
        {
            **topic_fields(topic.name, topic.topic_id),
            "partitions": [
                {"partitionIndex": entry.partition, "errorCode": int(entry.error_code)}
                for entry in topic.partitions
            ],
        }
        for topic in topics
    ]


# -- OffsetCommit --------------------------------------------------------------------------


def _read_commit(data: Data, _version: int) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=data["groupId"],
        generation_id=data.get("generationIdOrMemberEpoch", -1),
        member_id=data.get("memberId", ""),
        group_instance_id=data.get("groupInstanceId"),
        retention_time_ms=data.get("retentionTimeMs", -1),
        topics=read_committed_topics(data),
    )


def _write_commit(request: OffsetCommitRequest, _version: int) -> Data:
    return {
        "groupId": request.group_id,
        "generationIdOrMemberEpoch": request.generation_id,
        "memberId": request.member_id,
        "groupInstanceId": request.group_instance_id,
        "retentionTimeMs": request.retention_time_ms,
        "topics": write_committed_topics(request.topics),
    }


def _read_committed(
    data: Data, _version: int, _request: OffsetCommitRequest | None
) -> OffsetCommitResponse:
    return OffsetCommitResponse(topics=read_outcomes(data))


def _write_committed(
    response: OffsetCommitResponse, _version: int, _request: OffsetCommitRequest | None
) -> Data:
    return {"topics": write_outcomes(response.topics)}


# -- OffsetFetch ---------------------------------------------------------------------------


def _read_asked(group: Data) -> OffsetFetchGroup:
    topics = group["topics"]
    return OffsetFetchGroup(
        group_id=group["groupId"],
        member_id=group.get("memberId"),
        member_epoch=group.get("memberEpoch", -1),
        topics=None
        if topics is None
        else tuple(
            OffsetFetchTopic(
                topic.get("name", ""), tuple(topic["partitionIndexes"]), id_or_none(topic)
            )
            for topic in topics
        ),
    )


def _read_fetch(data: Data, version: int) -> OffsetFetchRequest:
    groups = data["groups"] if version >= _BATCHED_FETCH else (data,)
    return OffsetFetchRequest(
        groups=tuple(_read_asked(group) for group in groups),
        require_stable=data.get("requireStable", False),
    )


def _write_asked(group: OffsetFetchGroup) -> Data:
    return {
        "groupId": group.group_id,
        "memberId": group.member_id,
        "memberEpoch": group.member_epoch,
        "topics": None
        if group.topics is None
        else [
            {
                **topic_fields(topic.name, topic.topic_id),
                "partitionIndexes": list(topic.partitions),
            }
            for topic in group.topics
        ],
    }


def _write_fetch(request: OffsetFetchRequest, version: int) -> Data:
    """Before version 8 one group. Source: OffsetFetchRequest.Builder.build."""
    if version >= _BATCHED_FETCH:
        groups = [_write_asked(group) for group in request.groups]
        return {"groups": groups, "requireStable": request.require_stable}
    if len(request.groups) != 1:
        raise UnsupportedVersion(
            f"OffsetFetch version {version} asks for one group, not {len(request.groups)}: "
            f"use {_BATCHED_FETCH} or newer"
        )
    return {**_write_asked(request.groups[0]), "requireStable": request.require_stable}


def _read_fetched_topics(topics: list[Data]) -> tuple[FetchedTopic, ...]:
    return tuple(
        FetchedTopic(
            topic.get("name", ""),
            tuple(
                FetchedOffset(
                    entry["partitionIndex"],
                    entry["committedOffset"],
                    entry.get("committedLeaderEpoch", -1),
                    entry["metadata"],
                    error_of(entry),
                )
                for entry in topic["partitions"]
            ),
            id_or_none(topic),
        )
        for topic in topics
    )


def _read_fetched(
    data: Data, version: int, request: OffsetFetchRequest | None
) -> OffsetFetchResponse:
    if version >= _BATCHED_FETCH:
        groups = tuple(
            FetchedGroup(
                group_id=group["groupId"],
                topics=_read_fetched_topics(group["topics"]),
                error_code=error_of(group),
            )
            for group in data["groups"]
        )
        return OffsetFetchResponse(groups=groups)
    group = FetchedGroup(
        group_id=request.groups[0].group_id if request is not None else "",
        topics=_read_fetched_topics(data["topics"]),
        error_code=error_of(data) if version >= _GROUP_ERROR_IN_FETCH else ErrorCode.NONE,
    )
    return OffsetFetchResponse(groups=(group,))


def _write_fetched_topic(topic: FetchedTopic) -> Data:
    return {
        **topic_fields(topic.name, topic.topic_id),
        "partitions": [
            {
                "partitionIndex": entry.partition,
                "committedOffset": entry.offset,
                "committedLeaderEpoch": entry.leader_epoch,
                "metadata": entry.metadata,
                "errorCode": int(entry.error_code),
            }
            for entry in topic.partitions
        ],
    }


def _spread_error(
    group: FetchedGroup, request: OffsetFetchRequest | None
) -> tuple[FetchedTopic, ...]:
    """The group's error on each partition asked for. Source: OffsetFetchResponse.groupError."""
    if request is None:
        return ()
    return tuple(
        FetchedTopic(
            topic.name,
            tuple(FetchedOffset(index, error_code=group.error_code) for index in topic.partitions),
        )
        for topic in request.groups[0].topics or ()
    )


def _write_fetched(
    response: OffsetFetchResponse, version: int, request: OffsetFetchRequest | None
) -> Data:
    if version >= _BATCHED_FETCH:
        groups = [
            {
                "groupId": group.group_id,
                "topics": [_write_fetched_topic(topic) for topic in group.topics],
                "errorCode": int(group.error_code),
            }
            for group in response.groups
        ]
        return {"groups": groups}
    group = response.groups[0]
    topics = group.topics
    if version < _GROUP_ERROR_IN_FETCH and group.error_code is not ErrorCode.NONE and not topics:
        topics = _spread_error(group, request)
    written = [_write_fetched_topic(topic) for topic in topics]
    return {"topics": written, "errorCode": int(group.error_code)}


# -- OffsetDelete --------------------------------------------------------------------------


def _read_delete(data: Data, _version: int) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=data["groupId"],
        topics=tuple(
            OffsetDeleteTopic(
                topic["name"], tuple(entry["partitionIndex"] for entry in topic["partitions"])
            )
            for topic in data["topics"]
        ),
    )


def _write_delete(request: OffsetDeleteRequest, _version: int) -> Data:
    return {
        "groupId": request.group_id,
        "topics": [
            {
                "name": topic.name,
                "partitions": [{"partitionIndex": index} for index in topic.partitions],
            }
            for topic in request.topics
        ],
    }


def _read_deleted(
    data: Data, _version: int, _request: OffsetDeleteRequest | None
) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(
        error_code=error_of(data),
        topics=tuple(
            DeletedOffsetTopic(
                topic["name"],
                tuple(
                    DeletedOffset(entry["partitionIndex"], error_of(entry))
                    for entry in topic["partitions"]
                ),
            )
            for topic in data["topics"]
        ),
    )


def _write_deleted(
    response: OffsetDeleteResponse, _version: int, _request: OffsetDeleteRequest | None
) -> Data:
    return {
        "errorCode": int(response.error_code),
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


OFFSET_COMMIT: Final = Form(
    read_request=_read_commit,
    write_request=_write_commit,
    read_response=_read_committed,
    write_response=_write_committed,
)
OFFSET_FETCH: Final = Form(
    read_request=_read_fetch,
    write_request=_write_fetch,
    read_response=_read_fetched,
    write_response=_write_fetched,
)
OFFSET_DELETE: Final = Form(
    read_request=_read_delete,
    write_request=_write_delete,
    read_response=_read_deleted,
    write_response=_write_deleted,
)
