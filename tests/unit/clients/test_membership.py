"""Discovery, join, sync, heartbeat and leave of a member, against a script."""

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from coordinator_sim.clients.effects import (
    COORDINATOR_NODE_OFFSET,
    CallbackKind,
    Connect,
    RunCallback,
)
from coordinator_sim.clients.generation import MemberState
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupResponse
from coordinator_sim.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)
from coordinator_sim.messages.metadata import MetadataRequest
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.resources import TopicPartition

if TYPE_CHECKING:
    from tests.unit.clients.conftest import Desk

    MakeDesk = Callable[..., Desk]

T0 = TopicPartition("t", 0)
COORDINATOR = COORDINATOR_NODE_OFFSET - 1


def _found(error: ErrorCode = ErrorCode.NONE) -> FindCoordinatorResponse:
    node_id = 1 if error is ErrorCode.NONE else -1
    return FindCoordinatorResponse(
        coordinators=(
            Coordinator(
                key="group", node_id=node_id, error_code=error, port=-1, error_message=None
            ),
        )
    )


# Discovery


def test_lookup_backs_off_exponentially(make_desk: "MakeDesk") -> None:
    """C-DISC-02: retriable lookup failures are retried after 100, 200, 400 ... 1000 ms."""
    desk = make_desk()
    desk.automatic.discard(FindCoordinatorRequest)
    desk.poll()

    for _ in range(6):
        desk.reply(FindCoordinatorRequest, _found(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        while not desk.is_waiting(FindCoordinatorRequest):
            desk.run(desk.port.next_deadline_ms() or 0)

    times = desk.times_of(FindCoordinatorRequest)
    assert [b - a for a, b in pairwise(times)] == [
        100,
        200,
        400,
        800,
        1000,
        1000,
    ]


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "GroupAuthorizationException"),
        (ErrorCode.INVALID_GROUP_ID, "InvalidGroupIdException"),
    ],
)
def test_fatal_lookup_error_is_thrown(make_desk: "MakeDesk", error: ErrorCode, name: str) -> None:
    """C-DISC-03: an error that is not retriable ends the poll, and nothing is retried."""
    desk = make_desk()
    desk.automatic.discard(FindCoordinatorRequest)
    desk.poll()

    desk.reply(FindCoordinatorRequest, _found(error))

    assert desk.returned == [name]
    assert len(desk.of(FindCoordinatorRequest)) == 1


def test_lookup_with_two_answers_is_an_illegal_state(make_desk: "MakeDesk") -> None:
    """An answer for more than one key is refused."""
    desk = make_desk()
    desk.automatic.discard(FindCoordinatorRequest)
    desk.poll()

    two = _found().coordinators * 2
    desk.reply(FindCoordinatorRequest, FindCoordinatorResponse(coordinators=two))

    assert desk.returned == ["IllegalStateException"]


def test_lookup_is_shared(make_desk: "MakeDesk") -> None:
    """C-DISC-01: a second poll waits for the lookup in flight."""
    desk = make_desk()
    desk.automatic.discard(FindCoordinatorRequest)
    desk.poll(timeout_ms=10)
    desk.run(10)

    desk.poll(timeout_ms=10)

    assert len(desk.of(FindCoordinatorRequest)) == 1


def test_lost_coordinator_keeps_generation(make_desk: "MakeDesk") -> None:
    """C-DISC-08: after the coordinator moved, heartbeats go on with the same generation."""
    desk = make_desk()
    desk.settle_stable(T0)
    desk.run(3_000)

    desk.reply(HeartbeatRequest, HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR))
    desk.run(8_000)

    assert len(desk.of(FindCoordinatorRequest)) >= 2
    assert len(desk.of(JoinGroupRequest)) == 1
    assert len(desk.of(HeartbeatRequest)) >= 2
    assert desk.port.generation_id == 1
    assert COORDINATOR in desk.disconnects


def test_discovery_resets_the_session(make_desk: "MakeDesk") -> None:
    """C-DISC-06: a coordinator found late is given the whole session to answer."""
    desk = make_desk(session_timeout_ms=10_000)
    desk.settle_stable(T0)
    desk.automatic.discard(FindCoordinatorRequest)
    desk.do(desk.port.on_disconnected(COORDINATOR, 1_000))
    desk.run(9_900)
    desk.reply(FindCoordinatorRequest, _found())

    desk.run(19_800)

    assert desk.disconnects == []


