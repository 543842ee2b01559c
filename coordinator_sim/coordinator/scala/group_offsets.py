"""The offsets of one group as the Scala coordinator keeps them.

Committed offsets, plain commits on their way (one slot a partition, the last writer wins), and
offsets of open transactions by producer. State changes when an append is through, not before. All
of it sits in hash maps whose order shows in answers and tombstones.

Source: kafka 3.9, core/src/main/scala/kafka/coordinator/group/GroupMetadata.scala.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from coordinator_sim.kafka.orders.iteration_order import (
    old_scala_map_order,
    old_scala_set_order,
    scala_place,
    scala_set_order,
    scala_trie_order,
    topic_partition_hash,
)
from coordinator_sim.kafka.orders.offset_maps import SMALL_MAP
from coordinator_sim.kafka.partitioning import java_string_hash
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from coordinator_sim.messages.records import LogBatch

_FIRST_CAPACITY: Final = 16

Place = TopicPartition
Stored = tuple[OffsetCommitValue, int]
"""An offset and the first offset of its batch."""
Held = tuple[OffsetCommitValue, int | None]
"""An offset of a transaction: None for the batch until that is appended."""

partition_hash: Final = lru_cache(maxsize=65_536)(topic_partition_hash)


def immutable_order(places: Iterable[Place]) -> list[Place]:
    """The order of an immutable Map that was made from these."""
    return scala_set_order(places, hash_of=partition_hash)


def copied_order(places: Iterable[Place]) -> list[Place]:
    """The order of an immutable Map made from a copy of a mutable.HashMap of these."""
    listed = list(places)
    if len(listed) > SMALL_MAP:
        return scala_trie_order(listed, hash_of=partition_hash)
    return sorted(listed, key=lambda place: scala_place(partition_hash(place), _FIRST_CAPACITY))


class HeldOffsets(dict[Place, Held]):
    """The offsets that a group holds for one producer.

    Attributes:
        capacity: The buckets of Kafka's table of them, which any `put` may double.

    Args:
        found: What a load found of them.
    """

    __slots__ = ("capacity",)

    def __init__(self, found: Mapping[Place, Held] = MappingProxyType({})) -> None:
        self.capacity = _FIRST_CAPACITY
        for place, held in found.items():
            self.put(place, held)

    def put(self, place: Place, held: Held) -> None:
        """Hold an offset, or hold another in its place."""
        self.capacity = _put_capacity(self.capacity, len(self))
        self[place] = held


class GroupOffsets:
    """The offsets of one group.

    Attributes:
        committed: What a fetch sees.
        pending: Plain commits that are appended and not acknowledged.
        transactional: Offsets of open transactions by producer id; a producer may hold nothing.

    Args:
        is_old_scala: Whether the maps are those of Scala 2.12.
    """

    __slots__ = ("_capacity", "_is_old_scala", "committed", "pending", "transactional")

    def __init__(self, *, is_old_scala: bool = False) -> None:
        self._is_old_scala = is_old_scala
        self.committed: dict[Place, Stored] = {}
        self.pending: dict[Place, OffsetCommitValue] = {}
        self.transactional: dict[int, HeldOffsets] = {}
        self._capacity = _FIRST_CAPACITY

    # -- plain commits ---------------------------------------------------------------------

    def prepare(self, values: dict[Place, OffsetCommitValue]) -> None:
        """Hold offsets as pending until their append is through. Source: prepareOffsetCommit."""
        self.pending.update(values)

    def appended(self, place: Place, value: OffsetCommitValue, base_offset: int) -> None:
        """The append of a batch with this offset is through. Source: onOffsetCommitAppend."""
        pending = self.pending.get(place)
        if pending is None:
            return  # deleted meanwhile
        before = self.committed.get(place)
        if before is None or _is_older(before, base_offset):
            self._put(place, (value, base_offset))
        if pending == value:
            del self.pending[place]

    def failed(self, place: Place, value: OffsetCommitValue) -> None:
        """The append failed. Source: failPendingOffsetWrite."""
        if self.pending.get(place) == value:
            del self.pending[place]

    # -- transactions ----------------------------------------------------------------------

    def prepare_txn(self, producer_id: int, values: dict[Place, OffsetCommitValue]) -> None:
        """Hold a producer's offsets as pending. Source: prepareTxnOffsetCommit."""
        held = self.transactional.setdefault(producer_id, HeldOffsets())
        for place, value in values.items():
            held.put(place, (value, None))

    def appended_txn(
        self, producer_id: int, place: Place, value: OffsetCommitValue, base_offset: int
    ) -> None:
        """The record is in the log and waits for its marker. Source: onTxnOffsetCommitAppend."""
        held = self.transactional.get(producer_id, HeldOffsets())
        if place in held and held[place][0] == value:
            held.put(place, (value, base_offset))

    def failed_txn(self, producer_id: int, place: Place) -> None:
        """The append failed. Source: failPendingTxnOffsetCommit."""
        held = self.transactional.get(producer_id)
        if held is None:
            return
        held.pop(place, None)
        if not held:
            del self.transactional[producer_id]

    def complete_txn(self, producer_id: int, *, committed: bool) -> bool:
        """The transaction is over: its offsets count unless newer ones do, or are dropped.

        Returns:
            False when an offset's own append is not through yet: Kafka stops there with an
            exception, and what comes after is lost.

        Source: completePendingTxnOffsetCommit.
        """
        held = self.transactional.pop(producer_id, HeldOffsets())
        if not committed:
            return True
        for place in _table_order(held, held.capacity):
            value, base_offset = held[place]
            if base_offset is None:
                return False
            before = self.committed.get(place)
            if before is None or _is_older(before, base_offset):
                self._put(place, (value, base_offset))
        return True

    # -- removal ---------------------------------------------------------------------------

    def remove(self, places: Iterable[Place]) -> list[Place]:
        """Remove offsets, pending ones too; return the committed ones among them in Kafka's order.

        Source: removeOffsets.
        """
        removed: list[Place] = []
        for place in places:
            self.pending.pop(place, None)
            # QUIRK: only committed offsets get tombstones, so the next load brings an offset of an
            # open transaction back, and its marker then commits what was deleted.
            for held in self.transactional.values():
                held.pop(place, None)
            if self.committed.pop(place, None) is not None:
                removed.append(place)
        if self._is_old_scala:
            return old_scala_set_order(removed, hash_of=partition_hash)
        return immutable_order(removed)

    def remove_all(self) -> list[Place]:
        """Remove every committed offset. Source: removeAllOffsets."""
        return self.remove(_table_order(self.committed, self._capacity))

    def remove_expired(self, is_expired: Callable[[Place, OffsetCommitValue], bool]) -> list[Place]:
        """Remove the committed offsets that are expired and not about to be replaced.

        Source: removeExpiredOffsets.
        """
        expired = [
            place
            for place in self._table()
            if place not in self.pending and is_expired(place, self.committed[place][0])
        ]
        for place in expired:
            del self.committed[place]
        if self._is_old_scala:
            filtered = old_scala_map_order(expired, hash_of=partition_hash)
            return old_scala_set_order(filtered, hash_of=partition_hash)
        return copied_order(expired)

    # -- questions -------------------------------------------------------------------------

    def has_any(self) -> bool:
        """Whether the group has offsets, or may yet. Source: hasOffsets."""
        return bool(self.committed or self.pending or self.transactional)

    def is_unstable(self, place: Place) -> bool:
        """Whether a commit of that partition is under way."""
        return place in self.pending or any(place in held for held in self.transactional.values())

    def listed(self) -> list[Place]:
        """The committed partitions as a fetch of everything lists them. Source: allOffsets."""
        if self._is_old_scala:
            return old_scala_set_order(self._table(), hash_of=partition_hash)
        return copied_order(self.committed)

    def _table(self) -> Iterable[Place]:
        """The committed partitions: in 2.12 a bucket's order goes on into every copy."""
        if self._is_old_scala:
            return old_scala_map_order(self.committed, hash_of=partition_hash)
        return tuple(self.committed)

    def load(self, committed: dict[Place, Stored], pending: dict[int, dict[Place, Held]]) -> None:
        """Take over what a load found. Source: initializeOffsets."""
        self.committed = committed
        self.transactional = {each: HeldOffsets(held) for each, held in pending.items()}
        wanted = (len(committed) + 1) * 4 // 3
        self._capacity = max(_FIRST_CAPACITY, _table_size(wanted))

    def _put(self, place: Place, stored: Stored) -> None:
        self._capacity = _put_capacity(self._capacity, len(self.committed))
        self.committed[place] = stored


