"""The stories about transactions, as real brokers answered them, told to ours.

`tests/data/transactions` is recorded by `tools.record_transactions`.
"""

import json
from pathlib import Path

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.metadata.changes import FeatureSet
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.messages.catalogue import API_NAMES, newest_version
from coordinator_sim_conformance.real_kafka.transaction_session import PARTITIONS, PROPERTIES
from coordinator_sim_conformance.real_kafka.transaction_stories import STORIES, told
from tests.unit.broker.fields_client import FieldsClient

DATA = Path(__file__).parents[2] / "data" / "transactions"
RECORDED = {"4.3": ("4.3.1", 2), "3.9": ("3.9.2", 0)}
"""For each profile the broker that was recorded, and its level of `transaction.version`."""


def recorded(version: str) -> dict[str, list[str]]:
    """The requests of each story at a real broker."""
    stories: dict[str, list[str]] = {}
    for line in (DATA / f"kafka-{version}.jsonl").read_text("utf-8").splitlines():
        name = json.loads(line).get("story")
        if name is not None:
            stories[name] = []
        else:
            stories[next(reversed(stories))].append(line)
    return stories


def served(profile: str, level: int) -> FieldsClient:
    """A cluster like the one that was recorded, which speaks everything there is."""
    settings = ClusterSettings(
        profile=profile_named(profile),
        num_partitions=PARTITIONS,
        transaction_partitions=int(PROPERTIES["transaction.state.log.num.partitions"]),
        coordinator=CoordinatorConfig(
            offsets_topic_num_partitions=int(PROPERTIES["offsets.topic.num.partitions"])
        ),
    )
    cluster = Cluster(settings, endpoint=lambda _broker, _name: Endpoint("localhost", 9092))
    cluster.change(FeatureSet("transaction.version", level))
    cluster.versions.ranges = {api: (0, newest_version(api)) for api in API_NAMES}
    return FieldsClient(cluster)


@pytest.fixture(scope="module", params=RECORDED)
def both(request: pytest.FixtureRequest) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """What the real broker and ours answered."""
    version, level = RECORDED[request.param]
    theirs = recorded(version)
    newest: dict[ApiKey, int] = {}
    for lines in theirs.values():
        for line in lines:
            found = json.loads(line)
            api = ApiKey[found["api"]]
            newest[api] = max(newest.get(api, 0), found["version"])
    client = served(request.param, level)
    return theirs, dict(told(client, newest))


@pytest.mark.parametrize("story", [story.__name__ for story in STORIES])
def test_a_story_ends_as_at_a_real_broker(
    both: tuple[dict[str, list[str]], dict[str, list[str]]], story: str
) -> None:
    """Every answer of it, field by field."""
    theirs, ours = both
    assert [json.loads(each) for each in ours[story]] == [
        json.loads(each) for each in theirs[story]
    ]
