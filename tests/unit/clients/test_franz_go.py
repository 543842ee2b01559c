"""What the recordings do not show of franz-go: rare errors, lost connections, odd moments."""

import pytest

from coordinator_sim.assignors.contract import AssignmentFailed
from coordinator_sim.clients.client_traits import FRANZ_GO
from coordinator_sim.clients.effects import CallbackKind
from coordinator_sim.clients.exceptions import COMMIT_FAILED, TIMEOUT
from coordinator_sim.clients.franz_go import FranzGoConsumer
from coordinator_sim.messages.heartbeat import HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupResponse
from coordinator_sim.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.embedded import Subscription
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.wire.consumer_protocol import encode_subscription
from tests.unit.clients.model_bench import (
    BROKER,
    COORDINATOR,
    P0,
    P1,
    Bench,
    assignors,
    cluster,
    committed,
    coordinator_answer,
    fetched,
    joined,
    members,
    synced,
)

STICKY = "cooperative-sticky"
REVOKED, LOST = CallbackKind.PARTITIONS_REVOKED, CallbackKind.PARTITIONS_LOST
REBALANCE = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
UNKNOWN = HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
LOADS = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def make(assignor: str = "range", **settings: str) -> Bench:
    """A franz-go consumer that has not started yet; backoffs without jitter."""
    port = FranzGoConsumer(
        FRANZ_GO.config_from({key.replace("_", "."): value for key, value in settings.items()}),
        client_id="c",
        group_id="g",
        topics=("t",),
        assignors=assignors(assignor),
        bootstrap=cluster().brokers,
    )
    return Bench(port)


def subscription(*topics: str) -> bytes:
    """A member's metadata."""
    return encode_subscription(Subscription(topics=topics))


def reason_of(bench: Bench) -> str | None:
    """The reason of the JoinGroup that waits for its answer."""
    request = next(sent[2] for sent in bench.sent if sent[2].api_key is ApiKey.JOIN_GROUP)
    assert isinstance(request, JoinGroupRequest)
    return request.reason


def beat(bench: Bench, response: HeartbeatResponse) -> Bench:
    """Wait for the next heartbeat and answer it."""
    bench.pass_ms(3_000)
    bench.answer(ApiKey.HEARTBEAT, response)
    return bench


# Requests that are tried again.


def test_a_request_is_given_up_after_its_time() -> None:
    """Tries of a JoinGroup end with the session timeout; the member backs off and joins anew."""
    bench = make(session_timeout_ms="4000").poll()
    for wait_ms in (250, 500, 1_000, 2_000):
        bench.answer(ApiKey.JOIN_GROUP, JoinGroupResponse(error_code=LOADS, protocol_name=None))
        assert bench.waiting() == []
        bench.pass_ms(wait_ms)
    bench.answer(ApiKey.JOIN_GROUP, JoinGroupResponse(error_code=LOADS, protocol_name=None))
    assert bench.callbacks == [(LOST, ())]
    bench.pass_ms(250)
    assert reason_of(bench) == "rejoining after we previously errored and backed off"


@pytest.mark.parametrize("api", [ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP])
def test_a_join_that_is_never_answered_loses_the_membership(api: ApiKey) -> None:
    """Neither JoinGroup nor SyncGroup is waited for beyond the session timeout's tries."""
    bench = make(session_timeout_ms="4000").poll()
    if api is ApiKey.SYNC_GROUP:
        bench.answer(ApiKey.JOIN_GROUP, joined())
    for _ in range(5):
        bench.break_link()
        bench.pass_ms(2_500)
    assert (LOST, ()) in bench.callbacks


def test_a_connection_that_cannot_be_opened_makes_the_coordinator_unknown() -> None:
    """A lookup that finds no broker either fails everything that waits for it."""
    bench = make()
    bench.poll()
    bench.refuses = True
    bench.break_link().break_link(BROKER)
    bench.pass_ms(1_000)
    assert bench.callbacks[0] == (LOST, ())
    assert bench.port.coordinator_node is None
    bench.refuses = False
    bench.pass_ms(3_000)
    assert bench.waiting() == [ApiKey.JOIN_GROUP]


