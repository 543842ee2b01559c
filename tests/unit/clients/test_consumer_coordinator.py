"""Callbacks, subscription and leadership of a consumer, against a script."""

import copy

import pytest

from coordinator_sim.assignors.contract import AssignorMember, RebalanceProtocol, TopicRacks
from coordinator_sim.clients.effects import CallbackKind, RunCallback
from coordinator_sim.clients.generation import MemberState
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.consumer_protocol import (
    decode_subscription,
    encode_subscription,
)
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, Subscription
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupResponseMember
from coordinator_sim.messages.leave_group import LeaveGroupRequest
from coordinator_sim.messages.metadata import MetadataRequest
from coordinator_sim.messages.requests import metadata_request
from coordinator_sim.messages.sync_group import SyncGroupRequest
from coordinator_sim_conformance.client_cases.bench import MEMBER, Bench, ConsumerBench

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
