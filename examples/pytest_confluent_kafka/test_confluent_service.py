"""Tests of a service on confluent-kafka (librdkafka), against a served cluster.

Run them: pytest examples/pytest_confluent_kafka
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer

from coordinator_sim_pytest import converged_within, no_commit_lost, no_double_ownership
from coordinator_sim_pytest.server import ServedKafka

TOPIC = "orders"
EACH = 2
"""Partitions of each of two members."""


@contextmanager
def service(bootstrap: str, **settings: str) -> Iterator[Consumer]:
    """One process of the service: a member of the group `billing`."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "billing",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "partition.assignment.strategy": "cooperative-sticky",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )
    consumer.subscribe([TOPIC])
    try:
        yield consumer
    finally:
        consumer.close()


def produce(bootstrap: str, *orders: str) -> None:
    """Orders come in."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for order in orders:
        producer.produce(TOPIC, order.encode())
    assert producer.flush(10) == 0


def handle(consumer: Consumer, count: int) -> list[str]:
    """Handle so many orders, and commit each."""
    handled: list[str] = []
    while len(handled) < count:
        message = consumer.poll(10)
        assert message is not None, f"no order within 10 s; handled so far: {handled}"
        assert message.error() is None, message.error()
        handled.append(message.value().decode())
        consumer.commit(message, asynchronous=False)
    return handled


def test_a_commit_survives_a_restart_of_the_broker(kafka_server: ServedKafka) -> None:
    """What was handled before is not handled again after."""
    kafka_server.create_topic(TOPIC)
    produce(kafka_server.bootstrap, "first", "second")
    with service(kafka_server.bootstrap) as consumer:
        assert handle(consumer, 1) == ["first"]
    kafka_server.restart_broker()
    with service(kafka_server.bootstrap) as consumer:
        assert handle(consumer, 1) == ["second"]
    no_commit_lost(kafka_server)


def test_a_rolling_bounce_moves_no_partition_twice(kafka_server: ServedKafka) -> None:
    """Static members that come back in time keep their partitions: no rebalance at all."""
    kafka_server.create_topic(TOPIC, partitions=4)
    one = {"group_instance_id": "one"}
    two = {"group_instance_id": "two"}
    with service(kafka_server.bootstrap, **two) as survivor:
        with service(kafka_server.bootstrap, **one) as bounced:
            wait_for_two(kafka_server, survivor, bounced)
            before = kafka_server.group("billing")
        with service(kafka_server.bootstrap, **one) as bounced:
            produce(kafka_server.bootstrap, *map(str, range(40)))
            wait_for_two(kafka_server, survivor, bounced)
            after = kafka_server.group("billing")
    assert after["generation"] == before["generation"]
    no_double_ownership(kafka_server)
    converged_within(kafka_server, 10_000, group_id="billing")


def wait_for_two(kafka_server: ServedKafka, *consumers: Consumer) -> None:
    """Poll until both members have partitions."""
    for _ in range(200):
        for consumer in consumers:
            consumer.poll(0.05)
        if all(len(consumer.assignment()) == EACH for consumer in consumers):
            return
    pytest.fail(f"the group does not settle: {kafka_server.group('billing')}")


@pytest.mark.kafka_faults(
    {
        "match": {"api": "OffsetCommit", "nth": 1},
        "action": {"do": "error", "error": "COORDINATOR_LOAD_IN_PROGRESS"},
    }
)
def test_a_commit_is_tried_again(kafka_server: ServedKafka) -> None:
    """The broker answers the first commit with an error that passes."""
    kafka_server.create_topic(TOPIC)
    produce(kafka_server.bootstrap, "first", "second")
    with service(kafka_server.bootstrap) as consumer:
        assert handle(consumer, 2) == ["first", "second"]
    no_commit_lost(kafka_server, judged=0)