def test_join_is_failed_by_a_disconnect_and_keeps_the_member_id(make_desk: "MakeDesk") -> None:
    """C-JOIN-10: a connection lost while the join is parked leads to a join with the same id."""
    desk = make_desk()
    desk.poll()
    desk.join(
        JoinGroupResponse(
            error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m", protocol_name=None
        )
    )

    desk.do(desk.port.on_disconnected(COORDINATOR, 1_000))
    desk.run(2_000)

    joins = desk.of(JoinGroupRequest)
    assert [join.member_id for join in joins] == ["", "m", "m"]
    assert joins[2].reason == "rebalance failed due to DisconnectException"


def test_unreachable_broker_is_retried_with_growing_backoff(make_desk: "MakeDesk") -> None:
    """A refused connection fails the metadata that was due too, which backs off: 100, 200, 400."""
    desk = make_desk()
    desk.automatic.discard(Connect)
    attempts: list[int] = []
    effects = desk.port.poll(0, 5_000)
    now_ms = 0
    while now_ms < 900:
        for effect in effects:
            assert isinstance(effect, Connect)
            attempts.append(now_ms)
        if effects:
            effects = desk.port.on_disconnected(1, now_ms)
            continue
        now_ms = desk.port.next_deadline_ms() or 0
        effects = desk.port.expire(now_ms)

    gaps = [b - a for a, b in pairwise(attempts)]
    assert gaps == [100, 200, 400]


# JoinGroup


@pytest.mark.parametrize(
    ("settings", "timeout_ms"),
    [
        ({"rebalance_timeout_ms": 300_000}, 305_000),
        ({"rebalance_timeout_ms": 10_000}, 30_000),
        ({"rebalance_timeout_ms": 2_147_483_647}, 2_147_483_647),
    ],
)
def test_join_request_timeout(
    make_desk: "MakeDesk", settings: dict[str, int], timeout_ms: int
) -> None:
    """C-JOIN-02, C-JOIN-03, C-JOIN-04: it covers the rebalance, and never overflows."""
    desk = make_desk(metadata_max_age_ms=2_147_483_647, **settings)
    desk.poll(timeout_ms=1 << 40)

    desk.run(timeout_ms - 1)
    assert len(desk.of(JoinGroupRequest)) == 1
    desk.run(timeout_ms)

    assert COORDINATOR in desk.disconnects


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (ErrorCode.FENCED_INSTANCE_ID, "FencedInstanceIdException"),
        (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "InconsistentGroupProtocolException"),
        (ErrorCode.INVALID_SESSION_TIMEOUT, "InvalidSessionTimeoutException"),
        (ErrorCode.INVALID_GROUP_ID, "InvalidGroupIdException"),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "GroupAuthorizationException"),
        (ErrorCode.GROUP_MAX_SIZE_REACHED, "GroupMaxSizeReachedException"),
        (ErrorCode.UNSUPPORTED_VERSION, "UnsupportedVersionException"),
        (ErrorCode.UNKNOWN_SERVER_ERROR, "KafkaException"),
    ],
)
def test_fatal_join_errors(make_desk: "MakeDesk", error: ErrorCode, name: str) -> None:
    """C-JOIN-05 and its row: the error ends the poll; no JoinGroup follows by itself."""
    desk = make_desk()
    desk.poll()

    desk.join(JoinGroupResponse(error_code=error, protocol_name=None))
    desk.run(5_000)

    assert desk.returned == [name]
    assert len(desk.of(JoinGroupRequest)) == 1


@pytest.mark.parametrize(
    ("error", "member_id", "delay_ms"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "m", 100),
        (ErrorCode.REBALANCE_IN_PROGRESS, "m", 0),
        (ErrorCode.UNKNOWN_MEMBER_ID, "", 0),
    ],
)
def test_retried_join_errors(
    make_desk: "MakeDesk", error: ErrorCode, member_id: str, delay_ms: int
) -> None:
    """C-JOIN-09, C-JOIN-13: at once or after the backoff, to the same coordinator."""
    desk = make_desk()
    desk.poll()
    desk.join(
        JoinGroupResponse(
            error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m", protocol_name=None
        )
    )

    desk.join(JoinGroupResponse(error_code=error, protocol_name=None))
    desk.run(1_000)

    assert desk.times_of(JoinGroupRequest)[2] == delay_ms
    assert desk.of(JoinGroupRequest)[2].member_id == member_id
    assert len(desk.of(FindCoordinatorRequest)) == 1


