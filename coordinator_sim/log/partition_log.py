"""The log of one partition on its leader: the log decides, a store keeps the bytes.

This module reads, deletes and opens; `log_writer` appends.

Look-up of offsets by timestamp, for ListOffsets.

Retention: which segments of a log are deleted by age or by size.

Source: kafka trunk, core/.../log/UnifiedLog.scala; core/.../cluster/Partition.scala;
core/.../log/UnifiedLog.scala (fetchOffsetByTimestamp); core/.../cluster/ Partition.scala
(fetchOffsetForTimestamp); core/.../log/UnifiedLog.scala (deleteOldSegments and what it calls).
"""

from collections.abc import Iterator, Sequence
from typing import Final

from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.cleaning import (
    LogCleaning,
    cleanable_before,
    is_dirty_enough,
)
from coordinator_sim.log.contract import SegmentInfo, SegmentStore
from coordinator_sim.log.format.compression import NO_BOUNDS
from coordinator_sim.log.format.counted_batches import declared_size
from coordinator_sim.log.format.log_batches import marker_of
from coordinator_sim.log.format.record_batches import CURRENT_MAGIC
from coordinator_sim.log.format.record_scan import RecordScan
from coordinator_sim.log.format.steps import Steps, do_slice, finished
from coordinator_sim.log.format.stored_batches import StoredBatch
from coordinator_sim.log.leader_epochs import LeaderEpochs
from coordinator_sim.log.log_config import NEVER_MS, LogConfig
from coordinator_sim.log.log_values import OffsetSpec, ReadResult, TimedOffset
from coordinator_sim.log.log_writer import LogWriter
from coordinator_sim.log.old_formats import down_converted
from coordinator_sim.log.spans import batches_in, end_of, span_of


def expired_count(
    segments: Sequence[SegmentInfo], config: LogConfig, high_watermark: int, now_ms: int
) -> int:
    """Number of segments, from the oldest on, to delete by size or by age.

    The active segment counts too, unless it is empty; none may reach beyond the high watermark.

    DEVIATION: segments without any timestamp (format 0) do not age; Kafka takes the time of the
    file. The group clock may differ from the file system's.
    """
    if not config.deletes:
        return 0
    gone = _beyond_size(segments, config.retention_bytes)
    if config.retention_ms >= 0:
        while gone < len(segments):
            latest_ms = segments[gone].max_timestamp_ms
            if latest_ms < 0 or now_ms - latest_ms <= config.retention_ms:
                break
            gone += 1
    while gone and _may_not_go(segments, gone - 1, high_watermark):
        gone -= 1
    return gone


def _beyond_size(segments: Sequence[SegmentInfo], retention_bytes: int) -> int:
    """Segments to delete by size. Source: UnifiedLog.deleteRetentionSizeBreachedSegments."""
    excess = sum(segment.size_bytes for segment in segments) - retention_bytes
    if retention_bytes < 0 or excess < 0:
        return 0
    for count, segment in enumerate(segments):
        excess -= segment.size_bytes
        if excess < 0:
            return count
    return len(segments)


def _may_not_go(segments: Sequence[SegmentInfo], index: int, high_watermark: int) -> bool:
    is_last = index == len(segments) - 1
    end = segments[index].next_offset if is_last else segments[index + 1].base_offset
    return end > high_watermark or (is_last and segments[index].size_bytes == 0)


_COST_OF_BATCH: Final = 50
_COST_OF_PAUSE: Final = 250
_RECORDS_A_STEP: Final = 100
"""Records of an old format per step: they are built, and most are read twice."""


def first_not_before(
    store: SegmentStore, timestamp_ms: int, *, from_offset: int
) -> Steps[TimedOffset | None]:
    """The first record from an offset on with at least a timestamp; None when there is none.

    QUIRK: only the first segment that has such a timestamp is searched. A segment that reaches
    before the log's start hides the later ones.

    Source: UnifiedLog.searchOffsetInLocalLog, LogSegment.findOffsetByTimestamp.
    """
    for segment in store.segments():
        if segment.max_timestamp_ms >= timestamp_ms:
            offset = max(from_offset, segment.base_offset)
            return (yield from _first_in(store, timestamp_ms, offset, segment.next_offset))
    return None


