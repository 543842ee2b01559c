"""A log segment as a file, with its indexes in separate files.

Writes go to positions, so the remains of a failed write are never read and soon overwritten.
Index entries are collected in memory and written when the segment is closed, flushed or rolled;
after a kill in between, recovery finds them again by scanning.

Source: kafka trunk, storage/.../internals/log/LogSegment.java: append, recover, truncateTo,
findOffsetByTimestamp, onBecomeInactiveSegment.
"""

import errno
import mmap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from coordinator_sim.disk.files import OpenFiles
from coordinator_sim.log.contract import SegmentInfo, SegmentSettings, StoredSpan
from coordinator_sim.log.format.batch_headers import HEADER_BYTES, batch_size, header_at
from coordinator_sim.log.format.record_batches import CURRENT_MAGIC
from coordinator_sim.log.format.segments import Damage, SegmentReader
from coordinator_sim.log.indexes import (
    MAX_RELATIVE_OFFSET,
    OFFSET_ENTRY,
    TIME_ENTRY,
    OffsetIndex,
    TimeIndex,
)

_CHUNK_BYTES: Final = 8_192
"""Bytes read at once to walk headers: more than usually lie between two index entries."""
_NO_ENTRY: Final = (-1, -1)


class SegmentFile:
    """Batches in a file, found by offset and by time.

    Args:
        open_files: Cache of open descriptors.
        folder: Folder of the partition.
        base_offset: Base offset, which names the file.
        settings: Settings of index entries and of rolling.
    """

    def __init__(
        self, open_files: OpenFiles, folder: str, base_offset: int, settings: SegmentSettings
    ) -> None:
        self._open_files = open_files
        self.settings = settings
        self.stem = f"{folder}/{base_offset:020d}"
        self.path = f"{self.stem}.log"
        self.base_offset = self.next_offset = base_offset
        self.created_ms = 0
        self.size_bytes = self._since_entry = 0
        self.first_timestamp_ms = self.max_timestamp_ms = -1
        self._max_offset = base_offset
        self._offsets: OffsetIndex | None = OffsetIndex()
        self._times: TimeIndex | None = TimeIndex()
        self._followed = _NO_ENTRY
        self.is_active = True
        self._is_torn = self.is_unsynced = False

    def info(self) -> SegmentInfo:
        """Facts of the segment for a log."""
        return SegmentInfo(
            base_offset=self.base_offset,
            next_offset=self.next_offset,
            size_bytes=self.size_bytes,
            max_timestamp_ms=self.max_timestamp_ms,
        )

    def is_due(self, size_bytes: int, spans: Sequence[StoredSpan], now_ms: int) -> bool:
        """Whether these batches need a new segment. Source: LogSegment.shouldRoll."""
        settings, last = self.settings, spans[-1].last_offset
        if last - self.base_offset > MAX_RELATIVE_OFFSET:
            return True
        if self.size_bytes == 0:
            return False
        offsets, times = self._indexes()
        return (
            self.size_bytes > settings.segment_bytes - size_bytes
            or self._waited_ms(spans, now_ms) > settings.segment_ms
            or len(offsets) >= settings.segment_index_bytes // OFFSET_ENTRY.size
            or len(times) >= settings.segment_index_bytes // TIME_ENTRY.size - 1
        )

    def _waited_ms(self, spans: Sequence[StoredSpan], now_ms: int) -> int:
        """Age of the segment for `segment.ms`. Source: LogSegment.timeWaitedForRoll."""
        if self.first_timestamp_ms >= 0:
            return max(span.max_timestamp_ms for span in spans) - self.first_timestamp_ms
        return now_ms - self.created_ms

    def create(self) -> None:
        """Create the file if absent."""
        self._open_files.fd(self)

    def append(self, data: bytes, spans: Sequence[StoredSpan], *, sync: bool) -> None:
        """Append batches.

        Args:
            data: Whole batches, one for each span.
            spans: At least one.
            sync: Whether the batches must be on disk when this returns.

        Raises:
            OSError: They could not be written; the segment is unchanged.
        """
        files, fd = self._open_files.files, self._open_files.fd(self)
        try:
            if self._is_torn:
                files.truncate(fd, self.size_bytes)
                self._is_torn = False
            files.write_all(fd, data, self.size_bytes)
            if sync:
                files.sync(fd)
        except OSError:
            self._mend(fd)
            raise
        self.is_unsynced = not sync
        at = 0
        for span in spans:
            size = batch_size(data, at)
            self._noted(size, span.last_offset, span.max_timestamp_ms)
            at += size

    def _mend(self, fd: int) -> None:
        """Cut off the remains of a failed write."""
        self._is_torn = True
        try:
            self._open_files.files.truncate(fd, self.size_bytes)
        except OSError:
            return  # The next append tries again before it writes; reads stop before the remains.
        self._is_torn = False

    def _noted(self, size: int, last_offset: int, timestamp_ms: int) -> None:
        """Take one more batch into account. Source: LogSegment.append."""
        if self.size_bytes == 0:
            self.first_timestamp_ms = timestamp_ms
        if timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms, self._max_offset = timestamp_ms, last_offset
        if self._since_entry > self.settings.index_interval_bytes:
            offsets, times = self._indexes()
            offsets.add(last_offset - self.base_offset, self.size_bytes)
            times.add_newer(self.max_timestamp_ms, self._max_offset - self.base_offset)
            self._since_entry = 0
        self._since_entry += size
        self.size_bytes += size
        self.next_offset = last_offset + 1

    def read(self, offset: int, max_bytes: int, before_offset: int) -> bytes:
        """Batches from the one that holds an offset on; see `SegmentStore.read`.

        Raises:
            OSError: The file cannot be read, or has damage before that offset.
        """
        if offset >= self.next_offset or self.size_bytes == 0:
            return b""
        found = self._find(offset)
        if found is None or found[2] >= before_offset:
            return b""
        position, size = found[:2]
        data = self._bytes(position, max(size, min(max_bytes, self.size_bytes - position)))
        if before_offset >= self.next_offset and position + len(data) == self.size_bytes:
            self._followed = (self.next_offset, self.size_bytes)
            return data
        stop = size
        while (header := header_at(data, stop)) is not None:
            if header[1] >= before_offset or stop + header[0] > len(data):
                self._followed = (header[1], position + stop)
                break
            stop += header[0]
        return data[:stop]

    def first_at_or_after(self, timestamp_ms: int, from_offset: int) -> bytes:
        """The first batch not older than a timestamp and not wholly before an offset; else empty.

        Source: LogSegment.findOffsetByTimestamp.
        """
        if self.max_timestamp_ms < timestamp_ms or self.next_offset <= from_offset:
            return b""
        offsets, times = self._indexes()
        begin = max(times.offset(timestamp_ms), from_offset - self.base_offset)
        for position, size, _, last, newest_ms in self._walk(offsets.position(begin)):
            if newest_ms >= timestamp_ms and last >= from_offset:
                return self._bytes(position, size)
        return b""

    def truncate_to(self, offset: int) -> None:
        """Cut off every batch with a record at or after an offset.

        Raises:
            OSError: The file could not be cut; nothing has changed.
        """
        cut = next((at for at, _, _, last, _ in self._walk(0, offset) if last >= offset), None)
        if cut is None:
            return
        self._open_files.files.truncate(self._open_files.fd(self), cut)
        offsets, times = self._indexes()
        offsets.cut(cut)
        times.cut(max(offset - self.base_offset, 0))
        self.size_bytes = cut
        self._is_torn = False
        self.is_unsynced = True
        self._followed = _NO_ENTRY
        self._read_tail()
        self._write_indexes()

    def reopen(self) -> None:
        """Become the active segment again, after the later ones were deleted."""
        self.is_active = True
        self._followed = _NO_ENTRY
        self._read_tail()

    def index_bytes(self) -> tuple[bytes, bytes]:
        """The pending entries of both indexes, with the final time entry, if no batch follows."""
        offsets, times = self._indexes()
        if self.size_bytes:
            times.add_newer(self.max_timestamp_ms, self._max_offset - self.base_offset)
        return offsets.pending(), times.pending()

    def close_for_good(self) -> None:
        """Finish the indexes, as no batch follows. Source: LogSegment.onBecomeInactiveSegment."""
        self.rest_dirty()
        self.is_active = False

    def rest_dirty(self) -> None:
        """Write the pending index entries; the files are then as a broker leaves them."""
        if self.size_bytes and self._times is not None:
            self._times.add_newer(self.max_timestamp_ms, self._max_offset - self.base_offset)
            self._write_indexes()

    def flush(self) -> None:
        """Return when the batches are on disk; indexes need not be, as they can be rebuilt."""
        if self.is_unsynced:
            self.rest_dirty()
            self._open_files.files.sync(self._open_files.fd(self))
            self.is_unsynced = False

    def rest(self) -> None:
        """Drop the indexes of an inactive segment from memory; see `FileOwner.rest`."""
        if not self.is_active:
            self._offsets = self._times = None

    def close(self) -> None:
        """Close the file."""
        self._open_files.close(self)

    def load(self, size_bytes: int, *, next_offset: int | None) -> bool:
        """Load an existing file by its indexes.

        Args:
            size_bytes: Length of the file.
            next_offset: Base offset of the next segment; None for the active one.

        Returns:
            Whether indexes and file match; if not, call `recover`.
        """
        self.size_bytes = size_bytes
        self.is_active = next_offset is None
        self._offsets = self._times = None
        if not self._has_sound_indexes():
            return False
        end = self._read_tail()
        if next_offset is not None:
            self.next_offset = next_offset
            self.rest()
        self.close()
        return end == size_bytes

    def load_unindexed(self, size_bytes: int) -> None:
        """Load a file without indexes by reading all headers."""
        self.size_bytes = size_bytes
        self._offsets, self._times = OffsetIndex(), TimeIndex()
        self._read_tail()

    def recover(self) -> Damage | None:
        """Read and check all batches, end the segment before the first bad one, rebuild indexes.

        A file with a bad batch stays unchanged, and so do its indexes, until `cut_damage`.

        Returns:
            The damage; None when there is none. Source: LogSegment.recover.
        """
        self._offsets, self._times = OffsetIndex(), TimeIndex()
        size_bytes, self.size_bytes, self._since_entry = self.size_bytes, 0, 0
        self.next_offset, self.max_timestamp_ms = self.base_offset, -1
        self._max_offset, self.first_timestamp_ms = self.base_offset, -1
        damage = self._scan(size_bytes) if size_bytes else None
        self.is_unsynced = True
        self._followed = _NO_ENTRY
        if damage is None:
            self.rest_dirty()
        return damage

    def cut_damage(self) -> None:
        """Cut off the damage that `recover` found.

        Raises:
            OSError: The file cannot be cut.
        """
        self._open_files.files.truncate(self._open_files.fd(self), self.size_bytes)
        self.rest_dirty()

    def _scan(self, size_bytes: int) -> Damage | None:
        fd = self._open_files.fd(self)
        with mmap.mmap(fd, size_bytes, prot=mmap.PROT_READ) as mapped, memoryview(mapped) as view:
            reader = SegmentReader(view)
            for batch in reader:
                base = batch.base_offset if batch.magic >= CURRENT_MAGIC else batch.last_offset
                last = batch.last_offset
                if not self.next_offset <= base <= last <= self.base_offset + MAX_RELATIVE_OFFSET:
                    return Damage(
                        position=batch.position,
                        invalid_bytes=size_bytes - batch.position,
                        reason=f"offsets {base} to {last} where {self.next_offset} was to follow",
                    )
                self._noted(batch.size, last, batch.max_timestamp_ms)
            return reader.damage

    def _find(self, offset: int) -> tuple[int, int, int] | None:
        """Position, size and base offset of the batch that holds an offset, or of the next one."""
        begin = self._followed[1] if self._followed[0] == offset else None
        if begin is None:
            begin = self._indexes()[0].position(offset - self.base_offset)
        end = begin
        for position, size, base, last, _ in self._walk(begin):
            if last >= offset:
                return position, size, base
            end = position + size
        if end < self.size_bytes:
            raise OSError(errno.EIO, f"no batch begins at byte {end}", self.path)
        return None

    def _walk(self, position: int, offset: int | None = None) -> Iterator[tuple[int, ...]]:
        """Position, size, base and last offset and newest timestamp of batches from a position.

        Args:
            position: Position of a batch.
            offset: If given, begin at the last index entry before it instead.
        """
        if offset is not None:
            position = self._indexes()[0].position(offset - 1 - self.base_offset)
        data, start = b"", position
        while position < self.size_bytes:
            at = position - start
            if at + HEADER_BYTES > len(data) and start + len(data) < self.size_bytes:
                data, start, at = self._bytes(position, _CHUNK_BYTES), position, 0
            header = header_at(data, at)
            if header is None or position + header[0] > self.size_bytes:
                return
            yield position, *header
            position += header[0]

    def _bytes(self, position: int, count: int) -> bytes:
        """Read at most `count` bytes from a position, none past the segment's end."""
        fd = self._open_files.fd(self)
        count = min(count, self.size_bytes - position)
        return self._open_files.files.read(fd, count, position)

    def _read_tail(self) -> int:
        """Find the end from the last index entry on; return its position."""
        offsets, times = self._indexes()
        newest_ms, newest_at = times.last()
        self.max_timestamp_ms, self._max_offset = newest_ms, self.base_offset + newest_at
        self.next_offset = self.base_offset
        begin = end = offsets.last_position()
        for position, size, _, last, timestamp_ms in self._walk(begin):
            end = position + size
            self.next_offset = last + 1
            if timestamp_ms > self.max_timestamp_ms:
                self.max_timestamp_ms, self._max_offset = timestamp_ms, last
        self._since_entry = end - begin
        first = header_at(self._bytes(0, HEADER_BYTES), 0) if self.size_bytes else None
        self.first_timestamp_ms = first[3] if first else -1
        return end

    def _indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        """Both indexes, read from their files if they were dropped from memory.

        Raises:
            OSError: An index is missing or damaged, though it was good before.
        """
        if self._offsets is None or self._times is None:
            self._offsets = OffsetIndex.from_bytes(self._file(".index"))
            self._times = TimeIndex.from_bytes(self._file(".timeindex"))
        if self._offsets is None or self._times is None:
            raise OSError(errno.EIO, "an index is damaged", self.stem)
        return self._offsets, self._times

    def _has_sound_indexes(self) -> bool:
        try:
            self._offsets = OffsetIndex.from_bytes(self._file(".index"))
            self._times = TimeIndex.from_bytes(self._file(".timeindex"))
        except FileNotFoundError:
            self._offsets, self._times = OffsetIndex(), TimeIndex()
            return self.size_bytes == 0
        return (
            self._offsets is not None
            and self._times is not None
            and self._offsets.last_position() < max(self.size_bytes, 1)
        )

    def _file(self, suffix: str) -> bytes:
        return Path(f"{self.stem}{suffix}").read_bytes()

    def _write_indexes(self) -> None:
        files = self._open_files.files
        offsets, times = self._indexes()
        files.append(f"{self.stem}.index", offsets.pending(), offsets.written * OFFSET_ENTRY.size)
        offsets.written = len(offsets)
        files.append(f"{self.stem}.timeindex", times.pending(), times.written * TIME_ENTRY.size)
        times.written = len(times)
