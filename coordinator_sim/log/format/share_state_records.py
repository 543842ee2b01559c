"""Records of the share coordinator as bytes, by the recorded schemas.

Source: kafka 4.4, ShareCoordinatorRecordSerde.java and CoordinatorRecordSerde.java.
"""

from typing import Final

from coordinator_sim.messages.codec import records
from coordinator_sim.messages.share_state_records import ShareStateKey, ShareStateValue

_TYPES: Final = records.record_types(ShareStateKey)


def encode_share_state(
    key: ShareStateKey, value: ShareStateValue | None
) -> tuple[bytes, bytes | None]:
    """The key and the value of a record; a tombstone has no value."""
    return records.key_bytes(key), None if value is None else records.value_bytes(value)


def decode_share_state(
    key: bytes, value: bytes | None
) -> tuple[ShareStateKey, ShareStateValue | None] | None:
    """Read the key and the value of a record; None for a type that Kafka does not know.

    A load ignores such a record.

    Raises:
        WireFormatError: the bytes are broken, or the value is of a version that Kafka does not
            know. A broker that loads such a record gives the partition up.
    """
    read: ShareStateKey | None = records.read_key(_TYPES, key)
    if read is None:
        return None
    return read, None if value is None else records.read_value(read, value)[0]
