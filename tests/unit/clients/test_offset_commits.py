"""Committing and fetching offsets, against a script."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from coordinator_sim.clients.effects import COORDINATOR_NODE_OFFSET, CallbackKind, RunCallback
from coordinator_sim.clients.generation import MemberState
from coordinator_sim.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupRequest
from coordinator_sim.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
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
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.resources import TopicPartition

if TYPE_CHECKING:
    from tests.unit.clients.conftest import Desk

    MakeDesk = Callable[..., Desk]

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
COORDINATOR = COORDINATOR_NODE_OFFSET - 1
REBALANCE = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
OTHER_RACK = ("b",)


def _committed(error: ErrorCode = ErrorCode.NONE) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=(
            OffsetCommitResponseTopic("t", partitions=(OffsetCommitResponsePartition(0, error),)),
        )
    )


def _found(error: ErrorCode = ErrorCode.NONE) -> FindCoordinatorResponse:
    node_id = 1 if error is ErrorCode.NONE else -1
    answer = Coordinator(
        key="group", node_id=node_id, error_code=error, port=-1, error_message=None
    )
    return FindCoordinatorResponse(coordinators=(answer,))


def _kinds(desk: "Desk") -> list[tuple[CallbackKind, tuple[TopicPartition, ...]]]:
    return [(callback.kind, callback.partitions) for callback in desk.callbacks]


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (ErrorCode.NONE, None),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "GroupAuthorizationException"),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "TopicAuthorizationException"),
        (ErrorCode.OFFSET_METADATA_TOO_LARGE, "OffsetMetadataTooLarge"),
        (ErrorCode.INVALID_COMMIT_OFFSET_SIZE, "InvalidCommitOffsetSizeException"),
        (ErrorCode.FENCED_INSTANCE_ID, "FencedInstanceIdException"),
        (ErrorCode.REBALANCE_IN_PROGRESS, "RebalanceInProgressException"),
        (ErrorCode.UNKNOWN_MEMBER_ID, "CommitFailedException"),
        (ErrorCode.ILLEGAL_GENERATION, "CommitFailedException"),
        (ErrorCode.UNKNOWN_SERVER_ERROR, "KafkaException"),
    ],
)
def test_sync_commit_outcomes(make_desk: "MakeDesk", error: ErrorCode, name: str | None) -> None:
    """C-COMMIT-03 and the rows that are not retried."""
    desk = make_desk()
    desk.settle_stable(T0)
    desk.do(desk.port.fetch_completed(0))

    token, effects = desk.port.commit({T0: 5}, sync=True, now_ms=0)
    desk.do(effects)
    desk.reply(OffsetCommitRequest, _committed(error))

    assert [(c.token, c.error) for c in desk.commits] == [(token, name)]
    kept = error is not ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.port.member_id == ("m" if kept else "")


@pytest.mark.parametrize(
    ("error", "lookups"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 1),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 1),
        (ErrorCode.NOT_COORDINATOR, 2),
        (ErrorCode.REQUEST_TIMED_OUT, 2),
    ],
)
def test_sync_commit_is_retried_and_async_is_not(
    make_desk: "MakeDesk", error: ErrorCode, lookups: int
) -> None:
    """C-COMMIT-06: a retriable error is retried after 100 ms, or told to the callback."""
    desk = make_desk()
    desk.settle_stable(T0)
    desk.do(desk.port.fetch_completed(0))
    _, effects = desk.port.commit({T0: 5}, sync=True, now_ms=0)
    desk.do(effects)
    desk.reply(OffsetCommitRequest, _committed(error))
    desk.run(500)
    desk.reply(OffsetCommitRequest, _committed())
    assert [c.error for c in desk.commits] == [None]
    assert 100 <= desk.times_of(OffsetCommitRequest)[1] <= 300
    assert len(desk.of(FindCoordinatorRequest)) >= lookups

    token, effects = desk.port.commit({T0: 6}, sync=False, now_ms=500)
    desk.do(effects)
    desk.reply(OffsetCommitRequest, _committed(error))
    assert len(desk.commits) == 1
    desk.poll()

    assert desk.commits[-1].token == token
    assert desk.commits[-1].error == "RetriableCommitFailedException"


def test_sync_commit_gives_up_at_the_api_timeout(make_desk: "MakeDesk") -> None:
    """A commit that is never answered ends after default.api.timeout.ms."""
    desk = make_desk(default_api_timeout_ms=5_000)
    desk.settle_stable(T0)
    desk.do(desk.port.fetch_completed(0))
    _, effects = desk.port.commit({T0: 5}, sync=True, now_ms=0)
    desk.do(effects)

    desk.run(5_000)

    assert [c.error for c in desk.commits] == ["TimeoutException"]


def test_commit_outside_the_group_sends_nothing(make_desk: "MakeDesk") -> None:
    """C-COMMIT-01, C-COMMIT-02: in a rebalance, and after being kicked out."""
    desk = make_desk()
    desk.poll(timeout_ms=0)
    desk.poll(timeout_ms=0)
    _, effects = desk.port.commit({T0: 5}, sync=True, now_ms=0)
    desk.do(effects)
    assert desk.port.state is MemberState.PREPARING_REBALANCE
    desk.join()
    desk.poll(timeout_ms=100_000)
    desk.run(3_000)
    desk.do(desk.port.fetch_completed(3_000))
    desk.reply(HeartbeatRequest, HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    desk.run(3_100)
    _, effects = desk.port.commit({T0: 5}, sync=True, now_ms=3_100)
    desk.do(effects)

    assert [c.error for c in desk.commits] == [
        "RebalanceInProgressException",
        "CommitFailedException",
    ]
    assert desk.of(OffsetCommitRequest) == []


def test_empty_commit_succeeds_without_a_request(make_desk: "MakeDesk") -> None:
    """Nothing to commit is success."""
    desk = make_desk()

    _, effects = desk.port.commit({}, sync=True, now_ms=0)
    desk.do(effects)

    assert [c.error for c in desk.commits] == [None]
    assert desk.sent == []


def test_stale_commit_error_spares_the_new_generation(make_desk: "MakeDesk") -> None:
    """C-COMMIT-05: while preparing, an error of the old generation is a rebalance in progress."""
    desk = make_desk()
    desk.settle_stable(T0)
    _, effects = desk.port.commit({T0: 5}, sync=False, now_ms=0)
    desk.do(effects)
    desk.run(3_000)
    desk.reply(HeartbeatRequest, HeartbeatResponse(error_code=ErrorCode.ILLEGAL_GENERATION))

    desk.reply(OffsetCommitRequest, _committed(ErrorCode.ILLEGAL_GENERATION))
    desk.run(3_100)

    assert [c.error for c in desk.commits] == ["RebalanceInProgressException"]
    assert desk.port.member_id == "m"


def test_fenced_async_commit_fails_every_later_call(make_desk: "MakeDesk") -> None:
    """A fenced commit makes polls and commits throw from then on."""
    desk = make_desk(group_instance_id="one")
    desk.settle_stable(T0)
    _, effects = desk.port.commit({T0: 5}, sync=False, now_ms=0)
    desk.do(effects)

    desk.reply(OffsetCommitRequest, _committed(ErrorCode.FENCED_INSTANCE_ID))
    desk.poll()

    assert desk.returned == ["FencedInstanceIdException", "FencedInstanceIdException"]


def test_coordinator_loss_fails_commits_in_flight(make_desk: "MakeDesk") -> None:
    """C-DISC-07: they end as retriable failures; state and generation stay."""
    desk = make_desk()
    desk.settle_stable(T0)
    _, effects = desk.port.commit({T0: 5}, sync=False, now_ms=0)
    desk.do(effects)
    desk.run(3_000)

    desk.reply(HeartbeatRequest, HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR))
    desk.run(3_500)

    assert [c.error for c in desk.commits] == ["RetriableCommitFailedException"]
    assert desk.port.generation_id == 1


def test_async_commit_waits_for_the_coordinator(make_desk: "MakeDesk") -> None:
    """Without a coordinator the commit starts a lookup and goes out after it."""
    desk = make_desk()
    desk.settle_stable(T0)
    desk.do(desk.port.fetch_completed(0))
    desk.automatic.discard(FindCoordinatorRequest)
    desk.do(desk.port.on_disconnected(COORDINATOR, 10))
    _, effects = desk.port.commit({T0: 5}, sync=False, now_ms=10)
    desk.do(effects)
    assert desk.of(OffsetCommitRequest) == []

    desk.now_ms = 90
    found = Coordinator(key="group", node_id=1, port=-1, error_message=None)
    desk.reply(FindCoordinatorRequest, FindCoordinatorResponse(coordinators=(found,)))
    desk.run(100)

    assert len(desk.of(OffsetCommitRequest)) == 1


def test_auto_commit_runs_at_its_interval(make_desk: "MakeDesk") -> None:
    """Positions are committed every auto.commit.interval.ms while the application polls."""
    desk = make_desk(enable_auto_commit=True, session_timeout_ms=100_000)
    desk.settle_stable(T0)
    desk.port.advance_position(T0, 77)

    for at_ms in (5_000, 10_000):
        desk.run(at_ms)
        desk.reply(OffsetCommitRequest, _committed())

    assert desk.times_of(OffsetCommitRequest) == [5_000, 10_000]
    assert desk.of(OffsetCommitRequest)[0].topics[0].partitions[0].committed_offset == 77


def test_auto_commit_before_the_join(make_desk: "MakeDesk") -> None:
    """The join waits for the commit; heartbeats go on."""
    desk = make_desk(enable_auto_commit=True)
    desk.settle_stable(T0)
    desk.run(3_000)
    desk.reply(HeartbeatRequest, REBALANCE)
    desk.run(4_000)
    assert len(desk.of(JoinGroupRequest)) == 1

    desk.reply(OffsetCommitRequest, _committed())

    assert desk.times_of(JoinGroupRequest)[1] == 4_000
    assert _kinds(desk)[-1] == (CallbackKind.PARTITIONS_REVOKED, (T0,))


def test_nothing_is_fetched_between_the_last_commit_and_the_revocation(
    make_desk: "MakeDesk",
) -> None:
    """An eager member that read on meanwhile would leave records to be read twice."""
    desk = make_desk(enable_auto_commit=True)
    desk.settle_stable(T0)
    assert desk.port.fetchable == {T0: 10}
    desk.run(3_000)
    desk.reply(HeartbeatRequest, REBALANCE)

    assert desk.is_waiting(OffsetCommitRequest)
    assert (desk.port.positions, desk.port.fetchable) == ({T0: 10}, {})

    desk.reply(OffsetCommitRequest, _committed())
    desk.join(generation_id=2)
    desk.sync(T0)
    assert desk.port.fetchable == {T0: 10}


def test_a_cooperative_member_reads_on_before_a_rebalance(make_desk: "MakeDesk") -> None:
    """It gives nothing up before it joins, so nobody would read its records again."""
    desk = make_desk(["cooperative-sticky"], enable_auto_commit=True)
    desk.poll()
    desk.join(protocol_name="cooperative-sticky")
    desk.sync(T0)
    desk.run(3_000)
    desk.reply(HeartbeatRequest, REBALANCE)

    assert desk.is_waiting(OffsetCommitRequest)
    assert desk.port.fetchable == {T0: 10}


def test_a_callback_commits_and_waits(make_desk: "MakeDesk") -> None:
    """A commit inside onPartitionsRevoked is a call of its own; the poll goes on after it."""
    desk = make_desk()
    desk.settle_stable(T0)
    desk.automatic.discard(RunCallback)
    desk.run(3_000)
    desk.reply(HeartbeatRequest, REBALANCE)
    (revoked,) = [c for c in desk.callbacks if c.kind is CallbackKind.PARTITIONS_REVOKED]

    token, effects = desk.port.commit({T0: 12}, sync=True, now_ms=desk.now_ms)
    desk.do(effects)
    assert desk.commits == []
    desk.reply(OffsetCommitRequest, _committed())

    assert [(c.token, c.error) for c in desk.commits] == [(token, None)]
    assert desk.returned == []
    assert len(desk.of(JoinGroupRequest)) == 1
    desk.do(desk.port.callback_completed(revoked.token, None, desk.now_ms))
    assert len(desk.of(JoinGroupRequest)) == 2


def test_a_commit_in_a_callback_is_woken_up_alone(make_desk: "MakeDesk") -> None:
    """Wakeup ends the inner call; what the callback does about it is its own affair."""
    desk = make_desk()
    desk.settle_stable(T0)
    desk.automatic.discard(RunCallback)
    desk.run(3_000)
    desk.reply(HeartbeatRequest, REBALANCE)

    desk.do(desk.port.commit({T0: 12}, sync=True, now_ms=desk.now_ms)[1])
    desk.do(desk.port.wakeup(desk.now_ms))

    assert [c.error for c in desk.commits] == ["WakeupException"]
    assert desk.returned == []


def test_auto_commit_before_the_join_is_repeated(make_desk: "MakeDesk") -> None:
    """A retriable failure is tried again before the join."""
    desk = make_desk(enable_auto_commit=True)
    desk.settle_stable(T0)
    desk.run(3_000)
    desk.reply(HeartbeatRequest, REBALANCE)
    desk.reply(OffsetCommitRequest, _committed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    desk.run(4_000)
    assert len(desk.of(OffsetCommitRequest)) >= 2

    desk.reply(OffsetCommitRequest, _committed())

    assert len(desk.of(JoinGroupRequest)) == 2


def test_auto_commit_before_the_join_gives_up(make_desk: "MakeDesk") -> None:
    """C-CONS-07: after the rebalance timeout the loop's next turn, at a heartbeat, joins."""
    desk = make_desk(
        enable_auto_commit=True, rebalance_timeout_ms=20_000, session_timeout_ms=1_000_000
    )
    desk.settle_stable(T0)
    desk.run(3_000)
    desk.reply(HeartbeatRequest, REBALANCE)

    desk.run(23_999)
    assert len(desk.of(JoinGroupRequest)) == 1
    desk.run(24_000)

    assert len(desk.of(JoinGroupRequest)) == 2


