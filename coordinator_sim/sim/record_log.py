"""One partition of a compacted topic, with its records: append, read, compact.

Records without interesting contents may be a counted run: a million of them cost as much as one.

Source: kafka trunk, storage/.../log/UnifiedLog.java (offsets, last stable offset), Cleaner.java.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.records import LogBatch
from coordinator_sim.sim.data_messages import FetchedPartition, StoredRecord, StoredRun
from coordinator_sim.sim.logs import NO_PRODUCER, DataLog

RECORD_OVERHEAD_BYTES: Final = 10
"""Lengths, deltas and attributes of a small record of the second format.

Source: kafka trunk, clients/.../record/DefaultRecord.java.
"""
Entry = StoredRecord | StoredRun


class RecordLog(DataLog):
    """The records of one partition, in offset order."""

    __slots__ = ("_aborted", "_entries", "_producer_of", "_starts")

    def __init__(self, partition: int) -> None:
        super().__init__(partition)
        self._entries: list[Entry] = []
        self._starts: list[int] = []
        self._producer_of: dict[int, int] = {}
        self._aborted: dict[int, None] = {}

    @property
    def entries(self) -> Sequence[Entry]:
        """Records and runs of the log, oldest first."""
        return tuple(self._entries)

    def append_records(
        self,
        records: Iterable[tuple[bytes | None, bytes | None]],
        *,
        now_ms: int,
        producer_id: int = NO_PRODUCER,
        producer_epoch: int = -1,
    ) -> tuple[ErrorCode, int]:
        """Append records; return NONE or the error, and the offset of the first record.

        Args:
            records: Keys and values.
            now_ms: Timestamp of the records.
            producer_id: Producer of the transaction; NO_PRODUCER outside of one.
            producer_epoch: Epoch of that producer.
        """
        base_offset = self.end_offset
        written = [
            StoredRecord(base_offset + index, key, value, now_ms)
            for index, (key, value) in enumerate(records)
        ]
        error = self.append(
            len(written),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transactional=producer_id != NO_PRODUCER,
        )
        if error is not ErrorCode.NONE:
            return error, -1
        for record in written:
            self._put(record)
            if producer_id != NO_PRODUCER:
                self._producer_of[record.offset] = producer_id
        return error, base_offset

    def append_run(self, count: int, size_bytes: int, span: int | None = None) -> None:
        """Append records that are only counted.

        Args:
            count: Number of records, at least 1.
            size_bytes: Size of all keys and values.
            span: Number of offsets that they span, as after compaction; by default `count`.
        """
        first_offset = self.end_offset
        self.end_offset = next_offset = first_offset + (count if span is None else span)
        self._put(StoredRun(first_offset, next_offset, count, size_bytes))

    def append_marker(self, marker: LogBatch) -> ErrorCode:
        """Append the end of a transaction; return NONE or the error."""
        error = super().append_marker(marker)
        if error is ErrorCode.NONE and marker.marker is not None:
            ended = [
                o for o, producer in self._producer_of.items() if producer == marker.producer_id
            ]
            for offset in ended:
                del self._producer_of[offset]
                if not marker.marker.committed:
                    self._aborted[offset] = None
        return error

    def read(self, offset: int, *, max_bytes: int, read_committed: bool) -> FetchedPartition | None:
        """Read from an offset; None when there is nothing to read.

        Args:
            offset: First wanted offset.
            max_bytes: Limit of all records; the first is returned in any case.
            read_committed: Whether to hide records of open and aborted transactions.
        """
        end_offset = self.last_stable_offset() if read_committed else self.end_offset
        if offset >= end_offset:
            return None
        entries: list[Entry] = []
        size_bytes = record_count = 0
        at = next_offset = offset
        for index in range(self._index_of(offset), len(self._entries)):
            whole = self._entries[index]
            if self._starts[index] >= end_offset:
                next_offset = end_offset
                break
            if size_bytes >= max_bytes:
                break
            entry = _from(whole, at, max_bytes - size_bytes)
            at = next_offset = _next_offset(entry)
            size_bytes += _size_bytes(entry)
            if isinstance(entry, StoredRun):
                record_count += entry.count
            elif read_committed and entry.offset in self._aborted:
                continue
            else:
                record_count += 1
            entries.append(entry)
            if next_offset < _next_offset(whole):
                break
        else:
            # Also skip markers and gaps.
            next_offset = end_offset
        return FetchedPartition(
            partition=self._partition,
            entries=tuple(entries),
            next_offset=next_offset,
            size_bytes=size_bytes,
            record_count=record_count,
        )

    def compact(self) -> int:
        """Keep the last record of each key, and every run; return the number of removed records.

        Tombstones stay, as they would for days. Records of an open transaction, and all after its
        start, are not compacted.
        """
        stable = self.last_stable_offset()
        last = {
            entry.key: entry.offset
            for entry in self._entries
            if isinstance(entry, StoredRecord)
            and entry.offset < stable
            and entry.offset not in self._aborted
        }
        kept = [
            entry
            for entry in self._entries
            if isinstance(entry, StoredRun)
            or entry.offset >= stable
            or last.get(entry.key) == entry.offset
        ]
        gone = len(self._entries) - len(kept)
        self._entries = kept
        self._starts = [_first_offset(entry) for entry in kept]
        return gone

    def _put(self, entry: Entry) -> None:
        self._entries.append(entry)
        self._starts.append(_first_offset(entry))

    def _index_of(self, offset: int) -> int:
        """Index of the entry that holds the offset, or of the first one after it."""
        index = bisect_right(self._starts, offset)
        is_inside = index > 0 and _next_offset(self._entries[index - 1]) > offset
        return index - 1 if is_inside else index


def _first_offset(entry: Entry) -> int:
    return entry.offset if isinstance(entry, StoredRecord) else entry.first_offset


def _next_offset(entry: Entry) -> int:
    return entry.offset + 1 if isinstance(entry, StoredRecord) else entry.next_offset


def _size_bytes(entry: Entry) -> int:
    if isinstance(entry, StoredRecord):
        return len(entry.key or b"") + len(entry.value or b"") + RECORD_OVERHEAD_BYTES
    return entry.size_bytes + entry.count * RECORD_OVERHEAD_BYTES


def _from(entry: Entry, offset: int, max_bytes: int) -> Entry:
    """The entry; of a run only the part from an offset on that fits the fetch."""
    if isinstance(entry, StoredRecord):
        return entry
    span = entry.next_offset - entry.first_offset
    skipped = _share(entry.count, offset - entry.first_offset, span)
    left = entry.count - skipped
    room = max(1, max_bytes * entry.count // max(1, _size_bytes(entry)))
    first_offset = max(offset, entry.first_offset)
    if room >= left:
        next_offset, count = entry.next_offset, left
    else:
        # The offset after that many more records.
        count = room
        next_offset = entry.first_offset + -(-(skipped + room) * span // entry.count)
        count = _share(entry.count, next_offset - entry.first_offset, span) - skipped
    return StoredRun(first_offset, next_offset, count, _share(entry.size_bytes, count, entry.count))


def _share(whole: int, part: int, of: int) -> int:
    """The share of a part in something spread evenly, as a whole number."""
    return whole * max(part, 0) // of
