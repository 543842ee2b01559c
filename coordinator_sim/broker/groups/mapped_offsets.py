"""Order of offsets in requests and answers of Kafka versions whose KafkaApis uses hash maps.

This module only orders; `offset_apis` and `offset_fetch` decide the contents.

Source: see `kafka.orders.offset_maps`.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from coordinator_sim.kafka.orders.iteration_order import (
    java_hash_order,
    old_scala_set_order,
    topic_partition_hash,
)
from coordinator_sim.kafka.orders.offset_maps import (
    OffsetMaps,
    answered_order,
    by_topic,
    deleted_order,
    requested_order,
)
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequestTopic,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from coordinator_sim.messages.offset_delete import (
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from coordinator_sim.messages.offset_fetch import (
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)


def requested(
    maps: OffsetMaps,
    kept: tuple[OffsetCommitRequestTopic, ...],
    asked: tuple[OffsetCommitRequestTopic, ...],
) -> tuple[OffsetCommitRequestTopic, ...]:
    """The accepted part of a commit in the order of the maps, one partition per entry.

    Args:
        maps: Kind of hash maps of the Kafka version; others than JAVA keep the order.
        kept: The part that the coordinator gets.
        asked: The whole request, whose size decides the order.
    """
    if maps is not OffsetMaps.JAVA:
        return kept
    found = {
        TopicPartition(topic.name, entry.partition_index): replace(topic, partitions=(entry,))
        for topic in kept
        for entry in topic.partitions
    }
    places = (
        TopicPartition(topic.name, entry.partition_index)
        for topic in asked
        for entry in topic.partitions
    )
    return tuple(found[place] for place in requested_order(maps, places) if place in found)


def answered_commit(
    maps: OffsetMaps,
    refused: Iterable[OffsetCommitResponseTopic],
    found: Iterable[OffsetCommitResponseTopic],
    *,
    transactional: bool,
) -> tuple[OffsetCommitResponseTopic, ...]:
    """The results of a commit, refusals of the edge and results of the coordinator together."""
    told = _by_place(found)
    denied = _by_place(refused)
    outcomes = told | denied
    topics: dict[str, list[OffsetCommitResponsePartition]] = {}
    for place in answered_order(maps, told, denied, transactional=transactional):
        topics.setdefault(place.topic, []).append(outcomes[place])
    return tuple(
        OffsetCommitResponseTopic(name, partitions=tuple(errors)) for name, errors in topics.items()
    )


def _by_place(
    topics: Iterable[OffsetCommitResponseTopic],
) -> dict[TopicPartition, OffsetCommitResponsePartition]:
    return {
        TopicPartition(topic.name, outcome.partition_index): outcome
        for topic in topics
        for outcome in topic.partitions
    }


def refused_fetch(
    maps: OffsetMaps,
    group: OffsetFetchResponseGroup,
    wanted: tuple[OffsetFetchRequestTopics, ...] | None,
) -> OffsetFetchResponseGroup:
    """A group's error on every requested partition, as in versions 0 and 1.

    Source: OffsetFetchRequest.getErrorResponse, which has a HashMap of partitions.
    """
    places = [
        TopicPartition(topic.name, index)
        for topic in wanted or ()
        for index in topic.partition_indexes
    ]
    found = {
        place: OffsetFetchResponsePartitions(
            place.partition, error_code=group.error_code, committed_offset=-1
        )
        for place in java_hash_order(places, hash_of=topic_partition_hash)
    }
    return _gathered(maps, group, found)


def answered_fetch(maps: OffsetMaps, group: OffsetFetchResponseGroup) -> OffsetFetchResponseGroup:
    """The offsets of a group in the order of the answer."""
    found = {
        TopicPartition(topic.name, offset.partition_index): offset
        for topic in group.topics
        for offset in topic.partitions
    }
    if maps is OffsetMaps.JAVA:
        ordered = old_scala_set_order(found, hash_of=topic_partition_hash)
        found = {place: found[place] for place in ordered}
    return _gathered(maps, group, found)


def _gathered(
    maps: OffsetMaps,
    group: OffsetFetchResponseGroup,
    found: dict[TopicPartition, OffsetFetchResponsePartitions],
) -> OffsetFetchResponseGroup:
    """The group with these offsets, topic by topic."""
    topics: dict[str, list[OffsetFetchResponsePartitions]] = {}
    for place in by_topic(maps, found):
        topics.setdefault(place.topic, []).append(found[place])
    told = tuple(
        OffsetFetchResponseTopics(name, partitions=tuple(offsets))
        for name, offsets in topics.items()
    )
    return replace(group, topics=told)


def answered_delete(
    topics: Iterable[OffsetDeleteResponseTopic],
) -> tuple[OffsetDeleteResponseTopic, ...]:
    """The results of an OffsetDelete in the order of the answer."""
    found = {
        TopicPartition(topic.name, outcome.partition_index): outcome
        for topic in topics
        for outcome in topic.partitions
    }
    answered: dict[str, list[OffsetDeleteResponsePartition]] = {}
    for place in deleted_order(found):
        answered.setdefault(place.topic, []).append(found[place])
    return tuple(OffsetDeleteResponseTopic(name, tuple(told)) for name, told in answered.items())
