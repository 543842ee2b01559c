"""A connection: answers in the order of the requests, and what ends it."""

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages import join_group
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.leave_group import LeaveGroupRequest, MemberIdentity
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
