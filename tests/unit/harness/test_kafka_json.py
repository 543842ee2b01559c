"""Requests, responses and records in the JSON of Kafka's own converters, version by version."""

import json
from pathlib import Path
from typing import Any

import pytest

from coordinator_sim.errors import DataError, UnsupportedVersion
from coordinator_sim.harness.kafka_json import (
    read_records,
    read_request,
    read_response,
    write_records,
    write_request,
    write_response,
)
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages import (
    group_records,
    join_group,
    leave_group,
    offset_commit,
    offset_fetch,
    sync_group,
)
from coordinator_sim.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupResponse
from coordinator_sim.messages.metadata import MetadataRequest, MetadataResponse
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from coordinator_sim.messages.offset_fetch import OffsetFetchResponse
from coordinator_sim.messages.records import (
    EndTransactionMarker,
    LogBatch,
    LogRecord,
    OpaqueKey,
    OpaqueValue,
)
from coordinator_sim.messages.requests import GroupRequest, Response
from coordinator_sim.messages.txn_offset_commit import TxnOffsetCommitRequest

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


# -- What the JSON form accepts, what it defaults and what it refuses, in one kind of error ----


REFUSED = Path(__file__).with_name("refused_json.jsonl")
"""Requests that cannot be read, and words of the refusal."""

Json = dict[str, Any]

TOPIC_ID = bytes(15) + b"\xff"
PROTOCOL = {"name": "range", "metadata": ""}


def test_top_level_is_filled_with_defaults() -> None:
    """A request may leave out what it does not care for."""
    assert read_request("Heartbeat", 4, {"groupId": "g"}) == HeartbeatRequest(
        group_id="g", generation_id=0, member_id=""
    )
    commit = read_request("OffsetCommit", 9, {"groupId": "g"})
    assert commit == OffsetCommitRequest(group_id="g", topics=())


def test_unknown_names_are_passed_over() -> None:
    """Kafka's converters do not look at them, at any depth."""
    data = {"groupId": "g", "later": 1, "protocols": [{**PROTOCOL, "later": 1}]}
    assert read_request("JoinGroup", 4, data) == read_request(
        "JoinGroup", 4, {"groupId": "g", "protocols": [PROTOCOL]}
    )


@pytest.mark.parametrize("line", REFUSED.read_text("utf-8").splitlines())
def test_what_kafka_refuses_is_a_data_error(line: str) -> None:
    """The message names the field and what it holds."""
    case = json.loads(line)
    with pytest.raises(DataError) as caught:
        read_request(case["api"], case["version"], case["data"])
    assert case["words"] in str(caught.value)


@pytest.mark.parametrize(
    ("api", "version", "data", "words"),
    [
        ("JoinGroup", 10, {}, "JoinGroup has no version 10: use 0 to 9"),
        ("Heartbeat", -1, {}, "Heartbeat has no version -1"),
        ("Produce", 0, {}, "unknown API 'Produce': use one of OffsetCommit"),
        ("OffsetFetch", 1, {"requireStable": True}, "version 1 cannot say requireStable"),
        ("LeaveGroup", 2, {"members": [{"memberId": "m"}]}, "version 2 cannot say members"),
    ],
)
def test_what_a_version_cannot_say_is_named(api: str, version: int, data: Json, words: str) -> None:
    """Kafka's writers refuse such a field, and so does ours: none is dropped in silence."""
    with pytest.raises(UnsupportedVersion, match=words):
        read_request(api, version, data)


def test_fields_of_other_versions_may_be_there_at_their_default() -> None:
    """Fields that a version drops may be there at their default, too."""
    assert read_request("OffsetFetch", 1, {"requireStable": False}) == read_request(
        "OffsetFetch", 1, {}
    )
    assert read_request("JoinGroup", 0, {"reason": "x"}) == read_request("JoinGroup", 0, {})


def test_requests_of_other_apis_have_no_json() -> None:
    """Metadata is the broker's."""
    with pytest.raises(UnsupportedVersion, match="METADATA is not one of the group APIs"):
        write_request(MetadataRequest(), 0)


def test_transactional_commits_go_by_both_names_of_the_generation() -> None:
    """4.4 calls it generationIdOrMemberEpoch, older releases generationId."""
    new = read_request("TxnOffsetCommit", 3, {"generationIdOrMemberEpoch": 4})
    assert isinstance(new, TxnOffsetCommitRequest)
    assert new.generation_id_or_member_epoch == 4
    assert read_request("TxnOffsetCommit", 3, {"generationId": 4}) == new


def test_topic_ids_replace_names_from_version_10() -> None:
    """OffsetCommit and its answer: a name up to 9, an id from 10 on."""
    outcome = (OffsetCommitResponsePartition(0, ErrorCode.NONE),)
    answer = OffsetCommitResponse(
        topics=(OffsetCommitResponseTopic("t", partitions=outcome, topic_id=TOPIC_ID),)
    )
    ask = OffsetCommitRequest(group_id="g", topics=())
    [old] = write_response(ask, 9, answer)["topics"]
    [new] = write_response(ask, 10, answer)["topics"]
    assert (old["name"], "topicId" in old) == ("t", False)
    assert (new["topicId"], "name" in new) == ("AAAAAAAAAAAAAAAAAAAA_w", False)
    read = read_response("OffsetCommit", 10, {"throttleTimeMs": 0, "topics": [new]})
    assert read == OffsetCommitResponse(
        topics=(OffsetCommitResponseTopic("", partitions=outcome, topic_id=TOPIC_ID),)
    )