def _first_in(
    store: SegmentStore, timestamp_ms: int, from_offset: int, before_offset: int
) -> Steps[TimedOffset | None]:
    offset = from_offset
    while data := store.first_at_or_after(timestamp_ms, from_offset=offset):
        batch = StoredBatch(data, 0, len(data))
        if batch.last_offset >= before_offset:
            return None
        found = yield from _first_of(batch, timestamp_ms, from_offset)
        if found is not None:
            return found
        yield _COST_OF_BATCH
        offset = batch.next_offset
    return None


def _first_of(batch: StoredBatch, timestamp_ms: int, from_offset: int) -> Steps[TimedOffset | None]:
    """The first matching record of one batch; records of magic 2 are not built."""
    found: TimedOffset | None = None
    if batch.magic < CURRENT_MAGIC:
        for number, record in enumerate(batch.streamed(NO_BOUNDS)):
            if record is None or number % _RECORDS_A_STEP == 0:
                yield _COST_OF_PAUSE
            if record is None:
                continue
            if record.timestamp_ms >= timestamp_ms and record.offset >= from_offset:
                return TimedOffset(record.timestamp_ms, record.offset, batch.leader_epoch)
        return None
    append_ms = batch.append_time_ms

    def look(offset_delta: int, time_delta: int, /, *, has_key: bool) -> bool:  # noqa: ARG001 - a watcher
        nonlocal found
        time_ms = batch.base_timestamp_ms + time_delta if append_ms is None else append_ms
        offset = batch.base_offset + offset_delta
        if time_ms >= timestamp_ms and offset >= from_offset:
            found = TimedOffset(time_ms, offset, batch.leader_epoch)
        return found is not None

    yield from RecordScan(batch.count or 0, chunks=batch.chunks(NO_BOUNDS), watcher=look).steps()
    return found


def segment_starts(
    store: SegmentStore, log_start_offset: int, end_offset: int, now_ms: int
) -> list[tuple[int, int]]:
    """Start offset and newest timestamp of each segment; at last the log's end with `now_ms`.

    DEVIATION: a segment is as old as its newest record; Kafka takes the file's modification time.

    Args:
        store: Store of the log.
        log_start_offset: First offset that may be read.
        end_offset: End of the log; left out while the newest segment is empty.
        now_ms: The present of the log's timestamps.
    """
    segments = store.segments()
    known = [(max(each.base_offset, log_start_offset), each.max_timestamp_ms) for each in segments]
    if segments[-1].size_bytes:
        known.append((end_offset, now_ms))
    return known


def newest(store: SegmentStore) -> Steps[TimedOffset | None]:
    """The first record with the largest timestamp of the log; None in an empty log.

    QUIRK: records before the log's start count as long as their segment exists.
    """
    segments = store.segments()
    latest = max(segment.max_timestamp_ms for segment in segments)
    if latest < 0:
        return None
    return (yield from first_not_before(store, latest, from_offset=segments[0].base_offset))


_CHUNK_BYTES: Final = 1 << 20
_HIGH_WATERMARK: Final = -1
"""Offset in DeleteRecords that means all records. Source: DeleteRecordsRequest.HIGH_WATERMARK."""


