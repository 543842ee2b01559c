"""Requests, responses and records in the JSON of Kafka's own converters, version by version."""

from typing import Any

import pytest

from coordinator_sim.harness.kafka_json import read_request, write_records, write_response
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages import (
    group_records,
    join_group,
    leave_group,
    offset_commit,
    offset_fetch,
    sync_group,
)
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.metadata import MetadataResponse
from coordinator_sim.messages.records import LogBatch, LogRecord
from coordinator_sim.messages.requests import GroupRequest, Response

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=3, member_id="m")
FETCH = offset_fetch.OffsetFetchRequest(
    groups=(
        offset_fetch.OffsetFetchRequestGroup(
            group_id="g",
            topics=(offset_fetch.OffsetFetchRequestTopics("t", partition_indexes=(0,)),),
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
        join_group.JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10,
            member_id="",
            protocol_type="consumer",
            protocols=(join_group.JoinGroupRequestProtocol("range", b"\x00\x01"),),
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
        sync_group.SyncGroupRequest(
            group_id="g",
            generation_id=1,
            member_id="m",
            assignments=(sync_group.SyncGroupRequestAssignment("m", b"\x01"),),
        ),
    ),
    ("Heartbeat", 0, {"groupId": "g", "generationId": 3, "memberId": "m"}, HEARTBEAT),
    (
        "LeaveGroup",
        2,
        {"groupId": "g", "memberId": "m"},
        leave_group.LeaveGroupRequest(
            group_id="g", members=(leave_group.MemberIdentity(member_id="m"),)
        ),
    ),
    (
        "LeaveGroup",
        5,
        {"groupId": "g", "members": [{"memberId": "m", "groupInstanceId": "i", "reason": "r"}]},
        leave_group.LeaveGroupRequest(
            group_id="g",
            members=(leave_group.MemberIdentity(member_id="m", group_instance_id="i", reason="r"),),
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
        offset_commit.OffsetCommitRequest(
            group_id="g",
            retention_time_ms=9,
            topics=(
                offset_commit.OffsetCommitRequestTopic(
                    "t",
                    partitions=(
                        offset_commit.OffsetCommitRequestPartition(
                            0, 5, -1, committed_metadata=None
                        ),
                    ),
                ),
            ),
        ),
    ),
    ("OffsetFetch", 7, {"groupId": "g", "topics": [{"name": "t", "partitionIndexes": [0]}]}, FETCH),
    (
        "OffsetFetch",
        8,
        {"groups": [{"groupId": "g", "topics": None}], "requireStable": True},
        offset_fetch.OffsetFetchRequest(
            groups=(offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=None),),
            require_stable=True,
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
    response = join_group.JoinGroupResponse(
        members=(join_group.JoinGroupResponseMember("m", "i", b"\x01"),), protocol_name=None
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
        (
            sync_group.SyncGroupResponse(assignment=b"\x01"),
            0,
            {"errorCode": 0, "assignment": "AQ=="},
        ),
        (
            offset_commit.OffsetCommitResponse(
                topics=(
                    offset_commit.OffsetCommitResponseTopic(
                        "t",
                        partitions=(
                            offset_commit.OffsetCommitResponsePartition(0, ErrorCode.NONE),
                        ),
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
    response = sync_group.SyncGroupResponse(protocol_type="consumer", protocol_name="range")
    written = write_response(HEARTBEAT, 5, response)
    assert (written["protocolType"], written["protocolName"]) == ("consumer", "range")


def test_old_leave_answer_has_its_error_at_the_top() -> None:
    """LEAVE-004: before version 3 a LeaveGroup names one member, whose error is the answer's."""
    request = read_request("LeaveGroup", 2, {"groupId": "g", "memberId": "m"})
    member = leave_group.MemberResponse(
        member_id="m", error_code=ErrorCode.UNKNOWN_MEMBER_ID, group_instance_id=None
    )
    response = leave_group.LeaveGroupResponse(members=(member,))
    assert write_response(request, 2, response) == {"throttleTimeMs": 0, "errorCode": 25}
    assert write_response(request, 3, response)["members"][0]["errorCode"] == 25


def fetch_answer(error: ErrorCode = ErrorCode.NONE) -> offset_fetch.OffsetFetchResponse:
    """One group with an offset, or with an error."""
    topics = (
        (
            offset_fetch.OffsetFetchResponseTopics(
                "t", partitions=(offset_fetch.OffsetFetchResponsePartitions(0, 5, 2, "x"),)
            ),
        )
        if error == 0
        else ()
    )
    return offset_fetch.OffsetFetchResponse(
        groups=(
            offset_fetch.OffsetFetchResponseGroup(group_id="g", topics=topics, error_code=error),
        )
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
    everything = offset_fetch.OffsetFetchRequest(
        groups=(offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=None),)
    )
    assert write_response(everything, 1, failed) == {"topics": []}


def test_response_of_another_api_has_no_json() -> None:
    """Only the group APIs are spoken here."""
    with pytest.raises(TypeError, match="no JSON form of MetadataResponse"):
        write_response(HEARTBEAT, 0, MetadataResponse(brokers=(), topics=()))


def written_value(
    value: group_records.OffsetCommitValue | group_records.GroupMetadataValue | None, version: int
) -> Any:  # noqa: ANN401  JSON
    """The value of one record as JSON."""
    key = (
        group_records.OffsetCommitKey("g", "t", 0)
        if isinstance(value, group_records.OffsetCommitValue)
        else group_records.GroupMetadataKey("g")
    )
    record = LogRecord(key, value, version)
    batch = LogBatch(partition=1, base_offset=7, timestamp_ms=3, records=(record,))
    return write_records(batch)[0]["value"]


def test_offset_value_has_the_fields_of_its_version() -> None:
    """Version 1 has the expiry, 3 the leader epoch, 4 the topic id in URL-safe base64."""
    value = group_records.OffsetCommitValue(offset=5, topic_id=bytes(15) + b"\xff")
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
    member = group_records.MemberMetadata(
        member_id="m",
        group_instance_id="i",
        client_id="c",
        client_host="/h",
        rebalance_timeout=2,
        session_timeout=1,
        subscription=b"\x01",
        assignment=b"",
    )
    value = group_records.GroupMetadataValue(
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
