"""Requests, responses and records in the JSON of Kafka's own converters, version by version."""

from typing import Any

import pytest

from coordinator_sim.harness.kafka_json import read_request, write_records, write_response
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from coordinator_sim.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from coordinator_sim.messages.metadata import MetadataResponse
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from coordinator_sim.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from coordinator_sim.messages.records import LogBatch, LogRecord
from coordinator_sim.messages.requests import GroupRequest, Response
from coordinator_sim.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=3, member_id="m")
FETCH = OffsetFetchRequest(
    groups=(
        OffsetFetchRequestGroup(
            group_id="g", topics=(OffsetFetchRequestTopics("t", partition_indexes=(0,)),)
        ),
    )
)
REQUESTS: list[tuple[str, int, dict[str, Any], GroupRequest]] = [
    (
        "JoinGroup",
        0,
        {
            "groupId": "g",
            "sessionTimeoutMs": 10,
            "memberId": "",
            "protocolType": "consumer",
            "protocols": [{"name": "range", "metadata": "AAE="}],
        },
        JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10,
            member_id="",
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol("range", b"\x00\x01"),),
        ),
    ),
    (
        "SyncGroup",
        0,
        {
            "groupId": "g",
            "generationId": 1,
            "memberId": "m",
            "assignments": [{"memberId": "m", "assignment": "AQ=="}],
        },
        SyncGroupRequest(
            group_id="g",
            generation_id=1,
            member_id="m",
            assignments=(SyncGroupRequestAssignment("m", b"\x01"),),
        ),
    ),
    ("Heartbeat", 0, {"groupId": "g", "generationId": 3, "memberId": "m"}, HEARTBEAT),
    (
        "LeaveGroup",
        2,
        {"groupId": "g", "memberId": "m"},
        LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id="m"),)),
    ),
    (
        "LeaveGroup",
        5,
        {"groupId": "g", "members": [{"memberId": "m", "groupInstanceId": "i", "reason": "r"}]},
        LeaveGroupRequest(
            group_id="g",
            members=(MemberIdentity(member_id="m", group_instance_id="i", reason="r"),),
        ),
    ),
    (
        "OffsetCommit",
        2,
        {
            "groupId": "g",
            "retentionTimeMs": 9,
            "topics": [
                {
                    "name": "t",
                    "partitions": [
                        {"partitionIndex": 0, "committedOffset": 5, "committedMetadata": None}
                    ],
                }
            ],
        },
        OffsetCommitRequest(
            group_id="g",
            retention_time_ms=9,
            topics=(
                OffsetCommitRequestTopic(
                    "t",
                    partitions=(OffsetCommitRequestPartition(0, 5, -1, committed_metadata=None),),
                ),
            ),
        ),
    ),
    ("OffsetFetch", 7, {"groupId": "g", "topics": [{"name": "t", "partitionIndexes": [0]}]}, FETCH),
    (
        "OffsetFetch",
        8,
        {"groups": [{"groupId": "g", "topics": None}], "requireStable": True},
        OffsetFetchRequest(
            groups=(OffsetFetchRequestGroup(group_id="g", topics=None),), require_stable=True
        ),
    ),
]


@pytest.mark.parametrize(
    ("api", "version", "data", "expected"), REQUESTS, ids=lambda value: str(value)[:12]
)
def test_request_is_read(
    api: str, version: int, data: dict[str, Any], expected: GroupRequest
) -> None:
    """Fields that a version lacks are at their defaults; bytes come from base64."""
    assert read_request(api, version, data) == expected


def test_join_answer_has_the_fields_of_its_version() -> None:
    """Version 0 has no throttle time, type or instance ids, and no null protocol name."""
    response = JoinGroupResponse(
        members=(JoinGroupResponseMember("m", "i", b"\x01"),), protocol_name=None
    )
    old = write_response(HEARTBEAT, 0, response)
    new = write_response(HEARTBEAT, 9, response)
    assert old["protocolName"] == ""
    assert old["members"] == [{"memberId": "m", "metadata": "AQ=="}]
    assert set(new) - set(old) == {"throttleTimeMs", "protocolType", "skipAssignment"}
    assert new["protocolName"] is None
    assert new["members"][0]["groupInstanceId"] == "i"


@pytest.mark.parametrize(
    ("response", "version", "expected"),
    [
        (HeartbeatResponse(), 0, {"errorCode": 0}),
        (HeartbeatResponse(), 1, {"throttleTimeMs": 0, "errorCode": 0}),
        (SyncGroupResponse(assignment=b"\x01"), 0, {"errorCode": 0, "assignment": "AQ=="}),
        (
            OffsetCommitResponse(
                topics=(
                    OffsetCommitResponseTopic(
                        "t", partitions=(OffsetCommitResponsePartition(0, ErrorCode.NONE),)
                    ),
                )
            ),
            2,
            {"topics": [{"name": "t", "partitions": [{"partitionIndex": 0, "errorCode": 0}]}]},
        ),
    ],
    ids=("heartbeat-0", "heartbeat-1", "sync-0", "commit-2"),
)
def test_answer_is_written(response: Response, version: int, expected: dict[str, Any]) -> None:
    """An answer has no field that its version lacks."""
    assert write_response(HEARTBEAT, version, response) == expected


