"""How a consumer comes to its topics: by name, by pattern, by hand; and rebalances on request."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from coordinator_sim.clients.effects import COORDINATOR_NODE_OFFSET, CallbackKind
from coordinator_sim.clients.generation import MemberState
from coordinator_sim.clients.subscription_state import SubscriptionState
from coordinator_sim.errors import ConfigError, InvariantViolation
from coordinator_sim.messages.find_coordinator import FindCoordinatorRequest
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupRequest
from coordinator_sim.messages.leave_group import LeaveGroupRequest
from coordinator_sim.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseTopic,
)
from coordinator_sim.messages.offset_commit import OffsetCommitRequest
from coordinator_sim.messages.offset_fetch import OffsetFetchRequest
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.resources import TopicPartition
from coordinator_sim.wire.consumer_protocol import decode_subscription

if TYPE_CHECKING:
    from tests.unit.clients.conftest import Desk

    MakeDesk = Callable[..., Desk]

A0, B0 = TopicPartition("orders-a", 0), TopicPartition("orders-b", 0)
T0 = TopicPartition("t", 0)
COORDINATOR = COORDINATOR_NODE_OFFSET - 1
FINE = HeartbeatResponse(error_code=ErrorCode.NONE)


def _by_pattern(make_desk: "MakeDesk", pattern: str, **topics: int) -> "Desk":
    """A consumer of a pattern in a cluster of these topics (`_` stands for `-`)."""
    desk = make_desk(topics=(), metadata_max_age_ms=60_000)
    desk.topics = {name.replace("_", "-"): count for name, count in topics.items()}
    desk.do(desk.port.subscribe_pattern(pattern, 0))
    return desk


def _poll(desk: "Desk") -> None:
    """Poll until the refresh backoff is over, so that metadata is fresh."""
    desk.poll(timeout_ms=100_000)
    desk.run(200)


def _subscriptions(desk: "Desk") -> list[tuple[str, ...]]:
    """The topics that each JoinGroup named."""
    return [decode_subscription(j.protocols[0].metadata).topics for j in desk.of(JoinGroupRequest)]


def test_pattern_is_matched_with_fresh_metadata_before_the_join(make_desk: "MakeDesk") -> None:
    """The first JoinGroup names what matches; Metadata asked for every topic of the cluster."""
    desk = _by_pattern(make_desk, "orders-.*", orders_a=1, orders_b=1, other=1)
    _poll(desk)

    assert _subscriptions(desk) == [("orders-a", "orders-b")]
    assert {request.topics for request in desk.of(MetadataRequest)} == {None}


def test_pattern_waits_for_metadata(make_desk: "MakeDesk") -> None:
    """Without metadata nothing is joined, and a poll that ends meanwhile joins nothing either."""
    desk = _by_pattern(make_desk, "orders-.*", orders_a=1)
    desk.automatic.discard(MetadataRequest)
    desk.poll(timeout_ms=1_000)
    desk.run(1_000)

    assert desk.returned == [None]
    assert desk.of(JoinGroupRequest) == []


def test_pattern_matches_whole_names(make_desk: "MakeDesk") -> None:
    """A name that only contains a match is not subscribed to."""
    desk = _by_pattern(make_desk, "orders", orders=1, orders_a=1)
    _poll(desk)

    assert _subscriptions(desk) == [("orders",)]


@pytest.mark.parametrize("excluded", [True, False])
def test_pattern_passes_internal_topics_by(make_desk: "MakeDesk", excluded: bool) -> None:
    """`exclude.internal.topics` decides whether a pattern may match the broker's own topics."""
    desk = make_desk(topics=(), exclude_internal_topics=excluded)
    desk.topics = {"__consumer_offsets": 50, "t": 1}
    desk.internal = ("__consumer_offsets",)
    desk.do(desk.port.subscribe_pattern(".*", 0))
    _poll(desk)

    assert _subscriptions(desk) == [("t",) if excluded else ("__consumer_offsets", "t")]


def test_pattern_without_a_match_joins_with_nothing(make_desk: "MakeDesk") -> None:
    """A member of a pattern is in the group even while no topic matches."""
    desk = _by_pattern(make_desk, "orders-.*", other=1)
    _poll(desk)
    desk.join()
    desk.sync()

    assert _subscriptions(desk) == [()]
    assert desk.port.state is MemberState.STABLE


def test_created_topic_that_matches_rejoins(make_desk: "MakeDesk") -> None:
    """A refresh that shows one more match is a changed subscription."""
    desk = _by_pattern(make_desk, "orders-.*", orders_a=1)
    _poll(desk)
    desk.join()
    desk.sync(A0)
    desk.topics["orders-b"] = 1
    for at_ms in range(3_000, 66_000, 3_000):
        desk.run(at_ms)
        if desk.is_waiting(HeartbeatRequest):
            desk.reply(HeartbeatRequest, FINE)

    assert _subscriptions(desk) == [("orders-a",), ("orders-a", "orders-b")]
    assert desk.of(JoinGroupRequest)[1].reason == "subscription has changed"


