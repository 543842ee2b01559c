"""What the recordings do not show of franz-go: rare errors, lost connections, odd moments."""

import pytest

from coordinator_sim.assignors.contract import AssignmentFailed
from coordinator_sim.clients.client_traits import FRANZ_GO
from coordinator_sim.clients.effects import CallbackKind, RunCallback
from coordinator_sim.clients.exceptions import COMMIT_FAILED, TIMEOUT
from coordinator_sim.clients.franz_go import FranzGoConsumer
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.embedded.consumer_protocol import encode_subscription
from coordinator_sim.messages.embedded.contents import Subscription
from coordinator_sim.messages.find_coordinator import FindCoordinatorRequest
from coordinator_sim.messages.heartbeat import HeartbeatRequest
from coordinator_sim.messages.join_group import JoinGroupRequest
from coordinator_sim.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from coordinator_sim.messages.metadata import MetadataRequest
from coordinator_sim.messages.offset_commit import OffsetCommitRequest
from coordinator_sim.messages.requests import Request
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from coordinator_sim_conformance.client_cases.bench import BROKER, COORDINATOR, MEMBER
from tests.unit.clients.model_bench import P0, P1, Model, ModelBench, members

STICKY = "cooperative-sticky"
REVOKED, LOST = CallbackKind.PARTITIONS_REVOKED, CallbackKind.PARTITIONS_LOST
REBALANCE = ErrorCode.REBALANCE_IN_PROGRESS
UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID
LOADS = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
_MODEL = Model(FranzGoConsumer, FRANZ_GO)
make, polled, settled = _MODEL.made, _MODEL.polled, _MODEL.settled


def subscription(*topics: str) -> bytes:
    """A member's metadata."""
    return encode_subscription(Subscription(topics=topics))


def reason_of(bench: ModelBench) -> str | None:
    """The reason of the JoinGroup that waits for its answer."""
    assert bench.waiting(JoinGroupRequest)
    return bench.sent(JoinGroupRequest)[-1].reason


def beat(bench: ModelBench, error: ErrorCode = ErrorCode.NONE) -> None:
    """Wait for the next heartbeat and answer it."""
    bench.advance(3_000)
    bench.beat(error)


# Requests that are tried again.


def test_a_request_is_given_up_after_its_time() -> None:
    """Tries of a JoinGroup end with the session timeout; the member backs off and joins anew."""
    bench = polled(session_timeout_ms="4000")
    for wait_ms in (250, 500, 1_000, 2_000):
        bench.refuse_join(LOADS)
        assert bench.pending == []
        bench.advance(wait_ms)
    bench.refuse_join(LOADS)
    assert bench.changes == [(LOST, ())]
    bench.advance(250)
    assert reason_of(bench) == "rejoining after we previously errored and backed off"


@pytest.mark.parametrize("api", [JoinGroupRequest, SyncGroupRequest])
def test_a_join_that_is_never_answered_loses_the_membership(api: type[Request]) -> None:
    """Neither JoinGroup nor SyncGroup is waited for beyond the session timeout's tries."""
    bench = polled(session_timeout_ms="4000")
    if api is SyncGroupRequest:
        bench.join()
    for _ in range(5):
        bench.disconnect()
        bench.advance(2_500)
    assert (LOST, ()) in bench.changes


def test_a_connection_that_cannot_be_opened_makes_the_coordinator_unknown() -> None:
    """A lookup that finds no broker either fails everything that waits for it."""
    bench = make()
    bench.poll()
    bench.refuses = True
    bench.disconnect()
    bench.disconnect(BROKER.node_id)
    bench.advance(1_000)
    assert bench.changes[0] == (LOST, ())
    assert bench.port.coordinator_node is None
    bench.refuses = False
    bench.advance(3_000)
    assert bench.pending == [JoinGroupRequest]


