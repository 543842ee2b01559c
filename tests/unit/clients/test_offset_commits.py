"""Committing and fetching offsets, against a script."""

import pytest

from coordinator_sim.clients.effects import CallbackKind, RunCallback
from coordinator_sim.clients.generation import MemberState
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from coordinator_sim.messages.join_group import JoinGroupRequest
from coordinator_sim.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from coordinator_sim.messages.offset_commit import OffsetCommitRequest
from coordinator_sim.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from coordinator_sim.messages.requests import Request
from coordinator_sim_conformance.client_cases.bench import COORDINATOR, GROUP, Bench, ConsumerBench

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def _looking(**settings: object) -> ConsumerBench:
    """A consumer of partition 0 that has lost its coordinator and asks who it is."""
    consumer = Bench().consumer(**settings)
    consumer.idle()
    consumer.automatic.discard(FindCoordinatorRequest)
    consumer.run(3_000)
    consumer.beat(ErrorCode.NOT_COORDINATOR)
    consumer.run(3_100)
    return consumer


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (ErrorCode.NONE, None),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "GroupAuthorizationException"),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "TopicAuthorizationException"),
        (ErrorCode.OFFSET_METADATA_TOO_LARGE, "OffsetMetadataTooLarge"),
        (ErrorCode.INVALID_COMMIT_OFFSET_SIZE, "InvalidCommitOffsetSizeException"),
        (ErrorCode.FENCED_INSTANCE_ID, "FencedInstanceIdException"),
        (ErrorCode.UNKNOWN_MEMBER_ID, "CommitFailedException"),
        (ErrorCode.ILLEGAL_GENERATION, "CommitFailedException"),
        (ErrorCode.UNKNOWN_SERVER_ERROR, "KafkaException"),
    ],
)
def test_sync_commit_outcomes(error: ErrorCode, name: str | None) -> None:
    """What is not retried ends the commit with its exception."""
    consumer = Bench().consumer()
    consumer.idle()

    token = consumer.commit({T0: 5}, sync=True)
    consumer.refuse_commit(error)

    assert [(c.token, c.error) for c in consumer.committed] == [(token, name)]
    kept = error is not ErrorCode.UNKNOWN_MEMBER_ID
    assert consumer.port.member_id == ("m" if kept else "")


@pytest.mark.parametrize(
    ("error", "lookups"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 1),
        (ErrorCode.NOT_COORDINATOR, 2),
        (ErrorCode.REQUEST_TIMED_OUT, 2),
    ],
)
def test_sync_commit_is_retried_and_async_is_not(error: ErrorCode, lookups: int) -> None:
    """A retriable error is retried after 100 ms, or told to the callback."""
    consumer = Bench().consumer()
    consumer.idle()
    consumer.commit({T0: 5}, sync=True)
    consumer.refuse_commit(error)
    consumer.run(500)
    consumer.refuse_commit(ErrorCode.NONE)
    assert [c.error for c in consumer.committed] == [None]
    assert 100 <= consumer.sent_at(OffsetCommitRequest)[1] <= 300
    assert len(consumer.sent(FindCoordinatorRequest)) >= lookups

    token = consumer.commit({T0: 6}, sync=False)
    consumer.refuse_commit(error)
    assert len(consumer.committed) == 1
    consumer.poll()

    assert consumer.committed[-1].token == token
    assert consumer.committed[-1].error == "RetriableCommitFailedException"


def test_sync_commit_gives_up_at_the_api_timeout() -> None:
    """A commit that is never answered ends after default.api.timeout.ms."""
    consumer = Bench().consumer(default_api_timeout_ms=5_000)
    consumer.idle()
    consumer.commit({T0: 5}, sync=True)

    consumer.run(5_000)

    assert [c.error for c in consumer.committed] == ["TimeoutException"]


def test_empty_commit_succeeds_without_a_request() -> None:
    """A commit of no offsets succeeds at once."""
    consumer = Bench().consumer()

    consumer.commit({}, sync=True)

    assert [c.error for c in consumer.committed] == [None]
    assert consumer.sent(Request) == []


