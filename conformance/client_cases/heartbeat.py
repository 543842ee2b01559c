"""Heartbeats: when they are sent, what their answers change, and the limits they watch."""

from itertools import pairwise

from coordinator_sim.clients.effects import CallbackKind
from coordinator_sim.clients.generation import MemberState
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.find_coordinator import FindCoordinatorRequest
from coordinator_sim.messages.heartbeat import HeartbeatRequest
from coordinator_sim.messages.join_group import JoinGroupRequest
from coordinator_sim.messages.leave_group import LeaveGroupRequest
from coordinator_sim_conformance.client_cases.bench import COORDINATOR, MEMBER, Bench, ConsumerBench
from coordinator_sim_conformance.client_cases.case import client_case

_T0 = TopicPartition("t", 0)


def _busy(
    bench: Bench,
    *,
    session_timeout_ms: int = 45_000,
    rebalance_timeout_ms: int = 300_000,
    instance_id: str | None = None,
) -> ConsumerBench:
    """Return a STABLE consumer whose application has stopped polling at 0."""
    consumer = bench.consumer(
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_ms,
        group_instance_id=instance_id,
    )
    consumer.idle()
    return consumer


def _kick_out(consumer: ConsumerBench, error: ErrorCode) -> None:
    consumer.advance(3_000)
    consumer.beat(error)
    consumer.advance(100)


@client_case("C-HB-02", "AbstractCoordinator.HeartbeatResponseHandler")
def rebalance_is_joined_and_heartbeats_go_on(bench: Bench) -> None:
    """REBALANCE_IN_PROGRESS while STABLE: rejoin, with heartbeats and session until it leaves."""
    consumer = _busy(bench, session_timeout_ms=10_000)
    for _ in range(5):
        consumer.advance(3_000)
        consumer.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    bench.expect("heartbeats", len(consumer.sent(HeartbeatRequest)), 5)
    bench.expect("closed connections", consumer.disconnected, [])
    bench.expect("joins before the poll", len(consumer.sent(JoinGroupRequest)), 1)
    consumer.poll()
    join = consumer.sent(JoinGroupRequest)[1]
    bench.expect("member id", join.member_id, MEMBER)
    bench.expect("reason", join.reason, "group is already rebalancing")
    consumer.advance(9_000)
    bench.expect("heartbeats after the JoinGroup", len(consumer.sent(HeartbeatRequest)), 5)


@client_case(
    "C-HB-03", "AbstractCoordinatorTest.testHeartbeatRebalanceInProgressResponseDuringRebalancing"
)
def rebalance_told_to_a_joining_member_is_a_success(bench: Bench) -> None:
    """REBALANCE_IN_PROGRESS while COMPLETING_REBALANCE changes nothing, and is no failure."""
    consumer = bench.consumer()
    consumer.poll()
    consumer.join()
    consumer.advance(3_000)
    consumer.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    consumer.assign(_T0)
    consumer.advance(3_000)
    bench.expect("joins", len(consumer.sent(JoinGroupRequest)), 1)
    bench.expect("heartbeats at", consumer.sent_at(HeartbeatRequest), [3_000, 6_000])


@client_case("C-HB-04", "ConsumerCoordinatorTest.testIllegalGeneration")
def illegal_generation_loses_the_partitions(bench: Bench) -> None:
    """ILLEGAL_GENERATION: out of the group with its member id; the next poll loses what it had."""
    consumer = bench.consumer()
    consumer.idle()
    _kick_out(consumer, ErrorCode.ILLEGAL_GENERATION)
    bench.expect("state", consumer.port.state, MemberState.UNJOINED)
    bench.expect("member id", consumer.port.member_id, MEMBER)
    bench.expect("told before the poll", consumer.told(CallbackKind.PARTITIONS_LOST), [])
    consumer.poll()
    bench.expect("told last", consumer.changes[-1], (CallbackKind.PARTITIONS_LOST, (_T0,)))
    join = consumer.sent(JoinGroupRequest)[1]
    bench.expect("member id of the join", join.member_id, MEMBER)
    reason = "encountered ILLEGAL_GENERATION from HEARTBEAT response"
    bench.expect("reason", join.reason, reason)


@client_case(
    "C-HB-06",
    "AbstractCoordinatorTest.testHeartbeatRequestWithFencedInstanceIdException",
    "AbstractCoordinator.pollHeartbeat",
)
def fenced_heartbeat_ends_the_next_poll(bench: Bench) -> None:
    """FENCED_INSTANCE_ID is thrown by the next poll, once."""
    consumer = _busy(bench, instance_id="i")
    _kick_out(consumer, ErrorCode.FENCED_INSTANCE_ID)
    consumer.advance(30_000)
    bench.expect("heartbeats", len(consumer.sent(HeartbeatRequest)), 1)
    consumer.poll(10)
    bench.expect("poll", consumer.returned, ["FencedInstanceIdException"])
    bench.expect("member id", consumer.port.member_id, "")
    consumer.poll(10)
    consumer.advance(10)
    bench.expect("poll after it", consumer.returned[1:], [None])


