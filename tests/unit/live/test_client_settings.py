"""Settings by Java's names as librdkafka takes them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from coordinator_sim.live.trogdor.client_settings import (
    Native,
    native_of_admin,
    native_of_consumer,
    native_of_producer,
)
from coordinator_sim.trogdor.workloads.clients import ClientFailed, Settings

RECORDED = Path(__file__).resolve().parents[2] / "data" / "trogdor" / "client_settings.tsv"
KINDS: dict[str, tuple[Callable[[Settings], Native], Callable[[dict[str, Any]], object]]] = {
    "producer": (native_of_producer, Producer),
    "consumer": (lambda settings: native_of_consumer(settings, "spare"), Consumer),
    "admin": (native_of_admin, AdminClient),
}
UNKNOWN = "No such configuration property"


def refusal(kind: str, settings: Settings) -> str:
    """What librdkafka says of settings; nothing where it takes them."""
    translate, make = KINDS[kind]
    try:
        make(dict(translate(settings).settings))
    except KafkaException as error:
        return str(error.args[0].str())
    return ""


def recorded() -> list[tuple[str, str, str]]:
    """Client, name and default of every setting of Kafka's clients; empty for no default."""
    lines = RECORDED.read_text("utf-8").splitlines()
    return [(kind, name, value) for kind, name, value in (line.split("\t") for line in lines)]


def consumer(**settings: str | int) -> dict[str, Any]:
    """Native settings of a consumer, with underscores for dots."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return native_of_consumer(given, "spare").settings


def producer(**settings: str | int) -> dict[str, Any]:
    """Native settings of a producer, with underscores for dots."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return native_of_producer(given).settings


def test_every_setting_of_kafkas_clients_is_known() -> None:
    """Each is translated, taken or left out; each default with a value is taken."""
    table = recorded()
    assert len(table) > 300
    unknown = [(kind, name) for kind, name, _ in table if UNKNOWN in refusal(kind, {name: "1"})]
    assert unknown == []
    refused = [
        (kind, name, said)
        for kind, name, value in table
        if value and (said := refusal(kind, {name: value}))
    ]
    assert refused == []


def test_settings_of_no_client_are_refused() -> None:
    """Those of librdkafka alone are taken, others are not."""
    for kind in KINDS:
        assert refusal(kind, {"socket.nagle.disable": "true"}) == ""
        assert refusal(kind, {"foo.bar": "1"}) == f'{UNKNOWN}: "foo.bar"'


def test_settings_that_mean_nothing_are_named() -> None:
    """What is left out can be told; what the clients around librdkafka keep is not left out."""
    settings = {"metrics.num.samples": "3", "client.id": "c", "max.poll.records": "1"}
    found = native_of_consumer({**settings, "key.deserializer": "x"}, "spare")

    assert found.left_out == ("metrics.num.samples", "key.deserializer")
    assert "max.poll.records" not in found.settings
    assert found.settings["client.id"] == "c"


def test_consumers_have_javas_defaults() -> None:
    """Where records or brokers would show another."""
    found = consumer(group_id="g")
    assert found["isolation.level"] == "read_uncommitted"
    assert found["allow.auto.create.topics"] is True
    assert consumer(group_id="g", isolation_level="read_committed")["isolation.level"] == (
        "read_committed"
    )


def test_consumer_without_a_group_commits_nothing() -> None:
    """One is named all the same, since librdkafka wants one."""
    found = consumer()
    assert found["group.id"] == "spare"
    assert found["enable.auto.commit"] is False
    assert "enable.auto.commit" not in consumer(group_id="g")


def test_values_of_consumers_are_translated() -> None:
    """Resets, assignors, timeouts and small fetches."""
    assert consumer(auto_offset_reset="none")["auto.offset.reset"] == "error"
    assignors = (
        "org.apache.kafka.clients.consumer.RangeAssignor, "
        "org.apache.kafka.clients.consumer.RoundRobinAssignor"
    )
    found = consumer(partition_assignment_strategy=assignors)
    assert found["partition.assignment.strategy"] == "range,roundrobin"
    found = consumer(request_timeout_ms=105_000)
    assert (found["socket.timeout.ms"], "request.timeout.ms" in found) == (105_000, False)
    found = consumer(fetch_max_bytes=1_024)
    assert found["fetch.max.bytes"] == found["message.max.bytes"] == 1_024
    assert refusal("consumer", {"fetch.max.bytes": 16}) == ""
    assert consumer(fetch_max_wait_ms=7)["fetch.wait.max.ms"] == 7
    assert consumer(receive_buffer_bytes="-1")["socket.receive.buffer.bytes"] == 0


def test_values_of_producers_are_translated() -> None:
    """Memory in kilobytes, Java's hash of keys and its time for a delivery."""
    found = producer(buffer_memory="65536", max_request_size=2_000)
    assert found["queue.buffering.max.kbytes"] == 64
    assert found["message.max.bytes"] == 2_000
    assert found["partitioner"] == "murmur2_random"
    assert found["delivery.timeout.ms"] == 120_000
    assert producer(request_timeout_ms=5)["request.timeout.ms"] == 5
    # librdkafka bounds deliveries by the transaction's timeout.
    assert "delivery.timeout.ms" not in producer(transactional_id="t")
    assert refusal("producer", {"transactional.id": "t", "bootstrap.servers": "b:1"}) == ""


def test_password_of_a_jaas_configuration_is_taken() -> None:
    """Of PLAIN and SCRAM; another module is left for librdkafka to refuse."""
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    jaas = f'{module} required username="ann" password="a\\"b";'
    found = producer(sasl_jaas_config=jaas)
    assert (found["sasl.username"], found["sasl.password"]) == ("ann", 'a"b')
    other = {"sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required;"}
    assert "not supported" in refusal("admin", other)


@pytest.mark.parametrize("name", ["buffer.memory", "fetch.max.bytes"])
def test_number_that_is_none_is_refused(name: str) -> None:
    """The error names the setting and its value."""
    translate = KINDS["producer" if name == "buffer.memory" else "consumer"][0]
    with pytest.raises(ClientFailed, match=f"{name} is 'much': give a whole number"):
        translate({name: "much"})
