"""State batches that overlap, made into batches that do not.

Batches are taken in ascending order, and neighbours are put together or cut as long as any two of
them overlap: more deliveries win over fewer, and among as many the higher state. Neighbours alike
that touch become one.

Source: kafka 4.3, share-coordinator/.../PersisterStateBatchCombiner.java; server-common/.../share/
persister/PersisterStateBatch.java, compareTo.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from coordinator_sim.kafka.share_state_records import StateBatch

_Key = tuple[int, int, int, int]

NO_START: int = -1
"""A start offset that cuts nothing off."""


def combined(
    so_far: Sequence[StateBatch], new: Sequence[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """What is kept after a write: both together, without what lies before the start offset.

    A single batch stays as it is, but for the part before the start.
    """
    pruned = [each for batch in (*so_far, *new) for each in _pruned(batch, start_offset)]
    if len(pruned) <= 1:
        return tuple(pruned)
    # DEVIATION: a batch that ends before it begins is dropped where there are others. Kafka's
    # combiner may put such a one together with its neighbours for ever. Only brokers send batches.
    sound = [batch for batch in pruned if batch.first_offset <= batch.last_offset]
    return tuple(_Combining(sound).run())


def _pruned(batch: StateBatch, start_offset: int) -> Iterable[StateBatch]:
    """The part of a batch from the start offset on. Source: pruneBatches."""
    if start_offset == NO_START or batch.first_offset >= start_offset:
        return (batch,)
    if batch.last_offset < start_offset:
        return ()
    return (_part(batch, start_offset, batch.last_offset),)


def _part(batch: StateBatch, first_offset: int, last_offset: int) -> StateBatch:
    return StateBatch(first_offset, last_offset, batch.delivery_state, batch.delivery_count)


def _place(batch: StateBatch) -> _Key:
    """The place of a batch in line. Source: PersisterStateBatch.compareTo."""
    return batch.first_offset, batch.last_offset, batch.delivery_count, batch.delivery_state


def _weight(batch: StateBatch) -> tuple[int, int]:
    """Which of two batches wins where they overlap. Source: compareBatchDeliveryInfo."""
    return batch.delivery_count, batch.delivery_state


class _Combining:
    """The batches in line, without repetitions, and those that are done with."""

    __slots__ = ("_done", "_line")

    def __init__(self, batches: Iterable[StateBatch]) -> None:
        self._line = sorted({_place(batch): batch for batch in batches}.values(), key=_place)
        self._done: list[StateBatch] = []

    def run(self) -> list[StateBatch]:
        """Put pairs together until none overlaps.

        Ends because a step makes the line shorter, or cuts what overlaps.
        """
        while (found := self._next_pair()) is not None:
            before, after = found
            for batch in _put_together(before, after):
                self._add(batch)
        return [*self._done, *self._line]

    def _next_pair(self) -> tuple[StateBatch, StateBatch] | None:
        """Take the first two neighbours that can be put together; those before are done with.

        Source: getMergeCandidatePair. Where there is none, all but the last are done with.
        """
        line = self._line
        for index in range(1, len(line)):
            before, after = line[index - 1], line[index]
            if after.first_offset <= before.last_offset or (
                before.last_offset + 1 == after.first_offset and _weight(before) == _weight(after)
            ):
                self._done += line[: index - 1]
                self._line = line[index + 1 :]
                return before, after
        self._done += line[:-1]
        self._line = line[-1:]
        return None

    def _add(self, batch: StateBatch) -> None:
        place = _place(batch)
        index = bisect_left(self._line, place, key=_place)
        if index == len(self._line) or _place(self._line[index]) != place:
            self._line.insert(index, batch)


def _put_together(before: StateBatch, after: StateBatch) -> tuple[StateBatch, ...]:
    """What becomes of two neighbours that overlap, or are alike and touch.

    Source: handleSameStateMerge and handleDiffStateOverlap.
    """
    if _weight(after) == _weight(before):
        return (_part(before, before.first_offset, max(after.last_offset, before.last_offset)),)
    is_weaker = _weight(after) < _weight(before)
    if after.first_offset == before.first_offset:
        if is_weaker and after.last_offset > before.last_offset:
            return before, _part(after, before.last_offset + 1, after.last_offset)
        # As long as the other, it stands behind it because it is stronger.
        return (after,)
    if is_weaker:
        if after.last_offset <= before.last_offset:
            return (before,)
        return before, _part(after, before.last_offset + 1, after.last_offset)
    front = _part(before, before.first_offset, after.first_offset - 1)
    if after.last_offset < before.last_offset:
        return front, after, _part(before, after.last_offset + 1, before.last_offset)
    return front, after
