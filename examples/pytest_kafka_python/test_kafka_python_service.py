"""Tests of a service on kafka-python, against a served cluster.

Run them: pytest examples/pytest_kafka_python
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from kafka import KafkaConsumer, KafkaProducer

from coordinator_sim_pytest import invariants_hold, no_commit_lost
from coordinator_sim_pytest.server import ServedKafka

TOPIC = "orders"
PATIENCE_MS = 10_000


@contextmanager
def service(bootstrap: str) -> Iterator[KafkaConsumer]:
    """One process of the service: a member of the group `billing`."""
    consumer = KafkaConsumer(
        TOPIC,
        bootstrap_servers=bootstrap,
        group_id="billing",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        consumer_timeout_ms=PATIENCE_MS,
    )
    try:
        yield consumer
    finally:
        consumer.close()


def produce(bootstrap: str, *orders: str) -> None:
    """Orders come in."""
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for order in orders:
        producer.send(TOPIC, order.encode()).get(timeout=10)
    producer.close()


def handle(consumer: KafkaConsumer, count: int) -> list[str]:
    """Handle so many orders, and commit each."""
    handled = []
    for _ in range(count):
        handled.append(next(consumer).value.decode())
        consumer.commit()
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


@pytest.mark.kafka_brokers(3)
def test_the_coordinator_moves_while_orders_are_handled(kafka_server: ServedKafka) -> None:
    """The consumer finds its new coordinator, and goes on where it was."""
    kafka_server.create_topic(TOPIC)
    produce(kafka_server.bootstrap, "first", "second")
    with service(kafka_server.bootstrap) as consumer:
        assert handle(consumer, 1) == ["first"]
        kafka_server.move_coordinator("billing")
        assert handle(consumer, 1) == ["second"]
    invariants_hold(kafka_server)


@pytest.mark.kafka_profile("3.9")
def test_on_an_older_kafka(kafka_server: ServedKafka) -> None:
    """The same service on the Kafka of production."""
    kafka_server.create_topic(TOPIC)
    produce(kafka_server.bootstrap, "first")
    with service(kafka_server.bootstrap) as consumer:
        assert handle(consumer, 1) == ["first"]
