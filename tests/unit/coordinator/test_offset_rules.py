"""Stored offsets, where no script sees them: verification, ids of topics, counts, the trace."""

import pytest

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.offsets.commit_validation import verification_error
from coordinator_sim.harness.group_driver import GroupDriver, answer
from coordinator_sim.harness.harness import Harness
from coordinator_sim.kafka.completion import CompleteTransaction, TransactionCompleted
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.messages import offset_commit, offset_delete, offset_fetch, txn_offset_commit
from coordinator_sim.messages.delete_groups import DeleteGroupsRequest
from coordinator_sim.messages.schema import ZERO_UUID
from coordinator_sim.trace.events import Event

PRODUCER = 7


def make(profile: str, materialisation_ms: int = 0) -> Harness:
    """A broker with one offsets partition and short metadata."""
    config = CoordinatorConfig(
        offsets_topic_num_partitions=1,
        offset_metadata_max_bytes=8,
        marker_materialisation_ms=materialisation_ms,
    )
    return Harness(config, profile_named(profile))


def topics(
    *partitions: int, metadata: str = "", topic_id: bytes = ZERO_UUID
) -> tuple[offset_commit.OffsetCommitRequestTopic, ...]:
    """Offset 5 of these partitions of t."""
    entries = tuple(
        offset_commit.OffsetCommitRequestPartition(index, 5, committed_metadata=metadata)
        for index in partitions
    )
    return (offset_commit.OffsetCommitRequestTopic("t", partitions=entries, topic_id=topic_id),)


def commit_txn(world: Harness) -> ErrorCode:
    """A transactional commit of t-0 to group g."""
    request = txn_offset_commit.TxnOffsetCommitRequest(
        transactional_id="x", group_id="g", producer_id=PRODUCER, producer_epoch=0, topics=topics(0)
    )
    response = answer(world.call(request, api_version=3), txn_offset_commit.TxnOffsetCommitResponse)
    return response.topics[0].partitions[0].error_code


def fetched(
    world: Harness, *, stable: bool = False, topic_id: bytes = ZERO_UUID
) -> offset_fetch.OffsetFetchResponsePartitions:
    """The offset of t-0 in group g."""
    named = offset_fetch.OffsetFetchRequestTopics("t", partition_indexes=(0,), topic_id=topic_id)
    wanted = offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=(named,))
    request = offset_fetch.OffsetFetchRequest(groups=(wanted,), require_stable=stable)
    context = RequestContext(token=99, api_version=9)
    (reply,) = world.coordinator.handle(request, context, world.now_ms).replies
    assert isinstance(reply.response, offset_fetch.OffsetFetchResponse)
    return reply.response.groups[0].topics[0].partitions[0]


@pytest.mark.parametrize("profile", ["3.9", "4.4"])
def test_failed_verification_is_the_error_of_every_partition(profile: str) -> None:
    """NETWORK_EXCEPTION becomes the error that old clients repeat at once."""
    world = make(profile)
    world.fail_verification(ErrorCode.NETWORK_EXCEPTION)
    assert commit_txn(world) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.fail_verification(ErrorCode.INVALID_TXN_STATE)
    assert commit_txn(world) is ErrorCode.INVALID_TXN_STATE


def test_a_transaction_that_is_not_open_is_abortable_since_version_4() -> None:
    """Before it is an invalid state; other errors stay as they are."""
    found = [
        verification_error(error, version)
        for error in (ErrorCode.INVALID_TXN_STATE, ErrorCode.NETWORK_EXCEPTION)
        for version in (3, 4, 5)
    ]
    assert found == [
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.TRANSACTION_ABORTABLE,
        *[ErrorCode.NETWORK_EXCEPTION] * 3,
    ]


def test_offset_of_an_earlier_topic_of_that_name_is_not_found() -> None:
    """A fetch by the new topic's id finds nothing."""
    world = make("4.4")
    old, new = bytes(15) + b"\x01", bytes(15) + b"\x02"
    world.call(
        offset_commit.OffsetCommitRequest(group_id="g", topics=topics(0, topic_id=old)),
        api_version=9,
    )

    found = [fetched(world, topic_id=each).committed_offset for each in (ZERO_UUID, old, new)]

    assert found == [5, 5, -1]


def test_scala_sees_the_end_of_a_transaction_when_its_scheduler_gets_to_it() -> None:
    """The marker is in the log, and the groups see it so much later."""
    world = make("3.9", materialisation_ms=100)
    commit_txn(world)
    request = CompleteTransaction(
        partition=0, producer_id=PRODUCER, producer_epoch=0, committed=True
    )
    response = world.complete_transaction(request).response
    assert isinstance(response, TransactionCompleted)
    assert response.error_code is ErrorCode.NONE
    world.advance(99)
    unstable = ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert fetched(world).committed_offset == -1
    assert fetched(world, stable=True).error_code is unstable
    world.advance(1)
    assert fetched(world, stable=True).committed_offset == 5


def test_a_commit_of_too_long_metadata_alone_is_not_counted() -> None:
    """Nothing is appended either."""
    world = make("3.9")
    request = offset_commit.OffsetCommitRequest(
        group_id="g", topics=topics(0, metadata="123456789")
    )
    assert world.call(request, api_version=2).batches == ()
    assert world.coordinator.metrics().offset_commit_count == 0


def test_deleted_offsets_are_counted_and_traced() -> None:
    """The metric counts offsets that were there, the trace names those of the request."""
    world = make("3.9")
    world.call(offset_commit.OffsetCommitRequest(group_id="g", topics=topics(1, 2)), api_version=2)
    entries = (
        offset_delete.OffsetDeleteRequestPartition(0),
        offset_delete.OffsetDeleteRequestPartition(1),
    )
    request = offset_delete.OffsetDeleteRequest(
        group_id="g", topics=(offset_delete.OffsetDeleteRequestTopic("t", entries),)
    )

    (event,) = world.call(request, api_version=0).events

    assert event.event is Event.OFFSET_TOMBSTONE
    assert event.attrs == {"partitions": "t-0, t-1", "count": "1"}
    assert world.coordinator.metrics().offset_deletion_count == 1


def test_the_id_that_a_deleted_group_handed_out_expires_without_effect() -> None:
    """Its timer outlives the group, and finds it dead."""
    group = GroupDriver(make("3.9"))
    group.join()
    group.harness.call(DeleteGroupsRequest(groups_names=("g",)), api_version=2)
    (event,) = group.harness.advance(10_000).events
    assert (event.event, event.reason_text) == (Event.LIFECYCLE, "session of a dead group")


def test_scala_leaves_the_newer_offset_where_an_older_commit_is_replicated_later() -> None:
    """A third commit is in flight all the while."""
    group = GroupDriver(make("3.9"))
    for offset, is_held in ((1, True), (2, False), (3, True)):
        group.harness.hold(high_watermark=is_held)
        group.commit(offset, version=2)
    found = []
    for position in (2, 3):
        assert len(group.harness.commit(0, position).replies) == 1
        found.append(fetched(group.harness).committed_offset)
    assert found == [2, 3]
