"""Rules of stored offsets, in both families: transactions, deletion, expiry, refused appends."""

import pytest

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.harness.group_driver import GroupDriver
from coordinator_sim.harness.harness import Harness, Step
from coordinator_sim.kafka.completion import CompleteTransaction
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.kafka.records import GroupMetadataKey
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from coordinator_sim.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from coordinator_sim.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from coordinator_sim.messages.schema import ZERO_UUID
from coordinator_sim.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

JAVA, SCALA = "4.4", "3.9"
BOTH = pytest.mark.parametrize("name", [JAVA, SCALA])
MINUTE_MS = 60_000
PRODUCER = 7


def make(name: str) -> Harness:
    """A broker that keeps offsets for two minutes and looks every minute."""
    config = CoordinatorConfig(
        offsets_retention_ms=2 * MINUTE_MS,
        offsets_retention_check_interval_ms=MINUTE_MS,
        group_initial_rebalance_delay_ms=0,
        offset_metadata_max_bytes=8,
    )
    return Harness(config, profile_named(name))


def topics(offset: int, metadata: str = "") -> tuple[OffsetCommitRequestTopic, ...]:
    """An offset of t-0."""
    return (
        OffsetCommitRequestTopic(
            "t", partitions=(OffsetCommitRequestPartition(0, offset, committed_metadata=metadata),)
        ),
    )


def commit(world: Harness, offset: int, metadata: str = "", retention_ms: int = -1) -> Step:
    """A simple commit to group g."""
    request = OffsetCommitRequest(
        group_id="g", topics=topics(offset, metadata), retention_time_ms=retention_ms
    )
    return world.call(request, api_version=4)


def commit_txn(world: Harness, offset: int, generation_id: int = -1) -> ErrorCode | None:
    """A transactional commit to group g; how it ended, None while it waits."""
    request = TxnOffsetCommitRequest(
        transactional_id="x",
        group_id="g",
        producer_id=PRODUCER,
        producer_epoch=0,
        topics=topics(offset),
        generation_id_or_member_epoch=generation_id,
    )
    response = world.call(request, api_version=3).response
    if response is None:
        return None
    assert isinstance(response, TxnOffsetCommitResponse)
    return response.topics[0].partitions[0].error_code


def end(world: Harness, *, committed: bool) -> Step:
    """The end of the producer's transaction."""
    request = CompleteTransaction(
        partition=world.partition_of("g"),
        producer_id=PRODUCER,
        producer_epoch=0,
        committed=committed,
    )
    return world.complete_transaction(request)


def fetched(world: Harness, *, stable: bool = False) -> int | ErrorCode:
    """The offset of t-0, or the error of it."""
    wanted = OffsetFetchRequestGroup(
        group_id="g", topics=(OffsetFetchRequestTopics("t", partition_indexes=(0,)),)
    )
    request = OffsetFetchRequest(groups=(wanted,), require_stable=stable)
    response = world.call(request, api_version=8).response
    assert isinstance(response, OffsetFetchResponse)
    offset = response.groups[0].topics[0].partitions[0]
    return offset.committed_offset if offset.error_code is ErrorCode.NONE else offset.error_code


def delete(world: Harness) -> OffsetDeleteResponse:
    """An OffsetDelete of t-0."""
    request = OffsetDeleteRequest(
        group_id="g", topics=(OffsetDeleteRequestTopic("t", (OffsetDeleteRequestPartition(0),)),)
    )
    response = world.call(request, api_version=0).response
    assert isinstance(response, OffsetDeleteResponse)
    return response


@BOTH
def test_open_transaction_is_unstable_and_then_counts(name: str) -> None:
    """Until the marker the old offset is read, or UNSTABLE_OFFSET_COMMIT by those who ask."""
    world = make(name)
    commit(world, 1)
    assert commit_txn(world, 2) is ErrorCode.NONE
    assert (fetched(world), fetched(world, stable=True)) == (1, ErrorCode.UNSTABLE_OFFSET_COMMIT)

    end(world, committed=True)

    assert (fetched(world), fetched(world, stable=True)) == (2, 2)


