"""The producers that wrote to one partition: sequences, epochs, open transactions.

Source: kafka trunk, storage/.../internals/log: ProducerStateManager, ProducerAppendInfo,
ProducerStateEntry.
"""

from collections.abc import Iterable
from operator import itemgetter
from typing import Final, NamedTuple

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.compaction import ProducerEnd
from coordinator_sim.log.contract import AbortedTransaction, ProducerEntry
from coordinator_sim.log.log_values import ActiveProducer, BatchSpan, Refused
from coordinator_sim.messages.records import EndTransactionMarker

BATCHES_TO_RETAIN: Final = 5
"""Batches remembered per producer. Source: ProducerStateEntry.NUM_BATCHES_TO_RETAIN."""
_BUMPING_VERSION: Final = 2
"""Transaction version in which each transaction has its own producer epoch. Source: KIP-890."""
_LAST_SEQUENCE: Final = 2**31 - 1
_NONE: Final = -1


class WrittenBatch(NamedTuple):
    """A batch of an idempotent producer, kept to detect duplicates."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp_ms: int


class _Producer:
    """State of one producer in a log. Source: ProducerStateEntry."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "first_offset", "timestamp_ms")

    def __init__(self) -> None:
        self.epoch = _NONE
        self.batches: list[WrittenBatch] = []
        self.coordinator_epoch = _NONE
        self.timestamp_ms = _NONE
        self.first_offset: int | None = None
        """First offset of the open transaction; None without one."""

    @property
    def last_sequence(self) -> int:
        """Last sequence of the newest batch; -1 without a remembered batch."""
        return self.batches[-1].last_sequence if self.batches else _NONE

    def snapshot(self, producer_id: int) -> ProducerEntry:
        """The entry for a snapshot file, which has only the newest batch."""
        batch = self.batches[-1] if self.batches else None
        return ProducerEntry(
            producer_id=producer_id,
            producer_epoch=self.epoch,
            last_sequence=_NONE if batch is None else batch.last_sequence,
            last_offset=_NONE if batch is None else batch.last_offset,
            offset_delta=0 if batch is None else batch.last_offset - batch.base_offset,
            timestamp_ms=self.timestamp_ms,
            coordinator_epoch=self.coordinator_epoch,
            current_txn_first_offset=_NONE if self.first_offset is None else self.first_offset,
        )


