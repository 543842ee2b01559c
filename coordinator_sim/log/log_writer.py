"""Appending to the log of one partition: offsets, producers, transactions, leader epochs.

`batch_checks` validates single batches; `partition_log` reads.

Source: kafka trunk, core/.../log/UnifiedLog.scala; core/.../cluster/Partition.scala.
"""

from typing import Final

from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.log import contract, log_values
from coordinator_sim.log.arrivals import Arrival, Checked, Ending
from coordinator_sim.log.batch_checks import prepared, stamped
from coordinator_sim.log.format.log_batches import DEFAULT_FORM, BatchForm, encode_batch, marker_of
from coordinator_sim.log.format.record_batches import CURRENT_MAGIC
from coordinator_sim.log.format.segments import EncodedBatch
from coordinator_sim.log.format.steps import Steps, finished
from coordinator_sim.log.format.stored_batches import StoredBatch
from coordinator_sim.log.leader_epochs import LeaderEpochs
from coordinator_sim.log.log_config import LogConfig
from coordinator_sim.log.producer_states import ProducerStates
from coordinator_sim.log.spans import span_of
from coordinator_sim.messages.records import EndTransactionMarker, LogBatch

_UNSEEN_BATCHES: Final = 4096
"""Coordinator batches to append before superseded ones are searched for the first time."""
_MAGIC_AT: Final = 16
_EPOCH_BUMP_VERSION: Final = 12
"""Produce version from which on each transaction has a new producer epoch. Source: KIP-890."""
NO_VERSION: Final = -1
"""No Produce version: the records come in another way and may have any format."""