@BOTH
def test_aborted_transaction_leaves_the_old_offset(name: str) -> None:
    """An abort drops what the producer held; a later commit marker finds nothing."""
    world = make(name)
    commit(world, 1)
    commit_txn(world, 2)
    end(world, committed=False)
    end(world, committed=True)
    assert fetched(world, stable=True) == 1


@BOTH
def test_plain_commit_between_outlives_the_marker(name: str) -> None:
    """The record further on in the log wins, wherever the marker is (KAFKA-5247)."""
    world = make(name)
    commit_txn(world, 2)
    commit(world, 3)
    end(world, committed=True)
    assert fetched(world) == 3


@BOTH
def test_open_transaction_survives_a_failover(name: str) -> None:
    """A load finds the offsets of open transactions, and the marker makes them count."""
    world = make(name)
    commit(world, 1)
    commit_txn(world, 2)
    world.resign()
    world.elect(leader_epoch=2)
    assert fetched(world, stable=True) is ErrorCode.UNSTABLE_OFFSET_COMMIT

    end(world, committed=True)

    assert fetched(world) == 2


@pytest.mark.parametrize(
    ("name", "error"),
    [(JAVA, ErrorCode.ILLEGAL_GENERATION), (SCALA, ErrorCode.UNKNOWN_MEMBER_ID)],
)
def test_member_of_an_unknown_group_cannot_commit_in_a_transaction(
    name: str, error: ErrorCode
) -> None:
    """Java knows no such group; Scala makes it, and then knows no such member."""
    assert commit_txn(make(name), 2, generation_id=1) is error


@BOTH
def test_failed_verification_is_told_every_partition(name: str) -> None:
    """NETWORK_EXCEPTION becomes the error that old clients repeat at once."""
    world = make(name)
    world.fail_verification(ErrorCode.NETWORK_EXCEPTION)
    assert commit_txn(world, 2) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.fail_verification(ErrorCode.INVALID_TXN_STATE)
    assert commit_txn(world, 2) is ErrorCode.INVALID_TXN_STATE


@BOTH
def test_refused_append_leaves_no_open_transaction(name: str) -> None:
    """What was about to be held is given up with the append."""
    world = make(name)
    commit(world, 1)
    world.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert commit_txn(world, 2) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert fetched(world, stable=True) == 1


@pytest.mark.parametrize(
    ("name", "error"),
    [(JAVA, ErrorCode.UNKNOWN_SERVER_ERROR), (SCALA, ErrorCode.INVALID_COMMIT_OFFSET_SIZE)],
)
def test_too_large_batch_is_told_by_family(name: str, error: ErrorCode) -> None:
    """The Scala coordinator has an error of its own for it."""
    world = make(name)
    world.fail_appends(ErrorCode.MESSAGE_TOO_LARGE)
    response = commit(world, 1).response
    assert isinstance(response, OffsetCommitResponse)
    assert response.topics[0].partitions[0].error_code is error


@BOTH
def test_long_metadata_is_refused_partition_by_partition(name: str) -> None:
    """Partitions with too long metadata are refused; a commit of these alone appends nothing."""
    world = make(name)
    step = commit(world, 1, metadata="123456789")
    assert isinstance(step.response, OffsetCommitResponse)
    outcome = step.response.topics[0].partitions[0]
    assert outcome.error_code is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert step.batches == ()


