"""Requests and responses of the group APIs as bytes, in every version."""

import json
from base64 import b64decode
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import pytest
from kio.serial import entity_reader, entity_writer

from coordinator_sim.errors import (
    CoordinatorSimError,
    DataError,
    UnsupportedVersion,
    WireFormatError,
)
from coordinator_sim.harness.kafka_json import frame_to_json, json_to_frame
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages import find_coordinator
from coordinator_sim.messages.catalogue import layout_of, name_of, newest_version, oldest_version
from coordinator_sim.messages.codec import frames
from coordinator_sim.messages.codec.frame_reader import MAX_ARRAY_LENGTH, MAX_TAGGED_FIELD_COUNT
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupRequest
from coordinator_sim.messages.leave_group import LeaveGroupRequest, MemberIdentity
from coordinator_sim.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from coordinator_sim.messages.requests import GROUP_APIS, Request, group_api_named
from coordinator_sim_conformance import field_frames

REPO: Final = Path(__file__).resolve().parents[3]
SAMPLES: Final = REPO / "tests" / "data" / "wire"
LINES: Final = (Path(__file__).parent / "vectors" / "frames.jsonl").read_text("utf-8").splitlines()
VECTORS: Final[list[dict[str, Any]]] = [json.loads(line) for line in LINES[1:]]
ENCODED: Final = [vector for vector in VECTORS if vector["op"] == "encode"]
DECODED: Final = [vector for vector in VECTORS if vector["op"] == "decode"]
NEWER_THAN_KIO: Final = {
    ("TxnOffsetCommit", 6),
    ("DeleteGroups", 3),
    ("StreamsGroupHeartbeat", 1),
    ("StreamsGroupDescribe", 1),
}
OLDER_THAN_KIO: Final = {
    ("OffsetCommit", 0),
    ("OffsetCommit", 1),
    ("OffsetFetch", 0),
    ("WriteTxnMarkers", 0),
}
HEARTBEAT: Final = HeartbeatRequest(group_id="g", generation_id=3, member_id="m")


def named(vector: dict[str, Any]) -> str:
    """A vector's test id."""
    return f"{vector['api']}-{vector['v']}"


def request_bytes(vector: dict[str, Any]) -> bytes:
    """The frame of a recorded request."""
    return b64decode(vector["answer"]["frame"])


def test_every_version_is_recorded() -> None:
    """Each version of each API has a request and a response among the vectors."""
    every = {
        (name_of(api), v)
        for api in GROUP_APIS
        for v in range(oldest_version(api), newest_version(api) + 1)
    }
    assert {(vector["api"], vector["v"]) for vector in ENCODED} == every
    assert {(vector["api"], vector["v"]) for vector in DECODED} == every


@pytest.mark.parametrize("vector", ENCODED, ids=named)
def test_request_has_the_bytes_that_kafka_writes(vector: dict[str, Any]) -> None:
    """The same JSON gives the frame that Kafka's own classes wrote."""
    frame = json_to_frame(
        vector["api"],
        vector["v"],
        vector["data"],
        client_id=vector["clientId"],
        correlation_id=vector["correlation"],
    )
    assert frame == request_bytes(vector)


@pytest.mark.parametrize("vector", DECODED, ids=named)
def test_response_says_what_kafka_reads(vector: dict[str, Any]) -> None:
    """The same frame gives the JSON that Kafka's own classes read."""
    read = frame_to_json(
        vector["api"], vector["v"], b64decode(vector["frame"]), correlation_id=vector["correlation"]
    )
    assert read == vector["answer"]["data"]


@pytest.mark.parametrize("vector", ENCODED, ids=named)
def test_request_comes_back_as_it_was_sent(vector: dict[str, Any]) -> None:
    """A frame to a message and back is the same frame."""
    frame = request_bytes(vector)
    header, request = frames.decode_request(frame)
    again = frames.encode_request(
        request,
        header.api_version,
        correlation_id=header.correlation_id,
        client_id=header.client_id,
    )
    assert again == frame


def kio_body(vector: dict[str, Any], *, response: bool) -> bytes:
    """What kio writes after it has read the whole frame."""
    package = "".join(f"_{c.lower()}" if c.isupper() else c for c in vector["api"]).lstrip("_")
    kind = "response" if response else "request"
    module = import_module(f"kio.schema.{package}.v{vector['v']}.{kind}")
    entity_type = getattr(module, vector["api"] + kind.capitalize())
    frame = b64decode(vector["frame"]) if response else request_bytes(vector)
    header, start = entity_reader(entity_type.__header_schema__)(frame, 0)
    assert header.correlation_id == vector["correlation"]
    entity, size = entity_reader(entity_type)(frame, start)
    assert start + size == len(frame)
    return write_with_kio(entity_type, entity)


