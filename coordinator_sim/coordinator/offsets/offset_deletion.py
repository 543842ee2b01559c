"""Offsets that go by name in the Java coordinator: OffsetDelete, and deleted topics.

The Scala coordinator's are in `scala.offset_deletion`; what refuses an OffsetDelete is the same.

Source: kafka trunk, OffsetMetadataManager.deleteOffsets and onTopicsDeleted,
ClassicGroup.validateOffsetDelete.
"""

from collections.abc import Mapping

from coordinator_sim.coordinator.classic.group import Group, is_consumer
from coordinator_sim.coordinator.contract import DeletedTopic
from coordinator_sim.coordinator.modern.consumer.group import ConsumerGroup
from coordinator_sim.coordinator.modern.share.delete_offsets import forget_share_topics
from coordinator_sim.coordinator.offsets.offset_records import offset_tombstones
from coordinator_sim.coordinator.partition import AnyGroup
from coordinator_sim.coordinator.runtime import Effect, Parked, Partition, Runtime
from coordinator_sim.coordinator.streams.group import StreamsGroup
from coordinator_sim.coordinator.tracing import trace_offsets_deleted
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.states import GroupState
from coordinator_sim.messages.group_records import OffsetCommitKey
from coordinator_sim.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def handle_offset_delete(
    runtime: Runtime, partition: Partition, request: OffsetDeleteRequest, parked: Parked
) -> None:
    """Delete offsets of topics that the group is not subscribed to.

    Source: OffsetMetadataManager.deleteOffsets.
    """
    group = partition.groups.get(request.group_id)
    error = offset_delete_error(group)
    if group is None or error is not ErrorCode.NONE:
        runtime.refuse(parked, error)
        return
    doomed: list[OffsetCommitKey] = []
    outcomes: list[OffsetDeleteResponseTopic] = []
    store = partition.offsets
    for topic in request.topics:
        outcome = ErrorCode.NONE
        if group.is_subscribed_to(topic.name):
            outcome = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        else:
            keys = [
                OffsetCommitKey(group.group_id, topic.name, each.partition_index)
                for each in topic.partitions
            ]
            doomed += [key for key in keys if store.stored(key) is not None or store.is_open(key)]
        outcomes.append(
            OffsetDeleteResponseTopic(
                topic.name,
                tuple(
                    OffsetDeleteResponsePartition(each.partition_index, outcome)
                    for each in topic.partitions
                ),
            )
        )
    runtime.counters.offset_deletions += len(doomed)
    if doomed and runtime.tracing and isinstance(group, Group):
        trace_offsets_deleted(group, doomed)
    effect = Effect(
        records=offset_tombstones(doomed), response=OffsetDeleteResponse(topics=tuple(outcomes))
    )
    runtime.submit(partition, parked, effect)


def offset_delete_error(group: AnyGroup | None) -> ErrorCode:
    """Why no offset of a group may be deleted.

    Source: ClassicGroup.validateOffsetDelete and ConsumerGroup.validateOffsetDelete.
    """
    if isinstance(group, ConsumerGroup | StreamsGroup):
        return ErrorCode.NONE
    if not isinstance(group, Group) or group.state is GroupState.DEAD:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if group.state is not GroupState.EMPTY and not is_consumer(group.protocol_type):
        return ErrorCode.NON_EMPTY_GROUP
    return ErrorCode.NONE


def delete_topics(runtime: Runtime, topics: Mapping[str, DeletedTopic]) -> None:
    """Remove the offsets of deleted topics, one write for each partition led here.

    Args:
        runtime: Its partitions.
        topics: By name, in the order of the metadata change.

    Source: GroupCoordinatorService.onMetadataUpdate, CoordinatorRuntime.scheduleWriteAllOperation.
    """
    counts = {name: topic.partition_count for name, topic in topics.items()}
    ids = {name: topic.topic_id for name, topic in topics.items()}
    for partition in runtime.active():
        if runtime.profile.deletes_offsets_by_topic_id:
            keys = partition.offsets.of_topics(ids)
        else:
            keys = partition.offsets.of_partitions(counts)
        runtime.submit(partition, None, Effect(records=offset_tombstones(keys)))
    if runtime.profile.share_groups:
        forget_share_topics(runtime, frozenset(each for each in ids.values() if each is not None))
