"""Offsets of the Scala coordinator: what is under way, what goes, and the orders of its maps.

The orders were recorded from the coordinators of Kafka 3.9.2 and 0.10.2.2 with these requests.
"""

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.harness.group_driver import GroupDriver
from coordinator_sim.harness.harness import Harness, Step
from coordinator_sim.kafka.completion import CompleteTransaction, TransactionCompleted
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.kafka.records import LogRecord, OffsetCommitKey, OffsetCommitValue
from coordinator_sim.messages.delete_groups import DeleteGroupsRequest
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from coordinator_sim.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from coordinator_sim.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from coordinator_sim.messages.txn_offset_commit import TxnOffsetCommitRequest
from coordinator_sim.trace.events import Event

MINUTE_MS = 60_000
PRODUCER = 7
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT


def make(profile: str = "3.9", materialisation_ms: int = 0) -> Harness:
    """A broker that keeps offsets for two minutes, and looks every minute."""
    config = CoordinatorConfig(
        offsets_topic_num_partitions=1,
        group_initial_rebalance_delay_ms=0,
        offset_metadata_max_bytes=8,
        offsets_retention_ms=2 * MINUTE_MS,
        offsets_retention_check_interval_ms=MINUTE_MS,
        marker_materialisation_ms=materialisation_ms,
    )
    return Harness(config, profile_named(profile))


def topics(
    partitions: tuple[int, ...], offset: int, metadata: str = ""
) -> tuple[OffsetCommitRequestTopic, ...]:
    """The same offset of these partitions of t."""
    entries = tuple(
        OffsetCommitRequestPartition(index, offset, committed_metadata=metadata)
        for index in partitions
    )
    return (OffsetCommitRequestTopic("t", partitions=entries),)


def commit(world: Harness, *partitions: int, offset: int = 1, metadata: str = "") -> Step:
    """A commit of a simple consumer of group g."""
    request = OffsetCommitRequest(group_id="g", topics=topics(partitions, offset, metadata))
    return world.call(request, api_version=2)


def commit_txn(world: Harness, *partitions: int, offset: int = 1, group_id: str = "g") -> None:
    """A commit in the producer's transaction."""
    request = TxnOffsetCommitRequest(
        transactional_id="x",
        group_id=group_id,
        producer_id=PRODUCER,
        producer_epoch=0,
        topics=topics(partitions, offset),
    )
    world.call(request, api_version=2)


def end(world: Harness, *, committed: bool = True) -> ErrorCode:
    """End the producer's transaction, and tell how that went."""
    request = CompleteTransaction(
        partition=0, producer_id=PRODUCER, producer_epoch=0, committed=committed
    )
    response = world.complete_transaction(request).response
    assert isinstance(response, TransactionCompleted)
    return response.error_code


def fetched(world: Harness, *partitions: int, group_id: str = "g") -> dict[int, int]:
    """The offsets of these partitions of t; of all without any, in the order of the answer."""
    wanted = OffsetFetchRequestGroup(
        group_id=group_id,
        topics=(OffsetFetchRequestTopics("t", partition_indexes=partitions),)
        if partitions
        else None,
    )
    response = world.call(OffsetFetchRequest(groups=(wanted,)), api_version=2).response
    assert isinstance(response, OffsetFetchResponse)
    (topic,) = response.groups[0].topics
    return {each.partition_index: each.committed_offset for each in topic.partitions}


def is_unstable(world: Harness, group_id: str = "g") -> bool:
    """Whether t-0 is told to be under way to those who ask for stable offsets."""
    wanted = OffsetFetchRequestGroup(
        group_id=group_id, topics=(OffsetFetchRequestTopics("t", partition_indexes=(0,)),)
    )
    request = OffsetFetchRequest(groups=(wanted,), require_stable=True)
    response = world.call(request, api_version=8).response
    assert isinstance(response, OffsetFetchResponse)
    return response.groups[0].topics[0].partitions[0].error_code is UNSTABLE


def delete(world: Harness, *partitions: int) -> Step:
    """An OffsetDelete of these partitions of t."""
    entries = tuple(OffsetDeleteRequestPartition(index) for index in partitions)
    request = OffsetDeleteRequest(group_id="g", topics=(OffsetDeleteRequestTopic("t", entries),))
    return world.call(request, api_version=0)


def tombstones(step: Step) -> list[int]:
    """The partitions whose offsets get tombstones, in the order of the log."""
    records = [record for batch in step.batches for record in batch.records]
    return [
        record.key.partition
        for record in records
        if isinstance(record.key, OffsetCommitKey) and record.value is None
    ]


