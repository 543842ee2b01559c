"""A bug of the cluster ends the connection that met it, and nothing else."""

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.faults.faults import Delay, Fault, Match, Phase
from coordinator_sim.broker.purgatory import PendingAnswer
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.heartbeat import HeartbeatRequest
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.unit.broker.frames_client import FramesClient

NOW_MS = 1_000_000
BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="nobody")
COMMIT = OffsetCommitRequest(
    group_id="other",
    generation_id_or_member_epoch=-1,
    member_id="",
    topics=(OffsetCommitRequestTopic(name="t", partitions=(OffsetCommitRequestPartition(0, 7),)),),
)
PLACE = "(tests.unit.broker.test_bugs_end_one_connection, line "


def join(member_id: str = "") -> JoinGroupRequest:
    """A JoinGroup of group g."""
    return JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol("range", b"x"),),
    )


def break_appends(cluster: Cluster) -> None:
    """From now on whoever appends to the offsets topic meets a bug."""
    cluster.topics.create_spread("t", 1, Instants(NOW_MS, NOW_MS))

    def broken(_topic: str, _partition: int) -> None:
        raise KeyError("a bug")

    cluster.cluster_events.readable.append(broken)


def test_bug_ends_the_connection_that_met_it_and_says_where(
    cluster: Cluster, client: FramesClient
) -> None:
    """Another client is answered as before, and nothing is raised at the driver."""
    break_appends(cluster)
    client.send(COMMIT, 2)

    assert client.frames == []
    assert client.closed is not None
    assert "OFFSET_COMMIT of version 2 met a bug: KeyError: 'a bug' " + PLACE in client.closed
    other = FramesClient(cluster, number=2)
    other.send(BEAT, 4)
    assert len(other.frames) == 1
    assert other.closed is None


def test_bug_of_a_request_that_waited_ends_the_one_who_sent_it(
    cluster: Cluster, client: FramesClient
) -> None:
    """A parked request that fails in another client's turn ends its sender's connection alone."""
    first = client.send(join(), 3)
    leader = client.answers()[first][1].member_id
    other = FramesClient(cluster, number=2)
    other.send(join(), 3)
    break_appends(cluster)
    other.send(COMMIT, 2)

    client.send(join(leader), 3)

    assert len(client.frames) == 2
    assert client.closed is None
    assert other.closed is not None
    assert "OFFSET_COMMIT" in other.closed


def test_answer_that_cannot_be_written_ends_who_waits_for_it(
    cluster: Cluster, client: FramesClient
) -> None:
    """Whoever answers goes on."""
    PendingAnswer(client.connection, ApiKey.METADATA, 12, 1, cluster.jobs).answered({"brokers": 7})

    assert client.frames == []
    assert client.closed is not None
    assert "an answer to a METADATA of version 12 met a bug: " in client.closed


def test_bug_of_a_delayed_request_ends_its_connection(
    cluster: Cluster, client: FramesClient
) -> None:
    """A fault rule put it off, and the alarm that took it up goes on."""
    break_appends(cluster)
    cluster.faults.add(Fault(match=Match(api="OffsetCommit"), action=Delay(10), phase=Phase.BEFORE))
    client.send(COMMIT, 2)
    assert client.closed is None

    cluster.expire(Instants(NOW_MS, NOW_MS + 10))

    assert client.closed is not None
    assert "met a bug" in client.closed


def test_failing_deadline_keeps_no_other_from_being_met(
    cluster: Cluster, client: FramesClient
) -> None:
    """A session that is over ends the member's wait all the same; the bug is raised afterwards."""
    first = client.send(join(), 3)
    member_id = client.answers()[first][1].member_id

    def broken(_now: Instants) -> None:
        raise KeyError("a bug")

    cluster.scheduler.at_wall_ms(NOW_MS, broken)
    with pytest.raises(ExceptionGroup, match="deadlines met a bug: KeyError: 'a bug' "):
        cluster.expire(Instants(NOW_MS + 10_000, NOW_MS + 10_000))

    group = cluster.groups.living[1].coordinator.group("g")
    assert group is None or member_id not in group.members
