"""SyncGroup: the requests, and the reaction to each answer."""

from collections.abc import Mapping, Sequence

from coordinator_sim.assignors.contract import (
    AssignmentFailed,
    AssignorMember,
    RebalanceProtocol,
    TopicRacks,
)
from coordinator_sim.clients.effects import CallbackKind
from coordinator_sim.clients.generation import MemberState
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.consumer_protocol import (
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, Subscription
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupResponseMember
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from coordinator_sim_conformance.client_cases.bench import MEMBER, Bench, ConsumerBench
from coordinator_sim_conformance.client_cases.case import client_case

_T0, _T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def _completing(bench: Bench, *, instance_id: str | None = None) -> ConsumerBench:
    """Return a follower of generation 1 whose SyncGroup waits."""
    consumer = bench.consumer(group_instance_id=instance_id)
    consumer.poll()
    consumer.join()
    return consumer


def _expect_rejoin(bench: Bench, consumer: ConsumerBench, member_id: str, *, reset: bool) -> None:
    """Check that a second JoinGroup has this id, and whether the generation was reset."""
    bench.expect("sent at", consumer.sent_at(JoinGroupRequest), [0, 0])
    bench.expect("member id", consumer.sent(JoinGroupRequest)[1].member_id, member_id)
    bench.expect("generation", consumer.port.generation_id, -1 if reset else 1)
    bench.expect("poll", consumer.returned, [])


@client_case("C-SYNC-01", "ConsumerCoordinatorTest.testNormalJoinGroupFollower")
def follower_syncs_with_nothing(bench: Bench) -> None:
    """A follower sends its SyncGroup at once, without assignments."""
    consumer = _completing(bench)
    syncs = consumer.sent(SyncGroupRequest)
    bench.expect("assignments", [sync.assignments for sync in syncs], [()])
    bench.expect("sent at", consumer.sent_at(SyncGroupRequest), [0])
    bench.expect("generation", syncs[0].generation_id, 1)
    bench.expect("member id", syncs[0].member_id, MEMBER)
    bench.expect("protocol", syncs[0].protocol_name, "range")


@client_case("C-SYNC-02", "ConsumerCoordinatorTest.testNormalJoinGroupLeader")
def leader_syncs_for_everyone(bench: Bench) -> None:
    """A leader's SyncGroup carries one assignment for each member."""
    consumer = bench.consumer()
    consumer.poll()
    metadata = encode_subscription(Subscription(topics=("t",)))
    members = tuple(JoinGroupResponseMember(name, None, metadata) for name in (MEMBER, "n"))
    consumer.lead(members=members)
    told = {
        each.member_id: decode_assignment(each.assignment).partitions
        for each in consumer.sent(SyncGroupRequest)[0].assignments
    }
    bench.expect("assignments", told, {MEMBER: (_T0,), "n": (_T1,)})


class _Failing:
    """An assignor that cannot assign."""

    name = "failing"
    supported_protocols = (RebalanceProtocol.EAGER,)

    def subscription_user_data(self, topics: Sequence[str]) -> None:
        """Return None: it has no user data."""

    def on_assignment(self, assignment: ConsumerAssignment, generation_id: int) -> None:
        """Do nothing: it has no memory."""

    def assign(
        self, topics: TopicRacks, members: Sequence[AssignorMember]
    ) -> dict[str, list[TopicPartition]]:
        """Fail."""
        raise AssignmentFailed(f"{len(members)} members, {len(topics)} topics")


@client_case("C-SYNC-03", "AbstractCoordinator.onLeaderElected")
def failing_assignor_sends_no_sync(bench: Bench) -> None:
    """The exception of an assignor is the application's, and no SyncGroup is sent."""
    consumer = bench.consumer(assignors=(_Failing(),))
    consumer.poll()
    consumer.lead()
    bench.expect("poll", consumer.returned, ["AssignmentFailed"])
    consumer.advance(60_000)
    bench.expect("syncs", consumer.sent(SyncGroupRequest), [])
    bench.expect("state", consumer.port.state, MemberState.COMPLETING_REBALANCE)


@client_case("C-SYNC-04", "ConsumerCoordinatorTest.testRebalanceInProgressOnSyncGroup")
def sync_during_another_rebalance_rejoins(bench: Bench) -> None:
    """REBALANCE_IN_PROGRESS: the member rejoins at once with its id and prepares nothing again."""
    consumer = _completing(bench)
    consumer.sync(error=ErrorCode.REBALANCE_IN_PROGRESS)
    _expect_rejoin(bench, consumer, MEMBER, reset=False)
    consumer.join(generation_id=2)
    consumer.assign(_T0)
    bench.expect("revocations", consumer.told(CallbackKind.PARTITIONS_REVOKED), [])


@client_case("C-SYNC-05", "ConsumerCoordinatorTest.testIllegalGenerationOnSyncGroup")
def illegal_generation_keeps_the_member_id(bench: Bench) -> None:
    """ILLEGAL_GENERATION: the generation is reset, the member rejoins at once with its id."""
    consumer = _completing(bench)
    consumer.sync(error=ErrorCode.ILLEGAL_GENERATION)
    _expect_rejoin(bench, consumer, MEMBER, reset=True)


@client_case("C-SYNC-06", "ConsumerCoordinatorTest.testUnknownMemberIdOnSyncGroup")
def unknown_member_id_is_forgotten(bench: Bench) -> None:
    """UNKNOWN_MEMBER_ID: the member rejoins at once as a new one."""
    consumer = _completing(bench)
    consumer.sync(error=ErrorCode.UNKNOWN_MEMBER_ID)
    _expect_rejoin(bench, consumer, "", reset=True)


@client_case("C-SYNC-07", "AbstractCoordinator.SyncGroupResponseHandler")
def loading_is_no_answer_to_a_sync(bench: Bench) -> None:
    """COORDINATOR_LOAD_IN_PROGRESS is unexpected: an exception ends the poll."""
    consumer = _completing(bench)
    consumer.sync(error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.expect("poll", consumer.returned, ["KafkaException"])
    bench.expect("joins", len(consumer.sent(JoinGroupRequest)), 1)


def _synced(protocol_name: str) -> Mapping[str, object]:
    return {
        "protocol_name": protocol_name,
        "assignment": encode_assignment(ConsumerAssignment(partitions=(_T0,))),
    }


@client_case(
    "C-SYNC-08",
    "AbstractCoordinatorTest.testNoGenerationWillNotTriggerProtocolNameCheck",
    "AbstractCoordinatorTest.testSyncGroupProtocolTypeAndName",
)
def protocol_name_must_match(bench: Bench) -> None:
    """Another protocol name is an error, but not where the generation was reset meanwhile."""
    other = SyncGroupResponse(protocol_name="roundrobin")
    consumer = _completing(bench)
    consumer.answer(SyncGroupRequest, other)
    bench.expect("poll", consumer.returned, ["InconsistentGroupProtocolException"])
    reset = _completing(bench)
    reset.advance(3_000)
    reset.beat(ErrorCode.ILLEGAL_GENERATION)
    reset.answer(SyncGroupRequest, other)
    bench.expect("poll after a reset", reset.returned, [])
    bench.expect("joins after a reset", len(reset.sent(JoinGroupRequest)), 2)


@client_case("C-SYNC-09", "AbstractCoordinator.SyncGroupResponseHandler")
def assignment_of_a_cleared_generation_is_dropped(bench: Bench) -> None:
    """A heartbeat that was refused before the answer came makes the assignment worthless."""
    consumer = _completing(bench)
    consumer.advance(3_000)
    consumer.beat(ErrorCode.UNKNOWN_MEMBER_ID)
    consumer.sync(encode_assignment(ConsumerAssignment(partitions=(_T0,))))
    bench.expect("assigned", consumer.callbacks, [])
    joins = consumer.sent(JoinGroupRequest)
    bench.expect("member ids", [join.member_id for join in joins], ["", ""])
    bench.expect("sent at", consumer.sent_at(JoinGroupRequest), [0, 3_000])


@client_case(
    "C-SYNC-10", "AbstractCoordinatorTest.testSyncGroupRequestWithFencedInstanceIdException"
)
def fencing_is_fatal(bench: Bench) -> None:
    """FENCED_INSTANCE_ID ends the poll."""
    consumer = _completing(bench, instance_id="i")
    consumer.sync(error=ErrorCode.FENCED_INSTANCE_ID)
    bench.expect("poll", consumer.returned, ["FencedInstanceIdException"])
    bench.expect("joins", len(consumer.sent(JoinGroupRequest)), 1)
