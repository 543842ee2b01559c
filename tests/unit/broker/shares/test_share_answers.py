"""The stories of share groups in raw requests, as real brokers answered them, played at ours.

`tests/data/shares` is recorded by `tools.record_share_answers`.
"""

import json

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.kafka.profiles import profile_named
from tests.unit.broker.shares.share_clients import Clients
from tools.record_share_answers import RECORDINGS, Recording


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda each: each.name)
def test_share_groups_are_answered_as_at_a_real_broker(recording: Recording) -> None:
    """Every answer of the story, and every record of a dead-letter queue, field by field."""
    settings = ClusterSettings(
        profile=profile_named(recording.version.rpartition(".")[0]),
        given=dict(recording.settings),
        coordinator=CoordinatorConfig(offsets_topic_num_partitions=1),
        share_state_partitions=1,
        num_partitions=int(recording.settings.get("num.partitions", "1")),
    )
    cluster = Cluster(settings, endpoint=lambda _broker, _name: Endpoint("localhost", 9092))
    told = recording.story(Clients(cluster).connect).play()
    ours = [json.loads(line) for line in told]
    theirs = [json.loads(line) for line in recording.file.read_text("utf-8").splitlines()]
    assert [label for label, _ in ours] == [label for label, _ in theirs]
    different = [(mine, their) for mine, their in zip(ours, theirs, strict=True) if mine != their]
    assert different == []
