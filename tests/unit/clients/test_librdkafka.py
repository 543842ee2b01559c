"""What the recordings do not show of librdkafka: rare errors, lost connections, odd moments."""

import pytest

from coordinator_sim.assignors.contract import AssignmentFailed
from coordinator_sim.clients.client_traits import LIBRDKAFKA
from coordinator_sim.clients.effects import CallbackKind, RunCallback
from coordinator_sim.clients.exceptions import COMMIT_FAILED, FENCED_INSTANCE_ID, WAKEUP
from coordinator_sim.clients.librdkafka import LibrdkafkaConsumer
from coordinator_sim.clients.librdkafka.states import JoinState
from coordinator_sim.errors import ConfigError, InvariantViolation
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.describe_groups import DescribeGroupsResponse
from coordinator_sim.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupResponse
from coordinator_sim.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from coordinator_sim.messages.metadata import MetadataRequest
from coordinator_sim.messages.offset_commit import OffsetCommitRequest
from coordinator_sim.messages.offset_fetch import OffsetFetchRequest
from coordinator_sim.messages.sync_group import SyncGroupRequest
from coordinator_sim_conformance.client_cases.bench import (
    BROKER,
    COORDINATOR,
    GROUP,
    LEADER,
    MEMBER,
)
from tests.unit.clients.model_bench import P0, P1, Model, ModelBench, members

STICKY = "cooperative-sticky"
REVOKED, LOST = CallbackKind.PARTITIONS_REVOKED, CallbackKind.PARTITIONS_LOST
ASSIGNED = CallbackKind.PARTITIONS_ASSIGNED
_MODEL = Model(LibrdkafkaConsumer, LIBRDKAFKA)
make, polled, settled = _MODEL.made, _MODEL.polled, _MODEL.settled


def state_of(bench: ModelBench) -> JoinState:
    """The join state."""
    assert isinstance(bench.port, LibrdkafkaConsumer)
    return bench.port.join_state


# JoinGroup.


def test_fencing_on_join_is_fatal() -> None:
    """The poll raises it once, and nothing is sent any more."""
    bench = polled(group_instance_id="one")
    bench.refuse_join(ErrorCode.FENCED_INSTANCE_ID)
    bench.advance(10_000)

    assert [error for error in bench.returned if error] == [FENCED_INSTANCE_ID]
    assert bench.pending == []
    token = bench.commit({P0: 1}, sync=True)
    assert bench.commits[token] == FENCED_INSTANCE_ID
    bench.close()
    assert bench.is_closed


@pytest.mark.parametrize(
    "response",
    [
        JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR, protocol_name=None),
        JoinGroupResponse(error_code=ErrorCode.ILLEGAL_GENERATION, protocol_name=None),
        JoinGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL, protocol_name=None),
        JoinGroupResponse(generation_id=1, protocol_name="sticky", leader=LEADER, member_id=MEMBER),
    ],
)
def test_a_refused_join_is_repeated_two_seconds_later(response: JoinGroupResponse) -> None:
    """The join interval and a backoff of a second each, whatever the error."""
    bench = polled()
    bench.answer(JoinGroupRequest, response)
    bench.run(1_999)
    assert bench.pending == []
    bench.run(3_000)
    assert bench.pending == [JoinGroupRequest]


def test_a_lost_join_is_repeated_by_the_interval() -> None:
    """A broken connection counts as an error answer; the answer to an older join is ignored."""
    bench = polled()
    bench.disconnect()
    bench.run(3_000)
    assert bench.pending == [JoinGroupRequest]


def test_a_topic_that_does_not_exist_delays_the_join() -> None:
    """The member asks for metadata until the topic is there."""
    bench = make()
    bench.topics = {}
    bench.poll()
    bench.advance(3_000)
    assert bench.pending == []
    bench.topics = {"t": 2}
    bench.advance(3_000)
    assert bench.pending == [JoinGroupRequest]


# The leader.


def lead(bench: ModelBench, *blobs: bytes) -> None:
    """Be elected leader of members with these subscriptions; none: one's own."""
    bench.lead(**({"members": members(*blobs)} if blobs else {}))


def test_a_leader_whose_members_do_not_parse_waits_for_its_session() -> None:
    """A leader that cannot parse its members' subscriptions sends no SyncGroup."""
    bench = polled()
    lead(bench, b"\x00")
    assert bench.pending == []
    assert state_of(bench) is JoinState.WAIT_METADATA