def test_assigned_topic_that_matches_joins_the_subscription(make_desk: "MakeDesk") -> None:
    """The leader may know a topic before the member does: that is no reason to rejoin."""
    desk = _by_pattern(make_desk, "orders-.*", orders_a=1)
    desk.poll()
    desk.topics["orders-b"] = 1
    desk.join()
    desk.sync(A0, B0)
    desk.run(1_000)

    assert desk.port.owned_partitions == (A0, B0)
    assert desk.port.subscription == ("orders-a", "orders-b")
    assert len(desk.of(JoinGroupRequest)) == 1


def test_pattern_is_matched_anew_while_a_join_waits(make_desk: "MakeDesk") -> None:
    """Each turn of a poll refreshes metadata, so the answer to an outdated join is not kept."""
    desk = _by_pattern(make_desk, "orders-.*", orders_a=1)
    _poll(desk)
    desk.topics["orders-b"] = 1
    desk.join()
    desk.sync(A0)

    assert _subscriptions(desk) == [("orders-a",), ("orders-a", "orders-b")]


def test_assigned_topic_that_does_not_match_rejoins(make_desk: "MakeDesk") -> None:
    """An assignment outside the pattern is dropped."""
    desk = _by_pattern(make_desk, "orders-.*", orders_a=1)
    _poll(desk)
    desk.join()
    desk.sync(A0, T0)

    assert desk.port.owned_partitions == ()
    assert len(desk.of(JoinGroupRequest)) == 2


def test_malformed_pattern_is_refused() -> None:
    """The error names the pattern."""
    with pytest.raises(ConfigError, match="orders"):
        SubscriptionState(exclude_internal_topics=True).subscribe_pattern("orders-(")


def test_topics_pattern_and_partitions_exclude_each_other(make_desk: "MakeDesk") -> None:
    """Who wants another kind of subscription unsubscribes first."""
    desk = make_desk()
    with pytest.raises(InvariantViolation, match="unsubscribe first"):
        desk.port.subscribe_pattern("t", 0)
    with pytest.raises(InvariantViolation, match="unsubscribe first"):
        desk.port.assign([T0], 0)

    desk.do(desk.port.subscribe([], 0))
    desk.do(desk.port.assign([T0], 0))

    assert desk.port.owned_partitions == (T0,)


def test_poll_without_any_subscription_is_an_error(make_desk: "MakeDesk") -> None:
    """Nothing is asked of anybody."""
    desk = make_desk(topics=())
    desk.poll()

    assert desk.returned == ["IllegalStateException"]
    assert desk.of(FindCoordinatorRequest) == []


def test_partitions_by_hand_need_no_group(make_desk: "MakeDesk") -> None:
    """The coordinator is asked for committed offsets alone; there are no callbacks."""
    desk = make_desk(topics=())
    desk.do(desk.port.assign([T0], 0))
    desk.poll(timeout_ms=10)
    desk.run(10)

    assert desk.of(JoinGroupRequest) == []
    assert len(desk.of(OffsetFetchRequest)) == 1
    assert desk.callbacks == []

    desk.do(desk.port.unsubscribe(10))
    assert desk.port.owned_partitions == ()
    assert desk.of(LeaveGroupRequest) == []
    assert desk.callbacks == []


def test_no_partitions_by_hand_is_no_subscription(make_desk: "MakeDesk") -> None:
    """`assign` of nothing unsubscribes."""
    desk = make_desk(topics=())
    desk.do(desk.port.assign([T0], 0))
    desk.do(desk.port.assign([], 0))
    desk.poll()

    assert desk.returned == [None, "IllegalStateException"]


def test_partitions_by_hand_that_lost_all_brokers_wait_for_metadata(make_desk: "MakeDesk") -> None:
    """A lost connection asks for metadata; until it is there a poll does nothing else."""
    desk = make_desk(topics=())
    desk.do(desk.port.assign([T0], 0))
    desk.poll(timeout_ms=10)
    desk.run(10)
    desk.automatic -= {MetadataRequest}
    for node_id in (1, COORDINATOR):
        desk.do(desk.port.on_disconnected(node_id, 10))
    desk.poll(timeout_ms=1_000)
    desk.run(500)
    asked = len(desk.of(OffsetFetchRequest))
    desk.reply(MetadataRequest, desk.metadata())

    assert asked == 1
    assert desk.returned == [None]


