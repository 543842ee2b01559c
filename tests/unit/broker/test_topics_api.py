"""CreateTopics, DeleteTopics, CreatePartitions: what is made, and what is refused and how."""

import json
from pathlib import Path
from typing import Any

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.schema import ZERO_UUID
from coordinator_sim_conformance.field_frames import Fields
from tests.unit.broker.frames_client import DataClient

REFUSED = Path(__file__).with_name("refused_topics.jsonl")
"""Topics, and the error and words with which each is refused."""


def topic(name: str, partitions: int = 1, factor: int = 1, **fields: Any) -> Fields:  # noqa: ANN401
    """An entry of CreateTopics."""
    entry: Fields = {
        "name": name,
        "numPartitions": partitions,
        "replicationFactor": factor,
        "assignments": [],
        "configs": [],
    }
    return entry | fields


def config(name: str, value: str | None) -> Fields:
    """A setting of a new topic."""
    return {"name": name, "value": value}


def assigned(*replicas: list[int], first: int = 0) -> list[Fields]:
    """Partitions with replicas that the client chose."""
    return [
        {"partitionIndex": index, "brokerIds": each} for index, each in enumerate(replicas, first)
    ]


def create(cluster: Cluster, *topics: Fields, only: bool = False) -> list[Fields]:
    """Results of CreateTopics 7."""
    request = {"topics": list(topics), "timeoutMs": 1000, "validateOnly": only}
    found: list[Fields] = DataClient(cluster).call(ApiKey.CREATE_TOPICS, 7, request)["topics"]
    return found


def test_new_topic_is_described_with_its_settings(cluster: Cluster) -> None:
    """The answer tells the id, the shape and where each setting comes from."""
    asked = topic("orders", 3, configs=[config("retention.ms", "5000")])

    (made,) = create(cluster, asked)

    assert made["errorCode"] == 0
    assert made["topicId"] == cluster.image.topics["orders"].topic_id
    assert (made["numPartitions"], made["replicationFactor"]) == (3, 1)
    configs = {each["name"]: (each["value"], each["configSource"]) for each in made["configs"]}
    assert configs["retention.ms"] == ("5000", 1)
    assert configs["cleanup.policy"] == ("delete", 5)
    assert "internal.segment.bytes" not in configs


@pytest.mark.parametrize("line", REFUSED.read_text("utf-8").splitlines())
def test_refused_topic_says_why(cluster: Cluster, line: str) -> None:
    """Each refusal has Kafka's error and words, and nothing is made."""
    case = json.loads(line)
    before = list(cluster.image.topics)

    (refused,) = create(cluster, case["topic"])

    assert refused["errorCode"] == ErrorCode[case["error"]]
    assert case["text"] in refused["errorMessage"]
    assert list(cluster.image.topics) == before


def test_request_of_too_many_partitions_makes_none(cluster: Cluster) -> None:
    """All topics of the request are refused, however few partitions each has."""
    before = list(cluster.image.topics)

    results = create(cluster, topic("one", 1), topic("two", 10_000))
    (grown,) = DataClient(cluster).call(
        ApiKey.CREATE_PARTITIONS,
        3,
        {
            "topics": [{"name": before[0], "count": 20_000, "assignments": None}],
            "timeoutMs": 1000,
            "validateOnly": False,
        },
    )["results"]

    codes = [each["errorCode"] for each in (*results, grown)]
    assert codes == [ErrorCode.POLICY_VIOLATION] * 3
    assert list(cluster.image.topics) == before


def test_name_that_comes_twice_is_refused_once(cluster: Cluster) -> None:
    """A request with one name twice makes none of the two."""
    other, twice = create(cluster, topic("a"), topic("b"), topic("a"))

    assert (other["name"], other["errorCode"]) == ("b", 0)
    assert (twice["name"], twice["errorMessage"]) == ("a", "Duplicate topic name.")


def test_validation_only_makes_nothing(cluster: Cluster) -> None:
    """With validateOnly the answer is that of a success."""
    (planned,) = create(cluster, topic("orders", 2), only=True)

    assert planned["errorCode"] == 0
    assert "orders" not in cluster.image.topics


def delete(cluster: Cluster, *topics: Fields) -> list[Fields]:
    """Results of DeleteTopics 6."""
    request = {"topics": list(topics), "timeoutMs": 1000}
    found: list[Fields] = DataClient(cluster).call(ApiKey.DELETE_TOPICS, 6, request)["responses"]
    return found


def test_topic_is_deleted_by_its_id(cluster: Cluster) -> None:
    """The answer names the topic, which is gone."""
    (made,) = create(cluster, topic("orders"))

    (gone,) = delete(cluster, {"name": None, "topicId": made["topicId"]})

    assert (gone["name"], gone["errorCode"]) == ("orders", 0)
    assert "orders" not in cluster.image.topics


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"name": None, "topicId": ZERO_UUID}, ErrorCode.INVALID_REQUEST),
        ({"name": "orders", "topicId": b"1" * 16}, ErrorCode.INVALID_REQUEST),
        ({"name": None, "topicId": b"1" * 16}, ErrorCode.UNKNOWN_TOPIC_ID),
        ({"name": "nothing", "topicId": ZERO_UUID}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_deletion_of_nothing_is_refused(cluster: Cluster, asked: Fields, error: ErrorCode) -> None:
    """Neither or both of name and id, or one that is not known."""
    (refused,) = delete(cluster, asked)

    assert refused["errorCode"] == error


def grow(cluster: Cluster, name: str, count: int, *replicas: list[int]) -> Fields:
    """The result of CreatePartitions for one topic."""
    assignments = [{"brokerIds": each} for each in replicas] or None
    asked = {"name": name, "count": count, "assignments": assignments}
    request = {"topics": [asked], "timeoutMs": 1000, "validateOnly": False}
    (result,) = DataClient(cluster).call(ApiKey.CREATE_PARTITIONS, 3, request)["results"]
    found: Fields = result
    return found


def test_partitions_are_added_behind_the_others(cluster: Cluster) -> None:
    """The topic has as many as asked for."""
    create(cluster, topic("orders", 2))

    assert grow(cluster, "orders", 5)["errorCode"] == 0
    assert len(cluster.image.topics["orders"].partitions) == 5


@pytest.mark.parametrize(
    ("count", "replicas", "error"),
    [
        (2, (), ErrorCode.INVALID_PARTITIONS),
        (1, (), ErrorCode.INVALID_PARTITIONS),
        (4, ([1],), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, ([5],), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_refused_growth_changes_nothing(
    cluster: Cluster, count: int, replicas: tuple[list[int], ...], error: ErrorCode
) -> None:
    """No increase, too few assignments, an unknown broker."""
    create(cluster, topic("orders", 2))

    assert grow(cluster, "orders", count, *replicas)["errorCode"] == error
    assert len(cluster.image.topics["orders"].partitions) == 2
