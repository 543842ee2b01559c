"""What requests and their answers tell of a group: why a rebalance began."""

import pytest

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from coordinator_sim.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from coordinator_sim.trace.events import Event, RebalanceReason, Source
from coordinator_sim.trace.exchange import Exchange
from coordinator_sim.trace.exchanges import Exchanges

MS = 1_000


def joined(member: str, generation: int, members: str, at_ms: int) -> Exchange:
    """A JoinGroup of a generation that the first of its members leads."""
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id=member,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol("range", b""),),
    )
    response = JoinGroupResponse(
        generation_id=generation,
        protocol_type="consumer",
        protocol_name="range",
        leader=members[0],
        member_id=member,
        members=tuple(map(JoinGroupResponseMember, members)) if member == members[0] else (),
    )
    return exchange(request, response, at_ms, at_ms + 1)


def exchange(request: object, response: object, asked_ms: int, done_ms: int) -> Exchange:
    """What a broker noted of a request, sent as soon as it was done."""
    return Exchange(
        broker_id=1,
        request=request,
        response=response,
        api_version=5,
        correlation_id=1,
        client_id="c",
        client_host="/127.0.0.1",
        asked_us=asked_ms * MS,
        done_us=done_ms * MS,
        sent_us=done_ms * MS,
        seq=0,
    )


def heartbeat(asked_ms: int, done_ms: int) -> Exchange:
    """A heartbeat of the member that stays, who is told of a rebalance."""
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="b")
    response = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    return exchange(request, response, asked_ms, done_ms)


def leave(asked_ms: int, done_ms: int) -> Exchange:
    """The other member's LeaveGroup."""
    request = LeaveGroupRequest(group_id="g", members=(MemberIdentity("a"),))
    return exchange(request, LeaveGroupResponse(members=(MemberResponse("a"),)), asked_ms, done_ms)


LEFT, UNKNOWN = RebalanceReason.MEMBER_LEFT, RebalanceReason.UNKNOWN


@pytest.mark.parametrize(
    ("signs", "reason", "began_ms"),
    [
        ((leave(90, 95), heartbeat(100, 105)), LEFT, 95),
        ((heartbeat(100, 105), leave(90, 110)), LEFT, 100),
        ((leave(90, 110), heartbeat(100, 111)), LEFT, 100),
        ((heartbeat(100, 105), leave(120, 125)), UNKNOWN, 100),
    ],
    ids=["leave-first", "overtaken", "overlapping", "too-late"],
)
def test_a_leave_explains_answers_to_heartbeats_that_came_after_it(
    signs: tuple[Exchange, ...], reason: RebalanceReason, began_ms: int
) -> None:
    """A heartbeat may be answered before the LeaveGroup that its answer is due to."""
    told = Exchanges(Source.REQUEST_LOG)
    for one in (joined("b", 1, "ab", 10), joined("a", 1, "ab", 10), *signs):
        list(told.read(one))
    events = list(told.read(joined("b", 2, "b", 200)))
    (began,) = (event for event in events if event.event is Event.PREPARE_REBALANCE)
    assert (began.reason, began.ts_us) == (reason, began_ms * MS)
