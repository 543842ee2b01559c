"""Movements within one sticky assignment, recorded to avoid swapping partitions of a topic.

Source: kafka trunk, AbstractStickyAssignor.PartitionMovements.
"""

from typing import NamedTuple

from coordinator_sim.kafka.orders.iteration_order import JavaHashSet, topic_partition_hash
from coordinator_sim.kafka.resources import TopicPartition


class _Pair(NamedTuple):
    source: str
    target: str


class PartitionMovements:
    """Partitions that moved, with their original and present owners."""

    def __init__(self) -> None:
        self._by_topic: dict[str, dict[_Pair, JavaHashSet[TopicPartition]]] = {}
        self._pair_of: dict[TopicPartition, _Pair] = {}

    def record(self, partition: TopicPartition, source: str, target: str) -> None:
        """Record a movement; one that leads back to the original owner erases the record.

        Source: PartitionMovements.movePartition.
        """
        earlier = self._pair_of.pop(partition, None)
        if earlier is not None:
            self._forget(partition, earlier)
            if earlier.source == target:
                return
            source = earlier.source
        pair = _Pair(source, target)
        self._pair_of[partition] = pair
        pairs = self._by_topic.setdefault(partition.topic, {})
        pairs.setdefault(pair, JavaHashSet(topic_partition_hash)).add(partition)

    def _forget(self, partition: TopicPartition, pair: _Pair) -> None:
        pairs = self._by_topic[partition.topic]
        pairs[pair].discard(partition)
        if not pairs[pair]:
            del pairs[pair]
        if not pairs:
            del self._by_topic[partition.topic]

    def partition_to_move(
        self, partition: TopicPartition, source: str, target: str
    ) -> TopicPartition:
        """Return the partition of this topic that moved the other way, to move back; else itself.

        Source: PartitionMovements.getTheActualPartitionToBeMoved.
        """
        pairs = self._by_topic.get(partition.topic)
        if pairs is None:
            return partition
        earlier = self._pair_of.get(partition)
        if earlier is not None:
            source = earlier.source
        came_back = pairs.get(_Pair(target, source))
        return partition if came_back is None else came_back.first()