class PartitionLog(LogWriter):
    """One partition's log.

    The store may already have batches: the log then continues after them.

    Args:
        topic: Name of the topic.
        partition: Number of the partition.
        store: Store of this log only.
        config: Config of the topic; by default Kafka's defaults.
        now_ms: The present of the log's timestamps, to expire producers.
    """

    __slots__ = ("_cleaned_to", "_cleaning", "_is_cleanable")

    def __init__(
        self,
        topic: str,
        partition: int,
        store: SegmentStore,
        config: LogConfig | None = None,
        *,
        now_ms: int = 0,
    ) -> None:
        super().__init__(topic, partition, store, config)
        self._cleaned_to = 0
        self._cleaning: Steps[None] | None = None
        self._is_cleanable = True
        self._recover(now_ms)

    # -- reading ---------------------------------------------------------------------------------

    def read(
        self,
        offset: int,
        *,
        max_bytes: int,
        read_committed: bool = False,
        min_one_batch: bool = True,
        to_end: bool = False,
    ) -> ReadResult:
        """Read whole batches from an offset on, up to the high watermark or last stable offset.

        Args:
            offset: Offset from the log's start to its end.
            max_bytes: Limit of the result.
            read_committed: Whether to stop at the last stable offset and report aborted
                transactions.
            min_one_batch: Whether to return the first batch even if it exceeds the limit.
            to_end: Whether to read beyond the high watermark, as followers do.

        Source: UnifiedLog.read, LocalLog.read.
        """
        if not self.log_start_offset <= offset <= self.end_offset:
            return ReadResult(error=ErrorCode.OFFSET_OUT_OF_RANGE)
        stable = self.last_stable_offset
        bound = stable if read_committed else self.high_watermark
        if to_end:
            bound = self.end_offset
        records = b""
        if offset < bound:
            records = self._store.read(offset, max(max_bytes, 0), before_offset=bound)
        cut_off = b""
        if not min_one_batch and declared_size(records) > max_bytes:
            records, cut_off = b"", records[: max(max_bytes, 0)]
        aborted = None
        if read_committed:
            aborted = tuple(self._store.aborted(offset, bound)) if records else ()
            if aborted:
                upper = end_of(records)
                aborted = tuple(entry for entry in aborted if entry.first_offset < upper)
        return ReadResult(
            records=records,
            high_watermark=self.high_watermark,
            last_stable_offset=stable,
            log_start_offset=self.log_start_offset,
            aborted=aborted,
            cut_off=cut_off,
        )

    def for_old_reader(
        self, records: bytes, offset: int, max_magic: int, high_watermark: int
    ) -> Steps[bytes | None]:
        """Convert records to a format that the reader knows; read on if only markers were read.

        Args:
            records: Result of a `read`; at least one whole batch.
            offset: The requested offset.
            max_magic: The newest format that the reader knows.
            high_watermark: High watermark of that read.

        Returns:
            The records; None for batches compressed with zstd, which no old reader knows.

        Source: KafkaApis.maybeConvertFetchedData, LazyDownConversionRecords.
        """
        if max_magic >= self._config.message_format_magic:
            return records
        data = records
        while data:
            found = yield from down_converted(data, max_magic, offset)
            if found is None or found:
                return found
            # Only markers: without more data the reader would ask for the same offset for ever.
            data = self._store.read(end_of(data), _CHUNK_BYTES, before_offset=high_watermark)
        return b""

    def offsets_before(self, timestamp_ms: int, max_count: int, *, now_ms: int) -> list[int]:
        """Start offsets of segments not younger than a timestamp (ListOffsets 0), newest first.

        Args:
            timestamp_ms: The timestamp, or LATEST or EARLIEST of `OffsetSpec`.
            max_count: Largest number of offsets.
            now_ms: The present of the log's timestamps.

        Source: UnifiedLog.legacyFetchOffsetsBefore.
        """
        known = segment_starts(self._store, self.log_start_offset, self.end_offset, now_ms)
        at = len(known)
        if timestamp_ms == OffsetSpec.EARLIEST:
            at = 1
        elif timestamp_ms != OffsetSpec.LATEST:
            while at and known[at - 1][1] > timestamp_ms:
                at -= 1
        chosen = [offset for offset, _ in known[max(at - max_count, 0) : at]]
        return sorted(chosen, reverse=True)

    def offset_for_timestamp(
        self, timestamp_ms: int, *, read_committed: bool = False
    ) -> TimedOffset:
        """Find an offset by timestamp or position, without pauses; see `finding_offset`."""
        return finished(self.finding_offset(timestamp_ms, read_committed=read_committed))

    def finding_offset(
        self, timestamp_ms: int, *, read_committed: bool = False
    ) -> Steps[TimedOffset]:
        """Find an offset by timestamp, or by one of the positions in `OffsetSpec`.

        Args:
            timestamp_ms: Smallest timestamp of the record, or an `OffsetSpec`.
            read_committed: Whether the last stable offset is the end, not the high watermark.

        Returns:
            The offset; -1 when no readable record has the timestamp or a newer one.

        Source: Partition.fetchOffsetForTimestamp, UnifiedLog.fetchOffsetByTimestamp.
        """
        end = self.last_stable_offset if read_committed else self.high_watermark
        if timestamp_ms == OffsetSpec.LATEST:
            return TimedOffset(-1, end, self.leader_epoch)
        if timestamp_ms in (OffsetSpec.EARLIEST, OffsetSpec.EARLIEST_LOCAL):
            start = self.log_start_offset
            return TimedOffset(-1, start, self._epochs.earliest_at(start))
        if timestamp_ms == OffsetSpec.LATEST_TIERED:
            return TimedOffset()
        if timestamp_ms == OffsetSpec.MAX_TIMESTAMP:
            found = yield from newest(self._store)
        else:
            start = self.log_start_offset
            found = yield from first_not_before(self._store, timestamp_ms, from_offset=start)
        return found if found is not None and found.offset < end else TimedOffset()

    def chunks(self, from_offset: int = 0) -> Iterator[bytes]:
        """All batches from an offset to the end, as a loading coordinator reads them.

        Batches appended meanwhile are included.
        """
        offset = max(from_offset, self.log_start_offset)
        while offset < self.end_offset:
            data = self._store.read(offset, _CHUNK_BYTES, before_offset=self.end_offset)
            if not data:
                return
            yield data
            offset = end_of(data)

    # -- what goes -------------------------------------------------------------------------------

    def delete_before(self, offset: int) -> ErrorCode:
        """Move the log start forward, for DeleteRecords; `log_start_offset` has the result.

        Args:
            offset: The new start; -1 for the high watermark. A lower one changes nothing.

        Source: Partition.deleteRecordsOnLeader, UnifiedLog.maybeIncrementLogStartOffset.
        """
        if self._config.is_compacted and not self._config.deletes:
            return ErrorCode.POLICY_VIOLATION
        wanted = self.high_watermark if offset == _HIGH_WATERMARK else offset
        if not 0 <= wanted <= self.high_watermark:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        self._start_at(wanted)
        return ErrorCode.NONE

    def _start_at(self, offset: int) -> None:
        if offset <= self.log_start_offset:
            return
        self.log_start_offset = offset
        self._store.keep_log_start(offset)
        if self._epochs.truncate_from_start(offset):
            self._store.keep_epochs(self._epochs.entries())
        self._producers.on_high_watermark(offset)
        self._store.drop_before(offset)

    def expire_producers(self, now_ms: int) -> None:
        """Forget the producers that wrote nothing for `producer.id.expiration.ms`.

        Source: UnifiedLog.removeExpiredProducers.
        """
        self._producers.expire(now_ms, self._config.producer_id_expiration_ms)

    def maintain_retention(self, now_ms: int) -> None:
        """Delete segments by age, by size of the log, or before the log start.

        Source: UnifiedLog.deleteOldSegments.
        """
        self._store.drop_before(self.log_start_offset)
        segments = self._store.segments()
        gone = expired_count(segments, self._config, self.high_watermark, now_ms)
        if gone == 0:
            return
        if gone == len(segments):
            self._store.roll(self.end_offset)
            self._start_at(self.end_offset)
        else:
            self._start_at(segments[gone].base_offset)

    def clean_some(self, now_ms: int) -> bool:
        """Begin a pass of the cleaner if one is due, or run a slice of some milliseconds.

        Call it periodically, and again at once after True. Records may be appended, and the log
        start may move, in between.

        Returns:
            Whether there is more to do.

        Raises:
            OSError: The disk failed.
            WireFormatError: A batch is damaged or exceeds the topic's bounds. The log is not
                cleaned any more. Source: LogCleanerManager.markPartitionUncleanable.
        """
        if self._cleaning is None:
            if self._config.is_compacted and self._is_cleanable:
                self._cleaning = self._pass(now_ms)
            return self._cleaning is not None
        under_way, self._cleaning = self._cleaning, None
        try:
            do_slice(under_way)
        except StopIteration:
            return False
        except WireFormatError:
            self._is_cleanable = False
            raise
        self._cleaning = under_way
        return True

    def compact(self, now_ms: int) -> None:
        """Close the active segment, and clean the whole log at once, dirty or not."""
        self.begin_compaction(now_ms)
        while self.clean_some(now_ms):
            pass

    def begin_compaction(self, now_ms: int) -> None:
        """Close the active segment, and begin to clean the whole log; `clean_some` goes on."""
        self._store.roll(self.end_offset)
        self._rolled(self.end_offset)
        bound = cleanable_before(self._store.segments(), self.last_stable_offset, NEVER_MS)
        self._cleaning = self._clean(self.log_start_offset, bound, now_ms)

    def _pass(self, now_ms: int) -> Steps[None] | None:
        """A pass of the cleaner; None if none is due. Source: LogCleanerManager."""
        segments = self._store.segments()
        start = self.log_start_offset
        lag_ms = self._config.min_compaction_lag_ms
        bound = cleanable_before(
            segments, self.last_stable_offset, now_ms - lag_ms if lag_ms > 0 else NEVER_MS
        )
        cleaned_to = self._cleaned_to if start <= self._cleaned_to <= self.end_offset else start
        if not is_dirty_enough(segments, cleaned_to, bound, self._config, now_ms):
            return None
        return self._clean(cleaned_to, bound, now_ms)

    def _clean(self, cleaned_to: int, bound: int, now_ms: int) -> Steps[None]:
        cleaning = LogCleaning(self._store, self._config, bound, self._producers.ends(), now_ms)
        yield from cleaning.steps(cleaned_to, self.log_start_offset)
        self._cleaned_to = bound

    def truncate_to(self, offset: int, *, now_ms: int) -> None:
        """Delete every batch that has a record at or after an offset.

        QUIRK: if all producers had expired, they are not learned again from the remaining batches.

        Source: UnifiedLog.truncateTo, rebuildProducerState.
        """
        if offset >= self.end_offset:
            if self._epochs.truncate_from_end(offset):
                self._store.keep_epochs(self._epochs.entries())
            return
        self._cleaning = None
        was_empty = self._producers.is_empty
        self._store.truncate_to(offset)
        self.high_watermark = min(self.high_watermark, offset)
        if offset < self.log_start_offset:
            self._store.keep_log_start(offset)
        self._recover(now_ms, end_offset=offset)
        if was_empty:
            self._producers.load(self._store.kept().producers)
            self.expire_producers(now_ms)
        else:
            self._store.keep_producers(offset, self._producers.snapshot())

    def delete(self) -> None:
        """Delete the partition's data."""
        self._stop_cleaning()
        self._store.delete()

    def close(self) -> None:
        """Close the store cleanly, with a snapshot of the producers."""
        self._stop_cleaning()
        self._store.keep_producers(self.end_offset, self._producers.snapshot())
        self._store.close()

    def _stop_cleaning(self) -> None:
        """End a running pass of the cleaner, and start none any more."""
        self._cleaning = None
        self._is_cleanable = False

    # -- beginning -------------------------------------------------------------------------------

    def _recover(self, now_ms: int, end_offset: int | None = None) -> None:
        """Load the state of the log from the store. Source: LogLoader, rebuildProducerState."""
        kept = self._store.kept()
        segments = self._store.segments()
        self.end_offset = segments[-1].next_offset if end_offset is None else end_offset
        self.log_start_offset = max(kept.log_start_offset, segments[0].base_offset)
        self._producers.load(kept.producers)
        self._producers.expire(now_ms, self._config.producer_id_expiration_ms)
        self._epochs = LeaderEpochs(kept.epochs)
        known = self._epochs.entries()
        offset = max(kept.offset, self.log_start_offset)
        while offset < self.end_offset:
            data = self._store.read(offset, _CHUNK_BYTES, before_offset=self.end_offset)
            if not data:
                break
            for batch in batches_in(data):
                if batch.last_offset >= offset:
                    self._replay(batch)
            offset = end_of(data)
        self._epochs.truncate_from_end(self.end_offset)
        if self._epochs.entries() != known:
            self._store.keep_epochs(self._epochs.entries())
        self._advance()

    def _replay(self, batch: StoredBatch) -> None:
        if batch.leader_epoch > self._epochs.latest:
            self._epochs.assign(batch.leader_epoch, batch.base_offset)
        if batch.producer_id < 0:
            return
        span = span_of(batch)
        if not batch.control:
            self._producers.take(span)
            return
        marker = marker_of(batch)
        if marker is not None:
            aborted = self._producers.take_marker(span, marker)
            if aborted is not None:
                self._store.keep_aborted(aborted)
