"""Every embedded blob of recorded traffic decodes, and encodes to the same bytes."""

import json
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from kio.serial import entity_reader

from coordinator_sim.messages.embedded import connect_protocol, consumer_protocol

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
