"""Records of the share coordinator as bytes, by the recorded schemas.

Source: kafka 4.4, ShareCoordinatorRecordSerde.java and CoordinatorRecordSerde.java.
"""

import struct
from typing import Final

from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.share_state_records import (
    SHARE_STATE_RECORD_TYPES,
    ShareStateKey,
    ShareStateValue,
)
from coordinator_sim.log.format.record_kinds import VALUE_VERSION, RecordKinds

SHARE_STATE_KINDS: Final = RecordKinds(SHARE_STATE_RECORD_TYPES)
"""The types of records of the topic."""
_FRONT: Final = struct.Struct(">h")


def encode_share_state(
    key: ShareStateKey, value: ShareStateValue | None
) -> tuple[bytes, bytes | None]:
    """The key and the value of a record; a tombstone has no value."""
    kinds = SHARE_STATE_KINDS
    return kinds.key_bytes(key), None if value is None else kinds.value_bytes(value)


def decode_share_state(
    key: bytes, value: bytes | None
) -> tuple[ShareStateKey, ShareStateValue | None] | None:
    """What a record says; None for a type that Kafka does not know, which a load passes over.

    Raises:
        WireFormatError: the bytes are broken, or the value is of a version that Kafka does not
            know. A broker that loads such a record gives the partition up.
    """
    kinds = SHARE_STATE_KINDS
    record_type = _front(key, "key")
    if record_type not in kinds:
        return None
    read: ShareStateKey = kinds.read(record_type, "key", key)
    if value is None:
        return read, None
    version = _front(value, "value")
    if version != VALUE_VERSION:
        name = kinds.schema(record_type)
        raise WireFormatError(f"{name}: value version {version} is unknown, use 0", 0)
    return read, kinds.read(record_type, "value", value)


def _front(data: bytes, part: str) -> int:
    if len(data) < _FRONT.size:
        raise WireFormatError(f"a {part} of {len(data)} bytes has no type or version", 0)
    front: int = _FRONT.unpack_from(data)[0]
    return front
