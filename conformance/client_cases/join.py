"""JoinGroup: how long it may take, and what each answer leads to."""

from coordinator_sim.clients.effects import CallbackKind
from coordinator_sim.clients.generation import MemberState
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.find_coordinator import FindCoordinatorRequest
from coordinator_sim.messages.join_group import JoinGroupRequest
from coordinator_sim.messages.sync_group import SyncGroupRequest
from coordinator_sim_conformance.client_cases.bench import MEMBER, Bench
from coordinator_sim_conformance.client_cases.case import client_case

_T0 = TopicPartition("t", 0)
_INT_MAX = 2_147_483_647


@client_case(
    "C-JOIN-01",
    "AbstractCoordinatorTest.testJoinGroupRequestWithMemberIdRequired",
    "AbstractCoordinator.JoinGroupResponseHandler",
)
def required_member_id_is_used_at_once(bench: Bench) -> None:
    """After MEMBER_ID_REQUIRED a new member rejoins at once with its id and a reason."""
    consumer = bench.consumer()
    consumer.poll()
    consumer.refuse_join(ErrorCode.MEMBER_ID_REQUIRED, MEMBER)
    joins = consumer.sent(JoinGroupRequest)
    bench.expect("member ids", [join.member_id for join in joins], ["", MEMBER])
    bench.expect("sent at", consumer.sent_at(JoinGroupRequest), [0, 0])
    reason = f"need to re-join with the given member-id: {MEMBER}"
    bench.expect("reason", joins[1].reason, reason)


def _given_up_after_ms(bench: Bench, rebalance_timeout_ms: int) -> int:
    """Return when an unanswered JoinGroup is given up, by closing its connection."""
    consumer = bench.consumer(rebalance_timeout_ms=rebalance_timeout_ms, request_timeout_ms=30_000)
    consumer.poll(_INT_MAX * 2)
    while not consumer.disconnected:
        consumer.advance((consumer.port.next_deadline_ms() or 0) - consumer.now_ms)
    return consumer.now_ms


@client_case(
    "C-JOIN-02",
    "AbstractCoordinatorTest.testJoinGroupRequestTimeout",
    "AbstractCoordinator.sendJoinGroupRequest",
)
def join_may_take_a_whole_rebalance(bench: Bench) -> None:
    """A JoinGroup may take the rebalance timeout and five seconds."""
    bench.expect("given up after", _given_up_after_ms(bench, 300_000), 305_000)


@client_case(
    "C-JOIN-03",
    "AbstractCoordinatorTest.testJoinGroupRequestTimeoutLowerBoundedByDefaultRequestTimeout",
    "AbstractCoordinator.sendJoinGroupRequest",
)
def join_may_take_a_request_timeout(bench: Bench) -> None:
    """A JoinGroup may take request.timeout.ms at least."""
    bench.expect("given up after", _given_up_after_ms(bench, 10_000), 30_000)


@client_case(
    "C-JOIN-04",
    "AbstractCoordinatorTest.testJoinGroupRequestMaxTimeout",
    "AbstractCoordinator.sendJoinGroupRequest",
)
def join_timeout_does_not_overflow(bench: Bench) -> None:
    """The five seconds are left out where they would exceed an int."""
    bench.expect("given up after", _given_up_after_ms(bench, _INT_MAX), _INT_MAX)


@client_case(
    "C-JOIN-05",
    "AbstractCoordinatorTest.testGroupMaxSizeExceptionIsFatal",
    "AbstractCoordinator.JoinGroupResponseHandler",
)
def full_group_is_fatal(bench: Bench) -> None:
    """A full group is not asked again."""
    consumer = bench.consumer()
    consumer.poll()
    consumer.refuse_join(ErrorCode.GROUP_MAX_SIZE_REACHED)
    consumer.advance(60_000)
    bench.expect("poll", consumer.returned, ["GroupMaxSizeReachedException"])
    bench.expect("joins", len(consumer.sent(JoinGroupRequest)), 1)


@client_case(
    "C-JOIN-08",
    "AbstractCoordinatorTest.testJoinGroupUnknownMemberResponseWithOldGeneration",
    "AbstractCoordinator.JoinGroupResponseHandler",
)
def late_unknown_member_spares_the_present_generation(bench: Bench) -> None:
    """UNKNOWN_MEMBER_ID for a JoinGroup of an older generation resets nothing, but rejoins."""
    consumer = bench.consumer()
    consumer.settle(_T0)
    consumer.commit({_T0: 5}, sync=False)
    consumer.advance(3_000)
    consumer.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    # The commit's error takes the generation away while the JoinGroup of it is in flight.
    consumer.refuse_commit(ErrorCode.ILLEGAL_GENERATION)
    consumer.refuse_join(ErrorCode.UNKNOWN_MEMBER_ID)
    joins = consumer.sent(JoinGroupRequest)
    bench.expect("member ids", [join.member_id for join in joins], ["", MEMBER, MEMBER])


@client_case(
    "C-JOIN-09",
    "AbstractCoordinatorTest.testJoinGroupRequestWithRebalanceInProgress",
    "AbstractCoordinator.joinGroupIfNeeded",
)
def join_during_a_rebalance_is_repeated_at_once(bench: Bench) -> None:
    """REBALANCE_IN_PROGRESS for a JoinGroup is retried at once with the same member id."""
    consumer = bench.consumer()
    consumer.poll()
    consumer.refuse_join(ErrorCode.MEMBER_ID_REQUIRED, MEMBER)
    consumer.refuse_join(ErrorCode.REBALANCE_IN_PROGRESS)
    joins = consumer.sent(JoinGroupRequest)
    bench.expect("member ids", [join.member_id for join in joins], ["", MEMBER, MEMBER])
    bench.expect("sent at", consumer.sent_at(JoinGroupRequest), [0, 0, 0])
    reason = "rebalance failed due to RebalanceInProgressException"
    bench.expect("reason", joins[2].reason, reason)
    bench.expect("lookups", len(consumer.sent(FindCoordinatorRequest)), 1)