def test_no_protocol_is_null_from_version_7() -> None:
    """An empty name becomes null, as null becomes empty before."""
    nobody = HeartbeatRequest(group_id="", generation_id=0, member_id="")
    assert write_response(nobody, 7, JoinGroupResponse(protocol_name=""))["protocolName"] is None


def test_old_answers_take_their_group_from_the_request() -> None:
    """OffsetFetch names the group in its answer from version 8 only."""
    request = read_request("OffsetFetch", 7, {"groupId": "g", "topics": []})
    said = {"throttleTimeMs": 0, "topics": [], "errorCode": 16}
    with_request = read_response("OffsetFetch", 7, said, request)
    without = read_response("OffsetFetch", 7, said)
    assert isinstance(with_request, OffsetFetchResponse)
    assert isinstance(without, OffsetFetchResponse)
    assert with_request.groups[0].group_id == "g"
    assert without.groups[0].group_id == ""
    assert without.groups[0].error_code is ErrorCode.NOT_COORDINATOR


def test_responses_are_strict_and_know_their_errors() -> None:
    """A response is not filled with defaults; an unknown error is refused."""
    assert read_response("Heartbeat", 0, {"errorCode": 25}) == HeartbeatResponse(
        error_code=ErrorCode.UNKNOWN_MEMBER_ID
    )
    with pytest.raises(DataError, match="'throttleTimeMs' is missing"):
        read_response("Heartbeat", 1, {"errorCode": 0})
    with pytest.raises(DataError, match="errorCode 999"):
        read_response("Heartbeat", 0, {"errorCode": 999})


# -- records -------------------------------------------------------------------------------

MEMBER = MemberMetadata(
    member_id="m",
    group_instance_id="i",
    client_id="c",
    client_host="/h",
    rebalance_timeout=2,
    session_timeout=1,
    subscription=b"\x01",
    assignment=b"",
)
GROUP = GroupMetadataValue(
    protocol_type="consumer",
    generation=1,
    protocol=None,
    leader=None,
    current_state_timestamp=5,
    members=(MEMBER,),
)
RECORDS = (
    LogRecord(GroupMetadataKey("g"), GROUP, 3),
    LogRecord(OffsetCommitKey("g", "t", 1), OffsetCommitValue(offset=3, topic_id=TOPIC_ID), 4),
    LogRecord(OffsetCommitKey("g", "t", 2), OffsetCommitValue(offset=3, metadata="x"), 1),
    LogRecord(OffsetCommitKey("g", "t", 3), None, 0),
    LogRecord(OpaqueKey(3, b"\x00\x01g"), OpaqueValue(b"\x00\x00\x01"), 0),
)


def test_records_come_back_as_they_were_written() -> None:
    """Groups, offsets, tombstones and what only newer coordinators understand."""
    batch = LogBatch(partition=1, base_offset=7, timestamp_ms=3, records=RECORDS)
    written = write_records(batch)
    assert [record["offset"] for record in written] == [7, 8, 9, 10, 11]
    assert read_records(written) == RECORDS


def test_records_may_be_bytes() -> None:
    """Key and value in base64, as a log holds them."""
    node = {"key": "AAIAAWc=", "value": None}
    assert read_records([node]) == (LogRecord(GroupMetadataKey("g"), None, 0),)


def test_transactional_records_and_markers_name_their_producer() -> None:
    """A marker has `control` in place of key and value, and takes one offset."""
    sent = LogBatch(
        partition=1,
        base_offset=7,
        timestamp_ms=3,
        records=RECORDS[2:3],
        producer_id=9,
        producer_epoch=1,
        transactional=True,
    )
    assert write_records(sent)[0].items() >= {"producerId": 9, "producerEpoch": 1}.items()
    ended = LogBatch(
        partition=1,
        base_offset=8,
        timestamp_ms=4,
        records=(),
        producer_id=9,
        producer_epoch=1,
        transactional=True,
        marker=EndTransactionMarker(committed=False),
    )
    assert write_records(ended) == [
        {
            "partition": 1,
            "offset": 8,
            "ts": 4,
            "producerId": 9,
            "producerEpoch": 1,
            "control": "ABORT",
        }
    ]


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ({}, "a record needs a key"),
        ({"key": {"data": {}}}, "numeric type"),
        ({"key": {"type": 2, "data": {}}}, "field 'group' is missing"),
        ({"key": {"type": 2, "data": {"group": "g"}}, "value": {}}, "numeric version"),
        ({"key": {"type": 9, "data": {}}}, "needs data with bytes"),
    ],
)
def test_broken_records_are_named(node: Json, words: str) -> None:
    """One error, with the field."""
    with pytest.raises(DataError, match=words):
        read_records([node])


def test_unknown_value_versions_are_named() -> None:
    """Kafka has 0 to 4 of both values."""
    node = {"key": {"type": 2, "data": {"group": "g"}}, "value": {"version": 5, "data": {}}}
    with pytest.raises(UnsupportedVersion, match="GroupMetadataValue has no version 5"):
        read_records([node])
    with pytest.raises(UnsupportedVersion, match="records of key type -1"):
        read_records([{"key": {"type": -1, "data": {}}}])
