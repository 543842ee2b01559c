"""The most frequent batch of the offsets log, a commit of plain offsets, packed by hand.

The packer knows the usual form: offsets without metadata in a value of version 3 or 4, fewer than
65 records. For what is not, it gives up, and the general writer writes the batch. The bytes are
the same.

Source: as `record_bytes` and `offsets_records`.
"""

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from coordinator_sim.protocol.records import LogBatch, OffsetCommitKey, OffsetCommitValue
from coordinator_sim.wire.classic_types import string_bytes
from coordinator_sim.wire.record_bytes import varint_bytes

_MOST_RECORDS: Final = 64
"""So many have an offset delta of one byte."""
_DELTAS: Final = tuple(bytes((2 * index,)) for index in range(_MOST_RECORDS))
_KEY_START: Final = b"\x00\x01"
"""Version 1 of an offset's key."""
_AT_BATCH_TIME: Final = b"\x00\x00"
"""No attributes, and no time after the batch's."""
_ID_TAG: Final = b"\x01\x00\x10"

_Pack = Callable[[int, OffsetCommitValue], bytes]
"""The end of a record from its key's partition on: the value with its size, and no headers."""

_CLASSIC: Final = struct.Struct(">iBhqihqB").pack
_FLEXIBLE: Final = struct.Struct(">iBhqiBqBB").pack
_WITH_ID: Final = struct.Struct(">iBhqiBq3s16sB").pack
_PLAIN_SIZE: Final = 24
_WITH_ID_SIZE: Final = 42


def _classic(partition: int, value: OffsetCommitValue) -> bytes:
    """Version 3."""
    offset, epoch, time_ms = value.offset, value.leader_epoch, value.commit_timestamp_ms
    return _CLASSIC(partition, 2 * _PLAIN_SIZE, 3, offset, epoch, 0, time_ms, 0)


def _flexible(partition: int, value: OffsetCommitValue) -> bytes:
    """Version 4 of a topic without an id."""
    offset, epoch, time_ms = value.offset, value.leader_epoch, value.commit_timestamp_ms
    return _FLEXIBLE(partition, 2 * _PLAIN_SIZE, 4, offset, epoch, 1, time_ms, 0, 0)


def _with_id(partition: int, value: OffsetCommitValue) -> bytes:
    """Version 4 of a topic with one."""
    offset, epoch, time_ms = value.offset, value.leader_epoch, value.commit_timestamp_ms
    topic_id = value.topic_id
    return _WITH_ID(
        partition, 2 * _WITH_ID_SIZE, 4, offset, epoch, 1, time_ms, _ID_TAG, topic_id, 0
    )


def usual_commit_records(batch: LogBatch) -> bytes | None:
    """The records of a batch in its usual form, of magic 2; None: ask the general writer."""
    if not 0 < len(batch.records) <= _MOST_RECORDS or batch.record_times_ms:
        return None
    parts: list[bytes] = []
    shape: tuple[str, str, int, bytes | None] | None = None
    head = key = b""
    pack: _Pack = _classic
    for record, delta in zip(batch.records, _DELTAS, strict=False):
        named, value = record.key, record.value
        if type(named) is not OffsetCommitKey or type(value) is not OffsetCommitValue:
            return None
        if value.metadata or record.legacy_key:
            return None
        found = (named.group_id, named.topic, record.value_version, value.topic_id)
        if found != shape:
            packer = _packer(record.value_version, value.topic_id)
            if packer is None:
                return None
            shape, pack = found, packer
            head, key = _front(named.group_id, named.topic, has_id=pack is _with_id)
        parts += (head, delta, key, pack(named.partition, value))
    return b"".join(parts)


def _packer(version: int, topic_id: bytes | None) -> _Pack | None:
    if version == 3:  # noqa: PLR2004  classic, with a leader epoch
        return _classic
    if version == 4:  # noqa: PLR2004  flexible, with the topic's id
        return _with_id if topic_id is not None and any(topic_id) else _flexible
    return None


@lru_cache(maxsize=16_384)
def _front(group_id: str, topic: str, *, has_id: bool) -> tuple[bytes, bytes]:
    """What stands before a record's offset delta, and what from there to its key's partition."""
    named = _KEY_START + string_bytes(group_id) + string_bytes(topic)
    key = varint_bytes(len(named) + 4) + named
    value_size = _WITH_ID_SIZE if has_id else _PLAIN_SIZE
    size = len(_AT_BATCH_TIME) + 1 + len(key) + 4 + 1 + value_size + 1
    return varint_bytes(size) + _AT_BATCH_TIME, key
