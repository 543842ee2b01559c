"""Requests and answers as brokers up to 2.7 print them: `{name=value,list=[{...},{...}]}`.

Values are not escaped, so that a name with a comma or an equals sign cannot be told apart from the
next field: the longest value that leaves a field behind it is taken. Embedded bytes are printed as
`java.nio.HeapByteBuffer[pos=0 lim=41 cap=41]`: what they held is lost.

Source: kafka 0.10.2 to 2.7, RequestChannel.updateRequestMetrics; Struct.toString.
"""

import re
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.errors import DataError
from coordinator_sim.kafka.api_keys import ApiKey

Json = dict[str, Any]

_HEADER: Final = re.compile(
    r"RequestHeader\(apiKey=(?P<api>\w+), apiVersion=(?P<version>\d+), clientId=(?P<client>.*?), "
    r"correlationId=(?P<number>-?\d+)\)"
    r"|\{api_key=(?P<key>\d+),api_version=(?P<old_version>\d+),"
    r"correlation_id=(?P<old_number>-?\d+),client_id=(?P<old_client>.*?)\}(?= -- )"
)
_TAIL: Final = re.compile(r" from connection (?P<connection>\S+?);(?P<times>totalTime:[\d.]+.*)$")
_TIME: Final = re.compile(r"(\w+):([\d.]+)(?=,|$)")
_FIELD: Final = re.compile(r",(\w+)=")
_FIRST_FIELD: Final = re.compile(r"(\w+)=")
_BYTES: Final = re.compile(r"java\.nio\.\w+\[pos=\d+ lim=\d+ cap=\d+[^\]]*\]")
_NUMBER: Final = re.compile(r"-?\d{1,19}")
_LOST: Final = "\0bytes"
_DEPTH: Final = 20
"""Deepest nesting that is read; Kafka's own structures have five levels."""
_TEXTS: Final = frozenset(
    {
        *("groupId", "memberId", "groupInstanceId", "clientId", "protocolType", "protocolName"),
        *("name", "leader", "committedMetadata", "metadata", "reason"),
    }
)
"""Fields that stay text, whatever they look like."""
_NULLABLE: Final = frozenset({"groupInstanceId", "protocolType", "protocolName", "reason"})
_NAMES: Final = {
    "session_timeout": "sessionTimeoutMs",
    "rebalance_timeout": "rebalanceTimeoutMs",
    "group_protocols": "protocols",
    "protocol_metadata": "metadata",
    "group_protocol": "protocolName",
    "leader_id": "leader",
    "member_metadata": "metadata",
    "group_assignment": "assignments",
    "member_assignment": "assignment",
    "retention_time": "retentionTimeMs",
    "partition": "partitionIndex",
    "offset": "committedOffset",
    "leader_epoch": "committedLeaderEpoch",
    "topic": "name",
    "responses": "topics",
    "partition_responses": "partitions",
}
"""Field up to 2.2 -> its name since; others differ only in how words are joined.

Source: kafka 2.2, the schemas in clients/.../requests/*.java.
"""


class RequestText(Struct, frozen=True, kw_only=True):
    """One line, taken apart.

    Args:
        request: The request with the names of JSON; without its embedded bytes.
        response: The answer likewise; None where the release prints none.
        times_ms: Name of a step -> how long it took.
    """

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str
    request: Json
    response: Json | None
    connection: str
    times_ms: dict[str, float]


def read_request_text(body: str) -> RequestText:
    """Read what follows `Completed request:`.

    Raises:
        DataError: It is cut, or none of this form.
    """
    header = _HEADER.match(body)
    tail = _TAIL.search(body)
    if header is None or tail is None:
        raise DataError("the line is cut, or of another form")
    api = header["api"]
    key = int(header["key"]) if api is None else _api_number(api)
    middle = body[header.end() : tail.start()].removeprefix(" -- ")
    request, mark, response = middle.partition(",response:")
    return RequestText(
        api_key=key,
        api_version=int(header["version"] or header["old_version"]),
        correlation_id=int(header["number"] or header["old_number"]),
        client_id=header["client"] if api is not None else header["old_client"],
        request=_message(request),
        response=_message(response) if mark and response.startswith("{") else None,
        connection=tail["connection"],
        times_ms={name: float(value) for name, value in _TIME.findall(tail["times"])},
    )


def _api_number(name: str) -> int:
    try:
        return int(ApiKey[name])
    except KeyError:
        return -1


def _message(text: str) -> Json:
    text = _BYTES.sub(_LOST, text.strip())
    value, end = _value(text, 0, "", 0)
    if not isinstance(value, dict) or end != len(text):
        raise DataError("a structure is cut")
    return value


def _value(text: str, at: int, name: str, depth: int) -> tuple[Any, int]:
    """Read a value at a position; also return where it ends."""
    if depth > _DEPTH:
        raise DataError("structures nested too deep")
    if text.startswith("{", at):
        return _struct(text, at, depth)
    if text.startswith("[", at):
        return _list(text, at, name, depth)
    end = _end_of_scalar(text, at)
    return _scalar(text[at:end], name), end


def _struct(text: str, at: int, depth: int) -> tuple[Json, int]:
    found: Json = {}
    at += 1
    while at < len(text) and text[at] != "}":
        field = (_FIELD if text[at] == "," else _FIRST_FIELD).match(text, at)
        if field is None:
            raise DataError(f"no field at {text[at : at + 20]!r}")
        name = _json_name(field[1], depth)
        found[name], at = _value(text, field.end(), name, depth + 1)
    if at >= len(text):
        raise DataError("a structure is cut")
    return _with_newer_names(found), at + 1


def _with_newer_names(found: Json) -> Json:
    """Return a structure with the names that depend on what else is in it; lost bytes are empty."""
    told = {name: "" if value == _LOST else value for name, value in found.items()}
    if "committedOffset" in told and "metadata" in told:
        told["committedMetadata"] = told["metadata"]
    partitions = told.get("partitions")
    if isinstance(partitions, list) and all(isinstance(each, dict) for each in partitions):
        told["partitionIndexes"] = [each.get("partitionIndex") for each in partitions]
    return told


def _list(text: str, at: int, name: str, depth: int) -> tuple[list[Any], int]:
    found: list[Any] = []
    at += 1
    while at < len(text) and text[at] != "]":
        if text[at] == ",":
            at += 1
        value, at = _value(text, at, name, depth + 1)
        found.append(value)
    if at >= len(text):
        raise DataError("a list is cut")
    return found, at + 1


def _end_of_scalar(text: str, at: int) -> int:
    """Where a value ends: before the next field, or the end of its structure or list."""
    position = at
    while position < len(text):
        character = text[position]
        if character in "}]":
            return position
        if character == "," and (
            _FIELD.match(text, position) is not None or text[position + 1 : position + 2] == "{"
        ):
            return position
        if character == "," and _is_in_list(text, at):
            return position
        position += 1
    return position


def _is_in_list(text: str, at: int) -> bool:
    return at > 0 and text[at - 1] in "[,"


def _scalar(text: str, name: str) -> object:
    if text == _LOST:
        return _LOST
    if text == "null" and name not in _TEXTS - _NULLABLE:
        return None
    if name in _TEXTS:
        return None if text == "null" and name in _NULLABLE else text
    if text in ("true", "false"):
        return text == "true"
    return int(text) if _NUMBER.fullmatch(text) else text


def _json_name(name: str, depth: int) -> str:
    known = "name" if name == "protocol_name" and depth else _NAMES.get(name)
    if known is not None:
        return known
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
