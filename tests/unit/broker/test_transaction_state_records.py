"""Steps as the bytes that Kafka's own TransactionLog makes of them.

The bytes were printed by TransactionLog.keyToBytes and valueToBytes of Kafka 4.3.1.
"""

import pytest
from msgspec.structs import replace

from coordinator_sim.broker.transactions.metadata import TV_0, TV_2, TransactionState, TxnTransit
from coordinator_sim.broker.transactions.state_records import entry_of, metadata_from
from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.resources import TopicPartition

ONGOING = TxnTransit(
    state=TransactionState.ONGOING,
    producer_id=5,
    previous_producer_id=4,
    next_producer_id=6,
    producer_epoch=3,
    last_producer_epoch=-1,
    timeout_ms=60_000,
    partitions=(TopicPartition("a", 0),),
    started_ms=900,
    updated_ms=1_000,
    client_version=TV_2,
)
EMPTY = replace(
    ONGOING,
    state=TransactionState.EMPTY,
    producer_id=0,
    previous_producer_id=-1,
    next_producer_id=-1,
    producer_epoch=0,
    partitions=(),
    started_ms=-1,
    client_version=TV_0,
)
ABORTED = replace(
    ONGOING,
    state=TransactionState.COMPLETE_ABORT,
    producer_id=7,
    previous_producer_id=7,
    next_producer_id=-1,
    producer_epoch=32_766,
    timeout_ms=900_000,
    partitions=(),
    updated_ms=1_234_567_890_123,
)
COMMITTING = replace(
    ABORTED,
    state=TransactionState.PREPARE_COMMIT,
    next_producer_id=8,
    producer_epoch=32_767,
    partitions=(TopicPartition("__consumer_offsets", 49),),
)

GOLDEN = [
    (
        ONGOING,
        TV_0,
        (
            "0000000000000000000500030000ea6001000000010001610000000100000000"
            "00000000000003e80000000000000384"
        ),
    ),
    (
        ONGOING,
        TV_2,
        (
            "0001000000000000000500030000ea6001020261020000000000000000000000"
            "03e8000000000000038403000800000000000000040108000000000000000602"
            "020002"
        ),
    ),
    (EMPTY, TV_0, ("0000000000000000000000000000ea6000ffffffff00000000000003e8ffffffffffffffff")),
    (EMPTY, TV_2, ("0001000000000000000000000000ea60000000000000000003e8ffffffffffffffff00")),
    (ABORTED, TV_0, ("000000000000000000077ffe000dbba005000000000000011f71fb04cb0000000000000384")),
    (
        ABORTED,
        TV_2,
        (
            "000100000000000000077ffe000dbba005010000011f71fb04cb000000000000"
            "0384020008000000000000000702020002"
        ),
    ),
    (
        COMMITTING,
        TV_0,
        (
            "000000000000000000077fff000dbba0020000000100125f5f636f6e73756d65"
            "725f6f66667365747300000001000000310000011f71fb04cb00000000000003"
            "84"
        ),
    ),
    (
        COMMITTING,
        TV_2,
        (
            "000100000000000000077fff000dbba00202135f5f636f6e73756d65725f6f66"
            "66736574730200000031000000011f71fb04cb00000000000003840300080000"
            "0000000000070108000000000000000802020002"
        ),
    ),
]


@pytest.mark.parametrize(("transit", "version", "expected"), GOLDEN)
def test_a_step_is_written_as_kafka_writes_it(
    transit: TxnTransit, version: int, expected: str
) -> None:
    """Byte for byte, at both versions of the value."""
    told = transit if version else replace(transit, client_version=TV_0)
    key, value = entry_of("my-id", told, version)
    assert key.hex() == "000000056d792d6964"
    assert value is not None
    assert value.hex() == expected


@pytest.mark.parametrize("transit", [ONGOING, EMPTY, ABORTED, COMMITTING])
def test_a_step_is_read_back(transit: TxnTransit) -> None:
    """But for the last epoch, which the log does not keep."""
    _, value = entry_of("my-id", transit, TV_2)
    assert value is not None
    found = metadata_from("my-id", value)
    assert found is not None
    assert (found.state, found.producer_id, found.producer_epoch) == (
        transit.state,
        transit.producer_id,
        transit.producer_epoch,
    )
    assert tuple(found.partitions) == transit.partitions
    assert found.previous_producer_id == transit.previous_producer_id
    assert found.next_producer_id == transit.next_producer_id
    assert (found.started_ms, found.updated_ms) == (transit.started_ms, transit.updated_ms)
    assert found.client_version == transit.client_version
    assert found.last_producer_epoch == -1


def test_a_value_of_an_unknown_version_has_no_state() -> None:
    """A newer broker wrote it."""
    assert metadata_from("my-id", b"\x00\x02") is None


@pytest.mark.parametrize("version", [TV_0, TV_2])
def test_a_value_that_is_cut_short_is_an_error(version: int) -> None:
    """Wherever it is cut."""
    _, value = entry_of("my-id", ONGOING, version)
    assert value is not None
    for size in range(len(value)):
        with pytest.raises(WireFormatError):
            metadata_from("my-id", value[:size])


def test_unknown_tags_are_passed_over() -> None:
    """A newer broker may add a fifth tagged field."""
    _, value = entry_of("my-id", ONGOING, TV_2)
    assert value is not None
    tags = value.index(b"\x03\x00\x08")
    more = value[:tags] + b"\x04" + value[tags + 1 :] + b"\x04\x02\x00\x07"
    assert metadata_from("my-id", more) == metadata_from("my-id", value)
