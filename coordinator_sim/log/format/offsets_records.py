"""Keys and values of the `__consumer_offsets` log as bytes.

A key begins with its version, which names the record's type: 0 and 1 an offset, 2 a classic
group; other types stay opaque when they are read. A value begins with the version of its own
schema.

Source: kafka 4.4, group-coordinator/src/main/resources/common/message, the schemas
(Legacy)OffsetCommitKey and Value, GroupMetadataKey and Value; GroupCoordinatorRecordSerde.
"""

import struct
from typing import Final

from coordinator_sim.messages.codec import records
from coordinator_sim.messages.codec.classic_types import int16_bytes
from coordinator_sim.messages.group_records import GroupKey, OffsetCommitKey, OffsetCommitValue
from coordinator_sim.messages.records import LogKey, LogRecord, LogValue, OpaqueKey, OpaqueValue
from coordinator_sim.messages.schema import ZERO_UUID

LEGACY_OFFSET_KEY: Final = 0
OFFSET_KEY: Final = OffsetCommitKey.record_type
GROUP_TYPES: Final[records.RecordTypes] = {
    LEGACY_OFFSET_KEY: OffsetCommitKey,
    **records.record_types(GroupKey),
}
"""The structs of keys of offsets and classic groups, by the number that their bytes begin with."""
HIGHEST_VALUE_VERSION: Final = records.record_message(OffsetCommitValue).newest
"""Highest version of an offset: the flexible one, whose unknown tags are ignored."""

_LEADER_EPOCH_VERSION: Final = 3
_FLEXIBLE_VERSION: Final = 4
_UUID_SIZE: Final = 16
_TOPIC_ID_FRONT: Final = b"\x01\x00\x10"
"""Header of one tagged field with the topic's id of 16 bytes."""
_ONE_BYTE: Final = 0x7F
"""Shorter lengths, plus one, fit a varint of one byte."""
_PLAIN_FRONT: Final = struct.Struct(">hqi")
_PLAIN_SIZE: Final = 24
_INT64: Final = struct.Struct(">q")
_ABSENT: Final = -1


# -- keys ------------------------------------------------------------------------------------


def encode_key(key: LogKey, *, legacy: bool = False) -> bytes:
    """The key of a record.

    Args:
        key: The key.
        legacy: Whether to write an offset's key in version 0 instead of 1.
    """
    if isinstance(key, OpaqueKey):
        return int16_bytes(key.version) + key.body
    return records.key_bytes(
        key, LEGACY_OFFSET_KEY if legacy and isinstance(key, OffsetCommitKey) else None
    )


def decode_key(data: bytes) -> LogKey:
    """The key of a record; one of another version than 0, 1 and 2 stays opaque.

    Raises:
        WireFormatError: A field is truncated, or null where it may not be.
    """
    key: LogKey | None = records.read_key(GROUP_TYPES, data)
    return OpaqueKey(records.front(data, "record key"), data[2:]) if key is None else key


# -- values ----------------------------------------------------------------------------------


def encode_value(value: LogValue, version: int) -> bytes:
    """The value of a record; fields that the version lacks are left out.

    Args:
        value: The value.
        version: Version of the value's schema, 0 to 4; an opaque value has its own.
    """
    return value.data if isinstance(value, OpaqueValue) else records.value_bytes(value, version)


def encode_record(record: LogRecord) -> tuple[bytes, bytes | None]:
    """The key and the value of a record; None for a tombstone."""
    key, value = record.key, record.value
    if value is None:
        return encode_key(key, legacy=record.legacy_key), None
    if record.legacy_key or isinstance(key, OpaqueKey):
        data = encode_value(value, record.value_version)
        return encode_key(key, legacy=record.legacy_key), data
    return records.record_writer(type(key), record.value_version)(key, value)


def decode_value(key: LogKey, data: bytes) -> tuple[LogValue, int]:
    """The value under a key, and the version of its schema.

    Bytes after the last field are ignored, as in Java. Fields that the version lacks have their
    defaults; a missing rebalance timeout is -1.

    Raises:
        WireFormatError: The version is unknown, or a field is truncated, or null where it may
            not be. A broker that loads such a record gives the whole partition up.
    """
    if isinstance(key, OpaqueKey):
        return OpaqueValue(data), records.front(data, "record value") if data else _ABSENT
    if isinstance(key, OffsetCommitKey):
        plain = _plain_offset(data)
        if plain is not None:
            return plain, data[1]
    return records.read_value(key, data)


def decode_record(
    key: bytes, value: bytes | None, keys: dict[bytes, LogKey] | None = None
) -> LogRecord:
    """Decode one record from key and value.

    Args:
        key: The record's key.
        value: The record's value; None is a tombstone.
        keys: Cache of decoded keys, as most keys of a log repeat; gets this one, too.

    Raises:
        WireFormatError: See `decode_key` and `decode_value`.
    """
    named = None if keys is None else keys.get(key)
    if named is None:
        named = decode_key(key)
        if keys is not None:
            keys[key] = named
    said, version = (None, 0) if value is None else decode_value(named, value)
    legacy = isinstance(named, OffsetCommitKey) and key[1] == LEGACY_OFFSET_KEY
    return LogRecord(named, said, version, legacy)


def _plain_offset(data: bytes) -> OffsetCommitValue | None:
    """Read a regular offset value at once; None leaves any other to the general reader.

    Regular are version 3, and version 4 with short metadata and no tag but the topic's id.
    """
    if len(data) < _PLAIN_SIZE or data[0]:
        return None
    _, offset, epoch = _PLAIN_FRONT.unpack_from(data)
    start = _PLAIN_FRONT.size
    topic_id = ZERO_UUID
    if data[1] == _LEADER_EPOCH_VERSION:
        size = data[start] << 8 | data[start + 1]
        start += 2
        end = start + size
        if end + 8 != len(data):
            return None
    elif data[1] == _FLEXIBLE_VERSION:
        size = data[start] - 1
        start += 1
        end = start + size
        tags = data[end + 8 :]
        if not 0 <= size < _ONE_BYTE or not tags or tags[:3] not in (b"\x00", _TOPIC_ID_FRONT):
            return None
        if tags[0]:
            topic_id = tags[3:]
            if len(topic_id) != _UUID_SIZE:
                return None
    else:
        return None
    return OffsetCommitValue(
        offset=offset,
        leader_epoch=epoch,
        metadata=data[start:end].decode(errors="replace"),
        commit_timestamp=_INT64.unpack_from(data, end)[0],
        topic_id=topic_id,
    )