def test_lookups_are_repeated_with_a_backoff() -> None:
    """After an error answer, and when the connection breaks; others wait with the first."""
    bench = make()
    bench.automatic.discard(FindCoordinatorRequest)
    bench.poll()
    bench.find(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    bench.advance(250)
    bench.disconnect(BROKER.node_id)
    bench.advance(500)
    token = bench.commit({P0: 1}, sync=True)
    assert bench.pending == [FindCoordinatorRequest]
    bench.find()
    assert bench.pending == [JoinGroupRequest]
    assert token not in bench.commits


def test_without_a_broker_to_ask_the_lookup_waits() -> None:
    """Every connection is refused, so there is nobody to ask."""
    bench = make()
    bench.refuses = True
    bench.poll()
    bench.advance(2_000)
    assert bench.pending == []
    bench.refuses = False
    bench.advance(4_000)
    assert bench.pending == [JoinGroupRequest]


# JoinGroup and SyncGroup.


@pytest.mark.parametrize(
    "fields",
    [
        {"protocol_name": "roundrobin"},
        {"leader": MEMBER, "members": members(b"\x00")},
        {"error_code": ErrorCode.GROUP_MAX_SIZE_REACHED, "protocol_name": None, "member_id": ""},
    ],
)
def test_a_join_that_cannot_be_used_is_an_error(fields: dict[str, object]) -> None:
    """A protocol one did not offer, members that do not parse, a refusal."""
    bench = polled()
    bench.join(**fields)
    assert bench.changes == [(LOST, ())]
    bench.advance(250)
    assert bench.pending == [JoinGroupRequest]


@pytest.mark.parametrize(
    "response",
    [
        SyncGroupResponse(assignment=b"\x00"),
        SyncGroupResponse(error_code=ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_a_sync_that_cannot_be_used_is_an_error(response: SyncGroupResponse) -> None:
    """An assignment that does not parse, a refusal; an empty assignment is none."""
    bench = polled()
    bench.join()
    bench.answer(SyncGroupRequest, response)
    assert bench.changes == [(LOST, ())]
    bench = polled()
    bench.join()
    bench.sync()
    assert bench.changes == [(CallbackKind.PARTITIONS_ASSIGNED, ())]
    assert bench.pending == []


def test_a_leader_asks_for_metadata_of_topics_of_others() -> None:
    """And assigns when it knows them; it watches their partitions from then on."""
    bench = polled(metadata_max_age_ms="20000")
    bench.topics = {"t": 2, "u": 1}
    both = members(subscription("t"), subscription("t", "u"))
    bench.join(leader=MEMBER, members=both)
    (request,) = bench.sent(SyncGroupRequest)
    bench.give(P0)
    assert [entry.member_id for entry in request.assignments] == [MEMBER, "other"]
    bench.offsets({P0: 7, P1: 7})
    bench.topics = {"t": 3, "u": 1}
    bench.advance(3_000)
    while not bench.waiting(JoinGroupRequest):
        bench.beat()
        bench.advance(3_000)
    assert (reason_of(bench) or "").endswith("some topics have new partitions")


def test_a_leader_whose_assignor_fails_has_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The application loses what it has, as after an error of the assignor itself."""
    bench = polled()

    def fail(*_: object) -> None:
        raise AssignmentFailed("no way")

    monkeypatch.setattr(bench.port._assignors[0].__class__, "assign", fail)
    bench.lead()
    assert bench.changes == [(LOST, ())]


def test_a_static_leader_that_came_back_to_a_stale_plan_rejoins() -> None:
    """The broker keeps its old assignment; the client's own plan says otherwise."""
    bench = polled(group_instance_id="one")
    bench.lead(skip_assignment=True)
    bench.give(P0)
    assert bench.sent(SyncGroupRequest)[0].assignments == ()
    assert "was reassigned old plan" in (reason_of(bench) or "")


# Sessions.


def test_a_session_lost_in_the_middle_of_a_revocation_is_an_error() -> None:
    """The last heartbeat of a session decides what follows it."""
    bench = settled(heartbeat_interval_ms="1000")
    bench.automatic.discard(RunCallback)
    bench.advance(1_000)
    bench.beat(REBALANCE)
    bench.advance(1_000)
    bench.beat(UNKNOWN)
    bench.automatic.discard(RunCallback)
    bench.complete(bench.callbacks[-1])
    assert bench.changes[-1] == (LOST, ())


def test_a_heartbeat_in_flight_is_waited_for_after_the_revocation() -> None:
    """The session ends with its answer."""
    bench = settled(heartbeat_interval_ms="1000")
    bench.automatic.discard(RunCallback)
    bench.advance(1_000)
    bench.beat(REBALANCE)
    bench.advance(1_000)
    bench.release()
    assert bench.pending == [HeartbeatRequest]
    bench.beat(REBALANCE)
    assert reason_of(bench) == "rejoining from normal rebalance"


def test_a_rebalance_before_the_assignment_is_through_revokes_after_it() -> None:
    """Offsets are not looked up for partitions that are given up anyway."""
    bench = polled(heartbeat_interval_ms="1000")
    bench.automatic.discard(RunCallback)
    bench.join()
    bench.give(P0, P1)
    bench.advance(1_000)
    bench.beat(REBALANCE)
    bench.release()
    assert bench.changes[-1] == (REVOKED, (P0, P1))
    assert bench.pending == [JoinGroupRequest]


def test_offsets_that_cannot_be_looked_up_end_the_session() -> None:
    """A refusal, or no answer at all; unstable ones are asked for again after a second."""
    bench = polled()
    bench.join()
    bench.give(P0, P1)
    bench.offsets(of_partitions=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    bench.advance(1_000)
    bench.offsets(7, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    assert bench.changes[-1] == (LOST, (P0, P1))
    bench = polled(heartbeat_interval_ms="40000")
    bench.join()
    bench.give(P0, P1)
    for _ in range(12):
        bench.disconnect(BROKER.node_id)
        bench.advance(3_000)
    assert (LOST, (P0, P1)) in bench.changes


def test_offsets_of_partitions_given_up_meanwhile_are_ignored() -> None:
    """The answer to a look-up comes after the revocation."""
    bench = polled(heartbeat_interval_ms="1000")
    bench.join()
    bench.give(P0, P1)
    bench.advance(1_000)
    bench.beat(REBALANCE)
    bench.offsets({P0: 7, P1: 7})
    assert bench.port.positions == {}


def test_a_partition_without_an_offset_is_reset() -> None:
    """The driver is asked where it begins."""
    bench = polled(auto_offset_reset="earliest")
    bench.join()
    bench.give(P0, P1)
    bench.offsets({P0: -1, P1: -1})
    assert [reset.partitions for reset in bench.resets] == [(P0, P1)]


# Commits.


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (ErrorCode.NONE, None),
        (ErrorCode.ILLEGAL_GENERATION, COMMIT_FAILED),
        (ErrorCode.OFFSET_METADATA_TOO_LARGE, "OffsetMetadataTooLarge"),
    ],
)
def test_a_commit_of_the_application_ends(error: ErrorCode, name: str | None) -> None:
    """Commits are sent one after another."""
    bench = settled()
    first, second = bench.commit({P0: 8, P1: 8}, sync=True), bench.commit({P0: 9, P1: 9}, sync=True)
    assert bench.pending == [OffsetCommitRequest]
    bench.refuse_commit(error)
    bench.refuse_commit(ErrorCode.NONE)
    assert bench.commits == {first: name, second: None}


def test_a_commit_without_an_answer_fails_after_half_a_minute() -> None:
    """Until then it is tried again."""
    bench = settled(heartbeat_interval_ms="40000")
    token = bench.commit({P0: 8}, sync=True)
    for _ in range(12):
        bench.disconnect(BROKER.node_id)
        bench.advance(3_000)
    assert bench.commits[token] == TIMEOUT


def test_an_automatic_commit_during_a_join_follows_it() -> None:
    """Eager: there is nothing left then. Cooperative: what was polled meanwhile."""
    bench = settled(STICKY, auto_commit_interval_ms="4000")
    bench.port.advance_position(P0, 9)
    bench.advance(500)
    bench.beat()
    bench.advance(3_000)
    bench.beat()
    bench.advance(1_000)
    bench.refuse_commit(ErrorCode.NONE)
    beat(bench, REBALANCE)
    bench.port.advance_position(P1, 9)
    bench.advance(4_000)
    assert bench.pending == [JoinGroupRequest]
    bench.join(protocol_name=STICKY, generation_id=2)
    bench.give(P0, P1)
    assert bench.pending == [OffsetCommitRequest]
    bench.refuse_commit(ErrorCode.NONE)


def test_nothing_is_committed_twice_or_by_itself_when_told_not_to() -> None:
    """Without auto-commit what is polled is ready at once, for the application to commit."""
    bench = settled(enable_auto_commit="false")
    bench.port.advance_position(P0, 9)
    bench.advance(3_000)
    beat(bench, REBALANCE)
    assert bench.changes[-1] == (REVOKED, (P0, P1))
    assert bench.pending == [JoinGroupRequest]


# Metadata and subscriptions.


def test_a_subscription_that_grows_rejoins_when_the_topic_is_there() -> None:
    """A topic that goes is revoked, cooperatively too."""
    bench = settled(STICKY)
    bench.do(bench.port.subscribe(("u",), bench.now_ms))
    assert bench.changes[-1] == (REVOKED, (P0, P1))
    assert "our interests have changed" in (reason_of(bench) or "")
    bench = make(metadata_max_age_ms="10000")
    bench.port.subscribe(("t", "u"), 0)
    bench.settle(P0, P1)
    bench.topics = {"t": 2, "u": 1}
    for _ in range(3):
        beat(bench)
    bench.advance(2_000)
    assert "our interests have changed" in (reason_of(bench) or "")


# Leaving.


def test_leaving_during_a_join_waits_for_it() -> None:
    """The assignment is handed over and taken back, then the member leaves."""
    bench = settled()
    beat(bench, REBALANCE)
    bench.close()
    assert bench.pending == [JoinGroupRequest]
    bench.join(generation_id=2)
    bench.give(P0)
    assert bench.changes[-2:] == [(CallbackKind.PARTITIONS_ASSIGNED, (P0,)), (REVOKED, (P0,))]
    bench.answer(LeaveGroupRequest, LeaveGroupResponse())
    (request,) = bench.sent(LeaveGroupRequest)
    assert request.members[0].reason == "client leaving group per normal operation"
    assert bench.is_closed


def test_leaving_during_a_join_that_fails_leaves_at_once() -> None:
    """A member that closes while its rejoin fails holds nothing, and leaves at once."""
    bench = settled()
    beat(bench, REBALANCE)
    bench.close()
    bench.refuse_join(ErrorCode.GROUP_MAX_SIZE_REACHED)
    bench.answer(LeaveGroupRequest, LeaveGroupResponse())
    assert bench.is_closed


def test_leaving_during_a_revocation_waits_for_it() -> None:
    """Then it leaves instead of joining."""
    bench = settled()
    bench.automatic.discard(RunCallback)
    beat(bench, REBALANCE)
    bench.close()
    bench.release()
    assert bench.pending == [LeaveGroupRequest]


def test_leaving_during_a_backoff_leaves_at_once() -> None:
    """Or after the application has heard of its loss."""
    bench = settled()
    beat(bench, UNKNOWN)
    bench.close()
    bench.advance(5_000)
    assert bench.pending == [LeaveGroupRequest]
    bench = settled()
    bench.automatic.discard(RunCallback)
    beat(bench, UNKNOWN)
    bench.close()
    assert bench.pending == []
    bench.release()
    assert bench.pending == [LeaveGroupRequest]
    bench.advance(5_000)
    assert bench.pending == [LeaveGroupRequest]


def test_leaving_before_there_is_a_group_or_an_id_says_nothing() -> None:
    """A member without an id leaves without a LeaveGroup."""
    bench = make()
    bench.automatic.discard(MetadataRequest)
    bench.poll()
    bench.close()
    assert bench.is_closed
    bench = polled()
    bench.close()
    bench.refuse_join(ErrorCode.GROUP_MAX_SIZE_REACHED)
    assert bench.is_closed


def test_a_static_member_that_owes_the_group_a_join_leaves() -> None:
    """The member gave partitions up that only a rebalance can hand on."""
    bench = settled(STICKY, group_instance_id="one")
    bench.advance(600)
    beat(bench)
    beat(bench, REBALANCE)
    bench.join(protocol_name=STICKY, generation_id=2)
    bench.give(P0)
    bench.close()
    bench.refuse_join(ErrorCode.GROUP_MAX_SIZE_REACHED)
    assert bench.pending == [LeaveGroupRequest]
    bench.advance(30_000)
    assert bench.is_closed


def test_a_connection_broken_while_idle_costs_one_try() -> None:
    """The first request on it notices; the second is on a new one."""
    bench = settled()
    bench.disconnect(BROKER.node_id)
    bench.disconnect(COORDINATOR)
    bench.advance(3_000)
    assert bench.pending == []
    bench.advance(250)
    assert bench.pending == [HeartbeatRequest]


# Odd moments.


def test_an_answer_out_of_turn_breaks_the_connection() -> None:
    """The heartbeat in flight is sent once more, over another connection."""
    bench = settled()
    bench.advance(3_000)
    (node_id,) = (each.node_id for each in bench.unanswered)
    bench.do(bench.port.on_unexpected_response(node_id, bench.now_ms))
    assert bench.disconnected == [node_id]
    bench.advance(1_000)

    assert len(bench.sent(HeartbeatRequest)) == 2
    assert bench.dialled[-1] == node_id


def test_an_answer_that_nobody_reads_meets_the_next_request() -> None:
    """The connection breaks when the heartbeat has been sent over it, and it is sent again."""
    bench = settled()
    beat(bench)
    bench.do(bench.port.on_unexpected_response(BROKER.node_id, bench.now_ms))
    assert bench.disconnected == []
    bench.advance(3_500)

    assert bench.disconnected == [BROKER.node_id]
    assert len(bench.sent(HeartbeatRequest)) == 3
    bench.beat()
    bench.advance(10_000)
    assert bench.disconnected == [BROKER.node_id]


def test_a_commit_that_ends_in_a_join_lets_the_next_one_wait() -> None:
    """Until the join is through."""
    bench = settled(STICKY)
    first, second = bench.commit({P0: 8}, sync=True), bench.commit({P0: 9}, sync=True)
    beat(bench, REBALANCE)
    assert bench.waiting(JoinGroupRequest)
    bench.refuse_commit(ErrorCode.NONE)
    assert not bench.waiting(OffsetCommitRequest)
    bench.join(protocol_name=STICKY, generation_id=2)
    bench.give(P0, P1)
    bench.refuse_commit(ErrorCode.NONE)
    assert bench.commits == {first: None, second: None}


def test_an_automatic_commit_owed_by_an_eager_join_has_nothing_to_commit() -> None:
    """The positions were committed before the revocation."""
    bench = settled(auto_commit_interval_ms="4000")
    beat(bench, REBALANCE)
    bench.advance(5_000)
    bench.join(generation_id=2)
    bench.give(P0, P1)
    assert not bench.waiting(OffsetCommitRequest)


def test_the_coordinator_is_looked_up_once_for_all_who_wait() -> None:
    """A heartbeat and a commit share the lookup."""
    bench = settled()
    bench.automatic.discard(FindCoordinatorRequest)
    beat(bench, ErrorCode.NOT_COORDINATOR)
    bench.advance(300)
    bench.commit({P0: 8}, sync=True)
    assert bench.pending == [FindCoordinatorRequest]
    bench.find()
    assert bench.pending == [HeartbeatRequest, OffsetCommitRequest]
    assert bench.port.owned_partitions == (P0, P1)


def test_a_heartbeat_of_a_session_that_ended_is_not_looked_at() -> None:
    """Offsets that could not be looked up ended it."""
    bench = polled(heartbeat_interval_ms="1000")
    bench.join()
    bench.give(P0, P1)
    bench.advance(1_000)
    bench.offsets(7, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    told = len(bench.changes)
    bench.beat(UNKNOWN)
    assert len(bench.changes) == told
    bench.advance(300)
    assert bench.pending == [JoinGroupRequest]


def test_the_first_reason_to_rejoin_is_told() -> None:
    """A second one, before the next session begins, is not."""
    bench = settled()
    beat(bench, REBALANCE)
    bench.do(bench.port.subscribe(("t", "u"), bench.now_ms))
    bench.do(bench.port.subscribe(("t", "u", "v"), bench.now_ms))
    bench.join(generation_id=2)
    bench.give(P0, P1)
    assert "our interests have changed" in (reason_of(bench) or "")
