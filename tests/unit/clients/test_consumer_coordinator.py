"""Callbacks, subscription and leadership of a consumer, against a script."""

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from coordinator_sim.assignors.contract import (
    AssignmentFailed,
    AssignorMember,
    RebalanceProtocol,
    TopicRacks,
)
from coordinator_sim.assignors.registry import make_consumer_assignor
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.consumer_coordinator import ConsumerCoordinator
from coordinator_sim.clients.consumer_leader import select_rebalance_protocol
from coordinator_sim.clients.effects import COORDINATOR_NODE_OFFSET, CallbackKind, RunCallback
from coordinator_sim.clients.generation import MemberState
from coordinator_sim.errors import ConfigError, InvariantViolation
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupResponseMember
from coordinator_sim.messages.leave_group import LeaveGroupRequest
from coordinator_sim.messages.metadata import MetadataRequest
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node
from coordinator_sim.messages.requests import metadata_request
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from coordinator_sim.protocol.embedded import ConsumerAssignment, Subscription
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.resources import TopicPartition
from coordinator_sim.wire.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_subscription,
)

if TYPE_CHECKING:
    from tests.unit.clients.conftest import Desk

    MakeDesk = Callable[..., Desk]

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
COORDINATOR = COORDINATOR_NODE_OFFSET - 1
REBALANCE = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
OTHER_RACK = ("b",)


def _member(
    member_id: str, *owned: TopicPartition, topics: tuple[str, ...] = ("t",)
) -> JoinGroupResponseMember:
    subscription = Subscription(topics=topics, owned_partitions=owned)
    return JoinGroupResponseMember(member_id, None, encode_subscription(subscription))


def _kinds(desk: "Desk") -> list[tuple[CallbackKind, tuple[TopicPartition, ...]]]:
    return [(callback.kind, callback.partitions) for callback in desk.callbacks]


# Rebalance protocols and callbacks


def test_protocol_selection() -> None:
    """C-CONS-01: the highest protocol that all assignors support; none in common is an error."""
    names = {
        ("range", "cooperative-sticky"): RebalanceProtocol.EAGER,
        ("cooperative-sticky",): RebalanceProtocol.COOPERATIVE,
    }
    for assignors, protocol in names.items():
        assert select_rebalance_protocol([make_consumer_assignor(n) for n in assignors]) is protocol
    with pytest.raises(ConfigError, match="no rebalance protocol that all support"):
        select_rebalance_protocol([])


def test_eager_revokes_everything_before_the_join(make_desk: "MakeDesk") -> None:
    """C-CONS-02: revoked before JoinGroup, all assigned after."""
    desk = make_desk()
    desk.settle_stable(T0)
    desk.run(3_000)

    desk.reply(HeartbeatRequest, REBALANCE)
    assert desk.port.owned_partitions == ()
    desk.join(generation_id=2)
    desk.sync(T0, T1)

    assert _kinds(desk) == [
        (CallbackKind.PARTITIONS_ASSIGNED, (T0,)),
        (CallbackKind.PARTITIONS_REVOKED, (T0,)),
        (CallbackKind.PARTITIONS_ASSIGNED, (T0, T1)),
    ]


def test_cooperative_gives_up_only_what_it_must(make_desk: "MakeDesk") -> None:
    """Nothing before the join; what is taken is revoked after it, and a second join follows."""
    desk = make_desk(["cooperative-sticky"])
    desk.poll()
    desk.join(protocol_name="cooperative-sticky")
    desk.sync(T0, T1)
    desk.run(3_000)
    desk.reply(HeartbeatRequest, REBALANCE)
    assert desk.port.owned_partitions == (T0, T1)

    desk.join(generation_id=2, protocol_name="cooperative-sticky")
    desk.sync(T0)

    assert _kinds(desk)[1:] == [
        (CallbackKind.PARTITIONS_REVOKED, (T1,)),
        (CallbackKind.PARTITIONS_ASSIGNED, ()),
    ]
    assert desk.of(JoinGroupRequest)[2].reason == "need to revoke partitions and re-join"
    owned = decode_subscription(desk.of(JoinGroupRequest)[2].protocols[0].metadata)
    assert owned.owned_partitions == (T0,)


def test_assignment_outside_the_subscription_is_not_taken(make_desk: "MakeDesk") -> None:
    """C-CONS-05: no callbacks, and a join with the new subscription."""
    desk = make_desk()
    desk.topics = {"t": 1, "u": 1}
    desk.poll()
    desk.join()
    desk.do(desk.port.subscribe(["u"], 0))

    desk.sync(T0)

    assert CallbackKind.PARTITIONS_ASSIGNED not in [kind for kind, _ in _kinds(desk)]
    assert desk.port.owned_partitions == ()
    last = decode_subscription(desk.of(JoinGroupRequest)[-1].protocols[0].metadata)
    assert last.topics == ("u",)


