"""The port of Java's new consumer: what it tells, gives up, loses, and when it says so."""

import pytest

from coordinator_sim.clients.async_consumer.states import MemberState
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.consumer_models import make_consumer
from coordinator_sim.clients.effects import CallbackKind, RunCallback
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages import consumer_group_heartbeat, offset_commit
from coordinator_sim.messages.find_coordinator import FindCoordinatorRequest
from coordinator_sim.messages.metadata import MetadataRequest
from coordinator_sim.messages.offset_fetch import OffsetFetchRequest
from coordinator_sim_conformance.client_cases.bench import BROKER
from tests.unit.clients.async_bench import IDS, INTERVAL_MS, MEMBER_ID, AsyncBench, make, settled

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
ASSIGNED = CallbackKind.PARTITIONS_ASSIGNED
REVOKED = CallbackKind.PARTITIONS_REVOKED
LOST = CallbackKind.PARTITIONS_LOST


def committed(error: ErrorCode = ErrorCode.NONE) -> offset_commit.OffsetCommitResponse:
    """The answer to a commit of both partitions."""
    results = tuple(offset_commit.OffsetCommitResponsePartition(number, error) for number in (0, 1))
    return offset_commit.OffsetCommitResponse(
        topics=(offset_commit.OffsetCommitResponseTopic("t", partitions=results),)
    )


def owned(*numbers: int) -> tuple[consumer_group_heartbeat.TopicPartitions, ...]:
    """Partitions of `t` as a heartbeat tells them."""
    return (consumer_group_heartbeat.TopicPartitions(IDS["t"], numbers),) if numbers else ()


# Joining, and the fields of heartbeats.


def test_a_join_tells_everything_and_a_heartbeat_nothing() -> None:
    """The acknowledgement tells the partitions, and nothing else."""
    bench = settled(client_rack="r", group_instance_id="one", group_remote_assignor="range")
    bench.poll(20_000)
    bench.advance(INTERVAL_MS)
    joined, acknowledged, idle = bench.beats

    assert joined == consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=MEMBER_ID,
        member_epoch=0,
        instance_id="one",
        rack_id="r",
        rebalance_timeout_ms=300_000,
        subscribed_topic_names=("t",),
        server_assignor="range",
        topic_partitions=(),
    )
    bare = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=MEMBER_ID, member_epoch=1, instance_id="one"
    )
    assert idle == bare
    assert (acknowledged.topic_partitions, acknowledged.rack_id) == (owned(0, 1), None)
    assert bench.changes == [(ASSIGNED, (P0, P1))]


def test_offsets_are_asked_for_in_the_members_name() -> None:
    """With its id and its epoch, as the coordinator checks both."""
    bench = settled()
    (asked,) = bench.sent(OffsetFetchRequest)

    assert (asked.groups[0].member_id, asked.groups[0].member_epoch) == (MEMBER_ID, 1)
    assert bench.port.positions == {P0: 10, P1: 10}


def test_an_empty_assignment_is_acknowledged_too() -> None:
    """An empty target is not the same as none."""
    bench = make()
    bench.poll()
    bench.beat(1, {})
    bench.advance(200)

    assert bench.beats[-1].topic_partitions == ()
    assert bench.port.state is MemberState.STABLE


def test_a_changed_subscription_is_told_with_the_next_heartbeat() -> None:
    """Only the names are told, and no heartbeat comes sooner for it."""
    bench = settled()
    bench.do(bench.port.subscribe(["t", "u"], bench.now_ms))
    count = len(bench.beats)
    bench.poll(20_000)
    bench.advance(INTERVAL_MS)
    told = bench.beats[count]

    assert set(told.subscribed_topic_names or ()) == {"t", "u"}
    assert (told.topic_partitions, told.rebalance_timeout_ms) == (None, -1)


