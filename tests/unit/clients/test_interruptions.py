"""Calls that end early, answers that come late or not at all, brokers that are gone."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from coordinator_sim.clients.effects import (
    COORDINATOR_NODE_OFFSET,
    CallbackKind,
    Connect,
    RunCallback,
)
from coordinator_sim.clients.generation import MemberState
from coordinator_sim.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from coordinator_sim.messages.leave_group import LeaveGroupRequest
from coordinator_sim.messages.metadata import MetadataRequest, MetadataResponse
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from coordinator_sim.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from coordinator_sim.protocol.embedded import ConsumerAssignment, Subscription
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.resources import TopicPartition
from coordinator_sim.wire.consumer_protocol import encode_assignment, encode_subscription

if TYPE_CHECKING:
    from tests.unit.clients.conftest import Desk

    MakeDesk = Callable[..., Desk]

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
COORDINATOR = COORDINATOR_NODE_OFFSET - 1
FINE = HeartbeatResponse(error_code=ErrorCode.NONE)
REBALANCE = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
MOVED = HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR)
UNKNOWN = HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
FOUND = FindCoordinatorResponse(
    coordinators=(
        Coordinator(key="group", node_id=1, host="broker", port=9092, error_message=None),
    )
)


def _committed(error: ErrorCode) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=(
            OffsetCommitResponseTopic("t", partitions=(OffsetCommitResponsePartition(0, error),)),
        )
    )


def _assignment() -> bytes:
    return encode_assignment(ConsumerAssignment(partitions=(T0,)))


def _fetched(group_id: str) -> OffsetFetchResponse:
    topic = OffsetFetchResponseTopics("t", partitions=(OffsetFetchResponsePartitions(0, 10),))
    return OffsetFetchResponse(
        groups=(OffsetFetchResponseGroup(group_id=group_id, topics=(topic,)),)
    )


def _stable(make_desk: "MakeDesk", **settings: object) -> "Desk":
    """A stable consumer of partition 0 whose application is between two polls."""
    desk = make_desk(**settings)
    desk.settle_stable(T0)
    desk.do(desk.port.fetch_completed(0))
    desk.returned.clear()
    return desk


def _commit(desk: "Desk", *, sync: bool = False) -> None:
    _, effects = desk.port.commit({T0: 5}, sync=sync, now_ms=desk.now_ms)
    desk.do(effects)


def _lose_broker(desk: "Desk") -> None:
    """Every connection breaks, and none opens again."""
    desk.automatic.discard(Connect)
    for node_id in (1, COORDINATOR):
        desk.do(desk.port.on_disconnected(node_id, desk.now_ms))


# Messages that nobody waits for


def test_answer_to_no_request_is_ignored(make_desk: "MakeDesk") -> None:
    """A correlation id that was never sent changes nothing."""
    desk = _stable(make_desk)

    assert desk.port.on_response(4_711, FINE, 0) == ()


def test_alarm_before_its_time_does_nothing(make_desk: "MakeDesk") -> None:
    """A driver may ring too early."""
    desk = _stable(make_desk)

    assert desk.port.expire(1) == ()


def test_heartbeat_answered_twice_counts_once(make_desk: "MakeDesk") -> None:
    """The second answer is to no request."""
    desk = _stable(make_desk)
    desk.run(3_000)
    (beat,) = (send for send in desk.waiting if isinstance(send.request, HeartbeatRequest))
    desk.do(desk.port.on_response(beat.correlation_id, FINE, 3_000))
    deadline_ms = desk.port.next_deadline_ms()

    assert desk.port.on_response(beat.correlation_id, FINE, 3_500) == ()
    assert desk.port.next_deadline_ms() == deadline_ms


def test_thread_woken_for_nothing_sleeps_again(make_desk: "MakeDesk") -> None:
    """A spurious wake-up sends no heartbeat."""
    desk = _stable(make_desk)
    desk.port._heartbeat_wake_ms = 1_000
    desk.port._arm()

    desk.run(2_999)

    assert desk.of(HeartbeatRequest) == []


def test_records_without_a_poll_end_nothing(make_desk: "MakeDesk") -> None:
    """What was fetched waits for the application's next poll."""
    desk = _stable(make_desk)

    assert desk.port.fetch_completed(0) == ()


# The heartbeat thread


