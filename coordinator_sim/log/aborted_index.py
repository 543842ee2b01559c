"""The aborted transactions of one log, for readers of committed records.

Source: kafka trunk, storage/.../internals/log: TransactionIndex.collectAbortedTxns,
LocalLog.addAbortedTransactions.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from coordinator_sim.log.contract import AbortedTransaction


class AbortedIndex:
    """Aborted transactions, ordered by last offset, which is the order of their markers."""

    __slots__ = ("_entries", "_lasts")

    def __init__(self, entries: Iterable[AbortedTransaction] = ()) -> None:
        self._entries = list(entries)
        self._lasts = [entry.last_offset for entry in self._entries]

    def add(self, entry: AbortedTransaction) -> None:
        """Add a transaction whose marker is the newest."""
        self._entries.append(entry)
        self._lasts.append(entry.last_offset)

    def overlapping(self, offset: int, upper_bound: int) -> tuple[AbortedTransaction, ...]:
        """Transactions with records from an offset on and before the bound.

        The search stops at an entry whose last stable offset reaches the bound: later ones cannot
        begin before it.
        """
        found = []
        for entry in self._entries[bisect_left(self._lasts, offset) :]:
            if entry.first_offset < upper_bound:
                found.append(entry)
            if entry.last_stable_offset >= upper_bound:
                break
        return tuple(found)

    def entries(self) -> tuple[AbortedTransaction, ...]:
        """All entries."""
        return tuple(self._entries)

    def drop_before(self, offset: int) -> None:
        """Forget the transactions that ended before an offset."""
        gone = bisect_left(self._lasts, offset)
        del self._entries[:gone], self._lasts[:gone]

    def replace(
        self, from_offset: int, before_offset: int, entries: Sequence[AbortedTransaction]
    ) -> None:
        """Replace all entries whose markers are in a range of offsets."""
        first = bisect_left(self._lasts, from_offset)
        after = bisect_left(self._lasts, before_offset)
        self._entries[first:after] = entries
        self._lasts[first:after] = [entry.last_offset for entry in entries]

    def truncate_to(self, offset: int) -> None:
        """Forget the transactions that ended at an offset or later."""
        kept = bisect_left(self._lasts, offset)
        del self._entries[kept:], self._lasts[kept:]
