"""Commits: when no request is sent, what an error means, and who tries again."""

from coordinator_sim.clients.generation import MemberState
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.join_group import JoinGroupRequest
from coordinator_sim.messages.offset_commit import OffsetCommitRequest
from coordinator_sim_conformance.client_cases.bench import MEMBER, Bench, ConsumerBench
from coordinator_sim_conformance.client_cases.case import client_case

_T0 = TopicPartition("t", 0)


def _stable(bench: Bench) -> ConsumerBench:
    """Return a STABLE consumer whose application is between two polls."""
    consumer = bench.consumer()
    consumer.idle()
    return consumer


def _outcomes(consumer: ConsumerBench) -> list[str | None]:
    return [each.error for each in consumer.committed]


@client_case("C-COMMIT-01", "ConsumerCoordinator.sendOffsetCommitRequest")
def commit_while_rebalancing_is_not_sent(bench: Bench) -> None:
    """In a rebalance a commit fails with RebalanceInProgressException, unsent."""
    consumer = bench.consumer()
    consumer.poll()
    consumer.wakeup()
    bench.expect("state", consumer.port.state, MemberState.PREPARING_REBALANCE)
    consumer.commit({_T0: 1}, sync=True)
    bench.expect("outcome", _outcomes(consumer), ["RebalanceInProgressException"])
    bench.expect("requests", consumer.sent(OffsetCommitRequest), [])


@client_case("C-COMMIT-02", "ConsumerCoordinator.sendOffsetCommitRequest")
def commit_outside_the_group_is_not_sent(bench: Bench) -> None:
    """Out of the group a commit fails with CommitFailedException, unsent."""
    consumer = _stable(bench)
    consumer.advance(3_000)
    consumer.beat(ErrorCode.UNKNOWN_MEMBER_ID)
    consumer.advance(100)
    bench.expect("state", consumer.port.state, MemberState.UNJOINED)
    consumer.commit({_T0: 1}, sync=True)
    bench.expect("outcome", _outcomes(consumer), ["CommitFailedException"])
    bench.expect("requests", consumer.sent(OffsetCommitRequest), [])


@client_case("C-COMMIT-03", "ConsumerCoordinatorTest.testCommitOffsetRebalanceInProgress")
def rebalance_at_the_broker_keeps_the_generation(bench: Bench) -> None:
    """REBALANCE_IN_PROGRESS to a commit: rejoin, in the same generation."""
    consumer = _stable(bench)
    consumer.commit({_T0: 1}, sync=True)
    consumer.refuse_commit(ErrorCode.REBALANCE_IN_PROGRESS)
    bench.expect("outcome", _outcomes(consumer), ["RebalanceInProgressException"])
    bench.expect("generation", consumer.port.generation_id, 1)
    consumer.poll()
    joins = consumer.sent(JoinGroupRequest)
    reason = "offset commit failed since group is already rebalancing"
    bench.expect("reasons", [join.reason for join in joins], ["", reason])


@client_case(
    "C-COMMIT-05", "ConsumerCoordinatorTest.testCommitOffsetIllegalGenerationWithNewGeneration"
)
def stale_commit_spares_the_new_generation(bench: Bench) -> None:
    """ILLEGAL_GENERATION to a commit of an older generation, while joining, resets nothing."""
    consumer = bench.consumer()
    consumer.settle(_T0)
    consumer.commit({_T0: 1}, sync=False)
    consumer.advance(3_000)
    consumer.beat(ErrorCode.ILLEGAL_GENERATION)
    bench.expect("state", consumer.port.state, MemberState.PREPARING_REBALANCE)
    consumer.refuse_commit(ErrorCode.ILLEGAL_GENERATION)
    bench.expect("state after it", consumer.port.state, MemberState.PREPARING_REBALANCE)
    bench.expect("member id after it", consumer.port.member_id, MEMBER)
    consumer.join(generation_id=2)
    consumer.assign(_T0)
    bench.expect("outcome", _outcomes(consumer), ["RebalanceInProgressException"])
    bench.expect("generation", consumer.port.generation_id, 2)


@client_case("C-COMMIT-06", "ConsumerCoordinatorTest.testRetryCommitUnknownTopicOrPartition")
def sync_commit_is_repeated_and_async_is_not(bench: Bench) -> None:
    """A retriable error: commitSync tries again after a backoff, commitAsync tells its callback."""
    consumer = _stable(bench)
    consumer.commit({_T0: 1}, sync=True)
    consumer.refuse_commit(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    consumer.advance(100)
    consumer.refuse_commit(ErrorCode.NONE)
    bench.expect("sent at", consumer.sent_at(OffsetCommitRequest), [0, 100])
    bench.expect("commitSync", _outcomes(consumer), [None])
    consumer.commit({_T0: 2}, sync=False)
    consumer.refuse_commit(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    consumer.poll(1_000)
    consumer.advance(1_000)
    bench.expect("commitAsync", _outcomes(consumer)[1:], ["RetriableCommitFailedException"])
    bench.expect("requests", len(consumer.sent(OffsetCommitRequest)), 3)


@client_case("C-COMMIT-08", "ConsumerCoordinatorTest.testCommitOffsetOnly")
def manual_assignment_commits_anonymously(bench: Bench) -> None:
    """Partitions assigned by hand are committed in no generation and by nobody."""
    consumer = bench.consumer(group_instance_id="i", is_subscribed=False)
    consumer.do(consumer.port.assign([_T0], consumer.now_ms))
    consumer.commit({_T0: 1}, sync=True)
    consumer.refuse_commit(ErrorCode.NONE)
    request = consumer.sent(OffsetCommitRequest)[0]
    bench.expect("generation", request.generation_id_or_member_epoch, -1)
    bench.expect("member id", request.member_id, "")
    bench.expect("instance id", request.group_instance_id, None)
    bench.expect("outcome", _outcomes(consumer), [None])
    bench.expect("joins", consumer.sent(JoinGroupRequest), [])
