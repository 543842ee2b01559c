"""The order that a commit's partitions get on their way through a broker's maps.

A request lists partitions and so does its answer, but before Kafka 4.0 both pass through hash maps,
of Java and of Scala, whose order decides how records are appended and answers are listed. Nothing
here decides anything else.

Source: KafkaApis.handleOffsetCommitRequest, handleTxnOffsetCommitRequest and
handleOffsetDeleteRequest of 0.10.2 and 2.8; GroupCoordinatorAdapter.commitOffsets of 3.9; the
constructors of OffsetCommitResponse, TxnOffsetCommitResponse and OffsetFetchResponse.
"""

from collections.abc import Iterable
from enum import Enum, unique
from functools import lru_cache
from typing import Final

from coordinator_sim.kafka.orders.iteration_order import (
    integer_hash,
    java_hash_order,
    old_scala_set_order,
    scala_map_order,
    scala_set_order,
    scala_trie_order,
    topic_partition_hash,
)
from coordinator_sim.kafka.resources import TopicPartition

SMALL_MAP: Final = 4
"""Up to so many keys an immutable Map of Scala is no trie."""
_NO_TOPIC_ID_HASH: Final = 31 * 31
"""What a topic id of zeros adds to the hash of a partition. Source: TopicIdPartition.hashCode."""

_hash: Final = lru_cache(maxsize=65_536)(topic_partition_hash)


@unique
class OffsetMaps(Enum):
    """Which maps the offsets of requests and answers pass through."""

    LISTS = "none"
    """Java's coordinator takes and gives lists."""
    TOPIC_IDS = "by topic id"
    """3.x: a mutable.HashMap of partitions with topic ids, made immutable."""
    PARTITIONS = "by partition"
    """2.8: an immutable Map of the request, a HashMap of topics for the answer."""
    JAVA = "java"
    """0.10.2: a HashMap of the request, HashMaps of topics and of partitions for the answer."""

    @property
    def rearranges(self) -> bool:
        """Whether KafkaApis copies the coordinator's result into maps that change its order."""
        return self in (OffsetMaps.PARTITIONS, OffsetMaps.JAVA)


def _topic_id_hash(place: TopicPartition) -> int:
    return _NO_TOPIC_ID_HASH + _hash(place)


def _copied(places: Iterable[TopicPartition], *, with_topic_id: bool) -> list[TopicPartition]:
    """The order of an immutable Map made from a mutable.HashMap of Scala 2.13."""
    hash_of = _topic_id_hash if with_topic_id else _hash
    return scala_set_order(scala_map_order(places, hash_of=hash_of), hash_of=hash_of)


@lru_cache(maxsize=4_096)
def asked_order(
    maps: OffsetMaps, places: tuple[TopicPartition, ...], *, transactional: bool
) -> tuple[TopicPartition, ...]:
    """The partitions of a commit in the order in which the coordinator goes through them.

    Args:
        maps: What they pass through; `JAVA` leaves all of it to `requested_order`.
        places: As asked; one named twice counts once.
        transactional: Whether it is a TxnOffsetCommit, which takes another way in 2.8.
    """
    if maps is OffsetMaps.JAVA:
        return tuple(dict.fromkeys(places))
    if maps is OffsetMaps.TOPIC_IDS:
        return tuple(_copied(places, with_topic_id=True))
    if transactional:
        return tuple(_copied(places, with_topic_id=False))
    return tuple(scala_set_order(places, hash_of=_hash))


@lru_cache(maxsize=4_096)
def kept_order(
    maps: OffsetMaps,
    places: tuple[TopicPartition, ...],
    kept: frozenset[TopicPartition],
    *,
    transactional: bool,
) -> tuple[TopicPartition, ...]:
    """What is left of a commit's partitions when some are filtered out, in order."""
    ordered = asked_order(maps, places, transactional=transactional)
    left = tuple(place for place in ordered if place in kept)
    if maps is OffsetMaps.JAVA or len(ordered) <= SMALL_MAP:
        return left
    hash_of = _topic_id_hash if maps is OffsetMaps.TOPIC_IDS else _hash
    return tuple(scala_trie_order(left, hash_of=hash_of))


def requested_order(maps: OffsetMaps, places: Iterable[TopicPartition]) -> list[TopicPartition]:
    """A request's partitions in the order in which KafkaApis goes through them.

    What it keeps of them stays in this order.
    """
    if maps is not OffsetMaps.JAVA:
        return list(dict.fromkeys(places))
    return old_scala_set_order(java_hash_order(places, hash_of=_hash), hash_of=_hash)


def answered_order(
    maps: OffsetMaps,
    found: Iterable[TopicPartition],
    refused: Iterable[TopicPartition],
    *,
    transactional: bool,
) -> list[TopicPartition]:
    """A commit's partitions as its answer lists them, topic by topic.

    Args:
        maps: Those of a Kafka that `rearranges`.
        found: Those of which the coordinator has told the outcome, in its order.
        refused: Those that it was not asked for.
        transactional: Whether it is a TxnOffsetCommit.
    """
    if maps is OffsetMaps.JAVA:
        told = dict.fromkeys(found)
        # What is refused keeps the order of the request's own map, of which it is a part.
        asked = requested_order(maps, [*told, *refused])
        together = [*told, *(place for place in asked if place not in told)]
        return by_topic(maps, old_scala_set_order(together, hash_of=_hash))
    together = [*found, *scala_map_order(refused, hash_of=_hash)]
    if transactional:
        return by_topic(maps, scala_map_order(together, hash_of=_hash))
    return by_topic(maps, scala_set_order(together, hash_of=_hash))


def by_topic(maps: OffsetMaps, places: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Partitions gathered by topic in a HashMap, in 0.10.2 in a HashMap of partitions each."""
    grouped = _grouped(places)
    return [
        place
        for topic in java_hash_order(grouped)
        for place in _in_a_map(topic, grouped[topic], maps)
    ]


def _in_a_map(
    topic: str, places: list[TopicPartition], maps: OffsetMaps
) -> Iterable[TopicPartition]:
    """The partitions of one topic, in 0.10.2 in the order of a HashMap."""
    if maps is not OffsetMaps.JAVA:
        return places
    indexes = java_hash_order((place.partition for place in places), hash_of=integer_hash)
    return (TopicPartition(topic, index) for index in indexes)


def _grouped(places: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    """The partitions of each topic, topics and partitions in the order of their coming."""
    topics: dict[str, list[TopicPartition]] = {}
    for place in places:
        topics.setdefault(place.topic, []).append(place)
    return topics


def deleted_order(places: Iterable[TopicPartition]) -> list[TopicPartition]:
    """The partitions of an OffsetDelete as its answer lists them: grouped by topic in Scala."""
    grouped = _grouped(places)
    return [
        place
        for topic in scala_trie_order(grouped)
        for place in scala_map_order(grouped[topic], hash_of=_hash)
    ]