def test_session_that_ends_before_the_next_heartbeat_wakes_the_thread(
    make_desk: "MakeDesk",
) -> None:
    """C-HB-07: an unanswered heartbeat ends the session, even between two heartbeats."""
    desk = _stable(make_desk, session_timeout_ms=6_000, heartbeat_interval_ms=5_000)
    desk.run(5_000)
    desk.reply(HeartbeatRequest, FINE)
    desk.run(10_000)

    assert desk.port.next_deadline_ms() == 11_000
    desk.run(11_000)
    assert COORDINATOR in desk.disconnects


def test_session_end_fails_commits_while_nobody_polls(make_desk: "MakeDesk") -> None:
    """The heartbeat thread gives up the connection, and what was asked over it fails."""
    desk = _stable(make_desk, session_timeout_ms=6_000, heartbeat_interval_ms=5_000)
    _commit(desk)
    desk.run(6_000)
    desk.poll()

    assert [commit.error for commit in desk.commits] == ["RetriableCommitFailedException"]


def test_two_answers_that_the_coordinator_moved_are_one_loss(make_desk: "MakeDesk") -> None:
    """Both were kept for the next poll; the second finds the coordinator forgotten already."""
    desk = _stable(make_desk)
    _commit(desk)
    _commit(desk)
    desk.run(3_000)
    desk.poll(0)
    desk.reply(HeartbeatRequest, REBALANCE)
    desk.poll(0)
    assert desk.port.state is MemberState.PREPARING_REBALANCE
    for _ in range(2):
        desk.reply(OffsetCommitRequest, _committed(ErrorCode.NOT_COORDINATOR))
    desk.poll()

    assert desk.disconnects == [COORDINATOR]
    assert len(desk.of(FindCoordinatorRequest)) == 2


# Nobody to ask


def test_lookup_without_any_broker_is_repeated(make_desk: "MakeDesk") -> None:
    """With all brokers in their reconnect backoff the poll waits and asks again."""
    desk = make_desk()
    desk.automatic.discard(Connect)
    desk.poll()
    desk.do(desk.port.on_disconnected(1, 0))
    desk.run(1_000)
    desk.automatic.add(Connect)
    desk.run(30_000)

    assert desk.of(FindCoordinatorRequest)


def test_async_commit_without_any_broker_fails_at_once(make_desk: "MakeDesk") -> None:
    """The application hears of it in its next call."""
    desk = _stable(make_desk)
    assert desk.port.coordinator_node == 1
    _lose_broker(desk)
    _commit(desk)
    desk.poll(0)
    assert desk.port.coordinator_node is None

    assert [commit.error for commit in desk.commits] == ["RetriableCommitFailedException"]


def test_async_commit_fails_when_the_coordinator_found_cannot_be_reached(
    make_desk: "MakeDesk",
) -> None:
    """Its connection is in backoff, so nothing can be sent."""
    desk = _stable(make_desk)
    desk.do(desk.port.on_disconnected(COORDINATOR, 0))
    _commit(desk)
    desk.poll(0)

    assert [commit.error for commit in desk.commits] == ["RetriableCommitFailedException"]
    assert desk.of(OffsetCommitRequest) == []


def test_sync_commit_without_a_coordinator_times_out(make_desk: "MakeDesk") -> None:
    """After default.api.timeout.ms the application gets its thread back."""
    desk = _stable(make_desk, default_api_timeout_ms=2_000)
    _lose_broker(desk)
    _commit(desk, sync=True)
    desk.run(2_000)

    assert [commit.error for commit in desk.commits] == ["TimeoutException"]


def test_retriable_answer_at_the_very_end_is_a_timeout(make_desk: "MakeDesk") -> None:
    """There is no time left to ask again."""
    desk = _stable(make_desk, default_api_timeout_ms=2_000)
    _commit(desk, sync=True)
    desk.now_ms = 2_000
    desk.reply(OffsetCommitRequest, _committed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))

    assert [commit.error for commit in desk.commits] == ["TimeoutException"]


def test_fenced_async_commit_ends_the_next_sync_commit(make_desk: "MakeDesk") -> None:
    """Somebody else has this instance id: nothing more is sent under it."""
    desk = _stable(make_desk, group_instance_id="i")
    _commit(desk)
    desk.reply(OffsetCommitRequest, _committed(ErrorCode.FENCED_INSTANCE_ID))
    desk.run(100)
    _commit(desk, sync=True)

    assert desk.commits[-1].error == "FencedInstanceIdException"
    assert len(desk.of(OffsetCommitRequest)) == 1