NO_OFFSETS: Final = GroupOffsets()
"""Of every group of a profile that keeps offsets elsewhere: `OffsetStore`. Never changed."""


@dataclass(slots=True, eq=False)
class LoadedOffsets:
    """What a load has found so far. Source: doLoadGroupsAndOffsets.

    Args:
        committed: Offsets that count, by group.
        pending: Those of open transactions, by producer id.
        recorded: The groups that there is a record of.
    """

    committed: dict[str, dict[Place, Stored]] = field(default_factory=dict)
    pending: dict[int, dict[tuple[str, Place], Stored]] = field(default_factory=dict)
    recorded: dict[str, None] = field(default_factory=dict)
    _capacity: int = _FIRST_CAPACITY

    def replay(self, batch: LogBatch) -> None:
        """Read a batch; all its offsets stand at the batch's first offset."""
        if batch.marker is not None:
            self._end(batch.producer_id, committed=batch.marker.committed)
            return
        for record in batch.records:
            key, value = record.key, record.value
            if isinstance(key, GroupMetadataKey):
                self._record(key.group, is_there=isinstance(value, GroupMetadataValue))
            if not isinstance(key, OffsetCommitKey):
                continue
            place = Place(key.topic, key.partition)
            if batch.transactional:
                held = self.pending.setdefault(batch.producer_id, {})
                if isinstance(value, OffsetCommitValue):
                    held[key.group, place] = (value, batch.base_offset)
                else:
                    held.pop((key.group, place), None)
            elif isinstance(value, OffsetCommitValue):
                of_group = self.committed.setdefault(key.group, {})
                of_group[place] = (value, batch.base_offset)
            else:
                self.committed.get(key.group, {}).pop(place, None)

    def recorded_order(self) -> list[str]:
        """The groups that have a metadata record, in the order of Kafka's hash table."""
        capacity = self._capacity
        return sorted(
            self.recorded, key=lambda group_id: scala_place(java_string_hash(group_id), capacity)
        )

    def _record(self, group_id: str, *, is_there: bool) -> None:
        if not is_there:
            self.recorded.pop(group_id, None)
            return
        self._capacity = _put_capacity(self._capacity, len(self.recorded))
        self.recorded[group_id] = None

    def _end(self, producer_id: int, *, committed: bool) -> None:
        held = self.pending.pop(producer_id, {})
        if not committed:
            return
        for (group_id, place), (value, base_offset) in held.items():
            of_group = self.committed.setdefault(group_id, {})
            before = of_group.get(place)
            if before is None or _is_older(before, base_offset):
                of_group[place] = (value, base_offset)


def _is_older(before: Stored, base_offset: int) -> bool:
    """Whether the first batch lies before the second. Source: olderThan."""
    return before[1] < base_offset


def _put_capacity(capacity: int, size: int) -> int:
    """The buckets of a table of so many keys when a key is put, whether it is there or not.

    Source: mutable.HashMap.put0.
    """
    return capacity * 2 if (size + 1) * 4 >= capacity * 3 else capacity


def _table_order(places: Iterable[Place], capacity: int) -> list[Place]:
    return sorted(places, key=lambda place: scala_place(partition_hash(place), capacity))


def _table_size(wanted: int) -> int:
    """The buckets of a table made for so many. Source: mutable.HashMap.tableSizeFor."""
    return 1 << max(wanted - 1, 4).bit_length()
