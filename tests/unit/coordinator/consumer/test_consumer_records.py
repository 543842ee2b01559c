"""Records of consumer groups: bytes that a broker writes, and groups that follow from them."""

from base64 import b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.log.format.consumer_records import typed
from coordinator_sim.log.format.offsets_records import decode_record, encode_key, encode_value
from coordinator_sim.messages import consumer_group_records as kinds
from coordinator_sim.messages.records import LogRecord

TOPIC = bytes(range(16))
WRITTEN = (
    # Written by Kafka 4.4.0's own classes; `bytes` of the oracle's op init.
    (
        LogRecord(
            kinds.ConsumerGroupMemberMetadataKey("d", "m1"),
            kinds.ConsumerGroupMemberMetadataValue(
                instance_id="i3",
                rack_id="r1",
                client_id="c1",
                client_host="/127.0.0.1",
                subscribed_topic_names=("t",),
                subscribed_topic_regex="",
                rebalance_timeout_ms=100,
                server_assignor=None,
                classic_member_metadata=None,
            ),
            0,
        ),
        "AAUAAWQAAm0x",
        "AAADaTMDcjEDYzELLzEyNy4wLjAuMQICdAEAAABkAAEAAQA=",
    ),
)


@pytest.mark.parametrize(("record", "key", "value"), WRITTEN)
def test_a_record_has_the_bytes_that_kafka_writes(record: LogRecord, key: str, value: str) -> None:
    """Both directions, through the reader of files, which leaves the record opaque."""
    assert encode_key(record.key) == b64decode(key)
    assert record.value is not None
    assert encode_value(record.value, 0) == b64decode(value)
    assert typed(decode_record(b64decode(key), b64decode(value))) == record


partitions = st.lists(st.integers(0, 99), max_size=4, unique=True).map(tuple)
held = st.builds(
    lambda ids, epoch: kinds.TopicPartitions(TOPIC, ids, (epoch,) * len(ids)),
    partitions,
    st.integers(0, 9),
)
assignments = st.builds(
    kinds.ConsumerGroupCurrentMemberAssignmentValue,
    st.integers(-2, 2**31 - 1),
    st.integers(-1, 9),
    st.sampled_from((0, 1, 2, 127)),
    st.lists(held, max_size=2).map(tuple),
    st.lists(held, max_size=2).map(tuple),
)
targets = st.builds(
    kinds.ConsumerGroupTargetAssignmentMemberValue,
    st.lists(st.builds(kinds.TopicPartition, st.binary(min_size=16, max_size=16), partitions)).map(
        tuple
    ),
)
groups = st.builds(
    kinds.ConsumerGroupMetadataValue, st.integers(0, 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
)


@pytest.mark.property
@given(st.text(max_size=9), st.text(max_size=9), st.one_of(assignments, targets, groups))
def test_whatever_is_written_is_read(
    group_id: str, member_id: str, value: kinds.ConsumerGroupValue
) -> None:
    """Bytes of any value give it back, as they do without one: a tombstone."""
    key: kinds.ConsumerGroupKey
    match value:
        case kinds.ConsumerGroupCurrentMemberAssignmentValue():
            key = kinds.ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id)
        case kinds.ConsumerGroupTargetAssignmentMemberValue():
            key = kinds.ConsumerGroupTargetAssignmentMemberKey(group_id, member_id)
        case _:
            key = kinds.ConsumerGroupMetadataKey(group_id)
    record = LogRecord(key, value, 0)
    assert typed(decode_record(encode_key(key), encode_value(value, 0))) == record
    assert typed(decode_record(encode_key(key), None)) == LogRecord(key, None, 0)
