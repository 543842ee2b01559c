"""Consumer groups of librdkafka at `coordinator-sim serve`."""

import json
import time
from typing import Any

import pytest
from confluent_kafka import OFFSET_END, Consumer, KafkaError, Producer, TopicPartition

from coordinator_sim_conformance.wire.links import Link
from coordinator_sim_conformance.wire.security import Security
from coordinator_sim_pytest.server import ServedKafka
from tests.clients.librdkafka import PATIENCE_S, consumer, owned_by, polled, produce, read, settle

PARTITIONS = 6
EVERY_PROFILE = [
    pytest.param(name, marks=pytest.mark.kafka_profile(name)) for name in ("4.4", "3.9", "0.10.2")
]


def numbers(first: int, count: int) -> list[bytes]:
    """Values of records."""
    return [b"%d" % number for number in range(first, first + count)]


@pytest.mark.parametrize(
    ("strategy", "profile"),
    [
        ("range", "4.4"),
        ("roundrobin", "4.4"),
        ("cooperative-sticky", "4.4"),
        pytest.param("cooperative-sticky", "3.9", marks=pytest.mark.kafka_profile("3.9")),
        pytest.param("range", "0.10.2", marks=pytest.mark.kafka_profile("0.10.2")),
        pytest.param("cooperative-sticky", "0.10.2", marks=pytest.mark.kafka_profile("0.10.2")),
    ],
)
def test_members_come_and_go_and_each_record_is_read_once(
    kafka_server: ServedKafka, strategy: str, profile: str
) -> None:
    """One owner a partition after every rebalance, whatever the assignor and the broker."""
    kafka_server.create_topic("t", PARTITIONS)
    revoked: list[list[int]] = []
    settings: dict[str, Any] = {"partition_assignment_strategy": strategy}
    bootstrap = kafka_server.bootstrap
    first, second, third = (consumer(bootstrap, "g", **settings) for _ in range(3))
    first.subscribe(
        ["t"], on_revoke=lambda _, places: revoked.append([each.partition for each in places])
    )
    settle([first], PARTITIONS)
    second.subscribe(["t"])
    settle([first, second], PARTITIONS)
    produce(bootstrap, "t", numbers(0, 300))
    values = read([first, second], 300)
    for each in (first, second):
        each.commit(asynchronous=False)
    third.subscribe(["t"])
    settle([first, second, third], PARTITIONS)
    second.close()
    settle([first, third], PARTITIONS)
    produce(bootstrap, "t", numbers(300, 300))
    values += read([first, third], 300)
    assert sorted(values, key=int) == numbers(0, 600), profile
    moved = [len(places) for places in revoked]
    assert moved[0] == (3 if strategy == "cooperative-sticky" else PARTITIONS)
    for each in (first, third):
        each.close()
    kafka_server.wait_for_group("g", "Empty")


@pytest.mark.parametrize("profile", EVERY_PROFILE[:2])
def test_static_member_that_restarts_disturbs_nobody(
    kafka_server: ServedKafka, profile: str
) -> None:
    """The member has the same partitions, in the same generation."""
    kafka_server.create_topic("t", PARTITIONS)
    bootstrap = kafka_server.bootstrap
    first = consumer(bootstrap, "s", group_instance_id="a")
    second = consumer(bootstrap, "s", group_instance_id="b")
    for each in (first, second):
        each.subscribe(["t"])
    settle([first, second], PARTITIONS)
    before = kafka_server.wait_for_group("s", "Stable", members=2)
    owned = owned_by(first)
    first.close()
    again = consumer(bootstrap, "s", group_instance_id="a")
    again.subscribe(["t"])
    settle([again, second], PARTITIONS)
    after = kafka_server.wait_for_group("s", "Stable", members=2)
    assert owned_by(again) == owned, profile
    assert after["generation"] == before["generation"]
    again.close()
    second.close()


def test_second_member_of_an_instance_fences_the_first(kafka_server: ServedKafka) -> None:
    """The first is told by its next heartbeat, and for good."""
    kafka_server.create_topic("t", PARTITIONS)
    first, second = (consumer(kafka_server.bootstrap, "s", group_instance_id="a") for _ in range(2))
    first.subscribe(["t"])
    settle([first], PARTITIONS)
    second.subscribe(["t"])
    settle([second], PARTITIONS)
    deadline_s = time.monotonic() + PATIENCE_S
    message = None
    while message is None or message.error() is None:
        assert time.monotonic() < deadline_s
        message = first.poll(0.1)
    assert message.error().code() == KafkaError._FATAL
    first.close()
    second.close()


@pytest.mark.parametrize("profile", EVERY_PROFILE)
def test_committed_offsets_are_where_a_group_resumes(
    kafka_server: ServedKafka, profile: str
) -> None:
    """Seek, pause, commit, and a later consumer of the group."""
    kafka_server.create_topic("t")
    bootstrap = kafka_server.bootstrap
    produce(bootstrap, "t", numbers(0, 100))
    first = consumer(bootstrap, "g")
    first.subscribe(["t"])
    assert read([first], 100) == numbers(0, 100), profile
    place = TopicPartition("t", 0)
    first.seek(TopicPartition("t", 0, 40))
    assert read([first], 60) == numbers(40, 60)
    first.pause([place])
    produce(bootstrap, "t", numbers(100, 1))
    assert polled(first, 0.3) == []
    first.resume([place])
    assert read([first], 1) == numbers(100, 1)
    offset = TopicPartition("t", 0, 77, "so far")
    first.commit(offsets=[offset], asynchronous=False)
    first.close()
    again = consumer(bootstrap, "g")
    (found,) = again.committed([place], PATIENCE_S)
    assert (found.offset, found.metadata) == (77, "so far")
    again.subscribe(["t"])
    assert read([again], 24) == numbers(77, 24)
    assert again.get_watermark_offsets(place, PATIENCE_S) == (0, 101)
    again.close()


