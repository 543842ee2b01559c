"""Records of the offsets log in JSON, as the reference prints and reads them.

A record is `{"partition", "offset", "ts", "key": {"type", "data"}, "value": {"version", "data"}}`;
a tombstone's value is null; a record of a producer names it (`producerId`, `producerEpoch`), and
the marker that ends a transaction has `control` in place of key and value. Records of unknown types
are carried as they are: their `data` is `{"bytes"}`.
"""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from coordinator_sim.errors import DataError, UnsupportedVersion
from coordinator_sim.log.format.consumer_records import RECORD_TYPES
from coordinator_sim.log.format.offsets_records import GROUP_TYPES, decode_record
from coordinator_sim.messages import records
from coordinator_sim.messages.codec import json_form
from coordinator_sim.messages.codec.records import record_layout, value_struct


def _by_schema(struct: type[Struct], version: int, node: object) -> Any:  # noqa: ANN401 - any record
    return json_form.JsonReader(struct.__module__).read(record_layout(struct, version), node)


# -- writing -------------------------------------------------------------------------------


def _write_key(key: records.LogKey) -> json_form.Json:
    if isinstance(key, records.OpaqueKey):
        return {"type": key.version, "data": {"bytes": json_form.base64_text(key.body)}}
    return {"type": key.record_type, "data": json_form.to_json(record_layout(type(key)), key)}


def _write_value(value: records.LogValue, version: int) -> json_form.Json:
    if isinstance(value, records.OpaqueValue):
        return {"bytes": json_form.base64_text(value.data)}
    return json_form.to_json(record_layout(type(value), version), value)


def write_record(record: records.LogRecord) -> json_form.Json:
    """Return the key and the value of one record."""
    written: json_form.Json = {"key": _write_key(record.key), "value": None}
    if record.value is not None:
        version = record.value_version
        written["value"] = {"version": version, "data": _write_value(record.value, version)}
    return written


def write_records(batch: records.LogBatch) -> list[json_form.Json]:
    """Return the records of a batch, each with its partition, offset, time and producer."""
    producer: json_form.Json = {}
    if batch.producer_id >= 0:
        producer = {"producerId": batch.producer_id, "producerEpoch": batch.producer_epoch}
    place: json_form.Json = {"partition": batch.partition, "offset": batch.base_offset}
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


def _read_opaque(node: json_form.Json) -> bytes:
    data = node.get("data")
    if not isinstance(data, dict) or "bytes" not in data:
        raise DataError(f"a record of a newer group type needs data with bytes, not {data!r}")
    return json_form.base64_bytes(data["bytes"], "data.bytes")


def _read_key(node: json_form.Json) -> records.LogKey:
    key_type = node.get("type")
    if not isinstance(key_type, int):
        raise DataError(f"a record's key needs a numeric type, not {key_type!r}")
    if key_type < 0:
        raise UnsupportedVersion(
            f"records of key type {key_type} are not known: use 0 or 1 for an offset, 2 for a group"
        )
    struct = GROUP_TYPES.get(key_type)
    if struct is None and "bytes" not in node.get("data", {}):
        struct = RECORD_TYPES.get(key_type)
    if struct is None:
        return records.OpaqueKey(key_type, _read_opaque(node))
    key: records.LogKey = _by_schema(struct, 0, node.get("data"))
    return key


def read_record(node: json_form.Json) -> records.LogRecord:
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
        said = json_form.base64_bytes(text, "value") if isinstance(text, str) else None
        return decode_record(json_form.base64_bytes(key_node, "key"), said)
    if not isinstance(key_node, dict):
        raise DataError(f"a record needs a key with type and data, not {key_node!r}")
    key = _read_key(key_node)
    value_node = node.get("value")
    if not isinstance(value_node, dict):
        return records.LogRecord(key, None, 0)
    version = value_node.get("version")
    if not isinstance(version, int):
        raise DataError(f"a record's value needs a numeric version, not {version!r}")
    if isinstance(key, records.OpaqueKey):
        return records.LogRecord(key, records.OpaqueValue(_read_opaque(value_node)), version)
    value = _by_schema(value_struct(type(key)), version, value_node.get("data"))
    return records.LogRecord(key, value, version)


def read_records(nodes: Iterable[json_form.Json]) -> tuple[records.LogRecord, ...]:
    """Parse records in their order, as `write_records` writes them.

    Raises:
        DataError: a field is missing or of another type.
        UnsupportedVersion: a value version that Kafka does not have.
        WireFormatError: the bytes are no record.
    """
    return tuple(read_record(node) for node in nodes)
