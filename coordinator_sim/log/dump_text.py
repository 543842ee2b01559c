"""A segment as text: what `kafka-dump-log` prints of offsets, or of share groups' state.

The form is that of Kafka 3.8 and later, in which keys and values are JSON.

DEVIATION: records of the newer group types are known only by number; their key and value are
printed as base64 under `data`. If a record does not parse, the reason is in our words.

Source: kafka trunk, tools/.../DumpLogSegments.java: dumpLog, printBatchLevel,
printRecordMetadata, printControlRecord, OffsetsMessageParser, ShareGroupStateMessageParser.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from coordinator_sim.errors import WireFormatError
from coordinator_sim.log.format import offsets_records
from coordinator_sim.log.format.log_batches import control_type, read_marker
from coordinator_sim.log.format.record_batches import (
    CURRENT_MAGIC,
    LegacyEntry,
    Record,
    TimestampType,
)
from coordinator_sim.log.format.segments import SegmentReader, base_offset_of
from coordinator_sim.log.format.share_state_records import decode_share_state
from coordinator_sim.log.format.stored_batches import StoredBatch
from coordinator_sim.messages.codec.classic_types import ClassicReader
from coordinator_sim.messages.codec.json_form import to_json
from coordinator_sim.messages.codec.records import record_layout
from coordinator_sim.messages.group_records import GroupKey, GroupMetadataValue, GroupValue
from coordinator_sim.messages.records import LogKey, LogRecord, LogValue, OpaqueKey

Json = dict[str, Any]
Contents = Callable[[Record], str]
"""Says key and value of a record, by one of the tool's decoders."""

_TIMESTAMP_LABELS: Final = {
    TimestampType.NONE: "NoTimestampType",
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}
_CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-f]{4})|.)")
_MAX_SEQUENCE: Final = 2**31 - 1
_HIGHEST_TYPE: Final = 24
"""Highest record type in 4.4. Source: generated CoordinatorRecordType."""
_CONSUMER: Final = "consumer"
_OWNED_VERSION: Final = 1
_GENERATION_VERSION: Final = 2
_RACK_VERSION: Final = 3


def dump_segment(path: str, data: bytes, contents: Contents | None = None) -> Iterator[str]:
    """The lines that the tool prints for one file.

    A batch with a wrong CRC is printed with `isvalid: false`, and reading continues after it.

    Args:
        path: Path as the user gave it.
        data: The bytes of the file.
        contents: See `Contents`; None for `offsets_contents`.
    """
    contents = contents or offsets_contents
    yield f"Dumping {path}"
    name = path.rpartition("/")[2]
    try:
        yield f"Log starting offset: {base_offset_of(name)}"
    except ValueError:
        # Kafka's tool gives up on such a name, but a copied file may have one.
        yield f"Log starting offset: unknown, {name} is no segment's name"
    reader = SegmentReader(data, check_crc=False)
    for batch in reader:
        yield batch_line(batch)
        yield from record_lines(batch, contents)
    if reader.damage is not None:
        yield f"Found {reader.damage.invalid_bytes} invalid bytes at the end of {name}"


def batch_line(batch: StoredBatch) -> str:
    """The line of a batch. Source: printBatchLevel."""
    if batch.magic >= CURRENT_MAGIC:
        delta = batch.last_offset - batch.base_offset
        horizon = batch.delete_horizon_ms
        front = (
            f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} "
            f"count: {batch.count} baseSequence: {batch.base_sequence} "
            f"lastSequence: {_sequence(batch.base_sequence, delta)} "
            f"producerId: {batch.producer_id} producerEpoch: {batch.producer_epoch} "
            f"partitionLeaderEpoch: {batch.leader_epoch} "
            f"isTransactional: {_bool(batch.transactional)} isControl: {_bool(batch.control)} "
            f"deleteHorizonMs: {'OptionalLong.empty' if horizon is None else _present(horizon)}"
        )
    else:
        front = f"offset: {batch.last_offset}"
    codec = _CODECS[batch.codec] if batch.codec < len(_CODECS) else f"unknown({batch.codec})"
    return (
        f"{front} position: {batch.position} {_timestamp(batch, batch.max_timestamp_ms)} "
        f"size: {batch.size} magic: {batch.magic} compresscodec: {codec} crc: {batch.crc} "
        f"isvalid: {_bool(batch.is_valid)}"
    )


