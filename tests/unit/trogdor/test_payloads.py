"""Payloads and transactions are those of Kafka's generators, recorded where they are random."""

import json
from pathlib import Path
from typing import Any

import pytest

from coordinator_sim.trogdor import jackson
from coordinator_sim.trogdor.generator_specs import (
    ConstantPayloadGenerator,
    GaussianTimestampConstantPayloadGenerator,
    NullPayloadGenerator,
    PayloadGenerator,
    RandomComponent,
    RandomComponentPayloadGenerator,
    SequentialPayloadGenerator,
    TimestampConstantPayloadGenerator,
    TransactionGenerator,
    UniformRandomPayloadGenerator,
)
from coordinator_sim.trogdor.java_random import JavaRandom, java_int, strict_log
from coordinator_sim.trogdor.payloads import MOST_BYTES, PayloadIterator, payloads_of
from coordinator_sim.trogdor.refusals import TrogdorRefusal
from coordinator_sim.trogdor.transactions import transactions_of

RECORDED = Path(__file__).resolve().parents[2] / "data" / "trogdor" / "jackson.jsonl"
NOW_MS = 0x0102030405


def recorded() -> list[dict[str, Any]]:
    """Payloads of Kafka's own generators."""
    answers = [json.loads(line) for line in RECORDED.read_text("utf-8").strip().split("\n")]
    return [answer for answer in answers if "payloads" in answer]


def test_every_payload_equals_kafkas() -> None:
    """All generators, at many positions; timestamps aside, which are the clock."""
    for answer in recorded():
        source = payloads_of(jackson.read(answer["body"], PayloadGenerator))
        clock = 16 if "imestamp" in answer["body"] else 0
        for position, expected in zip(answer["positions"], answer["payloads"], strict=True):
            payload = source.payload(position, NOW_MS)
            found = None if payload is None else payload.hex()
            assert found == expected or (found and found[clock:] == expected[clock:]), answer
            assert len(found or "") == len(expected or "")


def test_every_generator_was_recorded() -> None:
    """Nine types of payloads."""
    assert len({json.loads(answer["body"])["type"] for answer in recorded()}) == 9


def test_a_payload_with_a_timestamp_begins_with_the_clock() -> None:
    """The time in milliseconds, 8 bytes, little-endian."""
    for name in ("timestampRandom", "timestampConstant"):
        source = payloads_of(jackson.read(f'{{"type":"{name}","size":9}}', PayloadGenerator))
        payload = source.payload(5, NOW_MS)
        assert payload is not None
        assert payload[:8] == NOW_MS.to_bytes(8, "little")


@pytest.mark.parametrize(
    ("size", "offset", "position", "value"),
    [(4, 1, 0, 1), (4, 1, 1, 2), (8, 0, 123123123123, 123123123123), (2, 0, 131073, 1)],
)
def test_a_sequential_payload_is_the_position(
    size: int, offset: int, position: int, value: int
) -> None:
    """J13: little-endian; high bytes that have no room are dropped."""
    spec = SequentialPayloadGenerator(size=size, start_offset=offset)

    payload = payloads_of(spec).payload(position, NOW_MS)

    assert payload == value.to_bytes(size, "little")


def test_an_iterator_goes_on_by_one() -> None:
    """Positions from 0, and from where it was sent."""
    iterator = PayloadIterator(SequentialPayloadGenerator(size=1))

    assert [iterator.next(NOW_MS), iterator.next(NOW_MS)] == [b"\0", b"\1"]
    iterator.seek(9)
    assert iterator.position == 9
    assert iterator.next(NOW_MS) == b"\x09"


def test_a_generator_that_is_absent_fails_when_it_is_used() -> None:
    """A component without a generator is taken, and is a failure when it is drawn."""
    spec = RandomComponentPayloadGenerator(components=(RandomComponent(percent=100),))

    with pytest.raises(TrogdorRefusal, match="no generator") as refused:
        payloads_of(spec).payload(0, NOW_MS)
    assert refused.value.code == 500


def test_a_constant_without_a_value_is_zeros() -> None:
    """The default of a value is written too, so equal specs have equal JSON."""
    assert ConstantPayloadGenerator(size=2) == ConstantPayloadGenerator(size=2, value=b"\0\0")
    assert payloads_of(NullPayloadGenerator()).payload(0, NOW_MS) is None


