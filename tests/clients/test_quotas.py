"""Clients of librdkafka over their quotas at `coordinator-sim serve`."""

import time
from contextlib import closing
from typing import Any

from confluent_kafka import Producer

from coordinator_sim_pytest.server import ServedKafka
from tests.clients.librdkafka import PATIENCE_S, consumer, produce
from tests.real_kafka.admin_requests import quota
from tests.real_kafka.test_admin_differential import RealClient


def limit(kafka_server: ServedKafka, key: str, value: float) -> None:
    """Set a quota of every user."""
    with closing(RealClient(kafka_server.bootstrap)) as client:
        answer = client.ask(quota({"user": None}, (key, value)))
    assert [each["errorCode"] for each in answer["entries"]] == [0]


def test_producer_hears_its_throttle_time_and_waits_for_it(kafka_server: ServedKafka) -> None:
    """The first record is 1.5 times what ten windows hold; the second is acknowledged later."""
    kafka_server.create_topic("t")
    limit(kafka_server, "producer_byte_rate", 1_000.0)
    times_s: list[float] = []
    settings: dict[str, Any] = {
        "bootstrap.servers": kafka_server.bootstrap,
        "linger.ms": 0,
        "throttle_cb": lambda event: times_s.append(event.throttle_time),
    }
    producer = Producer(settings)
    producer.list_topics("t", PATIENCE_S)
    start_s = time.monotonic()
    for size in (11_500, 10):
        producer.produce("t", b"x" * size, partition=0)
        assert producer.flush(PATIENCE_S) == 0
    took_s = time.monotonic() - start_s
    assert times_s
    assert took_s >= times_s[0] > 1.5


def test_consumer_over_its_quota_gets_every_record_later(kafka_server: ServedKafka) -> None:
    """Of 25 kB the first Fetch has what ten windows hold; the rest comes after a throttle time."""
    kafka_server.create_topic("t")
    values = [b"%02d" % number + b"x" * 1_000 for number in range(25)]
    produce(kafka_server.bootstrap, "t", values, batch_num_messages=1)
    limit(kafka_server, "consumer_byte_rate", 2_000.0)
    times_s: list[float] = []
    member = consumer(
        kafka_server.bootstrap, "g", throttle_cb=lambda event: times_s.append(event.throttle_time)
    )
    start_s = time.monotonic()
    member.subscribe(["t"])
    found: list[bytes] = []
    while len(found) < len(values) and time.monotonic() < start_s + PATIENCE_S:
        message = member.poll(1.0)
        if message is not None and message.error() is None:
            found.append(message.value())
    took_s = time.monotonic() - start_s
    member.close()
    assert found == values
    assert max(times_s, default=0.0) > 0
    assert took_s >= max(times_s)
