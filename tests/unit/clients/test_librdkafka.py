"""What the recordings do not show of librdkafka: rare errors, lost connections, odd moments."""

import pytest

from coordinator_sim.assignors.contract import AssignmentFailed
from coordinator_sim.clients.client_traits import LIBRDKAFKA
from coordinator_sim.clients.effects import CallbackKind
from coordinator_sim.clients.exceptions import COMMIT_FAILED, FENCED_INSTANCE_ID, WAKEUP
from coordinator_sim.clients.librdkafka import LibrdkafkaConsumer
from coordinator_sim.clients.librdkafka.states import JoinState
from coordinator_sim.errors import ConfigError, InvariantViolation
from coordinator_sim.messages.describe_groups import DescribeGroupsResponse
from coordinator_sim.messages.heartbeat import HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupResponse
from coordinator_sim.messages.leave_group import LeaveGroupResponse
from coordinator_sim.messages.sync_group import SyncGroupResponse
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.errors import ErrorCode
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
ASSIGNED = CallbackKind.PARTITIONS_ASSIGNED


def make(assignor: str = "range", **settings: str) -> Bench:
    """A librdkafka consumer that has not polled yet."""
    port = LibrdkafkaConsumer(
        LIBRDKAFKA.config_from({key.replace("_", "."): value for key, value in settings.items()}),
        client_id="c",
        group_id="g",
        topics=("t",),
        assignors=assignors(assignor),
        bootstrap=cluster().brokers,
    )
    return Bench(port)


def state_of(bench: Bench) -> JoinState:
    """The join state."""
    assert isinstance(bench.port, LibrdkafkaConsumer)
    return bench.port.join_state


# JoinGroup.


def test_fencing_on_join_is_fatal() -> None:
    """The poll raises it once, and nothing is sent any more."""
    bench = make(group_instance_id="one").poll()
    bench.answer(
        ApiKey.JOIN_GROUP,
        JoinGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID, protocol_name=None),
    )
    bench.pass_ms(10_000)

    assert [error for error in bench.poll_errors if error] == [FENCED_INSTANCE_ID]
    assert bench.waiting() == []
    token = bench.commit({P0: 1})
    assert bench.commits[token] == FENCED_INSTANCE_ID
    assert bench.close().is_closed


@pytest.mark.parametrize(
    "response",
    [
        JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR, protocol_name=None),
        JoinGroupResponse(error_code=ErrorCode.ILLEGAL_GENERATION, protocol_name=None),
        JoinGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL, protocol_name=None),
        joined(assignor="sticky"),
    ],
)
def test_a_refused_join_is_repeated_two_seconds_later(response: JoinGroupResponse) -> None:
    """The join interval and a backoff of a second each, whatever the error."""
    bench = make().poll()
    bench.answer(ApiKey.JOIN_GROUP, response)
    bench.to(1_999)
    assert bench.waiting() == []
    bench.to(3_000)
    assert bench.waiting() == [ApiKey.JOIN_GROUP]


def test_a_lost_join_is_repeated_by_the_interval() -> None:
    """A broken connection counts as an error answer; the answer to an older join is ignored."""
    bench = make().poll()
    bench.break_link()
    bench.to(3_000)
    assert bench.waiting() == [ApiKey.JOIN_GROUP]


def test_a_topic_that_does_not_exist_delays_the_join() -> None:
    """The member asks for metadata until the topic is there."""
    bench = make()
    bench.cluster = cluster(0)
    bench.cluster = bench.cluster.__class__(brokers=bench.cluster.brokers, topics=())
    bench.poll().pass_ms(3_000)
    assert bench.waiting() == []
    bench.cluster = cluster()
    bench.pass_ms(3_000)
    assert bench.waiting() == [ApiKey.JOIN_GROUP]


# The leader.


def lead(bench: Bench, *blobs: bytes) -> None:
    """Be elected leader of members with these subscriptions; none: one's own."""
    _, _, request = next(sent for sent in bench.sent if sent[2].api_key is ApiKey.JOIN_GROUP)
    assert isinstance(request, JoinGroupRequest)
    offered = request.protocols[0]
    response = joined(
        assignor=offered.name, leader="me", members=members(*(blobs or (offered.metadata,)))
    )
    bench.answer(ApiKey.JOIN_GROUP, response)


