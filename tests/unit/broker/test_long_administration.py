"""Long requests of administrators, in slices: others are answered, and may be faster."""

from collections.abc import Callable

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.schema import ZERO_UUID
from coordinator_sim_conformance.field_frames import Fields, read_response_frame
from tests.unit.broker.fields_client import START, FieldsClient

COUNT = 400
NAMES = [f"topic-{index:03}" for index in range(COUNT)]


def creation(*names: str) -> Fields:
    """A CreateTopics request."""
    topics = [{"name": name, "numPartitions": 1, "replicationFactor": 1} for name in names]
    return {"topics": topics, "timeoutMs": 1_000}


def deletion(*names: str) -> Fields:
    """A DeleteTopics request."""
    topics = [{"name": name, "topicId": ZERO_UUID} for name in names]
    return {"topics": topics, "timeoutMs": 1_000}


def description(*names: str) -> Fields:
    """A DescribeConfigs request."""
    return {"resources": [{"resourceType": 2, "resourceName": name} for name in names]}


def alteration(*names: str) -> Fields:
    """An IncrementalAlterConfigs request."""
    configs = [{"name": "retention.ms", "configOperation": 0, "value": "5000"}]
    return {
        "resources": [
            {"resourceType": 2, "resourceName": name, "configs": configs} for name in names
        ]
    }


def metadata(*names: str) -> Fields:
    """A Metadata request."""
    return {"topics": [{"name": name, "topicId": ZERO_UUID} for name in names]}


def first_partitions(*names: str) -> Fields:
    """A DeleteRecords, DescribeProducers or OffsetForLeaderEpoch request."""
    partitions = [{"partitionIndex": 0, "offset": 0, "partition": 0, "leaderEpoch": 0}]
    topics = [
        {"name": name, "topic": name, "partitions": partitions, "partitionIndexes": [0]}
        for name in names
    ]
    return {"topics": topics, "replicaId": -1}


def finished(client: FieldsClient, api: ApiKey, version: int) -> Fields:
    """The answer to what a client began, worked on to its end."""
    cluster = client.cluster
    while cluster.has_work:
        cluster.work(Instants(START, START))
    (frame,) = client.answered
    return read_response_frame(api, version, frame)[1]


@pytest.mark.parametrize(
    ("api", "version", "request_of"),
    [
        (ApiKey.CREATE_TOPICS, 7, creation),
        (ApiKey.DELETE_TOPICS, 6, deletion),
        (ApiKey.DESCRIBE_CONFIGS, 4, description),
        (ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, alteration),
        (ApiKey.METADATA, 12, metadata),
        (ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, metadata),
        (ApiKey.DELETE_RECORDS, 2, first_partitions),
        (ApiKey.DESCRIBE_PRODUCERS, 0, first_partitions),
        (ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, first_partitions),
    ],
)
def test_others_are_answered_before_a_long_request_ends(
    cluster: Cluster, api: ApiKey, version: int, request_of: Callable[..., Fields]
) -> None:
    """A request of 400 topics takes several slices."""
    long, short = FieldsClient(cluster, number=1), FieldsClient(cluster, number=2)
    if api is not ApiKey.CREATE_TOPICS:
        long.call(ApiKey.CREATE_TOPICS, 7, creation(*NAMES))
    long.begin(api, version, request_of(*NAMES))
    short.begin(ApiKey.METADATA, 1, {"topics": []})

    assert not long.answered
    assert short.answered
    assert finished(long, api, version)


def test_topic_that_another_creates_meanwhile_exists_already(cluster: Cluster) -> None:
    """The faster request wins the last topic; the long one creates all others."""
    long, short = FieldsClient(cluster, number=1), FieldsClient(cluster, number=2)
    long.begin(ApiKey.CREATE_TOPICS, 7, creation(*NAMES))
    short.begin(ApiKey.CREATE_TOPICS, 7, creation(NAMES[-1]))
    topic_id = cluster.image.topics[NAMES[-1]].topic_id

    *others, last = finished(long, ApiKey.CREATE_TOPICS, 7)["topics"]
    assert {each["errorCode"] for each in others} == {ErrorCode.NONE}
    assert last["errorCode"] == ErrorCode.TOPIC_ALREADY_EXISTS
    assert cluster.image.topics[NAMES[-1]].topic_id == topic_id


def test_topic_that_another_deletes_meanwhile_is_unknown(cluster: Cluster) -> None:
    """The faster request deletes the last topic; one that is created anew is left alone."""
    long, short = FieldsClient(cluster, number=1), FieldsClient(cluster, number=2)
    short.call(ApiKey.CREATE_TOPICS, 7, creation(*NAMES))
    long.begin(ApiKey.DELETE_TOPICS, 6, deletion(*NAMES))
    short.begin(ApiKey.DELETE_TOPICS, 6, deletion(NAMES[-1]))
    short.begin(ApiKey.CREATE_TOPICS, 7, creation(NAMES[-1]))

    *others, last = finished(long, ApiKey.DELETE_TOPICS, 6)["responses"]
    assert {each["errorCode"] for each in others} == {ErrorCode.NONE}
    assert last["errorCode"] == ErrorCode.UNKNOWN_TOPIC_ID
    assert list(cluster.image.topics) == ["__consumer_offsets", NAMES[-1]]
