"""Finding the group's coordinator, and losing it."""

from itertools import pairwise

from coordinator_sim.clients.effects import CallbackKind, Connect
from coordinator_sim.clients.generation import MemberState
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.find_coordinator import FindCoordinatorRequest
from coordinator_sim.messages.heartbeat import HeartbeatRequest
from coordinator_sim.messages.join_group import JoinGroupRequest
from coordinator_sim.messages.metadata import MetadataRequest
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node
from coordinator_sim.messages.offset_commit import OffsetCommitRequest
from coordinator_sim_conformance.client_cases.bench import BROKER, COORDINATOR, Bench
from coordinator_sim_conformance.client_cases.case import client_case

_T0 = TopicPartition("t", 0)
_BROKERS = tuple(Node(node_id=number, host="broker", port=9092) for number in (1, 2, 3))


class _Extreme:
    """Random choices that always take the same end of their range."""

    def __init__(self, *, last: bool) -> None:
        self._last = last

    def draw(self, site: str, key: str, n: int) -> int:  # noqa: ARG002 - the Jitter protocol's
        """Return the middle of the range: the largest deviation up, or the next one, down."""
        return n // 2 + 1 if self._last else n // 2


@client_case(
    "C-DISC-01",
    "AbstractCoordinatorTest.testLookupCoordinator",
    "AbstractCoordinator.lookupCoordinator",
)
def lookup_is_shared(bench: Bench) -> None:
    """A lookup in flight is shared."""
    consumer = bench.consumer()
    consumer.automatic.discard(FindCoordinatorRequest)
    consumer.poll(10)
    consumer.advance(10)
    consumer.poll(10)
    bench.expect("lookups", len(consumer.sent(FindCoordinatorRequest)), 1)
    consumer.find()
    bench.expect("joins after the one answer", len(consumer.sent(JoinGroupRequest)), 1)