def test_subscription_change_rejoins(make_desk: "MakeDesk") -> None:
    """The next turn of the poll loop joins with the new topics."""
    desk = make_desk()
    desk.topics = {"t": 1, "u": 1}
    desk.settle_stable(T0)

    desk.do(desk.port.subscribe(["t", "u"], 100))

    assert desk.of(JoinGroupRequest)[1].reason == "subscription has changed"


def test_same_subscription_changes_nothing(make_desk: "MakeDesk") -> None:
    """Subscribing again to the same topics, in any order, is no change."""
    desk = make_desk()
    desk.settle_stable(T0)

    desk.do(desk.port.subscribe(["t", "t"], 100))
    desk.run(2_000)

    assert len(desk.of(JoinGroupRequest)) == 1


@pytest.mark.parametrize(
    "kind", [CallbackKind.PARTITIONS_ASSIGNED, CallbackKind.PARTITIONS_REVOKED]
)
def test_raising_callback_is_thrown_after_the_change(
    make_desk: "MakeDesk", kind: CallbackKind
) -> None:
    """C-CONS-13: the poll raises KafkaException, the assignment has changed, no second call."""
    desk = make_desk()
    desk.outcomes[kind] = "RuntimeException"
    desk.settle_stable(T0)
    if kind is CallbackKind.PARTITIONS_REVOKED:
        desk.run(3_000)
        desk.reply(HeartbeatRequest, REBALANCE)

    assert desk.returned == ["KafkaException"]
    desk.outcomes.clear()
    desk.poll()

    assert [k for k, given in _kinds(desk) if given].count(kind) == 1
    assert desk.port.owned_partitions == ((T0,) if kind is CallbackKind.PARTITIONS_ASSIGNED else ())


def test_wakeup_inside_the_callback_repeats_the_assignment(make_desk: "MakeDesk") -> None:
    """C-JOIN-17: the next poll delivers the same bytes, without a new JoinGroup."""
    desk = make_desk()
    desk.outcomes[CallbackKind.PARTITIONS_ASSIGNED] = "WakeupException"
    desk.settle_stable(T0)
    assert desk.returned == ["WakeupException"]

    desk.outcomes.clear()
    desk.poll()

    assert len(desk.of(JoinGroupRequest)) == 1
    assert desk.port.state is MemberState.STABLE
    assert len(desk.callbacks) == 2


def test_bytes_that_are_no_assignment_are_an_illegal_state(make_desk: "MakeDesk") -> None:
    """A member that the leader forgot gets empty bytes, which the client cannot read."""
    for blob, error in ((b"", "IllegalStateException"), (b"\0\0\0", "SchemaException")):
        desk = make_desk()
        desk.poll()
        desk.join()
        desk.reply(SyncGroupRequest, SyncGroupResponse(assignment=blob))
        assert desk.returned == [error]


def test_unsubscribe_leaves(make_desk: "MakeDesk") -> None:
    """Everything is revoked, LeaveGroup says why, and polling without topics is refused."""
    desk = make_desk()
    desk.settle_stable(T0)
    desk.do(desk.port.fetch_completed(0))

    desk.do(desk.port.unsubscribe(10))

    assert desk.of(LeaveGroupRequest)[0].members[0].reason == (
        "the consumer unsubscribed from all topics"
    )
    assert _kinds(desk)[-1] == (CallbackKind.PARTITIONS_REVOKED, (T0,))
    desk.poll()
    assert desk.returned[-1] == "IllegalStateException"


def test_callback_tokens_are_checked(make_desk: "MakeDesk") -> None:
    """Completing a callback that nobody asked for is a driver's bug."""
    desk = make_desk()
    with pytest.raises(InvariantViolation, match="callback 7 is not outstanding"):
        desk.port.callback_completed(7, None, 0)
    desk.poll()
    with pytest.raises(InvariantViolation, match="one call at a time"):
        desk.port.poll(0, 1)


def test_close_during_a_callback_is_refused(make_desk: "MakeDesk") -> None:
    """The application's thread cannot close while it is inside a callback."""
    desk = make_desk()
    desk.automatic.discard(RunCallback)
    desk.settle_stable(T0)
    with pytest.raises(InvariantViolation, match="close while CALLBACK"):
        desk.port.close(0, 0)


