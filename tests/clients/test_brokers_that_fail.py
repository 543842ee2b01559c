"""Clients of three brokers, one of which is stopped while they work."""

import importlib
import time
from typing import Any

import pytest
from confluent_kafka import KafkaException, Message, Producer, TopicPartition

from coordinator_sim_pytest.server import ServedKafka
from tests.clients.librdkafka import PATIENCE_S, consumer, settle

pytestmark = [
    pytest.mark.kafka_brokers(3),
    pytest.mark.kafka_settings({"default.replication.factor": 3, "min.insync.replicas": 1}),
    pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning"),
]
PARTITIONS = 6
COUNT = 300


def test_nothing_acknowledged_is_lost(kafka_server: ServedKafka) -> None:
    """A leader falls, another one, and both come back; offsets go with the coordinator."""
    kafka_server.create_topic("t", PARTITIONS)
    acknowledged: list[bytes] = []

    def delivered(error: object, message: Message) -> None:
        assert error is None, error
        acknowledged.append(message.value())

    settings = {"enable.idempotence": True, "topic.metadata.refresh.interval.ms": 500}
    producer = Producer({"bootstrap.servers": kafka_server.bootstrap, "linger.ms": 5, **settings})
    each = consumer(kafka_server.bootstrap, "g", reconnect_backoff_max_ms=200)
    each.subscribe(["t"])
    values = settle([each], PARTITIONS)
    deadline_s = time.monotonic() + PATIENCE_S
    number = 0
    for broker_id in (1, 2):
        for stopped in (True, False):
            operate = kafka_server.stop_broker if stopped else kafka_server.start_broker
            operate(broker_id)
            for _ in range(COUNT // 4):
                producer.produce(
                    "t", b"%d" % number, partition=number % PARTITIONS, on_delivery=delivered
                )
                number += 1
            while producer.flush(0.05) or len(values) < number:
                assert time.monotonic() < deadline_s, (len(producer), len(values), number)
                values += [
                    message.value()
                    for message in each.consume(COUNT, 0.05)
                    if message.error() is None
                ]
    wanted = [b"%d" % place for place in range(COUNT)]
    assert sorted(acknowledged, key=int) == wanted
    assert sorted(values, key=int) == wanted
    committed(each)
    each.close()


def committed(each: Any) -> None:  # noqa: ANN401 - of any type
    """Commit, with the patience that a coordinator on its way needs."""
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            each.commit(offsets=[TopicPartition("t", 0, 7)], asynchronous=False)
        except KafkaException:
            assert time.monotonic() < deadline_s
            each.poll(0.1)
        else:
            return


def test_clients_follow_their_coordinator(kafka_server: ServedKafka) -> None:
    """A member of librdkafka keeps its generation; it and kafka-python commit at the new one."""
    kafka_server.create_topic("t", 1)
    kafka = importlib.import_module("kafka")
    place = kafka.TopicPartition("t", 0)
    offsets = importlib.import_module("kafka.structs").OffsetAndMetadata
    first = consumer(kafka_server.bootstrap, "a")
    # By hand: as a leader this release of kafka-python may stop, see test_kafka_python.
    second = kafka.KafkaConsumer(bootstrap_servers=kafka_server.bootstrap.split(","), group_id="b")
    first.subscribe(["t"])
    settle([first], 1)
    second.assign([place])
    second.commit({place: offsets(6, "", -1)})
    before = kafka_server.wait_for_group("a")
    for name in "ab":
        kafka_server.move_coordinator(name)
    second.commit({place: offsets(7, "", -1)})
    committed(first)
    assert second.committed(place) == 7
    assert kafka_server.wait_for_group("a")["generation"] == before["generation"]
    second.close()
    first.close()
