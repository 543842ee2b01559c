"""Calls that end early, answers that come late or not at all, brokers that are gone."""

import pytest

from coordinator_sim.clients.effects import CallbackKind, Connect, RunCallback
from coordinator_sim.clients.generation import MemberState
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.consumer_protocol import encode_subscription
from coordinator_sim.messages.embedded.contents import Subscription
from coordinator_sim.messages.find_coordinator import FindCoordinatorRequest
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupResponseMember
from coordinator_sim.messages.leave_group import LeaveGroupRequest
from coordinator_sim.messages.metadata import MetadataRequest, MetadataResponse
from coordinator_sim.messages.offset_commit import OffsetCommitRequest
from coordinator_sim.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from coordinator_sim.messages.sync_group import SyncGroupRequest
from coordinator_sim_conformance.client_cases import bench

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
FINE = HeartbeatResponse(error_code=ErrorCode.NONE)


def _stable(**settings: object) -> bench.ConsumerBench:
    """A stable consumer of partition 0 whose application is between two polls."""
    consumer = bench.Bench().consumer(**settings)
    consumer.idle()
    return consumer


def _rejoining() -> bench.ConsumerBench:
    """A cooperative member with both partitions, between JoinGroup and SyncGroup of a rebalance."""
    consumer = bench.Bench().consumer(assignors=["cooperative-sticky"])
    consumer.poll()
    consumer.join(protocol_name="cooperative-sticky")
    consumer.assign(T0, T1)
    consumer.run(3_000)
    consumer.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    consumer.join(generation_id=2, protocol_name="cooperative-sticky")
    return consumer


def _lose_broker(consumer: bench.ConsumerBench) -> None:
    """Every connection breaks, and none opens again."""
    consumer.automatic.discard(Connect)
    for node_id in (1, bench.COORDINATOR):
        consumer.do(consumer.port.on_disconnected(node_id, consumer.now_ms))


# Messages that nobody waits for


def test_answer_to_no_request_is_ignored() -> None:
    """A correlation id that was never sent changes nothing."""
    consumer = _stable()

    assert consumer.port.on_response(4_711, FINE, 0) == ()


def test_answer_out_of_turn_is_raised_by_the_poll_and_loses_a_request() -> None:
    """The poll ends with Java's exception; the request it stands for is never heard of again."""
    consumer = _stable()
    consumer.run(3_000)
    consumer.poll()
    assert consumer.waiting(HeartbeatRequest) == 1
    consumer.do(consumer.port.on_unexpected_response(bench.COORDINATOR, consumer.now_ms))
    assert consumer.returned == ["IllegalStateException"]
    assert consumer.sent_at(HeartbeatRequest) == [3_000]

    consumer.run(35_999)
    assert consumer.disconnected == []
    consumer.run(36_000)
    assert consumer.disconnected == [bench.COORDINATOR]  # the heartbeat of 6 s has timed out


def test_answer_to_no_open_request_is_raised_by_the_next_poll() -> None:
    """Nobody reads the network before the application polls; there is no request to lose."""
    consumer = bench.Bench().consumer()
    consumer.connect(1)
    consumer.do(consumer.port.on_unexpected_response(1, 0))
    assert consumer.returned == []
    consumer.poll()

    assert consumer.returned == ["IllegalStateException"]


def test_answer_out_of_turn_ends_the_heartbeat_thread_while_records_are_processed() -> None:
    """It is the thread that reads then; no heartbeat follows, and the next poll raises."""
    consumer = _stable()
    consumer.run(3_000)
    consumer.do(consumer.port.on_unexpected_response(bench.COORDINATOR, consumer.now_ms))
    consumer.run(20_000)
    assert len(consumer.sent(HeartbeatRequest)) == 1
    consumer.poll()

    assert consumer.returned == ["IllegalStateException"]


def test_answer_out_of_turn_does_not_keep_a_client_from_closing() -> None:
    """The last commit is given up, and the group is left; then the wait for LeaveGroup ends."""
    consumer = _stable(enable_auto_commit=True)
    consumer.close()
    assert consumer.waiting(OffsetCommitRequest) == 1
    consumer.do(consumer.port.on_unexpected_response(bench.COORDINATOR, consumer.now_ms))
    assert consumer.waiting(LeaveGroupRequest) == 1
    assert not consumer.is_closed
    consumer.do(consumer.port.on_unexpected_response(bench.COORDINATOR, consumer.now_ms))

    assert consumer.is_closed