def record_lines(batch: StoredBatch, contents: Contents) -> Iterator[str]:
    """One line per record; if the rest does not parse, one line with the reason."""
    try:
        # Legacy records have their own CRC.
        is_legacy = batch.magic < CURRENT_MAGIC
        entries = (entry for entry in batch.streamed_entries() if entry is not None)
        for record in batch.streamed():
            if record is not None:
                entry = next(entries) if is_legacy else None
                yield _record_line(batch, record, entry, contents)
    except WireFormatError as error:
        yield f"| records do not parse: {error}"


def _record_line(
    batch: StoredBatch, record: Record, entry: LegacyEntry | None, contents: Contents
) -> str:
    line = (
        f"| offset: {record.offset} {_timestamp(batch, record.timestamp_ms)} "
        f"keySize: {_size(record.key)} valueSize: {_size(record.value)}"
    )
    if entry is not None:
        line += f" isValid: {_bool(entry.is_valid)} crc: {entry.crc}"
    else:
        sequence = _sequence(batch.base_sequence, record.offset - batch.base_offset)
        headers = ",".join(key for key, _ in record.headers)
        line += f" sequence: {sequence} headerKeys: [{headers}]"
    return line + (_control_text(record) if batch.control else contents(record))


def _control_text(record: Record) -> str:
    """The text of a control record; other types only by number. Source: printControlRecord."""
    try:
        marker = read_marker(record)
    except WireFormatError as error:
        return f" {error}"
    if marker is None:
        kind = control_type(record)
        return f" controlType: UNKNOWN({kind})"
    end = "COMMIT" if marker.committed else "ABORT"
    return f" endTxnMarker: {end} coordinatorEpoch: {marker.coordinator_epoch}"


def share_state_contents(record: Record) -> str:
    """Key and value of a record of `__share_group_state`: `--share-group-state-decoder`.

    Source: ShareGroupStateMessageParser.
    """
    if record.key is None:
        return " key: none"
    try:
        decoded = decode_share_state(record.key, record.value)
    except WireFormatError as error:
        return f" key: Error at offset {record.offset}, skipping. {error}"
    if decoded is None:
        kind = int.from_bytes(record.key[:2], "big", signed=True)
        return f" key: Unknown record type {kind} at offset {record.offset}, skipping."
    key, value = decoded
    key_json = {"type": str(key.record_type), "data": to_json(record_layout(type(key)), key)}
    payload = "<DELETE>"
    if value is not None:
        data = to_json(record_layout(type(value)), value)
        payload = _json({"version": "0", "data": data})
    return f" key: {_json(key_json)} payload: {payload}"


def offsets_contents(record: Record) -> str:
    """Key and value of a record of the offsets log: `--offsets-decoder`.

    Source: CoordinatorRecordMessageParser.parse.
    """
    if record.key is None:
        return " key: none"
    try:
        decoded = offsets_records.decode_record(record.key, record.value)
    except WireFormatError as error:
        return f" key: Error at offset {record.offset}, skipping. {error}"
    if isinstance(decoded.key, OpaqueKey) and not 0 <= decoded.key.version < _HIGHEST_TYPE:
        kind = decoded.key.version
        return f" key: Unknown record type {kind} at offset {record.offset}, skipping."
    return f" key: {key_text(decoded)} payload: {value_text(decoded)}"


def key_text(record: LogRecord) -> str:
    """The key as JSON, with its record type first."""
    return _json(_key_json(record.key, legacy=record.legacy_key))


