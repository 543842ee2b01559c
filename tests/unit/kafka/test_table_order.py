"""The order of the hash maps under the coordinators."""

import itertools

import pytest

from coordinator_sim.kafka.orders.iteration_order import TABLE_ORDERS, HashOrder

NAMES = (
    *("cooperative-sticky", "eager", "roundrobin", "compatible", "range", "sticky", "default"),
    "sessioned",
)
"""In the order in which Kafka 3.9.2 decides ties, seen for every pair."""


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(NAMES, 2)))
def test_ties_of_protocols_as_seen_on_3_9(first: str, second: str) -> None:
    """Whichever was voted for first, the same one of two protocols wins."""
    table = TABLE_ORDERS[HashOrder.SCALA_2_13]
    assert table.votes([second, first]) == [first, second]
    assert table.votes([first, second]) == [first, second]


def test_tables_grow_where_their_kafka_does() -> None:
    """Scala 2.13 doubles before the twelfth key, Java and Scala 2.12 after it."""
    grown = {order: table.grown(16, 12) for order, table in TABLE_ORDERS.items()}
    assert grown == {HashOrder.JAVA: 16, HashOrder.SCALA_2_13: 32, HashOrder.SCALA_2_12: 16}
    assert {table.grown(16, 13) for table in TABLE_ORDERS.values()} == {32}


def test_scala_2_13_sorts_a_bucket_by_stored_hash() -> None:
    """The smaller signed hash of two keys in one bucket comes first; Java keeps insertion."""
    scala, java = TABLE_ORDERS[HashOrder.SCALA_2_13], TABLE_ORDERS[HashOrder.JAVA]
    hashes = [17, 1, -15]
    assert sorted(hashes, key=lambda h: java.place(h, 16))[:2] == [17, 1]
    assert sorted([17, 1], key=lambda h: scala.place(h, 16)) == [1, 17]


def test_scala_2_12_goes_from_the_last_bucket_to_the_first() -> None:
    """The leading bits of the scrambled hash name the bucket."""
    table = TABLE_ORDERS[HashOrder.SCALA_2_12]
    buckets = [-table.place(h, 16)[0] for h in sorted(range(50), key=lambda h: table.place(h, 16))]
    assert buckets == sorted(buckets, reverse=True)
    assert set(buckets) <= set(range(16))


def test_other_tables_decide_ties_their_own_way() -> None:
    """Java takes its HashMap's order."""
    assert TABLE_ORDERS[HashOrder.JAVA].votes(["sticky", "range", "eager"]) == [
        "eager",
        "sticky",
        "range",
    ]
    assert sorted(TABLE_ORDERS[HashOrder.SCALA_2_12].votes(NAMES)) == sorted(NAMES)
