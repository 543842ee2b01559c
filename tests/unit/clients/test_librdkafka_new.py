"""The model of librdkafka's consumer of KIP-848, apart from what recordings show."""

import msgspec
import pytest

from coordinator_sim.clients.client_traits import LIBRDKAFKA_CONSUMER
from coordinator_sim.clients.consumer_models import make_consumer
from coordinator_sim.clients.effects import CallbackKind, Connect, RunCallback
from coordinator_sim.clients.librdkafka import LibrdkafkaNewConsumer
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from coordinator_sim.messages.find_coordinator import FindCoordinatorRequest
from coordinator_sim.messages.join_group import JoinGroupResponse
from coordinator_sim.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseTopic,
)
from coordinator_sim.messages.offset_commit import OffsetCommitRequest
from coordinator_sim.messages.offset_fetch import OffsetFetchRequest
from coordinator_sim_conformance.client_cases.bench import BROKER, COORDINATOR, GROUP, Bench
from tests.unit.clients.async_bench import INTERVAL_MS, MEMBER_ID, HeartbeatBench
from tests.unit.clients.model_bench import P0, P1, POLL_MS, PolledBench

ASSIGNED = CallbackKind.PARTITIONS_ASSIGNED
REVOKED = CallbackKind.PARTITIONS_REVOKED
LOST = CallbackKind.PARTITIONS_LOST


class NewBench(PolledBench[LibrdkafkaNewConsumer], HeartbeatBench[LibrdkafkaNewConsumer]):
    """A librdkafka member whose application polls again and again."""

    def without_polls(self, for_ms: int) -> None:
        """Let time pass while the application does not poll."""
        self.run(self.now_ms + for_ms, polling=False)


def make(*topics: str, **settings: str) -> NewBench:
    """A consumer that has not polled yet, without automatic commits."""
    chosen = {"group_protocol": "consumer", "enable_auto_commit": "false", **settings}
    port = make_consumer(
        "librdkafka",
        {name.replace("_", "."): value for name, value in chosen.items()},
        client_id="c",
        group_id=GROUP,
        topics=topics or ("t",),
        assignors=(),
        bootstrap=(BROKER,),
        member_id=MEMBER_ID,
    )
    assert isinstance(port, LibrdkafkaNewConsumer)
    return NewBench(Bench(), port, topics={"t": 2})


def joined(**settings: str) -> NewBench:
    """A member that polls, at epoch 1, without a partition."""
    bench = make(**settings)
    bench.poll()
    bench.beat(1, {})
    return bench


def settled(**settings: str) -> NewBench:
    """A member at epoch 1 that owns both partitions, with positions, and polls."""
    bench = joined(**settings)
    bench.advance(INTERVAL_MS)
    bench.beat(1, {"t": (0, 1)})
    bench.offsets()
    bench.beat(1)
    assert bench.port.owned_partitions == (P0, P1)
    return bench


def test_a_member_without_partitions_tells_everything_again_and_again() -> None:
    """It stays in the state of a member that joins until it is assigned something."""
    bench = joined()
    bench.advance(INTERVAL_MS)

    first, second = bench.beats
    assert (first.member_epoch, second.member_epoch) == (0, 1)
    assert first == msgspec.structs.replace(second, member_epoch=0)
    assert second.subscribed_topic_names == ("t",)
    assert second.topic_partitions == ()


def test_names_and_expressions_are_told_apart() -> None:
    """Names come last first, expressions as one."""
    bench = make("a", "^x.*", "b", "^y")
    bench.poll()

    (beat,) = bench.beats
    assert beat.subscribed_topic_names == ("b", "a")
    assert beat.subscribed_topic_regex == "(^x.*)|(^y)"


def test_the_rack_and_the_assignor_are_told_when_joining() -> None:
    """And never afterwards, as long as nothing is lost."""
    bench = settled(client_rack="r", group_remote_assignor="range")
    bench.advance(INTERVAL_MS)

    first, last = bench.beats[0], bench.beats[-1]
    assert (first.rack_id, first.server_assignor) == ("r", "range")
    assert (last.rack_id, last.server_assignor, last.topic_partitions) == (None, None, None)


