"""What the JSON form accepts, what it defaults and what it refuses, in one kind of error."""

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
from coordinator_sim.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupResponse
from coordinator_sim.messages.metadata import MetadataRequest
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
from coordinator_sim.messages.txn_offset_commit import TxnOffsetCommitRequest

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