def value_text(record: LogRecord) -> str:
    """The value as JSON, with its version first; `<DELETE>` for a tombstone."""
    if record.value is None:
        return "<DELETE>"
    data = value_json(record.value, record.value_version)
    return _json({"version": str(record.value_version), "data": data})


def _key_json(key: LogKey, *, legacy: bool) -> Json:
    if isinstance(key, GroupKey):
        number = offsets_records.LEGACY_OFFSET_KEY if legacy else key.record_type
        return {"type": str(number), "data": to_json(record_layout(type(key)), key)}
    if isinstance(key, OpaqueKey):
        return {"type": str(key.version), "data": _base64(key.body)}
    return _key_json(offsets_records.decode_key(offsets_records.encode_key(key)), legacy=False)


def value_json(value: LogValue, version: int) -> Json | str:
    """The fields that the version of a value has, in the order of its schema."""
    if not isinstance(value, GroupValue):
        return _base64(offsets_records.encode_value(value, version))
    data = to_json(record_layout(type(value), version), value)
    if isinstance(value, GroupMetadataValue) and value.protocol_type == _CONSUMER:
        for member, shown in zip(value.members, data["members"], strict=True):
            shown["subscription"] = _embedded(member.subscription, _subscription_json)
            shown["assignment"] = _embedded(member.assignment, _assignment_json)
    return data


def _embedded(blob: bytes, read: Callable[[ClassicReader, int], Json]) -> Json | str:
    """The contents of a consumer's blob as JSON; base64 if it does not parse."""
    reader = ClassicReader(blob, "embedded blob")
    try:
        return read(reader, reader.int16("version"))
    except WireFormatError:
        return _base64(blob)


def _subscription_json(reader: ClassicReader, version: int) -> Json:
    """The fields of a subscription. Source: ConsumerProtocolSubscription.json."""
    data: Json = {"topics": reader.array("topics", lambda: reader.string("topic"))}
    data["userData"] = _nullable_base64(reader.nullable_bytes("user_data"))
    if version >= _OWNED_VERSION:
        data["ownedPartitions"] = _partitions_json(reader)
    if version >= _GENERATION_VERSION:
        data["generationId"] = reader.int32("generation_id")
    if version >= _RACK_VERSION:
        data["rackId"] = reader.nullable_string("rack_id")
    return data


def _assignment_json(reader: ClassicReader, _version: int) -> Json:
    """The fields of an assignment. Source: ConsumerProtocolAssignment.json."""
    data: Json = {"assignedPartitions": _partitions_json(reader)}
    data["userData"] = _nullable_base64(reader.nullable_bytes("user_data"))
    return data


def _partitions_json(reader: ClassicReader) -> list[Json]:
    def entry() -> Json:
        topic = reader.string("topic")
        partitions = reader.array("partitions", lambda: reader.int32("partition"))
        return {"topic": topic, "partitions": partitions}

    return reader.array("topic_partitions", entry)


def _json(value: Json) -> str:
    """JSON as Jackson writes it: compact, and control characters with upper-case digits."""
    return _ESCAPE.sub(_upper_escape, msgspec.json.encode(value).decode())


def _upper_escape(found: re.Match[str]) -> str:
    digits = found[1]
    return found[0] if digits is None else f"\\u{digits.upper()}"


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


def _nullable_base64(data: bytes | None) -> str | None:
    return None if data is None else _base64(data)


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _present(value: int) -> str:
    return f"OptionalLong[{value}]"


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _timestamp(batch: StoredBatch, timestamp_ms: int) -> str:
    return f"{_TIMESTAMP_LABELS[batch.timestamp_type]}: {timestamp_ms}"


def _sequence(base: int, delta: int) -> int:
    """The sequence `delta` records later, which wraps to 0. Source: incrementSequence."""
    if base < 0:
        return -1
    following = base + delta
    return following if following <= _MAX_SEQUENCE else following - _MAX_SEQUENCE - 1
