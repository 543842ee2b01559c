"""What the settings of a Kafka Streams application cause, and what is refused."""

import json
from pathlib import Path

import pytest

from coordinator_sim.clients.streams_advice import advise_streams

GOOD = {
    "application.id": "a",
    "bootstrap.servers": "b:9092",
    "group.instance.id": "a",
    "session.timeout.ms": "60000",
}
ADVICE = Path(__file__).with_name("streams_advice.jsonl")
"""Changed settings, the one that is named, its weight, and words of the advice."""
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


@pytest.mark.parametrize("line", ADVICE.read_text("utf-8").splitlines())
def test_each_rule_names_setting_and_consequence(line: str) -> None:
    """One setting is changed for the worse; it is named as it is written."""
    case = json.loads(line)
    found = {each.setting: each for each in advise_streams({**GOOD, **case["changed"]})}
    assert found[case["setting"]].weight.name == case["weight"]
    assert case["words"] in found[case["setting"]].what


def test_last_prefix_counts() -> None:
    """main.consumer. goes before consumer., and that before none."""
    settings = {**GOOD, "session.timeout.ms": "1", "consumer.session.timeout.ms": "60000"}
    assert advise_streams(settings) == []