@pytest.mark.parametrize("profile", EVERY_PROFILE)
def test_offsets_are_found_by_time(kafka_server: ServedKafka, profile: str) -> None:
    """The first offset at or behind an instant, and the end where there is none."""
    kafka_server.create_topic("t")
    bootstrap = kafka_server.bootstrap
    now_ms = int(time.time() * 1_000)
    producer = Producer({"bootstrap.servers": bootstrap})
    for place in range(10):
        producer.produce("t", b"%d" % place, timestamp=now_ms + place * 1_000)
    assert producer.flush(PATIENCE_S) == 0
    each = consumer(bootstrap, "g")
    for at_ms, offset in ((now_ms, 0), (now_ms + 3_500, 4), (now_ms + 60_000, OFFSET_END)):
        (found,) = each.offsets_for_times([TopicPartition("t", 0, at_ms)], PATIENCE_S)
        assert found.offset == offset, profile
    each.close()


def test_statistics_tell_of_no_errors(kafka_server: ServedKafka) -> None:
    """10,000 records later every broker is up, without a time-out or a parse error."""
    kafka_server.create_topic("t", PARTITIONS)
    statistics: list[dict[str, Any]] = []
    each = consumer(
        kafka_server.bootstrap,
        "g",
        statistics_interval_ms=100,
        stats_cb=lambda text: statistics.append(json.loads(text)),
    )
    each.subscribe(["t"])
    values = numbers(0, 10_000)
    produce(kafka_server.bootstrap, "t", values, enable_idempotence=True)
    assert sorted(read([each], 10_000), key=int) == values
    each.commit(asynchronous=False)
    statistics.clear()
    while not statistics:
        assert polled(each, 0.1) == []
    told = statistics[-1]
    assert told["cgrp"]["state"] == "up"
    assert told["cgrp"]["join_state"] == "steady"
    partitions = told["topics"]["t"]["partitions"]
    assert sum(partitions[str(index)]["app_offset"] for index in range(PARTITIONS)) == 10_000
    for broker in told["brokers"].values():
        assert (broker["rxerrs"], broker["txerrs"], broker["req_timeouts"]) == (0, 0, 0)
        assert (broker["rxcorriderrs"], broker["rxpartial"]) == (0, 0)
    each.close()


NEW_PROFILES = [
    pytest.param(name, marks=pytest.mark.kafka_profile(name)) for name in ("4.4", "4.0")
]


@pytest.mark.kafka_settings({"group.consumer.heartbeat.interval.ms": 200})
def test_members_of_the_new_protocol_come_and_go(kafka_server: ServedKafka) -> None:
    """The broker assigns; each record is read once, and the group goes on where it was left."""
    kafka_server.create_topic("t", PARTITIONS)
    bootstrap, group = kafka_server.bootstrap, "new"
    settings: dict[str, Any] = {"group_protocol": "consumer"}
    first, second, third = (consumer(bootstrap, group, **settings) for _ in range(3))
    first.subscribe(["t"])
    settle([first], PARTITIONS)
    second.subscribe(["t"])
    settle([first, second], PARTITIONS)
    assert [len(owned_by(each)) for each in (first, second)] == [3, 3]
    produce(bootstrap, "t", numbers(0, 300))
    values = read([first, second], 300)
    for each in (first, second):
        each.commit(asynchronous=False)
    first.close()
    settle([second], PARTITIONS)
    third.subscribe(["^t"])
    settle([second, third], PARTITIONS)
    produce(bootstrap, "t", numbers(300, 300))
    values += read([second, third], 300)
    for each in (second, third):
        each.close()

    assert sorted(values, key=int) == numbers(0, 600)


@pytest.mark.parametrize("profile", NEW_PROFILES)
def test_consumer_of_the_new_protocol_is_told_that_it_is_off(
    kafka_server: ServedKafka, profile: str
) -> None:
    """A fatal error comes instead of silence, as from a broker of 4.4.0 with group.version at 0.

    Brokers of 3.9 offer version 0 alone, which librdkafka does not speak: it waits in silence, at a
    real 3.9.2 as here.
    """
    kafka_server.create_topic("t", PARTITIONS)
    switch_off(kafka_server.bootstrap)
    errors: list[KafkaError] = []
    reader = Consumer(
        {
            "bootstrap.servers": kafka_server.bootstrap,
            "group.id": f"off-{profile}",
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "error_cb": errors.append,
        }
    )
    reader.subscribe(["t"])
    deadline_s = time.monotonic() + PATIENCE_S
    while not errors and time.monotonic() < deadline_s:
        message = reader.poll(0.1)
        if message is not None and message.error() is not None:
            errors.append(message.error())
    reader.close()
    (error,) = errors
    assert error.name() == "_FATAL"
    assert "API version not supported" in error.str()


def switch_off(bootstrap: str) -> None:
    """Take `group.version` down to 0, as `kafka-features downgrade` does."""
    host, _, port = bootstrap.partition(":")
    link = Link((host, int(port)), Security())
    update = {"feature": "group.version", "maxVersionLevel": 0, "upgradeType": 2}
    request = {"timeoutMs": 1_000, "featureUpdates": [update], "validateOnly": False}
    assert link.ask("UpdateFeatures", 1, request)["errorCode"] == 0
    link.close()