def test_fenced_async_commit_fails_every_later_call() -> None:
    """A fenced commit makes polls and commits throw from then on."""
    consumer = Bench().consumer(group_instance_id="one")
    consumer.settle(T0)
    consumer.commit({T0: 5}, sync=False)

    consumer.refuse_commit(ErrorCode.FENCED_INSTANCE_ID)
    consumer.poll()

    assert consumer.returned == ["FencedInstanceIdException", "FencedInstanceIdException"]


def test_async_commit_waits_for_the_coordinator() -> None:
    """Without a coordinator the commit starts a lookup and goes out after it."""
    consumer = Bench().consumer()
    consumer.idle()
    consumer.automatic.discard(FindCoordinatorRequest)
    consumer.do(consumer.port.on_disconnected(COORDINATOR, 10))
    consumer.commit({T0: 5}, sync=False)
    assert consumer.sent(OffsetCommitRequest) == []

    consumer.now_ms = 90
    consumer.find()
    consumer.run(100)

    assert len(consumer.sent(OffsetCommitRequest)) == 1


def test_auto_commit_runs_at_its_interval() -> None:
    """Positions are committed every auto.commit.interval.ms while the application polls."""
    consumer = Bench().consumer(enable_auto_commit=True, session_timeout_ms=100_000)
    consumer.settle(T0)
    consumer.port.advance_position(T0, 77)

    for at_ms in (5_000, 10_000):
        consumer.run(at_ms)
        consumer.refuse_commit(ErrorCode.NONE)

    assert consumer.sent_at(OffsetCommitRequest) == [5_000, 10_000]
    assert consumer.sent(OffsetCommitRequest)[0].topics[0].partitions[0].committed_offset == 77


def test_auto_commit_before_the_join() -> None:
    """The join waits for the commit; heartbeats go on."""
    consumer = Bench().consumer(enable_auto_commit=True)
    consumer.settle(T0)
    consumer.run(3_000)
    consumer.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    consumer.run(4_000)
    assert len(consumer.sent(JoinGroupRequest)) == 1

    consumer.refuse_commit(ErrorCode.NONE)

    assert consumer.sent_at(JoinGroupRequest)[1] == 4_000
    assert consumer.changes[-1] == (CallbackKind.PARTITIONS_REVOKED, (T0,))


def test_nothing_is_fetched_between_the_last_commit_and_the_revocation() -> None:
    """An eager member that read on meanwhile would leave records to be read twice."""
    consumer = Bench().consumer(enable_auto_commit=True)
    consumer.settle(T0)
    assert consumer.port.fetchable == {T0: 10}
    consumer.run(3_000)
    consumer.beat(ErrorCode.REBALANCE_IN_PROGRESS)

    assert consumer.waiting(OffsetCommitRequest)
    assert (consumer.port.positions, consumer.port.fetchable) == ({T0: 10}, {})

    consumer.refuse_commit(ErrorCode.NONE)
    consumer.join(generation_id=2)
    consumer.assign(T0)
    assert consumer.port.fetchable == {T0: 10}


def test_a_cooperative_member_reads_on_before_a_rebalance() -> None:
    """The member gives nothing up before it joins, so nobody would read its records again."""
    consumer = Bench().consumer(assignors=["cooperative-sticky"], enable_auto_commit=True)
    consumer.poll()
    consumer.join(protocol_name="cooperative-sticky")
    consumer.assign(T0)
    consumer.run(3_000)
    consumer.beat(ErrorCode.REBALANCE_IN_PROGRESS)

    assert consumer.waiting(OffsetCommitRequest)
    assert consumer.port.fetchable == {T0: 10}


