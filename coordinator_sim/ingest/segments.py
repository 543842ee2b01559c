"""Raw segments of `__consumer_offsets` as trace events, one partition after its offsets.

Copies of one partition, as every replica has one, are read side by side, and each offset counts
once. Damage ends nothing: what holds no good batch is passed over and counted, and so are records
that do not parse. Commits of a transaction count when its end says so, at the time of its end.
"""

import heapq
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.errors import DataError, WireFormatError
from coordinator_sim.ingest.files import whole
from coordinator_sim.ingest.imports import Import, SegmentCounts
from coordinator_sim.ingest.kinds import base_offset_in, is_segment_name, partition_in
from coordinator_sim.log.format.consumer_records import typed
from coordinator_sim.log.format.log_batches import marker_of
from coordinator_sim.log.format.offsets_records import decode_record
from coordinator_sim.log.format.record_batches import Record
from coordinator_sim.log.format.salvage import SalvagingReader
from coordinator_sim.log.format.stored_batches import StoredBatch
from coordinator_sim.messages.records import LogKey, OpaqueKey
from coordinator_sim.trace.events import Source, TraceEvent
from coordinator_sim.trace.offsets_topic import OffsetsTopic, StoredRecord, TransactionEnd

_CONFLICTS: Final = 2
"""Offsets at which two copies of a partition differ, from which on they are two clusters'."""
_REASONS: Final = 50
"""Limit of different reasons that are counted by their own text."""
_KEYS: Final = 200_000
"""Limit of decoded keys that are remembered: most of a log's keys repeat."""
_DIGITS: Final = 20


class _Read(Struct, frozen=True, gc=False):
    """A record or the end of a transaction, of one copy of a partition.

    Args:
        offset: Its offset.
        base_offset: Of its batch: the same in every copy of the partition.
        of: Index of the file.
        stored: What it says; None for a control record that ends no transaction.
    """

    offset: int
    base_offset: int
    of: int
    stored: StoredRecord | TransactionEnd | None


