"""The records and the outcomes of commits in the Java coordinator."""

from coordinator_sim.coordinator.contract import CoordinatorConfig, DeletedTopic
from coordinator_sim.coordinator.coordinator import GroupCoordinator
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.kafka.seeded_ids import SeededIds
from coordinator_sim.messages import group_records, offset_commit, records, schema

TOPIC_ID = bytes(15) + b"\x01"


def make(profile: str) -> GroupCoordinator:
    """A coordinator that leads its one partition."""
    config = CoordinatorConfig(offsets_topic_num_partitions=1, group_coordinator_append_linger_ms=0)
    coordinator = GroupCoordinator(config, profile_named(profile), ids=SeededIds())
    coordinator.begin_load(0, 1, 0)
    coordinator.finish_load(0, ErrorCode.NONE, 0)
    return coordinator


def commit(
    coordinator: GroupCoordinator, *partitions: int, topic_id: bytes = schema.ZERO_UUID
) -> tuple[records.LogBatch, list[int]]:
    """Commit offsets of t; the batch, and the partitions of the answer that have no error."""
    entries = tuple(offset_commit.OffsetCommitRequestPartition(index, 1) for index in partitions)
    topic = offset_commit.OffsetCommitRequestTopic("t", partitions=entries, topic_id=topic_id)
    request = offset_commit.OffsetCommitRequest(group_id="g", topics=(topic,))
    result = coordinator.handle(request, RequestContext(token=1, api_version=9), 0)
    (batch,), (reply,) = result.batches, result.replies
    assert isinstance(reply.response, offset_commit.OffsetCommitResponse)
    outcomes = reply.response.topics[0].partitions
    return batch, [each.partition_index for each in outcomes if not each.error_code]


def test_every_partition_has_its_own_outcome_however_high_its_number() -> None:
    """The answer names the partitions asked for, also those of topics with thousands."""
    asked = [0, 1, 998, 999, 1_000, 1_001, 5_000]
    _, outcomes = commit(make("4.4"), *asked)
    assert outcomes == asked


def stored_id(profile: str, topic_id: bytes) -> bytes:
    """The topic id in the record of a commit."""
    batch, _ = commit(make(profile), 0, topic_id=topic_id)
    value = batch.records[0].value
    assert isinstance(value, group_records.OffsetCommitValue)
    return value.topic_id


def test_a_record_has_a_topic_id_if_it_is_known_and_there_is_room_for_it() -> None:
    """Values of version 4 hold one; an id of zeros is none."""
    assert stored_id("4.4", TOPIC_ID) == TOPIC_ID
    assert stored_id("4.4", schema.ZERO_UUID) == schema.ZERO_UUID
    assert stored_id("4.0", TOPIC_ID) == schema.ZERO_UUID


def test_an_offset_without_a_topic_id_goes_with_any_topic_of_its_name() -> None:
    """Whatever id the deleted topic had, its name was meant."""
    coordinator = make("4.4")
    commit(coordinator, 0)
    gone = {"t": DeletedTopic(topic_id=TOPIC_ID, partition_count=1)}
    (batch,) = coordinator.topics_deleted(gone, 1).batches
    assert [record.value for record in batch.records] == [None]
    assert coordinator.metrics().num_offsets == 0
