"""How a consumer comes to its topics: by name, by pattern, by hand; and rebalances on request."""

import pytest

from coordinator_sim.clients.effects import CallbackKind
from coordinator_sim.clients.generation import MemberState
from coordinator_sim.clients.subscription_state import SubscriptionState
from coordinator_sim.errors import ConfigError, InvariantViolation
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages import metadata
from coordinator_sim.messages.embedded.consumer_protocol import decode_subscription
from coordinator_sim.messages.find_coordinator import FindCoordinatorRequest
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupRequest
from coordinator_sim.messages.leave_group import LeaveGroupRequest
from coordinator_sim.messages.offset_commit import OffsetCommitRequest
from coordinator_sim.messages.offset_fetch import OffsetFetchRequest
from coordinator_sim_conformance.client_cases.bench import COORDINATOR, Bench, ConsumerBench

A0, B0 = TopicPartition("orders-a", 0), TopicPartition("orders-b", 0)
T0 = TopicPartition("t", 0)


def _by_pattern(pattern: str, **topics: int) -> ConsumerBench:
    """A consumer of a pattern in a cluster of these topics (`_` stands for `-`)."""
    consumer = Bench().consumer(is_subscribed=False, metadata_max_age_ms=60_000)
    consumer.topics = {name.replace("_", "-"): count for name, count in topics.items()}
    consumer.do(consumer.port.subscribe_pattern(pattern, 0))
    return consumer


def _poll(consumer: ConsumerBench) -> None:
    """Poll until the refresh backoff is over, so that metadata is fresh."""
    consumer.poll(100_000)
    consumer.run(200)


def _subscriptions(consumer: ConsumerBench) -> list[tuple[str, ...]]:
    """The topics that each JoinGroup named."""
    return [
        decode_subscription(j.protocols[0].metadata).topics for j in consumer.sent(JoinGroupRequest)
    ]


def test_pattern_is_matched_with_fresh_metadata_before_the_join() -> None:
    """The first JoinGroup names what matches; Metadata asked for every topic of the cluster."""
    consumer = _by_pattern("orders-.*", orders_a=1, orders_b=1, other=1)
    _poll(consumer)

    assert _subscriptions(consumer) == [("orders-a", "orders-b")]
    assert {request.topics for request in consumer.sent(metadata.MetadataRequest)} == {None}


def test_pattern_waits_for_metadata() -> None:
    """Without metadata nothing is joined, and a poll that ends meanwhile joins nothing either."""
    consumer = _by_pattern("orders-.*", orders_a=1)
    consumer.automatic.discard(metadata.MetadataRequest)
    consumer.poll(1_000)
    consumer.run(1_000)

    assert consumer.returned == [None]
    assert consumer.sent(JoinGroupRequest) == []


def test_pattern_matches_whole_names() -> None:
    """A name that only contains a match is not subscribed to."""
    consumer = _by_pattern("orders", orders=1, orders_a=1)
    _poll(consumer)

    assert _subscriptions(consumer) == [("orders",)]


@pytest.mark.parametrize("excluded", [True, False])
def test_pattern_passes_internal_topics_by(excluded: bool) -> None:
    """`exclude.internal.topics` decides whether a pattern may match the broker's own topics."""
    consumer = Bench().consumer(is_subscribed=False, exclude_internal_topics=excluded)
    consumer.topics = {"__consumer_offsets": 50, "t": 1}
    consumer.internal = ("__consumer_offsets",)
    consumer.do(consumer.port.subscribe_pattern(".*", 0))
    _poll(consumer)

    assert _subscriptions(consumer) == [("t",) if excluded else ("__consumer_offsets", "t")]


def test_pattern_without_a_match_joins_with_nothing() -> None:
    """A member of a pattern is in the group even while no topic matches."""
    consumer = _by_pattern("orders-.*", other=1)
    _poll(consumer)
    consumer.join()
    consumer.assign()

    assert _subscriptions(consumer) == [()]
    assert consumer.port.state is MemberState.STABLE


def test_created_topic_that_matches_rejoins() -> None:
    """A refresh that shows one more match is a changed subscription."""
    consumer = _by_pattern("orders-.*", orders_a=1)
    _poll(consumer)
    consumer.join()
    consumer.assign(A0)
    consumer.topics["orders-b"] = 1
    for at_ms in range(3_000, 66_000, 3_000):
        consumer.run(at_ms)
        if consumer.waiting(HeartbeatRequest):
            consumer.beat()

    assert _subscriptions(consumer) == [("orders-a",), ("orders-a", "orders-b")]
    assert consumer.sent(JoinGroupRequest)[1].reason == "subscription has changed"


