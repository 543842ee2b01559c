"""Segments of record batches in memory.

The aborted transactions of one log, for readers of committed records.

Source: kafka trunk, storage/.../internals/log: TransactionIndex.collectAbortedTxns,
LocalLog.addAbortedTransactions.
"""

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Final

from coordinator_sim.log.contract import (
    AbortedTransaction,
    EpochStart,
    KeptState,
    Keys,
    ProducerEntry,
    SegmentInfo,
    SegmentSettings,
    StoredSpan,
)


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


_LENGTH: Final = struct.Struct(">i")
_LENGTH_AT: Final = 8
_LOG_OVERHEAD: Final = 12
_MAX_OFFSET_SPAN: Final = 2**31 - 1
"""Largest span of a segment. Source: LogSegment.canConvertToRelativeOffset."""

_Seen = dict[Hashable, Keys]


class _Segment:
    """Batches in order, with columns to find them by."""

    __slots__ = (
        "base_offset",
        "bases",
        "batches",
        "begun_ms",
        "ends",
        "first_ms",
        "keys",
        "lasts",
        "max_timestamp_ms",
        "next_offset",
        "size_bytes",
        "timestamps",
    )

    def __init__(self, base_offset: int) -> None:
        self.base_offset = self.next_offset = base_offset
        self.batches: list[bytes] = []
        self.keys: list[Keys] = []
        """Keys of each batch; empty for batches that are never superseded."""
        self.bases: list[int] = []
        self.lasts: list[int] = []
        self.ends: list[int] = []
        """Size of all batches up to and including each one."""
        self.timestamps: list[int] = []
        self.size_bytes = 0
        self.max_timestamp_ms = -1
        self.first_ms = -1
        self.begun_ms = 0
        """What its age is counted from: the first batch's timestamp, or when it came."""

    def put(self, batch: bytes, span: StoredSpan, keys: Keys = ()) -> None:
        if not self.batches:
            self.first_ms = span.max_timestamp_ms
        self.batches.append(batch)
        self.keys.append(keys)
        self.bases.append(span.base_offset)
        self.lasts.append(span.last_offset)
        self.size_bytes += len(batch)
        self.ends.append(self.size_bytes)
        self.timestamps.append(span.max_timestamp_ms)
        self.next_offset = span.last_offset + 1
        self.max_timestamp_ms = max(self.max_timestamp_ms, span.max_timestamp_ms)

    def put_all(self, data: bytes, spans: Sequence[StoredSpan]) -> None:
        start = 0
        for span in spans:
            (length,) = _LENGTH.unpack_from(data, start + _LENGTH_AT)
            end = start + _LOG_OVERHEAD + length
            self.put(data[start:end], span)
            start = end

    def read(self, offset: int, max_bytes: int, before_offset: int) -> bytes:
        index = bisect_left(self.lasts, offset)
        batches = self.batches
        stop = len(batches)
        if self.bases and self.bases[-1] >= before_offset:
            stop = bisect_left(self.bases, before_offset)
        if index >= stop:
            return b""
        start_byte = self.ends[index - 1] if index else 0
        stop = min(stop, max(index + 1, bisect_right(self.ends, start_byte + max_bytes)))
        if stop == index + 1:
            return batches[index]
        return b"".join(batches[index:stop])

    def keep(self, count: int) -> None:
        """Keep only the given number of oldest batches."""
        del self.batches[count:], self.bases[count:], self.lasts[count:]
        del self.ends[count:], self.timestamps[count:], self.keys[count:]
        self.size_bytes = self.ends[-1] if count else 0
        self.next_offset = self.lasts[-1] + 1 if count else self.base_offset
        self.max_timestamp_ms = max(self.timestamps, default=-1)

    def forget_superseded(self, seen: _Seen, before_offset: int) -> int:
        """Drop batches whose keys all occur in later batches; return the number left.

        Args:
            seen: Key -> keys of the oldest kept batch that has it; updated.
            before_offset: Batches from this offset on stay.
        """
        kept: list[int] = []
        newest = len(self.batches) - 1
        for index in range(newest, -1, -1):
            keys = self.keys[index]
            if self.lasts[index] < before_offset and keys:
                # Usually a batch has exactly the keys of a newer one.
                is_known = seen.get(keys[0]) == keys or seen.keys() >= set(keys)
                if index < newest and is_known:
                    continue
                seen.update(dict.fromkeys(keys, keys))
            kept.append(index)
        if len(kept) <= newest:
            self._keep_only(kept[::-1])
        return len(kept)

    def _keep_only(self, kept: Sequence[int]) -> None:
        sizes = [self.ends[index] - (self.ends[index - 1] if index else 0) for index in kept]
        self.ends = list(accumulate(sizes))
        self.size_bytes = self.ends[-1] if sizes else 0
        self.batches = [self.batches[index] for index in kept]
        self.keys = [self.keys[index] for index in kept]
        self.bases = [self.bases[index] for index in kept]
        self.lasts = [self.lasts[index] for index in kept]
        self.timestamps = [self.timestamps[index] for index in kept]

    def info(self) -> SegmentInfo:
        return SegmentInfo(
            base_offset=self.base_offset,
            next_offset=self.next_offset,
            size_bytes=self.size_bytes,
            max_timestamp_ms=self.max_timestamp_ms,
        )