def test_a_topic_that_nobody_knows_is_asked_for_with_every_heartbeat() -> None:
    """What is known of the target is taken over meanwhile."""
    bench = joined()
    bench.topics["u"] = 1
    known = bench.topics.pop("u")
    bench.advance(INTERVAL_MS)
    bench.beat(1, {"t": (0,), "u": (0,)})
    assert bench.told(ASSIGNED)[-1].partitions == (P0,)
    bench.offsets()
    bench.beat(1)
    bench.topics["u"] = known
    bench.advance(INTERVAL_MS)
    bench.beat(1)

    assert bench.told(ASSIGNED)[-1].partitions == (TopicPartition("u", 0),)


def test_a_target_that_is_taken_back_is_forgotten() -> None:
    """The newest answer counts, and what a member has already is no news."""
    bench = settled()
    bench.automatic.discard(RunCallback)
    bench.advance(INTERVAL_MS)
    bench.beat(2, {"t": (0,)})
    bench.advance(INTERVAL_MS)
    bench.beat(2, {"t": (1,)})
    bench.advance(INTERVAL_MS)
    bench.beat(2, {"t": (0,)})
    bench.release()
    bench.beat(2)

    assert bench.changes[1:] == [(REVOKED, (P1,)), (ASSIGNED, ())]


def test_a_lost_query_for_names_is_repeated_with_the_next_heartbeat() -> None:
    """The target waits as the next one."""
    bench = joined()
    bench.automatic.discard(MetadataRequest)
    bench.advance(INTERVAL_MS)
    bench.beat(1, {"t": (0, 1)})
    bench.disconnect()
    bench.advance(1_000)
    bench.automatic.add(MetadataRequest)
    bench.advance(INTERVAL_MS)
    assert bench.told(ASSIGNED) == []
    bench.beat(1)

    assert bench.told(ASSIGNED)[-1].partitions == (P0, P1)


def test_names_that_come_too_late_are_only_kept() -> None:
    """The member was fenced meanwhile, and has no target any more."""
    bench = joined()
    bench.automatic.discard(MetadataRequest)
    bench.advance(INTERVAL_MS)
    bench.beat(1, {"t": (0, 1)})
    bench.advance(INTERVAL_MS)
    bench.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
    bench.answer(MetadataRequest, bench.metadata())
    assert bench.told(ASSIGNED) == []
    bench.advance(1)
    bench.beat(3, {"t": (0, 1)})

    assert bench.told(ASSIGNED)[-1].partitions == (P0, P1)
    assert bench.waiting(MetadataRequest) == 0


def test_names_that_come_while_everything_is_lost_begin_nothing() -> None:
    """The member joins anew first; a topic that was deleted has no name."""
    bench = settled()
    bench.automatic -= {MetadataRequest, RunCallback}
    bench.topics["u"] = 1
    bench.advance(INTERVAL_MS)
    bench.beat(2, {"t": (0,), "u": (0,)})
    bench.advance(INTERVAL_MS)
    bench.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
    gone = MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None)
    bench.answer(MetadataRequest, MetadataResponse(brokers=(BROKER,), topics=(gone,)))

    assert bench.changes[1:] == [(LOST, (P0, P1))]


def test_a_changed_subscription_waits_for_the_rebalance_that_goes_on() -> None:
    """The heartbeats meanwhile do not tell it; the first one afterwards does."""
    bench = settled()
    bench.automatic.discard(RunCallback)
    bench.advance(INTERVAL_MS)
    bench.beat(2, {"t": (0,)})
    bench.do(bench.port.subscribe(("t", "u"), bench.now_ms))
    assert bench.beats[-1].subscribed_topic_names is None
    bench.beat(2)
    bench.release()

    assert bench.beats[-1].subscribed_topic_names == ("u", "t")
    bench.beat(2)
    bench.advance(INTERVAL_MS)
    assert bench.beats[-1].subscribed_topic_names is None


def test_a_subscription_that_changes_while_a_heartbeat_waits_is_told_by_the_next() -> None:
    """At once, not after the interval."""
    bench = settled()
    bench.advance(INTERVAL_MS)
    bench.do(bench.port.subscribe(("u",), bench.now_ms))
    assert bench.beats[-1].subscribed_topic_names is None
    bench.beat(1)
    bench.advance(2)

    assert bench.beats[-1].subscribed_topic_names == ("u",)