def test_close_commits_a_last_time(make_desk: "MakeDesk") -> None:
    """With auto-commit the positions are committed before leaving."""
    desk = make_desk(enable_auto_commit=True)
    desk.settle_stable(T0)
    desk.do(desk.port.close(1_000, 5_000))
    assert desk.of(LeaveGroupRequest) == []

    desk.reply(OffsetCommitRequest, _committed())
    desk.reply(LeaveGroupRequest, LeaveGroupResponse())

    assert desk.closed


def test_commit_without_a_group_is_anonymous(make_desk: "MakeDesk") -> None:
    """C-COMMIT-08: a consumer without subscription commits outside any generation."""
    desk = make_desk(group_instance_id="one")
    desk.do(desk.port.subscribe([], 0))

    _, effects = desk.port.commit({T0: 5}, sync=True, now_ms=0)
    desk.do(effects)
    desk.reply(OffsetCommitRequest, _committed())

    (commit,) = desk.of(OffsetCommitRequest)
    assert (commit.generation_id_or_member_epoch, commit.member_id, commit.group_instance_id) == (
        -1,
        "",
        None,
    )
    assert [c.error for c in desk.commits] == [None]


def test_async_commit_fails_with_the_lookup(make_desk: "MakeDesk") -> None:
    """If the coordinator cannot be found, a waiting commit ends as a retriable failure."""
    desk = make_desk()
    desk.automatic.discard(FindCoordinatorRequest)
    desk.poll()
    _, effects = desk.port.commit({T0: 5}, sync=False, now_ms=0)
    desk.do(effects)

    lost = Coordinator(
        key="group",
        error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE,
        node_id=-1,
        port=-1,
        error_message=None,
    )
    desk.reply(FindCoordinatorRequest, FindCoordinatorResponse(coordinators=(lost,)))
    desk.automatic.add(FindCoordinatorRequest)
    desk.run(1_000)

    assert [c.error for c in desk.commits] == ["RetriableCommitFailedException"]


