"""Finding the group's coordinator, and losing it."""

from itertools import pairwise

from conformance.client_cases.bench import Bench
from conformance.client_cases.case import client_case
from coordinator_sim.clients.effects import CallbackKind
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.messages import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
)
from coordinator_sim.protocol.resources import TopicPartition

_T0 = TopicPartition("t", 0)


class _Extreme:
    """Chance that always draws the same end of its range."""

    def __init__(self, *, last: bool) -> None:
        self._last = last

    def draw(self, site: str, key: str, n: int) -> int:  # noqa: ARG002 - the Jitter protocol's
        """The middle of the range: the largest deviation up, or the next one, down."""
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
    consumer = bench.consumer()
    consumer.automatic.discard(FindCoordinatorRequest)
    consumer.poll()
    consumer.find(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    consumer.advance(60_000)
    bench.expect("poll", consumer.returned, ["GroupAuthorizationException"])
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
    bench.expect("joins", len(consumer.sent(JoinGroupRequest)), 1)
    generations = [beat.generation_id for beat in consumer.sent(HeartbeatRequest)]
    bench.expect("generations of the heartbeats", generations, [1, 1])
    bench.expect("partitions lost", consumer.told(CallbackKind.PARTITIONS_LOST), [])