def test_scala_plain_commit_under_way_is_unstable() -> None:
    """A commit that waits for replication is not read yet, and is unstable."""
    world = make(SCALA)
    commit(world, 1)
    world.hold(high_watermark=True)
    commit(world, 2)
    assert (fetched(world), fetched(world, stable=True)) == (1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    world.commit()
    assert fetched(world, stable=True) == 2


@pytest.mark.parametrize(("name", "is_left"), [(JAVA, True), (SCALA, False)])
def test_deleting_the_last_offset_buries_the_group_in_scala(name: str, is_left: bool) -> None:
    """Java leaves the group to the next expiry."""
    world = make(name)
    commit(world, 1)
    assert delete(world).error_code is ErrorCode.NONE
    assert (world.coordinator.group("g") is not None) is is_left


@BOTH
def test_offset_of_an_unknown_group_cannot_be_deleted(name: str) -> None:
    """The error stands alone."""
    answer = delete(make(name))
    assert (answer.error_code, answer.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, ())


@BOTH
def test_offsets_of_a_deleted_topic_go(name: str) -> None:
    """Whatever the group is doing."""
    world = make(name)
    world.set_topic("t", 1)
    commit(world, 1)
    world.remove_topics(["t"])
    assert fetched(world) == -1


@BOTH
def test_simple_offset_expires_with_its_group(name: str) -> None:
    """Retention counts from the commit, inclusively; the group goes in the same run."""
    world = make(name)
    commit(world, 1)
    world.advance(2 * MINUTE_MS - 1)
    assert fetched(world) == 1

    step = world.advance(1)

    keys = [type(record.key) for batch in step.batches for record in batch.records]
    # In Scala a group of generation 0 was never stored.
    assert (GroupMetadataKey in keys) is (name == JAVA)
    assert world.coordinator.group("g") is None


@BOTH
def test_explicit_retention_replaces_the_broker_s(name: str) -> None:
    """An offset that may be dropped at once is, by the next run."""
    world = make(name)
    commit(world, 1, retention_ms=0)
    world.advance(MINUTE_MS)
    assert fetched(world) == -1


def test_java_repeats_a_refused_expiry_one_interval_later() -> None:
    """An expiry whose append was refused is tried again one check interval later."""
    world = make(JAVA)
    commit(world, 1)
    world.advance(MINUTE_MS)
    world.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS)
    world.advance(MINUTE_MS)
    assert fetched(world) == 1
    world.advance(MINUTE_MS)
    assert fetched(world) == -1


def test_java_keeps_a_group_with_an_open_transaction() -> None:
    """The committed offset beside the open one does not expire either."""
    world = make(JAVA)
    commit(world, 1)
    commit_txn(world, 2)
    world.advance(10 * MINUTE_MS)
    assert fetched(world) == 1
    assert world.coordinator.group("g") is not None


@BOTH
def test_offsets_of_a_stable_group_do_not_expire_if_its_subscriptions_are_unknown(
    name: str,
) -> None:
    """Members may use what they did not commit lately; the broker cannot know."""
    group = GroupDriver(make(name))
    (member,) = group.stable(1)
    commit_as_member = OffsetCommitRequest(
        group_id="g",
        topics=topics(1),
        generation_id_or_member_epoch=group.generation_id,
        member_id=member,
    )
    group.harness.call(commit_as_member, api_version=8)
    for _ in range(30):
        group.harness.advance(5_000)
        group.heartbeat(member, group.generation_id)
    assert fetched(group.harness) == 1


def test_offset_of_an_earlier_topic_of_that_name_is_not_found() -> None:
    """Who asks by the new topic's id is told that there is none."""
    world = make(JAVA)
    old, new = bytes(15) + b"\x01", bytes(15) + b"\x02"
    stored = OffsetCommitRequestTopic(
        "t", partitions=(OffsetCommitRequestPartition(0, 5),), topic_id=old
    )
    world.call(OffsetCommitRequest(group_id="g", topics=(stored,)), api_version=9)

    found = []
    for topic_id in (ZERO_UUID, old, new):
        wanted = OffsetFetchRequestGroup(
            group_id="g",
            topics=(OffsetFetchRequestTopics("t", partition_indexes=(0,), topic_id=topic_id),),
        )
        request = OffsetFetchRequest(groups=(wanted,))
        result = world.coordinator.handle(
            request, RequestContext(token=99, api_version=9), world.now_ms
        )
        (reply,) = result.replies
        assert isinstance(reply.response, OffsetFetchResponse)
        found.append(reply.response.groups[0].topics[0].partitions[0].committed_offset)
    assert found == [5, 5, -1]