# Positions


def test_positions_are_not_asked_for_without_a_coordinator(make_desk: "MakeDesk") -> None:
    """The poll returns without them at its end."""
    desk = make_desk()
    desk.poll()
    desk.join()
    desk.reply(SyncGroupRequest, SyncGroupResponse(assignment=_assignment()))
    _lose_broker(desk)
    desk.run(60_000)

    assert desk.returned == [None]
    assert desk.port.positions == {}


def test_offset_fetch_outlives_its_poll(make_desk: "MakeDesk") -> None:
    """A poll that ends meanwhile asks nothing twice: the next one waits for the same answer."""
    desk = make_desk()
    desk.poll(100)
    desk.join()
    desk.reply(SyncGroupRequest, SyncGroupResponse(assignment=_assignment()))
    desk.run(100)
    assert desk.returned == [None]
    desk.poll()

    assert len(desk.of(OffsetFetchRequest)) == 1
    assert desk.is_waiting(OffsetFetchRequest)


def test_position_that_the_application_set_is_kept(make_desk: "MakeDesk") -> None:
    """An answer fills only what is still unknown."""
    desk = make_desk()
    desk.poll()
    desk.join()
    desk.reply(SyncGroupRequest, SyncGroupResponse(assignment=_assignment()))
    desk.port.advance_position(T0, 7)
    desk.reply(OffsetFetchRequest, _fetched("group"))

    assert desk.port.positions == {T0: 7}


def test_retriable_offset_fetch_at_the_end_of_the_poll_is_not_repeated(
    make_desk: "MakeDesk",
) -> None:
    """The poll returns without a position; the next one asks again."""
    desk = make_desk()
    desk.poll(100)
    desk.join()
    desk.reply(SyncGroupRequest, SyncGroupResponse(assignment=_assignment()))
    desk.now_ms = 100
    loading = OffsetFetchResponseGroup(
        group_id="group", topics=(), error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    )
    desk.reply(OffsetFetchRequest, OffsetFetchResponse(groups=(loading,)))
    desk.run(101)
    assert desk.returned == [None]
    desk.poll()

    assert len(desk.of(OffsetFetchRequest)) == 2


def test_answer_about_another_group_is_an_error(make_desk: "MakeDesk") -> None:
    """The offsets asked for are not in it."""
    desk = make_desk()
    desk.poll()
    desk.join()
    desk.reply(SyncGroupRequest, SyncGroupResponse(assignment=_assignment()))
    desk.reply(OffsetFetchRequest, _fetched("other"))

    assert desk.returned == ["KafkaException"]


# Joins that are interrupted


def test_join_answered_after_a_static_member_began_to_close_beats_no_more(
    make_desk: "MakeDesk",
) -> None:
    """C-LEAVE-02: it leaves nobody, and its heartbeat thread has ended."""
    desk = make_desk(group_instance_id="i", leave_group_on_close=False)
    desk.poll()
    desk.do(desk.port.close(0, 30_000))
    desk.join()
    desk.run(20_000)

    assert desk.of(HeartbeatRequest) == []
    assert desk.of(LeaveGroupRequest) == []


@pytest.mark.parametrize("kept", ["coordinator", "nothing"])
def test_group_is_not_active_when_its_time_is_over(make_desk: "MakeDesk", kept: str) -> None:
    """C-JOIN-15: no coordinator, or no answer, by the deadline is a no without an exception."""
    desk = make_desk()
    if kept == "nothing":
        desk.automatic.discard(FindCoordinatorRequest)
    answers: list[bool] = []
    desk.port._ensure_active_group(
        0, deadline_ms=500, then=lambda active, _now_ms: answers.append(active)
    )
    desk.do(desk.port.expire(0))
    desk.do(desk.port._settle(0))
    desk.run(1_000)

    assert answers == [False]
    assert bool(desk.of(JoinGroupRequest)) is (kept == "coordinator")


def test_group_is_not_active_when_the_coordinator_stays_away(make_desk: "MakeDesk") -> None:
    """C-JOIN-15: the join failed, its coordinator is not found again in time."""
    desk = make_desk()
    answers: list[bool] = []
    desk.port._ensure_active_group(
        0, deadline_ms=500, then=lambda active, _now_ms: answers.append(active)
    )
    desk.do(desk.port._settle(0))
    desk.automatic.discard(FindCoordinatorRequest)
    desk.join(JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR, protocol_name=None))
    desk.run(1_000)

    assert answers == [False]


