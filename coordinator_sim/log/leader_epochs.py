"""Where each leader epoch of a partition's log began.

Source: kafka trunk, storage/.../internals/epoch/LeaderEpochFileCache.java.
"""

from bisect import bisect_right
from collections.abc import Iterable

from coordinator_sim.log.contract import EpochStart
from coordinator_sim.log.log_values import EpochEnd


class LeaderEpochs:
    """Epochs and start offsets, both ascending.

    Attributes:
        latest: The newest epoch; -1 when none is known.
    """

    __slots__ = ("_epochs", "_starts", "latest")

    def __init__(self, entries: Iterable[EpochStart] = ()) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self.latest = -1
        for entry in entries:
            self.assign(entry.leader_epoch, entry.start_offset)

    def entries(self) -> tuple[EpochStart, ...]:
        """All epochs, oldest first."""
        return tuple(map(EpochStart, self._epochs, self._starts))

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Add the start of an epoch; return whether it is new.

        Entries that contradict it, of the same or a later epoch or offset, are removed.

        Source: LeaderEpochFileCache.assign and maybeTruncateNonMonotonicEntries.
        """
        if self._epochs and epoch == self.latest and start_offset >= self._starts[-1]:
            return False
        while self._epochs and (self._epochs[-1] >= epoch or self._starts[-1] >= start_offset):
            del self._epochs[-1], self._starts[-1]
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        self.latest = epoch
        return True

    def end_of(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """The end offset of an epoch. Source: LeaderEpochFileCache.endOffsetFor."""
        if epoch < 0:
            return EpochEnd()
        if epoch == self.latest:
            return EpochEnd(epoch, log_end_offset)
        index = bisect_right(self._epochs, epoch)
        if index == len(self._epochs):
            return EpochEnd()
        floor = self._epochs[index - 1] if index else epoch
        return EpochEnd(floor, self._starts[index])

    def at(self, offset: int) -> int:
        """The epoch that an offset belongs to; -1 unknown. Source: epochForOffset."""
        index = bisect_right(self._starts, offset)
        return self._epochs[index - 1] if index else -1

    def earliest_at(self, log_start_offset: int) -> int:
        """The epoch of the log's start; -1 when the first known epoch began after it."""
        if self._starts and self._starts[0] <= log_start_offset:
            return self._epochs[0]
        return -1

    def truncate_from_end(self, end_offset: int) -> bool:
        """Remove the epochs that began at an offset or later; return whether any did."""
        before = len(self._starts)
        while self._starts and self._starts[-1] >= end_offset:
            del self._epochs[-1], self._starts[-1]
        self.latest = self._epochs[-1] if self._epochs else -1
        return len(self._starts) < before

    def truncate_from_start(self, start_offset: int) -> bool:
        """Remove the epochs that ended before an offset; the offset's epoch now begins there."""
        index = bisect_right(self._starts, start_offset)
        if not index or (index == 1 and self._starts[0] == start_offset):
            return False
        del self._epochs[: index - 1], self._starts[: index - 1]
        self._starts[0] = start_offset
        return True

    def clear(self) -> bool:
        """Remove all; return whether there were any. A batch of an old format has no epoch."""
        had_any = bool(self._epochs)
        self._epochs, self._starts, self.latest = [], [], -1
        return had_any
