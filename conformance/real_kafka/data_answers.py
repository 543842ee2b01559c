"""Puts questions about records to one broker, and normalizes the answers for comparison."""

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final, Protocol

from coordinator_sim.errors import DataError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.log.format.stored_batches import next_batch
from coordinator_sim.messages.schema import ZERO_UUID
from coordinator_sim_conformance.field_frames import Fields
from coordinator_sim_conformance.real_kafka.data_questions import (
    TOPICS,
    IdOf,
    SessionOf,
    Versions,
    questions,
)

ASKED: Final = (
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    ApiKey.DELETE_RECORDS,
    ApiKey.DESCRIBE_PRODUCERS,
)
_NOBODYS: Final = b"\1" * 16
_PATIENCE: Final = 60
_PAUSE_MS: Final = 250
_IDS_SINCE: Final = 10
"""First version of Metadata with topic ids."""
_DEFAULTS: Final = {
    "throttleTimeMs": 0,
    "leaderId": -1,
    "leaderEpoch": -1,
    "epoch": -1,
    "endOffset": -1,
    "preferredReadReplica": -1,
}
"""Values that carry no information."""
_ANY: Final = frozenset({"sessionId", "logAppendTimeMs"})
"""Positive numbers that a broker chooses freely."""
_BOUNDS: Final = re.compile(r"within \[-?\d+, -?\d+\]")


class Transport(Protocol):
    """A connection to a broker."""

    def call(self, api: ApiKey, version: int, fields: Fields) -> Fields:
        """Return the answer to a request."""
        ...

    def wait(self, duration_ms: int) -> None:
        """Let time pass."""
        ...


def answered(transport: Transport, versions: Versions) -> Iterator[str]:
    """Yield each question with its normalized answer, as a line of JSON.

    Args:
        transport: Connection to a broker without topics of those names.
        versions: Versions of the APIs in `ASKED` to use, and of CreateTopics and Metadata.
    """
    ids = _prepared(transport, versions)
    session_id = 0
    for question in questions({api: versions[api] for api in ASKED if api in versions}):
        fields = _filled(question.fields, ids, session_id)
        answer = transport.call(question.api, question.version, fields)
        if question.fields.get("sessionEpoch") == 0:
            session_id = answer["sessionId"]
        told = [question.api.name, question.version, question.label, _plain("", answer, ids)]
        yield json.dumps(told, separators=(",", ":"))


def _prepared(transport: Transport, versions: Versions) -> dict[str, bytes]:
    """Create the topics; return their ids, empty for a broker without ids."""
    topics = [
        {
            "name": name,
            "numPartitions": partitions,
            "replicationFactor": 1,
            "assignments": [],
            "configs": [{"name": key, "value": value} for key, value in configs.items()],
        }
        for name, (partitions, configs) in TOPICS.items()
    ]
    fields: Fields = {"topics": topics, "timeoutMs": 10_000, "validateOnly": False}
    for _ in range(_PATIENCE):
        answer = transport.call(ApiKey.CREATE_TOPICS, versions[ApiKey.CREATE_TOPICS][0], fields)
        wrong = [each for each in answer["topics"] if each["errorCode"] not in (0, 36)]
        if not wrong:
            break
        transport.wait(_PAUSE_MS)
    else:
        raise DataError(f"topics cannot be created: {wrong}")
    newest = versions[ApiKey.METADATA][1]
    asked = [{"name": name, "topicId": ZERO_UUID} for name in TOPICS]
    for _ in range(_PATIENCE):
        told = transport.call(ApiKey.METADATA, newest, {"topics": asked})["topics"]
        if all(_is_led(topic) for topic in told) and _serves(transport, versions):
            break
        transport.wait(_PAUSE_MS)
    return {each["name"]: each["topicId"] for each in told} if newest >= _IDS_SINCE else {}


def _is_led(topic: Fields) -> bool:
    return not topic["errorCode"] and all(each["leaderId"] >= 0 for each in topic["partitions"])


def _serves(transport: Transport, versions: Versions) -> bool:
    """Whether the broker already serves the partitions that it leads."""
    topics = [
        {"name": name, "partitions": [{"partitionIndex": 0, "timestamp": -1}]} for name in TOPICS
    ]
    fields = {"replicaId": -1, "topics": topics}
    answer = transport.call(ApiKey.LIST_OFFSETS, versions[ApiKey.LIST_OFFSETS][1], fields)
    return not any(each["partitions"][0]["errorCode"] for each in answer["topics"])


def _filled(value: Any, ids: dict[str, bytes], session_id: int) -> Any:  # noqa: ANN401 - any field
    """Return the value with the broker's own ids."""
    if isinstance(value, dict):
        return {key: _filled(each, ids, session_id) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, ids, session_id) for each in value]
    if isinstance(value, IdOf):
        return ids.get(value.topic, _NOBODYS)
    return session_id if isinstance(value, SessionOf) else value


def _plain(name: str, value: Any, ids: dict[str, bytes]) -> Any:  # noqa: ANN401 - any field
    """Remove values that a broker chooses; read records as a consumer does."""
    if isinstance(value, dict):
        told = {key: _plain(key, each, ids) for key, each in value.items()}
        return {key: each for key, each in told.items() if each not in (None, [], {})}
    if isinstance(value, list):
        return [_plain(name, each, ids) for each in value]
    return _value(name, value, ids)


def _value(name: str, value: Any, ids: dict[str, bytes]) -> object:  # noqa: ANN401 - any field
    if name == "records":
        return _records(value)
    if isinstance(value, bytes):
        return next((f"id of {topic}" for topic, each in ids.items() if each == value), "an id")
    if name == "batchIndexErrorMessage":
        return _BOUNDS.sub("within bounds", value)
    if name in _ANY:
        return "any" if value > 0 else None
    return None if _DEFAULTS.get(name) == value else value


def _records(data: bytes) -> str:
    """Summarize records; a truncated batch at the end is left out."""
    found: list[tuple[int, int, bytes | None, bytes | None]] = []
    position = 0
    while (batch := next_batch(data, position)) is not None:
        position += batch.size
        found += [
            (each.offset, each.timestamp_ms, each.key, each.value) for each in batch.records()
        ]
    if not found:
        return "none"
    digest = sha256(repr(found).encode()).hexdigest()[:12]
    return f"{len(found)} from {found[0][0]} to {found[-1][0]}, {digest}"
