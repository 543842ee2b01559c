"""The story of share groups in raw requests, as real brokers answered it, played at ours.

`tests/data/shares` is recorded by `tools.record_share_answers`.
"""

import json

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim_conformance.real_kafka.share_answers import SETTINGS
from coordinator_sim_conformance.real_kafka.share_story import ShareStory
from tests.unit.broker.shares.share_clients import Clients
from tools.record_share_answers import PLAYED, file_of


@pytest.mark.parametrize(("version", "api_version"), PLAYED)
def test_share_groups_are_answered_as_at_a_real_broker(version: str, api_version: int) -> None:
    """Every answer of the story, field by field."""
    settings = ClusterSettings(
        profile=profile_named(version.rpartition(".")[0]),
        given=dict(SETTINGS),
        coordinator=CoordinatorConfig(offsets_topic_num_partitions=1),
        share_state_partitions=1,
    )
    cluster = Cluster(settings, endpoint=lambda _broker, _name: Endpoint("localhost", 9092))
    told = ShareStory(Clients(cluster).connect, api_version).play()
    ours = [json.loads(line) for line in told]
    recorded = file_of(version, api_version).read_text("utf-8").splitlines()
    theirs = [json.loads(line) for line in recorded]
    assert [label for label, _ in ours] == [label for label, _ in theirs]
    different = [(mine, their) for mine, their in zip(ours, theirs, strict=True) if mine != their]
    assert different == []
