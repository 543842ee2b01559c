"""The offsets of one partition's groups as the Java coordinator keeps them.

Committed offsets, offsets of open transactions by producer, and which producers hold an offset
open. All of it follows from the log: a batch that the log takes is applied at once, a batch that
it refuses is applied and taken back. Every batch passes here; records that are no offsets are
given to the partition (`Partition.replay`). Readers choose a log position; see `timeline`.

Nothing here knows groups, requests or the forms of records.

Source: kafka trunk, OffsetMetadataManager.java: Offsets, OpenTransactions, replay and
replayEndTransactionMarker.
"""

from collections.abc import Callable, Iterator

from coordinator_sim.coordinator.common.timeline import LATEST, Timeline, TimelineTable
from coordinator_sim.kafka.orders.iteration_order import integer_hash, long_hash
from coordinator_sim.kafka.partitioning import java_string_hash
from coordinator_sim.messages.group_records import OffsetCommitKey, OffsetCommitValue
from coordinator_sim.messages.records import NO_PRODUCER_ID, LogBatch, LogRecord
from coordinator_sim.messages.schema import ZERO_UUID

Stored = tuple[OffsetCommitValue, int]
"""An offset and the log offset of its record."""

_Partitions = TimelineTable[int, Stored]
_Topics = TimelineTable[str, _Partitions]
_Groups = TimelineTable[str, _Topics]
_Producers = TimelineTable[int, None]
_OpenPartitions = TimelineTable[int, _Producers]
_OpenTopics = TimelineTable[str, _OpenPartitions]


def _pass_over(_record: LogRecord) -> None:
    """What is done with a record of no offset where there are only offsets."""


