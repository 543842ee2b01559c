"""A consumer's additions to membership: protocols, ownership callbacks, the leader's watch."""

from collections.abc import Mapping, Sequence

from coordinator_sim.assignors.contract import (
    AssignorMember,
    RebalanceProtocol,
    TopicRacks,
)
from coordinator_sim.assignors.registry import make_consumer_assignor
from coordinator_sim.clients.consumer_leader import select_rebalance_protocol
from coordinator_sim.clients.effects import CallbackKind
from coordinator_sim.clients.generation import MemberState
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.consumer_protocol import (
    decode_subscription,
    encode_subscription,
)
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, Subscription
from coordinator_sim.messages.heartbeat import HeartbeatRequest
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupResponseMember
from coordinator_sim.messages.metadata import MetadataRequest
from coordinator_sim.messages.offset_commit import OffsetCommitRequest
from coordinator_sim.messages.sync_group import SyncGroupRequest
from coordinator_sim_conformance.client_cases.bench import MEMBER, Bench, ConsumerBench
from coordinator_sim_conformance.client_cases.case import client_case

_T0, _T1 = TopicPartition("t", 0), TopicPartition("t", 1)
_ASSIGNED, _REVOKED = CallbackKind.PARTITIONS_ASSIGNED, CallbackKind.PARTITIONS_REVOKED
_LOST = CallbackKind.PARTITIONS_LOST


class _Chosen:
    """An assignor with given protocols that gives each member a given assignment."""

    def __init__(
        self,
        *protocols: RebalanceProtocol,
        given: Mapping[str, Sequence[TopicPartition]] | None = None,
    ) -> None:
        self.name = "chosen"
        self.supported_protocols = protocols
        self._given = given or {}

    def subscription_user_data(self, topics: Sequence[str]) -> None:
        """Return None: it has no user data."""

    def on_assignment(self, assignment: ConsumerAssignment, generation_id: int) -> None:
        """Do nothing: it has no memory."""

    def assign(
        self,
        topics: TopicRacks,  # noqa: ARG002 - the contract's
        members: Sequence[AssignorMember],
    ) -> dict[str, list[TopicPartition]]:
        """Return the given assignment."""
        return {each.member_id: list(self._given.get(each.member_id, ())) for each in members}


def _rebalance(consumer: ConsumerBench) -> None:
    """Announce a rebalance to a polling STABLE consumer by the next heartbeat."""
    consumer.advance(3_000)
    consumer.beat(ErrorCode.REBALANCE_IN_PROGRESS)


@client_case("C-CONS-01", "ConsumerCoordinatorTest.testSelectRebalanceProtocol")
def highest_common_protocol_is_used(bench: Bench) -> None:
    """Consumers use the highest rebalance protocol that all their assignors support."""
    both = [make_consumer_assignor(name) for name in ("range", "cooperative-sticky")]
    bench.expect("with range", select_rebalance_protocol(both), RebalanceProtocol.EAGER)
    alone = select_rebalance_protocol(both[1:])
    bench.expect("cooperative-sticky alone", alone, RebalanceProtocol.COOPERATIVE)
    try:
        bench.consumer(assignors=("range", _Chosen(RebalanceProtocol.COOPERATIVE)))
    except ConfigError as error:
        refusal = str(error)
    else:
        refusal = ""
    bench.expect("refused", "no rebalance protocol that all support" in refusal, wanted=True)


@client_case("C-CONS-02", "ConsumerCoordinatorTest.testRejoinGroup")
def eager_revokes_before_it_joins(bench: Bench) -> None:
    """An eager consumer revokes all it has before its JoinGroup; then all it gets is new."""
    consumer = bench.consumer()
    consumer.settle(_T0)
    consumer.automatic.clear()
    _rebalance(consumer)
    bench.expect("told last", consumer.changes[-1], (_REVOKED, (_T0,)))
    bench.expect("joins before it returns", len(consumer.sent(JoinGroupRequest)), 1)
    consumer.complete(consumer.callbacks[-1])
    join = consumer.sent(JoinGroupRequest)[1]
    owned = decode_subscription(join.protocols[0].metadata).owned_partitions
    bench.expect("owned in the JoinGroup", owned, ())
    consumer.join(generation_id=2)
    consumer.assign(_T0, _T1)
    bench.expect("told after it", consumer.changes[-1], (_ASSIGNED, (_T0, _T1)))


