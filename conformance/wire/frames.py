"""Requests as frames and answers from frames, by kio."""

from io import BytesIO
from typing import Any

from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError

from coordinator_sim.errors import UnsupportedVersion
from coordinator_sim_conformance.targets.target import MalformedAnswer
from coordinator_sim_conformance.wire import kio_bodies


def request_frame(
    api: str, version: int, data: kio_bodies.Json, *, correlation_id: int, client_id: str | None
) -> bytes:
    """Return a request without its length.

    Raises:
        UnsupportedVersion: kio has no such message.
        DataError: the version cannot express the body.
    """
    kind: Any = kio_bodies.entity_type(api, version, "Request")
    header = kind.__header_schema__
    buffer = BytesIO()
    values = {
        "request_api_key": kio_bodies.number_of(api),
        "request_api_version": version,
        "correlation_id": correlation_id,
        "client_id": client_id,
    }
    write_header: Any = entity_writer(header)
    write_header(buffer, header(**values))
    write: Any = entity_writer(kind)
    write(buffer, kio_bodies.to_entity(kind, data))
    return buffer.getvalue()


def answer_of(api: str, version: int, frame: bytes, *, correlation_id: int) -> kio_bodies.Json:
    """Return the body of an answer.

    Raises:
        UnsupportedVersion: kio has no such message.
        MalformedAnswer: the frame is of another request, malformed, or longer than its message.
    """
    kind: Any = kio_bodies.entity_type(api, version, "Response")
    try:
        header, start = entity_reader(kind.__header_schema__)(frame, 0)
        if header.correlation_id != correlation_id:
            raise MalformedAnswer(
                f"an answer to request {header.correlation_id}, wanted one to {correlation_id}"
            )
        entity, size = entity_reader(kind)(frame, start)
    except (SerialError, LookupError, ValueError, TypeError, OverflowError) as broken:
        raise MalformedAnswer(
            f"the answer to {api} of version {version} is malformed: {broken}; {frame.hex()}"
        ) from None
    if start + size != len(frame):
        raise MalformedAnswer(
            f"the answer to {api} of version {version} has {len(frame) - start - size} bytes "
            f"behind its end; {frame.hex()}"
        )
    return kio_bodies.to_json(entity)


def has_layout(api: str, version: int) -> bool:
    """Whether requests of that version can be made, and its answers read."""
    try:
        kio_bodies.entity_type(api, version, "Request")
        kio_bodies.entity_type(api, version, "Response")
    except UnsupportedVersion:
        return False
    return True
