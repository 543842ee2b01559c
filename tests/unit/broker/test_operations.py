"""Brokers stopped, frozen and cut off, and leaders moved, without a socket."""

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.operations import BrokerStatus
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC, partition_for
from coordinator_sim.messages import join_group, offset_commit
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.sync_group import SyncGroupRequest
from tests.unit.broker.frames_client import FramesClient

START_MS = 1_000_000


def at(ms: int) -> Instants:
    """The instant so many milliseconds after the start, on both clocks."""
    return Instants(START_MS + ms, START_MS + ms)


@pytest.fixture
def three() -> Cluster:
    """Three brokers without an initial rebalance delay, and a topic."""
    settings = ClusterSettings(
        broker_ids=(1, 2, 3),
        coordinator=CoordinatorConfig(
            offsets_topic_num_partitions=3, group_initial_rebalance_delay_ms=0
        ),
    )
    cluster = Cluster(
        settings, endpoint=lambda broker_id, _name: Endpoint("localhost", 9091 + broker_id)
    )
    cluster.topics.create_asked_for(OFFSETS_TOPIC, at(0))
    cluster.topics.create_spread("t", 1, at(0))
    return cluster


def coordinator_of(cluster: Cluster, group: str) -> int:
    """The leader of a group's offsets partition."""
    return cluster.image.topics[OFFSETS_TOPIC].partitions[partition_for(group, 3)].leader_id


def join(member_id: str = "") -> join_group.JoinGroupRequest:
    """A JoinGroup of group g."""
    return join_group.JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=(join_group.JoinGroupRequestProtocol("range", b"x"),),
    )


def stable_member(cluster: Cluster, group: str = "g") -> tuple[FramesClient, str]:
    """A client that is the one member of group g, in generation 1."""
    client = FramesClient(cluster, coordinator_of(cluster, group))
    client.send(join(), 3)
    joined = client.answers()[-1][1]
    assert isinstance(joined, join_group.JoinGroupResponse)
    sync = SyncGroupRequest(group_id=group, generation_id=1, member_id=joined.member_id)
    client.send(sync, 3)
    return client, joined.member_id


def heartbeat(cluster: Cluster, member_id: str) -> ErrorCode:
    """What the present coordinator tells a member of generation 1."""
    client = FramesClient(cluster, coordinator_of(cluster, "g"), number=9)
    client.send(HeartbeatRequest(group_id="g", generation_id=1, member_id=member_id), 3)
    answer = client.answers()[-1][1]
    assert isinstance(answer, HeartbeatResponse)
    return answer.error_code


def commit(member_id: str, offset: int) -> offset_commit.OffsetCommitRequest:
    """A commit of t-0 in generation 1."""
    topic = offset_commit.OffsetCommitRequestTopic(
        "t",
        partitions=(
            offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset),
        ),
    )
    return offset_commit.OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=1, member_id=member_id, topics=(topic,)
    )


def test_successor_of_a_stopped_coordinator_has_its_groups(three: Cluster) -> None:
    """After the delay the next replica leads at a higher epoch and knows the member."""
    _, member_id = stable_member(three)
    old_id = coordinator_of(three, "g")

    three.operations.stop(old_id, at(0))
    three.expire(at(999))
    assert coordinator_of(three, "g") == old_id
    three.expire(at(1_000))

    state = three.image.topics[OFFSETS_TOPIC].partitions[partition_for("g", 3)]
    assert state.leader_id != old_id
    assert state.leader_epoch == 1
    assert old_id not in state.isr
    assert three.endpoint(old_id, "PLAINTEXT") is None
    assert heartbeat(three, member_id) is ErrorCode.NONE


def test_partition_without_another_replica_has_no_leader_until_its_broker_is_back(
    three: Cluster,
) -> None:
    """Replication factor 1: nobody leads, then the old broker again, two epochs on."""
    three.operations.election_delay_ms = 0
    leader_id = three.image.topics["t"].partitions[0].leader_id

    three.operations.stop(leader_id, at(0))
    assert three.image.topics["t"].partitions[0].leader_id == -1
    three.operations.resume(leader_id, at(10))

    state = three.image.topics["t"].partitions[0]
    assert (state.leader_id, state.leader_epoch, state.isr) == (leader_id, 2, (leader_id,))
    assert three.image.broker_epochs == {leader_id: 1}
    assert three.operations.status(leader_id) is BrokerStatus.RUNNING