@client_case("C-HB-07", "AbstractCoordinator.HeartbeatThread.run")
def silence_only_looks_for_the_coordinator(bench: Bench) -> None:
    """A session without an answer: the coordinator is looked for; no leave, no rejoin."""
    consumer = _busy(bench, session_timeout_ms=10_000)
    consumer.advance(10_100)
    bench.expect("closed connections", consumer.disconnected, [COORDINATOR])
    consumer.advance(1_000)
    bench.expect("leaves", consumer.sent(LeaveGroupRequest), [])
    bench.expect("looks again", len(consumer.sent(FindCoordinatorRequest)) > 1, wanted=True)
    consumer.poll()
    bench.expect("joins", len(consumer.sent(JoinGroupRequest)), 1)
    generations = [beat.generation_id for beat in consumer.sent(HeartbeatRequest)]
    bench.expect("generations of the heartbeats", generations, [1] * len(generations))
    bench.expect("state", consumer.port.state, MemberState.STABLE)


@client_case("C-HB-08", "Heartbeat.sentHeartbeat", "Heartbeat.receiveHeartbeat")
def interval_counts_from_the_send(bench: Bench) -> None:
    """The next heartbeat is an interval after the last one's send, however late its answer."""
    consumer = bench.consumer()
    consumer.settle(_T0)
    consumer.advance(5_500)
    consumer.beat()
    consumer.advance(500)
    bench.expect("sent at", consumer.sent_at(HeartbeatRequest), [3_000, 6_000])


@client_case("C-HB-09", "Heartbeat.failHeartbeat")
def failed_heartbeat_backs_off(bench: Bench) -> None:
    """Failed heartbeats are repeated after a growing backoff, and not after the interval."""
    consumer = bench.consumer()
    consumer.settle(_T0)
    consumer.advance(3_000)
    for _ in range(5):
        consumer.beat(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        while not consumer.waiting(HeartbeatRequest):
            consumer.advance(1)
    pauses = [later - sooner for sooner, later in pairwise(consumer.sent_at(HeartbeatRequest))]
    bench.expect("pauses", pauses, [100, 200, 400, 800, 1_000])


@client_case("C-HB-10", "AbstractCoordinator.handlePollTimeoutExpiry")
def application_that_does_not_poll_leaves(bench: Bench) -> None:
    """After max.poll.interval.ms without a poll the member leaves, and beats no more."""
    consumer = _busy(bench, rebalance_timeout_ms=8_000)
    for _ in range(2):
        consumer.advance(3_000)
        consumer.beat()
    consumer.advance(2_000)
    leavers = [each for leave in consumer.sent(LeaveGroupRequest) for each in leave.members]
    bench.expect("left at", consumer.sent_at(LeaveGroupRequest), [8_000])
    bench.expect("member ids", [each.member_id for each in leavers], [MEMBER])
    reason = "consumer poll timeout has expired."
    bench.expect("reasons", [each.reason for each in leavers], [reason])
    bench.expect("state", consumer.port.state, MemberState.UNJOINED)
    bench.expect("generation", consumer.port.generation_id, -1)
    consumer.advance(30_000)
    bench.expect("heartbeats", len(consumer.sent(HeartbeatRequest)), 2)


@client_case("C-HB-10.2", "AbstractCoordinator.HeartbeatThread.run")
def leaving_wins_over_a_heartbeat_of_the_same_instant(bench: Bench) -> None:
    """With a heartbeat due at the instant of the poll timeout the member leaves without it."""
    consumer = _busy(bench, rebalance_timeout_ms=6_000)
    consumer.advance(3_000)
    consumer.beat()
    consumer.advance(3_000)
    bench.expect("left at", consumer.sent_at(LeaveGroupRequest), [6_000])
    bench.expect("heartbeats at", consumer.sent_at(HeartbeatRequest), [3_000])


@client_case("C-HB-11", "AbstractCoordinator.maybeLeaveGroup")
def static_member_that_does_not_poll_only_resets(bench: Bench) -> None:
    """A static member leaves to its session: no LeaveGroup, only a reset of its own."""
    consumer = _busy(bench, rebalance_timeout_ms=8_000, instance_id="i")
    for _ in range(2):
        consumer.advance(3_000)
        consumer.beat()
    consumer.advance(30_000)
    bench.expect("leaves", consumer.sent(LeaveGroupRequest), [])
    bench.expect("heartbeats", len(consumer.sent(HeartbeatRequest)), 2)
    bench.expect("state", consumer.port.state, MemberState.UNJOINED)
    bench.expect("member id", consumer.port.member_id, "")
