"""A partition's segments in a folder, as Kafka keeps them.

Each segment has indexes of offsets, times and aborted transactions and a snapshot of producers;
the folder also has the leader epochs and the topic id.

Source: kafka trunk, storage/.../internals/log: UnifiedLog, LocalLog, LogSegments.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from coordinator_sim.disk import checkpoints
from coordinator_sim.disk.files import OpenFiles, put_aside_name
from coordinator_sim.disk.segment_file import SegmentFile
from coordinator_sim.log import contract
from coordinator_sim.log.indexes import ABORTED_ENTRY, aborted_bytes


@dataclass(slots=True)
class StoreHooks:
    """Callbacks for events of a store; None for no call.

    Attributes:
        delete: Deletes the folder in the store's place.
        grown: Called on the first append after it was set.
        log_start: Called with a new log start, which a file above the folder keeps.
        mended: Called with a line on a missing or damaged file beside the batches.
        replace: Called before segments are replaced by fewer or smaller ones.
        waiting: Called when `FileStore.flush_deadline_ms` gets a value.
    """

    delete: Callable[[], None] | None = None
    grown: Callable[[], None] | None = None
    log_start: Callable[[int], None] | None = None
    mended: Callable[[str], None] | None = None
    replace: Callable[[], None] | None = None
    waiting: Callable[[], None] | None = None


SIDE_FILES: Final = (".index", ".timeindex", ".txnindex")
"""Suffixes of a segment's files other than its batches."""
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
_NEVER_MS: Final = 2**63 - 1


