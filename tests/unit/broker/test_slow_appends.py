"""Appends that complete late: of one request by a fault rule, or all of a partition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.faults.faults import Fault, Match, SlowAppend
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC
from coordinator_sim_conformance.field_frames import Fields
from tests.unit.broker.data_world import batch_of, partition_of
from tests.unit.broker.fields_client import START, FieldsClient

NOW = Instants(START, START)


def made(brokers: int = 1) -> Cluster:
    """Brokers with a topic of one partition and one offsets partition, led by broker 1."""
    cluster = Cluster(
        ClusterSettings(
            broker_ids=tuple(range(1, brokers + 1)),
            coordinator=CoordinatorConfig(offsets_topic_num_partitions=1),
        ),
        endpoint=lambda broker_id, _: Endpoint("localhost", 9090 + broker_id),
    )
    cluster.topics.create("t", ((1,),), NOW)
    cluster.topics.create_asked_for(OFFSETS_TOPIC, NOW)
    return cluster


@pytest.fixture
def cluster() -> Cluster:
    """One broker."""
    return made()


@pytest.fixture
def client(cluster: Cluster) -> FieldsClient:
    """A client of it."""
    return FieldsClient(cluster)


def produced(client: FieldsClient, acks: int = -1) -> tuple[int, int]:
    """Error of a Produce, and how long its answer took."""
    began_ms = client.now_ms
    data = [{"index": 0, "records": batch_of(b"a")}]
    request: Fields = {
        "acks": acks,
        "timeoutMs": 1_000,
        "topicData": [{"name": "t", "partitionData": data}],
    }
    told = partition_of(client.call(ApiKey.PRODUCE, 12, request))
    return told["errorCode"], client.now_ms - began_ms


def committed(client: FieldsClient, offset: int) -> tuple[int, int]:
    """Error of a commit, and how long its answer took."""
    began_ms = client.now_ms
    partition = {"partitionIndex": 0, "committedOffset": offset}
    request: Fields = {
        "groupId": "g",
        "generationIdOrMemberEpoch": -1,
        "memberId": "",
        "topics": [{"name": "t", "partitions": [partition]}],
    }
    answer = client.call(ApiKey.OFFSET_COMMIT, 8, request)
    return answer["topics"][0]["partitions"][0]["errorCode"], client.now_ms - began_ms


def test_rule_lets_the_appends_of_a_request_complete_late(
    cluster: Cluster, client: FieldsClient
) -> None:
    """acks=-1 waits for the replicas and acks=1 does not; other requests are on time."""
    cluster.faults.add(Fault(match=Match(api="Produce"), action=SlowAppend(250), times=2))
    assert produced(client, acks=1) == (ErrorCode.NONE, 0)
    client.wait(300)
    assert produced(client) == (ErrorCode.NONE, 250)
    assert produced(client) == (ErrorCode.NONE, 0)
    assert committed(client, 1) == (ErrorCode.NONE, 0)


def test_slow_commit_is_answered_when_it_is_replicated(
    cluster: Cluster, client: FieldsClient
) -> None:
    """A coordinator does not acknowledge what only its leader has."""
    cluster.faults.add(Fault(match=Match(api="OffsetCommit"), action=SlowAppend(250), times=1))
    assert committed(client, 1) == (ErrorCode.NONE, 250)
    assert committed(client, 2) == (ErrorCode.NONE, 0)


@pytest.mark.parametrize(
    ("request_", "error", "after_ms"),
    [("Produce", ErrorCode.REQUEST_TIMED_OUT, 1_000), ("OffsetCommit", None, 5_000)],
)
def test_append_that_is_too_slow_times_out(
    cluster: Cluster, client: FieldsClient, request_: str, error: ErrorCode | None, after_ms: int
) -> None:
    """A Produce by its own timeout, a commit by offsets.commit.timeout.ms."""
    cluster.faults.add(Fault(match=Match(api=request_), action=SlowAppend(60_000)))
    told = produced(client) if request_ == "Produce" else committed(client, 1)
    assert told == (error or ErrorCode.COORDINATOR_NOT_AVAILABLE, after_ms)


def test_partition_is_slow_until_it_is_on_time_again(
    cluster: Cluster, client: FieldsClient
) -> None:
    """Every append to the offsets topic is late, and none to another."""
    slow = cluster.operations.slow_appends
    slow.set_delay(OFFSETS_TOPIC, None, 100)
    assert slow.delay_of(OFFSETS_TOPIC, 0) == 100
    assert [committed(client, 1)[1], committed(client, 2)[1], produced(client)[1]] == [100, 100, 0]
    slow.set_delay(OFFSETS_TOPIC, 0, 0)
    assert committed(client, 3) == (ErrorCode.NONE, 0)


def test_append_behind_a_late_one_waits_for_it(cluster: Cluster, client: FieldsClient) -> None:
    """The high watermark skips nothing: the second is on time and is answered with the first."""
    cluster.faults.add(Fault(match=Match(api="Produce"), action=SlowAppend(250), times=1))
    produced(client, acks=1)
    assert produced(client) == (ErrorCode.NONE, 250)


def test_next_leader_is_on_time(client: FieldsClient) -> None:
    """Its followers are others; the delay of a partition that goes on is kept."""
    cluster = made(brokers=2)
    client = FieldsClient(cluster)
    cluster.faults.add(Fault(action=SlowAppend(4_000), times=1, match=Match(api="OffsetCommit")))
    partition = cluster.image.topics[OFFSETS_TOPIC].partitions[0]
    client = FieldsClient(cluster, partition.leader_id)
    moved = cluster.operations
    cluster.scheduler.at_wall_ms(START + 100, lambda now: moved.move_coordinator("g", None, now))
    assert committed(client, 1) == (ErrorCode.NOT_COORDINATOR, 100)
    other = FieldsClient(cluster, partition.leader_id)
    other.now_ms = client.now_ms
    other.wait(1)
    assert committed(other, 2) == (ErrorCode.NONE, 0)
    other.wait(5_000)
    assert committed(other, 3) == (ErrorCode.NONE, 0)


def test_topic_of_the_same_name_is_on_time(cluster: Cluster, client: FieldsClient) -> None:
    """A delay ends with its topic, also while an append of the old one is late."""
    cluster.operations.slow_appends.set_delay("t", 0, 500)
    produced(client, acks=1)
    cluster.topics.delete("t", NOW)
    cluster.topics.create("t", ((1,),), NOW)
    assert produced(client) == (ErrorCode.NONE, 0)


@pytest.mark.parametrize(
    ("topic", "partition", "reason"),
    [
        ("absent", None, "there is no partition absent: create the topic first"),
        ("t", 1, "there is no partition t-1"),
        ("__transaction_state", 0, "complete at once here"),
    ],
)
def test_partition_that_cannot_be_slow_is_refused(
    cluster: Cluster, topic: str, partition: int | None, reason: str
) -> None:
    """One line says why."""
    cluster.topics.create_asked_for("__transaction_state", NOW)
    with pytest.raises(ConfigError, match=reason):
        cluster.operations.slow_appends.set_delay(topic, partition, 5)


@given(appends=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 50)), min_size=1, max_size=12))
def test_high_watermark_never_passes_a_late_append(appends: list[tuple[int, int]]) -> None:
    """At every instant it stands before the first append that is late, and nowhere else."""
    cluster = made()
    client = FieldsClient(cluster)
    log = cluster.logs.log_of("t", 0)
    assert log is not None
    due: list[int] = []
    for gap_ms, delay_ms in appends:
        for _ in range(gap_ms):
            client.wait(1)
            assert log.high_watermark == next(
                (at for at, each in enumerate(due) if each > client.now_ms), len(due)
            )
        cluster.operations.slow_appends.set_delay("t", 0, delay_ms)
        produced(client, acks=1)
        due.append(client.now_ms + delay_ms)
    client.wait(51)
    assert log.high_watermark == len(due) == log.end_offset
