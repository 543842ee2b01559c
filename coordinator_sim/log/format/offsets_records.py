"""Keys and values of the `__consumer_offsets` log as bytes.

A key begins with its version, which names the record's type: 0 and 1 an offset, 2 a classic
group; other types stay opaque when they are read. A value begins with the version of its own
schema.

Source: kafka 4.4, group-coordinator/src/main/resources/common/message, the schemas
(Legacy)OffsetCommitKey and Value, GroupMetadataKey and Value; GroupCoordinatorRecordSerde.
"""

import struct
from functools import partial
from typing import Final

from coordinator_sim.errors import WireFormatError
from coordinator_sim.messages.codec.classic_types import (
    ClassicReader,
    array_bytes,
    bytes_bytes,
    int16_bytes,
    int32_bytes,
    int64_bytes,
    string_bytes,
)
from coordinator_sim.messages.codec.compact_types import (
    CompactReader,
    compact_array_bytes,
    compact_bytes_bytes,
    compact_string_bytes,
    tagged_fields_bytes,
)
from coordinator_sim.messages.codec.records import key_bytes, value_bytes
from coordinator_sim.messages.records import (
    GroupMetadataKey,
    GroupMetadataMember,
    GroupMetadataValue,
    LogKey,
    LogRecord,
    LogValue,
    OffsetCommitKey,
    OffsetCommitValue,
    OpaqueKey,
    OpaqueValue,
)

LEGACY_OFFSET_KEY: Final = 0
OFFSET_KEY: Final = 1
GROUP_KEY: Final = 2

HIGHEST_VALUE_VERSION: Final = 4
"""Highest version of both value schemas: the flexible one, whose unknown tags are ignored."""

_EXPIRE_VERSION: Final = 1
_STATE_TIMESTAMP_VERSION: Final = 2
_LEADER_EPOCH_VERSION: Final = 3
_INSTANCE_ID_VERSION: Final = 3
_FLEXIBLE_VERSION: Final = 4
_TOPIC_ID_TAG: Final = 0
_UUID_SIZE: Final = 16
_TOPIC_ID_FRONT: Final = b"\x01\x00\x10"
"""Header of one tagged field with the topic's id of 16 bytes."""
_ONE_BYTE: Final = 0x7F
"""Shorter lengths, plus one, fit a varint of one byte."""
_PLAIN_FRONT: Final = struct.Struct(">hqi")
_PLAIN_SIZE: Final = 24
_INT32: Final = struct.Struct(">i")
_INT64: Final = struct.Struct(">q")
_ABSENT: Final = -1


# -- keys ------------------------------------------------------------------------------------


def encode_key(key: LogKey, *, legacy: bool = False) -> bytes:
    """The key of a record.

    Args:
        key: The key.
        legacy: Whether to write an offset's key in version 0 instead of 1.
    """
    match key:
        case OffsetCommitKey():
            return b"".join(
                (
                    int16_bytes(LEGACY_OFFSET_KEY if legacy else OFFSET_KEY),
                    string_bytes(key.group_id),
                    string_bytes(key.topic),
                    int32_bytes(key.partition),
                )
            )
        case GroupMetadataKey():
            return int16_bytes(GROUP_KEY) + string_bytes(key.group_id)
        case OpaqueKey():
            return int16_bytes(key.version) + key.body
        case _:
            return key_bytes(key)


def decode_key(data: bytes) -> LogKey:
    """The key of a record; one of another version than 0, 1 and 2 stays opaque.

    Raises:
        WireFormatError: A field is truncated, or null where it may not be.
    """
    plain = _plain_key(data)
    if plain is not None:
        return plain
    reader = ClassicReader(data, "offsets record key")
    version = reader.int16("version")
    if version in (LEGACY_OFFSET_KEY, OFFSET_KEY):
        return OffsetCommitKey(
            reader.java_string("group"), reader.java_string("topic"), reader.int32("partition")
        )
    if version == GROUP_KEY:
        return GroupMetadataKey(reader.java_string("group"))
    return OpaqueKey(version, data[2:])