def test_late_reset_of_the_new_generation(make_desk: "MakeDesk") -> None:
    """QUIRK: completing a rebalance, an old commit's error resets the new generation."""
    desk = make_desk()
    desk.settle_stable(T0)
    _, effects = desk.port.commit({T0: 5}, sync=False, now_ms=0)
    desk.do(effects)
    desk.run(3_000)
    desk.reply(HeartbeatRequest, REBALANCE)
    desk.join(generation_id=2)

    desk.reply(OffsetCommitRequest, _committed(ErrorCode.ILLEGAL_GENERATION))

    assert desk.port.generation_id == -1
    assert desk.port.state is MemberState.UNJOINED


@pytest.mark.parametrize(
    ("state", "name"),
    [("stale", "CommitFailedException"), ("current", "FencedInstanceIdException")],
)
def test_fenced_commit_of_an_old_generation_is_a_failed_one(
    make_desk: "MakeDesk", state: str, name: str
) -> None:
    """FENCED_INSTANCE_ID is fatal only for the generation it was sent in."""
    desk = make_desk(group_instance_id="one")
    desk.settle_stable(T0)
    _, effects = desk.port.commit({T0: 5}, sync=False, now_ms=0)
    desk.do(effects)
    if state == "stale":
        desk.run(3_000)
        desk.reply(HeartbeatRequest, REBALANCE)
        desk.join(generation_id=2)
        desk.sync(T0)

    desk.reply(OffsetCommitRequest, _committed(ErrorCode.FENCED_INSTANCE_ID))
    if state == "current":
        assert desk.returned == [name]
    else:
        assert [c.error for c in desk.commits] == [name]


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
    make_desk: "MakeDesk", group_error: ErrorCode, partition_error: ErrorCode, outcome: str | None
) -> None:
    """Raised, or fetched again after a backoff."""
    desk = make_desk()
    desk.poll()
    desk.join()
    topics = (
        OffsetFetchResponseTopics(
            "t", partitions=(OffsetFetchResponsePartitions(0, -1, error_code=partition_error),)
        ),
    )
    group = OffsetFetchResponseGroup(group_id="group", topics=topics, error_code=group_error)
    desk.reply(
        SyncGroupRequest,
        SyncGroupResponse(assignment=b"\0\0\0\0\0\1\0\1t\0\0\0\1\0\0\0\0\xff\xff\xff\xff"),
    )

    desk.reply(OffsetFetchRequest, OffsetFetchResponse(groups=(group,)))
    desk.run(1_000)

    if outcome is not None:
        assert desk.returned == [outcome]
    else:
        assert desk.returned == []
        assert len(desk.of(OffsetFetchRequest)) == 2