def write_with_kio(entity_type: type, entity: object) -> bytes:
    """The bytes of one of kio's entities."""
    buffer = BytesIO()
    entity_writer(entity_type)(buffer, entity)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "vector",
    [v for v in ENCODED if (v["api"], v["v"]) not in NEWER_THAN_KIO | OLDER_THAN_KIO],
    ids=named,
)
def test_kio_agrees_on_requests(vector: dict[str, Any]) -> None:
    """An independent codec reads the whole frame and writes the same body."""
    assert request_bytes(vector).endswith(kio_body(vector, response=False))


@pytest.mark.parametrize(
    "vector",
    [v for v in DECODED if (v["api"], v["v"]) not in NEWER_THAN_KIO | OLDER_THAN_KIO],
    ids=named,
)
def test_kio_agrees_on_responses(vector: dict[str, Any]) -> None:
    """An independent codec reads the whole frame and writes the same body."""
    assert b64decode(vector["frame"]).endswith(kio_body(vector, response=True))


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.jsonl")), ids=lambda path: path.stem)
def test_captured_frames_come_back_byte_for_byte(path: Path) -> None:
    """What real clients and a real broker said survives the way through our messages."""
    asked: dict[tuple[int, int], Request] = {}
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["api_key"] not in GROUP_APIS:
            continue
        frame, api = bytes.fromhex(row["frame"]), ApiKey(row["api_key"])
        call, version = (row["conn"], row["correlation_id"]), row["api_version"]
        if row["dir"] == "req":
            header, asked[call] = frames.decode_request(frame)
            again = frames.encode_request(
                asked[call],
                version,
                correlation_id=header.correlation_id,
                client_id=header.client_id,
            )
        else:
            request = asked.get(call)
            number, response = frames.decode_response(api, version, frame, request=request)
            again = frames.encode_response(
                response, version, correlation_id=number, request=request
            )
        assert again == frame, (row["seq"], api.name, version)


# -- what a version cannot say -------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "version", "message"),
    [
        (
            find_coordinator.FindCoordinatorRequest(coordinator_keys=("a", "b")),
            3,
            "room for one of coordinatorKeys, not 2: use 4",
        ),
        (
            OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g", topics=None),) * 2),
            7,
            "room for one of groups, not 2: use 8",
        ),
        (
            LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id="m"),) * 3),
            2,
            "room for one of members, not 3: use 3",
        ),
        (
            OffsetFetchRequest(
                groups=(OffsetFetchRequestGroup(group_id="g", topics=None),), require_stable=True
            ),
            6,
            "cannot say requireStable",
        ),
        (
            HeartbeatRequest(group_id="g", generation_id=1, member_id="m", group_instance_id="i"),
            2,
            "cannot say groupInstanceId",
        ),
        (HEARTBEAT, 5, "Heartbeat has no version 5: use 0 to 4"),
    ],
    ids=("keys", "groups", "members", "stable", "instance", "version"),
)
def test_a_version_that_cannot_say_a_request_is_named(
    request_: Request, version: int, message: str
) -> None:
    """A field that the version lacks is an error, as in Kafka's clients, and names the version."""
    with pytest.raises(UnsupportedVersion, match=message):
        frames.encode_request(request_, version, correlation_id=0)


def test_ignorable_fields_are_dropped() -> None:
    """The reason of a JoinGroup is not said before version 8."""
    join = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10,
        rebalance_timeout_ms=10,
        member_id="",
        protocol_type="consumer",
        protocols=(),
        reason="because",
    )
    _, old = frames.decode_request(frames.encode_request(join, 7, correlation_id=0))
    assert isinstance(old, JoinGroupRequest)
    assert old.reason is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"groupId": "x" * 32_768}, "groupId has 32768 bytes, at most 32767"),
        ({"groupId": "\u00e9" * 16_384}, "groupId has 32768 bytes"),
        ({"groupId": None}, "groupId must not be null"),
        ({"generationId": 1 << 31}, "generationId: 2147483648 does not fit"),
    ],
    ids=("long", "long-utf8", "null", "big"),
)
@pytest.mark.parametrize("version", [0, 4])
def test_values_that_do_not_fit_are_named(
    fields: dict[str, Any], message: str, version: int
) -> None:
    """A writer never sends what a reader must refuse."""
    header = frames.RequestHeader(api_key=ApiKey.HEARTBEAT, api_version=version, correlation_id=0)
    with pytest.raises(DataError, match=message):
        field_frames.request_frame(header, fields)


