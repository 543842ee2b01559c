"""The records of a share partition that were handed out, from its start offset to its end offset.

Source: kafka 4.3.1, core/.../share/SharePartition.java.
"""

from coordinator_sim.broker.shares.in_flight_batch import InFlightCache
from coordinator_sim.errors import InvariantViolation, OperationAborted


class GapWindow:
    """Where records may be that neither the share coordinator nor this leader knows of.

    They were handed out by an earlier leader, which never wrote what became of them.

    Source: SharePartition.GapWindow.

    Args:
        end_offset: The end offset at which this was found out; later ends make it void.
        gap_start_offset: The first offset that may be such a record.
    """

    __slots__ = ("end_offset", "gap_start_offset")

    def __init__(self, end_offset: int, gap_start_offset: int) -> None:
        self.end_offset = end_offset
        self.gap_start_offset = gap_start_offset


class InFlightRecords:
    """The batches with the offsets around them, and what is counted of them."""

    def __init__(self) -> None:
        self.batches = InFlightCache()
        self.start_offset = 0
        self.end_offset = 0
        self.gap_window: GapWindow | None = None
        self.has_released = False
        """Whether an available record may be among them. Source: findNextFetchOffset."""
        self.delivery_complete_count = 0
        """Records from the start offset on that are acknowledged or archived."""

    @property
    def count(self) -> int:
        """Number of offsets in flight. Source: SharePartition.numInFlightRecords."""
        return self.end_offset - self.start_offset + 1 if len(self.batches) else 0

    def active_gap_window(self) -> GapWindow | None:
        """The gaps that are still to be fetched. Source: isPersisterReadGapWindowActive."""
        window = self.gap_window
        if window is None or window.end_offset != self.end_offset:
            return None
        return window

    def shrink_gap_window(self, offset: int) -> None:
        """Move the start of the gap window to an offset: no gap is before it.

        Source: SharePartition.maybeUpdatePersisterGapWindowStartOffset.
        """
        window = self.active_gap_window()
        if window is not None and offset <= window.end_offset:
            window.gap_start_offset = offset
        else:
            self.gap_window = None

    def count_from_start(self, first_offset: int, last_offset: int) -> int:
        """How many offsets of a range are not before the start offset.

        Source: SharePartition.numInFlightRecordsInBatch.
        """
        return max(0, last_offset - max(self.start_offset, first_offset) + 1)

    def next_fetch_offset(self) -> int:
        """Where the log is read next: the first available record, else the end.

        Source: SharePartition.nextFetchOffset.
        """
        batches = self.batches
        if not len(batches) or self.start_offset > batches.last().last_offset:
            self.has_released = False
            return self.end_offset
        if self.has_released:
            found = self._first_available()
            if found is not None:
                return found
            self.has_released = False
        return self.end_offset + 1

    def _first_available(self) -> int | None:
        window = self.active_gap_window()
        gap_start = -1 if window is None else window.gap_start_offset
        for batch in self.batches:
            if window is not None:
                if batch.first_offset > gap_start:
                    return gap_start
                gap_start = max(batch.last_offset + 1, gap_start)
            found = next((first for first, _, state in batch.parts() if state.is_acquirable), None)
            if found is not None:
                return found
        return None

    def advance_start_offset(self) -> bool:
        """Forget the records at the start that are done with; return whether there were any.

        Source: SharePartition.maybeUpdateCachedStateAndOffsets.

        Raises:
            OperationAborted: Kafka throws, and nothing has changed.
        """
        if not self._can_advance():
            return False
        last_done, terminal_count = self._last_done()
        if last_done == -1:
            return False
        batches = self.batches
        last_cached = batches.last().last_offset
        if last_done == last_cached:
            self.start_offset = self.end_offset = last_cached + 1
            batches.clear()
            self.delivery_complete_count = 0
            return True
        self._advance_past(last_done)
        self.delivery_complete_count -= terminal_count
        return True

    def _can_advance(self) -> bool:
        """Whether the record at the start offset is done with. Source: canMoveStartOffset.

        Raises:
            OperationAborted: Kafka throws, where the log's start passed a batch whose records have
                states of their own, and nothing was fetched since.
        """
        batch = self.batches.floor(self.start_offset)
        if batch is None:
            return False
        state = batch.state_at(self.start_offset) if batch.is_split else batch.state
        if state is None:
            raise OperationAborted("no record at the start offset", self.start_offset)
        return not state.is_in_transition and state.state.is_terminal

    def _last_done(self) -> tuple[int, int]:
        """The last offset of those at the start that are done with, and how many are counted.

        The offset is -1 where the first one is not done with.

        Source: SharePartition.findLastOffsetAcknowledgedAndMetadata.
        """
        last_done = -1
        terminal_count = 0
        window = self.active_gap_window()
        for batch in self.batches:
            if window is not None and batch.last_offset >= window.gap_start_offset:
                break
            for first_offset, last_offset, state in batch.parts():
                if state.is_in_transition or not state.state.is_terminal:
                    return last_done, terminal_count
                last_done = last_offset
                terminal_count += self.count_from_start(first_offset, last_offset)
        return last_done, terminal_count

    def _advance_past(self, last_done: int) -> None:
        """Move the start offset past a record that is not the last; drop the batches before it.

        QUIRK: batches may overlap, where a leader's writes left gaps and the log's batches do not
        end at them. The batch that begins last counts, whichever the record was found in, and
        another one may be dropped with records that are not done with.
        """
        batches = self.batches
        batch = batches.floor(last_done)
        if batch is None:
            raise InvariantViolation("no batch has the record", last_done)
        if last_done == batch.last_offset:
            following = batches.higher(last_done)
            if following is not None:
                self.start_offset = max(self.start_offset, following.first_offset)
            window = self.active_gap_window()
            if window is not None:
                self.start_offset = min(window.gap_start_offset, self.start_offset)
            batches.remove_through(batch)
            return
        self.start_offset = max(self.start_offset, last_done + 1)
        previous = batches.lower(batch.first_offset)
        if previous is not None:
            batches.remove_through(previous)
