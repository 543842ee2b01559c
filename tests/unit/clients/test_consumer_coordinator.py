"""Callbacks, subscription and leadership of a consumer, against a script."""

import copy
from itertools import pairwise

import pytest

from coordinator_sim.assignors.contract import AssignorMember, RebalanceProtocol, TopicRacks
from coordinator_sim.clients.effects import CallbackKind, Connect, RunCallback
from coordinator_sim.clients.generation import MemberState
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages import find_coordinator, leave_group
from coordinator_sim.messages.embedded.consumer_protocol import (
    decode_subscription,
    encode_subscription,
)
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, Subscription
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupResponseMember
from coordinator_sim.messages.leave_group import LeaveGroupRequest
from coordinator_sim.messages.metadata import MetadataRequest
from coordinator_sim.messages.requests import Request, metadata_request
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from coordinator_sim_conformance.client_cases.bench import GROUP, MEMBER, Bench, ConsumerBench

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def _member(
    member_id: str, *owned: TopicPartition, topics: tuple[str, ...] = ("t",)
) -> JoinGroupResponseMember:
    subscription = Subscription(topics=topics, owned_partitions=owned)
    return JoinGroupResponseMember(member_id, None, encode_subscription(subscription))


# Rebalance protocols and callbacks


def test_cooperative_gives_up_only_what_it_must() -> None:
    """A cooperative member revokes after the join only what it lost, and then joins again."""
    consumer = Bench().consumer(assignors=["cooperative-sticky"])
    consumer.poll()
    consumer.join(protocol_name="cooperative-sticky")
    consumer.assign(T0, T1)
    consumer.run(3_000)
    consumer.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    assert consumer.port.owned_partitions == (T0, T1)

    consumer.join(generation_id=2, protocol_name="cooperative-sticky")
    consumer.assign(T0)

    assert consumer.changes[1:] == [
        (CallbackKind.PARTITIONS_REVOKED, (T1,)),
        (CallbackKind.PARTITIONS_ASSIGNED, ()),
    ]
    assert consumer.sent(JoinGroupRequest)[2].reason == "need to revoke partitions and re-join"
    owned = decode_subscription(consumer.sent(JoinGroupRequest)[2].protocols[0].metadata)
    assert owned.owned_partitions == (T0,)


def test_subscription_change_rejoins() -> None:
    """The next turn of the poll loop joins with the new topics."""
    consumer = Bench().consumer()
    consumer.topics = {"t": 1, "u": 1}
    consumer.settle(T0)

    consumer.do(consumer.port.subscribe(["t", "u"], 100))

    assert consumer.sent(JoinGroupRequest)[1].reason == "subscription has changed"


def test_same_subscription_changes_nothing() -> None:
    """Subscribing again to the same topics, in any order, is no change."""
    consumer = Bench().consumer()
    consumer.settle(T0)

    consumer.do(consumer.port.subscribe(["t", "t"], 100))
    consumer.run(2_000)

    assert len(consumer.sent(JoinGroupRequest)) == 1


def test_raising_callback_of_an_assignment_is_thrown_after_the_change() -> None:
    """The poll raises KafkaException, the assignment has changed, no second call."""
    consumer = Bench().consumer()
    consumer.outcomes[CallbackKind.PARTITIONS_ASSIGNED] = "RuntimeException"
    consumer.settle(T0)
    assert consumer.returned == ["KafkaException"]

    consumer.outcomes.clear()
    consumer.poll()

    assert [given for _, given in consumer.changes if given] == [(T0,)]
    assert consumer.port.owned_partitions == (T0,)


def test_bytes_that_are_no_assignment_are_an_illegal_state() -> None:
    """A member that the leader forgot gets empty bytes, which the client cannot read."""
    for blob, error in ((b"", "IllegalStateException"), (b"\0\0\0", "SchemaException")):
        consumer = Bench().consumer()
        consumer.poll()
        consumer.join()
        consumer.sync(blob)
        assert consumer.returned == [error]


def test_unsubscribe_leaves() -> None:
    """Everything is revoked, LeaveGroup says why, and polling without topics is refused."""
    consumer = Bench().consumer()
    consumer.idle()

    consumer.do(consumer.port.unsubscribe(10))

    assert consumer.sent(LeaveGroupRequest)[0].members[0].reason == (
        "the consumer unsubscribed from all topics"
    )
    assert consumer.changes[-1] == (CallbackKind.PARTITIONS_REVOKED, (T0,))
    consumer.poll()
    assert consumer.returned[-1] == "IllegalStateException"


