"""Requests of a controller of ZooKeeper's days, as brokers of 0.10.2.2 were seen to answer them.

`tests/data/control_requests` is recorded by `tools.record_control_requests`.
"""

import json

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.image import NO_LEADER
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.api_versions import recorded_versions
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC, partition_for
from coordinator_sim.kafka.profiles import PROFILES
from coordinator_sim.messages.catalogue import CONTROL_APIS
from coordinator_sim.messages.codec.frames import RequestHeader
from coordinator_sim_conformance.field_frames import read_response_frame, request_frame
from tests.unit.broker.fields_client import FieldsClient
from tests.unit.broker.frames_client import FramesClient
from tools.record_control_requests import FOLDER, STORIES


def served(*, brokers: int = 1, profile: str = "0.10.2", guarded: bool = False) -> Cluster:
    """A cluster; a guarded one has an authorizer without rules."""
    given = {"auto.create.topics.enable": "false"}
    if guarded:
        given["authorizer.class.name"] = "kafka.security.auth.SimpleAclAuthorizer"
    settings = ClusterSettings(
        profile=PROFILES[profile], broker_ids=tuple(range(1, brokers + 1)), given=given
    )
    return Cluster(settings, endpoint=lambda _broker, _name: Endpoint("localhost", 9092))


@pytest.mark.parametrize("story", STORIES)
def test_control_requests_are_answered_as_by_a_real_broker(story: str) -> None:
    """Every answer in its order, and the leaders that metadata names between them."""
    brokers = 2 if story == "shut_down" else 1
    cluster = served(brokers=brokers, guarded=story == "refused")
    clients = [FieldsClient(cluster, each, number=each) for each in range(1, brokers + 1)]

    ours = [json.loads(line) for line in STORIES[story](*clients)]

    recorded = (FOLDER / f"{story}.jsonl").read_text("utf-8").splitlines()
    assert ours == [json.loads(line) for line in recorded]


def test_only_0_10_2_offers_control_requests() -> None:
    """All that its source lists are offered; of 2.8's, the newest versions are not spoken here."""
    ranges = served().versions.ranges
    assert list(ranges) == list(recorded_versions(PROFILES["0.10.2"]).ranges)
    for name in PROFILES:
        if name != "0.10.2":
            assert not set(CONTROL_APIS) & set(served(profile=name).versions.ranges), name


def committing(client: FieldsClient) -> ErrorCode:
    """The error of a commit of the group g."""
    partitions = [{"partitionIndex": 0, "committedOffset": 5, "committedMetadata": ""}]
    fields = {"groupId": "g", "topics": [{"name": "t", "partitions": partitions}]}
    answer = client.call(ApiKey.OFFSET_COMMIT, 2, fields)
    return ErrorCode(answer["topics"][0]["partitions"][0]["errorCode"])


def with_a_coordinator() -> tuple[Cluster, dict[int, FieldsClient], int, int]:
    """Two brokers and a topic, clients of both, the coordinator of g, and its partition."""
    cluster = served(brokers=2)
    clients = {each: FieldsClient(cluster, each, number=each) for each in (1, 2)}
    topic = {"name": "t", "numPartitions": 1, "replicationFactor": 2}
    clients[1].call(ApiKey.CREATE_TOPICS, 1, {"topics": [topic], "timeoutMs": 1_000})
    clients[1].call(ApiKey.FIND_COORDINATOR, 0, {"key": "g"})
    clients[1].wait(1_000)
    found = clients[1].call(ApiKey.FIND_COORDINATOR, 0, {"key": "g"})
    return cluster, clients, found["nodeId"], partition_for("g", 50)


