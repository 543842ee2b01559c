"""State batches that overlap, made into batches that do not.

Where batches overlap, more deliveries win over fewer, and among as many the higher state.
Neighbours alike that touch become one. Up to 4.3 batches are taken in ascending order, and
neighbours put together or cut as long as any two of them overlap; since 4.4 there is one pass over
the offsets at which batches begin and end.

Source: kafka 4.3 and 4.4, share-coordinator/.../PersisterStateBatchCombiner.java; server-common/
.../share/persister/PersisterStateBatch.java, compareTo.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from coordinator_sim.messages.share_state_records import StateBatch

_Key = tuple[int, int, int, int]

NO_START: int = -1
"""A start offset that cuts nothing off."""


def combined(
    so_far: Sequence[StateBatch],
    new: Sequence[StateBatch],
    start_offset: int,
    *,
    sweeps: bool = True,
) -> tuple[StateBatch, ...]:
    """What is kept after a write: both together, without what lies before the start offset.

    A single batch stays as it is, but for the part before the start.

    Args:
        so_far: What is kept now.
        new: What is written.
        start_offset: See above; `NO_START` for none.
        sweeps: See `Profile.share_state_sweeps_batches`.
    """
    pruned = [each for batch in (*so_far, *new) for each in _pruned(batch, start_offset)]
    if len(pruned) <= 1:
        return tuple(pruned)
    # DEVIATION: a batch that ends before it begins is dropped where there are others. Kafka's
    # combiner may put such a one together with its neighbours for ever, or throws. Only brokers
    # send batches.
    sound = [batch for batch in pruned if batch.first_offset <= batch.last_offset]
    return tuple(_swept(sound) if sweeps else _Combining(sound).run())


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


def _swept(batches: Sequence[StateBatch]) -> list[StateBatch]:
    """One pass over the offsets at which batches begin or end. Source: sweepMerge."""
    edges = [(batch.first_offset, 1, _weight(batch)) for batch in batches]
    edges += [(batch.last_offset + 1, -1, _weight(batch)) for batch in batches]
    edges.sort()
    covers: dict[tuple[int, int], int] = {}
    swept: list[StateBatch] = []
    begun = 0
    strongest: tuple[int, int] | None = None
    for index, (offset, step, weight) in enumerate(edges):
        if strongest is not None and offset > begun:
            _append_coalesced(swept, begun, offset - 1, strongest)
        covers[weight] = covers.get(weight, 0) + step
        if not covers[weight]:
            del covers[weight]
        if index + 1 == len(edges) or edges[index + 1][0] != offset:
            strongest = max(covers, default=None)
        else:
            strongest = None
        begun = offset
    return swept


def _append_coalesced(
    swept: list[StateBatch], first_offset: int, last_offset: int, weight: tuple[int, int]
) -> None:
    """Add a stretch, or let it go on from one alike that it touches. Source: appendCoalesced."""
    count, state = weight
    if swept and swept[-1].last_offset + 1 == first_offset and _weight(swept[-1]) == weight:
        first_offset = swept.pop().first_offset
    swept.append(StateBatch(first_offset, last_offset, state, count))


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