def _plain_key(data: bytes) -> OffsetCommitKey | None:
    """Read a regular offset key at once; None leaves any other key to the general reader."""
    try:
        end = 4 + (data[2] << 8 | data[3])
        stop = end + 2 + (data[end] << 8 | data[end + 1])
        if data[0] or data[1] > OFFSET_KEY or stop + 4 != len(data):
            return None
        partition = _INT32.unpack_from(data, stop)[0]
    except IndexError:
        return None
    group_id, topic = (
        data[4:end].decode(errors="replace"),
        data[end + 2 : stop].decode(errors="replace"),
    )
    return OffsetCommitKey(group_id, topic, partition)


# -- values ----------------------------------------------------------------------------------


def encode_value(value: LogValue, version: int) -> bytes:
    """The value of a record; fields that the version lacks are left out.

    Args:
        value: The value.
        version: Version of the value's schema, 0 to 4; an opaque value has its own.
    """
    match value:
        case OffsetCommitValue():
            return _offset_bytes(value, version)
        case GroupMetadataValue():
            return _group_bytes(value, version)
        case OpaqueValue():
            return value.data
        case _:
            return value_bytes(value)


def decode_value(key: LogKey, data: bytes) -> tuple[LogValue, int]:
    """The value under a key, and the version of its schema.

    Bytes after the last field are ignored, as in Java. Fields that the version lacks have their
    defaults; a missing rebalance timeout is -1.

    Raises:
        WireFormatError: The version is unknown, or a field is truncated, or null where it may
            not be. A broker that loads such a record gives the whole partition up.
    """
    if isinstance(key, OpaqueKey):
        version = ClassicReader(data, "record value").int16("version") if data else _ABSENT
        return OpaqueValue(data), version
    if isinstance(key, OffsetCommitKey):
        plain = _plain_offset(data)
        if plain is not None:
            return plain, data[1]
    what = "offset value" if isinstance(key, OffsetCommitKey) else "group value"
    reader = CompactReader(data, what)
    version = reader.int16("version")
    if not 0 <= version <= HIGHEST_VALUE_VERSION:
        raise WireFormatError(
            f"{what}: version {version} is unknown, the highest is {HIGHEST_VALUE_VERSION}", 0
        )
    if isinstance(key, OffsetCommitKey):
        return _read_offset(reader, version), version
    return _read_group(reader, version), version


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
    topic_id = None
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
        commit_timestamp_ms=_INT64.unpack_from(data, end)[0],
        topic_id=topic_id,
    )


def _offset_bytes(value: OffsetCommitValue, version: int) -> bytes:
    flexible = version >= _FLEXIBLE_VERSION
    parts = [int16_bytes(version), int64_bytes(value.offset)]
    if version >= _LEADER_EPOCH_VERSION:
        parts.append(int32_bytes(value.leader_epoch))
    parts.append((compact_string_bytes if flexible else string_bytes)(value.metadata))
    parts.append(int64_bytes(value.commit_timestamp_ms))
    if version == _EXPIRE_VERSION:
        parts.append(int64_bytes(value.expire_timestamp_ms))
    if flexible:
        known = value.topic_id is not None and any(value.topic_id)
        tags = {_TOPIC_ID_TAG: value.topic_id} if known and value.topic_id is not None else {}
        parts.append(tagged_fields_bytes(tags))
    return b"".join(parts)