class MemoryStore:
    """A `SegmentStore` in memory.

    Args:
        base_offset: Base offset of the first segment.
        settings: When segments roll; settings of indexes and flushes have no effect.
    """

    __slots__ = (
        "_aborted",
        "_active",
        "_bases",
        "_epochs",
        "_log_start",
        "_segments",
        "_settings",
        "_snapshots",
    )

    def __init__(self, base_offset: int = 0, settings: SegmentSettings | None = None) -> None:
        self._settings = SegmentSettings() if settings is None else settings
        self._active = _Segment(base_offset)
        self._segments = [self._active]
        self._bases = [base_offset]
        self._aborted = AbortedIndex()
        self._epochs: tuple[EpochStart, ...] = ()
        self._log_start = base_offset
        self._snapshots: dict[int, tuple[ProducerEntry, ...]] = {}

    def configure(self, settings: SegmentSettings) -> None:
        """Use other settings from now on; see `SegmentStore.configure`."""
        self._settings = settings

    def append(
        self, data: bytes, spans: Sequence[StoredSpan], now_ms: int, keys: Keys = ()
    ) -> int | None:
        """Append whole batches; see `SegmentStore.append`."""
        rolled = self.make_room(len(data), spans, now_ms)
        if len(spans) == 1:
            self._active.put(data, spans[0], keys)
        else:
            self._active.put_all(data, spans)
        return rolled

    def forget_superseded(self, before_offset: int) -> int:
        """Drop superseded batches; the newest one of each segment stays."""
        seen: _Seen = {}
        return sum(
            segment.forget_superseded(seen, before_offset) for segment in reversed(self._segments)
        )

    def make_room(self, size_bytes: int, spans: Sequence[StoredSpan], now_ms: int) -> int | None:
        """Roll the segment if needed. Source: LogSegment.shouldRoll and timeWaitedForRoll."""
        active, settings, first, last = self._active, self._settings, spans[0], spans[-1]
        newest_ms = last.max_timestamp_ms
        if first is not last:
            newest_ms = max(span.max_timestamp_ms for span in spans)
        if not active.batches:
            active.begun_ms = now_ms
        age_ms = now_ms - active.begun_ms if active.first_ms < 0 else newest_ms - active.first_ms
        if not active.batches or (
            active.size_bytes <= settings.segment_bytes - size_bytes
            and age_ms <= settings.segment_ms
            and last.last_offset - active.base_offset <= _MAX_OFFSET_SPAN
        ):
            return None
        self.roll(first.base_offset)
        self._active.begun_ms = now_ms
        return first.base_offset

    def read(self, offset: int, max_bytes: int, *, before_offset: int) -> bytes:
        """Read batches of one segment; see `SegmentStore.read`."""
        index = max(bisect_right(self._bases, offset) - 1, 0)
        for segment in self._segments[index:]:
            found = segment.read(offset, max_bytes, before_offset)
            if found:
                return found
        return b""

    def first_at_or_after(self, timestamp_ms: int, *, from_offset: int) -> bytes:
        """Find a batch by timestamp; see `SegmentStore.first_at_or_after`."""
        for segment in self._segments:
            if segment.max_timestamp_ms < timestamp_ms or segment.next_offset <= from_offset:
                continue
            for index in range(bisect_left(segment.lasts, from_offset), len(segment.lasts)):
                if segment.timestamps[index] >= timestamp_ms:
                    return segment.batches[index]
        return b""

    def segments(self) -> Sequence[SegmentInfo]:
        """Return all segments; see `SegmentStore.segments`."""
        return tuple(segment.info() for segment in self._segments)

    def roll(self, base_offset: int) -> None:
        """Begin a new active segment, unless an empty one of that base offset is active."""
        if base_offset == self._active.base_offset and not self._active.batches:
            return
        self._active = _Segment(base_offset)
        self._segments.append(self._active)
        self._bases.append(base_offset)

    # -- beside the batches --------------------------------------------------------------------

    def kept(self) -> KeptState:
        """Return the kept state; drop snapshots past the end or not past the start."""
        end = self._active.next_offset
        self._forget_snapshots(at for at in self._snapshots if not self._log_start < at <= end)
        offset = max(self._snapshots, default=max(self._log_start, self._bases[0]))
        self._aborted.truncate_to(offset)
        return KeptState(
            offset=offset,
            log_start_offset=self._log_start,
            producers=self._snapshots.get(offset, ()),
            epochs=self._epochs,
            aborted=self._aborted.entries(),
        )

    def keep_producers(self, offset: int, producers: Sequence[ProducerEntry]) -> None:
        """Keep a snapshot of the producers, as long as its segment exists."""
        self._snapshots[offset] = tuple(producers)

    def keep_epochs(self, epochs: Sequence[EpochStart]) -> None:
        """Keep the leader epochs; see `SegmentStore.keep_epochs`."""
        self._epochs = tuple(epochs)

    def keep_aborted(self, transaction: AbortedTransaction) -> None:
        """Keep an aborted transaction; see `SegmentStore.keep_aborted`."""
        self._aborted.add(transaction)

    def aborted(self, from_offset: int, before_offset: int) -> Sequence[AbortedTransaction]:
        """Return aborted transactions of a range; see `SegmentStore.aborted`."""
        return self._aborted.overlapping(from_offset, before_offset)

    def keep_log_start(self, offset: int) -> None:
        """Keep the log start; see `SegmentStore.keep_log_start`."""
        self._log_start = offset

    # -- what goes -----------------------------------------------------------------------------

    def drop_before(self, offset: int) -> None:
        """Delete segments that end before an offset; see `SegmentStore.drop_before`."""
        gone = sum(1 for _, after in pairwise(self._bases) if after <= offset)
        if gone:
            del self._segments[:gone], self._bases[:gone]
            self._aborted.drop_before(self._bases[0])
            self._forget_snapshots(at for at in self._snapshots if at < self._bases[0])

    def truncate_to(self, offset: int) -> None:
        """Delete batches from an offset on; see `SegmentStore.truncate_to`."""
        while len(self._segments) > 1 and self._bases[-1] > offset:
            del self._segments[-1], self._bases[-1]
        self._active = active = self._segments[-1]
        active.keep(bisect_left(active.lasts, offset))
        if offset < active.base_offset:
            active.base_offset = active.next_offset = self._bases[-1] = offset
        self._aborted.truncate_to(offset)
        self._forget_snapshots(at for at in self._snapshots if at > offset)

    def _forget_snapshots(self, offsets: Iterable[int]) -> None:
        for at in tuple(offsets):
            del self._snapshots[at]

    def replace(
        self,
        base_offsets: Sequence[int],
        data: bytes,
        spans: Sequence[StoredSpan],
        aborted: Sequence[AbortedTransaction] | None = None,
    ) -> None:
        """Replace several segments by one; see `SegmentStore.replace`."""
        first = self._bases.index(base_offsets[0])
        after = first + len(base_offsets)
        merged = _Segment(base_offsets[0])
        merged.put_all(data, spans)
        merged.next_offset = self._segments[after - 1].next_offset
        if aborted is not None:
            self._aborted.replace(merged.base_offset, self._bases[after], aborted)
        self._forget_snapshots(at for at in self._snapshots if at in base_offsets[1:])
        self._segments[first:after] = [merged]
        self._bases[first:after] = [merged.base_offset]

    def flush(self) -> None:
        """Do nothing: there is no disk."""

    def delete(self) -> None:
        """Drop all data."""
        self._active = _Segment(self._active.next_offset)
        self._segments = [self._active]
        self._bases = [self._active.base_offset]
        self._aborted = AbortedIndex()
        self._snapshots.clear()

    def close(self) -> None:
        """Do nothing."""
