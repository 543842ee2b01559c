"""Records of the offsets log against the bytes that Kafka's own schemas give."""

import pytest

from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.log.format import offsets_records
from coordinator_sim.messages import group_records
from coordinator_sim.messages.embedded import consumer_protocol
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, Subscription
from coordinator_sim.messages.records import LogKey, LogRecord, LogValue, OpaqueKey, OpaqueValue

OFFSET_KEY = group_records.OffsetCommitKey("grp", "foo", 3)
GROUP_KEY = group_records.GroupMetadataKey("grp")
NOW_MS = 1_700_000_000_000

SUBSCRIPTION = consumer_protocol.encode_subscription(Subscription(topics=("foo",)), 0)


def assignment(*partitions: int) -> bytes:
    """The blob that assigns these partitions of topic foo."""
    owned = tuple(TopicPartition("foo", partition) for partition in partitions)
    return consumer_protocol.encode_assignment(ConsumerAssignment(partitions=owned), 0)


FIRST = group_records.MemberMetadata(
    member_id="c1-aaaa",
    group_instance_id=None,
    client_id="c1",
    client_host="/10.0.0.1",
    rebalance_timeout=300_000,
    session_timeout=45_000,
    subscription=SUBSCRIPTION,
    assignment=assignment(0, 1),
)
SECOND = group_records.MemberMetadata(
    member_id="c2-bbbb",
    group_instance_id="inst-2",
    client_id="c2",
    client_host="/10.0.0.2",
    rebalance_timeout=300_000,
    session_timeout=45_000,
    subscription=SUBSCRIPTION,
    assignment=assignment(2),
)


def offset_value(
    offset: int = 1_234_567, epoch: int = -1, metadata: str = "meta", expire_ms: int = -1
) -> group_records.OffsetCommitValue:
    """An offset committed at the vectors' time."""
    return group_records.OffsetCommitValue(
        offset=offset,
        leader_epoch=epoch,
        metadata=metadata,
        commit_timestamp=NOW_MS,
        expire_timestamp=expire_ms,
    )


def group_value(
    *members: group_records.MemberMetadata, state_ms: int = 1_700_000_000_123
) -> group_records.GroupMetadataValue:
    """Generation 5 of a consumer group led by its first member."""
    return group_records.GroupMetadataValue(
        protocol_type="consumer",
        generation=5,
        protocol="range",
        leader="c1-aaaa",
        current_state_timestamp=state_ms,
        members=members,
    )


EMPTY_GROUP = group_records.GroupMetadataValue(
    protocol_type="consumer",
    generation=6,
    protocol=None,
    leader=None,
    current_state_timestamp=1_700_000_009_999,
)

V6 = """
00030008636f6e73756d657200000005000572616e6765000763312d616161610000018bcfe5687b00000002
000763312d61616161ffff0002633100092f31302e302e302e31000493e00000afc8
0000000f0000000000010003666f6fffffffff
0000001b0000000000010003666f6f000000020000000000000001ffffffff
000763322d626262620006696e73742d320002633200092f31302e302e302e32000493e00000afc8
0000000f0000000000010003666f6fffffffff
000000170000000000010003666f6f0000000100000002ffffffff
"""
V8 = """
00000008636f6e73756d657200000005000572616e6765000763312d6161616100000001
000763312d616161610002633100092f31302e302e302e310000afc8
0000000f0000000000010003666f6fffffffff0000001b0000000000010003666f6f00000002
0000000000000001ffffffff
"""
V8B = """
00010008636f6e73756d657200000005000572616e6765000763312d6161616100000001
000763312d616161610002633100092f31302e302e302e31000493e00000afc8
0000000f0000000000010003666f6fffffffff0000001b0000000000010003666f6f00000002
0000000000000001ffffffff
"""
V9 = """
000409636f6e73756d6572000000050672616e67650863312d616161610000018bcfe5687b02
0863312d61616161000363310a2f31302e302e302e31000493e00000afc8
100000000000010003666f6fffffffff1c0000000000010003666f6f000000020000000000000001ffffffff0000
"""