def test_assigned_topic_that_matches_joins_the_subscription() -> None:
    """The leader may know a topic before the member does: that is no reason to rejoin."""
    consumer = _by_pattern("orders-.*", orders_a=1)
    consumer.poll()
    consumer.topics["orders-b"] = 1
    consumer.join()
    consumer.assign(A0, B0)
    consumer.run(1_000)

    assert consumer.port.owned_partitions == (A0, B0)
    assert consumer.port.subscription == ("orders-a", "orders-b")
    assert len(consumer.sent(JoinGroupRequest)) == 1


def test_pattern_is_matched_anew_while_a_join_waits() -> None:
    """Each turn of a poll refreshes metadata, so the answer to an outdated join is not kept."""
    consumer = _by_pattern("orders-.*", orders_a=1)
    _poll(consumer)
    consumer.topics["orders-b"] = 1
    consumer.join()
    consumer.assign(A0)

    assert _subscriptions(consumer) == [("orders-a",), ("orders-a", "orders-b")]


def test_assigned_topic_that_does_not_match_rejoins() -> None:
    """An assignment outside the pattern is dropped."""
    consumer = _by_pattern("orders-.*", orders_a=1)
    _poll(consumer)
    consumer.join()
    consumer.assign(A0, T0)

    assert consumer.port.owned_partitions == ()
    assert len(consumer.sent(JoinGroupRequest)) == 2


def test_malformed_pattern_is_refused() -> None:
    """The error names the pattern."""
    with pytest.raises(ConfigError, match="orders"):
        SubscriptionState(exclude_internal_topics=True).subscribe_pattern("orders-(")


def test_topics_pattern_and_partitions_exclude_each_other() -> None:
    """Who wants another kind of subscription unsubscribes first."""
    consumer = Bench().consumer()
    with pytest.raises(InvariantViolation, match="unsubscribe first"):
        consumer.port.subscribe_pattern("t", 0)
    with pytest.raises(InvariantViolation, match="unsubscribe first"):
        consumer.port.assign([T0], 0)

    consumer.do(consumer.port.subscribe([], 0))
    consumer.do(consumer.port.assign([T0], 0))

    assert consumer.port.owned_partitions == (T0,)


def test_poll_without_any_subscription_is_an_error() -> None:
    """A poll without a subscription raises, and no request is sent."""
    consumer = Bench().consumer(is_subscribed=False)
    consumer.poll()

    assert consumer.returned == ["IllegalStateException"]
    assert consumer.sent(FindCoordinatorRequest) == []


def test_partitions_by_hand_need_no_group() -> None:
    """The coordinator is asked for committed offsets alone; there are no callbacks."""
    consumer = Bench().consumer(is_subscribed=False)
    consumer.do(consumer.port.assign([T0], 0))
    consumer.poll(10)
    consumer.run(10)

    assert consumer.sent(JoinGroupRequest) == []
    assert len(consumer.sent(OffsetFetchRequest)) == 1
    assert consumer.callbacks == []

    consumer.do(consumer.port.unsubscribe(10))
    assert consumer.port.owned_partitions == ()
    assert consumer.sent(LeaveGroupRequest) == []
    assert consumer.callbacks == []


def test_no_partitions_by_hand_is_no_subscription() -> None:
    """`assign` of nothing unsubscribes."""
    consumer = Bench().consumer(is_subscribed=False)
    consumer.do(consumer.port.assign([T0], 0))
    consumer.do(consumer.port.assign([], 0))
    consumer.poll()

    assert consumer.returned == [None, "IllegalStateException"]


def test_partitions_by_hand_that_lost_all_brokers_wait_for_metadata() -> None:
    """A lost connection asks for metadata; until it is there a poll does nothing else."""
    consumer = Bench().consumer(is_subscribed=False)
    consumer.do(consumer.port.assign([T0], 0))
    consumer.poll(10)
    consumer.run(10)
    consumer.automatic -= {metadata.MetadataRequest}
    for node_id in (1, COORDINATOR):
        consumer.do(consumer.port.on_disconnected(node_id, 10))
    consumer.poll(1_000)
    consumer.run(500)
    asked = len(consumer.sent(OffsetFetchRequest))
    consumer.answer(metadata.MetadataRequest, consumer.metadata())

    assert asked == 1
    assert consumer.returned == [None]


