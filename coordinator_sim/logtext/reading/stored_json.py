"""Keys and values of the offsets topic as JSON: of kafka-dump-log since 3.8, and of formatters.

Embedded bytes are base64, or JSON where a tool took them apart; both become the bytes again.

Source: kafka 4.4, CoordinatorRecordMessageFormatter, OffsetsMessageParser; the converters that are
generated from (Legacy)OffsetCommitKey and Value, GroupMetadataKey and Value.
"""

from base64 import b64decode
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.errors import DataError
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages import group_records
from coordinator_sim.messages.codec.json_form import JsonReader
from coordinator_sim.messages.codec.records import record_layout, record_types, value_struct
from coordinator_sim.messages.consumer_group_records import ConsumerGroupKey
from coordinator_sim.messages.embedded.consumer_protocol import (
    encode_assignment,
    encode_subscription,
)
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, Subscription
from coordinator_sim.messages.records import LogRecord
from coordinator_sim.messages.share_group_records import ShareGroupKey
from coordinator_sim.messages.streams_group_records import StreamsGroupKey

_OFFSET_TYPES: Final = (0, 1)
_GROUP_TYPE: Final = 2
_RACK_VERSION: Final = 3
_GENERATION_VERSION: Final = 2
_OWNED_VERSION: Final = 1

_EPOCH_TYPES: Final = record_types(ConsumerGroupKey, ShareGroupKey, StreamsGroupKey)

_Json = Mapping[str, Any]


def record_of(key: Any, value: Any) -> LogRecord | None:  # noqa: ANN401 - parsed JSON
    """The record of a key and a value; None for one of no group that is known.

    Raises:
        DataError: A field is missing, or is of another type than it must be.
    """
    try:
        return _record(key, value)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise DataError(f"a record whose JSON lacks or misspells {error}") from error


def _record(key: _Json, value: _Json | None) -> LogRecord | None:
    kind = int(key["type"] if "type" in key else key["version"])
    data = key["data"]
    if kind in _OFFSET_TYPES:
        named = group_records.OffsetCommitKey(data["group"], data["topic"], int(data["partition"]))
        said, version = (None, 0) if value is None else (_offset(value["data"]), _version(value))
        return LogRecord(named, said, version, legacy_key=kind == 0)
    if kind == _GROUP_TYPE:
        name = group_records.GroupMetadataKey(data["group"])
        if value is None:
            return LogRecord(name, None, 0)
        return LogRecord(name, _group(value["data"]), _version(value))
    # What a tool leaves as bytes is not told by it.
    if kind in _EPOCH_TYPES and not isinstance(data, str):
        struct = _EPOCH_TYPES[kind]
        said = None if value is None else _by_schema(value_struct(struct), value["data"])
        return LogRecord(_by_schema(struct, data), said, 0)
    return None


def _by_schema(struct: type[Struct], data: _Json) -> Any:  # noqa: ANN401 - a struct of any record
    return JsonReader(struct.__module__).read(record_layout(struct), data, defaulted=True)


def _version(value: _Json) -> int:
    return int(value["version"])


def _offset(data: _Json) -> group_records.OffsetCommitValue:
    return group_records.OffsetCommitValue(
        offset=int(data["offset"]),
        leader_epoch=int(data.get("leaderEpoch", -1)),
        metadata=str(data.get("metadata", "")),
        commit_timestamp=int(data.get("commitTimestamp", -1)),
        expire_timestamp=int(data.get("expireTimestamp", -1)),
    )


def _group(data: _Json) -> group_records.GroupMetadataValue:
    return group_records.GroupMetadataValue(
        protocol_type=data["protocolType"],
        generation=int(data["generation"]),
        protocol=data.get("protocol"),
        leader=data.get("leader"),
        current_state_timestamp=int(data.get("currentStateTimestamp", -1)),
        members=tuple(_member(member) for member in data["members"]),
    )


def _member(data: _Json) -> group_records.MemberMetadata:
    return group_records.MemberMetadata(
        member_id=data["memberId"],
        group_instance_id=data.get("groupInstanceId"),
        client_id=data["clientId"],
        client_host=data["clientHost"],
        rebalance_timeout=int(data.get("rebalanceTimeout", -1)),
        session_timeout=int(data["sessionTimeout"]),
        subscription=_subscription(data["subscription"]),
        assignment=_assignment(data["assignment"]),
    )


def _subscription(node: str | _Json) -> bytes:
    if isinstance(node, str):
        return b64decode(node, validate=True)
    version = 0
    for name, since in (
        ("ownedPartitions", _OWNED_VERSION),
        ("generationId", _GENERATION_VERSION),
        ("rackId", _RACK_VERSION),
    ):
        version = since if name in node else version
    return encode_subscription(
        Subscription(
            topics=tuple(node["topics"]),
            user_data=_bytes(node.get("userData")),
            owned_partitions=_partitions(node.get("ownedPartitions", ())),
            generation_id=int(node.get("generationId", -1)),
            rack_id=node.get("rackId"),
        ),
        version,
    )


def _assignment(node: str | _Json) -> bytes:
    if isinstance(node, str):
        return b64decode(node, validate=True)
    given = ConsumerAssignment(
        partitions=_partitions(node["assignedPartitions"]), user_data=_bytes(node.get("userData"))
    )
    return encode_assignment(given, 0)


def _bytes(node: str | None) -> bytes | None:
    return None if node is None else b64decode(node, validate=True)


def _partitions(nodes: Any) -> tuple[TopicPartition, ...]:  # noqa: ANN401 - parsed JSON
    return tuple(
        TopicPartition(entry["topic"], int(partition))
        for entry in nodes
        for partition in entry["partitions"]
    )