def test_positions_start_where_the_group_committed(make_desk: "MakeDesk") -> None:
    """New partitions take their committed offset; without one they start at 0."""
    desk = make_desk()
    desk.settle_stable(T0)
    assert desk.port.positions == {T0: 10}

    desk.port.advance_position(T0, 11)
    desk.port.advance_position(T1, 5)

    assert desk.port.positions == {T0: 11}
    assert desk.of(OffsetFetchRequest)[0].require_stable


def test_fenced_auto_commit_fails_every_later_call(make_desk: "MakeDesk") -> None:
    """An automatic commit that was fenced is no less fatal, also for the next commit."""
    desk = make_desk(group_instance_id="one", enable_auto_commit=True)
    desk.settle_stable(T0)
    desk.run(5_000)
    desk.reply(OffsetCommitRequest, _committed(ErrorCode.FENCED_INSTANCE_ID))
    assert desk.returned == ["FencedInstanceIdException"]

    _, effects = desk.port.commit({T0: 5}, sync=False, now_ms=5_000)
    desk.do(effects)
    assert [c.error for c in desk.commits] == ["FencedInstanceIdException"]
    desk.do(desk.port.close(5_000, 30_000))
    assert desk.callbacks[-1].kind is CallbackKind.PARTITIONS_REVOKED
    assert len(desk.of(OffsetCommitRequest)) == 1