def test_lookups_are_repeated_with_a_backoff() -> None:
    """After an error answer, and when the connection breaks; others wait with the first."""
    bench = make()
    bench.answers_lookups = False
    bench.poll()
    bench.answer(ApiKey.FIND_COORDINATOR, coordinator_answer(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    bench.pass_ms(250)
    bench.break_link(BROKER).pass_ms(500)
    token = bench.commit({P0: 1})
    assert bench.waiting() == [ApiKey.FIND_COORDINATOR]
    bench.answer(ApiKey.FIND_COORDINATOR, coordinator_answer())
    assert bench.waiting() == [ApiKey.JOIN_GROUP]
    assert token not in bench.commits


def test_without_a_broker_to_ask_the_lookup_waits() -> None:
    """Every connection is refused, so there is nobody to ask."""
    bench = make()
    bench.refuses = True
    bench.poll().pass_ms(2_000)
    assert bench.waiting() == []
    bench.refuses = False
    bench.pass_ms(4_000)
    assert bench.waiting() == [ApiKey.JOIN_GROUP]


# JoinGroup and SyncGroup.


@pytest.mark.parametrize(
    "response",
    [
        joined(assignor="roundrobin"),
        joined(leader="me", members=members(b"\x00")),
        JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED, protocol_name=None),
    ],
)
def test_a_join_that_cannot_be_used_is_an_error(response: JoinGroupResponse) -> None:
    """A protocol one did not offer, members that do not parse, a refusal."""
    bench = make().poll()
    bench.answer(ApiKey.JOIN_GROUP, response)
    assert bench.callbacks == [(LOST, ())]
    assert bench.pass_ms(250).waiting() == [ApiKey.JOIN_GROUP]


@pytest.mark.parametrize(
    "response",
    [
        SyncGroupResponse(assignment=b"\x00"),
        SyncGroupResponse(error_code=ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_a_sync_that_cannot_be_used_is_an_error(response: SyncGroupResponse) -> None:
    """An assignment that does not parse, a refusal; an empty assignment is none."""
    bench = make().poll()
    bench.answer(ApiKey.JOIN_GROUP, joined())
    bench.answer(ApiKey.SYNC_GROUP, response)
    assert bench.callbacks == [(LOST, ())]
    bench = make().poll()
    bench.answer(ApiKey.JOIN_GROUP, joined())
    bench.answer(ApiKey.SYNC_GROUP, SyncGroupResponse())
    assert bench.callbacks == [(CallbackKind.PARTITIONS_ASSIGNED, ())]
    assert bench.waiting() == []


def test_a_leader_asks_for_metadata_of_topics_of_others() -> None:
    """And assigns when it knows them; it watches their partitions from then on."""
    bench = make(metadata_max_age_ms="20000").poll()
    bench.cluster = cluster(2, "u")
    both = members(subscription("t"), subscription("t", "u"))
    bench.answer(ApiKey.JOIN_GROUP, joined(leader="me", members=both))
    request = bench.answer(ApiKey.SYNC_GROUP, synced(P0))
    assert isinstance(request, SyncGroupRequest)
    assert [entry.member_id for entry in request.assignments] == ["me", "other"]
    bench.answer(ApiKey.OFFSET_FETCH, fetched())
    bench.cluster = cluster(3, "u")
    while ApiKey.JOIN_GROUP not in bench.pass_ms(3_000).waiting():
        bench.answer(ApiKey.HEARTBEAT, HeartbeatResponse())
    assert (reason_of(bench) or "").endswith("some topics have new partitions")


def test_a_leader_whose_assignor_fails_has_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the assignor's own exception would be."""
    bench = make().poll()

    def fail(*_: object) -> None:
        raise AssignmentFailed("no way")

    monkeypatch.setattr(bench.port._assignors[0].__class__, "assign", fail)
    response = joined(leader="me", members=members(subscription("t")))
    bench.answer(ApiKey.JOIN_GROUP, response)
    assert bench.callbacks == [(LOST, ())]


def test_a_static_leader_that_came_back_to_a_stale_plan_rejoins() -> None:
    """The broker keeps its old assignment; the client's own plan says otherwise."""
    bench = make(group_instance_id="one").poll()
    response = joined(leader="me", members=members(subscription("t")), skip_assignment=True)
    bench.answer(ApiKey.JOIN_GROUP, response)
    request = bench.answer(ApiKey.SYNC_GROUP, synced(P0))
    assert isinstance(request, SyncGroupRequest)
    assert request.assignments == ()
    assert "was reassigned old plan" in (reason_of(bench) or "")


# Sessions.


def test_a_session_lost_in_the_middle_of_a_revocation_is_an_error() -> None:
    """The last heartbeat of a session decides what follows it."""
    bench = make(heartbeat_interval_ms="1000").join()
    bench.holds_callbacks = True
    bench.pass_ms(1_000).answer(ApiKey.HEARTBEAT, REBALANCE)
    bench.pass_ms(1_000).answer(ApiKey.HEARTBEAT, UNKNOWN)
    bench.holds_callbacks = True
    bench.run(bench.port.callback_completed(bench.held.pop(0), None, bench.now_ms))
    assert bench.callbacks[-1] == (LOST, ())


def test_a_heartbeat_in_flight_is_waited_for_after_the_revocation() -> None:
    """The session ends with its answer."""
    bench = make(heartbeat_interval_ms="1000").join()
    bench.holds_callbacks = True
    bench.pass_ms(1_000).answer(ApiKey.HEARTBEAT, REBALANCE)
    bench.pass_ms(1_000)
    bench.release()
    assert bench.waiting() == [ApiKey.HEARTBEAT]
    bench.answer(ApiKey.HEARTBEAT, REBALANCE)
    assert reason_of(bench) == "rejoining from normal rebalance"


def test_a_rebalance_before_the_assignment_is_through_revokes_after_it() -> None:
    """Offsets are not looked up for partitions that are given up anyway."""
    bench = make(heartbeat_interval_ms="1000").poll()
    bench.holds_callbacks = True
    bench.answer(ApiKey.JOIN_GROUP, joined())
    bench.answer(ApiKey.SYNC_GROUP, synced(P0, P1))
    bench.pass_ms(1_000).answer(ApiKey.HEARTBEAT, REBALANCE)
    bench.release()
    assert bench.callbacks[-1] == (REVOKED, (P0, P1))
    assert bench.waiting() == [ApiKey.JOIN_GROUP]


def test_offsets_that_cannot_be_looked_up_end_the_session() -> None:
    """A refusal, or no answer at all; unstable ones are asked for again after a second."""
    bench = make().poll()
    bench.answer(ApiKey.JOIN_GROUP, joined())
    bench.answer(ApiKey.SYNC_GROUP, synced(P0, P1))
    bench.answer(ApiKey.OFFSET_FETCH, fetched(of_partition=ErrorCode.UNSTABLE_OFFSET_COMMIT))
    bench.pass_ms(1_000)
    bench.answer(ApiKey.OFFSET_FETCH, fetched(ErrorCode.GROUP_AUTHORIZATION_FAILED))
    assert bench.callbacks[-1] == (LOST, (P0, P1))
    bench = make(heartbeat_interval_ms="40000").poll()
    bench.answer(ApiKey.JOIN_GROUP, joined())
    bench.answer(ApiKey.SYNC_GROUP, synced(P0, P1))
    for _ in range(12):
        bench.break_link(BROKER).pass_ms(3_000)
    assert (LOST, (P0, P1)) in bench.callbacks


def test_offsets_of_partitions_given_up_meanwhile_are_ignored() -> None:
    """The answer to a look-up comes after the revocation."""
    bench = make(heartbeat_interval_ms="1000").poll()
    bench.answer(ApiKey.JOIN_GROUP, joined())
    bench.answer(ApiKey.SYNC_GROUP, synced(P0, P1))
    bench.pass_ms(1_000).answer(ApiKey.HEARTBEAT, REBALANCE)
    bench.answer(ApiKey.OFFSET_FETCH, fetched())
    assert bench.port.positions == {}


def test_a_partition_without_an_offset_is_reset() -> None:
    """The driver is asked where it begins."""
    bench = make(auto_offset_reset="earliest").poll()
    bench.answer(ApiKey.JOIN_GROUP, joined())
    bench.answer(ApiKey.SYNC_GROUP, synced(P0, P1))
    bench.answer(ApiKey.OFFSET_FETCH, fetched(offset=-1))
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
    bench = make().join()
    first, second = bench.commit({P0: 8, P1: 8}), bench.commit({P0: 9, P1: 9})
    assert bench.waiting() == [ApiKey.OFFSET_COMMIT]
    bench.answer(ApiKey.OFFSET_COMMIT, committed(error))
    bench.answer(ApiKey.OFFSET_COMMIT, committed())
    assert bench.commits == {first: name, second: None}


def test_a_commit_without_an_answer_fails_after_half_a_minute() -> None:
    """Until then it is tried again."""
    bench = make(heartbeat_interval_ms="40000").join()
    token = bench.commit({P0: 8})
    for _ in range(12):
        bench.break_link(BROKER).pass_ms(3_000)
    assert bench.commits[token] == TIMEOUT


def test_an_automatic_commit_during_a_join_follows_it() -> None:
    """Eager: there is nothing left then. Cooperative: what was polled meanwhile."""
    bench = make(STICKY, auto_commit_interval_ms="4000").join(STICKY)
    bench.port.advance_position(P0, 9)
    bench.pass_ms(500).answer(ApiKey.HEARTBEAT, HeartbeatResponse())
    bench.pass_ms(3_000).answer(ApiKey.HEARTBEAT, HeartbeatResponse())
    bench.pass_ms(1_000).answer(ApiKey.OFFSET_COMMIT, committed())
    beat(bench, REBALANCE)
    bench.port.advance_position(P1, 9)
    bench.pass_ms(4_000)
    assert bench.waiting() == [ApiKey.JOIN_GROUP]
    bench.answer(ApiKey.JOIN_GROUP, joined(assignor=STICKY, generation=2))
    bench.answer(ApiKey.SYNC_GROUP, synced(P0, P1))
    assert bench.waiting() == [ApiKey.OFFSET_COMMIT]
    bench.answer(ApiKey.OFFSET_COMMIT, committed())


def test_nothing_is_committed_twice_or_by_itself_when_told_not_to() -> None:
    """Without auto-commit what is polled is ready at once, for the application to commit."""
    bench = make(enable_auto_commit="false").join()
    bench.port.advance_position(P0, 9)
    beat(bench.pass_ms(3_000), REBALANCE)
    assert bench.callbacks[-1] == (REVOKED, (P0, P1))
    assert bench.waiting() == [ApiKey.JOIN_GROUP]


# Metadata and subscriptions.


def test_a_subscription_that_grows_rejoins_when_the_topic_is_there() -> None:
    """A topic that goes is revoked, cooperatively too."""
    bench = make(STICKY).join(STICKY)
    bench.run(bench.port.subscribe(("u",), bench.now_ms))
    assert bench.callbacks[-1] == (REVOKED, (P0, P1))
    assert "our interests have changed" in (reason_of(bench) or "")
    bench = make(metadata_max_age_ms="10000")
    bench.port.subscribe(("t", "u"), 0)
    bench.join()
    bench.cluster = cluster(2, "u")
    beat(beat(beat(bench, HeartbeatResponse()), HeartbeatResponse()), HeartbeatResponse())
    bench.pass_ms(2_000)
    assert "our interests have changed" in (reason_of(bench) or "")


# Leaving.


def test_leaving_during_a_join_waits_for_it() -> None:
    """The assignment is handed over and taken back, then the member leaves."""
    bench = make().join()
    beat(bench, REBALANCE)
    bench.close()
    assert bench.waiting() == [ApiKey.JOIN_GROUP]
    bench.answer(ApiKey.JOIN_GROUP, joined(generation=2))
    bench.answer(ApiKey.SYNC_GROUP, synced(P0))
    assert bench.callbacks[-2:] == [
        (CallbackKind.PARTITIONS_ASSIGNED, (P0,)),
        (REVOKED, (P0,)),
    ]
    request = bench.answer(ApiKey.LEAVE_GROUP, LeaveGroupResponse())
    assert isinstance(request, LeaveGroupRequest)
    assert request.members[0].reason == "client leaving group per normal operation"
    assert bench.is_closed


def test_leaving_during_a_join_that_fails_leaves_at_once() -> None:
    """There is nothing to lose."""
    bench = make().join()
    beat(bench, REBALANCE)
    bench.close()
    bench.answer(
        ApiKey.JOIN_GROUP,
        JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED, protocol_name=None),
    )
    bench.answer(ApiKey.LEAVE_GROUP, LeaveGroupResponse())
    assert bench.is_closed


def test_leaving_during_a_revocation_waits_for_it() -> None:
    """Then it leaves instead of joining."""
    bench = make().join()
    bench.holds_callbacks = True
    beat(bench, REBALANCE)
    bench.close()
    bench.release()
    assert bench.waiting() == [ApiKey.LEAVE_GROUP]


def test_leaving_during_a_backoff_leaves_at_once() -> None:
    """Or after the application has heard of its loss."""
    bench = make().join()
    beat(bench, UNKNOWN)
    bench.close()
    assert bench.pass_ms(5_000).waiting() == [ApiKey.LEAVE_GROUP]
    bench = make().join()
    bench.holds_callbacks = True
    beat(bench, UNKNOWN)
    bench.close()
    assert bench.waiting() == []
    bench.release()
    assert bench.waiting() == [ApiKey.LEAVE_GROUP]
    bench.pass_ms(5_000)
    assert bench.waiting() == [ApiKey.LEAVE_GROUP]


def test_leaving_before_there_is_a_group_or_an_id_says_nothing() -> None:
    """Nobody knows the member."""
    bench = make()
    bench.answers_metadata = False
    assert bench.poll().close().is_closed
    bench = make().poll()
    bench.close()
    bench.answer(
        ApiKey.JOIN_GROUP,
        JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED, protocol_name=None),
    )
    assert bench.is_closed


def test_a_static_member_that_owes_the_group_a_join_leaves() -> None:
    """It gave partitions up that only a rebalance can hand on."""
    bench = make(STICKY, group_instance_id="one").join(STICKY)
    beat(bench.pass_ms(600), HeartbeatResponse())
    beat(bench, REBALANCE)
    bench.answer(ApiKey.JOIN_GROUP, joined(assignor=STICKY, generation=2))
    bench.answer(ApiKey.SYNC_GROUP, synced(P0))
    bench.close()
    bench.answer(
        ApiKey.JOIN_GROUP,
        JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED, protocol_name=None),
    )
    assert bench.waiting() == [ApiKey.LEAVE_GROUP]
    bench.pass_ms(30_000)
    assert bench.is_closed


def test_a_connection_broken_while_idle_costs_one_try() -> None:
    """The first request on it notices; the second is on a new one."""
    bench = make().join()
    bench.break_link(BROKER).break_link(COORDINATOR)
    bench.pass_ms(3_000)
    assert bench.waiting() == []
    bench.pass_ms(250)
    assert bench.waiting() == [ApiKey.HEARTBEAT]


# Odd moments.


def test_a_commit_that_ends_in_a_join_lets_the_next_one_wait() -> None:
    """Until the join is through."""
    bench = make(STICKY).join(STICKY)
    first, second = bench.commit({P0: 8}), bench.commit({P0: 9})
    beat(bench, REBALANCE)
    assert ApiKey.JOIN_GROUP in bench.waiting()
    bench.answer(ApiKey.OFFSET_COMMIT, committed())
    assert ApiKey.OFFSET_COMMIT not in bench.waiting()
    bench.answer(ApiKey.JOIN_GROUP, joined(assignor=STICKY, generation=2))
    bench.answer(ApiKey.SYNC_GROUP, synced(P0, P1))
    bench.answer(ApiKey.OFFSET_COMMIT, committed())
    assert bench.commits == {first: None, second: None}


def test_an_automatic_commit_owed_by_an_eager_join_has_nothing_to_commit() -> None:
    """It was committed before the revocation."""
    bench = make(auto_commit_interval_ms="4000").join()
    beat(bench, REBALANCE)
    bench.pass_ms(5_000)
    bench.answer(ApiKey.JOIN_GROUP, joined(generation=2))
    bench.answer(ApiKey.SYNC_GROUP, synced(P0, P1))
    assert ApiKey.OFFSET_COMMIT not in bench.waiting()


def test_the_coordinator_is_looked_up_once_for_all_who_wait() -> None:
    """A heartbeat and a commit share the lookup."""
    bench = make().join()
    bench.answers_lookups = False
    beat(bench, HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR))
    bench.pass_ms(300)
    bench.commit({P0: 8})
    assert bench.waiting() == [ApiKey.FIND_COORDINATOR]
    bench.answer(ApiKey.FIND_COORDINATOR, coordinator_answer())
    assert bench.waiting() == [ApiKey.HEARTBEAT, ApiKey.OFFSET_COMMIT]
    assert bench.port.owned_partitions == (P0, P1)


