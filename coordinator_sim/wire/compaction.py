"""What the log cleaner leaves of a log: one pass over the batches of one partition.

Source: kafka trunk, storage/.../internals/log: Cleaner (buildOffsetMap, cleanInto,
shouldRetainRecord), CleanedTransactionMetadata; clients/.../common/record/MemoryRecords.filterTo.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.wire.compression import Compression
from coordinator_sim.wire.log_batches import read_marker
from coordinator_sim.wire.record_batches import CURRENT_MAGIC, NO_ID, RecordBatch
from coordinator_sim.wire.record_bytes import Record

DELETE_RETENTION_MS: Final = 86_400_000
"""`delete.retention.ms` by default."""
PRODUCER_EXPIRATION_MS: Final = 86_400_000
"""`producer.id.expiration.ms` by default."""


class CleaningPass(Struct, frozen=True, kw_only=True):
    """How and when the cleaner runs.

    Args:
        now_ms: The instant of the pass.
        delete_retention_ms: How long a tombstone or marker stays after the first pass that saw it.
        clean_to: Offset from which on nothing is cleaned: that of the active segment, or of the
            segment that the first open transaction starts in. None cleans all up to that
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
    """What the log says of one producer, read from its start. Source: ProducerStateEntry."""

    __slots__ = ("epoch", "last_data_offset", "last_timestamp_ms", "open_from")

    def __init__(self) -> None:
        self.epoch = NO_ID
        self.last_data_offset = NO_ID
        self.last_timestamp_ms = NO_ID
        self.open_from: int | None = None
        """Where its open transaction starts."""

    def saw(self, batch: RecordBatch) -> None:
        """Take its next batch in. A new epoch forgets the sequences of the old one."""
        if batch.producer_epoch != self.epoch:
            self.epoch = batch.producer_epoch
            self.last_data_offset = NO_ID
        if not batch.control:
            self.last_data_offset = batch.last_offset
        self.last_timestamp_ms = batch.max_timestamp_ms

    def is_active(self, cleaning: CleaningPass) -> bool:
        """Whether its state is still kept. Source: ProducerStateManager.isProducerExpired."""
        age_ms = cleaning.now_ms - self.last_timestamp_ms
        return self.open_from is not None or age_ms < cleaning.producer_expiration_ms


class ProducerEnd(Struct, frozen=True, gc=False):
    """Where a producer that is still known wrote last.

    Args:
        epoch: Its newest.
        last_data_offset: Of its newest batch of that epoch; -1 when there is none.
    """

    epoch: int
    last_data_offset: int


class AbortedStart(Struct, frozen=True, gc=False):
    """A transaction of the index of aborted ones."""

    producer_id: int
    first_offset: int


class _Transactions:
    """Which transactions a pass is inside of. Source: CleanedTransactionMetadata."""

    __slots__ = ("_aborted", "_ongoing_aborted", "_ongoing_committed", "_seen", "kept")

    def __init__(self, aborted: Iterable[AbortedStart]) -> None:
        self._aborted = sorted(aborted, key=lambda one: one.first_offset)
        self._ongoing_aborted: dict[int, AbortedStart] = {}
        self._seen: set[int] = set()
        """Producers of these of whose transactions a batch was seen."""
        self._ongoing_committed: set[int] = set()
        self.kept: list[AbortedStart] = []
        """Those that ended and of which a batch was seen, in order of their markers."""

    def on_control_batch(self, batch: RecordBatch) -> bool:
        """Take a marker in; whether nothing of its transaction is left."""
        self._consume_up_to(batch.last_offset)
        if not batch.records:
            return True
        marker = read_marker(batch.records[0])
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

    def on_batch(self, batch: RecordBatch) -> bool:
        """Take data in; whether its transaction was aborted."""
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

    Of each key the last record stays; a tombstone, and a marker whose transaction is gone, stay
    until their delete horizon, which the first pass sets. Data of aborted transactions goes.
    Offsets never change: gaps appear. An emptied batch stays as a header where it is the last of
    the pass, or holds the last sequence of a producer that is still known.

    Args:
        batches: The whole log of one partition, decoded.
        cleaning: How and when.
    """
    producers, aborted = _producers_of(batches)
    bound = _upper_bound(batches, producers, cleaning.clean_to)
    cleanable = [batch for batch in batches if batch.last_offset < bound]
    keys = LastOffsets(aborted)
    for batch in cleanable:
        keys.add(batch)
    active = {
        producer_id: ProducerEnd(producer.epoch, producer.last_data_offset)
        for producer_id, producer in producers.items()
        if producer.is_active(cleaning)
    }
    cleaner = BatchCleaner(cleaning, bound, keys.offsets, aborted, active)
    cleaned = [left for batch in cleanable if (left := cleaner.clean(batch)) is not None]
    return cleaned + list(batches[len(cleanable) :])


class LastOffsets:
    """Of each key the last offset, aborted data aside. Source: Cleaner.buildOffsetMap.

    Args:
        aborted: Transactions that end among the batches that will be added.
        from_offset: Records before it are clean already.
    """

    __slots__ = ("_from_offset", "_transactions", "offsets")

    def __init__(self, aborted: Iterable[AbortedStart], from_offset: int = 0) -> None:
        self.offsets: dict[bytes, int] = {}
        self._from_offset = from_offset
        self._transactions = _Transactions(aborted)

    def add(self, batch: RecordBatch) -> None:
        """Take in the next batch of those that are not clean yet."""
        if batch.control:
            self._transactions.on_control_batch(batch)
        elif not self._transactions.on_batch(batch):
            self.offsets.update(
                (record.key, record.offset)
                for record in batch.records
                if record.key is not None and record.offset >= self._from_offset
            )


class BatchCleaner:
    """One pass over a log, batch by batch from its start. Source: Cleaner.cleanInto.

    Args:
        cleaning: How and when.
        bound: The offset from which on nothing is cleaned.
        last_offsets: Of each key among the batches before the bound that are not clean yet.
        aborted: Transactions that end among the batches that will be cleaned.
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
        """Aborted transactions that readers must still be told of: so far some of them was left.

        Their data goes with this pass; the next one finds nothing of them.
        """
        return self._transactions.kept

    def clean(self, batch: RecordBatch) -> RecordBatch | None:
        """What stays of the next batch: the very same where nothing goes, None where all does."""
        if batch.control:
            discardable = self._transactions.on_control_batch(batch)
        else:
            discardable = self._transactions.on_batch(batch)
        kept = batch.next_offset == self._bound or _holds_last_of(batch, self._active)
        return _cleaned(
            batch, self._last_offsets, self._cleaning, discardable=discardable, kept=kept
        )


