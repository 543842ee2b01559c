"""Frames as bodies in Kafka's JSON, by kio; what it cannot read is not judged."""

from typing import Any, Final

from kio.serial import entity_reader
from kio.serial.errors import SerialError

from coordinator_sim.errors import UnsupportedVersion, WireFormatError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.codec.compiler import response_reader
from coordinator_sim_conformance.proxy.judging import WATCHED
from coordinator_sim_conformance.targets.target import MalformedAnswer
from coordinator_sim_conformance.wire.frames import answer_of
from coordinator_sim_conformance.wire.kio_bodies import Json, entity_type, number_of, to_json

NAMES: Final = {number_of(name): name for name in WATCHED}
"""Number -> Kafka's name of the APIs that are judged."""
FIRST_VERSION: Final = {number_of("OffsetCommit"): 1, number_of("OffsetFetch"): 1}
"""Version 0 of these is about offsets outside the group's log."""


def read_request(api: str, version: int, frame: bytes) -> tuple[str, Json] | None:
    """Return client id and body of a request; None where kio cannot read it."""
    try:
        kind: Any = entity_type(api, version, "Request")
        header, start = entity_reader(kind.__header_schema__)(frame, 0)
        entity, _ = entity_reader(kind)(frame, start)
    except (UnsupportedVersion, SerialError, IndexError, ValueError, TypeError, OverflowError):
        return None
    return header.client_id or "", to_json(entity)


def read_reply(api: str, version: int, frame: bytes) -> Json | None:
    """Return the body of a reply; None where kio alone cannot read it.

    Raises:
        MalformedAnswer: it is no reply of that version, as two codecs say.
    """
    correlation_id = int.from_bytes(frame[:4], "big", signed=True)
    try:
        return answer_of(api, version, frame, correlation_id=correlation_id)
    except UnsupportedVersion:
        return None
    except MalformedAnswer:
        try:
            response_reader(ApiKey(number_of(api)), version)(frame)
        except WireFormatError as broken:
            raise MalformedAnswer(f"{api} {version} is malformed: {broken}") from None
        return None