def test_callback_tokens_are_checked() -> None:
    """Completing a callback that nobody asked for is a driver's bug."""
    consumer = Bench().consumer()
    with pytest.raises(InvariantViolation, match="callback 7 is not outstanding"):
        consumer.port.callback_completed(7, None, 0)
    consumer.poll()
    with pytest.raises(InvariantViolation, match="one call at a time"):
        consumer.port.poll(0, 1)


def test_close_during_a_callback_is_refused() -> None:
    """The application's thread cannot close while it is inside a callback."""
    consumer = Bench().consumer()
    consumer.automatic.discard(RunCallback)
    consumer.settle(T0)
    with pytest.raises(InvariantViolation, match="close while CALLBACK"):
        consumer.port.close(0, 0)


def test_raising_callback_at_close_skips_the_leave() -> None:
    """If onPartitionsRevoked raises, Java closes without LeaveGroup."""
    consumer = Bench().consumer()
    consumer.settle(T0)
    consumer.outcomes[CallbackKind.PARTITIONS_REVOKED] = "RuntimeException"

    consumer.do(consumer.port.close(10, 1_000))

    assert consumer.is_closed
    assert consumer.sent(LeaveGroupRequest) == []


# Leading


def _lead(consumer: ConsumerBench, *members: JoinGroupResponseMember, **fields: object) -> None:
    consumer.join(leader=MEMBER, members=members or (_member("m"),), **fields)


def test_leader_waits_for_metadata_of_the_groups_topics() -> None:
    """A topic that only others subscribe to is looked up before the assignment, without limit."""
    consumer = Bench().consumer()
    consumer.topics = {"t": 1, "u": 1}
    consumer.poll(1_000)
    consumer.automatic.discard(MetadataRequest)

    _lead(consumer, _member("m"), _member("n", topics=("u",)))
    consumer.run(5_000)
    assert consumer.sent(SyncGroupRequest) == []
    assert consumer.returned == []
    consumer.answer(MetadataRequest, consumer.metadata())

    (sync,) = consumer.sent(SyncGroupRequest)
    assert len(sync.assignments) == 2
    assert consumer.returned == [None]


def test_returning_static_leader_assigns_nothing() -> None:
    """With skip_assignment the SyncGroup is empty; the broker has the assignment."""
    consumer = Bench().consumer()
    consumer.poll()

    _lead(consumer, skip_assignment=True)

    assert consumer.sent(SyncGroupRequest)[0].assignments == ()


def test_leader_that_cannot_read_the_members_sends_no_sync() -> None:
    """Metadata that does not parse is an error of its own, a protocol nobody offered as well."""
    for members, name, error in (
        ((JoinGroupResponseMember("m", None, b""),), "range", "SchemaException"),
        ((_member("m"),), "odd", "IllegalStateException"),
    ):
        consumer = Bench().consumer()
        consumer.poll()
        _lead(consumer, *members, protocol_name=name)
        assert consumer.returned == [error]
        assert consumer.sent(SyncGroupRequest) == []


class Generous:
    """An assignor that gives a topic nobody subscribed to."""

    name = "generous"
    supported_protocols = (RebalanceProtocol.EAGER,)

    def subscription_user_data(self, topics: tuple[str, ...]) -> bytes | None:
        """None."""
        assert topics

    def on_assignment(self, assignment: ConsumerAssignment, generation_id: int) -> None:
        """Forget it."""

    def assign(
        self, topics: TopicRacks, members: list[AssignorMember]
    ) -> dict[str, list[TopicPartition]]:
        """One foreign partition each."""
        assert topics
        return {m.member_id: [TopicPartition("extra", 0)] for m in members}


def test_topics_that_an_assignor_adds_are_watched() -> None:
    """The leader waits for their metadata, and sees a later change of them."""
    consumer = Bench().consumer(assignors=[Generous()], metadata_max_age_ms=1_000)
    consumer.topics = {"t": 1, "extra": 1}
    consumer.poll()
    consumer.automatic.discard(MetadataRequest)
    _lead(consumer, _member("m"), protocol_name="generous")
    assert consumer.sent(SyncGroupRequest) == []

    assert consumer.sent(MetadataRequest)[-1] == metadata_request(("extra", "t"))
    consumer.answer(MetadataRequest, consumer.metadata())
    assert len(consumer.sent(SyncGroupRequest)) == 1
    consumer.automatic.add(MetadataRequest)
    consumer.assign()
    consumer.topics["extra"] = 2
    consumer.run(1_500)
    assert consumer.sent(JoinGroupRequest)[-1].reason == "cached metadata has changed"