def test_partitions_kept_by_hand_keep_their_positions(make_desk: "MakeDesk") -> None:
    """A new list starts only what is new in it; with auto-commit, positions are committed first."""
    desk = make_desk(topics=(), enable_auto_commit=True, auto_commit_interval_ms=50)
    desk.do(desk.port.assign([T0], 0))
    desk.poll()
    desk.reply(OffsetFetchRequest, desk.fetched(T0))
    desk.do(desk.port.fetch_completed(0))
    assert desk.of(OffsetCommitRequest) == []
    desk.do(desk.port.assign([T0, TopicPartition("t", 1)], 50))

    assert desk.port.positions == {T0: 10}
    assert len(desk.of(OffsetCommitRequest)) == 1
    desk.poll()
    wanted = desk.of(OffsetFetchRequest)[-1].groups[0].topics
    assert [(each.name, each.partition_indexes) for each in wanted] == [("t", (1,))]


def test_partitions_by_hand_wait_for_a_connection(make_desk: "MakeDesk") -> None:
    """While no broker can be reached a poll waits for metadata instead of spinning."""
    desk = make_desk(topics=())
    desk.automatic.clear()
    desk.do(desk.port.assign([T0], 0))
    desk.poll(timeout_ms=500)
    desk.run(500)

    assert desk.returned == [None]
    assert desk.of(OffsetFetchRequest) == []


def test_rebalance_on_request(make_desk: "MakeDesk") -> None:
    """`enforceRebalance` rejoins at the next poll and tells its reason."""
    desk = make_desk()
    desk.settle_stable(T0)
    desk.do(desk.port.fetch_completed(0))
    desk.do(desk.port.enforce_rebalance(0))
    assert len(desk.of(JoinGroupRequest)) == 1
    desk.poll()
    desk.join(generation_id=2)
    desk.sync(T0)
    desk.do(desk.port.fetch_completed(0))
    desk.do(desk.port.enforce_rebalance(0, "new code"))
    desk.poll()

    reasons = [request.reason for request in desk.of(JoinGroupRequest)]
    assert reasons == ["", "rebalance enforced by user", "new code"]


def test_wakeup_in_a_revocation_joins_with_what_was_to_be_given_up(make_desk: "MakeDesk") -> None:
    """QUIRK: Java's exception passes the change of state by."""
    desk = make_desk()
    desk.settle_stable(T0)
    desk.outcomes[CallbackKind.PARTITIONS_REVOKED] = "WakeupException"
    desk.run(3_000)
    rebalance = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    desk.reply(HeartbeatRequest, rebalance)
    assert desk.returned == ["WakeupException"]

    desk.poll()
    join = desk.of(JoinGroupRequest)[1]
    assert decode_subscription(join.protocols[0].metadata).owned_partitions == (T0,)
    assert len([c for c in desk.callbacks if c.kind is CallbackKind.PARTITIONS_REVOKED]) == 1


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "TopicAuthorizationException"),
        (ErrorCode.INVALID_TOPIC_EXCEPTION, "InvalidTopicException"),
    ],
)
def test_topic_that_is_denied_ends_a_poll(
    make_desk: "MakeDesk", error: ErrorCode, name: str
) -> None:
    """The poll in progress throws it; told between two polls, it is thrown by the next."""
    desk = make_desk()
    desk.automatic.discard(MetadataRequest)
    denied = MetadataResponse(
        brokers=desk.metadata().brokers,
        topics=(MetadataResponseTopic(name="t", partitions=(), error_code=error),),
    )
    desk.poll()
    desk.reply(MetadataRequest, denied)
    assert desk.returned == [name]

    desk.poll(timeout_ms=0)
    assert desk.returned == [name, None]


def test_topic_that_is_denied_between_polls_ends_the_next(make_desk: "MakeDesk") -> None:
    """The heartbeat thread reads the answer, the application's thread throws."""
    desk = make_desk(metadata_max_age_ms=1_000)
    desk.settle_stable(T0)
    desk.do(desk.port.fetch_completed(0))
    desk.automatic.discard(MetadataRequest)
    desk.run(1_000)
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    denied = MetadataResponseTopic(name="t", partitions=(), error_code=code)
    response = MetadataResponse(brokers=desk.metadata().brokers, topics=(denied,))
    desk.reply(MetadataRequest, response)
    assert desk.returned == [None]
    desk.poll()

    assert desk.returned == [None, "TopicAuthorizationException"]


def test_broker_that_refuses_the_client_ends_a_poll(make_desk: "MakeDesk") -> None:
    """A metadata request whose connection failed for good is thrown, and tried again later."""
    desk = make_desk(metadata_max_age_ms=1_000)
    desk.settle_stable(T0)
    desk.automatic.discard(MetadataRequest)
    desk.run(1_000)
    desk.do(desk.port.on_disconnected(1, 1_000, "SaslAuthenticationException"))
    assert desk.returned == ["SaslAuthenticationException"]
    desk.run(1_100)

    assert desk.times_of(MetadataRequest) == [0, 1_000, 1_100]