@client_case(
    "C-CONS-04",
    "ConsumerCoordinatorTest.shouldLoseAllOwnedPartitionsBeforeRejoiningAfterDroppingOutOfTheGroup",
)
def dropped_out_consumer_loses_all(bench: Bench) -> None:
    """Out of the group, a consumer loses what it had instead of revoking it, then joins."""
    for assignor in ("range", "cooperative-sticky"):
        consumer = bench.consumer(assignors=(assignor,))
        consumer.settle(_T0, protocol_name=assignor)
        consumer.advance(3_000)
        consumer.beat(ErrorCode.UNKNOWN_MEMBER_ID)
        wanted = [(_ASSIGNED, (_T0,)), (_LOST, (_T0,))]
        bench.expect(f"told with {assignor}", consumer.changes, wanted)
        joins = [(each.member_id, each.reason) for each in consumer.sent(JoinGroupRequest)[1:]]
        reason = "encountered UNKNOWN_MEMBER_ID from HEARTBEAT response"
        bench.expect("joins", joins, [("", reason)])


@client_case("C-CONS-05", "ConsumerCoordinatorTest.testOutdatedCoordinatorAssignment")
def assignment_outside_the_subscription_is_not_taken(bench: Bench) -> None:
    """An assignment of topics not subscribed any more is dropped, and the consumer rejoins."""
    consumer = bench.consumer()
    consumer.poll()
    consumer.join()
    consumer.do(consumer.port.subscribe(["u"], consumer.now_ms))
    consumer.topics = {"u": 1}
    consumer.assign(_T0)
    bench.expect("told", consumer.told(_ASSIGNED), [])
    bench.expect("owned", consumer.port.owned_partitions, ())
    joins = consumer.sent(JoinGroupRequest)
    bench.expect("joins", len(joins), 2)
    topics = decode_subscription(joins[1].protocols[0].metadata).topics
    bench.expect("subscription of the second", topics, ("u",))
    reason = "received assignment does not match the current subscription"
    bench.expect("reason", joins[1].reason, reason)


@client_case(
    "C-CONS-07",
    "ConsumerCoordinatorTest.testOnJoinPrepareWithOffsetCommitShouldKeepJoinAfterRebalanceTimeout",
    "ConsumerCoordinator.onJoinPrepare",
)
def commit_before_the_join_has_the_rebalance_timeout(bench: Bench) -> None:
    """An auto-commit without an answer delays the JoinGroup for max.poll.interval.ms at most."""
    consumer = bench.consumer(
        enable_auto_commit=True, auto_commit_interval_ms=3_600_000, rebalance_timeout_ms=20_000
    )
    consumer.settle(_T0)
    _rebalance(consumer)
    began_ms = consumer.now_ms
    bench.expect("commits", len(consumer.sent(OffsetCommitRequest)), 1)
    while consumer.now_ms < began_ms + 19_900:
        consumer.advance(100)
        if consumer.waiting(HeartbeatRequest):
            consumer.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    bench.expect("joins meanwhile", len(consumer.sent(JoinGroupRequest)), 1)
    bench.expect("revoked meanwhile", consumer.told(_REVOKED), [])
    consumer.advance(3_000)
    bench.expect("revoked after it", len(consumer.told(_REVOKED)), 1)
    # The time is over at 23 s, and the loop's next turn is a heartbeat's.
    bench.expect("joined at", consumer.sent_at(JoinGroupRequest), [0, 24_000])


def _leading(bench: Bench, *racks: str, leads: bool = True, rack: str = "") -> ConsumerBench:
    """Return a STABLE consumer of both partitions, whose metadata is refreshed each minute."""
    consumer = bench.consumer(metadata_max_age_ms=60_000, client_rack=rack)
    consumer.racks = racks
    consumer.poll()
    if leads:
        consumer.lead()
    else:
        consumer.join()
    consumer.assign(_T0, _T1)
    return consumer