# Polling


def test_steady_polls_end_on_time_and_hide_nothing() -> None:
    """Short polls of a settled consumer return on time; a wake-up and a rebalance get through."""
    consumer = Bench().consumer()
    consumer.idle()
    for at_ms in (0, 500, 1_000):
        consumer.poll(500)
        consumer.run(at_ms + 500)
    assert consumer.returned == [None] * 3

    consumer.do(consumer.port.wakeup(1_500))
    consumer.poll(500)
    assert consumer.returned[-1] == "WakeupException"
    consumer.poll(2_000)
    consumer.run(3_000)
    consumer.beat()
    consumer.run(3_500)
    assert consumer.returned[4:] == [None]
    consumer.poll(5_000)
    consumer.run(6_000)
    consumer.beat(ErrorCode.REBALANCE_IN_PROGRESS)

    assert len(consumer.sent(JoinGroupRequest)) == 2


def test_poll_without_time_still_looks() -> None:
    """poll(0) sends and handles what there is, and returns at once."""
    consumer = Bench().consumer()
    consumer.idle()

    consumer.poll(0)

    assert consumer.returned == [None]


def test_metadata_asked_for_while_one_is_in_flight_follows() -> None:
    """A subscription that grows while Metadata is in flight is looked up right after it."""
    consumer = Bench().consumer()
    consumer.automatic.discard(MetadataRequest)
    consumer.topics = {"t": 1, "u": 1}
    consumer.poll()
    consumer.do(consumer.port.subscribe(["t", "u"], 0))

    consumer.answer(MetadataRequest, consumer.metadata())
    consumer.run(200)

    wanted = [metadata_request(("t",)), metadata_request(("t", "u"))]
    assert consumer.sent(MetadataRequest) == wanted


def test_ports_can_be_copied() -> None:
    """A port is plain data: a copy goes its own way, also out of the middle of a join."""
    consumer = Bench().consumer()
    consumer.poll()
    consumer.join()
    twin = copy.deepcopy(consumer)

    twin.assign(T0)

    assert twin.port.owned_partitions == (T0,)
    assert consumer.port.state is MemberState.COMPLETING_REBALANCE
    consumer.assign(T1)
    assert consumer.port.owned_partitions == (T1,)


# -- Discovery, join, sync, heartbeat and leave of a member, against a script ------------------


# Discovery


def test_lookup_with_two_answers_is_an_illegal_state() -> None:
    """An answer for more than one key is refused."""
    consumer = Bench().consumer()
    consumer.automatic.discard(find_coordinator.FindCoordinatorRequest)
    consumer.poll()

    found = find_coordinator.Coordinator(key=GROUP, node_id=1, port=-1, error_message=None)
    two = (found, found)
    consumer.answer(
        find_coordinator.FindCoordinatorRequest,
        find_coordinator.FindCoordinatorResponse(coordinators=two),
    )

    assert consumer.returned == ["IllegalStateException"]


def test_unreachable_broker_is_retried_with_growing_backoff() -> None:
    """A refused connection fails the metadata that was due too, which backs off: 100, 200, 400."""
    consumer = Bench().consumer()
    consumer.automatic.discard(Connect)
    attempts: list[int] = []
    effects = consumer.port.poll(0, 5_000)
    now_ms = 0
    while now_ms < 900:
        for effect in effects:
            assert isinstance(effect, Connect)
            attempts.append(now_ms)
        if effects:
            effects = consumer.port.on_disconnected(1, now_ms)
            continue
        now_ms = consumer.port.next_deadline_ms() or 0
        effects = consumer.port.expire(now_ms)

    gaps = [b - a for a, b in pairwise(attempts)]
    assert gaps == [100, 200, 400]


# JoinGroup


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (ErrorCode.FENCED_INSTANCE_ID, "FencedInstanceIdException"),
        (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "InconsistentGroupProtocolException"),
        (ErrorCode.INVALID_SESSION_TIMEOUT, "InvalidSessionTimeoutException"),
        (ErrorCode.INVALID_GROUP_ID, "InvalidGroupIdException"),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "GroupAuthorizationException"),
        (ErrorCode.UNSUPPORTED_VERSION, "UnsupportedVersionException"),
        (ErrorCode.UNKNOWN_SERVER_ERROR, "KafkaException"),
    ],
)
def test_fatal_join_errors(error: ErrorCode, name: str) -> None:
    """The error ends the poll; no JoinGroup follows by itself."""
    consumer = Bench().consumer()
    consumer.poll()

    consumer.refuse_join(error)
    consumer.run(5_000)

    assert consumer.returned == [name]
    assert len(consumer.sent(JoinGroupRequest)) == 1