def test_sync_answer_tells_the_protocol_from_version_5() -> None:
    """Type and name came with KIP-559."""
    response = SyncGroupResponse(protocol_type="consumer", protocol_name="range")
    written = write_response(HEARTBEAT, 5, response)
    assert (written["protocolType"], written["protocolName"]) == ("consumer", "range")


def test_old_leave_answer_has_its_error_at_the_top() -> None:
    """LEAVE-004: before version 3 a LeaveGroup names one member, whose error is the answer's."""
    request = read_request("LeaveGroup", 2, {"groupId": "g", "memberId": "m"})
    member = MemberResponse(
        member_id="m", error_code=ErrorCode.UNKNOWN_MEMBER_ID, group_instance_id=None
    )
    response = LeaveGroupResponse(members=(member,))
    assert write_response(request, 2, response) == {"throttleTimeMs": 0, "errorCode": 25}
    assert write_response(request, 3, response)["members"][0]["errorCode"] == 25


def fetch_answer(error: ErrorCode = ErrorCode.NONE) -> OffsetFetchResponse:
    """One group with an offset, or with an error."""
    topics = (
        (OffsetFetchResponseTopics("t", partitions=(OffsetFetchResponsePartitions(0, 5, 2, "x"),)),)
        if error == 0
        else ()
    )
    return OffsetFetchResponse(
        groups=(OffsetFetchResponseGroup(group_id="g", topics=topics, error_code=error),)
    )


def test_fetch_of_one_group_has_its_topics_at_the_top() -> None:
    """Up to version 7; the leader epoch came with version 5."""
    written = write_response(FETCH, 4, fetch_answer())
    entry = {"partitionIndex": 0, "committedOffset": 5, "metadata": "x", "errorCode": 0}
    assert written == {
        "throttleTimeMs": 0,
        "topics": [{"name": "t", "partitions": [entry]}],
        "errorCode": 0,
    }
    newer = write_response(FETCH, 5, fetch_answer())
    assert newer["topics"][0]["partitions"][0]["committedLeaderEpoch"] == 2


def test_fetch_of_a_batch_lists_groups() -> None:
    """From version 8."""
    written = write_response(FETCH, 8, fetch_answer(ErrorCode.NOT_COORDINATOR))
    assert written["groups"] == [{"groupId": "g", "topics": [], "errorCode": 16}]


def test_oldest_fetch_spreads_the_error_over_its_partitions() -> None:
    """Before version 2 a group has no error of its own; nothing asked for, nothing told."""
    failed = fetch_answer(ErrorCode.NOT_COORDINATOR)
    written = write_response(FETCH, 1, failed)
    assert written["topics"][0]["partitions"][0]["errorCode"] == 16
    everything = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g", topics=None),))
    assert write_response(everything, 1, failed) == {"topics": []}


def test_response_of_another_api_has_no_json() -> None:
    """Only the group APIs are spoken here."""
    with pytest.raises(TypeError, match="no JSON form of MetadataResponse"):
        write_response(HEARTBEAT, 0, MetadataResponse(brokers=(), topics=()))


def written_value(value: OffsetCommitValue | GroupMetadataValue | None, version: int) -> Any:  # noqa: ANN401  JSON
    """The value of one record as JSON."""
    key = (
        OffsetCommitKey("g", "t", 0)
        if isinstance(value, OffsetCommitValue)
        else GroupMetadataKey("g")
    )
    record = LogRecord(key, value, version)
    batch = LogBatch(partition=1, base_offset=7, timestamp_ms=3, records=(record,))
    return write_records(batch)[0]["value"]


def test_offset_value_has_the_fields_of_its_version() -> None:
    """Version 1 has the expiry, 3 the leader epoch, 4 the topic id in URL-safe base64."""
    value = OffsetCommitValue(offset=5, topic_id=bytes(15) + b"\xff")
    assert written_value(value, 1)["data"]["expireTimestamp"] == -1
    assert set(written_value(value, 3)["data"]) == {
        "offset",
        "leaderEpoch",
        "metadata",
        "commitTimestamp",
    }
    assert written_value(value, 4)["data"]["topicId"] == "AAAAAAAAAAAAAAAAAAAA_w"


def test_group_value_has_the_fields_of_its_version() -> None:
    """Version 0 has neither state time nor rebalance timeout nor instance ids."""
    member = MemberMetadata(
        member_id="m",
        group_instance_id="i",
        client_id="c",
        client_host="/h",
        rebalance_timeout=2,
        session_timeout=1,
        subscription=b"\x01",
        assignment=b"",
    )
    value = GroupMetadataValue(
        protocol_type="consumer", generation=1, protocol="range", leader="m", members=(member,)
    )
    old, new = written_value(value, 0)["data"], written_value(value, 3)["data"]
    assert set(new) - set(old) == {"currentStateTimestamp"}
    assert set(new["members"][0]) - set(old["members"][0]) == {
        "groupInstanceId",
        "rebalanceTimeout",
    }


def test_tombstone_has_no_value() -> None:
    """A deleted group is a key alone."""
    assert written_value(None, 0) is None