def test_client_id_has_a_bound() -> None:
    """The header's string has two bytes for its length."""
    with pytest.raises(DataError, match="client id"):
        frames.encode_request(HEARTBEAT, 4, correlation_id=0, client_id="x" * 32_768)


def test_client_id_may_be_null() -> None:
    """A client without an id sends length -1."""
    header, _ = frames.decode_request(frames.encode_request(HEARTBEAT, 0, correlation_id=1))
    assert header.client_id is None


@pytest.mark.parametrize(("version", "message"), [(0, None), (3, "NONE"), (4, "")])
def test_found_coordinator_says_none_in_its_version(version: int, message: str | None) -> None:
    """Versions 1 to 3 say NONE where nothing is wrong, newer ones an empty message."""
    request = find_coordinator.FindCoordinatorRequest(coordinator_keys=("g",))
    entry = find_coordinator.Coordinator(
        key="g", node_id=1, host="h", port=9092, error_message=None
    )
    found = find_coordinator.FindCoordinatorResponse(coordinators=(entry,))
    frame = frames.encode_response(found, version, correlation_id=1)
    _, fields = field_frames.read_response_frame(ApiKey.FIND_COORDINATOR, version, frame)
    said = fields["coordinators"][0] if version == 4 else fields
    assert said.get("errorMessage") == message
    read = frames.decode_response(ApiKey.FIND_COORDINATOR, version, frame, request=request)
    assert read == (1, found)


# -- bytes that are not what they should be ------------------------------------------------


@pytest.mark.parametrize("vector", ENCODED[::3], ids=named)
def test_truncated_requests_are_one_error(vector: dict[str, Any]) -> None:
    """Wherever a frame ends too early, it is a WireFormatError."""
    frame = request_bytes(vector)
    for end in range(len(frame)):
        with pytest.raises(WireFormatError):
            frames.decode_request(frame[:end])


@pytest.mark.parametrize("vector", DECODED[::3], ids=named)
def test_truncated_responses_are_one_error(vector: dict[str, Any]) -> None:
    """Wherever a frame ends too early, it is a WireFormatError."""
    frame, api = b64decode(vector["frame"]), group_api_named(vector["api"])
    for end in range(len(frame)):
        with pytest.raises(WireFormatError):
            frames.decode_response(api, vector["v"], frame[:end])


@pytest.mark.parametrize("vector", ENCODED[::2], ids=named)
def test_changed_bytes_are_read_or_refused(vector: dict[str, Any]) -> None:
    """Every single byte changed gives a request or one of our errors, never another exception."""
    frame = bytearray(request_bytes(vector))
    for index in range(len(frame)):
        for value in (0x00, 0x7F, 0x80, 0xFF):
            kept, frame[index] = frame[index], value
            try:
                frames.decode_request(bytes(frame))
            except (WireFormatError, UnsupportedVersion) as error:
                assert str(error)  # noqa: PT017 - either outcome is right
            frame[index] = kept


def heartbeat_frame(tail: bytes) -> bytes:
    """A Heartbeat v4 up to its last field, and what follows."""
    return frames.encode_request(HEARTBEAT, 4, correlation_id=1)[:-1] + tail


