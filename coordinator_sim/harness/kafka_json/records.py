"""Records of the offsets log in JSON, as the reference prints them and takes them.

A record is `{"partition", "offset", "ts", "key": {"type", "data"}, "value": {"version", "data"}}`;
a tombstone's value is null; a record of a producer names it (`producerId`, `producerEpoch`), and
the marker that ends a transaction has `control` in place of key and value. Records of newer group
types are carried as they are: their `data` is `{"bytes"}`.
"""

from collections.abc import Iterable

from coordinator_sim.errors import DataError
from coordinator_sim.harness.kafka_json.converter import (
    Json,
    base64_bytes,
    base64_text,
    read_fields,
    write_fields,
)
from coordinator_sim.protocol.records import (
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
from coordinator_sim.wire.forms.form import id_or_none
from coordinator_sim.wire.offsets_records import decode_record
from coordinator_sim.wire.schema import ZERO_UUID, Data
from coordinator_sim.wire.schemas.records import (
    GROUP_METADATA_KEY,
    OFFSET_COMMIT_KEY,
    key_layout,
    value_layout,
)

# -- writing -------------------------------------------------------------------------------


def _write_key(key: LogKey) -> Json:
    if isinstance(key, OpaqueKey):
        return {"type": key.version, "data": {"bytes": base64_text(key.body)}}
    if isinstance(key, GroupMetadataKey):
        return {"type": GROUP_METADATA_KEY, "data": {"group": key.group_id}}
    data = {"group": key.group_id, "topic": key.topic, "partition": key.partition}
    return {"type": OFFSET_COMMIT_KEY, "data": data}


def _value_fields(value: OffsetCommitValue | GroupMetadataValue) -> Data:
    if isinstance(value, OffsetCommitValue):
        return {
            "offset": value.offset,
            "leaderEpoch": value.leader_epoch,
            "metadata": value.metadata,
            "commitTimestamp": value.commit_timestamp_ms,
            "expireTimestamp": value.expire_timestamp_ms,
            "topicId": ZERO_UUID if value.topic_id is None else value.topic_id,
        }
    return {
        "protocolType": value.protocol_type,
        "generation": value.generation_id,
        "protocol": value.protocol_name,
        "leader": value.leader,
        "currentStateTimestamp": value.current_state_timestamp_ms,
        "members": [
            {
                "memberId": member.member_id,
                "groupInstanceId": member.group_instance_id,
                "clientId": member.client_id,
                "clientHost": member.client_host,
                "rebalanceTimeout": member.rebalance_timeout_ms,
                "sessionTimeout": member.session_timeout_ms,
                "subscription": member.subscription,
                "assignment": member.assignment,
            }
            for member in value.members
        ],
    }


def _write_value(value: LogValue, version: int) -> Json:
    if isinstance(value, OpaqueValue):
        return {"bytes": base64_text(value.data)}
    group = isinstance(value, GroupMetadataValue)
    layout = value_layout(GROUP_METADATA_KEY if group else OFFSET_COMMIT_KEY, version)
    return write_fields(layout, _value_fields(value))


def write_record(record: LogRecord) -> Json:
    """The key and the value of one record."""
    written: Json = {"key": _write_key(record.key), "value": None}
    if record.value is not None:
        version = record.value_version
        written["value"] = {"version": version, "data": _write_value(record.value, version)}
    return written


def write_records(batch: LogBatch) -> list[Json]:
    """The records of a batch, each with its partition, offset, time and producer."""
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
    if key_type > GROUP_METADATA_KEY:
        return key_type, OpaqueKey(key_type, _read_opaque(node))
    data = read_fields(key_layout(key_type), node.get("data"))
    if key_type == GROUP_METADATA_KEY:
        return key_type, GroupMetadataKey(data["group"])
    return key_type, OffsetCommitKey(data["group"], data["topic"], data["partition"])


def _read_offset_value(data: Data) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=data["offset"],
        leader_epoch=data.get("leaderEpoch", -1),
        metadata=data["metadata"],
        commit_timestamp_ms=data["commitTimestamp"],
        expire_timestamp_ms=data.get("expireTimestamp", -1),
        topic_id=id_or_none(data),
    )


def _read_group_value(data: Data) -> GroupMetadataValue:
    return GroupMetadataValue(
        protocol_type=data["protocolType"],
        generation_id=data["generation"],
        protocol_name=data["protocol"],
        leader=data["leader"],
        current_state_timestamp_ms=data.get("currentStateTimestamp", -1),
        members=tuple(
            GroupMetadataMember(
                member_id=member["memberId"],
                group_instance_id=member.get("groupInstanceId"),
                client_id=member["clientId"],
                client_host=member["clientHost"],
                rebalance_timeout_ms=member.get("rebalanceTimeout", -1),
                session_timeout_ms=member["sessionTimeout"],
                subscription=member["subscription"],
                assignment=member["assignment"],
            )
            for member in data["members"]
        ),
    )


def read_record(node: Json) -> LogRecord:
    """One record from its key and value; what else the object says is passed over.

    A text in place of the key is its bytes in base64, and so is the value then.

    Raises:
        DataError: a field is missing or of another type.
        UnsupportedVersion: a value version that Kafka does not have.
        WireFormatError: bytes that are no record.
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
    if isinstance(key, OpaqueKey):
        return LogRecord(key, OpaqueValue(_read_opaque(value_node)), version)
    data = read_fields(value_layout(key_type, version), value_node.get("data"))
    group = key_type == GROUP_METADATA_KEY
    value: LogValue = _read_group_value(data) if group else _read_offset_value(data)
    return LogRecord(key, value, version)


def read_records(nodes: Iterable[Json]) -> tuple[LogRecord, ...]:
    """Records in their order, as `write_records` says them.

    Raises:
        DataError: a field is missing or of another type.
        UnsupportedVersion: a value version that Kafka does not have.
        WireFormatError: bytes that are no record.
    """
    return tuple(read_record(node) for node in nodes)
