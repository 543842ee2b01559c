"""Of which partitions the share coordinator keeps a group's state, as the group coordinator knows.

A topic is to be initialised when a member subscribes to it, and is assigned once that is done.

Source: kafka 4.4, ShareGroup.ShareGroupStatePartitionMetadataInfo and InitMapValue;
GroupMetadataManager.combineInitMaps, attachInitValue and attachTopicName.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from coordinator_sim.coordinator.topics import KnownTopics
from coordinator_sim.messages.share_group_records import (
    ShareGroupStatePartitionMetadataValue,
    TopicInfo,
    TopicPartitionsInfo,
)

UNKNOWN_NAME: Final = "<UNKNOWN>"
"""Name of a topic that is gone."""


class StoredTopic(Struct, frozen=True, gc=False):
    """Partitions of a topic.

    Args:
        name: Of the topic.
        partitions: Their numbers.
        replayed_ms: When the record that says so was applied, which a failover forgets.
    """

    name: str
    partitions: frozenset[int]
    replayed_ms: int = -1


StoredTopics = Mapping[bytes, StoredTopic]
"""By topic id."""


class ShareState(Struct, frozen=True, gc=False):
    """The share partitions of one group, by how far the share coordinator has them.

    Args:
        initializing: Partitions whose InitializeShareGroupState is under way.
        initialized: Partitions that the share coordinator has initialized.
        deleting: Ids of topics whose DeleteShareGroupState is under way.
    """

    initializing: StoredTopics = {}
    initialized: StoredTopics = {}
    deleting: frozenset[bytes] = frozenset()


def combined(one: StoredTopics, other: StoredTopics) -> dict[bytes, StoredTopic]:
    """The partitions of both; names and instants are the other's where it has the topic."""
    found = dict(one)
    for topic_id, topic in other.items():
        known = one.get(topic_id)
        partitions = topic.partitions if known is None else known.partitions | topic.partitions
        found[topic_id] = StoredTopic(topic.name, partitions, topic.replayed_ms)
    return found


def topic_name(topics: KnownTopics, topic_id: bytes) -> str:
    """The name of a topic."""
    topic = topics.by_id.get(topic_id)
    return UNKNOWN_NAME if topic is None else topic.name


def state_of(value: ShareGroupStatePartitionMetadataValue, now_ms: int) -> ShareState:
    """The share state that a record holds; its topics date from `now_ms`."""
    return ShareState(
        _read(value.initializing_topics, now_ms),
        _read(value.initialized_topics, now_ms),
        frozenset(topic.topic_id for topic in value.deleting_topics),
    )


def _read(topics: tuple[TopicPartitionsInfo, ...], now_ms: int) -> dict[bytes, StoredTopic]:
    return {
        each.topic_id: StoredTopic(each.topic_name, frozenset(each.partitions), now_ms)
        for each in topics
    }


def state_value(state: ShareState, topics: KnownTopics) -> ShareGroupStatePartitionMetadataValue:
    """The record's value; topics that are to be forgotten have the names that they have now."""
    deleting = {topic_id: topic_name(topics, topic_id) for topic_id in state.deleting}
    return named_state_value(state, deleting)


def named_state_value(
    state: ShareState, deleting: Mapping[bytes, str]
) -> ShareGroupStatePartitionMetadataValue:
    """The record's value with these names of topics that are to be forgotten.

    Topics and partitions are in ascending order, where Kafka has the order of its hash maps.
    UNSPECIFIED: no client sees that order, and a load does not depend on it.
    """
    return ShareGroupStatePartitionMetadataValue(
        _written(state.initializing),
        _written(state.initialized),
        tuple(TopicInfo(topic_id, deleting[topic_id]) for topic_id in sorted(deleting)),
    )


def _written(topics: StoredTopics) -> tuple[TopicPartitionsInfo, ...]:
    return tuple(
        TopicPartitionsInfo(
            topic_id, topics[topic_id].name, tuple(sorted(topics[topic_id].partitions))
        )
        for topic_id in sorted(topics)
    )
