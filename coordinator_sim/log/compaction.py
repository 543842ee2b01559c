"""One pass of the log cleaner over the batches of one partition.

Records are read from their batch one by one, and written so into the remaining batch: a pass holds
its map of keys, one record and one batch's bytes. A pass is work in steps, see `log.format.steps`.

Source: kafka trunk, storage/.../internals/log: Cleaner (buildOffsetMap, cleanInto,
shouldRetainRecord), CleanedTransactionMetadata; clients/.../common/record/MemoryRecords.filterTo.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.log.format.batch_stream import chosen, encoded
from coordinator_sim.log.format.compression import NO_BOUNDS, Compression
from coordinator_sim.log.format.log_batches import marker_of
from coordinator_sim.log.format.record_batches import (
    CURRENT_MAGIC,
    NO_ID,
    Record,
    RecordBatch,
    encode_record_batch,
)
from coordinator_sim.log.format.segments import SegmentReader
from coordinator_sim.log.format.steps import Steps, finished
from coordinator_sim.log.format.stored_batches import StoredBatch

DELETE_RETENTION_MS: Final = 86_400_000
"""`delete.retention.ms` by default."""
PRODUCER_EXPIRATION_MS: Final = 86_400_000
"""`producer.id.expiration.ms` by default."""
_RECORDS_A_STEP: Final = 200
_COST_OF_RECORD: Final = 5
_COST_OF_PAUSE: Final = 250
_COST_OF_BATCH: Final = 20


class CleaningPass(Struct, frozen=True, kw_only=True):
    """Settings of one pass of the cleaner.

    Args:
        now_ms: The instant of the pass.
        delete_retention_ms: How long a tombstone or marker stays after the first pass that saw it.
        clean_to: Offset from which on nothing is cleaned: the base of the active segment, or of
            the segment with the start of the first open transaction. None cleans up to that
            transaction, as if a segment started there.
        keep_legacy_tombstones: Whether tombstones of magic 0 and 1 stay; the cleaner decides by
            the age of their segment.
        producer_expiration_ms: How long after its last batch a producer's state is kept.
    """

    now_ms: int
    delete_retention_ms: int = DELETE_RETENTION_MS
    clean_to: int | None = None
    keep_legacy_tombstones: bool = True
    producer_expiration_ms: int = PRODUCER_EXPIRATION_MS


class _Producer:
    """State of one producer, from reading the log from its start. Source: ProducerStateEntry."""

    __slots__ = ("epoch", "last_data_offset", "last_timestamp_ms", "open_from")

    def __init__(self) -> None:
        self.epoch = NO_ID
        self.last_data_offset = NO_ID
        self.last_timestamp_ms = NO_ID
        self.open_from: int | None = None
        """First offset of the open transaction; None without one."""

    def saw(self, batch: StoredBatch) -> None:
        """Take the producer's next batch. A new epoch forgets the sequences of the old one."""
        if batch.producer_epoch != self.epoch:
            self.epoch = batch.producer_epoch
            self.last_data_offset = NO_ID
        if not batch.control:
            self.last_data_offset = batch.last_offset
        self.last_timestamp_ms = batch.max_timestamp_ms

    def is_active(self, cleaning: CleaningPass) -> bool:
        """Whether the state is still kept. Source: ProducerStateManager.isProducerExpired."""
        age_ms = cleaning.now_ms - self.last_timestamp_ms
        return self.open_from is not None or age_ms < cleaning.producer_expiration_ms


class ProducerEnd(Struct, frozen=True, gc=False):
    """The last write of a producer whose state is kept.

    Args:
        epoch: Newest epoch.
        last_data_offset: Last offset of the newest batch of that epoch; -1 without one.
    """

    epoch: int
    last_data_offset: int


class AbortedStart(Struct, frozen=True, gc=False):
    """An entry of the index of aborted transactions."""

    producer_id: int
    first_offset: int


