"""Fault rules at the requests of a connection."""

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.faults.faults import (
    Action,
    Close,
    Delay,
    Drop,
    Fail,
    FailAppend,
    Fault,
    Match,
    Phase,
)
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from tests.unit.broker.frames_client import FramesClient

NOW_MS = 1_000_000
BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="nobody")
JOIN = JoinGroupRequest(
    group_id="g",
    session_timeout_ms=10_000,
    rebalance_timeout_ms=60_000,
    member_id="",
    protocol_type="consumer",
    protocols=(JoinGroupRequestProtocol("range", b"x"),),
)


def disturb(cluster: Cluster, api: str, action: Action, phase: Phase = Phase.BEFORE) -> None:
    """Add one rule."""
    cluster.faults.add(Fault(match=Match(api=api), action=action, phase=phase))


def errors(client: FramesClient) -> list[ErrorCode]:
    """Of the Heartbeats answered so far."""
    return [
        answer.error_code
        for _, answer in client.answers()
        if isinstance(answer, HeartbeatResponse | JoinGroupResponse)
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
    """As with a broker that lost a request; other connections are well."""
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


def test_failed_append_is_told_in_the_coordinator_s_words(
    cluster: Cluster, client: FramesClient
) -> None:
    """A commit that cannot be stored is refused as Kafka does, and the next one is stored."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
    cluster.topics.create_spread("t", 1, Instants(NOW_MS, NOW_MS))
    request = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=(OffsetCommitRequestTopic("t", partitions=(partition,)),),
    )
    cluster.faults.add(Fault(match=Match(api="OffsetCommit"), action=FailAppend(), times=1))
    for _ in range(2):
        client.send(request, 8)
    found = [answer for _, answer in client.answers() if isinstance(answer, OffsetCommitResponse)]
    assert [each.topics[0].partitions[0].error_code for each in found] == [
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NONE,
    ]