@pytest.mark.parametrize("error", [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR])
def test_join_to_a_moved_coordinator_looks_again(make_desk: "MakeDesk", error: ErrorCode) -> None:
    """The coordinator becomes unknown and the join follows a new lookup."""
    desk = make_desk()
    desk.poll()

    desk.join(JoinGroupResponse(error_code=error, protocol_name=None))
    desk.run(1_000)

    assert len(desk.of(FindCoordinatorRequest)) >= 2
    assert len(desk.of(JoinGroupRequest)) == 2


def test_join_with_foreign_protocol_type_is_refused(make_desk: "MakeDesk") -> None:
    """C-JOIN-11: another protocol type in the answer is fatal; an absent one is accepted."""
    desk = make_desk()
    desk.poll()

    desk.join(protocol_type="connect")

    assert desk.returned == ["InconsistentGroupProtocolException"]


def test_wakeup_leaves_the_join_in_flight(make_desk: "MakeDesk") -> None:
    """C-JOIN-16: after a wake-up the next poll completes the same join."""
    desk = make_desk()
    desk.poll()
    desk.do(desk.port.wakeup(10))
    assert desk.returned == ["WakeupException"]

    desk.poll()
    desk.join()
    desk.sync(T0)

    assert len(desk.of(JoinGroupRequest)) == 1
    assert desk.port.owned_partitions == (T0,)


def test_answer_waits_for_somebody_who_polls(make_desk: "MakeDesk") -> None:
    """A JoinGroup answer that arrives while the application processes is handled by its poll."""
    desk = make_desk()
    desk.poll(timeout_ms=100)
    desk.run(100)
    assert desk.returned == [None]

    desk.join()
    assert desk.of(SyncGroupRequest) == []
    desk.poll()

    assert len(desk.of(SyncGroupRequest)) == 1


# SyncGroup


def test_follower_syncs_empty_handed(make_desk: "MakeDesk") -> None:
    """C-SYNC-01: a follower's SyncGroup has no assignments, and goes out at once."""
    desk = make_desk()
    desk.poll()

    desk.join()

    (sync,) = desk.of(SyncGroupRequest)
    assert sync.assignments == ()
    assert (sync.generation_id, sync.member_id, sync.protocol_name) == (1, "m", "range")


@pytest.mark.parametrize(
    ("error", "member_id"),
    [
        (ErrorCode.REBALANCE_IN_PROGRESS, "m"),
        (ErrorCode.ILLEGAL_GENERATION, "m"),
        (ErrorCode.UNKNOWN_MEMBER_ID, ""),
    ],
)
def test_sync_errors_that_rejoin_at_once(
    make_desk: "MakeDesk", error: ErrorCode, member_id: str
) -> None:
    """C-SYNC-04, C-SYNC-05, C-SYNC-06: rejoin without backoff, member id kept or cleared."""
    desk = make_desk()
    desk.poll()
    desk.join()

    desk.reply(SyncGroupRequest, SyncGroupResponse(error_code=error))

    assert desk.times_of(JoinGroupRequest) == [0, 0]
    assert desk.of(JoinGroupRequest)[1].member_id == member_id


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (ErrorCode.FENCED_INSTANCE_ID, "FencedInstanceIdException"),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "GroupAuthorizationException"),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "KafkaException"),
        (ErrorCode.UNKNOWN_SERVER_ERROR, "KafkaException"),
    ],
)
def test_fatal_sync_errors(make_desk: "MakeDesk", error: ErrorCode, name: str) -> None:
    """C-SYNC-07, C-SYNC-10: thrown to the application; loading is unexpected here."""
    desk = make_desk()
    desk.poll()
    desk.join()

    desk.reply(SyncGroupRequest, SyncGroupResponse(error_code=error))

    assert desk.returned == [name]


def test_sync_to_a_moved_coordinator_looks_again(make_desk: "MakeDesk") -> None:
    """NOT_COORDINATOR makes the coordinator unknown; the join is repeated after a lookup."""
    desk = make_desk()
    desk.poll()
    desk.join()

    desk.reply(SyncGroupRequest, SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR))
    desk.run(1_000)

    assert len(desk.of(JoinGroupRequest)) == 2
    assert desk.of(JoinGroupRequest)[1].member_id == "m"


