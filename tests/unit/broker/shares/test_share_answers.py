"""The story of share groups in raw requests, as real brokers answered it, played at ours.

`tests/data/shares` is recorded by `tools.record_share_answers`.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim_conformance.real_kafka.dead_letter_story import (
    QUEUE_SETTINGS,
    DeadLetterStory,
)
from coordinator_sim_conformance.real_kafka.kafka import BROKER_VERSION
from coordinator_sim_conformance.real_kafka.share_answers import SETTINGS
from coordinator_sim_conformance.real_kafka.share_story import ShareStory
from tests.unit.broker.shares.share_clients import Clients
from tools.record_share_answers import PLAYED, file_of, queue_file_of


@pytest.mark.parametrize(("version", "api_version"), PLAYED)
def test_share_groups_are_answered_as_at_a_real_broker(version: str, api_version: int) -> None:
    """Every answer of the story, field by field."""
    cluster = cluster_of(version, SETTINGS)
    told = ShareStory(Clients(cluster).connect, api_version).play()
    assert differences(told, file_of(version, api_version)) == []


def test_dead_letters_are_those_of_a_real_broker() -> None:
    """Every answer of the story, and every record of the queues, field by field."""
    cluster = cluster_of(BROKER_VERSION, QUEUE_SETTINGS)
    told = DeadLetterStory(Clients(cluster).connect).play()
    assert differences(told, queue_file_of(BROKER_VERSION)) == []


def cluster_of(version: str, given: Mapping[str, str]) -> Cluster:
    """A cluster of one broker, set as the real one."""
    settings = ClusterSettings(
        profile=profile_named(version.rpartition(".")[0]),
        given=dict(given),
        coordinator=CoordinatorConfig(offsets_topic_num_partitions=1),
        share_state_partitions=1,
        num_partitions=int(given.get("num.partitions", "1")),
    )
    return Cluster(settings, endpoint=lambda _broker, _name: Endpoint("localhost", 9092))


def differences(told: list[str], recorded: Path) -> list[object]:
    """Our answers that differ from the recorded ones, in pairs."""
    ours = [json.loads(line) for line in told]
    theirs = [json.loads(line) for line in recorded.read_text("utf-8").splitlines()]
    assert [label for label, _ in ours] == [label for label, _ in theirs]
    return [(mine, their) for mine, their in zip(ours, theirs, strict=True) if mine != their]