def test_alarm_before_its_time_does_nothing() -> None:
    """A driver may ring too early."""
    consumer = _stable()

    assert consumer.port.expire(1) == ()


def test_heartbeat_answered_twice_counts_once() -> None:
    """The second answer is to no request."""
    consumer = _stable()
    consumer.run(3_000)
    (beat,) = (each for each in consumer.unanswered if isinstance(each.request, HeartbeatRequest))
    consumer.beat()
    deadline_ms = consumer.port.next_deadline_ms()

    assert consumer.port.on_response(beat.correlation_id, FINE, 3_500) == ()
    assert consumer.port.next_deadline_ms() == deadline_ms


def test_thread_woken_for_nothing_sleeps_again() -> None:
    """A spurious wake-up sends no heartbeat."""
    consumer = _stable()
    consumer.port._heartbeat_wake_ms = 1_000
    consumer.port._arm()

    consumer.run(2_999)

    assert consumer.sent(HeartbeatRequest) == []


def test_records_without_a_poll_end_nothing() -> None:
    """What was fetched waits for the application's next poll."""
    consumer = _stable()

    assert consumer.port.fetch_completed(0) == ()


# The heartbeat thread


def test_session_that_ends_before_the_next_heartbeat_wakes_the_thread() -> None:
    """An unanswered heartbeat ends the session, even between two heartbeats."""
    consumer = _stable(session_timeout_ms=6_000, heartbeat_interval_ms=5_000)
    consumer.run(5_000)
    consumer.beat()
    consumer.run(10_000)

    assert consumer.port.next_deadline_ms() == 11_000
    consumer.run(11_000)
    assert bench.COORDINATOR in consumer.disconnected


def test_session_end_fails_commits_while_nobody_polls() -> None:
    """The heartbeat thread gives up the connection, and what was asked over it fails."""
    consumer = _stable(session_timeout_ms=6_000, heartbeat_interval_ms=5_000)
    consumer.commit({T0: 5}, sync=False)
    consumer.run(6_000)
    consumer.poll()

    assert [commit.error for commit in consumer.committed] == ["RetriableCommitFailedException"]


def test_two_answers_that_the_coordinator_moved_are_one_loss() -> None:
    """Both were kept for the next poll; the second finds the coordinator forgotten already."""
    consumer = _stable()
    consumer.commit({T0: 5}, sync=False)
    consumer.commit({T0: 5}, sync=False)
    consumer.run(3_000)
    consumer.poll(0)
    consumer.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    consumer.poll(0)
    assert consumer.port.state is MemberState.PREPARING_REBALANCE
    for _ in range(2):
        consumer.refuse_commit(ErrorCode.NOT_COORDINATOR)
    consumer.poll()

    assert consumer.disconnected == [bench.COORDINATOR]
    assert len(consumer.sent(FindCoordinatorRequest)) == 2


# Nobody to ask


def test_lookup_without_any_broker_is_repeated() -> None:
    """With all brokers in their reconnect backoff the poll waits and asks again."""
    consumer = bench.Bench().consumer()
    consumer.automatic.discard(Connect)
    consumer.poll()
    consumer.do(consumer.port.on_disconnected(1, 0))
    consumer.run(1_000)
    consumer.automatic.add(Connect)
    consumer.run(30_000)

    assert consumer.sent(FindCoordinatorRequest)


def test_async_commit_without_any_broker_fails_at_once() -> None:
    """The application hears of it in its next call."""
    consumer = _stable()
    assert consumer.port.coordinator_node == 1
    _lose_broker(consumer)
    consumer.commit({T0: 5}, sync=False)
    consumer.poll(0)
    assert consumer.port.coordinator_node is None

    assert [commit.error for commit in consumer.committed] == ["RetriableCommitFailedException"]


