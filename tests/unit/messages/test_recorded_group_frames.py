"""Every JoinGroup and SyncGroup frame of the recordings, decoded and encoded again.

A decoder passes over bytes behind the last field, so that only equal bytes after encoding say
that a frame, and what is embedded in it, was read to its last byte.
"""

import json
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final, cast

import pytest
from kio.serial import entity_reader

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.embedded import connect_protocol, consumer_protocol
from coordinator_sim_conformance import field_frames

RECORDINGS: Final = Path(__file__).resolve().parents[2] / "data" / "wire"
MEMBERSHIP: Final = (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP)
FRAMES: Final = {
    "classic-mixed-clients-range": 68,
    "connect-eager-to-sessioned-upgrade": 110,
    "connect-sessioned-3-workers": 172,
    "java-classic-consumers": 18,
    "kip848-java-and-librdkafka": 0,
    "oldest-versions-non-flexible": 28,
    "streams-classic-and-kip1071": 20,
}
"""JoinGroup and SyncGroup frames of each recording, requests and responses."""
BLOBS: Final = {
    "classic-mixed-clients-range": 64,
    "connect-eager-to-sessioned-upgrade": 132,
    "connect-sessioned-3-workers": 258,
    "java-classic-consumers": 17,
    "kip848-java-and-librdkafka": 0,
    "oldest-versions-non-flexible": 39,
    "streams-classic-and-kip1071": 18,
}
"""Subscriptions, worker metadata and assignments embedded in them."""