@pytest.mark.parametrize("fields", [{"protocol_name": "sticky"}, {"protocol_type": "connect"}])
def test_sync_must_match_the_join(make_desk: "MakeDesk", fields: dict[str, str]) -> None:
    """C-SYNC-08: another protocol name or type in the answer is fatal."""
    desk = make_desk()
    desk.poll()
    desk.join()

    desk.reply(SyncGroupRequest, SyncGroupResponse(**fields))

    assert desk.returned == ["InconsistentGroupProtocolException"]


def test_generation_cleared_before_the_sync_answer(make_desk: "MakeDesk") -> None:
    """C-SYNC-09: a heartbeat that resets the generation makes the assignment worthless."""
    desk = make_desk()
    desk.poll()
    desk.join()
    desk.run(3_000)
    desk.reply(HeartbeatRequest, HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))

    desk.sync(T0)

    assert desk.port.owned_partitions == ()
    assert [join.member_id for join in desk.of(JoinGroupRequest)] == ["", ""]


# Heartbeat


def test_heartbeats_count_from_the_send(make_desk: "MakeDesk") -> None:
    """C-HB-08: the interval runs from the send, however late the answer."""
    desk = make_desk()
    desk.settle_stable(T0)
    desk.run(3_000)
    desk.run(5_500)
    desk.reply(HeartbeatRequest, HeartbeatResponse())

    desk.run(9_500)

    assert desk.times_of(HeartbeatRequest) == [3_000, 6_000, 9_000]


def test_heartbeats_go_on_while_the_application_is_busy(make_desk: "MakeDesk") -> None:
    """The heartbeat thread needs no poll, and answers are handled at once."""
    desk = make_desk()
    desk.poll(timeout_ms=0)
    desk.poll(timeout_ms=0)
    desk.join()
    desk.poll(timeout_ms=0)
    desk.sync(T0)
    desk.poll(timeout_ms=0)
    assert desk.port.state is MemberState.STABLE

    for at_ms in (3_000, 6_000, 9_000):
        desk.run(at_ms)
        desk.reply(HeartbeatRequest, HeartbeatResponse())

    assert desk.times_of(HeartbeatRequest) == [3_000, 6_000, 9_000]


def test_rebalance_in_progress_while_stable_rejoins(make_desk: "MakeDesk") -> None:
    """C-HB-02: the member rejoins with its id, revoking first."""
    desk = make_desk()
    desk.settle_stable(T0)
    desk.run(3_000)

    desk.reply(HeartbeatRequest, HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))

    join = desk.of(JoinGroupRequest)[1]
    assert (join.member_id, join.reason) == ("m", "group is already rebalancing")
    assert desk.callbacks[-1].kind is CallbackKind.PARTITIONS_REVOKED


def test_rebalance_in_progress_while_completing_is_ignored(make_desk: "MakeDesk") -> None:
    """C-HB-03: before the assignment is there, the answer counts as success."""
    desk = make_desk()
    desk.poll()
    desk.join()
    desk.run(3_000)

    desk.reply(HeartbeatRequest, HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))

    assert desk.port.state is MemberState.COMPLETING_REBALANCE
    assert len(desk.of(JoinGroupRequest)) == 1


@pytest.mark.parametrize(
    ("error", "member_id"), [(ErrorCode.ILLEGAL_GENERATION, "m"), (ErrorCode.UNKNOWN_MEMBER_ID, "")]
)
def test_heartbeat_that_ends_membership(
    make_desk: "MakeDesk", error: ErrorCode, member_id: str
) -> None:
    """C-HB-04: partitions are lost, and the member joins with or without its id."""
    desk = make_desk()
    desk.settle_stable(T0)
    desk.run(3_000)

    desk.reply(HeartbeatRequest, HeartbeatResponse(error_code=error))

    assert desk.callbacks[-1].kind is CallbackKind.PARTITIONS_LOST
    assert desk.of(JoinGroupRequest)[1].member_id == member_id
    assert (
        desk.of(JoinGroupRequest)[1].reason == f"encountered {error.name} from HEARTBEAT response"
    )


def test_fenced_heartbeat_is_thrown_by_the_next_poll(make_desk: "MakeDesk") -> None:
    """C-HB-06: a replaced static member learns it in its poll."""
    desk = make_desk(group_instance_id="one")
    desk.settle_stable(T0)
    desk.run(3_000)

    desk.reply(HeartbeatRequest, HeartbeatResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))

    assert desk.returned == ["FencedInstanceIdException"]
    assert desk.port.member_id == ""


