"""Offsets that go by name in the Scala coordinator: OffsetDelete, and deleted topics.

Source: kafka 3.9, GroupCoordinator.handleDeleteOffsets and handleDeletedPartitions.
"""

from collections.abc import Mapping

from coordinator_sim.coordinator.classic.group import Group
from coordinator_sim.coordinator.contract import DeletedTopic
from coordinator_sim.coordinator.offsets.offset_deletion import offset_delete_error
from coordinator_sim.coordinator.runtime import Parked, Partition, Runtime
from coordinator_sim.coordinator.scala.cleanup import clean_up
from coordinator_sim.coordinator.scala.group_offsets import Place, immutable_order
from coordinator_sim.coordinator.tracing import trace_partitions_deleted, trace_topics_deleted
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.states import GroupState
from coordinator_sim.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def scala_offset_delete(
    runtime: Runtime, partition: Partition, request: OffsetDeleteRequest, parked: Parked
) -> None:
    """Delete offsets of topics that the group is not subscribed to.

    Source: handleDeleteOffsets; GroupCoordinatorAdapter.deleteOffsets.
    """
    group = partition.classic_group(request.group_id)
    error = offset_delete_error(group)
    if group is None or error is not ErrorCode.NONE:
        runtime.refuse(parked, error)
        return
    places = [
        Place(topic.name, each.partition_index)
        for topic in request.topics
        for each in topic.partitions
    ]
    doomed = places
    if group.state is not GroupState.EMPTY:
        doomed = [place for place in places if not _is_subscribed(group, place.topic)]
    removed = frozenset(doomed)
    refused = dict.fromkeys(place for place in places if place not in removed)
    if doomed:
        # QUIRK: a group without members that has no offset left dies by an OffsetDelete.
        count = clean_up(runtime, (group,), lambda one: one.offsets.remove(doomed))
        runtime.counters.offset_deletions += count
        if runtime.tracing:
            trace_partitions_deleted(group, doomed, count)
    topics: dict[str, list[OffsetDeleteResponsePartition]] = {}
    for place in immutable_order((*refused, *doomed)):
        is_refused = place in refused
        outcome = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_refused else ErrorCode.NONE
        topics.setdefault(place.topic, []).append(
            OffsetDeleteResponsePartition(place.partition, outcome)
        )
    answer = OffsetDeleteResponse(
        topics=tuple(
            OffsetDeleteResponseTopic(name, tuple(found)) for name, found in topics.items()
        )
    )
    runtime.answer(parked, answer)


def _is_subscribed(group: Group, topic: str) -> bool:
    """Source: GroupMetadata.isSubscribedToTopic."""
    topics = group.subscriptions.topics()
    return topics is None or topic in topics


def scala_delete_topics(runtime: Runtime, topics: Mapping[str, DeletedTopic]) -> None:
    """Remove the offsets of deleted topics, whoever leads the partitions of their groups.

    Args:
        runtime: Its groups.
        topics: By name, in the order of the metadata change.

    Source: handleDeletedPartitions.
    """
    places = [
        Place(name, index)
        for name, topic in topics.items()
        for index in range(topic.partition_count)
    ]
    count = clean_up(
        runtime, runtime.groups_in_cache_order(), lambda group: group.offsets.remove(places)
    )
    if runtime.tracing:
        trace_topics_deleted(runtime, places, count)
