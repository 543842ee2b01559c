"""The committed offsets of one partition's groups, as applied and as committed.

An offset is applied when its record is appended, and may be read once the record is committed.
While a record is not committed, the value it replaced is kept for readers.

Source: kafka trunk, OffsetMetadataManager.Offsets on TimelineHashMap.
"""

from collections.abc import Iterator
from typing import Final

from coordinator_sim.coordinator.timeline import timeline_order
from coordinator_sim.protocol.iteration_order import integer_hash
from coordinator_sim.protocol.records import OffsetCommitKey, OffsetCommitValue

LATEST: Final = 1 << 62
"""A log position that sees everything applied."""

Topics = dict[str, dict[int, OffsetCommitValue]]


class OffsetStore:
    """Offsets by group, topic and partition."""

    __slots__ = ("_groups", "_replaced")

    def __init__(self) -> None:
        self._groups: dict[str, Topics] = {}
        self._replaced: dict[OffsetCommitKey, list[tuple[int, OffsetCommitValue | None]]] = {}

    def topics_of(self, group_id: str) -> Topics:
        """The group's offsets by topic, for a writer whose records are committed already."""
        topics = self._groups.get(group_id)
        if topics is None:
            topics = self._groups[group_id] = {}
        return topics

    def put(self, key: OffsetCommitKey, value: OffsetCommitValue, position: int) -> None:
        """Apply an offset whose record is committed once `position` is.

        Args:
            key: Group, topic and partition.
            value: Replaces the one before.
            position: The log position from which readers see it; 0 for at once.
        """
        partitions = self.topics_of(key.group_id).setdefault(key.topic, {})
        if position:
            previous = partitions.get(key.partition)
            self._replaced.setdefault(key, []).append((position, previous))
        partitions[key.partition] = value

    def remove(self, key: OffsetCommitKey, position: int) -> None:
        """Apply a tombstone; `position` as in `put`."""
        topics = self._groups.get(key.group_id, {})
        partitions = topics.get(key.topic, {})
        previous = partitions.pop(key.partition, None)
        if previous is not None and position:
            self._replaced.setdefault(key, []).append((position, previous))

    def settle(self, committed: int) -> None:
        """Drop replaced values that no reader at `committed` or later can see."""
        if not self._replaced:
            return
        for key, versions in list(self._replaced.items()):
            kept = [version for version in versions if version[0] > committed]
            if kept:
                self._replaced[key] = kept
            else:
                del self._replaced[key]

    def count(self) -> int:
        """The offsets applied, of all groups. Source: gauge NumOffsets of both coordinators."""
        return sum(len(parts) for topics in self._groups.values() for parts in topics.values())

    def get(self, key: OffsetCommitKey, committed: int) -> OffsetCommitValue | None:
        """The offset as a reader at that log position sees it."""
        value = self._groups.get(key.group_id, {}).get(key.topic, {}).get(key.partition)
        for position, previous in reversed(self._replaced.get(key, ())):
            if position > committed:
                value = previous
        return value

    def all_of(
        self, group_id: str, committed: int
    ) -> Iterator[tuple[str, list[tuple[int, OffsetCommitValue]]]]:
        """Every topic with the offsets a reader sees, in the order of Kafka's tables.

        A topic whose offsets are all unseen yet is listed without partitions.
        """
        topics = self._groups.get(group_id, {})
        for topic in timeline_order(topics):
            found: list[tuple[int, OffsetCommitValue]] = []
            for partition in timeline_order(topics[topic], hash_of=integer_hash):
                value = self.get(OffsetCommitKey(group_id, topic, partition), committed)
                if value is not None:
                    found.append((partition, value))
            if found:
                yield topic, found