def test_failed_auto_commit_is_repeated_a_backoff_after_it_is_seen(make_desk: "MakeDesk") -> None:
    """The application's thread sees the failure, so it counts from its next poll."""
    desk = make_desk(enable_auto_commit=True)
    desk.settle_stable(T0)
    desk.run(5_000)
    desk.do(desk.port.fetch_completed(5_000))
    desk.reply(OffsetCommitRequest, _committed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    desk.run(12_000)
    assert len(desk.of(OffsetCommitRequest)) == 1
    desk.poll()
    desk.run(12_200)

    assert desk.times_of(OffsetCommitRequest) == [5_000, 12_100]


def test_empty_sync_commit_waits_for_the_async_ones(make_desk: "MakeDesk") -> None:
    """`commitSync` of nothing returns when the callbacks of earlier commits have run."""
    desk = make_desk()
    desk.settle_stable(T0)
    desk.do(desk.port.fetch_completed(0))
    first, effects = desk.port.commit({T0: 5}, sync=False, now_ms=0)
    desk.do(effects)
    second, effects = desk.port.commit({}, sync=True, now_ms=0)
    desk.do(effects)
    assert desk.commits == []

    desk.run(1_000)
    desk.reply(OffsetCommitRequest, _committed())
    assert [(c.token, c.error) for c in desk.commits] == [(first, None), (second, None)]


def test_empty_sync_commit_gives_up_on_the_async_ones(make_desk: "MakeDesk") -> None:
    """After `default.api.timeout.ms` it throws, although it had nothing to commit."""
    desk = make_desk(default_api_timeout_ms=2_000)
    desk.settle_stable(T0)
    desk.do(desk.port.fetch_completed(0))
    desk.do(desk.port.commit({T0: 5}, sync=False, now_ms=0)[1])
    desk.do(desk.port.commit({}, sync=True, now_ms=0)[1])
    desk.run(2_000)

    assert [c.error for c in desk.commits] == ["TimeoutException"]


def test_sync_commit_tells_of_earlier_async_ones_first(make_desk: "MakeDesk") -> None:
    """Callbacks run in the order of the commits; one that was fenced ends the sync one."""
    for error, wanted in (
        (ErrorCode.NONE, [None, None]),
        (ErrorCode.FENCED_INSTANCE_ID, ["FencedInstanceIdException"]),
    ):
        desk = make_desk(group_instance_id="one")
        desk.settle_stable(T0)
        desk.do(desk.port.fetch_completed(0))
        desk.do(desk.port.commit({T0: 5}, sync=False, now_ms=0)[1])
        desk.do(desk.port.commit({T0: 6}, sync=True, now_ms=0)[1])
        desk.reply(OffsetCommitRequest, _committed(error))
        desk.reply(OffsetCommitRequest, _committed())
        assert [c.error for c in desk.commits] == wanted


def test_empty_sync_commit_of_a_fenced_member_fails(make_desk: "MakeDesk") -> None:
    """The fencing of the commit it waited for is its own."""
    desk = make_desk(group_instance_id="one")
    desk.settle_stable(T0)
    desk.do(desk.port.fetch_completed(0))
    desk.do(desk.port.commit({T0: 5}, sync=False, now_ms=0)[1])
    desk.do(desk.port.commit({}, sync=True, now_ms=0)[1])
    desk.reply(OffsetCommitRequest, _committed(ErrorCode.FENCED_INSTANCE_ID))

    assert [c.error for c in desk.commits] == ["FencedInstanceIdException"]


def test_async_commit_throws_what_the_thread_met(make_desk: "MakeDesk") -> None:
    """A lookup of the heartbeat thread that failed for good is thrown by a commit as by a poll."""
    desk = make_desk()
    desk.settle_stable(T0)
    desk.do(desk.port.fetch_completed(0))
    desk.automatic.discard(FindCoordinatorRequest)
    desk.run(3_000)
    desk.reply(HeartbeatRequest, HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR))
    desk.run(3_100)
    desk.do(desk.port.on_disconnected(1, 3_100, "SaslAuthenticationException"))
    desk.run(3_250)
    desk.do(desk.port.commit({T0: 5}, sync=False, now_ms=3_250)[1])

    assert [c.error for c in desk.commits] == ["SaslAuthenticationException"]