class PartitionLog:
    """All segments of one partition, of one replica or of several.

    Args:
        files: The segments.
        note_progress: Told the bytes of a file that were used.
    """

    _files: list[Import]
    _fresh: range
    _root: Path
    _last: _Read | None
    _keys: dict[bytes, LogKey]
    _topic: OffsetsTopic
    _note_progress: Callable[[Path, int], None]

    def __init__(
        self,
        files: list[Import],
        note_progress: Callable[[Path, int], None] = lambda _path, _used: None,
    ) -> None:
        self._files = []
        self._fresh = range(0)
        self._root = Path()
        self._last = None
        self._keys = {}
        self._topic = OffsetsTopic(Source.OFFSETS_SEGMENT, "")
        self.go_on(files, note_progress)

    def go_on(self, files: list[Import], note_progress: Callable[[Path, int], None]) -> None:
        """Take further segments; offsets that were read count no more."""
        fresh = sorted(files, key=lambda one: (base_offset_in(one.path.name), one.name))
        self._fresh = range(len(self._files), len(self._files) + len(fresh))
        self._files += fresh
        self._note_progress = note_progress

    def move(self, root: Path, at: Callable[[Path], Path]) -> None:
        """Find the segments that were taken last below another folder.

        Args:
            root: Folder that relative paths are of.
            at: Gives where a copy is that was fetched; other paths as they are.

        Raises:
            OSError: One is not there.
        """
        self._root = root
        self._note_progress = lambda _path, _used: None
        for index in self._fresh:
            self._files[index].path = at(self._files[index].path)
            (root / self._files[index].path).stat()

    def take(self, other: "PartitionLog") -> None:
        """Take over what a copy of this log was told while its segments were read elsewhere."""
        told = vars(other)
        for mine, theirs in zip(self._files, told["_files"], strict=True):
            mine.summary, mine.segment = theirs.summary, theirs.segment
            mine.problem = theirs.problem
        self._last, self._topic = told["_last"], told["_topic"]

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_note_progress": None, "_keys": {}}

    def events(self) -> Iterator[TraceEvent]:
        """Yield the events of the segments that were taken last, in the order of the offsets.

        Raises:
            DataError: Two copies of the partition differ: they are of two clusters.
        """
        copies: dict[tuple[Path, str], list[int]] = {}
        for index in self._fresh:
            copies.setdefault(_copy_of(self._files[index].path), []).append(index)
        streams = [self._copy(indexes) for indexes in copies.values()]
        merged = heapq.merge(*streams, key=lambda read: read.offset)
        for (_, of), reads in groupby(
            self._each_once(merged), key=lambda read: (read.base_offset, read.of)
        ):
            for event in self._batch_events(list(reads), of):
                self._files[of].summary.count_event(event)
                yield event
        for one in self._files:
            if one.segment is not None:
                one.segment.aborted = self._topic.aborted.get(one.name, 0)
                one.segment.unfinished = self._topic.unfinished().get(one.name, 0)

    def _counts(self, of: int) -> SegmentCounts:
        counts = self._files[of].segment
        if counts is None:
            counts = SegmentCounts(partition_in(self._files[of].name))
            self._files[of].segment = counts
        return counts

    def _batch_events(self, reads: list[_Read], of: int) -> Iterator[TraceEvent]:
        self._topic.source_ref = self._files[of].name
        summary = self._files[of].summary
        records = [read.stored for read in reads if read.stored is not None]
        plain = sum(isinstance(each, StoredRecord) for each in records)
        events = list(self._topic.read(records))
        told = min(plain, _records_of(events))
        summary.parsed += told
        summary.known += plain - told
        yield from events

    def _each_once(self, merged: Iterable[_Read]) -> Iterator[_Read]:
        """Yield each offset once, from the copy that is named first."""
        conflicts = 0
        for read in merged:
            last = self._last
            if last is None or read.offset > last.offset:
                self._last = read
                yield read
                continue
            self._files[read.of].summary.repeated += 1
            conflicts += read.offset == last.offset and not _is_same(read.stored, last.stored)
            if conflicts >= _CONFLICTS:
                raise DataError(
                    f"{self._files[last.of].name} and {self._files[read.of].name} hold different "
                    f"records at offset {read.offset} of one partition: they are segments of two "
                    "clusters; ingest those of each cluster by themselves, with --cluster NAME "
                    "and an --out of its own"
                )

    # -- one copy of the partition -----------------------------------------------------------

    def _copy(self, indexes: list[int]) -> Iterator[_Read]:
        for of in indexes:
            one = self._files[of]
            try:
                with whole(self._root / one.path) as data:
                    yield from self._segment(of, SalvagingReader(data))
            except (OSError, EOFError, ValueError, zlib.error) as error:
                one.problem = f"cannot be read: {getattr(error, 'strerror', None) or error}"
            self._judge(one)

    def _segment(self, of: int, reader: SalvagingReader) -> Iterator[_Read]:
        counts = self._counts(of)
        counts.skipped = reader.skipped
        path = self._files[of].path
        for batch in reader:
            counts.batches += 1
            try:
                yield from self._batch(of, batch, counts)
            except WireFormatError as error:
                _count(counts.unread, str(error.args[0]), 1)
                self._files[of].summary.unparsed += 1
            self._note_progress(path, batch.position + batch.size)

    def _batch(self, of: int, batch: StoredBatch, counts: SegmentCounts) -> Iterator[_Read]:
        base = batch.base_offset
        if counts.first_offset < 0:
            counts.first_offset = base
        counts.last_offset = max(counts.last_offset, batch.last_offset)
        if batch.control:
            counts.held_back += 1
            marker = marker_of(batch)
            end = None
            if marker is not None:
                end = TransactionEnd(batch.producer_id, marker.committed, batch.max_timestamp_ms)
            yield _Read(batch.last_offset, base, of, end)
            return
        for record in batch.streamed():
            if record is None:
                continue
            counts.records += 1
            self._files[of].summary.lines += 1
            stored = self._stored(of, batch, record, counts)
            if stored is not None:
                yield _Read(record.offset, base, of, stored)

    def _stored(
        self, of: int, batch: StoredBatch, record: Record, counts: SegmentCounts
    ) -> StoredRecord | None:
        summary = self._files[of].summary
        if record.key is None:
            summary.unparsed += 1
            _count(counts.unread, "a record without a key", 1)
            return None
        if len(self._keys) > _KEYS:
            self._keys.clear()
        try:
            decoded = decode_record(record.key, record.value, self._keys)
            if isinstance(decoded.key, OpaqueKey):
                decoded = typed(decoded)
        except WireFormatError as error:
            summary.unparsed += 1
            _count(counts.unread, str(error.args[0]), 1)
            return None
        if isinstance(decoded.key, OpaqueKey):
            summary.known += 1
            kind = decoded.key.version
            counts.other_types[kind] = counts.other_types.get(kind, 0) + 1
            return None
        return StoredRecord(
            record=decoded,
            offset=record.offset,
            timestamp_ms=record.timestamp_ms,
            partition=counts.partition,
            producer_id=batch.producer_id if batch.transactional else -1,
        )

    def _judge(self, one: Import) -> None:
        """Say what is wrong with a segment as a whole."""
        counts = one.segment
        if one.problem is not None or counts is None:
            return
        is_foreign = (
            counts.records > 0
            and one.summary.unparsed + sum(counts.other_types.values()) >= counts.records
        )
        if is_foreign and counts.partition is None:
            reason = next(iter(counts.unread), "records of other types")
            one.problem = (
                f"is a segment, and none of its {counts.records} records is of a group ({reason}); "
                "name segments of __consumer_offsets"
            )
        elif counts.skipped and not counts.batches:
            first = counts.skipped[0]
            if first.reason.startswith("zeros"):
                return
            one.problem = f"holds no good batch: {first.reason} at byte {first.position}"


def partition_logs(files: list[Import]) -> dict[object, list[Import]]:
    """The segments by the partition they are of, in order of partitions and paths.

    Where no name tells the partition, the segments of one folder whose names differ only in the
    offset are one partition's.
    """
    logs: dict[object, list[Import]] = {}
    for one in files:
        partition = partition_in(one.name)
        key = _copy_of(one.path) if partition is None else partition
        logs.setdefault(key, []).append(one)
    return logs


def _copy_of(path: Path) -> tuple[Path, str]:
    """What the segments of one copy of a partition share: the folder, and the front of the name."""
    name = path.name.removesuffix(".gz").removesuffix(".log")
    return path.parent, name[:-_DIGITS] if is_segment_name(path.name) else name


def _is_same(
    one: StoredRecord | TransactionEnd | None, other: StoredRecord | TransactionEnd | None
) -> bool:
    if not isinstance(one, StoredRecord) or not isinstance(other, StoredRecord):
        return True
    return one.timestamp_ms == other.timestamp_ms and one.record == other.record


def _records_of(events: list[TraceEvent]) -> int:
    """How many records gave these events: a commit has one an entry, a group's record many."""
    offsets = sum(len(event.offsets) for event in events)
    return offsets + len({event.seq for event in events if not event.offsets})


def _count(counts: dict[str, int], reason: str, more: int) -> None:
    if reason not in counts and len(counts) >= _REASONS:
        reason = "other reasons"
    counts[reason] = counts.get(reason, 0) + more