def fail_over(world: Harness) -> None:
    """Another leader takes over, and reads the log."""
    world.resign()
    world.elect(leader_epoch=2)


# -- commits under way -------------------------------------------------------------------------


def test_an_acknowledgement_out_of_order_leaves_the_newer_offset() -> None:
    """The commit further back in the log is through last, and changes nothing."""
    world = make()
    found = []
    world.hold(high_watermark=True)
    commit(world, 0, offset=1)
    world.hold(high_watermark=False)
    commit(world, 0, offset=2)
    world.hold(high_watermark=True)
    commit(world, 0, offset=3)
    for position in (2, 3):
        assert len(world.commit(0, position).replies) == 1
        found.append(fetched(world, 0)[0])
    assert found == [2, 3]


def test_an_offset_deleted_while_its_commit_is_under_way_stays_deleted() -> None:
    """The append is through after the deletion, and finds nothing to settle."""
    world = make()
    commit(world, 1)
    world.hold(high_watermark=True)
    commit(world, 0)
    delete(world, 0)
    assert len(world.commit().replies) == 1
    assert fetched(world, 0) == {0: -1}


def test_an_offset_deleted_while_its_transaction_is_under_way_stays_deleted() -> None:
    """Neither the append nor the marker brings it back."""
    world = make()
    commit(world, 1)
    world.hold(high_watermark=True)
    commit_txn(world, 0)
    delete(world, 0)
    assert len(world.commit().replies) == 1
    world.hold(high_watermark=False)
    end(world)
    assert fetched(world, 0) == {0: -1}


def test_a_commit_of_too_long_metadata_alone_is_no_commit() -> None:
    """Nothing is appended, and nothing counted."""
    world = make()
    assert commit(world, 0, metadata="123456789").batches == ()
    assert world.coordinator.metrics().offset_commit_count == 0


# -- transactions ------------------------------------------------------------------------------


def test_a_refused_marker_leaves_the_transaction_open() -> None:
    """The old offset is read, and who waits for stable ones waits on."""
    world = make()
    commit(world, 0, offset=1)
    commit_txn(world, 0, offset=2)
    world.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert end(world) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert (fetched(world, 0), is_unstable(world)) == ({0: 1}, True)


def test_one_marker_ends_the_transaction_of_every_group() -> None:
    """A producer's offsets of two groups of a partition count with its one marker."""
    world = make()
    commit_txn(world, 0, offset=2)
    commit_txn(world, 0, offset=3, group_id="h")
    end(world)
    assert (fetched(world, 0), fetched(world, 0, group_id="h")) == ({0: 2}, {0: 3})


def test_one_abort_ends_the_transaction_of_every_group() -> None:
    """None of the groups waits for anything afterwards."""
    world = make()
    commit_txn(world, 0)
    commit_txn(world, 0, group_id="h")
    end(world, committed=False)
    assert (is_unstable(world), is_unstable(world, "h")) == (False, False)


def test_a_marker_that_stops_in_one_group_does_not_reach_the_next() -> None:
    """The offsets of the second group wait for another marker of their producer."""
    world = make()
    commit_txn(world, 0)
    commit_txn(world, 0, group_id="h")
    world.hold(high_watermark=True)
    commit_txn(world, 1)
    world.hold(high_watermark=False)
    end(world)
    assert (is_unstable(world), is_unstable(world, "h")) == (False, True)
    end(world)
    assert (fetched(world, 0), fetched(world, 0, group_id="h")) == ({0: -1}, {0: 1})


def test_the_end_of_a_transaction_is_seen_when_the_scheduler_gets_to_it() -> None:
    """The marker is in the log, and the groups see it so much later."""
    world = make(materialisation_ms=100)
    commit(world, 0, offset=1)
    commit_txn(world, 0, offset=2)
    assert end(world) is ErrorCode.NONE
    world.advance(99)
    assert (fetched(world, 0), is_unstable(world)) == ({0: 1}, True)
    world.advance(1)
    assert (fetched(world, 0), is_unstable(world)) == ({0: 2}, False)


def test_a_plain_commit_between_outlives_the_marker_through_a_load() -> None:
    """The record further on in the log wins, also for a leader that reads all three."""
    world = make()
    commit(world, 1)
    commit_txn(world, 0, offset=2)
    commit(world, 0, offset=3)
    end(world)
    fail_over(world)
    assert fetched(world, 0) == {0: 3}