def test_coordinator_lost_during_revocation_is_looked_for_before_the_join(
    make_desk: "MakeDesk",
) -> None:
    """The JoinGroup goes to the coordinator found after the callback."""
    desk = _stable(make_desk)
    desk.run(3_000)
    desk.automatic.discard(RunCallback)
    desk.poll()
    desk.reply(HeartbeatRequest, REBALANCE)
    desk.run(6_000)
    desk.automatic.discard(FindCoordinatorRequest)
    desk.reply(HeartbeatRequest, MOVED)
    desk.run(6_100)
    revoked = desk.callbacks[-1]
    assert revoked.kind is CallbackKind.PARTITIONS_REVOKED
    desk.do(desk.port.callback_completed(revoked.token, None, 6_100))
    assert len(desk.of(JoinGroupRequest)) == 1
    desk.automatic.add(FindCoordinatorRequest)
    desk.reply(FindCoordinatorRequest, FOUND)
    desk.run(7_000)

    assert len(desk.of(JoinGroupRequest)) == 2


def test_late_answer_to_a_join_does_not_reset_the_new_generation(make_desk: "MakeDesk") -> None:
    """C-JOIN-08: the member has left since the JoinGroup that is now refused."""
    desk = _stable(make_desk)
    desk.run(3_000)
    desk.poll(0)
    desk.reply(HeartbeatRequest, REBALANCE)
    desk.poll(0)
    desk.do(desk.port.unsubscribe(desk.now_ms))
    desk.reply(
        JoinGroupRequest,
        JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID, protocol_name=None),
    )
    desk.do(desk.port.subscribe(["t"], desk.now_ms))
    desk.poll()

    assert (
        desk.of(JoinGroupRequest)[-1].reason == "rebalance failed due to UnknownMemberIdException"
    )


def test_refused_sync_after_a_refused_heartbeat_resets_once(make_desk: "MakeDesk") -> None:
    """C-SYNC-06: the heartbeat has reset the generation already."""
    desk = make_desk()
    desk.poll()
    desk.join()
    desk.run(3_000)
    desk.reply(HeartbeatRequest, UNKNOWN)
    desk.reply(SyncGroupRequest, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))

    last = desk.of(JoinGroupRequest)[-1]
    assert last.member_id == ""
    assert last.reason == "rebalance failed due to UnknownMemberIdException"


def test_leader_that_lost_its_coordinator_sends_no_assignment(make_desk: "MakeDesk") -> None:
    """C-SYNC-03: it waited for metadata meanwhile; it joins again instead."""
    desk = make_desk()
    desk.topics = {"t": 2, "u": 1}
    desk.poll()
    desk.automatic -= {MetadataRequest, FindCoordinatorRequest}
    subscription = encode_subscription(Subscription(topics=("t", "u")))
    desk.join(leader="m", members=(JoinGroupResponseMember("m", None, subscription),))
    desk.do(desk.port.on_disconnected(COORDINATOR, 0))
    desk.reply(MetadataRequest, desk.metadata())

    assert desk.of(SyncGroupRequest) == []
    assert desk.returned == []


def test_leader_that_waits_for_metadata_sends_no_heartbeats(make_desk: "MakeDesk") -> None:
    """It assigns under the lock that its heartbeat thread needs; what is due follows at once."""
    desk = make_desk()
    desk.topics = {"t": 2, "u": 1}
    desk.poll()
    desk.automatic.discard(MetadataRequest)
    subscription = encode_subscription(Subscription(topics=("t", "u")))
    desk.join(leader="m", members=(JoinGroupResponseMember("m", None, subscription),))
    desk.run(10_000)
    assert desk.of(HeartbeatRequest) == []
    desk.reply(MetadataRequest, desk.metadata())

    assert len(desk.of(SyncGroupRequest)) == 1
    assert desk.times_of(HeartbeatRequest) == [10_000]