class LogWriter:
    """The appending half of a partition's log; `PartitionLog` is the whole.

    Args:
        topic: Name of the topic.
        partition: Number of the partition.
        store: Store of this log only.
        config: Config of the topic; by default Kafka's defaults.

    Attributes:
        end_offset: Offset of the next record.
        log_start_offset: First offset that may be read.
        high_watermark: Offset before which all replicas have the records.
    """

    __slots__ = (
        "_batch_count",
        "_batch_limit",
        "_config",
        "_epochs",
        "_held",
        "_place",
        "_producers",
        "_stamps",
        "_store",
        "end_offset",
        "high_watermark",
        "log_start_offset",
        "partition",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        store: contract.SegmentStore,
        config: LogConfig | None = None,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self._place = f"{topic}-{partition}"
        self._store = store
        self._producers = ProducerStates()
        self._epochs = LeaderEpochs()
        self._held: int | None = None
        self._batch_count = 0
        self._batch_limit = _UNSEEN_BATCHES
        self.end_offset = self.high_watermark = self.log_start_offset = 0
        self.configure(LogConfig() if config is None else config)

    # -- what it knows -------------------------------------------------------------------------

    @property
    def config(self) -> LogConfig:
        """Settings of the topic."""
        return self._config

    @property
    def leader_epoch(self) -> int:
        """The newest known leader epoch; -1 none."""
        return self._epochs.latest

    @property
    def last_stable_offset(self) -> int:
        """The end for readers of committed records. Source: UnifiedLog.lastStableOffset."""
        first = self._producers.first_unstable_offset
        if first is None or first >= self.high_watermark:
            return self.high_watermark
        return max(first, self.log_start_offset)

    @property
    def size_bytes(self) -> int:
        """Size of all batches in bytes."""
        return sum(segment.size_bytes for segment in self._store.segments())

    def epochs(self) -> tuple[contract.EpochStart, ...]:
        """Start offsets of all known leader epochs, oldest first."""
        return self._epochs.entries()

    def producers(self) -> tuple[log_values.ActiveProducer, ...]:
        """The remembered producers, as DescribeProducers shows them."""
        return self._producers.active()

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether a producer with this epoch has an open transaction in this partition."""
        return self._producers.has_open_transaction(producer_id, producer_epoch)

    def end_offset_for_epoch(self, leader_epoch: int) -> log_values.EpochEnd:
        """The end offset of an epoch, as OffsetForLeaderEpoch answers it."""
        return self._epochs.end_of(leader_epoch, self.end_offset)

    # -- changes from outside --------------------------------------------------------------------

    def configure(self, config: LogConfig) -> None:
        """Use other settings from now on."""
        self._config = config
        self._stamps = config.stamps
        self._store.configure(
            contract.SegmentSettings(
                segment_bytes=config.segment_bytes,
                segment_ms=config.max_segment_ms,
                index_interval_bytes=config.index_interval_bytes,
                segment_index_bytes=config.segment_index_bytes,
                flush_messages=config.flush_messages,
                flush_ms=config.flush_ms,
            )
        )

    def become_leader(self, leader_epoch: int) -> None:
        """Start a leader epoch at the log's end. Source: Partition.makeLeader."""
        if self._config.message_format_magic == CURRENT_MAGIC:
            self._assign_epoch(leader_epoch, self.end_offset)

    def hold_high_watermark(self, offset: int | None) -> None:
        """Keep the high watermark from passing an offset, as lagging followers do.

        Args:
            offset: The offset; None lets the high watermark follow the end again. It never moves
                back.
        """
        self._held = offset
        self._advance()

    # -- appending -------------------------------------------------------------------------------

    def append(
        self,
        records: bytes,
        *,
        now_ms: int,
        leader_epoch: int,
        produce_version: int = NO_VERSION,
        is_verified: bool = True,
    ) -> log_values.Appended:
        """Append a producer's records, all or none; return the result.

        Args:
            records: Records of one partition of a Produce request.
            now_ms: The present of the log's timestamps.
            leader_epoch: Epoch of the leader that received the records.
            produce_version: Version of the request.
            is_verified: Whether the coordinator knows this partition to be in the producer's
                transaction; only the first batch of a transaction needs it.

        Source: UnifiedLog.append; ReplicaManager.appendToLocalLog (fields of errors).
        """
        checked = finished(self.checking(records, now_ms=now_ms, produce_version=produce_version))
        return self.append_checked(
            checked,
            now_ms=now_ms,
            leader_epoch=leader_epoch,
            produce_version=produce_version,
            is_verified=is_verified,
        )

    def checking(
        self, records: bytes, *, now_ms: int, produce_version: int = NO_VERSION
    ) -> Steps[Checked]:
        """Check a producer's records, and rebuild them if needed; the log does not change.

        Args:
            records: See `append`.
            now_ms: See `append`.
            produce_version: See `append`.
        """
        arrival = Arrival(place=self._place, now_ms=now_ms, config=self._config)
        return prepared(records, arrival, produce_version)

    def append_checked(
        self,
        checked: Checked,
        *,
        now_ms: int,
        leader_epoch: int,
        produce_version: int = NO_VERSION,
        is_verified: bool = True,
    ) -> log_values.Appended:
        """Append checked records; return the result. See `append` for the arguments."""
        if isinstance(checked, log_values.Refused):
            return self._refused(checked)
        ready = checked(Ending(self.end_offset, leader_epoch))
        if not ready.spans:
            return log_values.Appended(log_start_offset=self.log_start_offset)
        first = ready.spans[0]
        self._take_epoch(first)
        if len(ready.data) > self._config.segment_bytes:
            return log_values.Appended(error=ErrorCode.RECORD_LIST_TOO_LARGE)
        if first.producer_id >= 0:
            known = self._known(first, produce_version, is_verified=is_verified)
            if known is not None:
                # QUIRK: a batch that is refused or a duplicate still starts its epoch and segment.
                self._rolled(self._store.make_room(len(ready.data), ready.spans, now_ms))
                return known
        self._write(ready, now_ms)
        return log_values.Appended(
            base_offset=first.base_offset,
            last_offset=ready.spans[-1].last_offset,
            log_append_time_ms=now_ms if self._stamps else -1,
            log_start_offset=self.log_start_offset,
        )

    def _known(
        self, span: log_values.BatchSpan, produce_version: int, *, is_verified: bool
    ) -> log_values.Appended | None:
        """The result if the producer's state forbids the append (duplicate or error), else None.

        Source: UnifiedLog.analyzeAndValidateProducerState.
        """
        duplicate = self._producers.duplicate_of(span)
        if duplicate is not None:
            return log_values.Appended(
                base_offset=duplicate.base_offset,
                last_offset=duplicate.last_offset,
                log_append_time_ms=duplicate.timestamp_ms,
                log_start_offset=self.log_start_offset,
                is_duplicate=True,
            )
        is_open = self.has_open_transaction(span.producer_id, span.producer_epoch)
        is_first = span.transactional and not is_open
        if is_first and not is_verified:
            return self._refused(log_values.Refused(error=ErrorCode.INVALID_TXN_STATE))
        begins = produce_version >= _EPOCH_BUMP_VERSION and not self._producers.knows(
            span.producer_id
        )
        if is_first and begins and span.base_sequence != 0:
            # The epoch is new with each transaction, so its state cannot have expired.
            return self._refused(log_values.Refused(error=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER))
        refused = self._producers.refusal_of(span, checks_sequence=True)
        return None if refused is None else self._refused(refused)

    def _refused(self, refused: log_values.Refused) -> log_values.Appended:
        return log_values.Appended(
            error=refused.error,
            message=refused.message,
            record_errors=refused.record_errors,
            log_start_offset=self.log_start_offset if refused.names_log_start else -1,
        )

    def _take_epoch(self, first: log_values.BatchSpan) -> None:
        """Start the batch's leader epoch; a batch of an old format clears all epochs."""
        if first.magic == CURRENT_MAGIC:
            self._assign_epoch(first.leader_epoch, first.base_offset)
        elif self._epochs.clear():
            self._store.keep_epochs(())

    def _write(self, ready: log_values.Prepared, now_ms: int) -> None:
        self._rolled(self._store.append(ready.data, ready.spans, now_ms))
        for span in ready.spans:
            if span.producer_id >= 0:
                self._producers.take(span)
        self.end_offset = ready.spans[-1].last_offset + 1
        self._advance()

    def append_batch(
        self, batch: LogBatch, *, now_ms: int, form: BatchForm = DEFAULT_FORM
    ) -> ErrorCode:
        """Append a group coordinator's batch.

        Args:
            batch: Batch of records, or a marker; its offsets begin at the log's end.
            now_ms: The present of the log's timestamps.
            form: Fields that the broker adds, for example the leader epoch.

        Returns:
            NONE, INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED.

        Raises:
            InvariantViolation: its offsets begin elsewhere.
        """
        data = encode_batch(batch, form)
        if batch.marker is not None or self._stamps:
            encoded = EncodedBatch(batch.base_offset, batch.next_offset, data)
            return self.append_encoded(encoded, now_ms=now_ms)
        self._require_end(batch.base_offset)
        last_offset = batch.base_offset + len(batch.records) - 1
        if batch.producer_id >= 0:
            span = log_values.BatchSpan(
                base_offset=batch.base_offset,
                last_offset=last_offset,
                max_timestamp_ms=batch.timestamp_ms,
                leader_epoch=form.leader_epoch,
                size_bytes=len(data),
                producer_id=batch.producer_id,
                producer_epoch=batch.producer_epoch,
                base_sequence=0,
                transactional=batch.transactional,
            )
            refused = self._producers.refusal_of(span, checks_sequence=False)
            if refused is not None:
                return refused.error
            self._put(data, span, (), form, now_ms)
            self._producers.take(span)
        else:
            plain = contract.StoredSpan(
                base_offset=batch.base_offset,
                last_offset=last_offset,
                max_timestamp_ms=batch.timestamp_ms,
                leader_epoch=form.leader_epoch,
            )
            keys = tuple([record.key for record in batch.records])
            self._put(data, plain, keys, form, now_ms)
        self.end_offset = last_offset + 1
        self._advance()
        self._batch_count += 1
        if self._batch_count >= self._batch_limit:
            self._forget_superseded()
        return NO_ERROR

    def _forget_superseded(self) -> None:
        """Drop superseded batches, each time their number has doubled."""
        if self._config.is_compacted:
            self._batch_count = self._store.forget_superseded(self.last_stable_offset)
        self._batch_limit = max(_UNSEEN_BATCHES, 2 * self._batch_count)

    def _put(
        self,
        data: bytes,
        span: contract.StoredSpan,
        keys: contract.Keys,
        form: BatchForm,
        now_ms: int,
    ) -> None:
        if span.leader_epoch != self._epochs.latest and form.magic == CURRENT_MAGIC:
            self._assign_epoch(span.leader_epoch, span.base_offset)
        self._rolled(self._store.append(data, (span,), now_ms, keys))

    def append_encoded(self, batch: EncodedBatch, *, now_ms: int) -> ErrorCode:
        """Append one whole batch of a coordinator that has its offsets and leader epoch already.

        Args:
            batch: Batch of data, or a marker; begins at the log's end.
            now_ms: The present of the log's timestamps.

        Returns:
            The error by the producer's state; sequences are not checked.

        Raises:
            InvariantViolation: its offsets begin elsewhere.
        """
        self._require_end(batch.base_offset)
        data = self._timed(batch.data, now_ms)
        stored = StoredBatch(data, 0, len(data))
        span = span_of(stored)
        marker = marker_of(stored) if span.control else None
        refused = None
        if marker is not None:
            refused = self._producers.marker_refusal_of(
                span.producer_id, span.producer_epoch, marker
            )
        elif span.producer_id >= 0:
            refused = self._producers.refusal_of(span, checks_sequence=False)
        if refused is not None:
            return refused.error
        self._take_epoch(span)
        if marker is None:
            self._write(log_values.Prepared(data=data, spans=(span,)), now_ms)
        else:
            self._write_marker(data, span, marker, now_ms)
        return NO_ERROR

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        marker: EndTransactionMarker,
        *,
        now_ms: int,
        leader_epoch: int,
        transaction_version: int = 0,
    ) -> log_values.Appended:
        """Append the marker that ends a producer's transaction, even if none is open.

        Args:
            producer_id: Id of the producer.
            producer_epoch: Epoch; from transaction version 2 on above that of the records.
            marker: Commit or abort.
            now_ms: The present of the log's timestamps.
            leader_epoch: Epoch of the leader that was asked.
            transaction_version: Transaction version, which WriteTxnMarkers has from version 2 on.

        Returns:
            The offsets of the marker, INVALID_PRODUCER_EPOCH for a marker that comes late, or
            TRANSACTION_COORDINATOR_FENCED for one of an older coordinator.

        Source: ProducerAppendInfo.appendEndTxnMarker.
        """
        batch = LogBatch(
            partition=self.partition,
            base_offset=self.end_offset,
            timestamp_ms=now_ms,
            records=(),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transactional=True,
            marker=marker,
            control=True,
        )
        data = self._timed(encode_batch(batch, BatchForm(leader_epoch=leader_epoch)), now_ms)
        span = span_of(StoredBatch(data, 0, len(data)))
        self._take_epoch(span)
        refused = self._producers.marker_refusal_of(
            producer_id, producer_epoch, marker, transaction_version
        )
        if refused is not None:
            self._rolled(self._store.make_room(len(data), (span,), now_ms))
            return self._refused(refused)
        self._write_marker(data, span, marker, now_ms)
        return log_values.Appended(
            base_offset=span.base_offset,
            last_offset=span.last_offset,
            log_append_time_ms=now_ms if self._stamps else -1,
            log_start_offset=self.log_start_offset,
        )

    def _timed(self, data: bytes, now_ms: int) -> bytes:
        """A coordinator's batch, stamped with the log's time if the topic has LogAppendTime."""
        if self._stamps and data[_MAGIC_AT] == CURRENT_MAGIC:
            return stamped(data, now_ms, is_appended=True)
        return data

    def _write_marker(
        self, data: bytes, span: log_values.BatchSpan, marker: EndTransactionMarker, now_ms: int
    ) -> None:
        self._rolled(self._store.append(data, (span,), now_ms))
        aborted = self._producers.take_marker(span, marker)
        if aborted is not None:
            self._store.keep_aborted(aborted)
        self.end_offset = span.last_offset + 1
        self._advance()

    def _rolled(self, base_offset: int | None) -> None:
        """Keep a snapshot of the producers if the store rolled a new segment."""
        if base_offset is not None:
            self._store.keep_producers(base_offset, self._producers.snapshot())

    def _require_end(self, base_offset: int) -> None:
        if base_offset != self.end_offset:
            raise InvariantViolation(
                f"{self._place}: a batch for offset {base_offset} of a log that ends at "
                f"{self.end_offset}"
            )

    def _assign_epoch(self, leader_epoch: int, start_offset: int) -> None:
        if leader_epoch >= 0 and self._epochs.assign(leader_epoch, start_offset):
            self._store.keep_epochs(self._epochs.entries())

    def _advance(self) -> None:
        """Move the high watermark, which also moves the last stable offset."""
        reached = self.end_offset
        if self._held is not None:
            reached = min(reached, max(self._held, self.high_watermark))
        self.high_watermark = reached
        if self._producers.ended:
            self._producers.on_high_watermark(reached)