def test_partitions_kept_by_hand_keep_their_positions() -> None:
    """A new list starts only what is new in it; with auto-commit, positions are committed first."""
    consumer = Bench().consumer(
        is_subscribed=False, enable_auto_commit=True, auto_commit_interval_ms=50
    )
    consumer.do(consumer.port.assign([T0], 0))
    consumer.poll()
    consumer.offsets({T0: 10})
    consumer.do(consumer.port.fetch_completed(0))
    assert consumer.sent(OffsetCommitRequest) == []
    consumer.do(consumer.port.assign([T0, TopicPartition("t", 1)], 50))

    assert consumer.port.positions == {T0: 10}
    assert len(consumer.sent(OffsetCommitRequest)) == 1
    consumer.poll()
    wanted = consumer.sent(OffsetFetchRequest)[-1].groups[0].topics
    assert [(each.name, each.partition_indexes) for each in wanted] == [("t", (1,))]


def test_partitions_by_hand_wait_for_a_connection() -> None:
    """While no broker can be reached a poll waits for metadata instead of spinning."""
    consumer = Bench().consumer(is_subscribed=False)
    consumer.automatic.clear()
    consumer.do(consumer.port.assign([T0], 0))
    consumer.poll(500)
    consumer.run(500)

    assert consumer.returned == [None]
    assert consumer.sent(OffsetFetchRequest) == []


def test_rebalance_on_request() -> None:
    """`enforceRebalance` rejoins at the next poll and tells its reason."""
    consumer = Bench().consumer()
    consumer.idle()
    consumer.do(consumer.port.enforce_rebalance(0))
    assert len(consumer.sent(JoinGroupRequest)) == 1
    consumer.poll()
    consumer.join(generation_id=2)
    consumer.assign(T0)
    consumer.do(consumer.port.fetch_completed(0))
    consumer.do(consumer.port.enforce_rebalance(0, "new code"))
    consumer.poll()

    reasons = [request.reason for request in consumer.sent(JoinGroupRequest)]
    assert reasons == ["", "rebalance enforced by user", "new code"]


def test_wakeup_in_a_revocation_joins_with_what_was_to_be_given_up() -> None:
    """QUIRK: Java's exception passes the change of state by."""
    consumer = Bench().consumer()
    consumer.settle(T0)
    consumer.outcomes[CallbackKind.PARTITIONS_REVOKED] = "WakeupException"
    consumer.run(3_000)
    rebalance = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    consumer.answer(HeartbeatRequest, rebalance)
    assert consumer.returned == ["WakeupException"]

    consumer.poll()
    join = consumer.sent(JoinGroupRequest)[1]
    assert decode_subscription(join.protocols[0].metadata).owned_partitions == (T0,)
    assert len([c for c in consumer.callbacks if c.kind is CallbackKind.PARTITIONS_REVOKED]) == 1


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "TopicAuthorizationException"),
        (ErrorCode.INVALID_TOPIC_EXCEPTION, "InvalidTopicException"),
    ],
)
def test_topic_that_is_denied_ends_a_poll(error: ErrorCode, name: str) -> None:
    """The poll in progress throws it; told between two polls, it is thrown by the next."""
    consumer = Bench().consumer()
    consumer.automatic.discard(metadata.MetadataRequest)
    denied = metadata.MetadataResponse(
        brokers=consumer.metadata().brokers,
        topics=(metadata.MetadataResponseTopic(name="t", partitions=(), error_code=error),),
    )
    consumer.poll()
    consumer.answer(metadata.MetadataRequest, denied)
    assert consumer.returned == [name]

    consumer.poll(0)
    assert consumer.returned == [name, None]


def test_topic_that_is_denied_between_polls_ends_the_next() -> None:
    """The heartbeat thread reads the answer, the application's thread throws."""
    consumer = Bench().consumer(metadata_max_age_ms=1_000)
    consumer.idle()
    consumer.automatic.discard(metadata.MetadataRequest)
    consumer.run(1_000)
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    denied = metadata.MetadataResponseTopic(name="t", partitions=(), error_code=code)
    response = metadata.MetadataResponse(brokers=consumer.metadata().brokers, topics=(denied,))
    consumer.answer(metadata.MetadataRequest, response)
    assert consumer.returned == []
    consumer.poll()

    assert consumer.returned == ["TopicAuthorizationException"]


def test_broker_that_refuses_the_client_ends_a_poll() -> None:
    """A metadata request whose connection failed for good is thrown, and tried again later."""
    consumer = Bench().consumer(metadata_max_age_ms=1_000)
    consumer.settle(T0)
    consumer.automatic.discard(metadata.MetadataRequest)
    consumer.run(1_000)
    consumer.do(consumer.port.on_disconnected(1, 1_000, "SaslAuthenticationException"))
    assert consumer.returned == ["SaslAuthenticationException"]
    consumer.run(1_100)

    assert consumer.sent_at(metadata.MetadataRequest) == [0, 1_000, 1_100]