class FileStore:
    """A `SegmentStore` on disk.

    Args:
        folder: Folder of the partition; created if absent.
        open_files: Cache of open descriptors.
        settings: Settings of segments.
        topic_id: 16 bytes, written to a new folder; None writes no id.

    Attributes:
        flushed_offset: Offset before which everything is on disk.
        hooks: Listeners for events of the store.
        learns_epochs: Whether leader epochs must be learned from the batches, because their
            file is missing.
        expects_snapshot: Whether a snapshot of producers must exist at the log's end.
        sync_always: Whether every append is on disk when it returns.
    """

    def __init__(
        self,
        folder: str,
        open_files: OpenFiles,
        settings: contract.SegmentSettings = contract.SegmentSettings(),  # noqa: B008 - it cannot change
        *,
        topic_id: bytes | None = None,
    ) -> None:
        self.folder = folder
        self._open_files = open_files
        self._settings = settings
        self.hooks = StoreHooks()
        self.learns_epochs = self.expects_snapshot = False
        self._segments: list[SegmentFile] = []
        self._bases: list[int] = []
        self._aborted: list[contract.AbortedTransaction] = []
        self._epochs: list[contract.EpochStart] = []
        self._snapshots: list[int] = []
        self._unflushed_since_ms: int | None = None
        self.log_start_offset = self.flushed_offset = 0
        self.sync_always = self.is_closed = False
        if open_files.files.make_folder(folder) and topic_id is not None:
            self._write(
                checkpoints.PARTITION_METADATA, checkpoints.partition_metadata_bytes(topic_id)
            )

    # -- opening -----------------------------------------------------------------------------

    def adopt(
        self,
        segments: Sequence[SegmentFile],
        *,
        aborted: Iterable[contract.AbortedTransaction] = (),
        epochs: Iterable[contract.EpochStart] = (),
        snapshots: Iterable[int] = (),
    ) -> None:
        """Take over the contents of the folder.

        Args:
            segments: Segments in order, the active one last; if empty, a new log begins.
            aborted: Aborted transactions in order of their last offsets.
            epochs: Leader epochs in order.
            snapshots: Offsets of the producers' snapshots, ascending.
        """
        self._segments = list(segments) or [self._segment(self.log_start_offset)]
        self._bases = [segment.base_offset for segment in self._segments]
        self.log_start_offset = max(self.log_start_offset, self._bases[0])
        self._aborted = list(aborted)
        self._epochs = [epoch for epoch in epochs if epoch.start_offset <= self.next_offset]
        self._snapshots = list(snapshots)

    @property
    def next_offset(self) -> int:
        """Offset after the last record."""
        return self._segments[-1].next_offset

    def kept(self) -> contract.KeptState:
        """Return the state kept beside the batches; see `SegmentStore.kept`."""
        expected, self.expects_snapshot = self.expects_snapshot, False
        offset, producers = self._newest_snapshot()
        if expected and offset != self.next_offset and self.next_offset > self.log_start_offset:
            path = self._path(f"{self.next_offset:020d}.snapshot")
            self._tell_mended(f"{path}: missing; producers are learned from the batches")
        self._forget_aborted(offset)
        return contract.KeptState(
            offset=offset,
            log_start_offset=self.log_start_offset,
            producers=producers,
            epochs=tuple(self._epochs),
            aborted=tuple(self._aborted),
        )

    def _newest_snapshot(self) -> tuple[int, tuple[contract.ProducerEntry, ...]]:
        """The newest readable snapshot inside the log; damaged ones and others are removed."""
        while self._snapshots:
            offset = self._snapshots[-1]
            path = self._path(f"{offset:020d}.snapshot")
            if self.log_start_offset < offset <= self.next_offset:
                producers = checkpoints.producers_of_snapshot(
                    self._open_files.files.read_whole(path) or b""
                )
                if producers is not None:
                    return offset, producers
                self._tell_mended(f"{path}: damaged, removed; an older snapshot or the batches do")
            self._open_files.files.remove(path)
            self._snapshots.pop()
        return self.log_start_offset, ()

    def _tell_mended(self, line: str) -> None:
        if self.hooks.mended is not None:
            self.hooks.mended(line)

    # -- appending ---------------------------------------------------------------------------

    def append(
        self,
        data: bytes,
        spans: Sequence[contract.StoredSpan],
        now_ms: int,
        keys: contract.Keys = (),  # noqa: ARG002 - of the contract
    ) -> int | None:
        """Append whole batches; see `SegmentStore.append`.

        Raises:
            OSError: Nothing was appended; the segment may have been rolled nevertheless.
        """
        rolled = self.make_room(len(data), spans, now_ms)
        active = self._segments[-1]
        if active.size_bytes == 0:
            active.created_ms = now_ms
        end = spans[-1].last_offset + 1
        sync = self._flush_is_due(end, now_ms)
        if sync:
            self._sync_closed()
        active.append(data, spans, sync=sync)
        if self.hooks.grown is not None:
            grown, self.hooks.grown = self.hooks.grown, None
            grown()
        if sync:
            self._flushed()
        elif self._unflushed_since_ms is None:
            self._unflushed_since_ms = now_ms
            if self.hooks.waiting is not None and self._settings.flush_ms < _NEVER_MS:
                self.hooks.waiting()
        return rolled

    def make_room(
        self, size_bytes: int, spans: Sequence[contract.StoredSpan], now_ms: int
    ) -> int | None:
        """Roll the segment if the batches need it; see `SegmentStore.make_room`."""
        if not self._segments[-1].is_due(size_bytes, spans, now_ms):
            return None
        self.roll(spans[0].base_offset)
        return spans[0].base_offset

    def forget_superseded(self, before_offset: int) -> int:  # noqa: ARG002 - of the contract
        """Return 0: every batch is in a file, and the cleaner removes superseded records."""
        return 0

    def _flush_is_due(self, end: int, now_ms: int) -> bool:
        since_ms = self._unflushed_since_ms
        return (
            self.sync_always
            or end - self.flushed_offset >= self._settings.flush_messages
            or (since_ms is not None and now_ms - since_ms >= self._settings.flush_ms)
        )

    def flush_deadline_ms(self) -> int | None:
        """When `flush.ms` is over, on the clock of appends; None while all is flushed."""
        if self._unflushed_since_ms is None:
            return None
        return self._unflushed_since_ms + self._settings.flush_ms

    def roll(self, base_offset: int) -> None:
        """Begin a new active segment; see `SegmentStore.roll`."""
        active = self._segments[-1]
        if active.size_bytes == 0 and base_offset == active.base_offset:
            return
        segment = self._segment(base_offset)
        segment.create()
        active.close_for_good()
        self._segments.append(segment)
        self._bases.append(base_offset)

    def configure(self, settings: contract.SegmentSettings) -> None:
        """Use other settings from now on; see `SegmentStore.configure`."""
        self._settings = settings
        for segment in self._segments:
            segment.settings = settings

    # -- reading -----------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, *, before_offset: int) -> bytes:
        """Read batches of one segment; see `SegmentStore.read`."""
        first = max(bisect_right(self._bases, offset) - 1, 0)
        for segment in self._segments[first:]:
            if segment.base_offset >= before_offset:
                break
            found = segment.read(offset, max_bytes, before_offset)
            if found:
                return found
        return b""

    def first_at_or_after(self, timestamp_ms: int, *, from_offset: int) -> bytes:
        """Find a batch by timestamp; see `SegmentStore.first_at_or_after`."""
        for segment in self._segments:
            found = segment.first_at_or_after(timestamp_ms, from_offset)
            if found:
                return found
        return b""

    def segments(self) -> Sequence[contract.SegmentInfo]:
        """Return all segments; see `SegmentStore.segments`."""
        return [segment.info() for segment in self._segments]

    def aborted(
        self, from_offset: int, before_offset: int
    ) -> Sequence[contract.AbortedTransaction]:
        """Return aborted transactions of a range. Source: TransactionIndex.collectAbortedTxns."""
        first = bisect_left(self._aborted, from_offset, key=_last_offset)
        return tuple(one for one in self._aborted[first:] if one.first_offset < before_offset)

    # -- beside the batches ------------------------------------------------------------------

    def keep_producers(self, offset: int, producers: Sequence[contract.ProducerEntry]) -> None:
        """Write a snapshot of producers; older ones stay only at the base offsets of segments."""
        self._write(f"{offset:020d}.snapshot", checkpoints.snapshot_bytes(producers))
        bases = set(self._bases)
        for old in self._snapshots:
            if old not in bases and old != offset:
                self._open_files.files.remove(self._path(f"{old:020d}.snapshot"))
        kept = [old for old in self._snapshots if old in bases and old < offset]
        self._snapshots = [*kept, offset]

    def keep_epochs(self, epochs: Sequence[contract.EpochStart]) -> None:
        """Write the leader epochs; see `SegmentStore.keep_epochs`."""
        self._write(checkpoints.LEADER_EPOCHS, checkpoints.epochs_checkpoint_bytes(epochs))
        self._epochs = list(epochs)
        if self.learns_epochs:
            self.learns_epochs = False
            path = self._path(checkpoints.LEADER_EPOCHS)
            self._tell_mended(f"{path}: missing or damaged; made anew from the batches")

    def keep_aborted(self, transaction: contract.AbortedTransaction) -> None:
        """Write an aborted transaction; see `SegmentStore.keep_aborted`."""
        base = self._base_of(transaction.last_offset)
        before = len(self._aborted) - bisect_left(self._aborted, base, key=_last_offset)
        self._open_files.files.append(
            self._path(f"{base:020d}.txnindex"),
            aborted_bytes((transaction,)),
            before * ABORTED_ENTRY.size,
        )
        self._aborted.append(transaction)

    def keep_log_start(self, offset: int) -> None:
        """Keep the log start; see `SegmentStore.keep_log_start`."""
        self.log_start_offset = offset
        if self.hooks.log_start is not None:
            self.hooks.log_start(offset)

    def _forget_aborted(self, offset: int) -> None:
        """Forget aborted transactions with markers from an offset on, in their files too."""
        count = bisect_left(self._aborted, offset, key=_last_offset)
        gone = self._aborted[count:]
        del self._aborted[count:]
        for base in dict.fromkeys(self._base_of(one.last_offset) for one in gone):
            kept = [one for one in self._aborted if self._base_of(one.last_offset) == base]
            self._write(f"{base:020d}.txnindex", aborted_bytes(kept))

    def _base_of(self, offset: int) -> int:
        return self._bases[max(bisect_right(self._bases, offset) - 1, 0)]

    # -- cutting -----------------------------------------------------------------------------

    def drop_before(self, offset: int) -> None:
        """Delete segments that end before an offset; see `SegmentStore.drop_before`."""
        while len(self._bases) > 1 and self._bases[1] <= offset:
            self._remove(self._segments[0])
            del self._segments[0], self._bases[0]
        first = self._bases[0]
        self.log_start_offset = max(self.log_start_offset, first)
        while self._snapshots and self._snapshots[0] < first:
            self._remove_snapshot(self._snapshots[0])
            del self._snapshots[0]
        del self._aborted[: bisect_left(self._aborted, first, key=_last_offset)]

    def truncate_to(self, offset: int) -> None:
        """Delete batches from an offset on; see `SegmentStore.truncate_to`."""
        while len(self._bases) > 1 and self._bases[-1] > offset:
            self._remove(self._segments[-1])
            del self._segments[-1], self._bases[-1]
            self._segments[-1].reopen()
        active = self._segments[-1]
        if offset <= active.base_offset:
            self._begin_at(offset)
        else:
            active.truncate_to(offset)
        self.flushed_offset = min(self.flushed_offset, offset)
        while self._snapshots and self._snapshots[-1] > self.next_offset:
            self._remove_snapshot(self._snapshots.pop())
        self._forget_aborted(offset)
        if self._epochs and self._epochs[-1].start_offset >= offset:
            self.keep_epochs([one for one in self._epochs if one.start_offset < offset])

    def _begin_at(self, offset: int) -> None:
        """Replace the last segment, of which nothing is left, by an empty one at an offset."""
        if offset == self._bases[-1] and self._segments[-1].size_bytes == 0:
            return
        self._remove(self._segments[-1])
        self._segments[-1] = self._segment(offset)
        self._segments[-1].create()
        self._bases[-1] = offset
        self.log_start_offset = min(self.log_start_offset, offset)

    def replace(
        self,
        base_offsets: Sequence[int],
        data: bytes,
        spans: Sequence[contract.StoredSpan],
        aborted: Sequence[contract.AbortedTransaction] | None = None,
    ) -> None:
        """Replace segments atomically: after a crash either the old or the new ones are there.

        The new files are complete before the old ones are removed: `.cleaned`, then `.swap`, then
        their own names. Source: LocalLog.replaceSegments.
        """
        if self.hooks.replace is not None:
            self.hooks.replace()
        files, first = self._open_files.files, self._bases.index(base_offsets[0])
        after = first + len(base_offsets)
        old = self._segments[first:after]
        begin = bisect_left(self._aborted, old[0].base_offset, key=_last_offset)
        end = bisect_left(self._aborted, self._bases[after], key=_last_offset)
        kept = self._aborted[begin:end] if aborted is None else list(aborted)
        suffixes = self._write_cleaned(old[0].base_offset, kept, data, spans)
        stem = old[0].stem
        for suffix in suffixes:
            files.rename(f"{stem}{suffix}{CLEANED}", f"{stem}{suffix}{SWAP}")
        for segment in old:
            self._remove(segment, keep_snapshot=segment is old[0])
        for suffix in suffixes:
            files.rename(f"{stem}{suffix}{SWAP}", f"{stem}{suffix}")
        new = self._segment(old[0].base_offset)
        new.load(len(data), next_offset=old[-1].next_offset)
        new.is_unsynced = True
        self._aborted[begin:end] = kept
        self._segments[first:after] = [new]
        self._bases[first:after] = [new.base_offset]
        self._snapshots = [
            at for at in self._snapshots if at not in base_offsets[1:] or at in self._bases
        ]

    def _write_cleaned(
        self,
        base_offset: int,
        aborted: Sequence[contract.AbortedTransaction],
        data: bytes,
        spans: Sequence[contract.StoredSpan],
    ) -> tuple[str, ...]:
        """Write the files of a segment as `.cleaned`, which the next opening removes after a crash.

        Returns:
            Their suffixes, `.log` last: until it has its final name, the swap counts as
            unfinished.
        """
        new = self._segment(base_offset)
        new.path = f"{new.stem}.log{CLEANED}"
        new.create()
        if spans:
            new.append(data, spans, sync=True)
        offsets, times = new.index_bytes()
        new.close()
        parts = {".index": offsets, ".timeindex": times, ".txnindex": aborted_bytes(aborted)}
        if not aborted:
            del parts[".txnindex"]
        for suffix, content in parts.items():
            self._write(f"{base_offset:020d}{suffix}{CLEANED}", content)
        return (*parts, ".log")

    # -- flushing and leaving ----------------------------------------------------------------

    def flush(self) -> None:
        """Return when all batches are on disk; see `SegmentStore.flush`."""
        for segment in self._segments:
            segment.flush()
        self._flushed()

    def _sync_closed(self) -> None:
        for segment in self._segments[:-1]:
            segment.flush()

    def _flushed(self) -> None:
        self.flushed_offset = self.next_offset
        self._unflushed_since_ms = None

    def delete(self) -> None:
        """Delete the folder; it is renamed first, which is atomic. See `SegmentStore.delete`."""
        self.let_go()
        if self.hooks.delete is not None:
            self.hooks.delete()
            return
        gone = put_aside_name(self.folder, "-delete")
        self._open_files.files.remove_tree(gone)
        self._open_files.files.rename(self.folder, gone)
        self._open_files.files.remove_tree(gone)

    def close(self) -> None:
        """Flush, and close all files; see `SegmentStore.close`."""
        if not self.is_closed:
            self.flush()
            for segment in self._segments:
                segment.rest_dirty()
            self.let_go()

    def let_go(self) -> None:
        """Close the files without flushing."""
        self.is_closed = True
        for segment in self._segments:
            segment.close()

    # -- files -------------------------------------------------------------------------------

    def _segment(self, base_offset: int) -> SegmentFile:
        return SegmentFile(self._open_files, self.folder, base_offset, self._settings)

    def _remove(self, segment: SegmentFile, *, keep_snapshot: bool = False) -> None:
        """Remove a segment's files, batches first: an opening after a crash removes the rest."""
        segment.close()
        files = self._open_files.files
        files.remove(segment.path)
        for suffix in SIDE_FILES:
            files.remove(f"{segment.stem}{suffix}")
        if not keep_snapshot:
            files.remove(f"{segment.stem}.snapshot")
            self._snapshots = [at for at in self._snapshots if at != segment.base_offset]

    def _remove_snapshot(self, offset: int) -> None:
        self._open_files.files.remove(self._path(f"{offset:020d}.snapshot"))

    def _path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def _write(self, name: str, data: bytes) -> None:
        self._open_files.files.replace(self._path(name), data)


def _last_offset(transaction: contract.AbortedTransaction) -> int:
    return transaction.last_offset