def test_a_callback_commits_and_waits() -> None:
    """A commit inside onPartitionsRevoked is a call of its own; the poll goes on after it."""
    consumer = Bench().consumer()
    consumer.settle(T0)
    consumer.automatic.discard(RunCallback)
    consumer.run(3_000)
    consumer.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    (revoked,) = [c for c in consumer.callbacks if c.kind is CallbackKind.PARTITIONS_REVOKED]

    token = consumer.commit({T0: 12}, sync=True)
    assert consumer.committed == []
    consumer.refuse_commit(ErrorCode.NONE)

    assert [(c.token, c.error) for c in consumer.committed] == [(token, None)]
    assert consumer.returned == []
    assert len(consumer.sent(JoinGroupRequest)) == 1
    consumer.complete(revoked)
    assert len(consumer.sent(JoinGroupRequest)) == 2


def test_a_commit_in_a_callback_is_woken_up_alone() -> None:
    """Wakeup ends the inner call; what the callback does about it is its own affair."""
    consumer = Bench().consumer()
    consumer.settle(T0)
    consumer.automatic.discard(RunCallback)
    consumer.run(3_000)
    consumer.beat(ErrorCode.REBALANCE_IN_PROGRESS)

    consumer.commit({T0: 12}, sync=True)
    consumer.do(consumer.port.wakeup(consumer.now_ms))

    assert [c.error for c in consumer.committed] == ["WakeupException"]
    assert consumer.returned == []


def test_auto_commit_before_the_join_is_repeated() -> None:
    """A retriable failure is tried again before the join."""
    consumer = Bench().consumer(enable_auto_commit=True)
    consumer.settle(T0)
    consumer.run(3_000)
    consumer.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    consumer.refuse_commit(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    consumer.run(4_000)
    assert len(consumer.sent(OffsetCommitRequest)) >= 2

    consumer.refuse_commit(ErrorCode.NONE)

    assert len(consumer.sent(JoinGroupRequest)) == 2


def test_close_commits_a_last_time() -> None:
    """With auto-commit the positions are committed before leaving."""
    consumer = Bench().consumer(enable_auto_commit=True)
    consumer.settle(T0)
    consumer.do(consumer.port.close(1_000, 5_000))
    assert consumer.sent(LeaveGroupRequest) == []

    consumer.refuse_commit(ErrorCode.NONE)
    consumer.answer(LeaveGroupRequest, LeaveGroupResponse())

    assert consumer.is_closed


def test_async_commit_fails_with_the_lookup() -> None:
    """If the coordinator cannot be found, a waiting commit ends as a retriable failure."""
    consumer = Bench().consumer()
    consumer.automatic.discard(FindCoordinatorRequest)
    consumer.poll()
    consumer.commit({T0: 5}, sync=False)

    lost = Coordinator(
        key="group",
        error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE,
        node_id=-1,
        port=-1,
        error_message=None,
    )
    consumer.answer(FindCoordinatorRequest, FindCoordinatorResponse(coordinators=(lost,)))
    consumer.automatic.add(FindCoordinatorRequest)
    consumer.run(1_000)

    assert [c.error for c in consumer.committed] == ["RetriableCommitFailedException"]


def test_late_reset_of_the_new_generation() -> None:
    """QUIRK: completing a rebalance, an old commit's error resets the new generation."""
    consumer = Bench().consumer()
    consumer.settle(T0)
    consumer.commit({T0: 5}, sync=False)
    consumer.run(3_000)
    consumer.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    consumer.join(generation_id=2)

    consumer.refuse_commit(ErrorCode.ILLEGAL_GENERATION)

    assert consumer.port.generation_id == -1
    assert consumer.port.state is MemberState.UNJOINED


@pytest.mark.parametrize(
    ("state", "name"),
    [("stale", "CommitFailedException"), ("current", "FencedInstanceIdException")],
)
def test_fenced_commit_of_an_old_generation_is_a_failed_one(state: str, name: str) -> None:
    """FENCED_INSTANCE_ID is fatal only for the generation it was sent in."""
    consumer = Bench().consumer(group_instance_id="one")
    consumer.settle(T0)
    consumer.commit({T0: 5}, sync=False)
    if state == "stale":
        consumer.run(3_000)
        consumer.beat(ErrorCode.REBALANCE_IN_PROGRESS)
        consumer.join(generation_id=2)
        consumer.assign(T0)

    consumer.refuse_commit(ErrorCode.FENCED_INSTANCE_ID)
    if state == "current":
        assert consumer.returned == [name]
    else:
        assert [c.error for c in consumer.committed] == [name]


# Positions


@pytest.mark.parametrize(
    ("group_error", "partition_error", "outcome"),
    [
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.NONE, "GroupAuthorizationException"),
        (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE, "KafkaException"),
        (ErrorCode.NONE, ErrorCode.TOPIC_AUTHORIZATION_FAILED, "TopicAuthorizationException"),
        (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "KafkaException"),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE, None),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NONE, None),
        (ErrorCode.NONE, ErrorCode.UNSTABLE_OFFSET_COMMIT, None),
    ],
)
def test_offset_fetch_errors(
    group_error: ErrorCode, partition_error: ErrorCode, outcome: str | None
) -> None:
    """Raised, or fetched again after a backoff."""
    consumer = Bench().consumer()
    consumer.poll()
    consumer.join()
    topics = (
        OffsetFetchResponseTopics(
            "t", partitions=(OffsetFetchResponsePartitions(0, -1, error_code=partition_error),)
        ),
    )
    group = OffsetFetchResponseGroup(group_id=GROUP, topics=topics, error_code=group_error)
    consumer.sync(b"\0\0\0\0\0\1\0\1t\0\0\0\1\0\0\0\0\xff\xff\xff\xff")

    consumer.answer(OffsetFetchRequest, OffsetFetchResponse(groups=(group,)))
    consumer.run(1_000)

    if outcome is not None:
        assert consumer.returned == [outcome]
    else:
        assert consumer.returned == []
        assert len(consumer.sent(OffsetFetchRequest)) == 2


