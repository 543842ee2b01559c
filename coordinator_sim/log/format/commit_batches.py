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

from msgspec import Struct

from coordinator_sim.log.format.record_bytes import varint_bytes
from coordinator_sim.messages.codec.classic_types import string_bytes
from coordinator_sim.messages.group_records import OffsetCommitKey, OffsetCommitValue
from coordinator_sim.messages.records import LogBatch
from coordinator_sim.messages.schema import ZERO_UUID

_MOST_RECORDS: Final = 64
"""So many have an offset delta of one byte."""
_DELTAS: Final = tuple(bytes((2 * index,)) for index in range(_MOST_RECORDS))
_KEY_START: Final = b"\x00\x01"
"""Version 1 of an offset's key."""
_AT_BATCH_TIME: Final = b"\x00\x00"
"""No attributes, and no time after the batch's."""
_ID_TAG: Final = b"\x01\x00\x10"

_CLASSIC_VALUE: Final = 3
"""Version of a value with a leader epoch."""
_FLEXIBLE_VALUE: Final = 4
"""Version of a value with the topic's id."""
_FIXED_SIZE: Final = 22
"""Of a value: its version, offset, leader epoch and timestamp."""


class _Shape(Struct, frozen=True):
    """What the records of one topic's commits have in common.

    Args:
        pack: Packs a whole record.
        front: What stands before the record's offset delta.
        key: What stands from there to the key's partition.
        value: What stands from there to the offset.
        metadata: How no metadata is said, between the leader epoch and the commit's timestamp.
        end: What follows the timestamp.
    """

    pack: Callable[..., bytes]
    front: bytes
    key: bytes
    value: bytes
    metadata: bytes
    end: bytes


def usual_commit_records(batch: LogBatch) -> bytes | None:
    """The records of a batch in its usual form, of magic 2; None: ask the general writer."""
    if not 0 < len(batch.records) <= _MOST_RECORDS or batch.record_times_ms:
        return None
    rows: list[bytes] = []
    group_id = topic = ""
    topic_id = b""
    version = time_ms = -1
    for record, delta in zip(batch.records, _DELTAS, strict=False):
        named, value = record.key, record.value
        if type(named) is not OffsetCommitKey or type(value) is not OffsetCommitValue:
            return None
        if value.metadata or record.legacy_key:
            return None
        if (
            named.topic is not topic
            or named.group is not group_id
            or record.value_version != version
            or value.topic_id is not topic_id
            or value.commit_timestamp != time_ms
        ):
            group_id, topic, version = named.group, named.topic, record.value_version
            topic_id, time_ms = value.topic_id, value.commit_timestamp
            shape = _shape(group_id, topic, version, topic_id)
            if shape is None:
                return None
            pack, front, key, start = shape.pack, shape.front, shape.key, shape.value
            end = shape.metadata + time_ms.to_bytes(8, "big", signed=True) + shape.end
        rows.append(
            pack(front, delta, key, named.partition, start, value.offset, value.leader_epoch, end)
        )
    return b"".join(rows)


@lru_cache(maxsize=16_384)
def _shape(group_id: str, topic: str, version: int, topic_id: bytes) -> _Shape | None:
    """The form of a topic's records; None for a version that has another."""
    if version not in {_CLASSIC_VALUE, _FLEXIBLE_VALUE}:
        return None
    metadata, end = b"\x00\x00", b""
    if version == _FLEXIBLE_VALUE:
        metadata, end = b"\x01", b"\x00" if topic_id == ZERO_UUID else _ID_TAG + topic_id
    named = _KEY_START + string_bytes(group_id) + string_bytes(topic)
    key = varint_bytes(len(named) + 4) + named
    value_size = _FIXED_SIZE + len(metadata) + len(end)
    value = varint_bytes(value_size) + version.to_bytes(2, "big")
    size = len(_AT_BATCH_TIME) + 1 + len(key) + 4 + 1 + value_size + 1
    front = varint_bytes(size) + _AT_BATCH_TIME
    # No headers follow the value.
    end += b"\x00"
    row = f">{len(front)}ss{len(key)}si{len(value)}sqi{len(metadata) + 8 + len(end)}s"
    return _Shape(struct.Struct(row).pack, front, key, value, metadata, end)
