"""Records of groups with epochs: bytes that a broker writes, and structs that fit the schemas."""

from base64 import b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.log.format.consumer_records import typed
from coordinator_sim.log.format.offsets_records import (
    decode_record,
    encode_key,
    encode_record,
)
from coordinator_sim.messages import consumer_group_records as consumer
from coordinator_sim.messages import share_group_records as share
from coordinator_sim.messages import streams_group_records as streams
from coordinator_sim.messages.records import LogRecord

CONSUMER_TOPIC = bytes(range(16))
SHARE_TOPIC = bytes.fromhex("000000544f5049430000000000000075")
WRITTEN = (
    # Written by Kafka 4.4.0's own classes; `bytes` of the oracle's op init.
    (
        LogRecord(
            consumer.ConsumerGroupMemberMetadataKey("d", "m1"),
            consumer.ConsumerGroupMemberMetadataValue(
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
    (
        LogRecord(
            share.ShareGroupMemberMetadataKey("d", "m1"),
            share.ShareGroupMemberMetadataValue("r1", "c1", "/127.0.0.1", ("t",)),
            0,
        ),
        "AAoAAWQAAm0x",
        "AAADcjEDYzELLzEyNy4wLjAuMQICdAA=",
    ),
    (
        LogRecord(
            share.ShareGroupTargetAssignmentMetadataKey("d"),
            share.ShareGroupTargetAssignmentMetadataValue(2, 1_000_000),
            0,
        ),
        "AAwAAWQ=",
        "AAAAAAACAQAIAAAAAAAPQkA=",
    ),
    (
        LogRecord(
            share.ShareGroupStatePartitionMetadataKey("d"),
            share.ShareGroupStatePartitionMetadataValue(
                initialized_topics=(share.TopicPartitionsInfo(SHARE_TOPIC, "t", (0, 1, 2)),)
            ),
            0,
        ),
        "AA8AAWQ=",
        "AAABAgAAAFRPUElDAAAAAAAAAHUCdAQAAAAAAAAAAQAAAAIAAQA=",
    ),
    (
        LogRecord(
            streams.StreamsGroupMemberMetadataKey("b", "m5"),
            streams.StreamsGroupMemberMetadataValue(
                instance_id=None,
                rack_id=None,
                client_id="c2",
                client_host="/127.0.0.1",
                rebalance_timeout_ms=5_000,
                process_id="p3",
                client_tags=(streams.KeyValue("cluster", "x"), streams.KeyValue("zone", "y")),
            ),
            0,
        ),
        "ABMAAWIAAm01",
        "AAAAAANjMgsvMTI3LjAuMC4xAAATiAAAAAADcDP/AwhjbHVzdGVyAngABXpvbmUCeQAA",
    ),
    (
        LogRecord(
            streams.StreamsGroupMetadataKey("b"),
            streams.StreamsGroupMetadataValue(
                3,
                -6_616_952_503_513_936_050,
                0,
                (
                    streams.LastAssignmentConfig("num.standby.replicas", "0"),
                    streams.LastAssignmentConfig("rack.aware.assignment.tags", "zone"),
                ),
            ),
            0,
        ),
        "ABEAAWI=",
        (
            "AAAAAAADpCvcwZRrj04CAAQAAAAAAToDFW51bS5zdGFuZGJ5LnJlcGxpY2FzAjAAG3JhY2suYXdhcmUuYXNzaWdu"
            "bWVudC50YWdzBXpvbmUA"
        ),
    ),
)


@pytest.mark.parametrize(("record", "key", "value"), WRITTEN)
def test_a_record_has_the_bytes_that_kafka_writes(record: LogRecord, key: str, value: str) -> None:
    """Both directions, through the reader of files, which leaves the record opaque."""
    assert encode_record(record) == (b64decode(key), b64decode(value))
    assert typed(decode_record(b64decode(key), b64decode(value))) == record


numbers = st.lists(st.integers(0, 99), max_size=4, unique=True).map(tuple)
owned = st.builds(
    lambda ids, epoch: consumer.TopicPartitions(CONSUMER_TOPIC, ids, (epoch,) * len(ids)),
    numbers,
    st.integers(0, 9),
)
consumer_assignments = st.builds(
    consumer.ConsumerGroupCurrentMemberAssignmentValue,
    st.integers(-2, 2**31 - 1),
    st.integers(-1, 9),
    st.sampled_from((0, 1, 2, 127)),
    st.lists(owned, max_size=2).map(tuple),
    st.lists(owned, max_size=2).map(tuple),
)
targets = st.builds(
    consumer.ConsumerGroupTargetAssignmentMemberValue,
    st.lists(st.builds(consumer.TopicPartition, st.binary(min_size=16, max_size=16), numbers)).map(
        tuple
    ),
)
consumer_groups = st.builds(
    consumer.ConsumerGroupMetadataValue, st.integers(0, 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
)
plain = st.lists(st.builds(streams.TaskIds, st.text(max_size=3), numbers), max_size=2).map(tuple)
stamped = st.lists(
    st.builds(
        lambda name, ids, epoch: streams.TaskIds(name, ids, (epoch,) * len(ids)),
        st.text(max_size=3),
        numbers,
        st.integers(0, 9),
    ),
    max_size=2,
).map(tuple)
names = st.text(max_size=5)
streams_assignments = st.builds(
    streams.StreamsGroupCurrentMemberAssignmentValue,
    st.integers(-2, 2**31 - 1),
    st.integers(-1, 9),
    st.sampled_from((1, 2, 3, 127)),
    *(stamped, plain, plain) * 2,
)
streams_groups = st.builds(
    streams.StreamsGroupMetadataValue,
    st.integers(0, 2**31 - 1),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-1, 3),
    st.lists(st.builds(streams.LastAssignmentConfig, names, names), max_size=2).map(tuple),
)
streams_members = st.builds(
    streams.StreamsGroupMemberMetadataValue,
    st.none() | names,
    st.none() | names,
    names,
    names,
    st.integers(-1, 2**31 - 1),
    st.integers(-1, 9),
    names,
    st.none() | st.builds(streams.Endpoint, names, st.integers(0, 65_535)),
    st.lists(st.builds(streams.KeyValue, names, names), max_size=2).map(tuple),
)
topics = st.lists(
    st.builds(
        share.TopicPartitionsInfo,
        st.binary(min_size=16, max_size=16),
        st.text(max_size=5),
        numbers,
    ),
    max_size=3,
).map(tuple)
share_partitions = st.builds(share.ShareGroupStatePartitionMetadataValue, topics, topics)
GROUP_KEYS = {
    consumer.ConsumerGroupMetadataValue: consumer.ConsumerGroupMetadataKey,
    streams.StreamsGroupMetadataValue: streams.StreamsGroupMetadataKey,
    share.ShareGroupStatePartitionMetadataValue: share.ShareGroupStatePartitionMetadataKey,
}
MEMBER_KEYS = {
    consumer.ConsumerGroupCurrentMemberAssignmentValue: (
        consumer.ConsumerGroupCurrentMemberAssignmentKey
    ),
    consumer.ConsumerGroupTargetAssignmentMemberValue: (
        consumer.ConsumerGroupTargetAssignmentMemberKey
    ),
    streams.StreamsGroupCurrentMemberAssignmentValue: (
        streams.StreamsGroupCurrentMemberAssignmentKey
    ),
    streams.StreamsGroupMemberMetadataValue: streams.StreamsGroupMemberMetadataKey,
}


@pytest.mark.property
@given(
    st.text(max_size=9),
    st.text(max_size=9),
    st.one_of(consumer_assignments, targets, consumer_groups)
    | st.one_of(streams_assignments, streams_groups, streams_members)
    | share_partitions,
)
def test_whatever_is_written_is_read(group_id: str, member_id: str, value: object) -> None:
    """Bytes of any value give it back, as they do without one: a tombstone."""
    if type(value) in GROUP_KEYS:
        key = GROUP_KEYS[type(value)](group_id)
    else:
        key = MEMBER_KEYS[type(value)](group_id, member_id)
    record = LogRecord(key, value, 0)
    assert typed(decode_record(*encode_record(record))) == record
    assert typed(decode_record(encode_key(key), None)) == LogRecord(key, None, 0)
