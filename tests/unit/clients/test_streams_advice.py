"""What the settings of a Kafka Streams application cause, and what is refused."""

import pytest

from coordinator_sim.clients.settings_advice import Weight
from coordinator_sim.clients.streams_advice import advise_streams

GOOD = {
    "application.id": "a",
    "bootstrap.servers": "b:9092",
    "group.instance.id": "a",
    "session.timeout.ms": "60000",
}
OF_PRODUCERS = """
    acks batch.size buffer.memory compression.gzip.level compression.lz4.level compression.type
    compression.zstd.level delivery.timeout.ms enable.idempotence key.serializer linger.ms
    max.block.ms max.in.flight.requests.per.connection max.request.size metadata.max.idle.ms
    partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.class
    partitioner.ignore.keys retries transaction.timeout.ms transaction.two.phase.commit.enable
    transactional.id value.serializer bootstrap.controllers
"""
"""Names of ProducerConfig and AdminClientConfig 4.3 that no consumer has."""


def test_settings_of_a_quiet_application_need_no_advice() -> None:
    """Static and patient; what is for producers, stores and the user's own classes is no typo."""
    others = {"producer.acks": "1", "topic.cleanup.policy": "compact", "my.store.path": "/x"}
    assert advise_streams({**GOOD, **others, "compression.type": "lz4"}) == []


@pytest.mark.parametrize("name", OF_PRODUCERS.split())
def test_settings_of_producers_and_admins_are_no_typos(name: str) -> None:
    """Streams hands them on without a prefix, too."""
    assert advise_streams({**GOOD, name: "x"}) == []


@pytest.mark.parametrize(
    ("changed", "setting", "weight", "words"),
    [
        ({"group.protocol": "consumer"}, "group.protocol", Weight.ERROR, "KIP-1071"),
        ({"group.protocol": "share"}, "group.protocol", Weight.ERROR, "does not start"),
        ({"group.protocol": "streams"}, "group.instance.id", Weight.ERROR, "no static members"),
        ({"group.protocol": "STREAMS"}, "session.timeout.ms", Weight.WARNING, "brokers decide"),
        (
            {"group.protocol": "streams", "num.standby.replicas": "1"},
            "num.standby.replicas",
            Weight.WARNING,
            "brokers decide it",
        ),
        (
            {"consumer.group.protocol": "consumer"},
            "consumer.group.protocol",
            Weight.WARNING,
            "does nothing",
        ),
        (
            {"group.remote.assignor": "uniform"},
            "group.remote.assignor",
            Weight.ERROR,
            "is not for Kafka Streams",
        ),
        (
            {"main.consumer.partition.assignment.strategy": "range"},
            "main.consumer.partition.assignment.strategy",
            Weight.WARNING,
            "brings its own assignor",
        ),
        ({"enable.auto.commit": "true"}, "enable.auto.commit", Weight.WARNING, "commits by itself"),
        (
            {"processing.guarantee": "exactly_once"},
            "processing.guarantee",
            Weight.ERROR,
            "does not start",
        ),
        (
            {"processing.guarantee": "exactly_once_v2", "commit.interval.ms": "30000"},
            "commit.interval.ms",
            Weight.ERROR,
            "a transaction would outlast",
        ),
        ({"group.instance.id": ""}, "group.instance.id", Weight.WARNING, "does not leave"),
        (
            {"main.consumer.session.timeout.ms": "5000"},
            "main.consumer.session.timeout.ms",
            Weight.ERROR,
            "INVALID_SESSION_TIMEOUT",
        ),
        (
            {"consumer.heartbeat.interval.ms": "30000"},
            "consumer.heartbeat.interval.ms",
            Weight.WARNING,
            "losing 1 in a row",
        ),
        ({"num.standby.replica": "1"}, "num.standby.replica", Weight.WARNING, "no setting of"),
    ],
)
def test_each_rule_names_setting_and_consequence(
    changed: dict[str, str], setting: str, weight: Weight, words: str
) -> None:
    """One setting is changed for the worse; it is named as it is written."""
    found = {each.setting: each for each in advise_streams({**GOOD, **changed})}
    assert found[setting].weight is weight
    assert words in found[setting].what


def test_last_prefix_counts() -> None:
    """main.consumer. goes before consumer., and that before none."""
    settings = {**GOOD, "session.timeout.ms": "1", "consumer.session.timeout.ms": "60000"}
    assert advise_streams(settings) == []