def test_a_leader_whose_members_do_not_parse_waits_for_its_session() -> None:
    """Nothing can be assigned, so no SyncGroup is sent."""
    bench = make().poll()
    lead(bench, b"\x00")
    assert bench.waiting() == []
    assert state_of(bench) is JoinState.WAIT_METADATA


def test_a_leader_without_metadata_or_assignment_joins_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The connection breaks before the metadata is there; then the assignor fails."""
    bench = make().poll()
    bench.answers_metadata = False
    lead(bench)
    bench.break_link()
    assert state_of(bench) is JoinState.INIT
    bench.answers_metadata = True
    bench.to(2_000)

    def fail(*_: object) -> None:
        raise AssignmentFailed("no way")

    monkeypatch.setattr(bench.port._assignors[0].__class__, "assign", fail)
    lead(bench)
    assert bench.waiting() == [ApiKey.JOIN_GROUP]


# SyncGroup.


@pytest.mark.parametrize(
    ("error", "id_after"),
    [
        (ErrorCode.UNKNOWN_MEMBER_ID, ""),
        (ErrorCode.ILLEGAL_GENERATION, "me"),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, "me"),
    ],
)
def test_a_refused_sync_joins_at_once(error: ErrorCode, id_after: str) -> None:
    """With or without the id, as the error says."""
    bench = make().poll()
    bench.answer(ApiKey.JOIN_GROUP, joined())
    bench.answer(ApiKey.SYNC_GROUP, SyncGroupResponse(error_code=error))
    _, _, request = bench.take(ApiKey.JOIN_GROUP)
    assert isinstance(request, JoinGroupRequest)
    assert request.member_id == id_after


def test_fencing_on_sync_is_fatal() -> None:
    """As on join."""
    bench = make(group_instance_id="one").poll()
    bench.answer(ApiKey.JOIN_GROUP, joined())
    bench.answer(ApiKey.SYNC_GROUP, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
    assert bench.poll_errors == [FENCED_INSTANCE_ID]
    assert bench.pass_ms(5_000).waiting() == []


def test_a_lost_sync_is_sent_again() -> None:
    """On the next connection, with the same content; an assignment that does not parse rejoins."""
    bench = make().poll()
    bench.answer(ApiKey.JOIN_GROUP, joined())
    bench.break_link()
    bench.pass_ms(100)
    assert bench.waiting() == [ApiKey.SYNC_GROUP]
    bench.answer(ApiKey.SYNC_GROUP, SyncGroupResponse(assignment=b"\x00"))
    assert state_of(bench) is JoinState.INIT


# A cooperative member that loses its membership.


@pytest.mark.parametrize("error", [ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_cooperative_member_loses_what_it_has(error: ErrorCode) -> None:
    """On a heartbeat, then on SyncGroup, then on JoinGroup; it joins again each time."""
    bench = make(STICKY).join(STICKY)
    bench.answer(ApiKey.HEARTBEAT, HeartbeatResponse(error_code=error))
    assert bench.callbacks[-1] == (LOST, (P0, P1))
    bench.answer(ApiKey.JOIN_GROUP, joined(assignor=STICKY, generation=2))
    bench.answer(ApiKey.SYNC_GROUP, SyncGroupResponse(error_code=error))
    assert bench.waiting() == [] or bench.waiting() == [ApiKey.JOIN_GROUP]
    bench.pass_ms(1_500)
    bench.answer(
        ApiKey.JOIN_GROUP,
        JoinGroupResponse(error_code=ErrorCode.ILLEGAL_GENERATION, protocol_name=None),
    )
    bench.pass_ms(3_000)
    assert bench.waiting() == [ApiKey.JOIN_GROUP]


def test_a_rebalance_during_the_second_half_of_a_cooperative_one_is_skipped() -> None:
    """While the application revokes, a heartbeat's answer changes nothing."""
    bench = make(STICKY).join(STICKY)
    bench.answer(ApiKey.HEARTBEAT, HeartbeatResponse())
    bench.to(1_000)
    bench.pass_ms(2_500)
    bench.answer(ApiKey.HEARTBEAT, HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    bench.answer(ApiKey.JOIN_GROUP, joined(assignor=STICKY, generation=2))
    bench.holds_callbacks = True
    bench.answer(ApiKey.SYNC_GROUP, synced(P0))
    bench.pass_ms(3_500)
    bench.answer(ApiKey.HEARTBEAT, HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    assert state_of(bench) is JoinState.WAIT_UNASSIGN_CALL
    assert bench.port.positions == {}
    bench.release()
    assert bench.callbacks[-2:] == [(REVOKED, (P1,)), (ASSIGNED, ())]
    assert bench.waiting() == [ApiKey.JOIN_GROUP]


# Heartbeats and the session.


def test_other_heartbeat_errors_are_ignored_until_the_session_is_over() -> None:
    """45 s without a good answer lose everything."""
    bench = make().join()
    for _ in range(20):
        if ApiKey.HEARTBEAT in bench.waiting():
            refusal = HeartbeatResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            bench.answer(ApiKey.HEARTBEAT, refusal)
        bench.pass_ms(3_000)
    assert (LOST, (P0, P1)) in bench.callbacks
    assert ApiKey.JOIN_GROUP in bench.waiting()


def test_a_lost_heartbeat_looks_the_coordinator_up() -> None:
    """The member stays; the answer to a heartbeat of an older session is ignored."""
    bench = make().join()
    bench.break_link().pass_ms(4_000)
    assert state_of(bench) is JoinState.STEADY
    _, correlation_id, _ = bench.take(ApiKey.HEARTBEAT)
    bench.run(bench.port.on_response(999, HeartbeatResponse(), bench.now_ms))
    bench.port._join_state = JoinState.WAIT_JOIN  # type: ignore[attr-defined] # a rebalance began
    late = HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    bench.run(bench.port.on_response(correlation_id, late, bench.now_ms))
    assert bench.port.member_id == "me"


def test_a_late_lost_heartbeat_changes_nothing_in_a_join() -> None:
    """Nor is the coordinator looked up for it."""
    bench = make().join()
    bench.answers_lookups = False
    assert ApiKey.HEARTBEAT in bench.pass_ms(3_000).waiting()
    bench.port._join_state = JoinState.WAIT_JOIN  # type: ignore[attr-defined] # a rebalance began
    bench.break_link()
    assert ApiKey.FIND_COORDINATOR in bench.pass_ms(2_000).waiting()


# The coordinator.


def test_lookups_are_repeated_every_half_second() -> None:
    """After an error, after a lost connection, and when the coordinator is not yet connected."""
    bench = make()
    bench.answers_lookups = False
    bench.poll()
    refusal = coordinator_answer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    bench.answer(ApiKey.FIND_COORDINATOR, refusal)
    bench.pass_ms(1_000)
    bench.answer(ApiKey.FIND_COORDINATOR, coordinator_answer(ErrorCode.GROUP_AUTHORIZATION_FAILED))
    bench.pass_ms(1_000)
    assert bench.waiting() == [ApiKey.FIND_COORDINATOR]
    bench.break_link(BROKER).pass_ms(1_000)
    bench.answer(ApiKey.FIND_COORDINATOR, coordinator_answer())
    assert ApiKey.JOIN_GROUP in bench.waiting()


def test_a_coordinator_that_moved_is_connected_anew() -> None:
    """The old connection is closed; a commit that was refused there goes to the new one."""
    bench = make().join()
    token = bench.commit({P0: 3})
    bench.answers_lookups = False
    bench.answer(ApiKey.OFFSET_COMMIT, committed(ErrorCode.NOT_COORDINATOR))
    bench.answer(ApiKey.FIND_COORDINATOR, coordinator_answer(node=2))
    bench.pass_ms(1_000)
    node_id, _, _ = bench.take(ApiKey.OFFSET_COMMIT)
    assert node_id == COORDINATOR - 1
    assert token not in bench.commits
    assert bench.port.coordinator_node == 2


def test_without_any_broker_the_lookup_waits() -> None:
    """Nobody can be asked while every connection is refused."""
    bench = make()
    bench.refuses = True
    bench.poll().pass_ms(3_000)
    assert bench.waiting() == []
    bench.refuses = False
    bench.pass_ms(3_000)
    assert ApiKey.JOIN_GROUP in bench.waiting()


# Offsets.


def test_unstable_offsets_are_asked_for_again_and_refused_ones_are_not() -> None:
    """A partition without an answer has no position."""
    bench = make().poll()
    bench.answer(ApiKey.JOIN_GROUP, joined())
    bench.answer(ApiKey.SYNC_GROUP, synced(P0, P1))
    unstable = ErrorCode.UNSTABLE_OFFSET_COMMIT
    bench.answer(ApiKey.OFFSET_FETCH, fetched(of_partition=unstable))
    bench.answer(ApiKey.OFFSET_FETCH, fetched(unstable))
    bench.pass_ms(1_000)
    bench.break_link().pass_ms(1_000)
    bench.answer(ApiKey.OFFSET_FETCH, fetched(ErrorCode.GROUP_AUTHORIZATION_FAILED))
    assert bench.port.positions == {}
    assert bench.port.owned_partitions == (P0, P1)


@pytest.mark.parametrize(("reset", "asked"), [("earliest", 1), ("none", 0)])
def test_a_partition_without_an_offset_is_reset(reset: str, asked: int) -> None:
    """The driver is asked where it begins, unless the setting forbids it."""
    bench = make(auto_offset_reset=reset).poll()
    bench.answer(ApiKey.JOIN_GROUP, joined())
    bench.answer(ApiKey.SYNC_GROUP, synced(P0, P1))
    bench.answer(ApiKey.OFFSET_FETCH, fetched(of_partition=ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    assert bench.resets == []
    bench = make(auto_offset_reset=reset).poll()
    bench.answer(ApiKey.JOIN_GROUP, joined())
    bench.answer(ApiKey.SYNC_GROUP, synced(P0, P1))
    bench.answer(ApiKey.OFFSET_FETCH, fetched(offset=-1))
    assert len(bench.resets) == asked
    bench.run(bench.port.positions_found({P0: 5}, 0))
    assert bench.port.positions == {P0: 5}
    bench.run(bench.port.positions_found({P0: 9}, 0))
    assert bench.port.fetchable == {P0: 5}


@pytest.mark.parametrize(
    ("error", "name", "joins"),
    [
        (ErrorCode.NONE, None, False),
        (ErrorCode.UNKNOWN_MEMBER_ID, COMMIT_FAILED, True),
        (ErrorCode.ILLEGAL_GENERATION, COMMIT_FAILED, True),
        (ErrorCode.REBALANCE_IN_PROGRESS, COMMIT_FAILED, False),
        (ErrorCode.FENCED_INSTANCE_ID, FENCED_INSTANCE_ID, False),
    ],
)
def test_a_commit_of_the_application_ends(error: ErrorCode, name: str | None, joins: bool) -> None:
    """Errors of the membership lose it."""
    bench = make().join()
    token = bench.commit({P0: 3, P1: 4})
    bench.answer(ApiKey.OFFSET_COMMIT, committed(error))
    assert bench.commits[token] == name
    assert (ApiKey.JOIN_GROUP in bench.waiting()) == joins
    empty = bench.commit({})
    assert bench.commits[empty] is None


def test_a_commit_waits_for_a_coordinator_that_loads_or_is_gone() -> None:
    """It is sent again at the next wake-up, or on the next connection."""
    bench = make().join()
    token = bench.commit({P0: 3})
    bench.answer(ApiKey.OFFSET_COMMIT, committed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    assert ApiKey.OFFSET_COMMIT not in bench.waiting()
    bench.pass_ms(1_000)
    bench.break_link()
    other = bench.commit({P1: 3})
    bench.pass_ms(1_500)
    bench.answer(ApiKey.OFFSET_COMMIT, committed())
    bench.answer(ApiKey.OFFSET_COMMIT, committed())
    assert bench.commits == {token: None, other: None}


def test_automatic_commits_need_a_steady_group() -> None:
    """During a rebalance, and after the assignment is lost, the interval passes without one."""
    bench = make().join()
    bench.port.advance_position(P0, 9)
    bench.port.advance_position(P1._replace(partition=7), 9)
    bench.answer(ApiKey.HEARTBEAT, HeartbeatResponse())
    bench.holds_callbacks = True
    bench.to(3_000)
    bench.answer(ApiKey.HEARTBEAT, HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    bench.to(6_000)
    assert ApiKey.OFFSET_COMMIT not in bench.waiting()
    bench.release()
    assert ApiKey.OFFSET_COMMIT in bench.waiting()


# Subscribing, metadata, closing.


@pytest.mark.parametrize(("assignor", "revokes"), [("range", True), (STICKY, False)])
def test_more_partitions_or_topics_make_the_member_rejoin(assignor: str, revokes: bool) -> None:
    """Eager: everything is given up first. Any member does so, not the leader alone."""
    bench = make(assignor, metadata_max_age_ms="10000").join(assignor)
    bench.cluster = cluster(4)
    bench.pass_ms(11_000)
    assert (REVOKED, (P0, P1)) in bench.callbacks or not revokes
    assert ApiKey.JOIN_GROUP in bench.waiting()
    bench = make(assignor).join(assignor)
    bench.run(bench.port.subscribe(("t", "u"), 0))
    assert ApiKey.JOIN_GROUP in bench.waiting()


def test_closing_in_a_join_leaves_at_once() -> None:
    """The answer to the join is not waited for; the member is known, so it leaves."""
    bench = make().join()
    bench.answer(ApiKey.HEARTBEAT, HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    bench.close()
    assert bench.waiting() == [ApiKey.JOIN_GROUP, ApiKey.LEAVE_GROUP]
    bench.answer(ApiKey.JOIN_GROUP, joined())
    bench.answer(ApiKey.LEAVE_GROUP, LeaveGroupResponse())
    assert bench.is_closed


def test_closing_while_the_assignment_is_handed_over_gives_it_up() -> None:
    """assign() of a client that ends is unassign()."""
    bench = make().poll()
    bench.holds_callbacks = True
    bench.answer(ApiKey.JOIN_GROUP, joined())
    bench.answer(ApiKey.SYNC_GROUP, synced(P0))
    bench.close()
    bench.release()
    bench.answer(ApiKey.LEAVE_GROUP, LeaveGroupResponse())
    assert bench.is_closed


def test_a_cooperative_member_closes_with_and_without_partitions() -> None:
    """Everything is revoked, then it leaves; a lost LeaveGroup ends it, too."""
    bench = make(STICKY).join(STICKY).close()
    assert bench.callbacks[-1] == (REVOKED, (P0, P1))
    bench.break_link()
    assert bench.is_closed
    bench = make(STICKY).poll()
    bench.answer(ApiKey.JOIN_GROUP, joined(assignor=STICKY))
    bench.answer(ApiKey.SYNC_GROUP, SyncGroupResponse())
    bench.close()
    bench.answer(ApiKey.LEAVE_GROUP, LeaveGroupResponse())
    assert bench.is_closed
    assert bench.port.next_deadline_ms() is None


def test_closing_ends_with_its_timeout() -> None:
    """A coordinator that does not answer the last commit does not hold the application up."""
    bench = make().join()
    bench.port.advance_position(P0, 9)
    bench.close().pass_ms(30_000)
    assert bench.is_closed


def test_closing_without_a_coordinator_says_nothing() -> None:
    """Nobody can be told."""
    bench = make().join()
    bench.refuses = True
    bench.break_link().break_link(BROKER).close()
    assert bench.is_closed


def test_misuse_is_refused() -> None:
    """One call at a time, no callback that is not outstanding, no answer of another API."""
    bench = make()
    assert bench.close().is_closed
    with pytest.raises(InvariantViolation, match="close during CLOSED"):
        bench.close()
    bench = make().poll()
    with pytest.raises(InvariantViolation, match="one call at a time"):
        bench.poll()
    with pytest.raises(InvariantViolation, match="is not outstanding"):
        bench.port.callback_completed(1, None, 0)
    with pytest.raises(InvariantViolation, match="answers a JOIN request"):
        bench.answer(ApiKey.JOIN_GROUP, DescribeGroupsResponse(groups=()))
    with pytest.raises(ConfigError, match="name an assignor"):
        LibrdkafkaConsumer(
            LIBRDKAFKA.config_from({}),
            client_id="c",
            group_id="g",
            topics=(),
            assignors=(),
            bootstrap=(),
        )


def test_a_poll_can_be_woken_up() -> None:
    """Now, or when it begins; records end it, too."""
    bench = make().join()
    bench.run(bench.port.wakeup(0))
    bench.run(bench.port.wakeup(0))
    bench.poll().poll()
    assert bench.port.awaits_records
    bench.run(bench.port.fetch_completed(0))
    bench.run(bench.port.fetch_completed(0))
    assert bench.poll_errors == [WAKEUP, WAKEUP, None]
    assert bench.port.traits is LIBRDKAFKA
    assert bench.port.generation_id == 1


# Odd moments.


def fenced(bench: Bench) -> Bench:
    """Let the next heartbeat be answered with the fencing of a static member."""
    bench.pass_ms(3_000)
    bench.answer(ApiKey.HEARTBEAT, HeartbeatResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
    return bench


@pytest.mark.parametrize("assignor", ["range", STICKY])
def test_fencing_takes_everything_away_without_a_callback(assignor: str) -> None:
    """A fatal error: neither revocation nor commit, the poll raises it."""
    bench = make(assignor, group_instance_id="one").join(assignor)
    bench.answer(ApiKey.HEARTBEAT, HeartbeatResponse())
    bench.port.advance_position(P0, 9)
    fenced(bench)
    assert bench.callbacks == [(ASSIGNED, (P0, P1))]
    assert bench.port.positions == {}
    assert FENCED_INSTANCE_ID in bench.poll_errors
    bench.close()
    assert ApiKey.OFFSET_COMMIT not in bench.waiting()
    assert bench.is_closed


def test_a_static_member_that_does_not_poll_stays_silent() -> None:
    """It sends no LeaveGroup and no heartbeat; with the next poll it joins, without an id."""
    bench = make(group_instance_id="one", max_poll_interval_ms="5000").join()
    bench.answer(ApiKey.HEARTBEAT, HeartbeatResponse())
    bench.holds_callbacks = True
    for _ in range(4):
        bench.pass_ms(1_500, polling=False)
        if ApiKey.HEARTBEAT in bench.waiting():
            bench.answer(ApiKey.HEARTBEAT, HeartbeatResponse())
    assert ApiKey.LEAVE_GROUP not in bench.waiting()
    assert ApiKey.JOIN_GROUP not in bench.waiting()
    bench.poll()
    bench.release()
    assert bench.callbacks[-1] == (LOST, (P0, P1))
    _, _, request = bench.take(ApiKey.JOIN_GROUP)
    assert isinstance(request, JoinGroupRequest)
    assert (request.member_id, request.group_instance_id) == ("", "one")


def test_a_member_without_partitions_waits_for_the_poll_before_it_joins() -> None:
    """There is nothing to revoke, so the group goes back to its start and stays there."""
    bench = make(STICKY, max_poll_interval_ms="5000").poll()
    bench.answer(ApiKey.JOIN_GROUP, joined(assignor=STICKY))
    bench.answer(ApiKey.SYNC_GROUP, SyncGroupResponse())
    bench.pass_ms(9_000, polling=False)
    bench.answer(ApiKey.LEAVE_GROUP, LeaveGroupResponse())
    bench.answer(ApiKey.HEARTBEAT, HeartbeatResponse())
    assert bench.pass_ms(2_000, polling=False).waiting() == []
    bench.poll().pass_ms(1_500)
    assert ApiKey.JOIN_GROUP in bench.waiting()


def test_subscribing_while_a_callback_runs_joins_first() -> None:
    """What the callback ends with then is the assignment alone, not the state of the group."""
    bench = make().poll()
    bench.holds_callbacks = True
    bench.answer(ApiKey.JOIN_GROUP, joined())
    bench.answer(ApiKey.SYNC_GROUP, synced(P0))
    bench.run(bench.port.subscribe(("t", "u"), bench.now_ms))
    assert ApiKey.JOIN_GROUP in bench.waiting()
    bench.release()
    assert state_of(bench) is JoinState.WAIT_JOIN

    bench = make().join()
    bench.holds_callbacks = True
    bench.pass_ms(3_000)
    rebalance = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    bench.answer(ApiKey.HEARTBEAT, rebalance)
    bench.run(bench.port.subscribe(("t", "u"), bench.now_ms))
    bench.release()
    assert state_of(bench) is JoinState.WAIT_JOIN
    assert bench.port.positions == {}


@pytest.mark.parametrize("answered", [True, False])
def test_what_was_asked_before_a_new_subscription_is_not_looked_at(answered: bool) -> None:
    """SyncGroup, answered or lost: the member joins after it."""
    bench = make().poll()
    bench.answer(ApiKey.JOIN_GROUP, joined())
    bench.run(bench.port.subscribe(("t", "u"), bench.now_ms))
    assert bench.waiting() == [ApiKey.SYNC_GROUP]
    if answered:
        bench.answer(ApiKey.SYNC_GROUP, synced(P0))
    else:
        bench.break_link()
    bench.pass_ms(1_500)
    assert bench.callbacks == []
    assert bench.waiting() == [ApiKey.JOIN_GROUP]


def test_a_leader_that_closes_does_not_assign() -> None:
    """The metadata it asked for comes too late."""
    bench = make().poll()
    bench.answers_metadata = False
    lead(bench)
    bench.close()
    bench.answer(ApiKey.METADATA, cluster())
    assert bench.waiting() == [ApiKey.LEAVE_GROUP]


def test_a_join_lost_while_closing_is_not_repeated() -> None:
    """Nor are a JoinGroup's and a LeaveGroup's answers waited for then."""
    bench = make().poll()
    bench.answer(
        ApiKey.JOIN_GROUP,
        JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, protocol_name=None),
    )
    bench.pass_ms(2_000)
    bench.close().break_link()
    assert bench.is_closed


def test_assigned_partitions_wait_for_the_coordinator() -> None:
    """Their offsets are looked up when it is there again."""
    bench = make().poll()
    bench.holds_callbacks = True
    bench.answer(ApiKey.JOIN_GROUP, joined())
    bench.answer(ApiKey.SYNC_GROUP, synced(P0, P1))
    bench.refuses = True
    bench.break_link().release()
    assert ApiKey.OFFSET_FETCH not in bench.waiting()
    bench.refuses = False
    bench.pass_ms(2_000)
    assert ApiKey.OFFSET_FETCH in bench.waiting()


def test_offsets_of_partitions_given_up_meanwhile_are_ignored() -> None:
    """The answer to a look-up comes after the revocation."""
    bench = make().poll()
    bench.answer(ApiKey.JOIN_GROUP, joined())
    bench.answer(ApiKey.SYNC_GROUP, synced(P0, P1))
    rebalance = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    bench.answer(ApiKey.HEARTBEAT, rebalance)
    bench.answer(ApiKey.OFFSET_FETCH, fetched())
    assert bench.port.positions == {}


def test_closing_after_the_loss_of_everything_says_nothing() -> None:
    """The application ends its callback, and there is no member to leave."""
    bench = make().join()
    bench.holds_callbacks = True
    unknown = HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    bench.answer(ApiKey.HEARTBEAT, unknown)
    bench.close()
    assert not bench.is_closed
    bench.release()
    assert bench.waiting() == []
    assert bench.is_closed


def test_heartbeats_of_a_member_that_revokes_do_not_rebalance_it_twice() -> None:
    """Cooperative: the commit before the second join is still under way."""
    bench = make(STICKY).join(STICKY)
    bench.port.advance_position(P1, 9)
    bench.answer(ApiKey.HEARTBEAT, HeartbeatResponse())
    bench.pass_ms(3_000)
    rebalance = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    bench.answer(ApiKey.HEARTBEAT, rebalance)
    bench.answer(ApiKey.JOIN_GROUP, joined(assignor=STICKY, generation=2))
    bench.holds_callbacks = True
    bench.answer(ApiKey.SYNC_GROUP, synced(P0))
    bench.pass_ms(3_000)
    bench.release().poll()
    assert state_of(bench) is JoinState.WAIT_INCR_UNASSIGN_TO_COMPLETE
    bench.answer(ApiKey.HEARTBEAT, rebalance)
    assert state_of(bench) is JoinState.WAIT_INCR_UNASSIGN_TO_COMPLETE
    bench.answer(ApiKey.OFFSET_COMMIT, committed())
    assert bench.waiting() == [ApiKey.JOIN_GROUP]


def test_a_session_that_is_over_is_not_prolonged() -> None:
    """An answer that comes while the application hears of the loss changes nothing."""
    bench = make(session_timeout_ms="6000").join()
    bench.holds_callbacks = True
    loads = HeartbeatResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    while not bench.held:
        if ApiKey.HEARTBEAT in bench.waiting():
            bench.answer(ApiKey.HEARTBEAT, loads)
        bench.pass_ms(1_000)
    bench.pass_ms(3_000)
    bench.answer(ApiKey.HEARTBEAT, HeartbeatResponse())
    assert state_of(bench) is JoinState.WAIT_UNASSIGN_CALL
    bench.release()
    assert bench.callbacks[-1] == (LOST, (P0, P1))


def test_metadata_waits_while_every_broker_refuses() -> None:
    """The next try is when a broker may be tried again."""
    bench = make(metadata_max_age_ms="10000").join()
    bench.pass_ms(9_990)
    bench.refuses = True
    bench.break_link().break_link(BROKER).pass_ms(5_000)
    bench.refuses = False
    bench.cluster = cluster(4)
    bench.pass_ms(3_000)
    assert (REVOKED, (P0, P1)) in bench.callbacks
