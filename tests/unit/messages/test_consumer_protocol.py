"""The consumer's embedded blobs: hand-made bytes, versions, and what does not parse."""

import pytest

from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded import consumer_protocol
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, Subscription

SUBSCRIPTION = Subscription(
    topics=("b", "a"),
    user_data=b"\x07",
    owned_partitions=(TopicPartition("b", 1), TopicPartition("a", 2), TopicPartition("a", 0)),
    generation_id=5,
    rack_id="r",
)
TOPICS_AND_USER_DATA = "00000002 0001 61 0001 62 00000001 07"
OWNED = "00000002 0001 61 00000002 00000000 00000002 0001 62 00000001 00000001"


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (0, f"0000 {TOPICS_AND_USER_DATA}"),
        (1, f"0001 {TOPICS_AND_USER_DATA} {OWNED}"),
        (2, f"0002 {TOPICS_AND_USER_DATA} {OWNED} 00000005"),
        (3, f"0003 {TOPICS_AND_USER_DATA} {OWNED} 00000005 0001 72"),
    ],
)
def test_subscription_is_written_sorted_with_the_fields_of_its_version(
    version: int, expected: str
) -> None:
    """Topics and owned partitions are sorted; newer fields are left out of older versions."""
    data = consumer_protocol.encode_subscription(SUBSCRIPTION, version)
    assert data == bytes.fromhex(expected)
    assert consumer_protocol.blob_version(data) == version
    decoded = consumer_protocol.decode_subscription(data)
    assert consumer_protocol.encode_subscription(decoded, version) == data
    assert decoded.generation_id == (5 if version >= 2 else -1)
    assert decoded.rack_id == ("r" if version >= 3 else None)


def test_topics_sort_by_utf16_code_unit() -> None:
    """An astral character sorts below U+FFFF, as in Java."""
    topics = ("\uffff", "\U0001f600")
    decoded = consumer_protocol.decode_subscription(
        consumer_protocol.encode_subscription(Subscription(topics=topics))
    )
    assert decoded.topics == ("\U0001f600", "\uffff")


def test_a_higher_version_reads_as_the_highest_known() -> None:
    """Fields added by a later version follow the known ones and are skipped."""
    data = bytes.fromhex("0009 00000000 ffffffff 00000000 fffffff0 0000 abcd")
    assert consumer_protocol.decode_subscription(data) == Subscription(topics=(), rack_id="")


def test_assignment_lists_topics_as_first_seen() -> None:
    """Partitions join their topic's entry; the order inside an entry stays."""
    partitions = (TopicPartition("b", 1), TopicPartition("a", 0), TopicPartition("b", 0))
    data = consumer_protocol.encode_assignment(ConsumerAssignment(partitions=partitions))
    assert data == bytes.fromhex(
        "0003 00000002 0001 62 00000002 00000001 00000000 0001 61 00000001 00000000 ffffffff"
    )
    assert consumer_protocol.decode_assignment(data).partitions == (
        TopicPartition("b", 1),
        TopicPartition("b", 0),
        TopicPartition("a", 0),
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "consumer subscription: version needs 2 bytes, 0 are left (at byte 0)"),
        ("ffff", "version -1 of an embedded blob is negative (at byte 0)"),
        ("0000 7fffffff", "topics counts 2147483647 elements, 0 bytes are left (at byte 6)"),
        ("0000 ffffffff", "topics is null (at byte 6)"),
        ("0000 00000001 ffff", "topic is null (at byte 8)"),
        ("0000 00000001 0002 61ff", "topic is not UTF-8 (at byte 9)"),
        ("0000 00000000 00000004 01", "user_data needs 4 bytes, 1 are left (at byte 10)"),
    ],
)
def test_bytes_that_do_not_parse_name_field_and_offset(data: str, message: str) -> None:
    """The error says which field is wrong and where."""
    with pytest.raises(WireFormatError) as caught:
        consumer_protocol.decode_subscription(bytes.fromhex(data))
    assert str(caught.value).endswith(message)


def test_empty_bytes_are_no_assignment() -> None:
    """A member that the leader left out receives empty bytes, which do not parse."""
    with pytest.raises(WireFormatError, match="consumer assignment: version"):
        consumer_protocol.decode_assignment(b"")