def test_negative_offset_is_refused(make_desk: "MakeDesk") -> None:
    """Nothing is sent."""
    desk = make_desk()
    desk.settle_stable(T0)
    desk.do(desk.port.fetch_completed(0))
    desk.do(desk.port.commit({T0: -1}, sync=True, now_ms=0)[1])

    assert [c.error for c in desk.commits] == ["IllegalArgumentException"]
    assert desk.of(OffsetCommitRequest) == []


def test_async_commit_meets_the_lookup_that_failed_before(make_desk: "MakeDesk") -> None:
    """A fatal outcome is thrown by the commit; after any other one the lookup is repeated."""
    for error, thrown in (
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, ["GroupAuthorizationException"]),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, []),
    ):
        desk = make_desk()
        desk.settle_stable(T0)
        desk.do(desk.port.fetch_completed(0))
        desk.automatic.discard(FindCoordinatorRequest)
        desk.run(3_000)
        desk.reply(HeartbeatRequest, HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR))
        desk.run(3_100)
        desk.reply(FindCoordinatorRequest, _found(error))
        desk.do(desk.port.commit({T0: 5}, sync=False, now_ms=3_100)[1])

        assert [c.error for c in desk.commits] == thrown
        assert len(desk.of(FindCoordinatorRequest)) == (2 if thrown else 3)


