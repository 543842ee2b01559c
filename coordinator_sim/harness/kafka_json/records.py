"""Records of the offsets log in JSON, as the reference prints and reads them.

A record is `{"partition", "offset", "ts", "key": {"type", "data"}, "value": {"version", "data"}}`;
a tombstone's value is null; a record of a producer names it (`producerId`, `producerEpoch`), and
the marker that ends a transaction has `control` in place of key and value. Records of unknown types
are carried as they are: their `data` is `{"bytes"}`.
"""

from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.errors import DataError, UnsupportedVersion
from coordinator_sim.log.format.consumer_records import RECORD_TYPES
from coordinator_sim.log.format.offsets_records import GROUP_KEY, OFFSET_KEY, decode_record
from coordinator_sim.messages import group_records
from coordinator_sim.messages.codec.json_form import (
    Json,
    JsonReader,
    base64_bytes,
    base64_text,
    to_json,
)
from coordinator_sim.messages.codec.records import record_layout, value_struct
from coordinator_sim.messages.records import (
    GroupMetadataKey,
    GroupMetadataMember,
    GroupMetadataValue,
    LogBatch,
    LogKey,
    LogRecord,
    LogValue,
    OffsetCommitKey,
    OffsetCommitValue,
    OpaqueKey,
    OpaqueValue,
)
from coordinator_sim.messages.schema import ZERO_UUID, Layout, layout_of_message, message_of

_OFFSETS: Final = JsonReader(group_records.__name__)
_GROUPS: Final = _OFFSETS

NO_TIMEOUT: Final = -1
"""Rebalance timeout of version 0, which has none."""


def _by_schema(struct: type[Struct], node: object) -> Any:  # noqa: ANN401 - a struct of any record
    return JsonReader(struct.__module__).read(record_layout(struct), node)


def _key_layout(key_type: int) -> Layout:
    """Return the fields of a record's key; its type is also its version.

    Raises:
        UnsupportedVersion: not the key of an offset or a classic group.
    """
    if not 0 <= key_type <= GROUP_KEY:
        raise UnsupportedVersion(
            f"records of key type {key_type} are not known: use 0 or 1 for an offset, 2 for a group"
        )
    name = "GroupMetadataRecord" if key_type == GROUP_KEY else "OffsetCommitRecord"
    return layout_of_message(message_of(name, "key"), 0)


def _value_layout(key_type: int, version: int) -> Layout:
    name = "GroupMetadataRecord" if key_type == GROUP_KEY else "OffsetCommitRecord"
    return layout_of_message(message_of(name, "value"), version)


# -- writing -------------------------------------------------------------------------------


def _write_key(key: LogKey) -> Json:
    if isinstance(key, OpaqueKey):
        return {"type": key.version, "data": {"bytes": base64_text(key.body)}}
    if isinstance(key, GroupMetadataKey):
        return {"type": GROUP_KEY, "data": {"group": key.group_id}}
    if isinstance(key, OffsetCommitKey):
        data = {"group": key.group_id, "topic": key.topic, "partition": key.partition}
        return {"type": OFFSET_KEY, "data": data}
    return {"type": key.record_type, "data": to_json(record_layout(type(key)), key)}


def _value_message(value: OffsetCommitValue | GroupMetadataValue) -> Struct:
    """Return a value in the form of Kafka's schema."""
    if isinstance(value, OffsetCommitValue):
        return group_records.OffsetCommitValue(
            offset=value.offset,
            leader_epoch=value.leader_epoch,
            metadata=value.metadata,
            commit_timestamp=value.commit_timestamp_ms,
            expire_timestamp=value.expire_timestamp_ms,
            topic_id=ZERO_UUID if value.topic_id is None else value.topic_id,
        )
    return group_records.GroupMetadataValue(
        protocol_type=value.protocol_type,
        generation=value.generation_id,
        protocol=value.protocol_name,
        leader=value.leader,
        current_state_timestamp=value.current_state_timestamp_ms,
        members=tuple(
            group_records.MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.subscription,
                assignment=member.assignment,
            )
            for member in value.members
        ),
    )


def _write_value(value: LogValue, version: int) -> Json:
    if isinstance(value, OpaqueValue):
        return {"bytes": base64_text(value.data)}
    if isinstance(value, (OffsetCommitValue, GroupMetadataValue)):
        group = isinstance(value, GroupMetadataValue)
        layout = _value_layout(GROUP_KEY if group else OFFSET_KEY, version)
        return to_json(layout, _value_message(value))
    return to_json(record_layout(type(value)), value)


def write_record(record: LogRecord) -> Json:
    """Return the key and the value of one record."""
    written: Json = {"key": _write_key(record.key), "value": None}
    if record.value is not None:
        version = record.value_version
        written["value"] = {"version": version, "data": _write_value(record.value, version)}
    return written


