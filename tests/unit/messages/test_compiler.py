"""Compiled readers and writers: what is short and plain goes straight, anything else carefully."""

import pytest

from coordinator_sim.errors import CoordinatorSimError, DataError, WireFormatError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.log.format.steps import finished
from coordinator_sim.messages import offset_commit, offset_fetch
from coordinator_sim.messages.codec.compiler import response_steps
from coordinator_sim.messages.codec.frames import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupResponse

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=3, member_id="m")


def commit_of(*metadata: str | None) -> offset_commit.OffsetCommitRequest:
    """A commit of one partition for each metadata."""
    partitions = tuple(
        offset_commit.OffsetCommitRequestPartition(index, 100 + index, committed_metadata=each)
        for index, each in enumerate(metadata)
    )
    topics = (offset_commit.OffsetCommitRequestTopic("t", partitions=partitions),)
    return offset_commit.OffsetCommitRequest("g", 3, "m", topics=topics)


def fetch_of(*metadata: str, group_id: str = "g") -> offset_fetch.OffsetFetchResponse:
    """An answer with one partition for each metadata."""
    partitions = tuple(
        offset_fetch.OffsetFetchResponsePartitions(index, 100 + index, metadata=each)
        for index, each in enumerate(metadata)
    )
    topics = (offset_fetch.OffsetFetchResponseTopics("t", partitions=partitions),)
    group = offset_fetch.OffsetFetchResponseGroup(group_id=group_id, topics=topics)
    return offset_fetch.OffsetFetchResponse(groups=(group,))


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 16_383, 32_767])
@pytest.mark.parametrize("version", [0, 4])
def test_texts_of_every_length_come_back(size: int, version: int) -> None:
    """Lengths of one, two and three bytes."""
    request = HeartbeatRequest(group_id="g", generation_id=3, member_id="m" * size)
    frame = encode_request(request, version, correlation_id=7, client_id="c")

    assert decode_request(frame)[1] == request


def test_tagged_fields_are_passed_over() -> None:
    """In the header and in the body."""
    frame = encode_request(HEARTBEAT, 4, correlation_id=7, client_id="c")
    header_tags = len(b"\x00\x0c\x00\x04\x00\x00\x00\x07\x00\x01c")
    tag = b"\x01\x05\x02ab"
    tagged = frame[:header_tags] + tag + frame[header_tags + 1 : -1] + tag

    assert decode_request(tagged)[1] == HEARTBEAT


@pytest.mark.parametrize(
    "metadata",
    [(), ("",), ("", "", ""), ("x", "", ""), ("", "", "x"), ("", None, ""), (None,), ("y" * 200,)],
)
@pytest.mark.parametrize("version", range(2, 10))
def test_partitions_are_read_as_rows_or_one_by_one(
    metadata: tuple[str | None, ...], version: int
) -> None:
    """Rows of one size are a way of reading, not a form: the commit is the same."""
    request = commit_of(*metadata)
    frame = encode_request(request, version, correlation_id=7, client_id="c")

    assert decode_request(frame)[1] == request


@pytest.mark.parametrize(
    "metadata",
    [(), ("",), ("", "", ""), ("x", "", ""), ("", "", "x"), ("y" * 200,), ("", "x") * 1_500],
)
@pytest.mark.parametrize("version", range(1, 10))
def test_partitions_are_written_as_rows_or_one_by_one(
    metadata: tuple[str, ...], version: int
) -> None:
    """Rows of one size are a way of writing, in steps or not: the answer is the same."""
    answer = fetch_of(*metadata)
    frame = encode_response(answer, version, correlation_id=7)
    steps = response_steps(ApiKey.OFFSET_FETCH, version)(7, answer)

    found = decode_response(ApiKey.OFFSET_FETCH, version, frame)
    assert found == (7, answer if version > 7 else fetch_of(*metadata, group_id=""))
    assert finished(steps) == frame


def test_only_a_long_answer_is_written_with_pauses() -> None:
    """An answer of ten partitions is one step; each pause follows a thousand fields or more."""
    short = response_steps(ApiKey.OFFSET_FETCH, 5)(7, fetch_of(*("m",) * 10))
    long = response_steps(ApiKey.OFFSET_FETCH, 5)(7, fetch_of(*("m",) * 5_000))

    assert list(short) == []
    costs = list(long)
    assert sum(costs) >= 5_000
    assert all(1_000 <= cost < 10_000 for cost in costs)


@pytest.mark.parametrize("version", [7, 9])
def test_rows_that_are_cut_are_refused(version: int) -> None:
    """Wherever the frame ends, in a row or between two."""
    frame = encode_request(commit_of("", "", ""), version, correlation_id=7, client_id="c")

    for end in range(len(frame) - 48, len(frame)):
        with pytest.raises(WireFormatError, match=r"OffsetCommitRequest.* \(at byte \d+\)"):
            decode_request(frame[:end])


def test_an_array_that_counts_too_many_is_refused() -> None:
    """Before anything is read of it."""
    frame = encode_request(commit_of(""), 7, correlation_id=7, client_id="c")
    at = frame.index(b"\x00\x00\x00\x01\x00\x01t")
    huge = frame[:at] + b"\x7f\xff\xff\xff" + frame[at + 4 :]

    with pytest.raises(WireFormatError, match=r"topics counts 2147483647 elements"):
        decode_request(huge)


@pytest.mark.parametrize("version", [5, 8])
def test_an_answer_that_its_version_cannot_say_is_refused(version: int) -> None:
    """Skipping the assignment came with version 9."""
    response = JoinGroupResponse(skip_assignment=True)

    with pytest.raises(CoordinatorSimError, match="cannot say skipAssignment"):
        encode_response(response, version, correlation_id=7)


@pytest.mark.parametrize("version", [5, 9])
def test_a_text_that_is_too_long_is_refused(version: int) -> None:
    """The refusal names the field."""
    response = JoinGroupResponse(member_id="m" * 32_768)

    with pytest.raises(DataError, match="memberId has 32768 bytes"):
        encode_response(response, version, correlation_id=7)


def test_a_heartbeat_is_answered_in_every_version() -> None:
    """The header has tags from version 4 on, the body a throttle time from version 1 on."""
    answers = [
        encode_response(HeartbeatResponse(), version, correlation_id=7).hex()
        for version in range(5)
    ]
    throttled = "00000007000000000000"
    assert answers == ["000000070000", *[throttled] * 3, "000000070000000000000000"]
