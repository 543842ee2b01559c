"""Records of groups that are not classic as bytes, by the recorded schemas.

A key begins with its type, a value with the version of its schema, which is 0 for all of them.
Other readers of the offsets log leave these records opaque; `typed` is for a coordinator that
loads them.

Source: kafka 4.4, GroupCoordinatorRecordSerde and CoordinatorRecordSerde.
"""

from collections.abc import Mapping
from typing import Final, get_args

from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.consumer_records import (
    CONSUMER_RECORD_TYPES,
    ConsumerGroupKey,
    ConsumerGroupValue,
)
from coordinator_sim.kafka.share_records import SHARE_RECORD_TYPES, ShareGroupKey, ShareGroupValue
from coordinator_sim.kafka.streams_records import (
    STREAMS_RECORD_TYPES,
    StreamsGroupKey,
    StreamsGroupValue,
)
from coordinator_sim.log.format.record_kinds import VALUE_VERSION, RecordKinds
from coordinator_sim.messages.codec.classic_types import int16_bytes
from coordinator_sim.messages.records import LogRecord, OpaqueKey, OpaqueValue
from coordinator_sim.messages.schema import Layout

NewGroupKey = ConsumerGroupKey | ShareGroupKey | StreamsGroupKey
"""A key of a record of a group that is not classic."""
NewGroupValue = ConsumerGroupValue | ShareGroupValue | StreamsGroupValue
"""Its value."""
CONSUMER_KEYS: Final[tuple[type[NewGroupKey], ...]] = get_args(NewGroupKey)
"""The structs of keys."""

RECORD_TYPES: Final[Mapping[type, int]] = {
    **CONSUMER_RECORD_TYPES,
    **SHARE_RECORD_TYPES,
    **STREAMS_RECORD_TYPES,
}
"""The number that the bytes of a key begin with."""
_KINDS: Final = RecordKinds(RECORD_TYPES)


def consumer_layout(record_type: int, part: str) -> Layout:
    """The fields of a record's `key` or `value`, by the type that its key begins with.

    Raises:
        KeyError: no such group writes records of that type.
    """
    return _KINDS.layout(record_type, part)


def consumer_value_type(value: NewGroupValue) -> int:
    """The type of the record that a value is of, which its key begins with."""
    return _KINDS.value_type(value)


def record_structs(record_type: int) -> str:
    """The module of the structs of a record, by its type."""
    return _KINDS.structs(record_type)


def encode_consumer_key(key: NewGroupKey) -> bytes:
    """The key of a record, its type first."""
    return _KINDS.key_bytes(key)


def encode_consumer_value(value: NewGroupValue) -> bytes:
    """The value of a record, its version first."""
    return _KINDS.value_bytes(value)


def is_consumer_type(record_type: int) -> bool:
    """Whether groups that are not classic write records whose keys begin with that number."""
    return record_type in _KINDS


def typed(record: LogRecord) -> LogRecord:
    """An opaque record of such a group as what it says; any other record as it is.

    Raises:
        WireFormatError: the bytes are broken, or of a version that Kafka does not know. A broker
            that loads such a record gives the whole partition up.
    """
    key, value = record.key, record.value
    if not isinstance(key, OpaqueKey) or key.version not in _KINDS:
        return record
    front = int16_bytes(key.version)
    read = _KINDS.read(key.version, "key", front + key.body)
    if not isinstance(value, OpaqueValue):
        return LogRecord(read, None, VALUE_VERSION)
    if record.value_version != VALUE_VERSION:
        name = _KINDS.schema(key.version)
        raise WireFormatError(f"{name}: value version {record.value_version} is unknown, use 0", 0)
    return LogRecord(read, _KINDS.read(key.version, "value", value.data), VALUE_VERSION)