class OffsetStore:
    """Offsets by group, topic and partition, committed and in transactions.

    Args:
        other: Applies what is in a batch beside offsets, on the same timeline.

    Attributes:
        timeline: The log positions that can be looked at.
    """

    __slots__ = ("_groups", "_open", "_other", "_pending", "timeline")

    def __init__(self, other: Callable[[LogRecord], None] = _pass_over) -> None:
        self._other = other
        self.timeline = Timeline()
        self._groups: _Groups = TimelineTable(self.timeline, java_string_hash)
        self._pending: TimelineTable[int, _Groups] = TimelineTable(self.timeline, long_hash)
        self._open: TimelineTable[str, _OpenTopics] = TimelineTable(self.timeline, java_string_hash)

    # -- what the log says -----------------------------------------------------------------

    def appended(
        self, batch: LogBatch, high_watermark: int, *, offsets_alone: bool = False
    ) -> None:
        """Apply a batch that the log took; with `offsets_alone` the others are applied by now.

        Readers see it once the high watermark has passed it.
        """
        end_offset = batch.next_offset
        self.timeline.written = batch.base_offset
        if high_watermark < end_offset:
            self.timeline.is_remembering = True
        self._apply(batch, _pass_over if offsets_alone else self._other)
        self.timeline.settle(end_offset, high_watermark)

    def refused(self, batch: LogBatch, *, offsets_alone: bool = False) -> None:
        """Apply a batch and take it back, which is not the same as leaving it.

        Source: CoordinatorContext.append and failCurrentBatch.
        """
        timeline = self.timeline
        was_remembering = timeline.is_remembering
        timeline.is_remembering = True
        timeline.written = batch.base_offset
        self._apply(batch, _pass_over if offsets_alone else self._other)
        timeline.take_back()
        timeline.is_remembering = was_remembering

    def lingering(self, batch: LogBatch, written: int, *, offsets_alone: bool = False) -> None:
        """Apply records that are not appended yet, to a log that ends at `written`."""
        self.timeline.written = written
        self.timeline.is_remembering = True
        self._apply(batch, _pass_over if offsets_alone else self._other)

    def committed(self, high_watermark: int) -> None:
        """The high watermark moved: forget what no reader can see any more."""
        self.timeline.settle(self.timeline.written, high_watermark)

    def _apply(self, batch: LogBatch, other: Callable[[LogRecord], None]) -> None:
        if batch.marker is not None:
            self.end_transaction(batch.producer_id, committed=batch.marker.committed)
            return
        producer_id = batch.producer_id
        is_remembering = self.timeline.is_remembering
        group_id = topic = None
        for offset, record in enumerate(batch.records, batch.base_offset):
            key, value = record.key, record.value
            if type(key) is not OffsetCommitKey:
                other(record)
                continue
            if value is None:
                self.remove(key)
                group_id = None
            elif producer_id != NO_PRODUCER_ID:
                self.put(key, (value, offset), producer_id)  # type: ignore[arg-type]
            else:
                if topic is not key.topic or group_id is not key.group:
                    group_id, topic = key.group, key.topic
                    table = self._partitions_of(self._groups, key)
                    entries = table.entries
                if is_remembering:
                    table.put(key.partition, (value, offset))  # type: ignore[arg-type]
                    continue
                if len(entries) >= table.made_for:
                    table.made_for = len(entries) + 1
                entries[key.partition] = (value, offset)  # type: ignore[assignment]

    # -- changes ---------------------------------------------------------------------------

    def put(self, key: OffsetCommitKey, stored: Stored, producer_id: int = NO_PRODUCER_ID) -> None:
        """Store an offset, or hold it until the transaction of its producer ends."""
        if producer_id == NO_PRODUCER_ID:
            self._partitions_of(self._groups, key).put(key.partition, stored)
            return
        held = self._pending.get(producer_id)
        if held is None:
            held = TimelineTable(self.timeline, java_string_hash)
            self._pending.put(producer_id, held)
        self._partitions_of(held, key).put(key.partition, stored)
        self._producers_of(key).put(producer_id, None)

    def remove(self, key: OffsetCommitKey) -> None:
        """Apply a tombstone: it removes the offset, and those held by any producer."""
        self._remove(self._groups, key)
        producers = self._open_producers(key)
        if producers is None:
            return
        for producer_id in producers.keys():  # noqa: SIM118 - in Kafka's order
            held = self._pending.get(producer_id)
            if held is not None:
                self._remove(held, key)
        self._close(key)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Apply a marker: what its producer held is stored, unless newer, or dropped.

        Source: replayEndTransactionMarker.
        """
        held = self._pending.remove(producer_id)
        if held is None:
            return
        ended = list(_places(held))
        for key, _ in ended:
            producers = self._producers_of(key)
            producers.remove(producer_id)
            if not producers:
                self._close(key)
        if not committed:
            return
        for key, stored in ended:
            existing = self.stored(key)
            if existing is None or stored[1] > existing[1]:
                self._partitions_of(self._groups, key).put(key.partition, stored)

    def _partitions_of(self, groups: _Groups, key: OffsetCommitKey) -> _Partitions:
        """The table of a topic's offsets, made when missing."""
        topics = groups.entries.get(key.group)
        if topics is None:
            topics = TimelineTable(self.timeline, java_string_hash)
            groups.put(key.group, topics)
        partitions = topics.entries.get(key.topic)
        if partitions is None:
            partitions = TimelineTable(self.timeline, integer_hash)
            topics.put(key.topic, partitions)
        return partitions

    def _remove(self, groups: _Groups, key: OffsetCommitKey) -> None:
        topics = groups.get(key.group)
        partitions = None if topics is None else topics.get(key.topic)
        if topics is None or partitions is None:
            return
        partitions.remove(key.partition)
        if not partitions:
            topics.remove(key.topic)
        if not topics:
            groups.remove(key.group)

    def _producers_of(self, key: OffsetCommitKey) -> _Producers:
        """The table of producers that hold this offset open, made when missing."""
        topics = self._open.get(key.group)
        if topics is None:
            topics = TimelineTable(self.timeline, java_string_hash)
            self._open.put(key.group, topics)
        partitions = topics.get(key.topic)
        if partitions is None:
            partitions = TimelineTable(self.timeline, integer_hash)
            topics.put(key.topic, partitions)
        producers = partitions.get(key.partition)
        if producers is None:
            producers = TimelineTable(self.timeline, long_hash)
            partitions.put(key.partition, producers)
        return producers

    def _open_producers(self, key: OffsetCommitKey) -> _Producers | None:
        topics = self._open.get(key.group)
        partitions = None if topics is None else topics.get(key.topic)
        return None if partitions is None else partitions.get(key.partition)

    def _close(self, key: OffsetCommitKey) -> None:
        """No producer holds this offset open any more. Source: OpenTransactions.clear."""
        topics = self._open.entries[key.group]
        partitions = topics.entries[key.topic]
        partitions.remove(key.partition)
        if not partitions:
            topics.remove(key.topic)
            if not topics:
                self._open.remove(key.group)

    # -- questions -------------------------------------------------------------------------

    def stored(self, key: OffsetCommitKey, position: int = LATEST) -> Stored | None:
        """The committed offset as a reader at that log position sees it."""
        partitions = self.offsets_of(key.group, key.topic, position)
        return None if partitions is None else partitions.get(key.partition, position)

    def offsets_of(
        self, group_id: str, topic: str, position: int = LATEST
    ) -> TimelineTable[int, Stored] | None:
        """The committed offsets of a topic, by partition; None where there are none."""
        topics = self._groups.get(group_id, position)
        return None if topics is None else topics.get(topic, position)

    def get(self, key: OffsetCommitKey, position: int = LATEST) -> OffsetCommitValue | None:
        """The committed offset at a log position, without the offset of its record."""
        stored = self.stored(key, position)
        return None if stored is None else stored[0]

    def all_of(
        self, group_id: str, position: int = LATEST
    ) -> Iterator[tuple[str, list[tuple[int, OffsetCommitValue]]]]:
        """Every topic with its offsets, in the order of Kafka's tables."""
        topics = self._groups.get(group_id, position)
        if topics is None:
            return
        for topic, partitions in topics.items(position):
            found = [(index, stored[0]) for index, stored in partitions.items(position)]
            yield topic, found

    def count(self) -> int:
        """The offsets applied, of all groups. Source: gauge NumOffsets of both coordinators."""
        return sum(
            len(partitions)
            for topics in self._groups.entries.values()
            for partitions in topics.entries.values()
        )

    def is_open(self, key: OffsetCommitKey) -> bool:
        """Whether a transaction holds this offset open."""
        return self._open_producers(key) is not None

    def has_open_transactions(self, group_id: str) -> bool:
        """Whether a transaction holds any offset of the group open."""
        return group_id in self._open

    def has_offsets(self, group_id: str) -> bool:
        """Whether the group has a committed offset."""
        return group_id in self._groups

    def delete_all_offsets(self, group_id: str) -> list[OffsetCommitKey]:
        """The keys of every offset of a group, committed or held, in Kafka's order.

        Nothing changes: tombstones of these keys do it, once appended.

        Source: OffsetMetadataManager.deleteAllOffsets.
        """
        keys = [
            OffsetCommitKey(group_id, topic, index)
            for topic, partitions in self.all_of(group_id)
            for index, _ in partitions
        ]
        topics = self._open.get(group_id)
        if topics is None:
            return keys
        for topic, open_partitions in topics.items():
            for index in open_partitions.keys():  # noqa: SIM118 - in Kafka's order
                key = OffsetCommitKey(group_id, topic, index)
                if self.stored(key) is None:
                    keys.append(key)
        return keys

    def of_topics(self, topics: dict[str, bytes | None]) -> list[OffsetCommitKey]:
        """The keys of every offset of these topics, committed first, then held, in Kafka's order.

        Args:
            topics: Name to id. An offset stored under another id of the name is left out.

        Source: OffsetMetadataManager.onTopicsDeleted.
        """
        found: list[OffsetCommitKey] = []
        for groups in (self._groups, *(held for _, held in self._pending.items())):
            for group_id, stored_topics in groups.items():
                for name, topic_id in topics.items():
                    partitions = stored_topics.get(name)
                    if partitions is None:
                        continue
                    found += [
                        OffsetCommitKey(group_id, name, index)
                        for index, stored in partitions.items()
                        if stored[0].topic_id in (ZERO_UUID, topic_id)
                    ]
        return found

    def of_partitions(self, counts: dict[str, int]) -> list[OffsetCommitKey]:
        """The keys of every offset of these topics' partitions, committed first, in Kafka's order.

        Args:
            counts: By topic, how many partitions it had.

        Source: kafka 4.2, OffsetMetadataManager.onPartitionsDeleted.
        """
        return [
            OffsetCommitKey(group_id, name, index)
            for groups in (self._groups, *(held for _, held in self._pending.items()))
            for group_id, topics in groups.items()
            for name, partitions in topics.items()
            if name in counts
            for index in sorted(partitions.keys())
            if index < counts[name]
        ]


def _places(groups: _Groups) -> Iterator[tuple[OffsetCommitKey, Stored]]:
    """Every offset of a table of groups, in Kafka's order."""
    for group_id, topics in groups.items():
        for topic, partitions in topics.items():
            for index, stored in partitions.items():
                yield OffsetCommitKey(group_id, topic, index), stored
