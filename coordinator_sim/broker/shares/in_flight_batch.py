"""Consecutive records that were handed out together, in the order of their offsets.

Source: kafka 4.3.1, server/.../share/fetch/InFlightBatch.java, and the map of them in
core/.../share/SharePartition.java (cachedState).
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from coordinator_sim.broker.shares.acquisition_locks import AcquisitionLock
from coordinator_sim.broker.shares.in_flight_state import NO_MEMBER, InFlightState, RecordState
from coordinator_sim.errors import InvariantViolation


class InFlightBatch:
    """Records from one offset to another, with one state or with one for each run of records.

    Kafka's has a state for each record once it is split. Records in a row that nothing tells apart
    share one here, so that a batch of a million records costs no more than its runs.

    Args:
        first_offset: Of the first record.
        last_offset: Of the last one.
        state: The state of all of them.
    """

    __slots__ = ("_firsts", "_state", "_states", "first_offset", "last_offset")

    def __init__(self, first_offset: int, last_offset: int, state: InFlightState) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self._state: InFlightState | None = state
        self._firsts: list[int] = []
        self._states: list[InFlightState] = []

    @property
    def is_split(self) -> bool:
        """Whether records have states of their own."""
        return self._state is None

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

    # -- runs of records -------------------------------------------------------------------

    def parts(self) -> Iterator[tuple[int, int, InFlightState]]:
        """The records in runs with one state: first offset, last offset, state."""
        if self._state is not None:
            return iter(((self.first_offset, self.last_offset, self._state),))
        ends = chain(islice(self._firsts, 1, None), (self.last_offset + 1,))
        return (
            (first, end - 1, state)
            for first, end, state in zip(self._firsts, ends, self._states, strict=True)
        )

    def state_at(self, offset: int) -> InFlightState | None:
        """The state of one record; None for an offset outside."""
        if not self.first_offset <= offset <= self.last_offset:
            return None
        return self._state or self._states[bisect_right(self._firsts, offset) - 1]

    def runs_in(
        self, first_offset: int, last_offset: int, *, singly: bool = False
    ) -> list[tuple[int, int, InFlightState]]:
        """The runs of a split batch in a range, cut at its ends.

        Args:
            first_offset: Of the range.
            last_offset: Of the range; it may end behind the batch, and begin before it.
            singly: Whether to cut between all records.
        """
        first = max(first_offset, self.first_offset)
        last = min(last_offset, self.last_offset)
        if first > last:
            return []
        self.cut(range(first, last + 2) if singly else (first, last + 1))
        start = bisect_left(self._firsts, first)
        end = bisect_right(self._firsts, last)
        ends = [*self._firsts[start + 1 : end], last + 1]
        return [
            (run_first, run_end - 1, state)
            for run_first, run_end, state in zip(
                self._firsts[start:end], ends, self._states[start:end], strict=True
            )
        ]

    def cut(self, bounds: Sequence[int]) -> None:
        """Split runs at these ascending offsets; offsets outside the batch are ignored."""
        start = max(bisect_right(self._firsts, bounds[0]) - 1, 0)
        end = bisect_right(self._firsts, bounds[-1])
        firsts: list[int] = []
        states: list[InFlightState] = []
        waiting = iter(
            [bound for bound in bounds if self.first_offset <= bound <= self.last_offset]
        )
        bound = next(waiting, None)
        for index in range(start, end):
            state = self._states[index]
            firsts.append(self._firsts[index])
            states.append(state)
            following = self._firsts[index + 1] if index + 1 < end else self.last_offset + 1
            while bound is not None and bound < following:
                if bound > firsts[-1]:
                    firsts.append(bound)
                    states.append(state.copy())
                bound = next(waiting, None)
        if len(firsts) > end - start:
            self._firsts[start:end] = firsts
            self._states[start:end] = states

    def merge(self, first_offset: int, last_offset: int) -> None:
        """Join neighbouring runs of equal state in a range and at its borders."""
        start = max(bisect_right(self._firsts, first_offset) - 2, 0)
        end = bisect_right(self._firsts, last_offset + 1)
        firsts: list[int] = []
        states: list[InFlightState] = []
        for index in range(start, end):
            if not states or not states[-1].is_like(self._states[index]):
                firsts.append(self._firsts[index])
                states.append(self._states[index])
        if len(firsts) < end - start:
            self._firsts[start:end] = firsts
            self._states[start:end] = states

    def locked_by(self, lock: AcquisitionLock) -> Iterator[int]:
        """The records that a lock is still on, in order, while others may be taken from it."""
        at = max(lock.first_offset, self.first_offset)
        while at <= min(lock.last_offset, self.last_offset):
            index = bisect_right(self._firsts, at) - 1
            if self._states[index].lock is lock:
                yield at
                at += 1
            elif index + 1 < len(self._firsts):
                at = self._firsts[index + 1]
            else:
                return

    def split(self) -> None:
        """Give each record a state of its own, unless it has one.

        Source: InFlightBatch.maybeInitializeOffsetStateUpdate.
        """
        whole = self._state
        if whole is None:
            return
        lock = None if whole.lock is None else whole.lock.of_records(self.locked_by)
        state = InFlightState(whole.state, whole.delivery_count, whole.member_id, lock)
        whole.clear_lock()
        self._become([self.first_offset], [state])

    def split_after(self, last_acquired: int, lock: AcquisitionLock) -> None:
        """Leave the records after one to others: they count as never handed out.

        Source: InFlightBatch.maybeInitializeOffsetStateUpdate(targetOffset, delayMs).
        """
        whole = self.state
        acquired = InFlightState(whole.state, whole.delivery_count, whole.member_id, lock)
        others = InFlightState(RecordState.AVAILABLE, whole.delivery_count - 1, NO_MEMBER)
        self._become([self.first_offset, last_acquired + 1], [acquired, others])

    def _become(self, firsts: list[int], states: list[InFlightState]) -> None:
        self._firsts, self._states, self._state = firsts, states, None


class InFlightCache:
    """Batches by their first offset, in ascending order."""

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