def test_a_leader_without_metadata_or_assignment_joins_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The connection breaks before the metadata is there; then the assignor fails."""
    bench = polled()
    bench.automatic.discard(MetadataRequest)
    lead(bench)
    bench.disconnect()
    assert state_of(bench) is JoinState.INIT
    bench.automatic.add(MetadataRequest)
    bench.run(2_000)

    def fail(*_: object) -> None:
        raise AssignmentFailed("no way")

    monkeypatch.setattr(bench.port._assignors[0].__class__, "assign", fail)
    lead(bench)
    assert bench.pending == [JoinGroupRequest]


# SyncGroup.


@pytest.mark.parametrize(
    ("error", "id_after"),
    [
        (ErrorCode.UNKNOWN_MEMBER_ID, ""),
        (ErrorCode.ILLEGAL_GENERATION, MEMBER),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, MEMBER),
    ],
)
def test_a_refused_sync_joins_at_once(error: ErrorCode, id_after: str) -> None:
    """With or without the id, as the error says."""
    bench = polled()
    bench.join()
    bench.sync(error=error)
    assert bench.waiting(JoinGroupRequest)
    request = bench.sent(JoinGroupRequest)[-1]
    assert request.member_id == id_after


def test_fencing_on_sync_is_fatal() -> None:
    """The poll raises it, and nothing is sent any more."""
    bench = polled(group_instance_id="one")
    bench.join()
    bench.sync(error=ErrorCode.FENCED_INSTANCE_ID)
    assert bench.returned == [FENCED_INSTANCE_ID]
    bench.advance(5_000)
    assert bench.pending == []


def test_a_lost_sync_is_sent_again() -> None:
    """On the next connection, with the same content; an assignment that does not parse rejoins."""
    bench = polled()
    bench.join()
    bench.disconnect()
    bench.advance(100)
    assert bench.pending == [SyncGroupRequest]
    bench.sync(b"\x00")
    assert state_of(bench) is JoinState.INIT


# A cooperative member that loses its membership.


@pytest.mark.parametrize("error", [ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_cooperative_member_loses_what_it_has(error: ErrorCode) -> None:
    """On a heartbeat, then on SyncGroup, then on JoinGroup; it joins again each time."""
    bench = settled(STICKY)
    bench.beat(error)
    assert bench.changes[-1] == (LOST, (P0, P1))
    bench.join(protocol_name=STICKY, generation_id=2)
    bench.sync(error=error)
    assert bench.pending == []
    bench.advance(1_500)
    bench.refuse_join(ErrorCode.ILLEGAL_GENERATION)
    bench.advance(3_000)
    assert bench.pending == [JoinGroupRequest]


def test_a_rebalance_during_the_second_half_of_a_cooperative_one_is_skipped() -> None:
    """While the application revokes, a heartbeat's answer changes nothing."""
    bench = settled(STICKY)
    bench.beat()
    bench.run(1_000)
    bench.advance(2_500)
    bench.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    bench.join(protocol_name=STICKY, generation_id=2)
    bench.automatic.discard(RunCallback)
    bench.give(P0)
    bench.advance(3_500)
    bench.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    assert state_of(bench) is JoinState.WAIT_UNASSIGN_CALL
    assert bench.port.positions == {}
    bench.release()
    assert bench.changes[-2:] == [(REVOKED, (P1,)), (ASSIGNED, ())]
    assert bench.pending == [JoinGroupRequest]


# Heartbeats and the session.


def test_other_heartbeat_errors_are_ignored_until_the_session_is_over() -> None:
    """45 s without a good answer lose everything."""
    bench = settled()
    for _ in range(20):
        if bench.waiting(HeartbeatRequest):
            refusal = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            bench.beat(refusal)
        bench.advance(3_000)
    assert (LOST, (P0, P1)) in bench.changes
    assert bench.waiting(JoinGroupRequest)


def test_a_lost_heartbeat_looks_the_coordinator_up() -> None:
    """The member stays; the answer to a heartbeat of an older session is ignored."""
    bench = settled()
    bench.disconnect()
    bench.advance(4_000)
    assert state_of(bench) is JoinState.STEADY
    assert bench.pending == [HeartbeatRequest]
    bench.do(bench.port.on_response(999, HeartbeatResponse(), bench.now_ms))
    bench.port._join_state = JoinState.WAIT_JOIN  # type: ignore[attr-defined] # a rebalance began
    bench.beat(ErrorCode.UNKNOWN_MEMBER_ID)
    assert bench.port.member_id == MEMBER


