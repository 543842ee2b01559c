"""Records of streams groups: fields of the recorded schemas, and bytes that come back."""

from base64 import b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.log.format.consumer_records import typed
from coordinator_sim.log.format.offsets_records import decode_record, encode_key, encode_value
from coordinator_sim.messages import streams_group_records as kinds
from coordinator_sim.messages.records import LogRecord

numbers = st.lists(st.integers(0, 99), max_size=4, unique=True).map(tuple)
plain = st.lists(st.builds(kinds.TaskIds, st.text(max_size=3), numbers), max_size=2).map(tuple)
held = st.lists(
    st.builds(
        lambda name, ids, epoch: kinds.TaskIds(name, ids, (epoch,) * len(ids)),
        st.text(max_size=3),
        numbers,
        st.integers(0, 9),
    ),
    max_size=2,
).map(tuple)
names = st.text(max_size=5)
assignments = st.builds(
    kinds.StreamsGroupCurrentMemberAssignmentValue,
    st.integers(-2, 2**31 - 1),
    st.integers(-1, 9),
    st.sampled_from((1, 2, 3, 127)),
    *(held, plain, plain) * 2,
)
groups = st.builds(
    kinds.StreamsGroupMetadataValue,
    st.integers(0, 2**31 - 1),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-1, 3),
    st.lists(st.builds(kinds.LastAssignmentConfig, names, names), max_size=2).map(tuple),
)
members = st.builds(
    kinds.StreamsGroupMemberMetadataValue,
    st.none() | names,
    st.none() | names,
    names,
    names,
    st.integers(-1, 2**31 - 1),
    st.integers(-1, 9),
    names,
    st.none() | st.builds(kinds.Endpoint, names, st.integers(0, 65_535)),
    st.lists(st.builds(kinds.KeyValue, names, names), max_size=2).map(tuple),
)


@pytest.mark.property
@given(names, names, st.one_of(assignments, groups, members))
def test_whatever_is_written_is_read(
    group_id: str, member_id: str, value: kinds.StreamsGroupValue
) -> None:
    """Bytes of any value give it back, as they do without one: a tombstone."""
    key: kinds.StreamsGroupKey
    match value:
        case kinds.StreamsGroupCurrentMemberAssignmentValue():
            key = kinds.StreamsGroupCurrentMemberAssignmentKey(group_id, member_id)
        case kinds.StreamsGroupMemberMetadataValue():
            key = kinds.StreamsGroupMemberMetadataKey(group_id, member_id)
        case _:
            key = kinds.StreamsGroupMetadataKey(group_id)
    record = LogRecord(key, value, 0)
    assert typed(decode_record(encode_key(key), encode_value(value, 0))) == record
    assert typed(decode_record(encode_key(key), None)) == LogRecord(key, None, 0)


WRITTEN = (
    # Written by Kafka 4.4.0's own classes; `bytes` of the oracle's op init.
    (
        LogRecord(
            kinds.StreamsGroupMemberMetadataKey("b", "m5"),
            kinds.StreamsGroupMemberMetadataValue(
                instance_id=None,
                rack_id=None,
                client_id="c2",
                client_host="/127.0.0.1",
                rebalance_timeout_ms=5_000,
                process_id="p3",
                client_tags=(kinds.KeyValue("cluster", "x"), kinds.KeyValue("zone", "y")),
            ),
            0,
        ),
        "ABMAAWIAAm01",
        "AAAAAANjMgsvMTI3LjAuMC4xAAATiAAAAAADcDP/AwhjbHVzdGVyAngABXpvbmUCeQAA",
    ),
    (
        LogRecord(
            kinds.StreamsGroupMetadataKey("b"),
            kinds.StreamsGroupMetadataValue(
                3,
                -6_616_952_503_513_936_050,
                0,
                (
                    kinds.LastAssignmentConfig("num.standby.replicas", "0"),
                    kinds.LastAssignmentConfig("rack.aware.assignment.tags", "zone"),
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
    assert encode_key(record.key) == b64decode(key)
    assert record.value is not None
    assert encode_value(record.value, 0) == b64decode(value)
    assert typed(decode_record(b64decode(key), b64decode(value))) == record