def _read_offset(reader: CompactReader, version: int) -> OffsetCommitValue:
    flexible = version >= _FLEXIBLE_VERSION
    offset = reader.int64("offset")
    epoch = reader.int32("leader_epoch") if version >= _LEADER_EPOCH_VERSION else _ABSENT
    metadata = reader.compact_string("metadata") if flexible else reader.java_string("metadata")
    committed_ms = reader.int64("commit_timestamp")
    expires_ms = reader.int64("expire_timestamp") if version == _EXPIRE_VERSION else _ABSENT
    topic_id = None
    if flexible:
        topic_id = reader.tagged_fields("tags").get(_TOPIC_ID_TAG)
        if topic_id is not None and len(topic_id) != _UUID_SIZE:
            raise reader.error(f"topic_id has {len(topic_id)} bytes instead of {_UUID_SIZE}")
    return OffsetCommitValue(
        offset=offset,
        leader_epoch=epoch,
        metadata=metadata,
        commit_timestamp_ms=committed_ms,
        expire_timestamp_ms=expires_ms,
        topic_id=topic_id,
    )


def _group_bytes(value: GroupMetadataValue, version: int) -> bytes:
    flexible = version >= _FLEXIBLE_VERSION
    text = compact_string_bytes if flexible else string_bytes
    parts = [
        int16_bytes(version),
        text(value.protocol_type),
        int32_bytes(value.generation_id),
        text(value.protocol_name),
        text(value.leader),
    ]
    if version >= _STATE_TIMESTAMP_VERSION:
        parts.append(int64_bytes(value.current_state_timestamp_ms))
    members = [_member_bytes(member, version) for member in value.members]
    parts.append((compact_array_bytes if flexible else array_bytes)(members))
    if flexible:
        parts.append(tagged_fields_bytes({}))
    return b"".join(parts)


def _member_bytes(member: GroupMetadataMember, version: int) -> bytes:
    flexible = version >= _FLEXIBLE_VERSION
    text = compact_string_bytes if flexible else string_bytes
    blob = compact_bytes_bytes if flexible else bytes_bytes
    parts = [text(member.member_id)]
    if version >= _INSTANCE_ID_VERSION:
        parts.append(text(member.group_instance_id))
    parts += (text(member.client_id), text(member.client_host))
    if version >= 1:
        parts.append(int32_bytes(member.rebalance_timeout_ms))
    parts += (
        int32_bytes(member.session_timeout_ms),
        blob(member.subscription),
        blob(member.assignment),
    )
    if flexible:
        parts.append(tagged_fields_bytes({}))
    return b"".join(parts)


def _read_group(reader: CompactReader, version: int) -> GroupMetadataValue:
    flexible = version >= _FLEXIBLE_VERSION
    text = reader.compact_string if flexible else reader.java_string
    nullable = reader.compact_nullable_string if flexible else reader.java_nullable_string
    protocol_type = text("protocol_type")
    generation_id = reader.int32("generation")
    protocol_name = nullable("protocol")
    leader = nullable("leader")
    timed = version >= _STATE_TIMESTAMP_VERSION
    state_ms = reader.int64("current_state_timestamp") if timed else _ABSENT
    array = reader.compact_array if flexible else reader.array
    members = array("members", partial(_read_member, reader, version))
    if flexible:
        reader.tagged_fields("tags")
    return GroupMetadataValue(
        protocol_type=protocol_type,
        generation_id=generation_id,
        protocol_name=protocol_name,
        leader=leader,
        current_state_timestamp_ms=state_ms,
        members=tuple(members),
    )


def _read_member(reader: CompactReader, version: int) -> GroupMetadataMember:
    flexible = version >= _FLEXIBLE_VERSION
    text = reader.compact_string if flexible else reader.java_string
    nullable = reader.compact_nullable_string if flexible else reader.java_nullable_string
    blob = reader.compact_bytes if flexible else reader.required_bytes
    member = GroupMetadataMember(
        member_id=text("member_id"),
        group_instance_id=nullable("instance_id") if version >= _INSTANCE_ID_VERSION else None,
        client_id=text("client_id"),
        client_host=text("client_host"),
        rebalance_timeout_ms=reader.int32("rebalance_timeout") if version >= 1 else _ABSENT,
        session_timeout_ms=reader.int32("session_timeout"),
        subscription=blob("subscription"),
        assignment=blob("assignment"),
    )
    if flexible:
        reader.tagged_fields("member tags")
    return member