def test_a_broker_that_becomes_follower_gives_its_groups_away() -> None:
    """LeaderAndIsr names another leader of an offsets partition; its groups are there from then."""
    cluster, clients, old, partition = with_a_coordinator()
    new = 3 - old
    assert committing(clients[old]) is ErrorCode.NONE

    state = {
        "topicName": OFFSETS_TOPIC,
        "partitionIndex": partition,
        "controllerEpoch": 1,
        "leader": new,
        "leaderEpoch": 7,
        "isr": [new],
        "replicas": [old, new],
    }
    fields = {"controllerId": 1, "controllerEpoch": 1, "ungroupedPartitionStates": [state]}
    clients[old].call(ApiKey.LEADER_AND_ISR, 0, fields)
    clients[old].wait(1_000)

    assert committing(clients[old]) is ErrorCode.NOT_COORDINATOR
    assert committing(clients[new]) is ErrorCode.NONE
    found = cluster.image.partition(OFFSETS_TOPIC, partition)
    assert found is not None
    assert (found.leader_id, found.leader_epoch, found.isr) == (new, 7, (new,))


def test_a_broker_whose_replica_is_deleted_coordinates_no_more() -> None:
    """StopReplica with deletion of an offsets partition; without deletion nothing changes."""
    _, clients, leader, partition = with_a_coordinator()
    fields = {
        "controllerEpoch": 1,
        "ungroupedPartitions": [{"topicName": OFFSETS_TOPIC, "partitionIndex": partition}],
    }
    clients[leader].call(ApiKey.STOP_REPLICA, 0, {**fields, "deletePartitions": False})
    assert committing(clients[leader]) is ErrorCode.NONE

    clients[leader].call(ApiKey.STOP_REPLICA, 0, {**fields, "deletePartitions": True})

    assert committing(clients[leader]) is ErrorCode.NOT_COORDINATOR


def test_replica_that_is_deleted_before_its_topic_exists_is_forgotten() -> None:
    """The topic that is created then has leader epoch 0, and an equal one is stale."""
    cluster = served()
    client = FieldsClient(cluster)
    partition = {"topicName": "t", "partitionIndex": 0}
    stop = {"controllerEpoch": 1, "deletePartitions": True, "ungroupedPartitions": [partition]}
    client.call(ApiKey.STOP_REPLICA, 0, stop)
    cluster.topics.create_spread("t", 1, cluster.latest)

    state = partition | {
        "controllerEpoch": 1,
        "leader": 1,
        "leaderEpoch": 0,
        "isr": [1],
        "replicas": [1],
    }
    fields = {"controllerId": 1, "controllerEpoch": 1, "ungroupedPartitionStates": [state]}
    answer = client.call(ApiKey.LEADER_AND_ISR, 0, fields)

    (result,) = answer["partitionErrors"]
    assert result["errorCode"] == ErrorCode.STALE_CONTROLLER_EPOCH


def test_a_broker_that_shuts_down_gives_its_leaderships_away() -> None:
    """It leads nothing more when others are lost, until it has been away and is back."""
    cluster, clients, _, _ = with_a_coordinator()
    cluster.operations.election_delay_ms = 0
    answer = clients[1].call(ApiKey.CONTROLLED_SHUTDOWN, 1, {"brokerId": 2})
    assert answer == {"errorCode": 0, "remainingPartitions": []}
    state = cluster.image.topics["t"].partitions[0]
    assert (state.leader_id, state.isr) == (1, (1,))

    cluster.operations.stop(1, cluster.latest)
    assert state.leader_id == NO_LEADER
    cluster.operations.resume(1, cluster.latest)
    assert (state.leader_id, state.isr) == (1, (1,))

    cluster.operations.stop(2, cluster.latest)
    cluster.operations.resume(2, cluster.latest)
    assert state.isr == (1, 2)
    cluster.operations.stop(1, cluster.latest)
    assert state.leader_id == 2


def test_any_version_of_controlled_shutdown_is_read() -> None:
    """From version 1 on the header has a client id; one that is not offered is read as 1."""
    for version, client_id in ((0, None), (1, "c"), (5, "c")):
        client = FramesClient(served())
        header = RequestHeader(
            api_key=ApiKey.CONTROLLED_SHUTDOWN,
            api_version=min(version, 1),
            correlation_id=7,
            client_id=client_id,
        )
        frame = bytearray(request_frame(header, {"brokerId": 9}))
        frame[2:4] = version.to_bytes(2, "big")
        client.connection.received(bytes(frame), Instants(0, 0))

        answer = read_response_frame(ApiKey.CONTROLLED_SHUTDOWN, 1, client.frames[0])
        assert answer == (7, {"errorCode": 8, "remainingPartitions": []})
