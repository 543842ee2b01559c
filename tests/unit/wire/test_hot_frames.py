"""The readers and packers of frequent messages know when a frame is not for them."""

import pytest

from coordinator_sim.errors import CoordinatorSimError, DataError, WireFormatError
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupResponse,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from coordinator_sim.protocol.requests import Request
from coordinator_sim.wire.frames import (
    decode_group_request,
    decode_request,
    encode_request,
    encode_response,
)
from coordinator_sim.wire.hot_requests import read_usual_request
from coordinator_sim.wire.hot_responses import write_usual_response

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=3, member_id="m", group_instance_id="i")
COMMIT = OffsetCommitRequest(
    group_id="g",
    generation_id=3,
    member_id="m",
    topics=(
        OffsetCommitTopic(
            "t", (OffsetCommitPartition(0, 5, 2, "x" * 127), OffsetCommitPartition(1, 6, 2, None))
        ),
    ),
)


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("client_id", [None, "", "é", "c" * 300])
def test_any_client_id_comes_through(version: int, client_id: str | None) -> None:
    """One without a name is unusual; the general codec reads its request."""
    frame = encode_request(HEARTBEAT, version, correlation_id=7, client_id=client_id)

    assert decode_group_request(ApiKey.HEARTBEAT, version, frame) == (client_id, HEARTBEAT)
    assert (read_usual_request(ApiKey.HEARTBEAT, version, frame) is None) == (client_id is None)


@pytest.mark.parametrize("request_", [HEARTBEAT, COMMIT], ids=["heartbeat", "commit"])
def test_a_frame_cut_anywhere_is_refused_by_the_general_codec(request_: Request) -> None:
    """The reader gives up, and the error says where the bytes end."""
    version = 4 if request_ is HEARTBEAT else 9
    frame = encode_request(request_, version, correlation_id=7, client_id="c")
    assert decode_request(frame)[1] == request_
    for size in range(8, len(frame)):
        assert read_usual_request(request_.api_key, version, frame[:size]) is None
        with pytest.raises(WireFormatError):
            decode_group_request(request_.api_key, version, frame[:size])


def test_a_long_member_id_is_read_by_the_general_codec() -> None:
    """Compact texts above 126 bytes have two bytes of length."""
    request = HeartbeatRequest(group_id="g", generation_id=3, member_id="m" * 127)
    frame = encode_request(request, 4, correlation_id=7, client_id="c")

    assert read_usual_request(ApiKey.HEARTBEAT, 4, frame) is None
    assert decode_group_request(ApiKey.HEARTBEAT, 4, frame) == ("c", request)


def test_tagged_fields_are_passed_over() -> None:
    """In the header and in the body: unknown ones are unusual, not wrong."""
    frame = encode_request(HEARTBEAT, 4, correlation_id=7, client_id="c")
    header_tags = len(b"\x00\x0c\x00\x04\x00\x00\x00\x07\x00\x01c")
    tag = b"\x01\x05\x02ab"
    tagged = frame[:header_tags] + tag + frame[header_tags + 1 : -1] + tag

    assert decode_group_request(ApiKey.HEARTBEAT, 4, tagged) == ("c", HEARTBEAT)


def test_an_array_that_counts_too_many_is_refused() -> None:
    """Before anything is read of it."""
    frame = encode_request(COMMIT, 7, correlation_id=7, client_id="c")
    at = frame.index(b"\x00\x00\x00\x01\x00\x01t")
    huge = frame[:at] + b"\x7f\xff\xff\xff" + frame[at + 4 :]

    with pytest.raises(WireFormatError, match="counts 2147483647 elements"):
        decode_group_request(ApiKey.OFFSET_COMMIT, 7, huge)


@pytest.mark.parametrize("version", [5, 8])
def test_an_answer_that_its_version_cannot_say_is_refused(version: int) -> None:
    """Skipping the assignment came with version 9."""
    response = JoinGroupResponse(skip_assignment=True)

    assert write_usual_response(ApiKey.JOIN_GROUP, version, 7, response) is None
    with pytest.raises(CoordinatorSimError, match="cannot say skipAssignment"):
        encode_response(ApiKey.JOIN_GROUP, version, response, correlation_id=7)


def test_a_text_that_is_too_long_is_refused() -> None:
    """By the general codec, which names the field."""
    response = JoinGroupResponse(member_id="m" * 32_768)

    with pytest.raises(DataError, match="memberId has 32768 bytes"):
        encode_response(ApiKey.JOIN_GROUP, 5, response, correlation_id=7)


def test_a_heartbeat_is_answered_in_every_version() -> None:
    """The header has tags from version 4 on, the body a throttle time from version 1 on."""
    answers = [
        encode_response(ApiKey.HEARTBEAT, version, HeartbeatResponse(), correlation_id=7).hex()
        for version in range(5)
    ]
    throttled = "00000007000000000000"
    assert answers == ["000000070000", *[throttled] * 3, "000000070000000000000000"]
