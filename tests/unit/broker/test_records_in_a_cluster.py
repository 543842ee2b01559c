"""Records in a whole cluster: what operators do to brokers and partitions under requests."""

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.changes import ConfigsChanged
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim_conformance.field_frames import Fields
from tests.unit.broker.data_world import batch_of, partition_of
from tests.unit.broker.fields_client import START, FieldsClient

NOW = Instants(START, START)


@pytest.fixture
def cluster() -> Cluster:
    """Two brokers with a topic of one partition on both, led by broker 1."""
    cluster = Cluster(
        ClusterSettings(broker_ids=(1, 2)),
        endpoint=lambda broker_id, _: Endpoint("localhost", 9090 + broker_id),
    )
    cluster.topics.create("t", ((1, 2),), NOW)
    return cluster


@pytest.fixture
def client(cluster: Cluster) -> FieldsClient:
    """A client of broker 1."""
    return FieldsClient(cluster)


def _produced(client: FieldsClient, **fields: object) -> Fields:
    data = [{"index": 0, "records": batch_of(b"a")}]
    topics = [{"name": "t", "partitionData": data}]
    request: Fields = {"acks": 1, "timeoutMs": 1_000, "topicData": topics, **fields}
    return partition_of(client.call(ApiKey.PRODUCE, 12, request))


def _fetch(client: FieldsClient, **fields: object) -> Fields:
    terms = {"partition": 0, "fetchOffset": 0, "partitionMaxBytes": 1 << 20}
    topics = [{"topic": "t", "partitions": [terms]}]
    request: Fields = {"maxWaitMs": 0, "minBytes": 1, "topics": topics, **fields}
    return client.call(ApiKey.FETCH, 12, request)


def test_a_stopped_broker_forgets_its_fetch_sessions(
    cluster: Cluster, client: FieldsClient
) -> None:
    """Consumers found new ones when it is back."""
    session_id = _fetch(client, sessionEpoch=0)["sessionId"]
    cluster.operations.stop(1, NOW)
    cluster.operations.resume(1, NOW)
    answer = _fetch(client, sessionId=session_id, sessionEpoch=1, topics=[])
    assert answer["errorCode"] == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_held_high_watermark_keeps_acks_waiting_and_records_unseen(
    cluster: Cluster, client: FieldsClient
) -> None:
    """Until it is let go; only partitions that there are can be held."""
    cluster.operations.hold_high_watermark("t", 0, hold=True, now=NOW)
    assert _produced(client, acks=-1)["errorCode"] == ErrorCode.REQUEST_TIMED_OUT
    assert partition_of(_fetch(client))["records"] == b""
    cluster.operations.hold_high_watermark("t", 0, hold=False, now=NOW)
    assert partition_of(_fetch(client))["records"]
    with pytest.raises(ConfigError, match="no partition absent-0"):
        cluster.operations.hold_high_watermark("absent", 0, hold=True, now=NOW)


def test_another_leader_tells_its_epoch_and_goes_on(cluster: Cluster, client: FieldsClient) -> None:
    """All brokers share one log: nothing is lost, and the epoch says when it changed hands."""
    assert _produced(client)["errorCode"] == 0
    cluster.leadership.elect("t", 0, 2, NOW)
    refused = _produced(client)
    assert refused["errorCode"] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert refused["currentLeader"] == {"leaderId": 2, "leaderEpoch": 1}
    other = FieldsClient(cluster, broker_id=2)
    assert _produced(other)["baseOffset"] == 1
    terms = [{"partition": 0, "leaderEpoch": 0}]
    request: Fields = {"topics": [{"topic": "t", "partitions": terms}]}
    answer = partition_of(other.call(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, request))
    assert (answer["leaderEpoch"], answer["endOffset"]) == (0, 1)


def test_a_changed_setting_counts_for_the_next_append(
    cluster: Cluster, client: FieldsClient
) -> None:
    """A topic's own setting, and then one of all brokers."""
    cluster.change(ConfigsChanged(2, "t", {"max.message.bytes": "10"}))
    assert _produced(client)["errorCode"] == ErrorCode.MESSAGE_TOO_LARGE
    cluster.change(ConfigsChanged(2, "t", {"max.message.bytes": None}))
    assert _produced(client)["errorCode"] == 0
    cluster.change(ConfigsChanged(4, "", {"message.max.bytes": "10"}))
    assert _produced(client)["errorCode"] == ErrorCode.MESSAGE_TOO_LARGE
