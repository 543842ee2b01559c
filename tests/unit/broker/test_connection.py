"""A connection: answers in the order of the requests, and what ends it."""

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.faults.faults import Delay, Fault, Match, Phase
from coordinator_sim.broker.pending_answer import PendingAnswer
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages import join_group
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.leave_group import LeaveGroupRequest, MemberIdentity
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.unit.broker.frames_client import FramesClient

NOW = Instants(1_000_000, 1_000_000)


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


def heartbeat() -> HeartbeatRequest:
    """A Heartbeat that no member sends."""
    return HeartbeatRequest(group_id="g", generation_id=1, member_id="nobody")


def test_answer_behind_a_parked_join_waits_for_it(cluster: Cluster, client: FramesClient) -> None:
    """A second member's JoinGroup waits for the first; what follows it is answered after it."""
    first = client.send(join(), 3)
    leader = client.answers()[first][1].member_id
    other = FramesClient(cluster, number=2)
    parked = other.send(join(), 3)
    behind = other.send(heartbeat(), 4)
    assert other.frames == []

    client.send(join(leader), 3, at_ms=1_000_010)

    (join_id, joined), (heartbeat_id, beat) = other.answers()
    assert (join_id, heartbeat_id) == (parked, behind)
    assert isinstance(joined, join_group.JoinGroupResponse)
    assert joined.generation_id == 2
    assert isinstance(beat, HeartbeatResponse)
    assert beat.error_code is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (b"\x00\x0c", "a request of 2 bytes"),
        (b"\x03\xe7\x00\x00\x00\x00\x00\x01\xff\xff", "API 999"),
        (b"\x00\x0c\x00\x63\x00\x00\x00\x01\xff\xff", "HEARTBEAT of version 99"),
        (b"\x00\x0c\x00\x00\x00\x00\x00\x01\xff\xff\x00", "does not parse"),
    ],
)
def test_frame_that_is_no_request_ends_the_connection(
    client: FramesClient, frame: bytes, reason: str
) -> None:
    """Too short, of an unknown API or version, or cut off: one reason, no answer."""
    client.connection.received(frame, NOW)

    assert client.frames == []
    assert client.closed is not None
    assert reason in client.closed


def test_connection_is_full_when_a_thousand_requests_wait(
    cluster: Cluster, client: FramesClient
) -> None:
    """A driver stops reading from a full connection until answers have left."""
    first = client.send(join(), 3)
    leader = client.answers()[first][1].member_id
    other = FramesClient(cluster, number=2)
    other.send(join(), 3)
    for _ in range(999):
        other.send(heartbeat(), 4)
    assert not other.connection.is_full

    other.send(heartbeat(), 4)

    assert other.connection.is_full
    client.send(join(leader), 3, at_ms=1_000_010)
    while cluster.has_work:
        cluster.work(Instants(1_000_010, 1_000_010))
    assert not other.connection.is_full
    assert len(other.frames) == 1_001


def test_request_behind_a_parked_one_waits_for_its_turn(
    cluster: Cluster, client: FramesClient
) -> None:
    """A mute channel: a member's LeaveGroup behind its parked JoinGroup does not end the wait."""
    client.send(join(), 3)
    other = FramesClient(cluster, number=2)
    other.send(join(), 4)
    (_, required) = other.answers()[0]
    other.send(join(required.member_id), 4)
    other.send(
        LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id=required.member_id),)), 3
    )

    assert len(other.frames) == 1
    group = cluster.groups.living[1].coordinator.group("g")
    assert group is not None
    assert len(group.members) == 2


def test_what_waited_for_its_turn_waits_for_a_client_that_reads(
    cluster: Cluster, client: FramesClient
) -> None:
    """Answers that nobody takes are not made one after another; then they come in order."""
    first = client.send(join(), 3)
    leader = client.answers()[first][1].member_id
    other = FramesClient(cluster, number=2)
    sent = [other.send(join(), 3), other.send(heartbeat(), 4)]
    other.connection.is_choked = True
    client.send(join(leader), 3, at_ms=1_000_010)
    sent.append(other.send(heartbeat(), 4))
    assert len(other.frames) == 1

    other.connection.resume(NOW)

    assert [number for number, _ in other.answers()] == sent


def test_request_never_overtakes_those_that_wait_for_their_turn(
    cluster: Cluster, client: FramesClient
) -> None:
    """Of many that waited some are answered at once; one that comes then is the last."""
    first = client.send(join(), 3)
    leader = client.answers()[first][1].member_id
    other = FramesClient(cluster, number=2)
    sent = [other.send(join(), 3), *(other.send(heartbeat(), 4) for _ in range(30))]
    client.send(join(leader), 3, at_ms=1_000_010)
    assert 1 < len(other.frames) < len(sent)

    sent.append(other.send(heartbeat(), 4))
    while cluster.has_work:
        cluster.work(NOW)

    assert [number for number, _ in other.answers()] == sent


def test_nobody_is_kept_who_waited_and_went(cluster: Cluster, client: FramesClient) -> None:
    """A parked JoinGroup of a client that is gone leaves nothing behind, its answer is dropped."""
    first = client.send(join(), 3)
    leader = client.answers()[first][1].member_id
    other = FramesClient(cluster, number=2)
    other.send(join(), 3)
    assert cluster.waiting_count == 1

    other.connection.closed()

    assert cluster.waiting_count == 0
    client.send(join(leader), 3, at_ms=1_000_010)
    assert other.frames == []


# -- A bug of the cluster ends the connection that met it, and nothing else --------------------


NOW_MS = 1_000_000
BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="nobody")
COMMIT = OffsetCommitRequest(
    group_id="other",
    generation_id_or_member_epoch=-1,
    member_id="",
    topics=(OffsetCommitRequestTopic(name="t", partitions=(OffsetCommitRequestPartition(0, 7),)),),
)
PLACE = "(tests.unit.broker.test_connection, line "


def break_appends(cluster: Cluster) -> None:
    """From now on whoever appends to the offsets topic meets a bug."""
    cluster.topics.create_spread("t", 1, Instants(NOW_MS, NOW_MS))

    def broken(_place: tuple[str, int]) -> None:
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