class _Transactions:
    """The transactions open at the position of a pass. Source: CleanedTransactionMetadata."""

    __slots__ = ("_aborted", "_ongoing_aborted", "_ongoing_committed", "_seen", "kept")

    def __init__(self, aborted: Iterable[AbortedStart]) -> None:
        self._aborted = sorted(aborted, key=lambda one: one.first_offset)
        self._ongoing_aborted: dict[int, AbortedStart] = {}
        self._seen: set[int] = set()
        """Producers with an ongoing aborted transaction of which a batch was seen."""
        self._ongoing_committed: set[int] = set()
        self.kept: list[AbortedStart] = []
        """Ended aborted transactions of which a batch was seen, in order of markers."""

    def on_control_batch(self, batch: StoredBatch) -> bool:
        """Take a marker; return whether nothing of its transaction is left."""
        self._consume_up_to(batch.last_offset)
        if not batch.count:
            return True
        marker = marker_of(batch)
        if marker is None:
            return False
        if marker.committed:
            seen = batch.producer_id in self._ongoing_committed
            self._ongoing_committed.discard(batch.producer_id)
            return not seen
        ended = self._ongoing_aborted.pop(batch.producer_id, None)
        if ended is None or batch.producer_id not in self._seen:
            return True
        self._seen.discard(batch.producer_id)
        self.kept.append(ended)
        return False

    def on_batch(self, batch: StoredBatch) -> bool:
        """Take a batch of data; return whether its transaction was aborted."""
        self._consume_up_to(batch.last_offset)
        if not batch.transactional:
            return False
        if batch.producer_id in self._ongoing_aborted:
            self._seen.add(batch.producer_id)
            return True
        self._ongoing_committed.add(batch.producer_id)
        return False

    def _consume_up_to(self, offset: int) -> None:
        while self._aborted and self._aborted[0].first_offset <= offset:
            begun = self._aborted.pop(0)
            self._ongoing_aborted.setdefault(begun.producer_id, begun)


def compacted(batches: Sequence[RecordBatch], cleaning: CleaningPass) -> list[RecordBatch]:
    """The batches of a log after one pass of the cleaner, in order of offsets.

    The last record of each key stays. Tombstones, and markers without remaining data, stay until
    their delete horizon, which the first pass sets. Data of aborted transactions is removed.
    Offsets never change, so gaps appear. An emptied batch stays as a header if it is the last of
    the pass, or holds the last sequence of a producer whose state is kept.

    Args:
        batches: The whole log of one partition, decoded.
        cleaning: How and when.
    """
    stored = [one for batch in batches for one in SegmentReader(encode_record_batch(batch))]
    producers, aborted = _producers_of(stored)
    bound = _upper_bound(stored, producers, cleaning.clean_to)
    cleanable = [batch for batch in stored if batch.last_offset < bound]
    keys = LastOffsets(aborted)
    for batch in cleanable:
        finished(keys.add(batch))
    active = {
        producer_id: ProducerEnd(producer.epoch, producer.last_data_offset)
        for producer_id, producer in producers.items()
        if producer.is_active(cleaning)
    }
    cleaner = BatchCleaner(cleaning, bound, keys.offsets, aborted, active)
    cleaned = [left for batch in cleanable if (left := finished(cleaner.clean(batch))) is not None]
    return [batch.decoded() for batch in cleaned + stored[len(cleanable) :]]


class LastOffsets:
    """The last offset of each key, without aborted data. Source: Cleaner.buildOffsetMap.

    Args:
        aborted: Aborted transactions that end among the batches that will be added.
        from_offset: Offset before which records are clean already.
    """

    __slots__ = ("_from_offset", "_transactions", "offsets")

    def __init__(
        self,
        aborted: Iterable[AbortedStart],
        from_offset: int = 0,
    ) -> None:
        self.offsets: dict[bytes, int] = {}
        self._from_offset = from_offset
        self._transactions = _Transactions(aborted)

    def add(self, batch: StoredBatch) -> Steps[None]:
        """Add the next batch that is not clean yet.

        Raises:
            WireFormatError: The records do not parse.
        """
        yield _COST_OF_BATCH
        if batch.control:
            self._transactions.on_control_batch(batch)
            return
        if self._transactions.on_batch(batch):
            return
        offsets, from_offset = self.offsets, self._from_offset
        for number, record in enumerate(batch.streamed(NO_BOUNDS), 1):
            if record is None:
                yield _COST_OF_PAUSE
            elif record.key is not None and record.offset >= from_offset:
                offsets[record.key] = record.offset
            if number % _RECORDS_A_STEP == 0:
                yield _RECORDS_A_STEP * _COST_OF_RECORD