def test_a_regex_is_told_and_taken_back_as_an_empty_one() -> None:
    """With a regex the topics are asked for by the ids of the assignment."""
    bench = make()
    bench.topics = {}
    bench.do(bench.port.subscribe_regex("t.*", 0))
    bench.poll(20_000)
    assert bench.sent(MetadataRequest)[-1].topics == ()
    assert (bench.beats[0].subscribed_topic_names, bench.beats[0].subscribed_topic_regex) == (
        (),
        "t.*",
    )
    bench.beat(1, {"t": (0, 1)})
    bench.advance(500)
    assert bench.beats[-1].topic_partitions == ()
    bench.beat(1)
    bench.topics = {"t": 2}
    bench.advance(1_500)
    assert bench.beats[-1].topic_partitions == owned(0, 1)
    assert [each.topic_id for each in bench.sent(MetadataRequest)[-1].topics or ()] == [IDS["t"]]
    bench.beat(1)
    bench.do(bench.port.subscribe(["t"], bench.now_ms))
    bench.advance(INTERVAL_MS)
    told = bench.beats[-1]
    assert (told.subscribed_topic_names, told.subscribed_topic_regex) == (("t",), "")


# Reconciliation.


def test_nothing_is_given_up_while_the_application_does_not_poll() -> None:
    """It may be about to work on records of these partitions."""
    bench = settled()
    bench.advance(INTERVAL_MS)
    bench.beat(1, {"t": (0,)})
    bench.advance(1_000)
    assert bench.told(REVOKED) == []
    assert bench.port.fetchable == {P0: 10, P1: 10}

    bench.automatic.discard(RunCallback)
    bench.poll(100)
    assert bench.port.fetchable == {P0: 10}
    bench.advance(100)
    bench.poll(100)
    (revoked,) = bench.told(REVOKED)
    assert revoked.partitions == (P1,)
    beats = len(bench.beats)
    bench.automatic.add(RunCallback)
    bench.complete(revoked)
    bench.advance(100)
    bench.poll_on()
    assert bench.beats[beats].topic_partitions == owned(0)
    assert bench.port.owned_partitions == (P0,)


def test_consumed_offsets_are_committed_before_anything_is_given_up() -> None:
    """Retriable errors are tried again with what is consumed by then; the callback waits."""
    bench = settled(enable_auto_commit="true")
    bench.advance(INTERVAL_MS - 1_000)
    bench.beat(1, {"t": (0,)})
    bench.port.advance_position(P1, 20)
    bench.poll(100)
    (first,) = bench.sent(offset_commit.OffsetCommitRequest)
    assert (first.member_id, first.generation_id_or_member_epoch) == (MEMBER_ID, 1)
    bench.answer(
        offset_commit.OffsetCommitRequest, committed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    )
    bench.advance(100)
    bench.poll_on()
    assert bench.told(REVOKED) == []
    bench.answer(offset_commit.OffsetCommitRequest, committed())
    bench.poll_on()
    assert [each.partitions for each in bench.told(REVOKED)] == [(P1,)]


def test_topics_without_a_name_are_acknowledged_later() -> None:
    """What has a name is acknowledged at once, the rest when Metadata tells it."""
    bench = make("t", "u")
    bench.poll(100_000)
    bench.beat(1, {"t": (0,), "u": (0,)})
    bench.advance(1_000)
    assert bench.changes == [(ASSIGNED, (P0,))]
    assert bench.beats[-1].topic_partitions == owned(0)
    assert bench.port.state is MemberState.RECONCILING

    bench.beat(1)
    bench.topics["u"] = 1
    bench.advance(2_000)
    assert bench.changes[-1] == (ASSIGNED, (TopicPartition("u", 0),))
    told = bench.beats[-1].topic_partitions or ()
    assert {each.topic_id for each in told} == {IDS["t"], IDS["u"]}


def test_a_failed_callback_leaves_the_assignment_unacknowledged() -> None:
    """The poll raises, and the coordinator will fence the member in time."""
    bench = make()
    bench.outcomes[ASSIGNED] = "KafkaException"
    bench.poll(500)
    bench.beat(1, {"t": (0, 1)})
    bench.advance(500)

    assert bench.returned == ["KafkaException"]
    assert len(bench.beats) == 1
    assert bench.port.state is MemberState.RECONCILING