def test_a_heartbeat_of_a_session_that_ended_is_not_looked_at() -> None:
    """Offsets that could not be looked up ended it."""
    bench = make(heartbeat_interval_ms="1000").poll()
    bench.answer(ApiKey.JOIN_GROUP, joined())
    bench.answer(ApiKey.SYNC_GROUP, synced(P0, P1))
    bench.pass_ms(1_000)
    bench.answer(ApiKey.OFFSET_FETCH, fetched(ErrorCode.GROUP_AUTHORIZATION_FAILED))
    told = len(bench.callbacks)
    bench.answer(ApiKey.HEARTBEAT, UNKNOWN)
    assert len(bench.callbacks) == told
    bench.pass_ms(300)
    assert bench.waiting() == [ApiKey.JOIN_GROUP]


def test_the_first_reason_to_rejoin_is_told() -> None:
    """A second one, before the next session begins, is not."""
    bench = make().join()
    beat(bench, REBALANCE)
    bench.run(bench.port.subscribe(("t", "u"), bench.now_ms))
    bench.run(bench.port.subscribe(("t", "u", "v"), bench.now_ms))
    bench.answer(ApiKey.JOIN_GROUP, joined(generation=2))
    bench.answer(ApiKey.SYNC_GROUP, synced(P0, P1))
    assert "our interests have changed" in (reason_of(bench) or "")