@pytest.mark.parametrize(
    "error",
    [ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID],
)
def test_stale_heartbeat_error_is_ignored(make_desk: "MakeDesk", error: ErrorCode) -> None:
    """An error for a generation that has changed since means nothing."""
    desk = make_desk()
    desk.settle_stable(T0)
    desk.run(6_000)
    desk.reply(HeartbeatRequest, HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    desk.join(generation_id=2)
    desk.sync(T0)

    desk.reply(HeartbeatRequest, HeartbeatResponse(error_code=error))

    assert desk.port.generation_id == 2
    assert desk.port.state is MemberState.STABLE


def test_failed_heartbeats_back_off(make_desk: "MakeDesk") -> None:
    """C-HB-09: after failures the next tries come after 100, 200, 400 ms."""
    desk = make_desk()
    desk.settle_stable(T0)
    desk.run(3_000)
    for _ in range(3):
        desk.reply(HeartbeatRequest, HeartbeatResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
        desk.run(desk.port.next_deadline_ms() or 0)

    assert desk.times_of(HeartbeatRequest) == [3_000, 3_100, 3_300, 3_700]


def test_session_expiry_looks_for_the_coordinator(make_desk: "MakeDesk") -> None:
    """C-HB-07: silence for a session makes the coordinator unknown; no leave, no rejoin."""
    desk = make_desk(session_timeout_ms=10_000)
    desk.settle_stable(T0)

    desk.run(12_000)

    assert COORDINATOR in desk.disconnects
    assert len(desk.of(FindCoordinatorRequest)) >= 2
    assert len(desk.of(JoinGroupRequest)) == 1
    assert desk.of(LeaveGroupRequest) == []


# Leaving


def _busy(desk: "Desk") -> None:
    desk.settle_stable(T0)
    desk.do(desk.port.fetch_completed(desk.now_ms))


def test_poll_timeout_leaves(make_desk: "MakeDesk") -> None:
    """C-HB-10: a stalled application makes the heartbeat thread leave and stop."""
    desk = make_desk(rebalance_timeout_ms=10_000)
    _busy(desk)
    desk.run(30_000)

    (leave,) = desk.of(LeaveGroupRequest)
    assert leave.members[0].reason == "consumer poll timeout has expired."
    assert desk.times_of(LeaveGroupRequest) == [10_000]
    assert desk.port.state is MemberState.UNJOINED
    assert max(desk.times_of(HeartbeatRequest)) <= 10_000


def test_poll_timeout_of_a_static_member_is_local(make_desk: "MakeDesk") -> None:
    """C-HB-11: a static member resets itself and tells nobody."""
    desk = make_desk(rebalance_timeout_ms=10_000, group_instance_id="one")
    _busy(desk)
    desk.run(30_000)

    assert desk.of(LeaveGroupRequest) == []
    assert desk.port.state is MemberState.UNJOINED


def test_poll_timeout_fires_during_a_callback(make_desk: "MakeDesk") -> None:
    """A callback that never ends costs the membership, and the assignment is dropped after it."""
    desk = make_desk(rebalance_timeout_ms=10_000)
    desk.automatic.discard(RunCallback)
    desk.poll()
    desk.join()
    desk.sync(T0)
    desk.run(20_000)
    assert len(desk.of(LeaveGroupRequest)) == 1

    desk.do(desk.port.callback_completed(desk.callbacks[-1].token, None, desk.now_ms))

    assert desk.callbacks[-1].kind is CallbackKind.PARTITIONS_LOST


def test_close_leaves_and_waits(make_desk: "MakeDesk") -> None:
    """C-LEAVE-01: a dynamic member revokes, leaves, and is closed by the answer."""
    desk = make_desk()
    _busy(desk)

    desk.do(desk.port.close(1_000, 30_000))
    assert not desk.closed
    desk.reply(LeaveGroupRequest, LeaveGroupResponse())

    assert desk.closed
    assert desk.of(LeaveGroupRequest)[0].members[0].reason == "the consumer is being closed"
    assert desk.callbacks[-1].kind is CallbackKind.PARTITIONS_REVOKED


def test_close_of_a_static_member_does_not_leave(make_desk: "MakeDesk") -> None:
    """C-LEAVE-02: the broker keeps a static member until its session ends."""
    desk = make_desk(group_instance_id="one")
    _busy(desk)

    desk.do(desk.port.close(1_000, 30_000))

    assert desk.closed
    assert desk.of(LeaveGroupRequest) == []


def test_close_without_leave_keeps_partitions_uncalled(make_desk: "MakeDesk") -> None:
    """With internal.leave.group.on.close=false neither callbacks nor LeaveGroup happen."""
    desk = make_desk(leave_group_on_close=False)
    _busy(desk)
    before = len(desk.callbacks)

    desk.do(desk.port.close(1_000, 0))

    assert desk.closed
    assert len(desk.callbacks) == before


def test_pending_member_leaves_with_its_new_id(make_desk: "MakeDesk") -> None:
    """C-LEAVE-03: an id that was only given, never joined with, is given back."""
    desk = make_desk()
    desk.poll()
    desk.join(
        JoinGroupResponse(
            error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m", protocol_name=None
        )
    )

    desk.do(desk.port.close(10, 0))

    assert desk.of(LeaveGroupRequest)[0].members[0].member_id == "m"


def test_leave_error_is_not_retried(make_desk: "MakeDesk") -> None:
    """C-LEAVE-05: whatever the answer, the member is gone."""
    desk = make_desk()
    _busy(desk)
    desk.do(desk.port.close(1_000, 30_000))

    desk.reply(LeaveGroupRequest, LeaveGroupResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))

    assert desk.closed
    assert len(desk.of(LeaveGroupRequest)) == 1


def test_metadata_is_refreshed_at_its_age(make_desk: "MakeDesk") -> None:
    """Metadata is asked for at the start and every metadata.max.age.ms."""
    desk = make_desk(metadata_max_age_ms=20_000, session_timeout_ms=2_000_000)
    desk.settle_stable(T0)

    desk.run(45_000)

    assert desk.times_of(MetadataRequest)[0] == 0
    assert 20_000 in desk.times_of(MetadataRequest)


def test_generation_reset_between_sync_and_callbacks(make_desk: "MakeDesk") -> None:
    """A heartbeat error while the application is busy voids the assignment it has not seen."""
    desk = make_desk()
    desk.poll(timeout_ms=0)
    desk.poll(timeout_ms=0)
    desk.join()
    desk.poll(timeout_ms=0)
    desk.sync(T0)
    desk.run(3_000)
    desk.reply(HeartbeatRequest, HeartbeatResponse(error_code=ErrorCode.ILLEGAL_GENERATION))

    desk.poll()

    assert desk.callbacks == []
    join = desk.of(JoinGroupRequest)[-1]
    assert join.member_id == ""
    assert join.reason == (
        "rebalance failed since the generation/state was modified by heartbeat thread"
    )


def test_answer_of_another_api_is_a_drivers_bug(make_desk: "MakeDesk") -> None:
    """A response that does not fit its request is refused aloud."""
    desk = make_desk()
    desk.poll()
    with pytest.raises(InvariantViolation, match="answers a JOIN request"):
        desk.reply(JoinGroupRequest, HeartbeatResponse())


def test_leave_answer_for_two_members_changes_nothing(make_desk: "MakeDesk") -> None:
    """Whatever the answer to a leave says, the member is out and closed."""
    desk = make_desk()
    _busy(desk)
    desk.do(desk.port.close(1_000, 30_000))

    two = (
        MemberResponse(member_id="m", group_instance_id=None),
        MemberResponse(member_id="n", group_instance_id=None),
    )
    desk.reply(LeaveGroupRequest, LeaveGroupResponse(members=two))

    assert desk.closed
    with pytest.raises(InvariantViolation, match="close while"):
        desk.port.close(2_000, 0)


def test_wakeup_is_kept_for_the_next_poll(make_desk: "MakeDesk") -> None:
    """A wake-up outside any call ends the next one at its start."""
    desk = make_desk()
    desk.do(desk.port.wakeup(0))
    assert not desk.port.is_in_call

    desk.poll()

    assert desk.returned == ["WakeupException"]
    assert desk.sent == []


def test_join_answer_after_leaving_is_dropped(make_desk: "MakeDesk") -> None:
    """A member that unsubscribed while its join was parked does not sync."""
    desk = make_desk()
    desk.poll(timeout_ms=10)
    desk.run(10)
    desk.do(desk.port.unsubscribe(10))
    desk.do(desk.port.subscribe(["t"], 10))

    desk.join()
    desk.poll()
    desk.run(200)

    assert desk.of(SyncGroupRequest) == []
    assert len(desk.of(JoinGroupRequest)) == 2