def varint(value: int) -> bytes:
    """An unsigned varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def test_unknown_tagged_fields_are_passed_over() -> None:
    """A newer client may add tagged fields to header and body."""
    plain = frames.encode_request(HEARTBEAT, 4, correlation_id=1)
    tagged = heartbeat_frame(b"\x02" + b"\x00\x03abc" + varint(4_711) + b"\x00")
    assert frames.decode_request(tagged) == frames.decode_request(plain)


def test_too_many_tagged_fields_are_refused() -> None:
    """10,000 are read, one more is not."""
    many = b"\x00\x00" * MAX_TAGGED_FIELD_COUNT
    frames.decode_request(heartbeat_frame(varint(MAX_TAGGED_FIELD_COUNT) + many))
    with pytest.raises(WireFormatError, match="10001 tagged fields, at most 10000"):
        frames.decode_request(
            heartbeat_frame(varint(MAX_TAGGED_FIELD_COUNT + 1) + many + b"\x00\x00")
        )


@pytest.mark.parametrize("version", [1, 2], ids=("classic", "compact"))
def test_absurd_arrays_are_refused_before_they_are_read(version: int) -> None:
    """More elements than bytes are left, or than a million."""
    flexible = layout_of(ApiKey.DELETE_GROUPS, version, response=False).is_flexible
    header = frames.RequestHeader(
        api_key=ApiKey.DELETE_GROUPS, api_version=version, correlation_id=1, client_id="c"
    )
    start = field_frames.request_frame(header, {"groupsNames": []})[: -2 if flexible else -4]

    def names(count: int, body: bytes) -> bytes:
        size = varint(count + 1) if flexible else count.to_bytes(4, "big")
        return start + size + body + (b"\x00" if flexible else b"")

    with pytest.raises(WireFormatError, match=r"counts 2147483646 elements, \d+ bytes are left"):
        frames.decode_request(names(2_147_483_646, b""))
    body = bytes(2 * MAX_ARRAY_LENGTH + 2)
    with pytest.raises(WireFormatError, match="counts 1000001 elements, at most 1000000"):
        frames.decode_request(names(MAX_ARRAY_LENGTH + 1, body))


def test_long_compact_strings_are_refused() -> None:
    """A compact length could say more than the 32,767 bytes that Kafka allows."""
    frame = frames.encode_request(HEARTBEAT, 4, correlation_id=1)
    body = b"\x00" + varint(32_769) + b"x" * 32_768
    with pytest.raises(WireFormatError, match="groupId has 32768 bytes, at most 32767"):
        frames.decode_request(frame[:10] + body + frame[13:])


def test_null_where_none_may_be_is_refused() -> None:
    """A group id of length -1 or 0."""
    old = frames.encode_request(HEARTBEAT, 0, correlation_id=1)
    with pytest.raises(WireFormatError, match=r"HeartbeatRequest\.groupId is null"):
        frames.decode_request(old[:10] + b"\xff\xff" + old[13:])


def test_invalid_utf8_is_replaced() -> None:
    """Java replaces it so."""
    frame = frames.encode_request(HEARTBEAT, 0, correlation_id=1).replace(
        b"\x00\x01g", b"\x00\x01\xff"
    )
    _, request = frames.decode_request(frame)
    assert isinstance(request, HeartbeatRequest)
    assert request.group_id == "\ufffd"


def test_bytes_behind_the_body_are_ignored() -> None:
    """Kafka does not look behind the last field."""
    frame = frames.encode_request(HEARTBEAT, 4, correlation_id=1)
    assert frames.decode_request(frame + b"more") == frames.decode_request(frame)


def test_unknown_apis_and_versions_are_told_apart_from_broken_bytes() -> None:
    """A server answers them with UNSUPPORTED_VERSION; the header says what was asked."""
    frame = b"\x00\x3e\x00\x04\x00\x00\x00\x07\xff\xff"
    assert frames.read_header(frame) == frames.RequestHeader(
        api_key=62, api_version=4, correlation_id=7
    )
    with pytest.raises(UnsupportedVersion, match="API 62"):
        frames.decode_request(frame)
    with pytest.raises(UnsupportedVersion, match="Heartbeat has no version 9"):
        frames.decode_request(b"\x00\x0c\x00\x09\x00\x00\x00\x07\xff\xff")


def test_header_of_controlled_shutdown_0_has_no_client_id() -> None:
    """What follows its correlation id is the body."""
    frame = b"\x00\x07\x00\x00\x00\x00\x00\x09\x00\x00\x00\x01"
    assert frames.read_header(frame) == frames.RequestHeader(
        api_key=7, api_version=0, correlation_id=9
    )


def test_unknown_error_codes_of_a_response_keep_their_numbers() -> None:
    """A broker that is not Kafka's may have errors of its own; they are shown as they came."""
    frame = field_frames.response_frame(ApiKey.HEARTBEAT, 4, 7, {"errorCode": 999})
    _, response = frames.decode_response(ApiKey.HEARTBEAT, 4, frame)
    assert (response.error_code, response.error_code.name) == (999, "ERROR_999")
    assert frames.encode_response(response, 4, correlation_id=7) == frame
    assert frame_to_json("Heartbeat", 4, frame, correlation_id=7)["errorCode"] == 999


def test_an_answer_to_another_request_is_refused() -> None:
    """The correlation id belongs to the request."""
    frame = frames.encode_response(HeartbeatResponse(), 4, correlation_id=7)
    with pytest.raises(CoordinatorSimError, match="answers correlation id 7, not 8"):
        frame_to_json("Heartbeat", 4, frame, correlation_id=8)
