"""What the tests of librdkafka share: quick settings, groups polled in turns, whole topics."""

import time
from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

import confluent_kafka
from confluent_kafka import Consumer, Producer, TopicPartition

PATIENCE_S: Final = 60.0
QUICK: Final = {
    "session.timeout.ms": 10_000,
    "heartbeat.interval.ms": 200,
    "fetch.wait.max.ms": 50,
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
}
"""Of consumers: a rebalance is heard of within 200 ms."""
_CLASSIC: Final = ("session.timeout.ms", "heartbeat.interval.ms")
"""Settings that are the broker's for members of the new protocol."""
OLDEST: Final = {"api.version.request": False, "broker.version.fallback": "0.10.2.2"}
"""What a client that is to suit brokers of all ages may be told of the oldest."""


def consumer(bootstrap: str, group: str, **settings: Any) -> Consumer:  # noqa: ANN401 - of any type
    """A consumer of a group; settings with underscores for dots, but those of callbacks."""
    named = {
        name if name.endswith("_cb") else name.replace("_", "."): value
        for name, value in settings.items()
    }
    is_new = named.get("group.protocol") == "consumer"
    quick = {name: value for name, value in QUICK.items() if not is_new or name not in _CLASSIC}
    return Consumer({"bootstrap.servers": bootstrap, "group.id": group, **quick, **named})


def produce(bootstrap: str, topic: str, values: Sequence[bytes], **settings: Any) -> None:  # noqa: ANN401 - of any type
    """Produce values to partitions in turn, all acknowledged."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 2, **named})
    partitions = _partitions(producer, topic)
    failed: list[object] = []
    for place, value in enumerate(values):
        producer.produce(
            topic,
            value,
            partition=place % partitions,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
    assert producer.flush(PATIENCE_S) == 0
    assert failed == []


def _partitions(producer: Producer, topic: str) -> int:
    """Their number, once the topic is there: a request that creates it is told it is unknown."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not (found := producer.list_topics(topic, PATIENCE_S).topics[topic]).partitions:
        assert time.monotonic() < deadline_s, found.error
    return len(found.partitions)


def settle(consumers: Sequence[Consumer], partitions: int) -> list[bytes]:
    """Poll until every partition has one owner and every consumer one; values seen meanwhile."""
    values: list[bytes] = []
    deadline_s = time.monotonic() + PATIENCE_S
    while not _settled(consumers, partitions):
        assert time.monotonic() < deadline_s, [each.assignment() for each in consumers]
        for each in consumers:
            values += polled(each, 0.02)
    return values


def _settled(consumers: Sequence[Consumer], partitions: int) -> bool:
    owned = [owned_by(each) for each in consumers]
    return all(owned) and sorted(chain.from_iterable(owned)) == list(range(partitions))


def owned_by(each: Consumer) -> list[int]:
    """Partitions of the one topic that a consumer has."""
    return sorted(place.partition for place in each.assignment())


def polled(each: Consumer, timeout_s: float) -> list[bytes]:
    """The value of one message, or nothing."""
    message = each.poll(timeout_s)
    if message is None:
        return []
    assert message.error() is None, message.error()
    return [message.value()]


def read(consumers: Sequence[Consumer], count: int) -> list[bytes]:
    """The next `count` values, polled in turns; the test fails when there are more at once."""
    values: list[bytes] = []
    deadline_s = time.monotonic() + PATIENCE_S
    while len(values) < count:
        assert time.monotonic() < deadline_s, len(values)
        for each in consumers:
            for message in each.consume(1_000, 0.02):
                assert message.error() is None, message.error()
                values.append(message.value())
    return values


def whole_topic(bootstrap: str, topic: str, partitions: int, count: int, **settings: Any) -> Any:  # noqa: ANN401 - of any type
    """The first `count` values of all partitions, read by a consumer without a group."""
    each = consumer(bootstrap, "none", **settings)
    start = confluent_kafka.OFFSET_BEGINNING
    each.assign([TopicPartition(topic, index, start) for index in range(partitions)])
    values = read([each], count)
    assert polled(each, 0.2) == []
    each.close()
    return values