VALUES = {
    "V2": (
        OFFSET_KEY,
        3,
        offset_value(epoch=7),
        "0003000000000012d6870000000700046d6574610000018bcfe56800",
    ),
    "V2b": (
        OFFSET_KEY,
        3,
        offset_value(0, metadata=""),
        "00030000000000000000ffffffff00000000018bcfe56800",
    ),
    "V3": (
        OFFSET_KEY,
        1,
        offset_value(expire_ms=1_700_086_400_000),
        "0001000000000012d68700046d6574610000018bcfe568000000018bd50bc400",
    ),
    "V3b": (OFFSET_KEY, 2, offset_value(), "0002000000000012d68700046d6574610000018bcfe56800"),
    "V3c": (OFFSET_KEY, 0, offset_value(), "0000000000000012d68700046d6574610000018bcfe56800"),
    "V4": (
        OFFSET_KEY,
        4,
        offset_value(epoch=7),
        "0004000000000012d68700000007056d6574610000018bcfe5680000",
    ),
    "V6": (GROUP_KEY, 3, group_value(FIRST, SECOND), V6),
    "V7": (
        GROUP_KEY,
        3,
        EMPTY_GROUP,
        "00030008636f6e73756d657200000006ffffffff0000018bcfe58f0f00000000",
    ),
    "V8b": (GROUP_KEY, 1, group_value(FIRST, state_ms=-1), V8B),
    "V9": (GROUP_KEY, 4, group_value(FIRST), V9),
}


@pytest.mark.parametrize(
    ("key", "legacy", "text"),
    [
        (OFFSET_KEY, False, "000100036772700003666f6f00000003"),
        (OFFSET_KEY, True, "000000036772700003666f6f00000003"),
        (GROUP_KEY, False, "00020003677270"),
        (OpaqueKey(3, b"\x00\x01g"), False, "0003000167"),
    ],
    ids=["V1", "V1b", "V5", "opaque"],
)
def test_a_key_is_written_and_read_as_kafka_does(key: LogKey, legacy: bool, text: str) -> None:
    """Keys agree with the vectors in both directions."""
    data = bytes.fromhex(text)

    assert offsets_records.encode_key(key, legacy=legacy) == data
    assert offsets_records.decode_key(data) == key


@pytest.mark.parametrize(("key", "version", "value", "text"), VALUES.values(), ids=VALUES)
def test_a_value_is_written_and_read_as_kafka_does(
    key: LogKey, version: int, value: LogValue, text: str
) -> None:
    """Values of every version agree with the vectors in both directions."""
    data = bytes.fromhex(text)

    assert offsets_records.encode_value(value, version) == data
    assert offsets_records.decode_value(key, data) == (value, version)


def test_the_oldest_group_value_lacks_the_rebalance_timeout() -> None:
    """V8: version 0 is written without it, and reads back as -1."""
    data = bytes.fromhex(V8)

    value, version = offsets_records.decode_value(GROUP_KEY, data)

    assert offsets_records.encode_value(group_value(FIRST), 0) == data
    assert version == 0
    assert isinstance(value, group_records.GroupMetadataValue)
    assert [member.rebalance_timeout for member in value.members] == [-1]


def test_the_topic_id_is_a_tagged_field_of_version_four() -> None:
    """Since 4.2 the committed topic's id follows as tag 0; the zero id is left out."""
    known = group_records.OffsetCommitValue(offset=1, commit_timestamp=2, topic_id=bytes(range(16)))
    unknown = group_records.OffsetCommitValue(offset=1, commit_timestamp=2, topic_id=bytes(16))
    plain = bytes.fromhex("00040000000000000001ffffffff010000000000000002")

    assert offsets_records.encode_value(known, 4) == plain + b"\x01\x00\x10" + bytes(range(16))
    assert offsets_records.decode_value(OFFSET_KEY, offsets_records.encode_value(known, 4)) == (
        known,
        4,
    )
    assert offsets_records.encode_value(unknown, 4) == plain + b"\x00"


def test_unknown_tags_are_passed_over() -> None:
    """OLOAD-019: a flexible value with tags of the future reads as without them."""
    tags = bytes.fromhex("02050178c8010361626308")
    offset = offsets_records.encode_value(offset_value(epoch=7), 4)[:-1] + tags[:-1]
    group = offsets_records.encode_value(group_value(FIRST), 4)[:-2] + tags[:-1] + b"\x01\x07\x02zz"

    assert offsets_records.decode_value(OFFSET_KEY, offset)[0] == offset_value(epoch=7)
    assert offsets_records.decode_value(GROUP_KEY, group)[0] == group_value(FIRST)