def membership_rows(recording: str) -> Iterator[dict[str, Any]]:
    """The rows of a recording that hold a JoinGroup or a SyncGroup."""
    for line in (RECORDINGS / f"{recording}.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["api_key"] in MEMBERSHIP:
            yield row


def fields_of(row: dict[str, Any]) -> field_frames.Fields:
    """The fields of a recorded frame, by Kafka's names."""
    frame, api = bytes.fromhex(row["frame"]), ApiKey(row["api_key"])
    if row["dir"] == "req":
        return field_frames.read_request_frame(frame)[1]
    return field_frames.read_response_frame(api, row["api_version"], frame)[1]


def encoded_again(row: dict[str, Any]) -> bytes:
    """The frame after decoding and encoding, header and body."""
    frame, api = bytes.fromhex(row["frame"]), ApiKey(row["api_key"])
    if row["dir"] == "req":
        return field_frames.request_frame(*field_frames.read_request_frame(frame))
    return field_frames.response_frame(
        api, row["api_version"], *field_frames.read_response_frame(api, row["api_version"], frame)
    )


def metadata_again(protocol_type: str, blob: bytes) -> bytes:
    """A subscription or a worker's metadata, decoded and encoded."""
    if protocol_type == "connect":
        return connect_protocol.encode_worker_metadata(
            connect_protocol.decode_worker_metadata(blob)
        )
    return consumer_protocol.encode_subscription(
        consumer_protocol.decode_subscription(blob), consumer_protocol.blob_version(blob)
    )


def assignment_again(protocol_type: str, blob: bytes) -> bytes:
    """An assignment, decoded and encoded."""
    if protocol_type == "connect":
        return connect_protocol.encode_connect_assignment(
            connect_protocol.decode_connect_assignment(blob)
        )
    return consumer_protocol.encode_assignment(
        consumer_protocol.decode_assignment(blob), consumer_protocol.blob_version(blob)
    )


def embedded(fields: field_frames.Fields) -> tuple[list[bytes], list[bytes]]:
    """The metadata and the assignments that a message carries; empty ones are left out."""
    nested = cast("dict[str, list[dict[str, bytes]]]", fields)
    metadata = [
        each["metadata"] for name in ("protocols", "members") for each in nested.get(name, ())
    ]
    assigned = [each["assignment"] for each in nested.get("assignments", ())]
    own = cast("bytes", fields.get("assignment", b""))
    return [blob for blob in metadata if blob], [blob for blob in (*assigned, own) if blob]


@pytest.mark.parametrize("recording", FRAMES)
def test_membership_frames_come_back_byte_for_byte(recording: str) -> None:
    """Header and body of every frame are read to the last byte and written the same."""
    rows = list(membership_rows(recording))

    assert len(rows) == FRAMES[recording]
    for row in rows:
        assert encoded_again(row).hex() == row["frame"], row["seq"]


@pytest.mark.parametrize("recording", BLOBS)
def test_embedded_blobs_come_back_byte_for_byte(recording: str) -> None:
    """What members and leaders tell one another survives too, whoever of them wrote it.

    Old versions do not name the protocol type; the first JoinGroup of a connection does.
    """
    types: dict[int, str] = {}
    count = 0
    for row in membership_rows(recording):
        fields = fields_of(row)
        told = cast("str | None", fields.get("protocolType"))
        protocol_type = told or types[row["conn"]]
        types[row["conn"]] = protocol_type
        metadata, assignments = embedded(fields)
        for blob in metadata:
            assert metadata_again(protocol_type, blob) == blob, row["seq"]
        for blob in assignments:
            assert assignment_again(protocol_type, blob) == blob, row["seq"]
        count += len(metadata) + len(assignments)

    assert count == BLOBS[recording]


# -- Every embedded blob of recorded traffic decodes, and encodes to the same bytes ------------


WIRE_SAMPLES = Path(__file__).resolve().parents[2] / "data" / "wire"
API_NAMES = {11: "join_group", 14: "sync_group"}
RecodesBlob = Callable[[bytes], bytes]

METADATA: dict[str, RecodesBlob] = {
    "connect": lambda blob: connect_protocol.encode_worker_metadata(
        connect_protocol.decode_worker_metadata(blob)
    ),
    "consumer": lambda blob: consumer_protocol.encode_subscription(
        consumer_protocol.decode_subscription(blob), consumer_protocol.blob_version(blob)
    ),
}
ASSIGNMENT: dict[str, RecodesBlob] = {
    "connect": lambda blob: connect_protocol.encode_connect_assignment(
        connect_protocol.decode_connect_assignment(blob)
    ),
    "consumer": lambda blob: consumer_protocol.encode_assignment(
        consumer_protocol.decode_assignment(blob), consumer_protocol.blob_version(blob)
    ),
}


def parse(record: dict[str, Any]) -> Any:  # noqa: ANN401  kio has one class an API version
    """The body of one recorded frame."""
    kind = {"req": "request", "resp": "response"}[record["dir"]]
    name = API_NAMES[record["api_key"]]
    module = import_module(f"kio.schema.{name}.v{record['api_version']}.{kind}")
    title = "".join(part.title() for part in name.split("_"))
    schema = getattr(module, f"{title}{kind.title()}")
    frame = bytes.fromhex(record["frame"])
    _, offset = entity_reader(schema.__header_schema__)(frame, 0)
    body, size = entity_reader(schema)(frame, offset)
    assert offset + size == len(frame)
    return body


def blobs(path: Path) -> Iterator[tuple[str, str, bytes]]:
    """The (kind, protocol type, blob) of one recording's JoinGroup and SyncGroup frames.

    Old versions do not say the protocol type; a recording's JoinGroup requests tell it by group,
    and the connection ties the other frames to the group.
    """
    types: dict[int, str] = {}
    for line in path.read_text().splitlines():
        record = json.loads(line)
        if record["api_key"] not in API_NAMES:
            continue
        body = parse(record)
        protocol_type = getattr(body, "protocol_type", None) or types.get(record["conn"])
        if protocol_type is None:
            continue
        types[record["conn"]] = protocol_type
        for protocol in getattr(body, "protocols", ()):
            yield "metadata", protocol_type, protocol.metadata
        for member in getattr(body, "members", ()):
            yield "metadata", protocol_type, member.metadata
        for member in getattr(body, "assignments", ()):
            yield "assignment", protocol_type, member.assignment
        if getattr(body, "assignment", b""):
            yield "assignment", protocol_type, body.assignment


@pytest.mark.parametrize(
    ("recording", "expected"),
    [
        ("classic-mixed-clients-range", 64),
        ("connect-eager-to-sessioned-upgrade", 132),
        ("connect-sessioned-3-workers", 258),
        ("java-classic-consumers", 17),
        ("oldest-versions-non-flexible", 39),
        ("streams-classic-and-kip1071", 18),
    ],
)
def test_recorded_blobs_encode_to_the_same_bytes(recording: str, expected: int) -> None:
    """Decoding loses nothing, and encoding follows the order of the client that wrote it."""
    recoders = {"metadata": METADATA, "assignment": ASSIGNMENT}
    count = 0
    for kind, protocol_type, blob in blobs(WIRE_SAMPLES / f"{recording}.jsonl"):
        assert recoders[kind][protocol_type](blob) == blob
        count += 1
    assert count == expected
