"""Consecutive records that were handed out together, in the order of their offsets.

Source: kafka 4.3.1, server/.../share/fetch/InFlightBatch.java, and the map of them in
core/.../share/SharePartition.java (cachedState).
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator

from coordinator_sim.broker.shares.acquisition_locks import AcquisitionLock
from coordinator_sim.broker.shares.in_flight_state import NO_MEMBER, InFlightState, RecordState
from coordinator_sim.errors import InvariantViolation


class InFlightBatch:
    """Records from one offset to another, with one state or with one each.

    Args:
        first_offset: Of the first record.
        last_offset: Of the last one.
        state: The state of all of them.
    """

    __slots__ = ("_state", "first_offset", "last_offset", "offsets")

    def __init__(self, first_offset: int, last_offset: int, state: InFlightState) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self._state: InFlightState | None = state
        self.offsets: dict[int, InFlightState] | None = None
        """The state of each record, in order; None while they have one state."""

    @property
    def state(self) -> InFlightState:
        """The state of all records; they must have one."""
        if self._state is None:
            raise InvariantViolation("each record has a state of its own", self.first_offset)
        return self._state

    @property
    def size(self) -> int:
        """Number of offsets."""
        return self.last_offset - self.first_offset + 1

    def is_within(self, first_offset: int, last_offset: int) -> bool:
        """Whether all records are in a range. Source: SharePartition.checkForFullMatch."""
        return self.first_offset >= first_offset and self.last_offset <= last_offset

    def is_split_by(self, start_offset: int) -> bool:
        """Whether a start offset has passed some of the records, and not all.

        Source: SharePartition.checkForStartOffsetWithinBatch.
        """
        return self.first_offset < start_offset <= self.last_offset

    def parts(self) -> Iterator[tuple[int, int, InFlightState]]:
        """The records with one state each, or all at once: first offset, last offset, state."""
        if self.offsets is None:
            yield self.first_offset, self.last_offset, self.state
        else:
            for offset, state in self.offsets.items():
                yield offset, offset, state

    def split(self) -> dict[int, InFlightState]:
        """Give each record a state of its own, unless it has one, and return these.

        Source: InFlightBatch.maybeInitializeOffsetStateUpdate.
        """
        if self.offsets is None:
            whole = self.state
            lock = whole.lock
            self.offsets = {
                offset: InFlightState(
                    whole.state,
                    whole.delivery_count,
                    whole.member_id,
                    None if lock is None else lock.of_offset(offset),
                )
                for offset in range(self.first_offset, self.last_offset + 1)
            }
            whole.clear_lock()
            self._state = None
        return self.offsets

    def split_after(self, last_acquired: int, lock_of: Callable[[int], AcquisitionLock]) -> None:
        """Leave the records after one to others: they count as never handed out.

        Source: InFlightBatch.maybeInitializeOffsetStateUpdate(targetOffset, delayMs).
        """
        whole = self.state
        self.offsets = {}
        for offset in range(self.first_offset, self.last_offset + 1):
            if offset <= last_acquired:
                state = InFlightState(
                    whole.state, whole.delivery_count, whole.member_id, lock_of(offset)
                )
            else:
                state = InFlightState(RecordState.AVAILABLE, whole.delivery_count - 1, NO_MEMBER)
            self.offsets[offset] = state
        self._state = None


class InFlightCache:
    """Batches by their first offset, in ascending order."""

    __slots__ = ("_batches", "_firsts")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._batches: dict[int, InFlightBatch] = {}

    def __len__(self) -> int:
        """Number of batches."""
        return len(self._firsts)

    def __iter__(self) -> Iterator[InFlightBatch]:
        """Iterate over the batches as they are now."""
        return iter([self._batches[first] for first in self._firsts])

    def put(self, batch: InFlightBatch) -> None:
        """Add a batch, or replace the one that begins where it does."""
        if batch.first_offset not in self._batches:
            insort(self._firsts, batch.first_offset)
        self._batches[batch.first_offset] = batch

    def first(self) -> InFlightBatch:
        """The first batch; there must be one."""
        return self._batches[self._firsts[0]]

    def last(self) -> InFlightBatch:
        """The last batch; there must be one."""
        return self._batches[self._firsts[-1]]

    def floor(self, offset: int) -> InFlightBatch | None:
        """The last batch that begins at an offset or before."""
        index = bisect_right(self._firsts, offset)
        return self._batches[self._firsts[index - 1]] if index else None

    def lower(self, offset: int) -> InFlightBatch | None:
        """The last batch that begins before an offset."""
        return self.floor(offset - 1)

    def higher(self, offset: int) -> InFlightBatch | None:
        """The first batch that begins after an offset."""
        index = bisect_right(self._firsts, offset)
        return self._batches[self._firsts[index]] if index < len(self._firsts) else None

    def beginning_in(self, first_offset: int, last_offset: int) -> list[InFlightBatch]:
        """The batches that begin in a range of offsets, both inclusive."""
        start = bisect_left(self._firsts, first_offset)
        end = bisect_right(self._firsts, last_offset)
        return [self._batches[first] for first in self._firsts[start:end]]

    def remove_through(self, batch: InFlightBatch) -> None:
        """Remove the batches up to one, and that one."""
        end = bisect_right(self._firsts, batch.first_offset)
        for first in self._firsts[:end]:
            del self._batches[first]
        del self._firsts[:end]

    def clear(self) -> None:
        """Remove all batches."""
        self._firsts.clear()
        self._batches.clear()