def test_a_record_keeps_the_version_of_its_key_and_value() -> None:
    """A legacy key is told apart; a null value is a tombstone."""
    key = offsets_records.encode_key(OFFSET_KEY, legacy=True)

    assert offsets_records.decode_record(key, None) == LogRecord(
        OFFSET_KEY, None, 0, legacy_key=True
    )
    assert offsets_records.decode_record(b"\x00\x10ab", b"\x00\x02cd") == LogRecord(
        OpaqueKey(16, b"ab"), OpaqueValue(b"\x00\x02cd"), 2
    )


def test_an_unknown_value_version_is_refused() -> None:
    """OLOAD-012: no broker reads a value of a version it does not know."""
    with pytest.raises(WireFormatError, match="version 100 is unknown"):
        offsets_records.decode_value(OFFSET_KEY, b"\x00\x64" + bytes(24))


@pytest.mark.parametrize("name", VALUES)
def test_a_value_cut_short_names_the_field(name: str) -> None:
    """Every cut of every vector is refused, never misread."""
    key, _, _, text = VALUES[name]
    data = bytes.fromhex(text)

    for size in range(len(data)):
        with pytest.raises(WireFormatError):
            offsets_records.decode_value(key, data[:size])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("00040000000000000001ffffffff000000000000000002", "metadata is null"),
        (
            "00040000000000000001ffffffff01000000000000000201000178",
            "topicId needs 16 bytes, 1 are left",
        ),
        ("00040000000000000001ffffffff010000000000000002ffffffffff7f", "varint of more than 5"),
        ("00040000000000000001ffffffff01000000000000000264", "tags needs 1 bytes, 0 are left"),
    ],
)
def test_a_wrong_flexible_value_says_what_is_wrong(text: str, message: str) -> None:
    """The error names field and reason."""
    with pytest.raises(WireFormatError, match=message):
        offsets_records.decode_value(OFFSET_KEY, bytes.fromhex(text))


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        (GROUP_KEY, "000400", "protocolType is null"),
        (GROUP_KEY, "00040100000001000000000000000000000000", "members is null"),
        (GROUP_KEY, "00040100000001000000000000000000007f", "members counts 126 elements"),
        (GROUP_KEY, "0003ffff", "protocolType is null"),
        (
            GROUP_KEY,
            "0000000000000001ffffffff000000010000000000000000000000ffffffff",
            "subscription|assignment|needs",
        ),
        (
            GROUP_KEY,
            "0000000000000001ffffffff0000000100000000000000000001ffffffff",
            "subscription is null",
        ),
    ],
)
def test_a_wrong_group_value_says_what_is_wrong(key: LogKey, text: str, message: str) -> None:
    """Nulls and counts where they cannot be."""
    with pytest.raises(WireFormatError, match=message):
        offsets_records.decode_value(key, bytes.fromhex(text))


def test_text_that_is_not_utf8_is_replaced_as_in_java() -> None:
    """A broker loads such a record; the bytes that do not parse become U+FFFD."""
    key = bytes.fromhex("00010001ff0001fe00000000")
    values = {
        3: "00030000000000000001ffffffff0001ff0000000000000002",
        4: "00040000000000000001ffffffff02ff000000000000000200",
    }

    assert offsets_records.decode_key(key) == group_records.OffsetCommitKey("\ufffd", "\ufffd", 0)
    for version, text in values.items():
        value, found = offsets_records.decode_value(OFFSET_KEY, bytes.fromhex(text))
        assert isinstance(value, group_records.OffsetCommitValue)
        assert (found, value.metadata) == (version, "\ufffd")


def test_bytes_after_the_last_field_are_ignored() -> None:
    """Java ignores such bytes, too, in keys and values of any version."""
    assert (
        offsets_records.decode_key(offsets_records.encode_key(OFFSET_KEY) + b"later") == OFFSET_KEY
    )
    assert offsets_records.decode_key(offsets_records.encode_key(GROUP_KEY) + b"later") == GROUP_KEY
    for version in (1, 3, 4):
        value = offset_value()
        data = offsets_records.encode_value(value, version) + b"later"
        assert offsets_records.decode_value(OFFSET_KEY, data) == (value, version)


def test_keys_decoded_before_are_taken_again() -> None:
    """A log repeats its keys."""
    keys: dict[bytes, LogKey] = {}
    key = offsets_records.encode_key(OFFSET_KEY)

    first, second = (offsets_records.decode_record(key, None, keys) for _ in range(2))

    assert first.key is second.key
    assert keys == {key: OFFSET_KEY}