@client_case(
    "C-JOIN-10",
    "AbstractCoordinatorTest.testRetainMemberIdAfterJoinGroupDisconnect",
    "AbstractCoordinator.joinGroupIfNeeded",
)
def disconnect_keeps_the_member_id(bench: Bench) -> None:
    """A connection lost while the JoinGroup waits costs a backoff, and no member id."""
    consumer = bench.consumer()
    consumer.poll()
    consumer.refuse_join(ErrorCode.MEMBER_ID_REQUIRED, MEMBER)
    consumer.advance(1_000)
    consumer.disconnect()
    consumer.advance(5_000)
    joins = consumer.sent(JoinGroupRequest)
    bench.expect("member ids", [join.member_id for join in joins], ["", MEMBER, MEMBER])
    bench.expect("sent at", consumer.sent_at(JoinGroupRequest), [0, 0, 1_100])
    reason = "rebalance failed due to DisconnectException"
    bench.expect("reason", joins[2].reason, reason)


@client_case(
    "C-JOIN-11",
    "AbstractCoordinatorTest.testJoinGroupProtocolTypeAndName",
    "AbstractCoordinator.JoinGroupResponseHandler",
)
def foreign_protocol_type_is_refused(bench: Bench) -> None:
    """An answer of another protocol type is an error; one without a type is taken."""
    consumer = bench.consumer()
    consumer.poll()
    consumer.join(protocol_type="connect")
    bench.expect("poll", consumer.returned, ["InconsistentGroupProtocolException"])
    bench.expect("syncs", consumer.sent(SyncGroupRequest), [])
    for accepted in (None, "consumer"):
        other = bench.consumer()
        other.poll()
        other.join(protocol_type=accepted)
        bench.expect(f"syncs after type {accepted}", len(other.sent(SyncGroupRequest)), 1)


@client_case("C-JOIN-13", "AbstractCoordinator.JoinGroupResponseHandler")
def loading_coordinator_is_asked_again(bench: Bench) -> None:
    """A coordinator that loads is asked again after retry.backoff.ms, without another lookup."""
    consumer = bench.consumer()
    consumer.poll()
    consumer.refuse_join(ErrorCode.MEMBER_ID_REQUIRED, MEMBER)
    consumer.refuse_join(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    consumer.advance(100)
    joins = consumer.sent(JoinGroupRequest)
    bench.expect("member ids", [join.member_id for join in joins], ["", MEMBER, MEMBER])
    bench.expect("sent at", consumer.sent_at(JoinGroupRequest), [0, 0, 100])
    bench.expect("lookups", len(consumer.sent(FindCoordinatorRequest)), 1)
    bench.expect("closed connections", consumer.disconnected, [])


@client_case(
    "C-JOIN-15",
    "AbstractCoordinatorTest.testReturnUponRetriableErrorAndExpiredTimer",
    "AbstractCoordinator.joinGroupIfNeeded",
)
def retriable_failure_after_the_deadline_returns(bench: Bench) -> None:
    """A join that fails retriably when no time is left returns without sleeping."""
    consumer = bench.consumer()
    consumer.poll()
    consumer.wakeup()
    # Nobody polls now: the answer is read by the next poll, which has no time.
    consumer.refuse_join(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    consumer.poll(0)
    bench.expect("polls", consumer.returned, ["WakeupException", None])
    bench.expect("joins", len(consumer.sent(JoinGroupRequest)), 1)
    consumer.poll(0)
    bench.expect("joins of the poll after it", consumer.sent_at(JoinGroupRequest), [0, 0])


@client_case(
    "C-JOIN-16",
    "AbstractCoordinatorTest.testWakeupAfterJoinGroupSent",
    "AbstractCoordinator.initiateJoinGroup",
)
def wakeup_leaves_the_join_in_flight(bench: Bench) -> None:
    """Woken up while its JoinGroup waits, the member completes the same join at the next poll."""
    consumer = bench.consumer()
    consumer.settle(_T0)
    consumer.advance(3_000)
    consumer.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    consumer.wakeup()
    bench.expect("poll", consumer.returned, ["WakeupException"])
    consumer.poll()
    consumer.join(generation_id=2)
    consumer.assign(_T0)
    bench.expect("joins", len(consumer.sent(JoinGroupRequest)), 2)
    bench.expect("revocations", len(consumer.told(CallbackKind.PARTITIONS_REVOKED)), 1)
    bench.expect("state", consumer.port.state, MemberState.STABLE)


@client_case(
    "C-JOIN-17",
    "AbstractCoordinatorTest.testWakeupInOnJoinComplete",
    "AbstractCoordinator.joinGroupIfNeeded",
)
def wakeup_in_the_callback_repeats_it(bench: Bench) -> None:
    """Woken up by its callback, the member is given the same assignment again, without a join."""
    consumer = bench.consumer()
    consumer.outcomes[CallbackKind.PARTITIONS_ASSIGNED] = "WakeupException"
    consumer.settle(_T0)
    bench.expect("poll", consumer.returned, ["WakeupException"])
    consumer.outcomes.clear()
    consumer.poll()
    bench.expect("callbacks", len(consumer.told(CallbackKind.PARTITIONS_ASSIGNED)), 2)
    bench.expect("joins", len(consumer.sent(JoinGroupRequest)), 1)
    bench.expect("owned", consumer.port.owned_partitions, (_T0,))
    bench.expect("state", consumer.port.state, MemberState.STABLE)