class ProducerStates:
    """All producers of one partition."""

    __slots__ = ("_open", "_producers", "ended", "first_unstable_offset")

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}
        self._open: dict[int, int] = {}
        """First offset -> producer id of each open transaction, in ascending order."""
        self.ended: dict[int, int] = {}
        """First -> last offset of ended transactions, in the order of their ends."""
        self.first_unstable_offset: int | None = None
        """First offset of the oldest transaction that is open or whose marker is not below the
        high watermark; None when there is none."""

    @property
    def is_empty(self) -> bool:
        """Whether no producer is known and no transaction waits for the high watermark."""
        return not self._producers and not self.ended

    # -- appends -----------------------------------------------------------------------------

    def duplicate_of(self, span: BatchSpan) -> WrittenBatch | None:
        """The remembered batch that a batch duplicates, or None. Source: findDuplicateBatch."""
        producer = self._producers.get(span.producer_id)
        if producer is None or producer.epoch != span.producer_epoch:
            return None
        last_sequence = _last_sequence(span)
        for batch in producer.batches:
            if batch[0] == span.base_sequence and batch[1] == last_sequence:
                return batch
        return None

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether a producer with this epoch has an open transaction.

        Source: UnifiedLog.hasOngoingTransaction.
        """
        producer = self._producers.get(producer_id)
        if producer is None or producer.first_offset is None:
            return False
        return producer.epoch == producer_epoch

    def knows(self, producer_id: int) -> bool:
        """Whether a producer is remembered."""
        return producer_id in self._producers

    def refusal_of(self, span: BatchSpan, *, checks_sequence: bool) -> Refused | None:
        """The refusal of a batch of data; None when it may be appended.

        Source: ProducerAppendInfo.appendDataBatch.

        Args:
            span: Span of the batch, with a producer id.
            checks_sequence: Whether a client sent the batch; coordinators write no sequences.
        """
        producer = self._producers.get(span.producer_id)
        if producer is None:
            return None
        if span.producer_epoch < producer.epoch:
            return Refused(error=ErrorCode.INVALID_PRODUCER_EPOCH)
        if checks_sequence and not _in_order(producer, span):
            return Refused(error=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        if producer.first_offset is not None and not span.transactional:
            return Refused(error=ErrorCode.INVALID_TXN_STATE)
        return None

    def marker_refusal_of(
        self,
        producer_id: int,
        epoch: int,
        marker: EndTransactionMarker,
        transaction_version: int = 0,
    ) -> Refused | None:
        """The refusal of a marker; None when it may be appended.

        From transaction version 2 on, a marker's epoch is above that of the records. A marker with
        an equal epoch comes late, unless it is the marker that ended the transaction, sent again.

        Source: kafka 4.3, ProducerAppendInfo.appendEndTxnMarker and checkProducerEpoch.
        """
        producer = self._producers.get(producer_id)
        if producer is None:
            return None
        is_open = producer.first_offset is not None
        is_equal = epoch == producer.epoch and transaction_version >= _BUMPING_VERSION
        if epoch < producer.epoch or (is_equal and is_open):
            return Refused(error=ErrorCode.INVALID_PRODUCER_EPOCH)
        if marker.coordinator_epoch < producer.coordinator_epoch:
            return Refused(error=ErrorCode.TRANSACTION_COORDINATOR_FENCED)
        return None

    def take(self, span: BatchSpan) -> None:
        """Remember a batch of data that was appended."""
        producer = self._producers.get(span.producer_id)
        if producer is None:
            producer = self._producers[span.producer_id] = _Producer()
        if producer.epoch != span.producer_epoch:
            producer.epoch = span.producer_epoch
            producer.batches = []
        batches = producer.batches
        if len(batches) == BATCHES_TO_RETAIN:
            del batches[0]
        batches.append(
            WrittenBatch(
                span.base_sequence,
                _last_sequence(span),
                span.base_offset,
                span.last_offset,
                span.max_timestamp_ms,
            )
        )
        producer.timestamp_ms = span.max_timestamp_ms
        if span.transactional and producer.first_offset is None:
            producer.first_offset = span.base_offset
            self._open[span.base_offset] = span.producer_id
            self._find_first_unstable()

    def take_marker(
        self, span: BatchSpan, marker: EndTransactionMarker
    ) -> AbortedTransaction | None:
        """Take a marker; return the entry of the aborted transaction, if it aborts one.

        A marker of a producer that wrote nothing ends no transaction, but its epochs are kept.
        """
        producer = self._producers.get(span.producer_id)
        if producer is None:
            producer = self._producers[span.producer_id] = _Producer()
        if producer.epoch != span.producer_epoch:
            producer.epoch = span.producer_epoch
            producer.batches = []
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.timestamp_ms = span.max_timestamp_ms
        first_offset, producer.first_offset = producer.first_offset, None
        if first_offset is None:
            return None
        self._open.pop(first_offset, None)
        self.ended[first_offset] = span.last_offset
        self._find_first_unstable()
        if marker.committed:
            return None
        stable = next(iter(self._open), span.last_offset + 1)
        return AbortedTransaction(span.producer_id, first_offset, span.last_offset, stable)

    # -- the high watermark, expiry ------------------------------------------------------------

    def on_high_watermark(self, high_watermark: int) -> None:
        """Forget the ended transactions whose markers are below the high watermark."""
        done = [first for first, last in self.ended.items() if last < high_watermark]
        for first_offset in done:
            del self.ended[first_offset]
        if done:
            self._find_first_unstable()

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers without recent writes and without an open transaction.

        Source: ProducerStateManager.removeExpiredProducers.
        """
        gone = [
            producer_id
            for producer_id, producer in self._producers.items()
            if producer.first_offset is None and now_ms - producer.timestamp_ms >= expiration_ms
        ]
        for producer_id in gone:
            del self._producers[producer_id]

    # -- snapshots -----------------------------------------------------------------------------

    def snapshot(self) -> tuple[ProducerEntry, ...]:
        """The entries of all producers for a snapshot file, by id."""
        return tuple(
            producer.snapshot(producer_id)
            for producer_id, producer in sorted(self._producers.items(), key=itemgetter(0))
        )

    def load(self, snapshots: Iterable[ProducerEntry]) -> None:
        """Replace all producers by a snapshot's. Source: ProducerStateManager.loadProducerEntry."""
        self.clear()
        for entry in snapshots:
            producer = self._producers[entry.producer_id] = _Producer()
            producer.epoch = entry.producer_epoch
            producer.coordinator_epoch = entry.coordinator_epoch
            producer.timestamp_ms = entry.timestamp_ms
            if entry.last_offset >= 0:
                first_sequence = _minus(entry.last_sequence, entry.offset_delta)
                base_offset = entry.last_offset - entry.offset_delta
                producer.batches = [
                    WrittenBatch(
                        first_sequence,
                        entry.last_sequence,
                        base_offset,
                        entry.last_offset,
                        entry.timestamp_ms,
                    )
                ]
            if entry.current_txn_first_offset >= 0:
                producer.first_offset = entry.current_txn_first_offset
        opened = (
            (producer.first_offset, producer_id)
            for producer_id, producer in self._producers.items()
            if producer.first_offset is not None
        )
        self._open = dict(sorted(opened))
        self._find_first_unstable()

    def clear(self) -> None:
        """Forget all producers."""
        self._producers.clear()
        self._open.clear()
        self.ended.clear()
        self.first_unstable_offset = None

    def ends(self) -> dict[int, ProducerEnd]:
        """The last batch of each producer, which the cleaner must keep."""
        return {
            producer_id: ProducerEnd(
                producer.epoch, producer.batches[-1].last_offset if producer.batches else _NONE
            )
            for producer_id, producer in self._producers.items()
        }

    def active(self) -> tuple[ActiveProducer, ...]:
        """Producers for DescribeProducers, by id. Source: UnifiedLog.activeProducers.

        UNSPECIFIED: Kafka's order is that of a hash map; for few small ids it is the same.
        """
        return tuple(
            ActiveProducer(
                producer_id=producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp_ms=producer.timestamp_ms,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=(
                    _NONE if producer.first_offset is None else producer.first_offset
                ),
            )
            for producer_id, producer in sorted(self._producers.items(), key=itemgetter(0))
        )

    def _find_first_unstable(self) -> None:
        first = next(iter(self._open), None)
        if self.ended:
            oldest = min(self.ended)
            first = oldest if first is None else min(first, oldest)
        self.first_unstable_offset = first


def _last_sequence(span: BatchSpan) -> int:
    """Last sequence of a batch; they wrap to 0 after the largest int. Source: incrementSequence."""
    if span.base_sequence < 0:
        return _NONE
    last = span.base_sequence + span.last_offset - span.base_offset
    return last if last <= _LAST_SEQUENCE else last - _LAST_SEQUENCE - 1


def _minus(sequence: int, delta: int) -> int:
    """Subtract from a sequence, with wrap-around. Source: DefaultRecordBatch.decrementSequence."""
    return sequence - delta if sequence >= delta else sequence - delta + _LAST_SEQUENCE + 1


def _in_order(producer: _Producer, span: BatchSpan) -> bool:
    """Whether the batch's sequence comes next. Source: ProducerAppendInfo.checkSequence."""
    if span.producer_epoch != producer.epoch:
        return span.base_sequence == 0 or producer.epoch == _NONE
    last = producer.last_sequence
    return span.base_sequence == last + 1 or (span.base_sequence == 0 and last == _LAST_SEQUENCE)
