"""Records of groups that are not classic as bytes, by the recorded schemas.

Other readers of the offsets log leave these records opaque; `typed` is for a coordinator that
loads them.

Source: kafka 4.4, GroupCoordinatorRecordSerde and CoordinatorRecordSerde.
"""

from typing import Final

from coordinator_sim.messages.codec.classic_types import int16_bytes
from coordinator_sim.messages.codec.records import read_key, read_value, record_types
from coordinator_sim.messages.consumer_group_records import ConsumerGroupKey
from coordinator_sim.messages.records import LogRecord, OpaqueKey, OpaqueValue
from coordinator_sim.messages.share_group_records import ShareGroupKey
from coordinator_sim.messages.streams_group_records import StreamsGroupKey

RECORD_TYPES: Final = record_types(ConsumerGroupKey, ShareGroupKey, StreamsGroupKey)
"""The structs of keys, by the number that their bytes begin with."""


def typed(record: LogRecord) -> LogRecord:
    """An opaque record of such a group as what it says; any other record as it is.

    Raises:
        WireFormatError: the bytes are broken, or of a version that Kafka does not know. A broker
            that loads such a record gives the whole partition up.
    """
    key, value = record.key, record.value
    if not isinstance(key, OpaqueKey) or key.version not in RECORD_TYPES:
        return record
    read = read_key(RECORD_TYPES, int16_bytes(key.version) + key.body)
    if not isinstance(value, OpaqueValue):
        return LogRecord(read, None, 0)
    return LogRecord(read, *read_value(read, value.data))
