"""Records of share groups: bytes that a broker writes, and structs that fit the schemas."""

from base64 import b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.log.format.consumer_records import typed
from coordinator_sim.log.format.offsets_records import decode_record, encode_key, encode_value
from coordinator_sim.messages import share_group_records as kinds
from coordinator_sim.messages.records import LogRecord

TOPIC = bytes.fromhex("000000544f5049430000000000000075")
WRITTEN = (
    # Written by Kafka 4.4.0's own classes; `bytes` of the oracle's op init.
    (
        LogRecord(
            kinds.ShareGroupMemberMetadataKey("d", "m1"),
            kinds.ShareGroupMemberMetadataValue("r1", "c1", "/127.0.0.1", ("t",)),
            0,
        ),
        "AAoAAWQAAm0x",
        "AAADcjEDYzELLzEyNy4wLjAuMQICdAA=",
    ),
    (
        LogRecord(
            kinds.ShareGroupTargetAssignmentMetadataKey("d"),
            kinds.ShareGroupTargetAssignmentMetadataValue(2, 1_000_000),
            0,
        ),
        "AAwAAWQ=",
        "AAAAAAACAQAIAAAAAAAPQkA=",
    ),
    (
        LogRecord(
            kinds.ShareGroupStatePartitionMetadataKey("d"),
            kinds.ShareGroupStatePartitionMetadataValue(
                initialized_topics=(kinds.TopicPartitionsInfo(TOPIC, "t", (0, 1, 2)),)
            ),
            0,
        ),
        "AA8AAWQ=",
        "AAABAgAAAFRPUElDAAAAAAAAAHUCdAQAAAAAAAAAAQAAAAIAAQA=",
    ),
)


@pytest.mark.parametrize(("record", "key", "value"), WRITTEN)
def test_a_record_has_the_bytes_that_kafka_writes(record: LogRecord, key: str, value: str) -> None:
    """Both directions, through the reader of files, which leaves the record opaque."""
    assert encode_key(record.key) == b64decode(key)
    assert record.value is not None
    assert encode_value(record.value, 0) == b64decode(value)
    assert typed(decode_record(b64decode(key), b64decode(value))) == record


topics = st.lists(
    st.builds(
        kinds.TopicPartitionsInfo,
        st.binary(min_size=16, max_size=16),
        st.text(max_size=5),
        st.lists(st.integers(0, 99), max_size=4, unique=True).map(tuple),
    ),
    max_size=3,
).map(tuple)
values = st.builds(kinds.ShareGroupStatePartitionMetadataValue, topics, topics)


@pytest.mark.property
@given(values)
def test_what_is_written_is_read_again(value: kinds.ShareGroupStatePartitionMetadataValue) -> None:
    """Any record of the kept partitions comes back as it was."""
    key = kinds.ShareGroupStatePartitionMetadataKey("g")
    record = LogRecord(key, value, 0)
    assert typed(decode_record(encode_key(key), encode_value(value, 0))) == record