def test_session_that_ends_under_a_commit_fails_it_at_once(make_desk: "MakeDesk") -> None:
    """The heartbeat thread closes the connection that a synchronous commit waits on."""
    desk = _stable(make_desk, session_timeout_ms=5_000, request_timeout_ms=60_000)
    desk.run(4_000)
    desk.automatic.discard(FindCoordinatorRequest)
    _commit(desk, sync=True)
    desk.run(5_000)

    assert desk.disconnects == [COORDINATOR]
    assert not desk.is_waiting(OffsetCommitRequest)
    assert desk.is_waiting(FindCoordinatorRequest)
    desk.reply(FindCoordinatorRequest, FOUND)
    desk.run(5_200)
    assert desk.times_of(OffsetCommitRequest) == [4_000, 5_100]


def test_wakeup_at_the_last_callbacks_keeps_the_partitions(make_desk: "MakeDesk") -> None:
    """QUIRK: Java's exception passes by the change of state, and the LeaveGroup."""
    desk = _stable(make_desk)
    desk.outcomes[CallbackKind.PARTITIONS_REVOKED] = "WakeupException"
    desk.do(desk.port.unsubscribe(0))

    assert desk.returned[-1] == "WakeupException"
    assert desk.port.owned_partitions == (T0,)
    assert desk.of(LeaveGroupRequest) == []


def test_thread_does_not_look_for_a_coordinator_that_the_application_looks_for(
    make_desk: "MakeDesk",
) -> None:
    """A lookup that takes long is not repeated: the application holds the lock meanwhile."""
    desk = _stable(make_desk)
    desk.poll()
    desk.automatic.discard(FindCoordinatorRequest)
    desk.run(3_000)
    desk.reply(HeartbeatRequest, MOVED)
    desk.run(20_000)

    assert len(desk.of(FindCoordinatorRequest)) == 2


def test_idle_thread_looks_at_its_timers_every_backoff(make_desk: "MakeDesk") -> None:
    """An answer that nobody waits for is read at the next look, and a session ends at one too."""
    desk = _stable(make_desk, session_timeout_ms=10_050)
    desk.run(3_000)
    desk.now_ms = 3_020
    desk.reply(HeartbeatRequest, REBALANCE)
    assert not desk.port._rejoin_needed
    desk.run(3_100)
    assert desk.port._rejoin_needed
    desk.run(13_149)
    assert desk.disconnects == []
    desk.run(13_200)
    assert desk.disconnects == [COORDINATOR]


def test_heartbeat_off_the_grid_waits_for_the_next_look(make_desk: "MakeDesk") -> None:
    """An interval that is no multiple of the backoff lasts to the next look of an idle thread."""
    desk = _stable(make_desk, heartbeat_interval_ms=1_050)
    for at_ms in (1_100, 2_200, 3_300):
        desk.run(at_ms)
        desk.reply(HeartbeatRequest, FINE)
    desk.poll(5_000)
    desk.run(5_000)

    assert desk.times_of(HeartbeatRequest) == [1_100, 2_200, 3_300, 4_350]


def test_generation_reset_during_revocation_leaves_the_assignor_out(
    make_desk: "MakeDesk",
) -> None:
    """C-HB-04: there is no generation to remember an assignment of."""
    desk = make_desk(["cooperative-sticky"])
    desk.poll()
    desk.join(protocol_name="cooperative-sticky")
    desk.sync(T0, T1)
    desk.run(3_000)
    desk.reply(HeartbeatRequest, REBALANCE)
    desk.join(generation_id=2, protocol_name="cooperative-sticky")
    desk.automatic.discard(RunCallback)
    desk.sync(T0)
    desk.run(6_000)
    desk.reply(HeartbeatRequest, UNKNOWN)
    revoked = desk.callbacks[-1]
    assert revoked.kind is CallbackKind.PARTITIONS_REVOKED
    desk.do(desk.port.callback_completed(revoked.token, None, 6_000))

    assert desk.callbacks[-1].kind is CallbackKind.PARTITIONS_ASSIGNED


def test_wakeup_raised_by_a_revocation_in_the_join_is_thrown(make_desk: "MakeDesk") -> None:
    """C-JOIN-17: the next poll goes on with the same assignment."""
    desk = make_desk(["cooperative-sticky"])
    desk.poll()
    desk.join(protocol_name="cooperative-sticky")
    desk.sync(T0, T1)
    desk.run(3_000)
    desk.reply(HeartbeatRequest, REBALANCE)
    desk.join(generation_id=2, protocol_name="cooperative-sticky")
    desk.outcomes = {CallbackKind.PARTITIONS_REVOKED: "WakeupException"}
    desk.sync(T0)
    assert desk.returned == ["WakeupException"]
    desk.outcomes = {}
    desk.poll()

    assert desk.port.owned_partitions == (T0,)


