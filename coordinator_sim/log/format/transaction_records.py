"""Keys and values of the `__transaction_state` log as bytes.

A key begins with its version, which is 0 for a transactional id; other keys are not decoded. A
value of version 1 has tagged fields: unknown ones are ignored, and those at their default are left
out.

Source: kafka 4.3, transaction-coordinator/src/main/resources/common/message/{TransactionLogKey,
TransactionLogValue}.json; TransactionLog.java, keyToBytes, valueToBytes and read.
"""

import struct
from typing import Final

from msgspec import Struct

from coordinator_sim.messages.codec.classic_types import (
    ClassicReader,
    array_bytes,
    int16_bytes,
    int32_bytes,
    int64_bytes,
    string_bytes,
)
from coordinator_sim.messages.codec.compact_types import (
    compact_array_bytes,
    compact_string_bytes,
    tagged_fields_bytes,
)
from coordinator_sim.messages.codec.frame_reader import FrameReader

HIGHEST_TRANSACTION_VALUE_VERSION: Final = 1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
_INT8: Final = struct.Struct(">b")
_KEY_VERSION: Final = 0
_FLEXIBLE_VERSION: Final = 1
_PREVIOUS_PRODUCER_ID_TAG: Final = 0
_NEXT_PRODUCER_ID_TAG: Final = 1
_CLIENT_VERSION_TAG: Final = 2

Partitions = tuple[tuple[str, tuple[int, ...]], ...]
"""Topics, each with its partitions in the transaction."""


class TransactionLogValue(Struct, frozen=True, kw_only=True):
    """The log's value of a transactional id, by Kafka's field names.

    Args:
        transaction_status: Number of the state; see `TransactionState`.
        transaction_partitions: Partitions of the transaction; None only for an empty one.
        transaction_start_timestamp_ms: Start of the transaction; -1 without one.
        previous_producer_id: -1 for none; version 0 does not keep it.
        next_producer_id: -1 for none; version 0 does not keep it.
        client_transaction_version: Level of `transaction.version` that the client used; version 0
            does not keep it.
    """

    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    transaction_status: int
    transaction_partitions: Partitions | None
    transaction_last_update_timestamp_ms: int
    transaction_start_timestamp_ms: int
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    client_transaction_version: int = 0


def encode_transaction_key(transactional_id: str) -> bytes:
    """The key of a transactional id's records."""
    return int16_bytes(_KEY_VERSION) + string_bytes(transactional_id)


def decode_transaction_key(data: bytes) -> str | None:
    """The transactional id that a record is about; None for a key of another version.

    Raises:
        WireFormatError: the key is truncated.
    """
    reader = ClassicReader(data, "transaction key")
    if reader.int16("version") != _KEY_VERSION:
        return None
    return reader.java_string("transactionalId")


def encode_transaction_value(value: TransactionLogValue, version: int) -> bytes:
    """The value of a record; version 0 leaves out the fields that it does not have.

    Args:
        value: The value.
        version: 0 or 1.
    """
    flexible = version >= _FLEXIBLE_VERSION
    parts = [
        int16_bytes(version),
        int64_bytes(value.producer_id),
        int16_bytes(value.producer_epoch),
        int32_bytes(value.transaction_timeout_ms),
        _INT8.pack(value.transaction_status),
        _partitions_bytes(value.transaction_partitions, flexible=flexible),
        int64_bytes(value.transaction_last_update_timestamp_ms),
        int64_bytes(value.transaction_start_timestamp_ms),
    ]
    if flexible:
        parts.append(tagged_fields_bytes(_tags(value)))
    return b"".join(parts)


def _tags(value: TransactionLogValue) -> dict[int, bytes]:
    tags = {}
    if value.previous_producer_id != NO_PRODUCER_ID:
        tags[_PREVIOUS_PRODUCER_ID_TAG] = int64_bytes(value.previous_producer_id)
    if value.next_producer_id != NO_PRODUCER_ID:
        tags[_NEXT_PRODUCER_ID_TAG] = int64_bytes(value.next_producer_id)
    if value.client_transaction_version:
        tags[_CLIENT_VERSION_TAG] = int16_bytes(value.client_transaction_version)
    return tags


def _partitions_bytes(partitions: Partitions | None, *, flexible: bool) -> bytes:
    if partitions is None:
        return b"\x00" if flexible else int32_bytes(-1)
    array = compact_array_bytes if flexible else array_bytes
    text = compact_string_bytes if flexible else string_bytes
    end = tagged_fields_bytes({}) if flexible else b""
    return array(
        [
            text(topic) + array([int32_bytes(index) for index in indexes]) + end
            for topic, indexes in partitions
        ]
    )


def decode_transaction_value(data: bytes) -> TransactionLogValue | None:
    """Decode a value; None for an unknown version. Bytes after the last field are ignored.

    Raises:
        WireFormatError: a field is truncated, or null where it may not be.
    """
    reader = FrameReader(data, "transaction value")
    version = reader.int16("version")
    if not 0 <= version <= HIGHEST_TRANSACTION_VALUE_VERSION:
        return None
    flexible = version >= _FLEXIBLE_VERSION
    producer_id = reader.int64("producerId")
    producer_epoch = reader.int16("producerEpoch")
    timeout_ms = reader.int32("transactionTimeoutMs")
    status = reader.int8("transactionStatus")
    partitions = _read_partitions(reader, flexible=flexible)
    updated_ms = reader.int64("transactionLastUpdateTimestampMs")
    started_ms = reader.int64("transactionStartTimestampMs")
    tags = reader.tagged_fields("tags") if flexible else {}
    return TransactionLogValue(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transaction_timeout_ms=timeout_ms,
        transaction_status=status,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=updated_ms,
        transaction_start_timestamp_ms=started_ms,
        previous_producer_id=_number(tags, _PREVIOUS_PRODUCER_ID_TAG, NO_PRODUCER_ID),
        next_producer_id=_number(tags, _NEXT_PRODUCER_ID_TAG, NO_PRODUCER_ID),
        client_transaction_version=_number(tags, _CLIENT_VERSION_TAG, 0),
    )


def _number(tags: dict[int, bytes], tag: int, default: int) -> int:
    return int.from_bytes(tags[tag], "big", signed=True) if tag in tags else default


def _read_partitions(reader: FrameReader, *, flexible: bool) -> Partitions | None:
    count = _count(reader, flexible=flexible)
    if count < 0:
        return None
    return tuple(_read_topic(reader, flexible=flexible) for _ in range(count))


def _read_topic(reader: FrameReader, *, flexible: bool) -> tuple[str, tuple[int, ...]]:
    topic = reader.compact_string("topic") if flexible else reader.java_string("topic")
    count = _count(reader, flexible=flexible)
    indexes = tuple(reader.int32("partitionId") for _ in range(count))
    if flexible:
        reader.tagged_fields("topic tags")
    return topic, indexes


def _count(reader: FrameReader, *, flexible: bool) -> int:
    """The number of elements, negative for null; more than the bytes left is an error."""
    count = reader.unsigned_varint("count") - 1 if flexible else reader.int32("count")
    if count > reader.remaining:
        raise reader.error(f"{count} elements are counted, {reader.remaining} bytes are left")
    return count