def test_async_commit_fails_when_the_coordinator_found_cannot_be_reached() -> None:
    """The coordinator's connection is in backoff, so nothing can be sent."""
    consumer = _stable()
    consumer.do(consumer.port.on_disconnected(bench.COORDINATOR, 0))
    consumer.commit({T0: 5}, sync=False)
    consumer.poll(0)

    assert [commit.error for commit in consumer.committed] == ["RetriableCommitFailedException"]
    assert consumer.sent(OffsetCommitRequest) == []


def test_sync_commit_without_a_coordinator_times_out() -> None:
    """After default.api.timeout.ms the application gets its thread back."""
    consumer = _stable(default_api_timeout_ms=2_000)
    _lose_broker(consumer)
    consumer.commit({T0: 5}, sync=True)
    consumer.run(2_000)

    assert [commit.error for commit in consumer.committed] == ["TimeoutException"]


def test_retriable_answer_at_the_very_end_is_a_timeout() -> None:
    """A retriable error at the deadline of a commit ends it with a timeout."""
    consumer = _stable(default_api_timeout_ms=2_000)
    consumer.commit({T0: 5}, sync=True)
    consumer.now_ms = 2_000
    consumer.refuse_commit(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    assert [commit.error for commit in consumer.committed] == ["TimeoutException"]


def test_fenced_async_commit_ends_the_next_sync_commit() -> None:
    """Somebody else has this instance id: nothing more is sent under it."""
    consumer = _stable(group_instance_id="i")
    consumer.commit({T0: 5}, sync=False)
    consumer.refuse_commit(ErrorCode.FENCED_INSTANCE_ID)
    consumer.run(100)
    consumer.commit({T0: 5}, sync=True)

    assert consumer.committed[-1].error == "FencedInstanceIdException"
    assert len(consumer.sent(OffsetCommitRequest)) == 1


# Positions


def test_positions_are_not_asked_for_without_a_coordinator() -> None:
    """The poll returns without them at its end."""
    consumer = bench.Bench().consumer()
    consumer.poll(60_000)
    consumer.join()
    consumer.give(T0)
    _lose_broker(consumer)
    consumer.run(60_000)

    assert consumer.returned == [None]
    assert consumer.port.positions == {}


def test_offset_fetch_outlives_its_poll() -> None:
    """A poll that ends meanwhile asks nothing twice: the next one waits for the same answer."""
    consumer = bench.Bench().consumer()
    consumer.poll(100)
    consumer.join()
    consumer.give(T0)
    consumer.run(100)
    assert consumer.returned == [None]
    consumer.poll()

    assert len(consumer.sent(OffsetFetchRequest)) == 1
    assert consumer.waiting(OffsetFetchRequest)


def test_position_that_the_application_set_is_kept() -> None:
    """An answer fills only what is still unknown."""
    consumer = bench.Bench().consumer()
    consumer.poll()
    consumer.join()
    consumer.give(T0)
    consumer.port.advance_position(T0, 7)
    consumer.offsets({T0: 10})

    assert consumer.port.positions == {T0: 7}


def test_retriable_offset_fetch_at_the_end_of_the_poll_is_not_repeated() -> None:
    """The poll returns without a position; the next one asks again."""
    consumer = bench.Bench().consumer()
    consumer.poll(100)
    consumer.join()
    consumer.give(T0)
    consumer.now_ms = 100
    loading = OffsetFetchResponseGroup(
        group_id=bench.GROUP, topics=(), error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    )
    consumer.answer(OffsetFetchRequest, OffsetFetchResponse(groups=(loading,)))
    consumer.run(101)
    assert consumer.returned == [None]
    consumer.poll()

    assert len(consumer.sent(OffsetFetchRequest)) == 2


def test_answer_about_another_group_is_an_error() -> None:
    """The offsets asked for are not in it."""
    consumer = bench.Bench().consumer()
    consumer.poll()
    consumer.join()
    consumer.give(T0)
    other = OffsetFetchResponseGroup(group_id="other", topics=())
    consumer.answer(OffsetFetchRequest, OffsetFetchResponse(groups=(other,)))

    assert consumer.returned == ["KafkaException"]


# Joins that are interrupted


def test_join_answered_after_a_static_member_began_to_close_beats_no_more() -> None:
    """The member leaves nobody, and its heartbeat thread has ended."""
    consumer = bench.Bench().consumer(group_instance_id="i", leave_group_on_close=False)
    consumer.poll()
    consumer.do(consumer.port.close(0, 30_000))
    consumer.join()
    consumer.run(20_000)

    assert consumer.sent(HeartbeatRequest) == []
    assert consumer.sent(LeaveGroupRequest) == []


@pytest.mark.parametrize("kept", ["coordinator", "nothing"])
def test_group_is_not_active_when_its_time_is_over(kept: str) -> None:
    """No coordinator, or no answer, by the deadline is a no without an exception."""
    consumer = bench.Bench().consumer()
    if kept == "nothing":
        consumer.automatic.discard(FindCoordinatorRequest)
    answers: list[bool] = []
    consumer.port._ensure_active_group(
        0, deadline_ms=500, then=lambda active, _now_ms: answers.append(active)
    )
    consumer.do(consumer.port.expire(0))
    consumer.do(consumer.port._settle(0))
    consumer.run(1_000)

    assert answers == [False]
    assert bool(consumer.sent(JoinGroupRequest)) is (kept == "coordinator")


def test_group_is_not_active_when_the_coordinator_stays_away() -> None:
    """The join failed, its coordinator is not found again in time."""
    consumer = bench.Bench().consumer()
    answers: list[bool] = []
    consumer.port._ensure_active_group(
        0, deadline_ms=500, then=lambda active, _now_ms: answers.append(active)
    )
    consumer.do(consumer.port._settle(0))
    consumer.automatic.discard(FindCoordinatorRequest)
    consumer.refuse_join(ErrorCode.NOT_COORDINATOR)
    consumer.run(1_000)

    assert answers == [False]


def test_coordinator_lost_during_revocation_is_looked_for_before_the_join() -> None:
    """The JoinGroup goes to the coordinator found after the callback."""
    consumer = _stable()
    consumer.run(3_000)
    consumer.automatic.discard(RunCallback)
    consumer.poll()
    consumer.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    consumer.run(6_000)
    consumer.automatic.discard(FindCoordinatorRequest)
    consumer.beat(ErrorCode.NOT_COORDINATOR)
    consumer.run(6_100)
    revoked = consumer.callbacks[-1]
    assert revoked.kind is CallbackKind.PARTITIONS_REVOKED
    consumer.complete(revoked)
    assert len(consumer.sent(JoinGroupRequest)) == 1
    consumer.automatic.add(FindCoordinatorRequest)
    consumer.find()
    consumer.run(7_000)

    assert len(consumer.sent(JoinGroupRequest)) == 2


def test_late_answer_to_a_join_does_not_reset_the_new_generation() -> None:
    """The member has left since the JoinGroup that is now refused."""
    consumer = _stable()
    consumer.run(3_000)
    consumer.poll(0)
    consumer.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    consumer.poll(0)
    consumer.do(consumer.port.unsubscribe(consumer.now_ms))
    consumer.refuse_join(ErrorCode.UNKNOWN_MEMBER_ID)
    consumer.do(consumer.port.subscribe(["t"], consumer.now_ms))
    consumer.poll()

    assert (
        consumer.sent(JoinGroupRequest)[-1].reason
        == "rebalance failed due to UnknownMemberIdException"
    )


def test_refused_sync_after_a_refused_heartbeat_resets_once() -> None:
    """The heartbeat has reset the generation already."""
    consumer = bench.Bench().consumer()
    consumer.poll()
    consumer.join()
    consumer.run(3_000)
    consumer.beat(ErrorCode.UNKNOWN_MEMBER_ID)
    consumer.sync(error=ErrorCode.UNKNOWN_MEMBER_ID)

    last = consumer.sent(JoinGroupRequest)[-1]
    assert last.member_id == ""
    assert last.reason == "rebalance failed due to UnknownMemberIdException"


def test_leader_that_lost_its_coordinator_sends_no_assignment() -> None:
    """The leader waited for metadata meanwhile; it joins again instead."""
    consumer = bench.Bench().consumer()
    consumer.topics = {"t": 2, "u": 1}
    consumer.poll()
    consumer.automatic -= {MetadataRequest, FindCoordinatorRequest}
    subscription = encode_subscription(Subscription(topics=("t", "u")))
    consumer.join(leader=bench.MEMBER, members=(JoinGroupResponseMember("m", None, subscription),))
    consumer.do(consumer.port.on_disconnected(bench.COORDINATOR, 0))
    consumer.answer(MetadataRequest, consumer.metadata())

    assert consumer.sent(SyncGroupRequest) == []
    assert consumer.returned == []


def test_leader_that_waits_for_metadata_sends_no_heartbeats() -> None:
    """The leader assigns under the heartbeat thread's lock; what is due follows at once."""
    consumer = bench.Bench().consumer()
    consumer.topics = {"t": 2, "u": 1}
    consumer.poll()
    consumer.automatic.discard(MetadataRequest)
    subscription = encode_subscription(Subscription(topics=("t", "u")))
    consumer.join(leader=bench.MEMBER, members=(JoinGroupResponseMember("m", None, subscription),))
    consumer.run(10_000)
    assert consumer.sent(HeartbeatRequest) == []
    consumer.answer(MetadataRequest, consumer.metadata())

    assert len(consumer.sent(SyncGroupRequest)) == 1
    assert consumer.sent_at(HeartbeatRequest) == [10_000]


def test_session_that_ends_under_a_commit_fails_it_at_once() -> None:
    """The heartbeat thread closes the connection that a synchronous commit waits on."""
    consumer = _stable(session_timeout_ms=5_000, request_timeout_ms=60_000)
    consumer.run(4_000)
    consumer.automatic.discard(FindCoordinatorRequest)
    consumer.commit({T0: 5}, sync=True)
    consumer.run(5_000)

    assert consumer.disconnected == [bench.COORDINATOR]
    assert not consumer.waiting(OffsetCommitRequest)
    assert consumer.waiting(FindCoordinatorRequest)
    consumer.find()
    consumer.run(5_200)
    assert consumer.sent_at(OffsetCommitRequest) == [4_000, 5_100]


def test_wakeup_at_the_last_callbacks_keeps_the_partitions() -> None:
    """QUIRK: Java's exception passes by the change of state, and the LeaveGroup."""
    consumer = _stable()
    consumer.outcomes[CallbackKind.PARTITIONS_REVOKED] = "WakeupException"
    consumer.do(consumer.port.unsubscribe(0))

    assert consumer.returned[-1] == "WakeupException"
    assert consumer.port.owned_partitions == (T0,)
    assert consumer.sent(LeaveGroupRequest) == []


def test_thread_does_not_look_for_a_coordinator_that_the_application_looks_for() -> None:
    """A lookup that takes long is not repeated: the application holds the lock meanwhile."""
    consumer = _stable()
    consumer.poll()
    consumer.automatic.discard(FindCoordinatorRequest)
    consumer.run(3_000)
    consumer.beat(ErrorCode.NOT_COORDINATOR)
    consumer.run(20_000)

    assert len(consumer.sent(FindCoordinatorRequest)) == 2


def test_idle_thread_looks_at_its_timers_every_backoff() -> None:
    """An answer that nobody waits for is read at the next look, and a session ends at one too."""
    consumer = _stable(session_timeout_ms=10_050)
    consumer.run(3_000)
    consumer.now_ms = 3_020
    consumer.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    assert not consumer.port._rejoin_needed
    consumer.run(3_100)
    assert consumer.port._rejoin_needed
    consumer.run(13_149)
    assert consumer.disconnected == []
    consumer.run(13_200)
    assert consumer.disconnected == [bench.COORDINATOR]


def test_heartbeat_off_the_grid_waits_for_the_next_look() -> None:
    """An interval that is no multiple of the backoff lasts to the next look of an idle thread."""
    consumer = _stable(heartbeat_interval_ms=1_050)
    for at_ms in (1_100, 2_200, 3_300):
        consumer.run(at_ms)
        consumer.beat()
    consumer.poll(5_000)
    consumer.run(5_000)

    assert consumer.sent_at(HeartbeatRequest) == [1_100, 2_200, 3_300, 4_350]


def test_generation_reset_during_revocation_leaves_the_assignor_out() -> None:
    """After a generation reset the next callback is the listener's, not the assignor's."""
    consumer = _rejoining()
    consumer.automatic.discard(RunCallback)
    consumer.assign(T0)
    consumer.run(6_000)
    consumer.beat(ErrorCode.UNKNOWN_MEMBER_ID)
    revoked = consumer.callbacks[-1]
    assert revoked.kind is CallbackKind.PARTITIONS_REVOKED
    consumer.complete(revoked)

    assert consumer.callbacks[-1].kind is CallbackKind.PARTITIONS_ASSIGNED


def test_wakeup_raised_by_a_revocation_in_the_join_is_thrown() -> None:
    """The next poll goes on with the same assignment."""
    consumer = _rejoining()
    consumer.outcomes = {CallbackKind.PARTITIONS_REVOKED: "WakeupException"}
    consumer.assign(T0)
    assert consumer.returned == ["WakeupException"]
    consumer.outcomes = {}
    consumer.poll()

    assert consumer.port.owned_partitions == (T0,)


def test_error_of_a_revocation_is_thrown_after_the_assignment() -> None:
    """Both callbacks run, then the poll raises."""
    consumer = _rejoining()
    consumer.outcomes = {CallbackKind.PARTITIONS_REVOKED: "IllegalStateException"}
    consumer.assign(T0)

    assert consumer.returned == ["KafkaException"]
    assert consumer.callbacks[-1].kind is CallbackKind.PARTITIONS_ASSIGNED


def test_error_of_the_last_revocation_ends_unsubscribe() -> None:
    """The member stays: no LeaveGroup, and the subscription is kept."""
    consumer = _stable()
    consumer.outcomes = {CallbackKind.PARTITIONS_REVOKED: "IllegalStateException"}
    consumer.do(consumer.port.unsubscribe(0))

    assert consumer.returned == ["KafkaException"]
    assert consumer.sent(LeaveGroupRequest) == []


def test_join_of_a_consumer_without_topics_is_over() -> None:
    """The consumer gave its subscription up inside its callback: there is nothing to join for."""
    consumer = bench.Bench().consumer()
    consumer.automatic.discard(RunCallback)
    consumer.poll()
    consumer.join()
    consumer.assign(T0)
    consumer.do(consumer.port.subscribe([], 0))
    consumer.complete(consumer.callbacks[-1])
    consumer.run(1_000)

    assert len(consumer.sent(JoinGroupRequest)) == 1


def test_heartbeat_answered_during_a_join_is_a_success() -> None:
    """The heartbeat was sent before the JoinGroup, and nothing follows from its answer."""
    consumer = _stable()
    consumer.topics = {"t": 1, "u": 1}
    consumer.run(3_000)
    consumer.do(consumer.port.subscribe(["t", "u"], 3_000))
    consumer.poll()
    consumer.beat()

    assert consumer.port.state is MemberState.PREPARING_REBALANCE
    assert len(consumer.sent(HeartbeatRequest)) == 1


def test_heartbeat_of_an_old_generation_refused_changes_nothing() -> None:
    """The member has joined a newer generation since."""
    consumer = _stable()
    consumer.topics = {"t": 1, "u": 1}
    consumer.run(3_000)
    consumer.do(consumer.port.subscribe(["t", "u"], 3_000))
    consumer.poll()
    consumer.join(generation_id=2)
    consumer.assign(T0)
    consumer.beat(ErrorCode.ILLEGAL_GENERATION)

    assert consumer.port.generation_id == 2
    assert consumer.port.state is MemberState.STABLE


def test_close_with_a_broken_connection_ends_all_the_same() -> None:
    """What is broken needs no closing."""
    consumer = _stable()
    _lose_broker(consumer)
    consumer.do(consumer.port.close(0, 0))

    assert consumer.is_closed
    assert consumer.disconnected == []


def test_metadata_without_brokers_keeps_those_known() -> None:
    """A cluster that is starting may name none."""
    consumer = bench.Bench().consumer()
    consumer.automatic.discard(MetadataRequest)
    consumer.poll()
    consumer.answer(
        MetadataRequest, MetadataResponse(brokers=(), topics=consumer.metadata().topics)
    )

    assert consumer.port._metadata.nodes