# Losing the membership.


@pytest.mark.parametrize("error", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_fenced_member_loses_all_and_joins_again(error: ErrorCode) -> None:
    """With the id that it has, epoch 0, and every field."""
    bench = settled()
    bench.poll(100_000)
    bench.advance(INTERVAL_MS)
    bench.refuse(error)
    bench.advance(INTERVAL_MS)

    assert bench.changes[-1] == (LOST, (P0, P1))
    again = bench.beats[-1]
    assert (again.member_id, again.member_epoch) == (MEMBER_ID, 0)
    assert (again.subscribed_topic_names, again.topic_partitions) == (("t",), ())
    assert bench.returned == [None]


def test_an_assignment_on_the_way_when_fenced_is_dropped_and_told_of() -> None:
    """The application takes it over first, then loses what it had: the rest goes silently."""
    bench = make()
    bench.automatic.discard(RunCallback)
    bench.poll(100_000)
    bench.beat(1, {"t": (0, 1)})
    bench.advance(100)
    (assigned,) = bench.callbacks
    bench.advance(INTERVAL_MS)
    bench.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
    bench.complete(assigned)
    bench.advance(1_000)

    lost = [each.partitions for each in bench.told(LOST)]
    assert lost == [(P0, P1)]


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        ErrorCode.UNRELEASED_INSTANCE_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNSUPPORTED_ASSIGNOR,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_fatal_errors_are_raised_by_the_poll(error: ErrorCode) -> None:
    """All is lost, and no heartbeat is sent any more."""
    bench = settled()
    bench.poll(100_000)
    bench.advance(INTERVAL_MS)
    bench.refuse(error)
    beats = len(bench.beats)
    bench.advance(20_000)

    assert bench.returned[-1] is not None
    assert bench.port.state is MemberState.FATAL
    bench.poll_on()
    assert (bench.changes[-1][0], len(bench.beats)) == (LOST, beats)


def test_missing_rights_on_a_topic_are_told_and_survived() -> None:
    """The member stays, and goes on with its heartbeats."""
    bench = settled()
    bench.poll(100_000)
    bench.advance(INTERVAL_MS)
    bench.refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    bench.advance(INTERVAL_MS)

    assert bench.returned[-1] == "TopicAuthorizationException"
    assert bench.waiting(consumer_group_heartbeat.ConsumerGroupHeartbeatRequest) == 1
    assert bench.port.owned_partitions == (P0, P1)


@pytest.mark.parametrize(
    ("settings", "epoch"), [({}, -1), ({"group_instance_id": "one"}, -2)], ids=["dynamic", "static"]
)
def test_a_member_that_does_not_poll_leaves(settings: dict[str, str], epoch: int) -> None:
    """What it has is lost at its next poll, which joins again."""
    bench = settled(max_poll_interval_ms="8000", **settings)
    for _ in range(3):
        bench.advance(INTERVAL_MS)
        if bench.beats[-1].member_epoch < 0:
            break
        bench.beat(1)
    assert (bench.beats[-1].member_epoch, bench.port.state) == (epoch, MemberState.STALE)
    beats = len(bench.beats)
    bench.advance(20_000)
    assert (len(bench.beats), bench.told(LOST)) == (beats, [])

    bench.poll(1_000)
    bench.advance(200)
    assert [each.partitions for each in bench.told(LOST)] == [(P0, P1)]
    assert (bench.beats[-1].member_epoch, bench.beats[-1].subscribed_topic_names) == (0, ("t",))


# The coordinator.


def test_a_wrong_coordinator_is_looked_up_and_told_everything() -> None:
    """At once, without a backoff, and at the member's epoch."""
    bench = settled()
    bench.poll(100_000)
    bench.advance(INTERVAL_MS)
    bench.refuse(ErrorCode.NOT_COORDINATOR)
    bench.advance(1)

    assert len(bench.sent(FindCoordinatorRequest)) == 2
    again = bench.beats[-1]
    assert (again.member_epoch, again.topic_partitions) == (1, owned(0, 1))
    assert (again.subscribed_topic_names, again.rack_id) == (("t",), None)
    assert bench.told(LOST) == []


def test_a_loading_coordinator_is_asked_again_after_a_backoff() -> None:
    """By the same connection, and told everything."""
    bench = settled()
    bench.poll(100_000)
    bench.advance(INTERVAL_MS)
    bench.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    at_ms = bench.now_ms
    bench.advance(1_000)

    assert bench.sent_at(consumer_group_heartbeat.ConsumerGroupHeartbeatRequest)[-1] - at_ms == 100
    assert bench.beats[-1].topic_partitions == owned(0, 1)
    assert len(bench.sent(FindCoordinatorRequest)) == 1


def test_a_broken_connection_makes_the_coordinator_unknown() -> None:
    """It is looked up again, and the heartbeat repeated."""
    bench = settled()
    bench.poll(100_000)
    bench.advance(INTERVAL_MS)
    beats = len(bench.beats)
    bench.disconnect()
    bench.advance(2_000)

    assert len(bench.sent(FindCoordinatorRequest)) == 2
    assert len(bench.beats) == beats + 1


# Closing.


def test_closing_commits_calls_back_and_leaves() -> None:
    """In this order; the answer to the leave ends it."""
    bench = settled(enable_auto_commit="true")
    bench.close()
    assert bench.sent(offset_commit.OffsetCommitRequest)[-1].member_id == MEMBER_ID
    assert bench.told(REVOKED) == []
    bench.answer(offset_commit.OffsetCommitRequest, committed())
    assert bench.changes[-1] == (REVOKED, (P0, P1))
    left = bench.beats[-1]
    assert (left.member_epoch, left.subscribed_topic_names, left.topic_partitions) == (-1, (), ())
    assert not bench.is_closed
    bench.beat(-1)
    assert bench.is_closed


def test_a_static_member_leaves_for_a_while() -> None:
    """Epoch -2 keeps its place."""
    bench = settled(group_instance_id="one")
    bench.close()

    assert bench.beats[-1].member_epoch == -2


def test_a_member_that_never_joined_closes_at_once() -> None:
    """Its join is on the way, so it leaves; without a coordinator there is nothing to say."""
    bench = make()
    bench.automatic.discard(FindCoordinatorRequest)
    bench.poll(100)
    bench.advance(100)
    bench.close()

    assert (bench.is_closed, bench.beats) == (True, [])


def test_a_close_ends_in_time_without_an_answer() -> None:
    """The limit is the smaller one of the call's and `request.timeout.ms`."""
    bench = settled(request_timeout_ms="2000")
    bench.close()
    bench.advance(2_000)

    assert bench.is_closed


# Settings.


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"session.timeout.ms": "9000"}, "session.timeout.ms does not go with"),
        ({"heartbeat.interval.ms": "900"}, "group.consumer.heartbeat.interval.ms holds for all"),
    ],
)
def test_settings_of_the_other_protocol_are_refused(settings: dict[str, str], words: str) -> None:
    """As Java's consumer refuses them."""
    with pytest.raises(ConfigError, match=words):
        ConsumerConfig.from_settings({"group.protocol": "consumer", **settings})
    with pytest.raises(ConfigError, match=r"needs group\.protocol=consumer"):
        ConsumerConfig.from_settings({"group.remote.assignor": "range"})


def test_other_clients_have_no_model_of_it() -> None:
    """The error says what to change."""
    with pytest.raises(ConfigError, match=r"'franz-go' is modelled with group\.protocol"):
        make_consumer(
            "franz-go",
            {"group.protocol": "consumer"},
            client_id="c",
            group_id="g",
            topics=("t",),
            assignors=(),
            bootstrap=(BROKER,),
            member_id="m",
        )


def test_a_late_wakeup_ends_the_next_poll() -> None:
    """As any consumer's."""
    bench: AsyncBench = settled()
    bench.wakeup()
    bench.poll(1_000)

    assert bench.returned[-1] == "WakeupException"