ACTIONS = [
    (
        '{"type":"uniform","messagesPerTransaction":2}',
        ["BEGIN_TRANSACTION", "NO_OP", "NO_OP", "COMMIT_TRANSACTION", "BEGIN_TRANSACTION"],
    ),
    (
        '{"type":"interval","transactionIntervalMs":100}',
        [
            *("BEGIN_TRANSACTION", "NO_OP", 50, "NO_OP", 49, "NO_OP", 1),
            *("COMMIT_TRANSACTION", "BEGIN_TRANSACTION"),
        ],
    ),
]


@pytest.mark.parametrize(("spec", "steps"), ACTIONS)
def test_transactions_begin_and_end(spec: str, steps: list[str | int]) -> None:
    """J12: after so many records, or after so long; numbers are milliseconds that pass."""
    transactions = transactions_of(jackson.read(spec, TransactionGenerator))
    now_ms = NOW_MS
    for step in steps:
        if isinstance(step, int):
            now_ms += step
        else:
            assert transactions.next_action(now_ms).value == step


def test_an_unknown_family_of_transactions_is_a_bug() -> None:
    """A class that nobody implements is not silently no transactions."""
    with pytest.raises(TypeError):
        transactions_of(TransactionGenerator())


def test_random_numbers_are_javas() -> None:
    """First numbers of java.util.Random(42), and of its bounds that are powers of two or not."""
    assert [JavaRandom(42).next_int(10), JavaRandom(42).next_int(16)] == [0, 11]
    random = JavaRandom(42)
    assert [random.next_gaussian(), random.next_gaussian()] == [
        1.1419053154730547,
        0.9194079489827879,
    ]
    assert JavaRandom(0).next_bytes(5).hex() == "60b420bb38"


@pytest.mark.parametrize(
    ("value", "logarithm"),
    [
        (0.5, -0.6931471805599453),
        (0.1, -2.3025850929940455),
        (0.3535, -1.0398717936455095),
        (0.7071, -0.346583180371942),
        (0.71, -0.342490308946776),
        (0.999999999, -9.999999722180686e-10),
        (1 - 2.0**-30, -9.313225750491594e-10),
        (0.5000000001, -0.6931471803599453),
        (3e-9, -19.624653548278303),
    ],
)
def test_a_logarithm_is_javas(value: float, logarithm: float) -> None:
    """StrictMath.log of Java 17; the C library differs in the last bit of the third."""
    assert strict_log(value) == logarithm


def test_a_number_that_hardly_fits_is_drawn_again() -> None:
    """A bound above 2^30 rejects numbers of the last, incomplete range."""
    random = JavaRandom(0)

    assert all(0 <= random.next_int(2**30 + 1) <= 2**30 for _ in range(50))


def test_a_double_becomes_the_nearest_int_towards_zero() -> None:
    """Java's cast: no fraction, no overflow, 0 for no number."""
    assert [java_int(x) for x in (1.9, -1.9, 1e300, -1e300, float("nan"))] == [
        1,
        -1,
        2**31 - 1,
        -(2**31),
        0,
    ]


@pytest.mark.parametrize(
    "spec",
    [
        ConstantPayloadGenerator(size=2**31 - 1, value=b"x"),
        SequentialPayloadGenerator(size=MOST_BYTES + 1),
        UniformRandomPayloadGenerator(size=2**31 - 1, padding=2**31 - 1),
        TimestampConstantPayloadGenerator(size=2**31 - 1),
        GaussianTimestampConstantPayloadGenerator(message_size_average=2**31 - 1),
        RandomComponentPayloadGenerator(
            components=(
                RandomComponent(percent=50, component=SequentialPayloadGenerator(size=MOST_BYTES)),
                RandomComponent(percent=50, component=SequentialPayloadGenerator(size=1)),
            )
        ),
    ],
)
def test_a_payload_that_no_producer_sends_is_not_made(spec: PayloadGenerator) -> None:
    """Its use fails with a line, as without a generator."""
    with pytest.raises(TrogdorRefusal, match=r"payloads of \d+ bytes; the most are 134217728"):
        PayloadIterator(spec).next(NOW_MS)