class BatchCleaner:
    """One pass over a log, batch by batch from its start. Source: Cleaner.cleanInto.

    Args:
        cleaning: Settings of the pass.
        bound: The offset from which on nothing is cleaned.
        last_offsets: Last offset of each key in the unclean batches before the bound.
        aborted: Aborted transactions that end among the batches that will be cleaned.
        active: The producers whose state is kept.
    """

    __slots__ = ("_active", "_bound", "_cleaning", "_last_offsets", "_transactions")

    def __init__(
        self,
        cleaning: CleaningPass,
        bound: int,
        last_offsets: dict[bytes, int],
        aborted: Iterable[AbortedStart],
        active: Mapping[int, ProducerEnd],
    ) -> None:
        self._cleaning = cleaning
        self._bound = bound
        self._last_offsets = last_offsets
        self._active = active
        self._transactions = _Transactions(aborted)

    @property
    def kept_aborted(self) -> Sequence[AbortedStart]:
        """Aborted transactions that readers must still get: the pass found data of them.

        Their data is removed by this pass; the next one finds nothing of them.
        """
        return self._transactions.kept

    def clean(self, batch: StoredBatch) -> Steps[StoredBatch | None]:
        """Clean the next batch: the same object if nothing is removed, None if everything is.

        Raises:
            WireFormatError: The records do not parse.
        """
        yield _COST_OF_BATCH
        if batch.control:
            discardable = self._transactions.on_control_batch(batch)
        else:
            discardable = self._transactions.on_batch(batch)
        horizon_ms = batch.delete_horizon_ms
        is_due = horizon_ms is not None and horizon_ms <= self._cleaning.now_ms
        left = _Left()
        stays = self._rule_for(batch, is_due=is_due)
        if not discardable or (batch.control and not is_due):
            yield from left.count(batch.streamed(NO_BOUNDS), stays)
        if not left.kept_count:
            kept = batch.next_offset == self._bound or _holds_last_of(batch, self._active)
            return _emptied(batch) if kept and batch.magic >= CURRENT_MAGIC else None
        starts_horizon = (
            batch.magic >= CURRENT_MAGIC
            and horizon_ms is None
            and (left.has_tombstone or (discardable and batch.control))
        )
        if left.kept_count == left.all_count and not starts_horizon:
            return batch
        if starts_horizon:
            horizon_ms = self._cleaning.now_ms + self._cleaning.delete_retention_ms
        kept_records = chosen(batch.streamed(NO_BOUNDS), stays)
        return (yield from _rebuilt(batch, left, kept_records, horizon_ms))

    def _rule_for(self, batch: StoredBatch, *, is_due: bool) -> Callable[[Record], bool]:
        """The test of which records of a batch stay. Source: Cleaner.shouldRetainRecord.

        Args:
            batch: The batch of the records.
            is_due: Whether the batch's delete horizon has passed.
        """
        if batch.control:
            return lambda _: True
        last_offset_of = self._last_offsets.get
        keeps_tombstones = (
            not is_due if batch.magic >= CURRENT_MAGIC else self._cleaning.keep_legacy_tombstones
        )
        return lambda record: (
            record.key is not None
            and record.offset >= last_offset_of(record.key, NO_ID)
            and (record.value is not None or keeps_tombstones)
        )