def test_positions_start_where_the_group_committed() -> None:
    """New partitions take their committed offset; without one they start at 0."""
    consumer = Bench().consumer()
    consumer.settle(T0)
    assert consumer.port.positions == {T0: 10}

    consumer.port.advance_position(T0, 11)
    consumer.port.advance_position(T1, 5)

    assert consumer.port.positions == {T0: 11}
    assert consumer.sent(OffsetFetchRequest)[0].require_stable


def test_fenced_auto_commit_fails_every_later_call() -> None:
    """An automatic commit that was fenced is no less fatal, also for the next commit."""
    consumer = Bench().consumer(group_instance_id="one", enable_auto_commit=True)
    consumer.settle(T0)
    consumer.run(5_000)
    consumer.refuse_commit(ErrorCode.FENCED_INSTANCE_ID)
    assert consumer.returned == ["FencedInstanceIdException"]

    consumer.commit({T0: 5}, sync=False)
    assert [c.error for c in consumer.committed] == ["FencedInstanceIdException"]
    consumer.do(consumer.port.close(5_000, 30_000))
    assert consumer.callbacks[-1].kind is CallbackKind.PARTITIONS_REVOKED
    assert len(consumer.sent(OffsetCommitRequest)) == 1


def test_failed_auto_commit_is_repeated_a_backoff_after_it_is_seen() -> None:
    """The application's thread sees the failure, so it counts from its next poll."""
    consumer = Bench().consumer(enable_auto_commit=True)
    consumer.settle(T0)
    consumer.run(5_000)
    consumer.do(consumer.port.fetch_completed(5_000))
    consumer.refuse_commit(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    consumer.run(12_000)
    assert len(consumer.sent(OffsetCommitRequest)) == 1
    consumer.poll()
    consumer.run(12_200)

    assert consumer.sent_at(OffsetCommitRequest) == [5_000, 12_100]


def test_empty_sync_commit_waits_for_the_async_ones() -> None:
    """`commitSync` of nothing returns when the callbacks of earlier commits have run."""
    consumer = Bench().consumer()
    consumer.idle()
    first = consumer.commit({T0: 5}, sync=False)
    second = consumer.commit({}, sync=True)
    assert consumer.committed == []

    consumer.run(1_000)
    consumer.refuse_commit(ErrorCode.NONE)
    assert [(c.token, c.error) for c in consumer.committed] == [(first, None), (second, None)]


def test_empty_sync_commit_gives_up_on_the_async_ones() -> None:
    """After `default.api.timeout.ms` it throws, although it had nothing to commit."""
    consumer = Bench().consumer(default_api_timeout_ms=2_000)
    consumer.idle()
    consumer.commit({T0: 5}, sync=False)
    consumer.commit({}, sync=True)
    consumer.run(2_000)

    assert [c.error for c in consumer.committed] == ["TimeoutException"]


def test_sync_commit_tells_of_earlier_async_ones_first() -> None:
    """Callbacks run in the order of the commits; one that was fenced ends the sync one."""
    for error, wanted in (
        (ErrorCode.NONE, [None, None]),
        (ErrorCode.FENCED_INSTANCE_ID, ["FencedInstanceIdException"]),
    ):
        consumer = Bench().consumer(group_instance_id="one")
        consumer.idle()
        consumer.commit({T0: 5}, sync=False)
        consumer.commit({T0: 6}, sync=True)
        consumer.refuse_commit(error)
        consumer.refuse_commit(ErrorCode.NONE)
        assert [c.error for c in consumer.committed] == wanted


def test_empty_sync_commit_of_a_fenced_member_fails() -> None:
    """The fencing of the commit it waited for is its own."""
    consumer = Bench().consumer(group_instance_id="one")
    consumer.idle()
    consumer.commit({T0: 5}, sync=False)
    consumer.commit({}, sync=True)
    consumer.refuse_commit(ErrorCode.FENCED_INSTANCE_ID)

    assert [c.error for c in consumer.committed] == ["FencedInstanceIdException"]


def test_async_commit_throws_what_the_thread_met() -> None:
    """A lookup of the heartbeat thread that failed for good is thrown by a commit as by a poll."""
    consumer = _looking()
    consumer.do(consumer.port.on_disconnected(1, 3_100, "SaslAuthenticationException"))
    consumer.run(3_250)
    consumer.commit({T0: 5}, sync=False)

    assert [c.error for c in consumer.committed] == ["SaslAuthenticationException"]


def test_negative_offset_is_refused() -> None:
    """A negative offset is refused before any request is sent."""
    consumer = Bench().consumer()
    consumer.idle()
    consumer.commit({T0: -1}, sync=True)

    assert [c.error for c in consumer.committed] == ["IllegalArgumentException"]
    assert consumer.sent(OffsetCommitRequest) == []


def test_async_commit_meets_the_lookup_that_failed_before() -> None:
    """A fatal outcome is thrown by the commit; after any other one the lookup is repeated."""
    for error, thrown in (
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, ["GroupAuthorizationException"]),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, []),
    ):
        consumer = _looking()
        consumer.find(error)
        consumer.commit({T0: 5}, sync=False)

        assert [c.error for c in consumer.committed] == thrown
        assert len(consumer.sent(FindCoordinatorRequest)) == (2 if thrown else 3)


def test_close_waits_for_commits_that_wait_for_a_coordinator() -> None:
    """The commits are sent to the coordinator that is found, before the member leaves."""
    consumer = _looking()
    consumer.commit({T0: 5}, sync=False)
    consumer.do(consumer.port.close(3_100, 30_000))
    assert consumer.sent(OffsetCommitRequest) == []
    assert not consumer.is_closed

    consumer.run(3_200)
    consumer.find()
    consumer.run(3_300)
    last = (OffsetCommitRequest, LeaveGroupRequest)
    assert [type(each) for each in consumer.sent(last)] == [*last]


def test_close_goes_on_where_a_lookup_fails_for_good() -> None:
    """The callbacks of leaving run; there is nobody to tell."""
    consumer = _looking(enable_auto_commit=True)
    consumer.do(consumer.port.close(3_100, 30_000))
    consumer.find(ErrorCode.GROUP_AUTHORIZATION_FAILED)

    assert consumer.is_closed
    assert consumer.callbacks[-1].kind is CallbackKind.PARTITIONS_REVOKED
    assert consumer.sent(LeaveGroupRequest) == []
