"""Fault rules at the requests of a connection."""

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.faults.faults import (
    Action,
    Close,
    Delay,
    Drop,
    Duplicate,
    Fail,
    FailAppend,
    Fault,
    Match,
    Phase,
    Reorder,
)
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages import join_group, offset_commit
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tests.unit.broker.frames_client import FramesClient

NOW_MS = 1_000_000
BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="nobody")
JOIN = join_group.JoinGroupRequest(
    group_id="g",
    session_timeout_ms=10_000,
    rebalance_timeout_ms=60_000,
    member_id="",
    protocol_type="consumer",
    protocols=(join_group.JoinGroupRequestProtocol("range", b"x"),),
)


def disturb(cluster: Cluster, api: str, action: Action, phase: Phase = Phase.BEFORE) -> None:
    """Add one rule."""
    cluster.faults.add(Fault(match=Match(api=api), action=action, phase=phase))


def errors(client: FramesClient) -> list[ErrorCode]:
    """The error codes of the Heartbeats answered so far."""
    return [
        answer.error_code
        for _, answer in client.answers()
        if isinstance(answer, HeartbeatResponse | join_group.JoinGroupResponse)
    ]


@pytest.mark.parametrize("phase", Phase)
def test_error_takes_the_place_of_the_answer(
    cluster: Cluster, client: FramesClient, phase: Phase
) -> None:
    """Other APIs go on as ever."""
    disturb(cluster, "Heartbeat", Fail("REBALANCE_IN_PROGRESS"), phase)
    client.send(BEAT, 4)
    client.send(JOIN, 3)
    assert errors(client) == [ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.NONE]


@pytest.mark.parametrize(("phase", "is_member"), [(Phase.BEFORE, False), (Phase.AFTER, True)])
def test_phase_decides_whether_a_refused_join_had_its_effect(
    cluster: Cluster, client: FramesClient, phase: Phase, is_member: bool
) -> None:
    """Refused before, nobody has joined; refused after, the member is there."""
    disturb(cluster, "JoinGroup", Fail("NOT_COORDINATOR"), phase)
    client.send(JOIN, 3)
    assert errors(client) == [ErrorCode.NOT_COORDINATOR]
    group = cluster.groups.living[1].coordinator.group("g")
    assert (group is not None and bool(group.members)) is is_member


@pytest.mark.parametrize("phase", Phase)
def test_dropped_answer_holds_back_those_behind_it(
    cluster: Cluster, client: FramesClient, phase: Phase
) -> None:
    """Later answers of the connection wait behind a dropped one; other connections get theirs."""
    disturb(cluster, "Heartbeat", Drop(), phase)
    client.send(BEAT, 4)
    cluster.faults.clear()
    client.send(BEAT, 4)
    assert client.frames == []
    other = FramesClient(cluster, number=2)
    other.send(BEAT, 4)
    assert errors(other) == [ErrorCode.UNKNOWN_MEMBER_ID]


@pytest.mark.parametrize("phase", Phase)
def test_delay_is_on_the_wall_clock(cluster: Cluster, client: FramesClient, phase: Phase) -> None:
    """The answer leaves when the wall clock says so, whatever group time is."""
    disturb(cluster, "Heartbeat", Delay(250), phase)
    client.send(BEAT, 4)
    assert cluster.next_wall_deadline_ms() == NOW_MS + 250
    cluster.expire(Instants(NOW_MS + 100_000, NOW_MS + 249))
    assert client.frames == []
    cluster.expire(Instants(NOW_MS + 100_000, NOW_MS + 250))
    assert errors(client) == [ErrorCode.UNKNOWN_MEMBER_ID]


@pytest.mark.parametrize("phase", Phase)
def test_closed_connection_has_no_answer(
    cluster: Cluster, client: FramesClient, phase: Phase
) -> None:
    """The log says that a rule did it."""
    disturb(cluster, "Heartbeat", Close(), phase)
    client.send(BEAT, 4)
    assert (client.frames, client.closed) == ([], "a fault rule")


def test_role_is_asked_of_the_group_as_it_is(cluster: Cluster, client: FramesClient) -> None:
    """Before it has joined, a member has no role; the only member of a group leads it."""
    rule = Fault(match=Match(role="leader"), action=Fail("NOT_COORDINATOR"), phase=Phase.AFTER)
    cluster.faults.add(rule)
    client.send(JOIN, 3)
    group = cluster.groups.living[1].coordinator.group("g")
    assert group is not None
    assert group.leader_id is not None
    client.send(HeartbeatRequest(group_id="g", generation_id=1, member_id=group.leader_id), 4)
    client.send(BEAT, 4)
    told = [ErrorCode.NONE, ErrorCode.NOT_COORDINATOR, ErrorCode.UNKNOWN_MEMBER_ID]
    assert errors(client) == told
    assert cluster.groups.role_of("g", group.leader_id) == "leader"
    assert cluster.groups.role_of("g", "nobody") is None


def test_duplicated_answer_comes_twice(cluster: Cluster, client: FramesClient) -> None:
    """Both copies have the correlation id of the one request; the next answer comes once."""
    cluster.faults.add(Fault(action=Duplicate(), phase=Phase.AFTER, times=1))
    client.send(BEAT, 4)
    client.send(BEAT, 4)
    assert [number for number, _ in client.answers()] == [0, 0, 1]


def test_next_answer_overtakes_a_reordered_one(cluster: Cluster, client: FramesClient) -> None:
    """The request behind it is worked on at once, and its answer comes first."""
    cluster.faults.add(Fault(action=Reorder(), phase=Phase.AFTER, times=1))
    client.send(BEAT, 4)
    assert client.frames == []
    client.send(BEAT, 4)
    client.send(BEAT, 4)
    assert [number for number, _ in client.answers()] == [1, 0, 2]
    cluster.expire(Instants(NOW_MS + 1_000, NOW_MS + 1_000))
    assert len(client.frames) == 3


def test_answer_that_nothing_overtakes_goes_alone(cluster: Cluster, client: FramesClient) -> None:
    """A client with one request at a time is not stuck for good, unless it is gone."""
    cluster.faults.add(Fault(action=Reorder(250), phase=Phase.AFTER))
    client.send(BEAT, 4)
    cluster.expire(Instants(NOW_MS, NOW_MS + 249))
    assert client.frames == []
    cluster.expire(Instants(NOW_MS, NOW_MS + 250))
    assert errors(client) == [ErrorCode.UNKNOWN_MEMBER_ID]
    client.send(BEAT, 4)
    client.connection.closed()
    cluster.expire(Instants(NOW_MS, NOW_MS + 5_000))
    assert len(client.frames) == 1


def test_failed_append_is_told_in_the_coordinator_s_words(
    cluster: Cluster, client: FramesClient
) -> None:
    """A commit that cannot be stored is refused as Kafka does, and the next one is stored."""
    partition = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
    cluster.topics.create_spread("t", 1, Instants(NOW_MS, NOW_MS))
    request = offset_commit.OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=(offset_commit.OffsetCommitRequestTopic("t", partitions=(partition,)),),
    )
    cluster.faults.add(Fault(match=Match(api="OffsetCommit"), action=FailAppend(), times=1))
    for _ in range(2):
        client.send(request, 8)
    found = [
        answer
        for _, answer in client.answers()
        if isinstance(answer, offset_commit.OffsetCommitResponse)
    ]
    assert [each.topics[0].partitions[0].error_code for each in found] == [
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NONE,
    ]