def test_raising_callback_at_close_skips_the_leave(make_desk: "MakeDesk") -> None:
    """If onPartitionsRevoked raises, Java closes without LeaveGroup."""
    desk = make_desk()
    desk.settle_stable(T0)
    desk.outcomes[CallbackKind.PARTITIONS_REVOKED] = "RuntimeException"

    desk.do(desk.port.close(10, 1_000))

    assert desk.closed
    assert desk.of(LeaveGroupRequest) == []


# Leading


def _lead(desk: "Desk", *members: JoinGroupResponseMember, **fields: object) -> None:
    desk.join(leader="m", members=members or (_member("m"),), **fields)


def test_leader_assigns_everyone(make_desk: "MakeDesk") -> None:
    """C-SYNC-02: one entry for each member."""
    desk = make_desk()
    desk.poll()

    _lead(desk, _member("m"), _member("n"))

    (sync,) = desk.of(SyncGroupRequest)
    given = {a.member_id: decode_assignment(a.assignment).partitions for a in sync.assignments}
    assert given == {"m": (T0,), "n": (T1,)}


def test_leader_waits_for_metadata_of_the_groups_topics(make_desk: "MakeDesk") -> None:
    """A topic that only others subscribe to is looked up before the assignment, without limit."""
    desk = make_desk()
    desk.topics = {"t": 1, "u": 1}
    desk.poll(timeout_ms=1_000)
    desk.automatic.discard(MetadataRequest)

    _lead(desk, _member("m"), _member("n", topics=("u",)))
    desk.run(5_000)
    assert desk.of(SyncGroupRequest) == []
    assert desk.returned == []
    desk.reply(MetadataRequest, desk.metadata())

    (sync,) = desk.of(SyncGroupRequest)
    assert len(sync.assignments) == 2
    assert desk.returned == [None]


def test_returning_static_leader_assigns_nothing(make_desk: "MakeDesk") -> None:
    """With skip_assignment the SyncGroup is empty; the broker has the assignment."""
    desk = make_desk()
    desk.poll()

    _lead(desk, skip_assignment=True)

    assert desk.of(SyncGroupRequest)[0].assignments == ()


@pytest.mark.parametrize("leads", [True, False])
def test_leader_notices_new_partitions(make_desk: "MakeDesk", leads: bool) -> None:
    """C-CONS-09: the leader rejoins when a topic grows; a follower does nothing."""
    desk = make_desk(metadata_max_age_ms=2_000)
    desk.poll()
    if leads:
        _lead(desk)
    else:
        desk.join()
    desk.sync(T0)

    desk.topics = {"t": 3}
    desk.run(2_500)

    reasons = [join.reason for join in desk.of(JoinGroupRequest)]
    assert reasons == (["", "cached metadata has changed"] if leads else [""])


@pytest.mark.parametrize(("rack", "rejoins"), [("a", True), ("", False)])
def test_leader_with_a_rack_notices_rack_changes(
    make_desk: "MakeDesk", rack: str, rejoins: bool
) -> None:
    """C-CONS-10: racks count only where client.rack is set."""
    desk = make_desk(metadata_max_age_ms=2_000, client_rack=rack)
    desk.racks = ("a",)
    desk.poll()
    _lead(desk)
    desk.sync(T0)

    desk.racks = ("a", "a")
    desk.run(2_500)
    assert len(desk.of(JoinGroupRequest)) == 1
    desk.racks = OTHER_RACK
    desk.run(4_500)

    assert (len(desk.of(JoinGroupRequest)) == 2) is rejoins


def test_leader_that_cannot_read_the_members_sends_no_sync(make_desk: "MakeDesk") -> None:
    """Metadata that does not parse is an error of its own, a protocol nobody offered as well."""
    for members, name, error in (
        ((JoinGroupResponseMember("m", None, b""),), "range", "SchemaException"),
        ((_member("m"),), "odd", "IllegalStateException"),
    ):
        desk = make_desk()
        desk.poll()
        _lead(desk, *members, protocol_name=name)
        assert desk.returned == [error]
        assert desk.of(SyncGroupRequest) == []


class Careless:
    """A cooperative assignor that moves partitions in one step, or fails."""

    name = "careless"
    supported_protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails

    def subscription_user_data(self, topics: tuple[str, ...]) -> bytes | None:
        """None."""
        assert topics

    def on_assignment(self, assignment: ConsumerAssignment, generation_id: int) -> None:
        """Forget it."""

    def assign(
        self, topics: TopicRacks, members: list[AssignorMember]
    ) -> dict[str, list[TopicPartition]]:
        """Everything to the last member."""
        if self.fails:
            raise AssignmentFailed("no racks")
        everything = [TopicPartition(t, p) for t, ps in topics.items() for p in range(len(ps))]
        return {m.member_id: everything if m is members[-1] else [] for m in members}