def test_error_of_a_revocation_is_thrown_after_the_assignment(make_desk: "MakeDesk") -> None:
    """Both callbacks run, then the poll raises."""
    desk = make_desk(["cooperative-sticky"])
    desk.poll()
    desk.join(protocol_name="cooperative-sticky")
    desk.sync(T0, T1)
    desk.run(3_000)
    desk.reply(HeartbeatRequest, REBALANCE)
    desk.join(generation_id=2, protocol_name="cooperative-sticky")
    desk.outcomes = {CallbackKind.PARTITIONS_REVOKED: "IllegalStateException"}
    desk.sync(T0)

    assert desk.returned == ["KafkaException"]
    assert desk.callbacks[-1].kind is CallbackKind.PARTITIONS_ASSIGNED


def test_error_of_the_last_revocation_ends_unsubscribe(make_desk: "MakeDesk") -> None:
    """The member stays: no LeaveGroup, and the subscription is kept."""
    desk = _stable(make_desk)
    desk.outcomes = {CallbackKind.PARTITIONS_REVOKED: "IllegalStateException"}
    desk.do(desk.port.unsubscribe(0))

    assert desk.returned == ["KafkaException"]
    assert desk.of(LeaveGroupRequest) == []


def test_join_of_a_consumer_without_topics_is_over(make_desk: "MakeDesk") -> None:
    """It gave its subscription up inside its callback: there is nothing to join again for."""
    desk = make_desk()
    desk.automatic.discard(RunCallback)
    desk.poll()
    desk.join()
    desk.sync(T0)
    desk.do(desk.port.subscribe([], 0))
    desk.do(desk.port.callback_completed(desk.callbacks[-1].token, None, 0))
    desk.run(1_000)

    assert len(desk.of(JoinGroupRequest)) == 1


def test_rebalance_told_to_a_member_that_joins_already_is_a_success(
    make_desk: "MakeDesk",
) -> None:
    """C-HB-03: between JoinGroup and SyncGroup the thread beats, and needs no second rejoin."""
    desk = make_desk()
    desk.poll()
    desk.join()
    desk.run(3_000)
    desk.reply(HeartbeatRequest, REBALANCE)
    desk.sync(T0)

    assert len(desk.of(JoinGroupRequest)) == 1


def test_heartbeat_answered_during_a_join_is_a_success(make_desk: "MakeDesk") -> None:
    """C-HB-02: it was sent before the JoinGroup, and nothing follows from it."""
    desk = _stable(make_desk)
    desk.topics = {"t": 1, "u": 1}
    desk.run(3_000)
    desk.do(desk.port.subscribe(["t", "u"], 3_000))
    desk.poll()
    desk.reply(HeartbeatRequest, FINE)

    assert desk.port.state is MemberState.PREPARING_REBALANCE
    assert len(desk.of(HeartbeatRequest)) == 1


def test_heartbeat_of_an_old_generation_refused_changes_nothing(make_desk: "MakeDesk") -> None:
    """C-HB-04: the member has joined a newer generation since."""
    desk = _stable(make_desk)
    desk.topics = {"t": 1, "u": 1}
    desk.run(3_000)
    desk.do(desk.port.subscribe(["t", "u"], 3_000))
    desk.poll()
    desk.join(generation_id=2)
    desk.sync(T0)
    desk.reply(HeartbeatRequest, HeartbeatResponse(error_code=ErrorCode.ILLEGAL_GENERATION))

    assert desk.port.generation_id == 2
    assert desk.port.state is MemberState.STABLE


def test_close_with_a_broken_connection_ends_all_the_same(make_desk: "MakeDesk") -> None:
    """What is broken needs no closing."""
    desk = _stable(make_desk)
    _lose_broker(desk)
    desk.do(desk.port.close(0, 0))

    assert desk.closed
    assert desk.disconnects == []


def test_metadata_without_brokers_keeps_those_known(make_desk: "MakeDesk") -> None:
    """A cluster that is starting may name none."""
    desk = make_desk()
    desk.automatic.discard(MetadataRequest)
    desk.poll()
    desk.reply(MetadataRequest, MetadataResponse(brokers=(), topics=desk.metadata().topics))

    assert desk.port._metadata.nodes
