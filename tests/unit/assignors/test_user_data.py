"""The user data of the sticky assignors."""

import pytest

from coordinator_sim.assignors.user_data import (
    MemberData,
    decode_cooperative_generation,
    decode_sticky_user_data,
    encode_cooperative_user_data,
    encode_sticky_entries,
    encode_sticky_user_data,
)
from coordinator_sim.kafka.resources import TopicPartition

OWNED = (TopicPartition("t1", 2), TopicPartition("t0", 0), TopicPartition("t1", 1))


def test_topics_are_grouped_in_map_order() -> None:
    """Java groups by topic in a HashMap before it writes."""
    data = encode_sticky_user_data(OWNED, 5)
    assert data == bytes.fromhex(
        "00000002 0002 7430 00000001 00000000 0002 7431 00000002 00000002 00000001 00000005"
    )
    assert decode_sticky_user_data(data) == MemberData((OWNED[1], OWNED[0], OWNED[2]), 5)


def test_version_0_has_no_generation() -> None:
    """The generation is read only if its bytes are there."""
    data = encode_sticky_entries([("t", [3])], 9)
    assert decode_sticky_user_data(data) == MemberData((TopicPartition("t", 3),), 9)
    assert decode_sticky_user_data(data[:-4]) == MemberData((TopicPartition("t", 3),), None)
    assert decode_sticky_user_data(data[:-1]) == MemberData((TopicPartition("t", 3),), None)


@pytest.mark.parametrize("data", [None, b""])
def test_no_user_data_means_nothing_owned(data: bytes | None) -> None:
    """A member that never had an assignment has no generation."""
    assert decode_sticky_user_data(data) == MemberData((), None)


@pytest.mark.parametrize(
    "data",
    [
        "00",
        "ffffffff",
        "7fffffff",
        "00000001",
        "00000001 ffff 00000000",
        "00000001 0009 74",
        "00000001 0001 ff 00000000",
        "00000001 0001 74 00000002 00000001",
    ],
)
def test_data_that_does_not_parse_means_generation_minus_one(data: str) -> None:
    """Another version's data costs the member its partitions, never the group its rebalance."""
    assert decode_sticky_user_data(bytes.fromhex(data)) == MemberData((), -1)


def test_cooperative_user_data_is_the_generation() -> None:
    """Absent data differs from data that does not parse."""
    assert decode_cooperative_generation(encode_cooperative_user_data(3)) == 3
    assert decode_cooperative_generation(None) is None
    assert decode_cooperative_generation(b"\x00") == -1