def _cleaned(
    batch: RecordBatch,
    last_offsets: dict[bytes, int],
    cleaning: CleaningPass,
    *,
    discardable: bool,
    kept: bool,
) -> RecordBatch | None:
    """One batch after the pass; None where nothing of it stays.

    Args:
        batch: As it was.
        last_offsets: Of each key, the offset of the record that stays.
        cleaning: How and when.
        discardable: Its transaction was aborted, or nothing of its marker's transaction is left.
        kept: At least the header stays. Source: BatchRetention.RETAIN_EMPTY.
    """
    horizon_ms = batch.delete_horizon_ms
    is_due = horizon_ms is not None and horizon_ms <= cleaning.now_ms
    discarded = discardable and (is_due or not batch.control)
    retained = () if discarded else _retained(batch, last_offsets, cleaning, is_due=is_due)
    if not retained:
        return _emptied(batch) if kept and batch.magic >= CURRENT_MAGIC else None
    has_tombstone = any(record.value is None for record in retained)
    starts_horizon = (
        batch.magic >= CURRENT_MAGIC
        and horizon_ms is None
        and (has_tombstone or (discardable and batch.control))
    )
    if len(retained) == len(batch.records) and not starts_horizon:
        return batch
    return _rebuilt(
        batch,
        retained,
        cleaning.now_ms + cleaning.delete_retention_ms if starts_horizon else horizon_ms,
    )


def _retained(
    batch: RecordBatch, last_offsets: dict[bytes, int], cleaning: CleaningPass, *, is_due: bool
) -> tuple[Record, ...]:
    """The records that stay. Source: Cleaner.shouldRetainRecord."""
    if batch.control:
        return batch.records
    keeps_tombstones = (
        not is_due if batch.magic >= CURRENT_MAGIC else cleaning.keep_legacy_tombstones
    )
    return tuple(
        record
        for record in batch.records
        if record.key is not None
        and record.offset >= last_offsets.get(record.key, NO_ID)
        and (record.value is not None or keeps_tombstones)
    )


def _rebuilt(
    batch: RecordBatch, retained: tuple[Record, ...], horizon_ms: int | None
) -> RecordBatch:
    """The batch with these records alone. Source: MemoryRecords.buildRetainedRecordsInto."""
    is_legacy = batch.magic < CURRENT_MAGIC
    latest_ms = max(record.timestamp_ms for record in retained)
    return replace(
        batch,
        base_offset=retained[0].offset if is_legacy else batch.base_offset,
        last_offset=retained[-1].offset if is_legacy else batch.last_offset,
        records=retained,
        base_timestamp_ms=retained[0].timestamp_ms if horizon_ms is None else horizon_ms,
        max_timestamp_ms=latest_ms,
        has_delete_horizon=horizon_ms is not None,
    )


def _emptied(batch: RecordBatch) -> RecordBatch:
    """The header alone. Source: DefaultRecordBatch.writeEmptyHeader."""
    return replace(
        batch,
        records=(),
        base_timestamp_ms=NO_ID,
        has_delete_horizon=False,
        compression=Compression.NONE,
    )


def _upper_bound(
    batches: Sequence[RecordBatch], producers: dict[int, _Producer], clean_to: int | None
) -> int:
    """The offset from which on nothing is cleaned: at the latest the first open transaction."""
    end = batches[-1].next_offset if batches else 0
    bounds = [end if clean_to is None else min(clean_to, end)]
    bounds += [one.open_from for one in producers.values() if one.open_from is not None]
    return min(bounds)


def _holds_last_of(batch: RecordBatch, active: Mapping[int, ProducerEnd]) -> bool:
    """Whether a known producer's last sequence, or else its last epoch, is in this batch."""
    producer = active.get(batch.producer_id)
    if producer is None:
        return False
    if producer.last_data_offset >= 0:
        return batch.last_offset == producer.last_data_offset
    return batch.control and batch.producer_epoch == producer.epoch


def _producers_of(
    batches: Iterable[RecordBatch],
) -> tuple[dict[int, _Producer], list[AbortedStart]]:
    """The producers of a log, and the transactions that they aborted."""
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
        marker = read_marker(batch.records[0]) if batch.records else None
        if marker is not None and not marker.committed and producer.open_from is not None:
            aborted.append(AbortedStart(batch.producer_id, producer.open_from))
        producer.open_from = None
    return producers, aborted
