"""One partition of a compacted topic, with its records: append, read, compact.

Records that nobody will ever look at may be a counted run: a million of them cost what one does.

Source: kafka trunk, storage/.../log/UnifiedLog.java (offsets, last stable offset), Cleaner.java.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final

from coordinator_sim.broker.logs import NO_PRODUCER, DataLog
from coordinator_sim.protocol.data_messages import FetchedPartition, StoredRecord, StoredRun
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.records import LogBatch

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
        """What the log holds, oldest first."""
        return tuple(self._entries)

    def append_records(
        self,
        records: Iterable[tuple[bytes | None, bytes | None]],
        *,
        now_ms: int,
        producer_id: int = NO_PRODUCER,
        producer_epoch: int = -1,
    ) -> tuple[ErrorCode, int]:
        """Append keys and values; why they are refused, and the offset of the first.

        Args:
            records: Keys and values.
            now_ms: Their time of creation.
            producer_id: Of a transaction; NO_PRODUCER outside of one.
            producer_epoch: Of that producer.
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
            count: How many, at least 1.
            size_bytes: Keys and values of all together.
            span: Offsets that they are spread over, as after compaction; by default as many.
        """
        first_offset = self.end_offset
        self.end_offset = next_offset = first_offset + (count if span is None else span)
        self._put(StoredRun(first_offset, next_offset, count, size_bytes))

    def append_marker(self, marker: LogBatch) -> ErrorCode:
        """Append the end of a transaction; why it is refused."""
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
        """What a fetch from that offset brings; None when there is nothing to bring.

        Args:
            offset: The first wanted.
            max_bytes: Of all records; the first comes in any case.
            read_committed: Whether what is of an open or aborted transaction stays hidden.
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
            # Past markers and holes, too.
            next_offset = end_offset
        return FetchedPartition(
            partition=self._partition,
            entries=tuple(entries),
            next_offset=next_offset,
            size_bytes=size_bytes,
            record_count=record_count,
        )

    def compact(self) -> int:
        """Keep the last record of each key, and every run; how many records went.

        Tombstones stay: how long they do is a matter of days. What is of an open transaction, and
        all behind it, is left alone.
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
        """The entry that holds the offset, or the first behind it."""
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
    """The entry, or of a run the part from that offset on that a fetch has room for."""
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
        # The first offset by which so many more records have passed.
        count = room
        next_offset = entry.first_offset + -(-(skipped + room) * span // entry.count)
        count = _share(entry.count, next_offset - entry.first_offset, span) - skipped
    return StoredRun(first_offset, next_offset, count, _share(entry.size_bytes, count, entry.count))


def _share(whole: int, part: int, of: int) -> int:
    """The part of something that is spread evenly, in whole numbers."""
    return whole * max(part, 0) // of