def _refresh(consumer: ConsumerBench) -> None:
    """Let the metadata outlive its age; heartbeats are answered."""
    asked = len(consumer.sent(MetadataRequest))
    while len(consumer.sent(MetadataRequest)) == asked:
        consumer.advance(100)
        if consumer.waiting(HeartbeatRequest):
            consumer.beat()


@client_case("C-CONS-09", "ConsumerCoordinatorTest.testMetadataChangeTriggersRebalance")
def leader_notices_new_partitions(bench: Bench) -> None:
    """A leader that sees other partitions than it assigned rejoins; a follower does not."""
    for leads in (True, False):
        consumer = _leading(bench, leads=leads)
        _refresh(consumer)
        bench.expect("joins of nothing new", len(consumer.sent(JoinGroupRequest)), 1)
        consumer.topics = {"t": 3}
        _refresh(consumer)
        joins = consumer.sent(JoinGroupRequest)
        bench.expect(f"joins when leads={leads}", len(joins), 2 if leads else 1)
        if leads:
            bench.expect("reason", joins[1].reason, "cached metadata has changed")


@client_case(
    "C-CONS-10",
    "ConsumerCoordinatorTest.testRackAwareConsumerRebalanceWithNewReplicasOnSameRacks",
    "ConsumerCoordinatorTest.testRackAwareConsumerRebalanceWithDifferentRacks",
)
def leader_with_a_rack_notices_racks(bench: Bench) -> None:
    """A leader with client.rack rejoins when the set of a partition's racks changes."""
    for rack, racks, rejoins in (
        ("a", ("a", "c"), True),
        ("a", ("b", "a", "b"), False),
        ("", ("a", "c"), False),
    ):
        consumer = _leading(bench, "a", "b", rack=rack)
        consumer.racks = racks
        _refresh(consumer)
        joins = len(consumer.sent(JoinGroupRequest))
        bench.expect(f"joins, client.rack={rack}, racks {racks}", joins, 2 if rejoins else 1)


@client_case(
    "C-CONS-12",
    "ConsumerCoordinatorTest.testPerformAssignmentShouldValidateCooperativeAssignment",
    "ConsumerCoordinator.validateCooperativeAssignment",
)
def cooperative_assignor_must_not_move_what_is_owned(bench: Bench) -> None:
    """A cooperative assignor of one's own may not give away what another member still owns."""
    metadata = encode_subscription(Subscription(topics=("t",), owned_partitions=(_T0,)))
    other = encode_subscription(Subscription(topics=("t",)))
    members = (
        JoinGroupResponseMember(MEMBER, None, metadata),
        JoinGroupResponseMember("n", None, other),
    )
    for given, fine in (({"n": [_T0]}, False), ({MEMBER: [_T0], "n": [_T1]}, True), ({}, True)):
        assignor = _Chosen(RebalanceProtocol.COOPERATIVE, given=given)
        consumer = bench.consumer(assignors=(assignor,))
        consumer.poll()
        consumer.lead(members=members)
        wanted = [] if fine else ["IllegalStateException"]
        bench.expect(f"poll when given {given}", consumer.returned, wanted)
        bench.expect("syncs", len(consumer.sent(SyncGroupRequest)), 1 if fine else 0)
    built_in = bench.consumer(assignors=("cooperative-sticky",))
    built_in.poll()
    built_in.lead(members=members)
    bench.expect("syncs of cooperative-sticky", len(built_in.sent(SyncGroupRequest)), 1)


@client_case("C-CONS-13", "ConsumerCoordinator.onJoinPrepare")
def raising_callback_is_not_repeated(bench: Bench) -> None:
    """A revocation that raises ends the poll; the partitions are gone, and it is not repeated."""
    consumer = bench.consumer()
    consumer.settle(_T0)
    consumer.outcomes[_REVOKED] = "RuntimeException"
    _rebalance(consumer)
    bench.expect("poll", consumer.returned, ["KafkaException"])
    bench.expect("owned", consumer.port.owned_partitions, ())
    consumer.poll()
    consumer.join(generation_id=2)
    consumer.assign(_T1)
    bench.expect("revocations", len(consumer.told(_REVOKED)), 1)
    bench.expect("owned at last", consumer.port.owned_partitions, (_T1,))
    bench.expect("state", consumer.port.state, MemberState.STABLE)