def test_what_was_reconciled_while_a_heartbeat_waits_is_told_by_the_next() -> None:
    """Its answer acknowledges nothing."""
    bench = settled()
    bench.automatic.discard(RunCallback)
    bench.advance(INTERVAL_MS)
    bench.beat(2, {"t": (0,)})
    bench.advance(INTERVAL_MS)
    bench.release()
    assert bench.beats[-1].topic_partitions is None
    bench.answer(
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatResponse(member_epoch=2, heartbeat_interval_ms=INTERVAL_MS),
    )
    bench.advance(2)

    told = bench.beats[-1].topic_partitions
    assert told is not None
    assert [each.partitions for each in told] == [(0,)]


def test_a_subscription_that_was_not_answered_is_told_again() -> None:
    """Until a heartbeat succeeds."""
    bench = settled()
    bench.do(bench.port.subscribe(("u",), bench.now_ms))
    bench.disconnect()
    bench.advance(INTERVAL_MS)

    assert [beat.subscribed_topic_names for beat in bench.beats[-2:]] == [("u",), ("u",)]


def test_unsubscribing_leaves_and_subscribing_again_joins() -> None:
    """The new subscription waits for the end of the leave."""
    bench = settled()
    bench.do(bench.port.subscribe((), bench.now_ms))
    assert bench.told(REVOKED)[-1].partitions == (P0, P1)
    assert bench.beats[-1].member_epoch == -1
    bench.do(bench.port.subscribe(("t",), bench.now_ms))
    assert bench.beats[-1].member_epoch == -1
    bench.beat(-1)

    assert bench.beats[-1].member_epoch == 0
    assert bench.beats[-1].member_id == MEMBER_ID


def test_unsubscribing_before_the_first_answer_leaves_nothing() -> None:
    """A member that never joined tells nobody; what comes late is ignored."""
    bench = make()
    bench.poll()
    bench.do(bench.port.subscribe((), bench.now_ms))
    bench.beat(1, {"t": (0, 1)})
    bench.advance(2 * INTERVAL_MS)
    bench.close()
    bench.advance(1_000)

    assert bench.is_closed
    assert len(bench.beats) == 1
    assert bench.callbacks == []