def test_join_refused_as_of_an_unknown_member_is_repeated_without_the_id() -> None:
    """The member joins anew at once, at the same coordinator."""
    consumer = Bench().consumer()
    consumer.poll()
    consumer.refuse_join(ErrorCode.MEMBER_ID_REQUIRED, MEMBER)

    consumer.refuse_join(ErrorCode.UNKNOWN_MEMBER_ID)
    consumer.run(1_000)

    assert consumer.sent_at(JoinGroupRequest) == [0, 0, 0]
    assert consumer.sent(JoinGroupRequest)[2].member_id == ""
    assert len(consumer.sent(find_coordinator.FindCoordinatorRequest)) == 1


@pytest.mark.parametrize("error", [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR])
def test_join_to_a_moved_coordinator_looks_again(error: ErrorCode) -> None:
    """The coordinator becomes unknown and the join follows a new lookup."""
    consumer = Bench().consumer()
    consumer.poll()

    consumer.refuse_join(error)
    consumer.run(1_000)

    assert len(consumer.sent(find_coordinator.FindCoordinatorRequest)) >= 2
    assert len(consumer.sent(JoinGroupRequest)) == 2


def test_answer_waits_for_somebody_who_polls() -> None:
    """A JoinGroup answer that arrives while the application processes is handled by its poll."""
    consumer = Bench().consumer()
    consumer.poll(100)
    consumer.run(100)
    assert consumer.returned == [None]

    consumer.join()
    assert consumer.sent(SyncGroupRequest) == []
    consumer.poll()

    assert len(consumer.sent(SyncGroupRequest)) == 1


# SyncGroup


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "GroupAuthorizationException"),
        (ErrorCode.UNKNOWN_SERVER_ERROR, "KafkaException"),
    ],
)
def test_fatal_sync_errors(error: ErrorCode, name: str) -> None:
    """The error is thrown to the application."""
    consumer = Bench().consumer()
    consumer.poll()
    consumer.join()

    consumer.sync(error=error)

    assert consumer.returned == [name]


def test_sync_to_a_moved_coordinator_looks_again() -> None:
    """NOT_COORDINATOR makes the coordinator unknown; the join is repeated after a lookup."""
    consumer = Bench().consumer()
    consumer.poll()
    consumer.join()

    consumer.sync(error=ErrorCode.NOT_COORDINATOR)
    consumer.run(1_000)

    assert len(consumer.sent(JoinGroupRequest)) == 2
    assert consumer.sent(JoinGroupRequest)[1].member_id == "m"


def test_sync_must_be_of_the_protocol_type() -> None:
    """Another protocol type in the answer is fatal."""
    consumer = Bench().consumer()
    consumer.poll()
    consumer.join()

    consumer.answer(SyncGroupRequest, SyncGroupResponse(protocol_type="connect"))

    assert consumer.returned == ["InconsistentGroupProtocolException"]


# Heartbeat


def test_heartbeats_go_on_while_the_application_is_busy() -> None:
    """The heartbeat thread needs no poll, and answers are handled at once."""
    consumer = Bench().consumer()
    consumer.poll(0)
    consumer.poll(0)
    consumer.join()
    consumer.poll(0)
    consumer.assign(T0)
    consumer.poll(0)
    assert consumer.port.state is MemberState.STABLE

    for at_ms in (3_000, 6_000, 9_000):
        consumer.run(at_ms)
        consumer.beat()

    assert consumer.sent_at(HeartbeatRequest) == [3_000, 6_000, 9_000]


@pytest.mark.parametrize(
    "error",
    [ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID],
)
def test_stale_heartbeat_error_is_ignored(error: ErrorCode) -> None:
    """An error for a generation that has changed since means nothing."""
    consumer = Bench().consumer()
    consumer.settle(T0)
    consumer.run(6_000)
    consumer.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    consumer.join(generation_id=2)
    consumer.assign(T0)

    consumer.beat(error)

    assert consumer.port.generation_id == 2
    assert consumer.port.state is MemberState.STABLE