@pytest.mark.parametrize(
    ("fails", "error"), [(False, "IllegalStateException"), (True, "AssignmentFailed")]
)
def test_assignor_that_fails_sends_no_sync(make_desk: "MakeDesk", fails: bool, error: str) -> None:
    """C-CONS-12, C-SYNC-03: the application gets the exception, the broker no SyncGroup."""
    desk = make_desk()
    desk.port = ConsumerCoordinator(
        ConsumerConfig(enable_auto_commit=False),
        client_id="client",
        group_id="group",
        topics=["t"],
        assignors=[Careless(fails=fails)],
        bootstrap=(Node(node_id=1, host="h", port=1),),
    )
    desk.poll()

    _lead(desk, _member("m", T0), _member("n"), protocol_name="careless")

    assert desk.returned == [error]
    assert desk.of(SyncGroupRequest) == []


class Generous(Careless):
    """An assignor that gives a topic nobody subscribed to."""

    name = "generous"
    supported_protocols = (RebalanceProtocol.EAGER,)

    def assign(
        self, topics: TopicRacks, members: list[AssignorMember]
    ) -> dict[str, list[TopicPartition]]:
        """One foreign partition each."""
        assert topics
        return {m.member_id: [TopicPartition("extra", 0)] for m in members}


def test_topics_that_an_assignor_adds_are_watched(make_desk: "MakeDesk") -> None:
    """The leader waits for their metadata, and sees a later change of them."""
    desk = make_desk()
    desk.port = ConsumerCoordinator(
        ConsumerConfig(enable_auto_commit=False, metadata_max_age_ms=1_000),
        client_id="client",
        group_id="group",
        topics=["t"],
        assignors=[Generous()],
        bootstrap=(Node(node_id=1, host="h", port=1),),
    )
    desk.topics = {"t": 1, "extra": 1}
    desk.poll()
    desk.automatic.discard(MetadataRequest)
    _lead(desk, _member("m"), protocol_name="generous")
    assert desk.of(SyncGroupRequest) == []

    assert desk.of(MetadataRequest)[-1] == metadata_request(("extra", "t"))
    desk.reply(MetadataRequest, desk.metadata())
    assert len(desk.of(SyncGroupRequest)) == 1
    desk.automatic.add(MetadataRequest)
    desk.sync()
    desk.topics["extra"] = 2
    desk.run(1_500)
    assert desk.of(JoinGroupRequest)[-1].reason == "cached metadata has changed"


# Polling


def test_steady_polls_end_on_time_and_hide_nothing(make_desk: "MakeDesk") -> None:
    """Short polls of a settled consumer return on time; a wake-up and a rebalance get through."""
    desk = make_desk()
    desk.settle_stable(T0)
    desk.do(desk.port.fetch_completed(0))
    for at_ms in (0, 500, 1_000):
        desk.poll(timeout_ms=500)
        desk.run(at_ms + 500)
    assert desk.returned == [None] * 4

    desk.do(desk.port.wakeup(1_500))
    desk.poll(timeout_ms=500)
    assert desk.returned[-1] == "WakeupException"
    desk.poll(timeout_ms=5_000)
    desk.run(3_000)
    desk.reply(HeartbeatRequest, REBALANCE)

    assert len(desk.of(JoinGroupRequest)) == 2


def test_poll_without_time_still_looks(make_desk: "MakeDesk") -> None:
    """poll(0) sends and handles what there is, and returns at once."""
    desk = make_desk()
    desk.settle_stable(T0)
    desk.do(desk.port.fetch_completed(0))

    desk.poll(timeout_ms=0)

    assert desk.returned == [None, None]


def test_metadata_asked_for_while_one_is_in_flight_follows(make_desk: "MakeDesk") -> None:
    """A subscription that grows while Metadata is in flight is looked up right after it."""
    desk = make_desk()
    desk.automatic.discard(MetadataRequest)
    desk.topics = {"t": 1, "u": 1}
    desk.poll()
    desk.do(desk.port.subscribe(["t", "u"], 0))

    desk.reply(MetadataRequest, desk.metadata())
    desk.run(200)

    wanted = [metadata_request(("t",)), metadata_request(("t", "u"))]
    assert desk.of(MetadataRequest) == wanted


def test_ports_can_be_copied(make_desk: "MakeDesk") -> None:
    """A port is plain data: a copy goes its own way, also out of the middle of a join."""
    desk = make_desk()
    desk.poll()
    desk.join()
    twin = copy.deepcopy(desk)

    twin.sync(T0)

    assert twin.port.owned_partitions == (T0,)
    assert desk.port.state is MemberState.COMPLETING_REBALANCE
    desk.sync(T1)
    assert desk.port.owned_partitions == (T1,)