@pytest.mark.parametrize("error", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_member_that_is_fenced_while_it_rebalances_ends_that_first(error: ErrorCode) -> None:
    """Only then everything is lost, and it joins anew under its id."""
    bench = settled()
    bench.automatic.discard(RunCallback)
    bench.advance(INTERVAL_MS)
    bench.beat(2, {"t": (0,)})
    bench.advance(INTERVAL_MS)
    bench.refuse(error)
    bench.release()
    bench.advance(1)

    assert bench.changes[1:] == [(REVOKED, (P1,)), (ASSIGNED, ()), (LOST, (P0,))]
    assert (bench.beats[-1].member_epoch, bench.beats[-1].member_id) == (0, MEMBER_ID)


def test_an_error_that_no_one_foresaw_is_fatal() -> None:
    """The next poll raises it; everything is dropped without a callback, and no leave is sent."""
    bench = settled()
    bench.advance(INTERVAL_MS)
    bench.refuse(ErrorCode.GROUP_ID_NOT_FOUND)
    assert bench.returned[-1] == "GroupIdNotFoundException"
    assert bench.port.owned_partitions == ()
    count = len(bench.beats)
    bench.close()
    bench.advance(1_000)

    assert bench.is_closed
    assert len(bench.beats) == count
    assert bench.told(REVOKED) == bench.told(LOST) == []


def test_an_assignment_that_a_fatal_error_overtakes_is_given_up() -> None:
    """The application takes it over, which means nothing any more."""
    bench = joined()
    bench.automatic.discard(RunCallback)
    bench.advance(INTERVAL_MS)
    bench.beat(1, {"t": (0, 1)})
    bench.advance(INTERVAL_MS)
    bench.refuse(ErrorCode.UNSUPPORTED_ASSIGNOR)
    bench.release()

    assert bench.port.owned_partitions == ()
    assert bench.waiting(OffsetFetchRequest) == 0


def test_refused_topics_change_nothing() -> None:
    """The client only logs it."""
    bench = settled()
    bench.advance(INTERVAL_MS)
    bench.refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    bench.advance(INTERVAL_MS)

    assert bench.beats[-1].member_epoch == 1
    assert bench.port.owned_partitions == (P0, P1)


def test_a_heartbeat_is_tried_again_twice() -> None:
    """After 100 and 200 ms; then the interval decides."""
    bench = settled()
    bench.advance(INTERVAL_MS)
    first_ms = bench.sent_at(ConsumerGroupHeartbeatRequest)[-1]
    for _ in range(3):
        bench.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        bench.advance(1_000)
    bench.advance(INTERVAL_MS)

    beats = [ms - first_ms for ms in bench.sent_at(ConsumerGroupHeartbeatRequest)[-4:]]
    assert beats == [0, 101, 1_201, INTERVAL_MS]


def test_a_heartbeat_to_be_sent_again_is_dropped_with_the_coordinator() -> None:
    """It would go to nobody; the next one is sent when there is a coordinator."""
    bench = settled()
    bench.advance(INTERVAL_MS)
    bench.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.automatic.discard(Connect)
    bench.disconnect(BROKER.node_id)
    bench.advance(1_000)
    count = len(bench.beats)
    bench.automatic.add(Connect)
    bench.connect(BROKER.node_id)
    bench.advance(1)

    assert len(bench.beats) == count + 1


def test_an_unanswered_heartbeat_is_given_up_at_a_full_second() -> None:
    """The connection is closed with it; the next heartbeat tells nothing that is known."""
    bench = settled()
    bench.advance(INTERVAL_MS)
    bench.advance(INTERVAL_MS)
    assert COORDINATOR in bench.disconnected
    bench.advance(1_000)

    assert bench.beats[-1].topic_partitions is None


def test_the_first_heartbeat_is_repeated_when_its_connection_breaks() -> None:
    """Without an interval there is nothing else to wait for."""
    bench = make()
    bench.poll()
    bench.disconnect()
    bench.advance(200)

    assert len(bench.beats) == 2


def test_another_coordinator_is_told_at_once() -> None:
    """The heartbeat does not wait for its interval."""
    bench = settled()
    bench.automatic.discard(FindCoordinatorRequest)
    bench.advance(INTERVAL_MS)
    bench.refuse(ErrorCode.NOT_COORDINATOR)
    bench.find(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    bench.advance(500)
    count = len(bench.beats)
    bench.find()
    bench.advance(2)

    assert len(bench.beats) == count + 1
    assert bench.beats[-1].topic_partitions is not None


def test_one_lost_broker_of_two_is_not_the_end_of_the_coordinator() -> None:
    """Only when all are gone does the client begin with the first ones."""
    bench = settled()
    other = msgspec.structs.replace(BROKER, node_id=2)
    bench.automatic -= {Connect, MetadataRequest}
    bench.do(bench.port.subscribe(("t", "u"), bench.now_ms))
    bench.advance(1_000)
    bench.answer(MetadataRequest, MetadataResponse(brokers=(BROKER, other)))
    bench.disconnect(BROKER.node_id)
    bench.disconnect(BROKER.node_id)

    assert bench.port.coordinator_node == BROKER.node_id
    bench.disconnect(other.node_id)
    assert bench.port.coordinator_node is None


def test_a_member_without_partitions_leaves() -> None:
    """Nobody has to be called back for that."""
    bench = joined()
    bench.close()
    bench.beat(-1)
    bench.advance(1)

    assert bench.is_closed
    assert [beat.member_epoch for beat in bench.beats] == [0, -1]


def test_a_member_without_a_coordinator_leaves_in_silence() -> None:
    """Closing does not wait for one."""
    bench = settled()
    bench.automatic.discard(Connect)
    bench.disconnect()
    bench.close()
    bench.advance(1_000)

    assert bench.is_closed
    assert all(beat.member_epoch >= 0 for beat in bench.beats)


def test_a_leave_that_is_not_answered_ends_with_its_connection() -> None:
    """A heartbeat in flight beside it may hear that the group is gone."""
    bench = settled()
    bench.advance(INTERVAL_MS)
    bench.close()
    bench.refuse(ErrorCode.GROUP_ID_NOT_FOUND)
    assert not bench.is_closed
    bench.disconnect()
    bench.advance(1)

    assert bench.is_closed


def test_a_leave_that_was_asked_for_twice_is_sent_once() -> None:
    """The application stops polling while the member leaves already."""
    bench = settled()
    bench.advance(INTERVAL_MS)
    bench.close()
    bench.beat(1)
    bench.advance(1)

    assert [beat.member_epoch for beat in bench.beats].count(-1) == 1


def test_closing_while_partitions_are_revoked_gives_up_the_rest() -> None:
    """The application is called once more, and then the member leaves."""
    bench = settled()
    bench.automatic.discard(RunCallback)
    bench.advance(INTERVAL_MS)
    bench.beat(2, {"t": (0,)})
    bench.close()
    bench.release()

    assert bench.changes[1:] == [(REVOKED, (P1,)), (REVOKED, (P0,))]
    assert bench.beats[-1].member_epoch == -1
    bench.beat(-1)
    bench.advance(1)
    assert bench.is_closed


def test_closing_while_a_revocation_is_committed_leaves_afterwards() -> None:
    """The commit is waited for."""
    bench = settled(enable_auto_commit="true")
    bench.port.advance_position(P1, 20)
    bench.advance(INTERVAL_MS)
    if bench.waiting(OffsetCommitRequest):
        bench.refuse_commit(ErrorCode.NONE)
    bench.port.advance_position(P1, 30)
    bench.beat(2, {})
    assert bench.waiting(OffsetCommitRequest) == 1
    bench.close()
    bench.refuse_commit(ErrorCode.NONE)
    bench.beat(-1)
    bench.advance(1)

    assert bench.is_closed
    assert [beat.member_epoch for beat in bench.beats].count(-1) == 1


def test_a_member_that_stops_polling_without_partitions_leaves_at_once() -> None:
    """Nobody has to be told; it is back when the application polls."""
    bench = settled(max_poll_interval_ms="2000")
    bench.advance(INTERVAL_MS)
    bench.beat(2, {"t": ()})
    bench.beat(2)
    bench.advance(POLL_MS)
    bench.without_polls(4_000)
    assert bench.beats[-1].member_epoch == -1
    bench.beat(-1)
    bench.without_polls(1_000)
    assert bench.beats[-1].member_epoch == -1
    bench.poll()
    bench.advance(1_000)

    assert bench.beats[-1].member_epoch == 0


def test_a_commit_of_a_stale_epoch_is_repeated_until_it_is_newer() -> None:
    """A commit of the client's own, that is; the application hears that its own failed."""
    bench = settled(enable_auto_commit="true", auto_commit_interval_ms="1000")
    bench.port.advance_position(P0, 20)
    bench.advance(1_000)
    bench.refuse_commit(ErrorCode.STALE_MEMBER_EPOCH)
    bench.beat(2)
    bench.refuse_commit(ErrorCode.STALE_MEMBER_EPOCH)
    token, effects = bench.port.commit({P0: 20}, sync=True, now_ms=bench.now_ms)
    bench.do(effects)
    bench.refuse_commit(ErrorCode.NONE)
    bench.refuse_commit(ErrorCode.STALE_MEMBER_EPOCH)

    epochs = [each.generation_id_or_member_epoch for each in bench.sent(OffsetCommitRequest)]
    assert epochs == [1, 1, 2, 2]
    assert [(each.token, each.error) for each in bench.committed] == [
        (token, "CommitFailedException")
    ]


def test_a_commit_of_a_member_that_nobody_knows_hastens_the_heartbeat() -> None:
    """That one then hears of it, too."""
    bench = settled()
    _, effects = bench.port.commit({P0: 20}, sync=True, now_ms=bench.now_ms)
    bench.do(effects)
    count = len(bench.beats)
    bench.refuse_commit(ErrorCode.UNKNOWN_MEMBER_ID)

    assert len(bench.beats) == count + 1
    assert bench.port.owned_partitions == (P0, P1)
    assert [each.error for each in bench.committed] == ["CommitFailedException"]


def test_other_errors_of_a_commit_are_those_of_any_librdkafka_consumer() -> None:
    """A coordinator that loads is asked again, and a broken connection does not lose a commit."""
    bench = settled()
    _, effects = bench.port.commit({P0: 20}, sync=True, now_ms=bench.now_ms)
    bench.do(effects)
    bench.refuse_commit(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.advance(1_000)
    bench.disconnect()
    bench.advance(1_000)
    bench.refuse_commit(ErrorCode.NONE)

    assert [each.error for each in bench.committed] == [None]


def test_a_refused_commit_is_sent_again_twice() -> None:
    """After 100 and 200 ms, as it was; then the application hears of the error."""
    bench = settled()
    token, effects = bench.port.commit({P0: 20}, sync=True, now_ms=bench.now_ms)
    bench.do(effects)
    first_ms = bench.now_ms
    for _ in range(3):
        bench.refuse_commit(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        bench.advance(300)

    sent = [at_ms - first_ms for at_ms in bench.sent_at(OffsetCommitRequest)]
    assert sent == [0, 100, 500]
    assert [(each.token, each.error) for each in bench.committed] == [
        (token, "CoordinatorLoadInProgressException")
    ]


def test_two_refused_commits_wait_each_for_itself() -> None:
    """Each has its backoff."""
    bench = settled()
    first_ms = bench.now_ms
    for offset in (20, 21):
        bench.do(bench.port.commit({P0: offset}, sync=False, now_ms=bench.now_ms)[1])
        bench.refuse_commit(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        bench.advance(40)
    bench.advance(200)

    sent = [at_ms - first_ms for at_ms in bench.sent_at(OffsetCommitRequest)]
    assert sent == [0, 40, 100, 140]


def test_nothing_is_committed_after_a_fatal_error() -> None:
    """A commit that is refused for good ends the client's own, too."""
    bench = settled(enable_auto_commit="true", auto_commit_interval_ms="1000")
    bench.port.advance_position(P0, 20)
    bench.advance(1_000)
    bench.refuse_commit(ErrorCode.FENCED_INSTANCE_ID)
    bench.port.advance_position(P0, 30)
    bench.advance(2_000)

    assert len(bench.sent(OffsetCommitRequest)) == 1
    assert "FencedInstanceIdException" in bench.returned


def test_a_commit_at_the_wrong_coordinator_waits_for_the_right_one() -> None:
    """Sent again twice, it is made anew afterwards; without a coordinator it waits at once."""
    bench = settled()
    _, effects = bench.port.commit({P0: 20}, sync=True, now_ms=bench.now_ms)
    bench.do(effects)
    for _ in range(3):
        bench.refuse_commit(ErrorCode.NOT_COORDINATOR)
        bench.advance(600)
    assert bench.waiting(OffsetCommitRequest) == 1
    bench.automatic.discard(FindCoordinatorRequest)
    bench.refuse_commit(ErrorCode.NOT_COORDINATOR)
    bench.advance(600)
    assert bench.waiting(OffsetCommitRequest) == 0
    bench.find()
    bench.advance(100)
    bench.refuse_commit(ErrorCode.NONE)

    assert len(bench.sent(OffsetCommitRequest)) == 5
    assert [each.error for each in bench.committed] == [None]


def test_offsets_are_looked_up_again_after_a_break() -> None:
    """The partitions wait for them."""
    bench = joined()
    bench.advance(INTERVAL_MS)
    bench.beat(1, {"t": (0, 1)})
    bench.disconnect()
    bench.advance(1_000)
    bench.offsets()

    assert bench.port.positions == {P0: 10, P1: 10}


def test_metadata_is_asked_for_again_after_a_break() -> None:
    """The refresh of known topics is any client's."""
    bench = make()
    bench.automatic.discard(MetadataRequest)
    bench.poll()
    bench.disconnect(BROKER.node_id)
    bench.advance(1_000)
    bench.answer(MetadataRequest, MetadataResponse(brokers=(BROKER,)))

    assert bench.waiting(MetadataRequest) == 0


def test_an_answer_to_no_request_is_dropped() -> None:
    """Requests are found by their ids; an answer of another kind is a fault of the driver."""
    bench = settled()
    assert bench.port.on_unexpected_response(COORDINATOR, bench.now_ms) == ()
    bench.advance(INTERVAL_MS)
    with pytest.raises(InvariantViolation, match="JoinGroupResponse answers a HEARTBEAT request"):
        bench.answer(ConsumerGroupHeartbeatRequest, JoinGroupResponse(protocol_name=None))


def test_the_traits_are_librdkafkas_without_assignors() -> None:
    """Everything else is the client's, whichever protocol it speaks."""
    port = make().port
    assert port.traits is LIBRDKAFKA_CONSUMER
    assert not port.traits.has_assignors


def test_a_member_takes_the_id_that_the_coordinator_tells() -> None:
    """As of a broker before 4.0, which gives ids out."""
    bench = make()
    bench.poll()
    bench.answer(
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatResponse(member_id="given", member_epoch=1, heartbeat_interval_ms=0),
    )
    bench.advance(10)

    assert bench.port.member_id == "given"
    assert bench.beats[-1].member_id == "given"