# Leaving


def test_poll_timeout_fires_during_a_callback() -> None:
    """A callback that never ends costs the membership, and the assignment is dropped after it."""
    consumer = Bench().consumer(rebalance_timeout_ms=10_000)
    consumer.automatic.discard(RunCallback)
    consumer.poll()
    consumer.join()
    consumer.assign(T0)
    consumer.run(20_000)
    assert len(consumer.sent(leave_group.LeaveGroupRequest)) == 1

    consumer.complete(consumer.callbacks[-1])

    assert consumer.callbacks[-1].kind is CallbackKind.PARTITIONS_LOST


def test_close_without_leave_keeps_partitions_uncalled() -> None:
    """With internal.leave.group.on.close=false neither callbacks nor LeaveGroup happen."""
    consumer = Bench().consumer(leave_group_on_close=False)
    consumer.idle()
    before = len(consumer.callbacks)

    consumer.do(consumer.port.close(1_000, 0))

    assert consumer.is_closed
    assert len(consumer.callbacks) == before


def test_metadata_is_refreshed_at_its_age() -> None:
    """Metadata is asked for at the start and every metadata.max.age.ms."""
    consumer = Bench().consumer(metadata_max_age_ms=20_000, session_timeout_ms=2_000_000)
    consumer.settle(T0)

    consumer.run(45_000)

    assert consumer.sent_at(MetadataRequest)[0] == 0
    assert 20_000 in consumer.sent_at(MetadataRequest)


def test_generation_reset_between_sync_and_callbacks() -> None:
    """A heartbeat error while the application is busy voids the assignment it has not seen."""
    consumer = Bench().consumer()
    consumer.poll(0)
    consumer.poll(0)
    consumer.join()
    consumer.poll(0)
    consumer.assign(T0)
    consumer.run(3_000)
    consumer.beat(ErrorCode.ILLEGAL_GENERATION)

    consumer.poll()

    assert consumer.callbacks == []
    join = consumer.sent(JoinGroupRequest)[-1]
    assert join.member_id == ""
    assert join.reason == (
        "rebalance failed since the generation/state was modified by heartbeat thread"
    )


def test_answer_of_another_api_is_a_drivers_bug() -> None:
    """A response that does not fit its request is refused aloud."""
    consumer = Bench().consumer()
    consumer.poll()
    with pytest.raises(InvariantViolation, match="answers a JOIN request"):
        consumer.answer(JoinGroupRequest, HeartbeatResponse())


@pytest.mark.parametrize(
    "answer",
    [
        leave_group.LeaveGroupResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR),
        leave_group.LeaveGroupResponse(
            members=(leave_group.MemberResponse(member_id="m", group_instance_id=None),)
        ),
        leave_group.LeaveGroupResponse(
            members=(leave_group.MemberResponse(member_id="m", group_instance_id=None),) * 2
        ),
    ],
    ids=["refused", "one member", "two members"],
)
def test_answer_to_a_leave_changes_nothing(answer: leave_group.LeaveGroupResponse) -> None:
    """Whatever the answer to a leave says, the member is out and closed."""
    consumer = Bench().consumer()
    consumer.idle()
    consumer.do(consumer.port.close(1_000, 30_000))

    consumer.answer(leave_group.LeaveGroupRequest, answer)

    assert consumer.is_closed
    assert len(consumer.sent(leave_group.LeaveGroupRequest)) == 1
    with pytest.raises(InvariantViolation, match="close while"):
        consumer.port.close(2_000, 0)


def test_wakeup_is_kept_for_the_next_poll() -> None:
    """A wake-up outside any call ends the next one at its start."""
    consumer = Bench().consumer()
    consumer.do(consumer.port.wakeup(0))
    assert not consumer.port.is_in_call

    consumer.poll()

    assert consumer.returned == ["WakeupException"]
    assert consumer.sent(Request) == []


def test_join_answer_after_leaving_is_dropped() -> None:
    """A member that unsubscribed while its join was parked does not sync."""
    consumer = Bench().consumer()
    consumer.poll(10)
    consumer.run(10)
    consumer.do(consumer.port.unsubscribe(10))
    consumer.do(consumer.port.subscribe(["t"], 10))

    consumer.join()
    consumer.poll()
    consumer.run(200)

    assert consumer.sent(SyncGroupRequest) == []
    assert len(consumer.sent(JoinGroupRequest)) == 2