@client_case(
    "C-DISC-02",
    "AbstractCoordinatorTest.testCoordinatorDiscoveryExponentialBackoff",
    "AbstractCoordinator.ensureCoordinatorReady",
)
def lookup_backs_off(bench: Bench) -> None:
    """Failed lookups back off exponentially, within 20 percent, up to retry.backoff.max.ms."""
    for last, percent in ((False, 120), (True, 80)):
        consumer = bench.consumer(jitter=_Extreme(last=last))
        consumer.automatic.discard(FindCoordinatorRequest)
        consumer.poll()
        for _ in range(6):
            consumer.find(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            while not consumer.waiting(FindCoordinatorRequest):
                consumer.advance(1)
        times = consumer.sent_at(FindCoordinatorRequest)
        wanted = [min(step * percent // 100, 1000) for step in (100, 200, 400, 800, 1000, 1000)]
        bench.expect("pauses", [later - sooner for sooner, later in pairwise(times)], wanted)


@client_case(
    "C-DISC-03",
    "ConsumerCoordinatorTest.testGroupDescribeUnauthorized",
    "AbstractCoordinator.FindCoordinatorResponseHandler",
)
def unauthorised_lookup_is_fatal(bench: Bench) -> None:
    """A lookup without the right to the group is fatal."""
    for error, thrown in (
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "GroupAuthorizationException"),
        (ErrorCode.INVALID_GROUP_ID, "InvalidGroupIdException"),
    ):
        consumer = bench.consumer()
        consumer.automatic.discard(FindCoordinatorRequest)
        consumer.poll()
        consumer.find(error)
        consumer.advance(60_000)
        bench.expect("poll", consumer.returned, [thrown])
        bench.expect("lookups", len(consumer.sent(FindCoordinatorRequest)), 1)


@client_case(
    "C-DISC-08",
    "AbstractCoordinator.markCoordinatorUnknown",
)
def moved_coordinator_needs_no_join(bench: Bench) -> None:
    """Losing the coordinator alone is no reason to rejoin."""
    consumer = bench.consumer()
    consumer.settle(_T0)
    consumer.advance(3_000)
    consumer.beat(ErrorCode.NOT_COORDINATOR)
    consumer.advance(3_000)
    bench.expect("looks again", len(consumer.sent(FindCoordinatorRequest)) > 1, wanted=True)
    bench.expect("closed connections", consumer.disconnected, [COORDINATOR])
    bench.expect("joins", len(consumer.sent(JoinGroupRequest)), 1)
    generations = [beat.generation_id for beat in consumer.sent(HeartbeatRequest)]
    bench.expect("generations of the heartbeats", generations, [1, 1])
    bench.expect("partitions lost", consumer.told(CallbackKind.PARTITIONS_LOST), [])


@client_case("C-DISC-04", "AbstractCoordinator.fatalFindCoordinatorException")
def fatal_lookup_of_the_thread_is_thrown_later(bench: Bench) -> None:
    """A lookup that failed for good in the heartbeat thread is thrown by the next poll, once."""
    consumer = bench.consumer()
    consumer.idle()
    consumer.automatic.discard(FindCoordinatorRequest)
    consumer.advance(3_000)
    consumer.beat(ErrorCode.NOT_COORDINATOR)
    consumer.advance(100)
    bench.expect("lookups of the thread", consumer.waiting(FindCoordinatorRequest), 1)
    consumer.refuse_connection(BROKER.node_id, "SaslAuthenticationException")
    # A backoff later the thread has put its failed lookup aside.
    consumer.advance(150)
    consumer.poll(10)
    bench.expect("poll", consumer.returned, ["SaslAuthenticationException"])
    consumer.poll(10)
    consumer.advance(10)
    bench.expect("poll after it", consumer.returned[1:], [None])


@client_case("C-DISC-06", "AbstractCoordinator.FindCoordinatorResponseHandler")
def found_coordinator_has_the_whole_session(bench: Bench) -> None:
    """A coordinator found again is given the whole session to answer."""
    consumer = bench.consumer(session_timeout_ms=10_000)
    consumer.settle(_T0)
    consumer.automatic.discard(FindCoordinatorRequest)
    consumer.advance(1_000)
    consumer.disconnect()
    consumer.advance(8_990)
    consumer.find()
    consumer.beat()
    found_ms = consumer.now_ms
    consumer.automatic.add(FindCoordinatorRequest)
    consumer.advance(9_000)
    bench.expect("closed connections", consumer.disconnected, [])
    consumer.advance(found_ms + 10_100 - consumer.now_ms)
    bench.expect("closed after a silent session", consumer.disconnected, [COORDINATOR])
    bench.expect("joins", len(consumer.sent(JoinGroupRequest)), 1)


@client_case(
    "C-DISC-07",
    "ConsumerCoordinatorTest.testManyInFlightAsyncCommitsWithCoordinatorDisconnect",
    "AbstractCoordinator.markCoordinatorUnknown",
)
def losing_the_coordinator_fails_what_is_in_flight(bench: Bench) -> None:
    """Whoever marks the coordinator unknown fails the requests in flight there."""
    consumer = bench.consumer()
    consumer.settle(_T0)
    consumer.commit({_T0: 11}, sync=False)
    consumer.commit({_T0: 12}, sync=False)
    consumer.advance(3_000)
    consumer.beat(ErrorCode.NOT_COORDINATOR)
    errors = [each.error for each in consumer.committed]
    bench.expect("commits", errors, ["RetriableCommitFailedException"] * 2)
    bench.expect("requests of the commits", consumer.waiting(OffsetCommitRequest), 0)
    bench.expect("state", consumer.port.state, MemberState.STABLE)
    bench.expect("generation", consumer.port.generation_id, 1)


@client_case(
    "C-DISC-LEAST",
    "NetworkClient.leastLoadedNode",
    "NetworkClientTest.testLeastLoadedNode",
    "NetworkClientTest.testLeastLoadedNodeProvideDisconnectedNodesPrioritizedByLastConnectionTimestamp",
)
def the_least_loaded_node_is_asked(bench: Bench) -> None:
    """A lookup goes to who is connected, else being connected, else tried longest ago."""
    consumer = bench.consumer(bootstrap=_BROKERS)
    consumer.automatic -= {Connect, FindCoordinatorRequest, MetadataRequest}
    consumer.advance(1_000)
    consumer.poll()
    consumer.advance(1_000)
    bench.expect("tried while the first is being connected", consumer.dialled, [1])
    for node_id in (1, 2, 3):
        consumer.disconnect(node_id)
        consumer.advance(1_000)
    bench.expect("tried one after the other", consumer.dialled, [1, 2, 3, 1])
    consumer.connect(1)
    bench.expect("requests where it is connected", consumer.waiting(MetadataRequest), 1)
    bench.expect("tried beside it", consumer.dialled, [1, 2, 3, 1])