def write_records(batch: LogBatch) -> list[Json]:
    """Return the records of a batch, each with its partition, offset, time and producer."""
    producer: Json = {}
    if batch.producer_id >= 0:
        producer = {"producerId": batch.producer_id, "producerEpoch": batch.producer_epoch}
    place: Json = {"partition": batch.partition, "offset": batch.base_offset}
    if batch.marker is not None:
        control = "COMMIT" if batch.marker.committed else "ABORT"
        return [{**place, "ts": batch.timestamp_ms, **producer, "control": control}]
    return [
        {
            **place,
            "offset": batch.base_offset + index,
            "ts": batch.time_of(index),
            **producer,
            **write_record(record),
        }
        for index, record in enumerate(batch.records)
    ]


# -- reading -------------------------------------------------------------------------------


def _read_opaque(node: Json) -> bytes:
    data = node.get("data")
    if not isinstance(data, dict) or "bytes" not in data:
        raise DataError(f"a record of a newer group type needs data with bytes, not {data!r}")
    return base64_bytes(data["bytes"], "data.bytes")


def _read_key(node: Json) -> tuple[int, LogKey]:
    key_type = node.get("type")
    if not isinstance(key_type, int):
        raise DataError(f"a record's key needs a numeric type, not {key_type!r}")
    if key_type in RECORD_TYPES and "bytes" not in node.get("data", {}):
        return key_type, _by_schema(RECORD_TYPES[key_type], node.get("data"))
    if key_type > GROUP_KEY:
        return key_type, OpaqueKey(key_type, _read_opaque(node))
    layout = _key_layout(key_type)
    if key_type == GROUP_KEY:
        return key_type, GroupMetadataKey(_GROUPS.read(layout, node.get("data")).group)
    key = _OFFSETS.read(layout, node.get("data"))
    return key_type, OffsetCommitKey(key.group, key.topic, key.partition)


def _read_offset_value(layout: Layout, node: object) -> OffsetCommitValue:
    value = _OFFSETS.read(layout, node)
    return OffsetCommitValue(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp_ms=value.commit_timestamp,
        expire_timestamp_ms=value.expire_timestamp,
        topic_id=None if value.topic_id == ZERO_UUID else value.topic_id,
    )


def _read_group_value(layout: Layout, node: object) -> GroupMetadataValue:
    value = _GROUPS.read(layout, node)
    return GroupMetadataValue(
        protocol_type=value.protocol_type,
        generation_id=value.generation,
        protocol_name=value.protocol,
        leader=value.leader,
        current_state_timestamp_ms=value.current_state_timestamp,
        members=tuple(
            GroupMetadataMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=member.rebalance_timeout if layout.version else NO_TIMEOUT,
                session_timeout_ms=member.session_timeout,
                subscription=member.subscription,
                assignment=member.assignment,
            )
            for member in value.members
        ),
    )


def read_record(node: Json) -> LogRecord:
    """Parse one record from its key and value; other fields of the object are ignored.

    A string in place of the key holds its bytes in base64, and then so does the value.

    Raises:
        DataError: a field is missing or of another type.
        UnsupportedVersion: a value version that Kafka does not have.
        WireFormatError: the bytes are no record.
    """
    key_node = node.get("key")
    if isinstance(key_node, str):
        text = node.get("value")
        said = base64_bytes(text, "value") if isinstance(text, str) else None
        return decode_record(base64_bytes(key_node, "key"), said)
    if not isinstance(key_node, dict):
        raise DataError(f"a record needs a key with type and data, not {key_node!r}")
    key_type, key = _read_key(key_node)
    value_node = node.get("value")
    if not isinstance(value_node, dict):
        return LogRecord(key, None, 0)
    version = value_node.get("version")
    if not isinstance(version, int):
        raise DataError(f"a record's value needs a numeric version, not {version!r}")
    if key_type in RECORD_TYPES and not isinstance(key, OpaqueKey):
        read = _by_schema(value_struct(type(key)), value_node.get("data"))
        return LogRecord(key, read, version)
    if isinstance(key, OpaqueKey):
        return LogRecord(key, OpaqueValue(_read_opaque(value_node)), version)
    read = _read_group_value if key_type == GROUP_KEY else _read_offset_value
    value: LogValue = read(_value_layout(key_type, version), value_node.get("data"))
    return LogRecord(key, value, version)


def read_records(nodes: Iterable[Json]) -> tuple[LogRecord, ...]:
    """Parse records in their order, as `write_records` writes them.

    Raises:
        DataError: a field is missing or of another type.
        UnsupportedVersion: a value version that Kafka does not have.
        WireFormatError: the bytes are no record.
    """
    return tuple(read_record(node) for node in nodes)