class _Left:
    """Counters of the records that stay of one batch.

    Attributes:
        all_count: Records before the pass.
        kept_count: Records that stay.
        has_tombstone: Whether one that stays has no value.
        first_offset: Offset of the first one that stays.
        last_offset: Offset of the last one that stays.
        latest_ms: Largest timestamp of those that stay.
    """

    __slots__ = (
        "all_count",
        "first_offset",
        "has_tombstone",
        "kept_count",
        "last_offset",
        "latest_ms",
    )

    def __init__(self) -> None:
        self.all_count = self.kept_count = 0
        self.has_tombstone = False
        self.first_offset = self.last_offset = NO_ID
        self.latest_ms = -(2**63)

    def count(
        self, records: Iterator[Record | None], stays: Callable[[Record], bool]
    ) -> Steps[None]:
        """Count all records of the batch, one after another."""
        for record in records:
            if record is None:
                yield _COST_OF_PAUSE
                continue
            self.all_count += 1
            if self.all_count % _RECORDS_A_STEP == 0:
                yield _RECORDS_A_STEP * _COST_OF_RECORD
            if not stays(record):
                continue
            if not self.kept_count:
                self.first_offset = record.offset
            self.kept_count += 1
            self.last_offset = record.offset
            self.latest_ms = max(self.latest_ms, record.timestamp_ms)
            self.has_tombstone = self.has_tombstone or record.value is None


def _rebuilt(
    batch: StoredBatch, left: _Left, records: Iterator[Record | None], horizon_ms: int | None
) -> Steps[StoredBatch]:
    """The batch with only these records. Source: MemoryRecords.buildRetainedRecordsInto."""
    header = batch.without_records()
    is_legacy = batch.magic < CURRENT_MAGIC
    about = replace(
        header,
        base_offset=left.first_offset if is_legacy else header.base_offset,
        last_offset=left.last_offset if is_legacy else header.last_offset,
        max_timestamp_ms=left.latest_ms,
        has_delete_horizon=horizon_ms is not None,
    )
    made = yield from encoded(about, records, keeps_offsets=True, base_timestamp_ms=horizon_ms)
    data = made or b""
    return StoredBatch(data, 0, len(data), about.base_offset)


def _emptied(batch: StoredBatch) -> StoredBatch:
    """The batch's header without records. Source: DefaultRecordBatch.writeEmptyHeader."""
    header = replace(
        batch.without_records(),
        base_timestamp_ms=NO_ID,
        has_delete_horizon=False,
        compression=Compression.NONE,
    )
    data = encode_record_batch(header)
    return StoredBatch(data, 0, len(data))


def _upper_bound(
    batches: Sequence[StoredBatch], producers: dict[int, _Producer], clean_to: int | None
) -> int:
    """The offset from which on nothing is cleaned, not after the first open transaction."""
    end = batches[-1].next_offset if batches else 0
    bounds = [end if clean_to is None else min(clean_to, end)]
    bounds += [one.open_from for one in producers.values() if one.open_from is not None]
    return min(bounds)


def _holds_last_of(batch: StoredBatch, active: Mapping[int, ProducerEnd]) -> bool:
    """Whether this batch has a kept producer's last sequence, or else its last epoch."""
    producer = active.get(batch.producer_id)
    if producer is None:
        return False
    if producer.last_data_offset >= 0:
        return batch.last_offset == producer.last_data_offset
    return batch.control and batch.producer_epoch == producer.epoch


def _producers_of(
    batches: Iterable[StoredBatch],
) -> tuple[dict[int, _Producer], list[AbortedStart]]:
    """The producers of a log, and its aborted transactions."""
    producers: dict[int, _Producer] = {}
    aborted: list[AbortedStart] = []
    for batch in batches:
        if batch.producer_id < 0:
            continue
        producer = producers.setdefault(batch.producer_id, _Producer())
        producer.saw(batch)
        if not batch.control:
            if batch.transactional and producer.open_from is None:
                producer.open_from = batch.base_offset
            continue
        marker = marker_of(batch)
        if marker is not None and not marker.committed and producer.open_from is not None:
            aborted.append(AbortedStart(batch.producer_id, producer.open_from))
        producer.open_from = None
    return producers, aborted