def test_an_answer_to_no_request_is_dropped() -> None:
    """The connection stays, and the heartbeat in flight is answered by its own answer."""
    bench = settled()
    bench.advance(3_000)
    bench.do(bench.port.on_unexpected_response(COORDINATOR, bench.now_ms))
    assert bench.disconnected == []
    bench.beat()
    assert not bench.waiting(HeartbeatRequest)


def test_a_late_lost_heartbeat_changes_nothing_in_a_join() -> None:
    """Nor is the coordinator looked up for it."""
    bench = settled()
    bench.automatic.discard(FindCoordinatorRequest)
    bench.advance(3_000)
    assert bench.waiting(HeartbeatRequest)
    bench.port._join_state = JoinState.WAIT_JOIN  # type: ignore[attr-defined] # a rebalance began
    bench.disconnect()
    bench.advance(2_000)
    assert bench.waiting(FindCoordinatorRequest)


# The coordinator.


def test_lookups_are_repeated_every_half_second() -> None:
    """After an error, after a lost connection, and when the coordinator is not yet connected."""
    bench = make()
    bench.automatic.discard(FindCoordinatorRequest)
    bench.poll()
    bench.find(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    bench.advance(1_000)
    bench.find(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    bench.advance(1_000)
    assert bench.pending == [FindCoordinatorRequest]
    bench.disconnect(BROKER.node_id)
    bench.advance(1_000)
    bench.find()
    assert bench.waiting(JoinGroupRequest)


def test_a_coordinator_that_moved_is_connected_anew() -> None:
    """The old connection is closed; a commit that was refused there goes to the new one."""
    bench = settled()
    token = bench.commit({P0: 3}, sync=True)
    bench.automatic.discard(FindCoordinatorRequest)
    bench.refuse_commit(ErrorCode.NOT_COORDINATOR)
    found = Coordinator(key=GROUP, node_id=2, host="b", port=9092, error_message=None)
    bench.answer(FindCoordinatorRequest, FindCoordinatorResponse(coordinators=(found,)))
    bench.advance(1_000)
    (commit,) = (send for send in bench.unanswered if type(send.request) is OffsetCommitRequest)
    assert commit.node_id == COORDINATOR - 1
    assert token not in bench.commits
    assert bench.port.coordinator_node == 2


def test_without_any_broker_the_lookup_waits() -> None:
    """FindCoordinator waits while every broker refuses connections."""
    bench = make()
    bench.refuses = True
    bench.poll()
    bench.advance(3_000)
    assert bench.pending == []
    bench.refuses = False
    bench.advance(3_000)
    assert bench.waiting(JoinGroupRequest)


# Offsets.


def test_unstable_offsets_are_asked_for_again_and_refused_ones_are_not() -> None:
    """A partition without an answer has no position."""
    bench = polled()
    bench.join()
    bench.give(P0, P1)
    unstable = ErrorCode.UNSTABLE_OFFSET_COMMIT
    bench.offsets(of_partitions=unstable)
    bench.offsets(7, unstable)
    bench.advance(1_000)
    bench.disconnect()
    bench.advance(1_000)
    bench.offsets(7, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    assert bench.port.positions == {}
    assert bench.port.owned_partitions == (P0, P1)


@pytest.mark.parametrize(("reset", "asked"), [("earliest", 1), ("none", 0)])
def test_a_partition_without_an_offset_is_reset(reset: str, asked: int) -> None:
    """The driver is asked where it begins, unless the setting forbids it."""
    bench = polled(auto_offset_reset=reset)
    bench.join()
    bench.give(P0, P1)
    bench.offsets(of_partitions=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert bench.resets == []
    bench = polled(auto_offset_reset=reset)
    bench.join()
    bench.give(P0, P1)
    bench.offsets({P0: -1, P1: -1})
    assert len(bench.resets) == asked
    bench.do(bench.port.positions_found({P0: 5}, 0))
    assert bench.port.positions == {P0: 5}
    bench.do(bench.port.positions_found({P0: 9}, 0))
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
    bench = settled()
    token = bench.commit({P0: 3, P1: 4}, sync=True)
    bench.refuse_commit(error)
    assert bench.commits[token] == name
    assert bool(bench.waiting(JoinGroupRequest)) == joins
    empty = bench.commit({}, sync=True)
    assert bench.commits[empty] is None


def test_a_commit_waits_for_a_coordinator_that_loads_or_is_gone() -> None:
    """The commit is sent again at the next wake-up, or on the next connection."""
    bench = settled()
    token = bench.commit({P0: 3}, sync=True)
    bench.refuse_commit(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert not bench.waiting(OffsetCommitRequest)
    bench.advance(1_000)
    bench.disconnect()
    other = bench.commit({P1: 3}, sync=True)
    bench.advance(1_500)
    bench.refuse_commit(ErrorCode.NONE)
    bench.refuse_commit(ErrorCode.NONE)
    assert bench.commits == {token: None, other: None}


def test_automatic_commits_need_a_steady_group() -> None:
    """During a rebalance, and after the assignment is lost, the interval passes without one."""
    bench = settled()
    bench.port.advance_position(P0, 9)
    bench.port.advance_position(P1._replace(partition=7), 9)
    bench.beat()
    bench.automatic.discard(RunCallback)
    bench.run(3_000)
    bench.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    bench.run(6_000)
    assert not bench.waiting(OffsetCommitRequest)
    bench.release()
    assert bench.waiting(OffsetCommitRequest)


# Subscribing, metadata, closing.


@pytest.mark.parametrize(("assignor", "revokes"), [("range", True), (STICKY, False)])
def test_more_partitions_or_topics_make_the_member_rejoin(assignor: str, revokes: bool) -> None:
    """Eager: everything is given up first. Any member does so, not the leader alone."""
    bench = settled(assignor, metadata_max_age_ms="10000")
    bench.topics = {"t": 4}
    bench.advance(11_000)
    assert (REVOKED, (P0, P1)) in bench.changes or not revokes
    assert bench.waiting(JoinGroupRequest)
    bench = settled(assignor)
    bench.do(bench.port.subscribe(("t", "u"), 0))
    assert bench.waiting(JoinGroupRequest)


def test_closing_in_a_join_leaves_at_once() -> None:
    """The answer to the join is not waited for; the member is known, so it leaves."""
    bench = settled()
    bench.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    bench.close()
    assert bench.pending == [JoinGroupRequest, LeaveGroupRequest]
    bench.join()
    bench.answer(LeaveGroupRequest, LeaveGroupResponse())
    assert bench.is_closed


def test_closing_while_the_assignment_is_handed_over_gives_it_up() -> None:
    """assign() of a client that ends is unassign()."""
    bench = polled()
    bench.automatic.discard(RunCallback)
    bench.join()
    bench.give(P0)
    bench.close()
    bench.release()
    bench.answer(LeaveGroupRequest, LeaveGroupResponse())
    assert bench.is_closed


def test_a_cooperative_member_closes_with_and_without_partitions() -> None:
    """Everything is revoked, then it leaves; a lost LeaveGroup ends it, too."""
    bench = settled(STICKY)
    bench.close()
    assert bench.changes[-1] == (REVOKED, (P0, P1))
    bench.disconnect()
    assert bench.is_closed
    bench = polled(STICKY)
    bench.join(protocol_name=STICKY)
    bench.sync()
    bench.close()
    bench.answer(LeaveGroupRequest, LeaveGroupResponse())
    assert bench.is_closed
    assert bench.port.next_deadline_ms() is None


def test_closing_ends_with_its_timeout() -> None:
    """A coordinator that does not answer the last commit does not hold the application up."""
    bench = settled()
    bench.port.advance_position(P0, 9)
    bench.close()
    bench.advance(30_000)
    assert bench.is_closed


def test_closing_without_a_coordinator_says_nothing() -> None:
    """A member without a coordinator closes without a LeaveGroup."""
    bench = settled()
    bench.refuses = True
    bench.disconnect()
    bench.disconnect(BROKER.node_id)
    bench.close()
    assert bench.is_closed


def test_misuse_is_refused() -> None:
    """One call at a time, no callback that is not outstanding, no answer of another API."""
    bench = make()
    bench.close()
    assert bench.is_closed
    with pytest.raises(InvariantViolation, match="close during CLOSED"):
        bench.close()
    bench = polled()
    with pytest.raises(InvariantViolation, match="one call at a time"):
        bench.poll()
    with pytest.raises(InvariantViolation, match="is not outstanding"):
        bench.port.callback_completed(1, None, 0)
    with pytest.raises(InvariantViolation, match="answers a JOIN request"):
        bench.answer(JoinGroupRequest, DescribeGroupsResponse(groups=()))
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
    bench = settled()
    bench.do(bench.port.wakeup(0))
    bench.do(bench.port.wakeup(0))
    bench.poll()
    bench.poll()
    assert bench.port.awaits_records
    bench.do(bench.port.fetch_completed(0))
    bench.do(bench.port.fetch_completed(0))
    assert bench.returned == [WAKEUP, WAKEUP, None]
    assert bench.port.traits is LIBRDKAFKA
    assert bench.port.generation_id == 1


# Odd moments.


def fenced(bench: ModelBench) -> ModelBench:
    """Let the next heartbeat be answered with the fencing of a static member."""
    bench.advance(3_000)
    bench.beat(ErrorCode.FENCED_INSTANCE_ID)
    return bench


@pytest.mark.parametrize("assignor", ["range", STICKY])
def test_fencing_takes_everything_away_without_a_callback(assignor: str) -> None:
    """A fatal error: neither revocation nor commit, the poll raises it."""
    bench = settled(assignor, group_instance_id="one")
    bench.beat()
    bench.port.advance_position(P0, 9)
    fenced(bench)
    assert bench.changes == [(ASSIGNED, (P0, P1))]
    assert bench.port.positions == {}
    assert FENCED_INSTANCE_ID in bench.returned
    bench.close()
    assert not bench.waiting(OffsetCommitRequest)
    assert bench.is_closed


def test_a_static_member_that_does_not_poll_stays_silent() -> None:
    """The member sends no LeaveGroup or heartbeat; with the next poll it joins, without an id."""
    bench = settled(group_instance_id="one", max_poll_interval_ms="5000")
    bench.beat()
    bench.automatic.discard(RunCallback)
    for _ in range(4):
        bench.run(bench.now_ms + 1_500, polling=False)
        if bench.waiting(HeartbeatRequest):
            bench.beat()
    assert not bench.waiting(LeaveGroupRequest)
    assert not bench.waiting(JoinGroupRequest)
    bench.poll()
    bench.release()
    assert bench.changes[-1] == (LOST, (P0, P1))
    assert bench.waiting(JoinGroupRequest)
    request = bench.sent(JoinGroupRequest)[-1]
    assert (request.member_id, request.group_instance_id) == ("", "one")


def test_a_member_without_partitions_waits_for_the_poll_before_it_joins() -> None:
    """A member without partitions has nothing to revoke, and rejoins only with the next poll."""
    bench = polled(STICKY, max_poll_interval_ms="5000")
    bench.join(protocol_name=STICKY)
    bench.sync()
    bench.run(bench.now_ms + 9_000, polling=False)
    bench.answer(LeaveGroupRequest, LeaveGroupResponse())
    bench.beat()
    bench.run(bench.now_ms + 2_000, polling=False)
    assert bench.pending == []
    bench.poll()
    bench.advance(1_500)
    assert bench.waiting(JoinGroupRequest)


def test_subscribing_while_a_callback_runs_joins_first() -> None:
    """What the callback ends with then is the assignment alone, not the state of the group."""
    bench = polled()
    bench.automatic.discard(RunCallback)
    bench.join()
    bench.give(P0)
    bench.do(bench.port.subscribe(("t", "u"), bench.now_ms))
    assert bench.waiting(JoinGroupRequest)
    bench.release()
    assert state_of(bench) is JoinState.WAIT_JOIN

    bench = settled()
    bench.automatic.discard(RunCallback)
    bench.advance(3_000)
    rebalance = ErrorCode.REBALANCE_IN_PROGRESS
    bench.beat(rebalance)
    bench.do(bench.port.subscribe(("t", "u"), bench.now_ms))
    bench.release()
    assert state_of(bench) is JoinState.WAIT_JOIN
    assert bench.port.positions == {}


@pytest.mark.parametrize("answered", [True, False])
def test_what_was_asked_before_a_new_subscription_is_not_looked_at(answered: bool) -> None:
    """SyncGroup, answered or lost: the member joins after it."""
    bench = polled()
    bench.join()
    bench.do(bench.port.subscribe(("t", "u"), bench.now_ms))
    assert bench.pending == [SyncGroupRequest]
    if answered:
        bench.give(P0)
    else:
        bench.disconnect()
    bench.advance(1_500)
    assert bench.changes == []
    assert bench.pending == [JoinGroupRequest]


def test_a_leader_that_closes_does_not_assign() -> None:
    """The metadata it asked for comes too late."""
    bench = polled()
    bench.automatic.discard(MetadataRequest)
    lead(bench)
    bench.close()
    bench.answer(MetadataRequest, bench.metadata())
    assert bench.pending == [LeaveGroupRequest]


def test_a_join_lost_while_closing_is_not_repeated() -> None:
    """Nor are a JoinGroup's and a LeaveGroup's answers waited for then."""
    bench = polled()
    bench.refuse_join(ErrorCode.MEMBER_ID_REQUIRED)
    bench.advance(2_000)
    bench.close()
    bench.disconnect()
    assert bench.is_closed


def test_assigned_partitions_wait_for_the_coordinator() -> None:
    """Their offsets are looked up when it is there again."""
    bench = polled()
    bench.automatic.discard(RunCallback)
    bench.join()
    bench.give(P0, P1)
    bench.refuses = True
    bench.disconnect()
    bench.release()
    assert not bench.waiting(OffsetFetchRequest)
    bench.refuses = False
    bench.advance(2_000)
    assert bench.waiting(OffsetFetchRequest)


def test_offsets_of_partitions_given_up_meanwhile_are_ignored() -> None:
    """The answer to a look-up comes after the revocation."""
    bench = polled()
    bench.join()
    bench.give(P0, P1)
    rebalance = ErrorCode.REBALANCE_IN_PROGRESS
    bench.beat(rebalance)
    bench.offsets({P0: 7, P1: 7})
    assert bench.port.positions == {}


def test_closing_after_the_loss_of_everything_says_nothing() -> None:
    """The application ends its callback, and there is no member to leave."""
    bench = settled()
    bench.automatic.discard(RunCallback)
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    bench.beat(unknown)
    bench.close()
    assert not bench.is_closed
    bench.release()
    assert bench.pending == []
    assert bench.is_closed


def test_heartbeats_of_a_member_that_revokes_do_not_rebalance_it_twice() -> None:
    """Cooperative: the commit before the second join is still under way."""
    bench = settled(STICKY)
    bench.port.advance_position(P1, 9)
    bench.beat()
    bench.advance(3_000)
    rebalance = ErrorCode.REBALANCE_IN_PROGRESS
    bench.beat(rebalance)
    bench.join(protocol_name=STICKY, generation_id=2)
    bench.automatic.discard(RunCallback)
    bench.give(P0)
    bench.advance(3_000)
    bench.release()
    bench.poll()
    assert state_of(bench) is JoinState.WAIT_INCR_UNASSIGN_TO_COMPLETE
    bench.beat(rebalance)
    assert state_of(bench) is JoinState.WAIT_INCR_UNASSIGN_TO_COMPLETE
    bench.refuse_commit(ErrorCode.NONE)
    assert bench.pending == [JoinGroupRequest]


def test_a_session_that_is_over_is_not_prolonged() -> None:
    """An answer that comes while the application hears of the loss changes nothing."""
    bench = settled(session_timeout_ms="6000")
    bench.automatic.discard(RunCallback)
    loads = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    while not bench.told(LOST):
        if bench.waiting(HeartbeatRequest):
            bench.beat(loads)
        bench.advance(1_000)
    bench.advance(3_000)
    bench.beat()
    assert state_of(bench) is JoinState.WAIT_UNASSIGN_CALL
    bench.release()
    assert bench.changes[-1] == (LOST, (P0, P1))


def test_metadata_waits_while_every_broker_refuses() -> None:
    """The next try is when a broker may be tried again."""
    bench = settled(metadata_max_age_ms="10000")
    bench.advance(9_990)
    bench.refuses = True
    bench.disconnect()
    bench.disconnect(BROKER.node_id)
    bench.advance(5_000)
    bench.refuses = False
    bench.topics = {"t": 4}
    bench.advance(3_000)
    assert (REVOKED, (P0, P1)) in bench.changes
