"""Topics in the days of ZooKeeper: other checks first, other words."""

import json
from pathlib import Path
from typing import Any

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim_conformance.field_frames import Fields
from tests.unit.broker.frames_client import DataClient

REFUSED = Path(__file__).with_name("refused_zookeeper_topics.jsonl")
"""Topics, and the error and words with which a broker of 2.8 refuses each."""


@pytest.fixture
def old() -> Cluster:
    """A cluster of 2.8 with the topic `orders` of two partitions."""
    settings = ClusterSettings(profile=profile_named("2.8"))
    cluster = Cluster(settings, endpoint=lambda _id, _name: Endpoint("h", 1))
    cluster.topics.create_spread("orders", 2, Instants(1, 1))
    return cluster


def topic(name: str, count: int = 1, factor: int = 1, **fields: Any) -> Fields:  # noqa: ANN401
    """An entry of CreateTopics."""
    entry: Fields = {"name": name, "numPartitions": count, "replicationFactor": factor}
    return entry | {"assignments": [], "configs": []} | fields


@pytest.mark.parametrize("line", REFUSED.read_text("utf-8").splitlines())
def test_refused_topic_says_why(old: Cluster, line: str) -> None:
    """Numbers are looked at before names."""
    case = json.loads(line)
    request = {"topics": [case["topic"]], "timeoutMs": 1_000, "validateOnly": False}
    (answer,) = DataClient(old).call(ApiKey.CREATE_TOPICS, 5, request)["topics"]

    assert answer["errorCode"] == ErrorCode[case["error"]]
    assert case["text"] in answer["errorMessage"]


@pytest.mark.parametrize(
    ("name", "count", "text"),
    [
        ("orders", 2, "Topic already has 2 partitions."),
        ("orders", 1, "Topic currently has 2 partitions, which is higher"),
        ("nothing", 3, "The topic 'nothing' does not exist."),
    ],
)
def test_refused_growth_says_why(old: Cluster, name: str, count: int, text: str) -> None:
    """The words of 2.8."""
    asked = {"name": name, "count": count, "assignments": None}
    request = {"topics": [asked], "timeoutMs": 1_000, "validateOnly": False}
    (answer,) = DataClient(old).call(ApiKey.CREATE_PARTITIONS, 3, request)["results"]

    assert text in answer["errorMessage"]


@pytest.mark.parametrize(
    ("replicas", "text"),
    [
        ([[]], "Cannot have replication factor of 0 for partition id 2."),
        ([[1, 1]], "Duplicate brokers not allowed in replica assignment: 1, 1 for partition id 2."),
        ([[7]], "Unknown broker(s) in replica assignment: 7."),
        ([[1], [1]], "Increasing the number of partitions by 1 but 2 assignments provided."),
    ],
)
def test_replicas_of_new_partitions_are_checked(
    old: Cluster, replicas: list[list[int]], text: str
) -> None:
    """What is refused adds nothing: a partition without a replica could not have a leader."""
    assignments = [{"brokerIds": ids} for ids in replicas]
    asked = {"name": "orders", "count": 3, "assignments": assignments}
    request = {"topics": [asked], "timeoutMs": 1_000, "validateOnly": False}
    (answer,) = DataClient(old).call(ApiKey.CREATE_PARTITIONS, 3, request)["results"]

    assert (answer["errorCode"], answer["errorMessage"]) == (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        text,
    )
    assert len(old.image.topics["orders"].partitions) == 2


def test_partitions_of_one_topic_have_as_many_replicas() -> None:
    """Both brokers live; the topic has one replica a partition."""
    settings = ClusterSettings(profile=profile_named("2.8"), broker_ids=(1, 2))
    cluster = Cluster(settings, endpoint=lambda _id, _name: Endpoint("h", 1))
    cluster.topics.create_spread("orders", 1, Instants(1, 1))
    asked = {"name": "orders", "count": 2, "assignments": [{"brokerIds": [1, 2]}]}
    request = {"topics": [asked], "timeoutMs": 1_000, "validateOnly": False}
    (answer,) = DataClient(cluster).call(ApiKey.CREATE_PARTITIONS, 3, request)["results"]

    assert answer["errorMessage"] == (
        "Inconsistent replication factor between partitions, partition 0 has 1 while partitions "
        "[1] have replication factors [2], respectively."
    )


def test_first_metadata_of_a_new_topic_has_no_leader_yet(old: Cluster) -> None:
    """Whoever has a topic made is told LEADER_NOT_AVAILABLE, then everything."""
    asked = {"topics": [{"name": "new"}], "allowAutoTopicCreation": True}
    client = DataClient(old)

    first = client.call(ApiKey.METADATA, 9, asked)["topics"][0]
    second = client.call(ApiKey.METADATA, 9, asked)["topics"][0]

    assert first["errorCode"] == ErrorCode.LEADER_NOT_AVAILABLE
    assert second["errorCode"] == 0


def test_topic_on_brokers_that_there_are_not_has_no_leader(old: Cluster) -> None:
    """ZooKeeper takes any broker's id, and the partition waits for it."""
    assignments = [{"partitionIndex": 0, "brokerIds": [7]}]
    asked = topic("far", -1, -1, assignments=assignments)
    request = {"topics": [asked], "timeoutMs": 1_000, "validateOnly": False}

    answer = DataClient(old).call(ApiKey.CREATE_TOPICS, 5, request)

    assert answer["topics"][0]["errorCode"] == 0
    assert old.image.topics["far"].partitions[0].leader_id == -1