def test_close_waits_for_commits_that_wait_for_a_coordinator(make_desk: "MakeDesk") -> None:
    """They are sent to the coordinator that is found, before the member leaves."""
    desk = make_desk()
    desk.settle_stable(T0)
    desk.do(desk.port.fetch_completed(0))
    desk.automatic.discard(FindCoordinatorRequest)
    desk.run(3_000)
    desk.reply(HeartbeatRequest, HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR))
    desk.run(3_100)
    desk.do(desk.port.commit({T0: 5}, sync=False, now_ms=3_100)[1])
    desk.do(desk.port.close(3_100, 30_000))
    assert desk.of(OffsetCommitRequest) == []
    assert not desk.closed

    desk.run(3_200)
    desk.reply(FindCoordinatorRequest, _found())
    desk.run(3_300)
    last = (OffsetCommitRequest, LeaveGroupRequest)
    assert [type(each) for _, each in desk.sent if isinstance(each, last)] == [*last]


def test_close_goes_on_where_a_lookup_fails_for_good(make_desk: "MakeDesk") -> None:
    """The callbacks of leaving run; there is nobody to tell."""
    desk = make_desk(enable_auto_commit=True)
    desk.settle_stable(T0)
    desk.do(desk.port.fetch_completed(0))
    desk.automatic.discard(FindCoordinatorRequest)
    desk.run(3_000)
    desk.reply(HeartbeatRequest, HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR))
    desk.run(3_100)
    desk.do(desk.port.close(3_100, 30_000))
    desk.reply(FindCoordinatorRequest, _found(ErrorCode.GROUP_AUTHORIZATION_FAILED))

    assert desk.closed
    assert desk.callbacks[-1].kind is CallbackKind.PARTITIONS_REVOKED
    assert desk.of(LeaveGroupRequest) == []
