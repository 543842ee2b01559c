"""Records of `__transaction_state` as bytes."""

import pytest

from coordinator_sim.errors import WireFormatError
from coordinator_sim.log.format.transaction_records import (
    TransactionLogValue,
    decode_transaction_key,
    decode_transaction_value,
    encode_transaction_key,
    encode_transaction_value,
)

ONGOING = TransactionLogValue(
    producer_id=5,
    producer_epoch=3,
    transaction_timeout_ms=60_000,
    transaction_status=1,
    transaction_partitions=(("a", (0, 2)), ("b", (1,))),
    transaction_last_update_timestamp_ms=1_000,
    transaction_start_timestamp_ms=900,
    previous_producer_id=4,
    next_producer_id=6,
    client_transaction_version=2,
)


def test_a_key_names_a_transactional_id() -> None:
    """Version 0, then the id."""
    data = encode_transaction_key("my-id")
    assert data == b"\x00\x00\x00\x05my-id"
    assert decode_transaction_key(data) == "my-id"


def test_a_key_of_another_version_names_none() -> None:
    """The key could be left over from an upgrade that was taken back."""
    assert decode_transaction_key(b"\x00\x01\x00\x00") is None


def test_a_value_of_version_1_keeps_everything() -> None:
    """The ids before and after and the client's version are tagged fields."""
    assert decode_transaction_value(encode_transaction_value(ONGOING, 1)) == ONGOING


def test_a_value_of_version_0_keeps_no_other_ids() -> None:
    """Ids of producers before and after are at their defaults again."""
    found = decode_transaction_value(encode_transaction_value(ONGOING, 0))
    assert found is not None
    assert found.transaction_partitions == ONGOING.transaction_partitions
    assert (found.previous_producer_id, found.next_producer_id) == (-1, -1)
    assert found.client_transaction_version == 0


@pytest.mark.parametrize("version", [0, 1])
def test_an_empty_transaction_has_null_for_partitions(version: int) -> None:
    """Which is not the same as none of them."""
    value = TransactionLogValue(
        producer_id=0,
        producer_epoch=0,
        transaction_timeout_ms=1,
        transaction_status=0,
        transaction_partitions=None,
        transaction_last_update_timestamp_ms=1,
        transaction_start_timestamp_ms=-1,
    )
    data = encode_transaction_value(value, version)
    assert decode_transaction_value(data) == value


def test_a_value_of_an_unknown_version_says_nothing() -> None:
    """A newer broker wrote it."""
    assert decode_transaction_value(b"\x00\x02") is None


def test_unknown_tags_are_passed_over() -> None:
    """Kafka 4.3 knows a fourth one."""
    data = encode_transaction_value(ONGOING, 1)
    assert data[-4:-2] == b"\x02\x02", "the last tag is the client's version"
    start = len(data) - 1 - 2 - 1 - 2 * 10 - 1
    more = data[:start] + b"\x04" + data[start + 1 :] + b"\x03\x02\x00\x07"
    assert decode_transaction_value(more) == ONGOING


@pytest.mark.parametrize("version", [0, 1])
def test_a_value_that_is_cut_short_is_an_error(version: int) -> None:
    """Wherever it is cut."""
    data = encode_transaction_value(ONGOING, version)
    for size in range(2, len(data) - 1):
        with pytest.raises(WireFormatError):
            decode_transaction_value(data[:size])