def test_broker_back_before_it_is_missed_leads_on(three: Cluster) -> None:
    """A quick restart loses no leadership, and the groups come from the log."""
    _, member_id = stable_member(three)
    leader_id = coordinator_of(three, "g")

    three.operations.stop(leader_id, at(0))
    three.operations.resume(leader_id, at(500))
    three.expire(at(2_000))

    assert coordinator_of(three, "g") == leader_id
    assert heartbeat(three, member_id) is ErrorCode.NONE


def test_time_of_a_paused_broker_stands_still(three: Cluster) -> None:
    """No session ends there, nor does it hear of its successor, which starts sessions anew."""
    _, member_id = stable_member(three)
    old_id = coordinator_of(three, "g")
    frozen = three.groups.living[old_id].coordinator

    three.operations.pause(old_id, at(0))
    three.expire(at(1_000))
    three.expire(at(10_500))

    held = frozen.group("g")
    assert held is not None
    assert list(held.members) == [member_id]
    assert coordinator_of(three, "g") != old_id
    assert heartbeat(three, member_id) is ErrorCode.NONE
    three.operations.resume(old_id, at(10_500))
    assert frozen.group("g") is None
    assert coordinator_of(three, "g") != old_id
    three.expire(at(11_000))
    assert heartbeat(three, member_id) is ErrorCode.UNKNOWN_MEMBER_ID


def test_broker_cut_off_from_clients_leads_on(three: Cluster) -> None:
    """Sessions of members that cannot reach it end."""
    _, member_id = stable_member(three)
    leader_id = coordinator_of(three, "g")

    three.operations.partition(leader_id)
    three.expire(at(10_500))
    three.operations.resume(leader_id, at(10_600))

    assert coordinator_of(three, "g") == leader_id
    assert heartbeat(three, member_id) is ErrorCode.UNKNOWN_MEMBER_ID


def test_moved_coordinator_tells_whoever_waits(three: Cluster) -> None:
    """A parked JoinGroup hears NOT_COORDINATOR, and the group is at the new broker."""
    _, member_id = stable_member(three)
    old_id = coordinator_of(three, "g")
    parked = FramesClient(three, old_id, number=2)
    parked.send(join(), 3)

    moved = three.operations.move_coordinator("g", None, at(0))

    assert (moved.leader_id, moved.leader_epoch) == (old_id % 3 + 1, 1)
    answer = parked.answers()[-1][1]
    assert isinstance(answer, join_group.JoinGroupResponse)
    assert answer.error_code is ErrorCode.NOT_COORDINATOR
    assert heartbeat(three, member_id) is ErrorCode.NONE


def test_commit_is_in_the_log_before_its_coordinator_moves(three: Cluster) -> None:
    """The sender of a commit is told NOT_COORDINATOR, yet the next coordinator knows the offset."""
    client, member_id = stable_member(three)
    old_id = coordinator_of(three, "g")

    three.operations.taken_while_coordinator_moves(
        "g", None, lambda _now: client.send(commit(member_id, 42), 8), at(0)
    )

    (topic,) = client.answers()[-1][1].topics  # type: ignore[union-attr]
    assert [each.error_code for each in topic.partitions] == [ErrorCode.NOT_COORDINATOR]
    assert coordinator_of(three, "g") != old_id
    batches = three.groups.offsets_topic.batches(partition_for("g", 3))
    assert "offset=42" in repr(list(batches)[-1])


@pytest.mark.parametrize("verb", ["stop", "pause"])
def test_verb_that_cannot_be_is_refused(three: Cluster, verb: str) -> None:
    """A broker is not stopped twice, and one that is not there not at all."""
    with pytest.raises(ConfigError, match=r"no broker 7: there are 1, 2, 3"):
        getattr(three.operations, verb)(7, at(0))
    getattr(three.operations, verb)(1, at(0))
    with pytest.raises(ConfigError, match="broker 1 is"):
        getattr(three.operations, verb)(1, at(0))
    with pytest.raises(ConfigError, match="broker 1 cannot lead"):
        three.operations.elect("t", 0, 1, at(0))