def test_a_transaction_after_a_plain_commit_outlives_it_through_a_load() -> None:
    """Of two offsets in the log the later one counts."""
    world = make()
    commit(world, 1)
    commit(world, 0, offset=3)
    commit_txn(world, 0, offset=2)
    end(world)
    fail_over(world)
    assert fetched(world, 0) == {0: 2}


def counting(held: tuple[int, ...], *, again: int, loaded: bool = False) -> set[int]:
    """The partitions that count when a marker finds one whose append is not through.

    Args:
        held: Partitions that the transaction holds.
        again: The partition that is committed to last; its append is under way at the marker.
        loaded: Whether another leader takes over before that.
    """
    world = make()
    commit_txn(world, *held)
    if loaded:
        fail_over(world)
    world.hold(high_watermark=True)
    commit_txn(world, again)
    world.hold(high_watermark=False)
    end(world)
    found = fetched(world, *range(12))
    return {index for index, offset in found.items() if offset != -1}


def test_a_marker_that_meets_an_append_under_way_stops_there() -> None:
    """Offsets before that one in Kafka's table count, those behind it are lost.

    Every put may double the table, also that of a partition that is in it.
    """
    ten, eleven = tuple(range(10)), tuple(range(11))
    assert counting(ten, again=2) == {3, 4, 5}
    assert counting(eleven, again=2) == {3, 4, 5, 6, 7, 8, 9, 10}
    assert counting(ten, again=2, loaded=True) == {3, 4, 5}
    assert counting(eleven, again=2, loaded=True) == {3, 4, 5, 6, 7, 8, 9, 10}


# -- what goes ---------------------------------------------------------------------------------


def test_a_deletion_of_nothing_appends_nothing() -> None:
    """Without an offset there is no tombstone, and no batch."""
    world = make()
    commit(world, 1)
    assert delete(world, 0).batches == ()
    assert world.coordinator.metrics().offset_deletion_count == 0


def test_deleted_offsets_are_counted_and_told() -> None:
    """The metric counts offsets that were there, the trace names what was asked for."""
    world = make()
    commit(world, 1, 2)
    (event,) = delete(world, 0, 1).events
    assert event.event is Event.OFFSET_TOMBSTONE
    assert event.attrs == {"partitions": "t-0, t-1", "count": "1"}
    assert world.coordinator.metrics().offset_deletion_count == 1


def test_the_id_that_a_deleted_group_handed_out_expires_in_vain() -> None:
    """Its timer outlives the group, and finds it dead."""
    group = GroupDriver(make())
    group.join()
    group.harness.call(DeleteGroupsRequest(groups_names=("g",)), api_version=2)
    (event,) = group.harness.advance(10_000).events
    assert (event.event, event.reason_text) == (Event.LIFECYCLE, "session of a dead group")


def test_0_10_2_dates_the_expiry_of_a_loaded_offset_that_has_none() -> None:
    """A record of version 0 is kept for the broker's retention, counted from its commit."""
    world = make("0.10.2")
    world.resign()
    value = OffsetCommitValue(offset=5, commit_timestamp_ms=world.now_ms)
    world.append(0, (LogRecord(OffsetCommitKey("g", "t", 0), value, 0),))
    world.elect(leader_epoch=2)
    world.advance(2 * MINUTE_MS)
    assert fetched(world, 0) == {0: 5}
    world.advance(MINUTE_MS)
    assert fetched(world, 0) == {0: -1}


# -- orders ------------------------------------------------------------------------------------


def order_of_three(count: int, *, loaded: bool) -> list[int]:
    """The tombstones of a group that had so many offsets, of which 0, 1 and 6 are left."""
    world = make()
    commit(world, *range(count))
    if loaded:
        fail_over(world)
    delete(world, *(index for index in range(count) if index not in {0, 1, 6}))
    return tombstones(world.call(DeleteGroupsRequest(groups_names=("g",)), api_version=2))


def test_the_table_of_offsets_keeps_the_room_it_once_needed() -> None:
    """Twelve offsets double it, whether they came one by one or with a load."""
    assert order_of_three(11, loaded=True) == [1, 0, 6]
    assert order_of_three(12, loaded=True) == [6, 1, 0]
    assert order_of_three(11, loaded=False) == [1, 0, 6]
    assert order_of_three(12, loaded=False) == [6, 1, 0]


def test_0_10_2_lists_all_offsets_through_the_maps_of_scala_2_12() -> None:
    """Partitions that share a bucket of the answer's own map come in the order of the listing."""
    world = make("0.10.2")
    commit(world, 0, 16, 32, 1)
    assert list(fetched(world)) == [32, 0, 16, 1]
