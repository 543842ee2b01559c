"""Recorded frames as readable lines: `python -m tools.decode_frames FILE [--client ID] [--api N]`.

Requests and responses of the group APIs are taken apart, the consumer's blobs within them too;
other APIs are named only.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from coordinator_sim.errors import UnsupportedVersion, WireFormatError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.consumer_protocol import (
    blob_version,
    decode_assignment,
    decode_subscription,
)
from coordinator_sim_conformance.field_frames import read_request_frame, read_response_frame

Line = dict[str, Any]
Fields = dict[str, Any]
_DULL: Final[tuple[object, ...]] = (None, "", [], -1, 0, False)
_OTHER_NAMES: Final = {18: "API_VERSIONS", 68: "CONSUMER_GROUP_HEARTBEAT", 88: "STREAMS_HEARTBEAT"}


def fields_of(line: Line) -> Fields:
    """Return a frame's fields by Kafka's names; empty for an API that is not decoded.

    Raises:
        WireFormatError: the frame does not parse.
    """
    frame = bytes.fromhex(line["frame"])
    with suppress(UnsupportedVersion, ValueError):
        if line["dir"] == "req":
            return read_request_frame(frame)[1]
        api = ApiKey(line["api_key"])
        return read_response_frame(api, line["api_version"], frame)[1]
    return {}


def api_name(number: int) -> str:
    """Return the API's name, or its number if it has none here."""
    with suppress(ValueError):
        return ApiKey(number).name
    return _OTHER_NAMES.get(number, str(number))


def shown(name: str, value: object) -> str:
    """Format one field: blobs decoded, errors named, structs in braces."""
    if isinstance(value, bytes):
        return _shown_blob(name, value)
    if isinstance(value, list):
        return "[" + ", ".join(shown(name, item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + shown_fields(value) + "}"
    if name == "errorCode" and isinstance(value, int):
        return ErrorCode(value).name
    return str(value)


def shown_fields(fields: Fields) -> str:
    """Format the informative fields, in the order of the frame."""
    return " ".join(
        f"{name}={shown(name, value)}" for name, value in fields.items() if value not in _DULL
    )


def _shown_blob(name: str, blob: bytes) -> str:
    if not blob:
        return "empty"
    try:
        version = blob_version(blob)
        if name == "assignment":
            return f"v{version}({_shown_partitions(decode_assignment(blob).partitions)})"
        subscription = decode_subscription(blob)
    except WireFormatError:
        return blob.hex()
    owned = _shown_partitions(subscription.owned_partitions)
    user_data = "" if subscription.user_data is None else subscription.user_data.hex()
    return (
        f"v{version}({' '.join(subscription.topics)} owned=[{owned}] user_data={user_data!r} "
        f"generation={subscription.generation_id} rack={subscription.rack_id!r})"
    )


def _shown_partitions(partitions: Iterable[TopicPartition]) -> str:
    return " ".join(f"{tp.topic}-{tp.partition}" for tp in partitions)


def shown_line(line: Line) -> str:
    """Format one recorded line, without its newline."""
    start = f"{line['t_ms']:>7} {line['step']:<16} {line['conn']:>3}"
    if "frame" not in line:
        return f"{start} {line['dir']:<5} {line.get('client_id') or ''} {line.get('note', '')}"
    return (
        f"{start} {line['dir']:<5} {line['client_id']} {api_name(line['api_key'])} "
        f"v{line['api_version']} {shown_fields(fields_of(line))}"
    )


def lines_of(path: Path) -> Iterator[Line]:
    """Yield the lines of a recording, in order."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def main(arguments: list[str] | None = None) -> None:
    """Print a recording."""
    parser = argparse.ArgumentParser(prog="python -m tools.decode_frames", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--client", help="only this client id")
    parser.add_argument("--api", type=int, action="append", help="only this API, by its number")
    options = parser.parse_args(arguments)
    for line in lines_of(options.file):
        if options.client not in (None, line.get("client_id")):
            continue
        if options.api and line.get("api_key") not in options.api:
            continue
        sys.stdout.write(shown_line(line).rstrip() + "\n")


if __name__ == "__main__":
    main()
