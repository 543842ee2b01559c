"""Acknowledgements of one partition's records, and the batches in which they are sent.

Source: kafka 4.4, clients/.../consumer/internals/Acknowledgements.java, NodeAcknowledgements.java.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Final, NamedTuple, TypeVar

from coordinator_sim.kafka.orders.iteration_order import (
    java_hash_order,
    topic_partition_hash,
    uuid_hash,
)
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.kafka.share_types import AcknowledgeType

_LONGEST_MIXED_RUN: Final = 10
"""Longer runs of one type are batches of their own (MAX_RECORDS_WITH_SAME_ACKNOWLEDGE_TYPE)."""
V = TypeVar("V")


class TopicIdPartition(NamedTuple):
    """A partition with the id of its topic."""

    topic_id: bytes
    topic_partition: TopicPartition


def _hash_of(tip: TopicIdPartition) -> int:
    """Return the hash, in more bits than Java keeps. Source: TopicIdPartition.hashCode."""
    return 31 * (31 + uuid_hash(tip.topic_id)) + topic_partition_hash(tip.topic_partition)


def in_java_order(entries: Mapping[TopicIdPartition, V]) -> list[tuple[TopicIdPartition, V]]:
    """Return the entries in the order of a HashMap with these keys."""
    return [(tip, entries[tip]) for tip in java_hash_order(entries, hash_of=_hash_of)]


class OffsetBatch(NamedTuple):
    """Consecutive offsets and their types; one type holds for all of them."""

    first_offset: int
    last_offset: int
    types: tuple[int, ...]


class Acknowledgements:
    """What is acknowledged of one partition, and the outcome.

    Attributes:
        types: The type of each offset; GAP for an offset without a record.
        is_completed: Whether the outcome is known.
        error: Name of the exception; None for success.
    """

    __slots__ = ("error", "is_completed", "types")

    def __init__(self) -> None:
        self.types: dict[int, AcknowledgeType] = {}
        self.is_completed = False
        self.error: str | None = None

    def merge(self, other: "Acknowledgements") -> None:
        """Add another's offsets over those here (Acknowledgements.merge)."""
        self.types.update(other.types)

    def complete(self, error: str | None) -> None:
        """Set the outcome; later ones are ignored (Acknowledgements.complete)."""
        if not self.is_completed:
            self.is_completed, self.error = True, error

    def batches(self) -> Iterator[OffsetBatch]:
        """Yield the batches, ascending.

        Consecutive offsets are one batch, but a run of more than ten of one type is its own.

        Source: Acknowledgements.getAcknowledgementBatches.
        """
        ordered = sorted(self.types)
        for _, group in groupby(enumerate(ordered), key=lambda each: each[1] - each[0]):
            offsets = [offset for _, offset in group]
            mixed: list[int] = []
            for _, run in groupby(offsets, key=self.types.__getitem__):
                same = list(run)
                if len(same) > _LONGEST_MIXED_RUN:
                    yield from self._batch(mixed)
                    yield from self._batch(same)
                    mixed = []
                else:
                    mixed += same
            yield from self._batch(mixed)

    def _batch(self, offsets: list[int]) -> Iterator[OffsetBatch]:
        if offsets:
            types = tuple(int(self.types[offset]) for offset in offsets)
            said = types[:1] if len(set(types)) == 1 else types
            yield OffsetBatch(offsets[0], offsets[-1], said)


class NodeAcknowledgements(NamedTuple):
    """Acknowledgements for the broker that delivered the records."""

    node_id: int
    acknowledgements: Acknowledgements
