"""What a partition's log answers: plain values, protocol errors among them."""

from enum import IntEnum, unique

from msgspec import Struct

from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.storage.contract import AbortedTransaction, StoredSpan


@unique
class OffsetSpec(IntEnum):
    """Timestamps of ListOffsets that are none. Source: ListOffsetsRequest."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5


class BatchSpan(StoredSpan, frozen=True, kw_only=True, gc=False):
    """One batch with what its header says of its producer.

    Args:
        size_bytes: Of the whole batch.
        magic: Format.
        producer_id: -1 where the producer is not idempotent.
        base_sequence: Of the first record; -1 none.
        transactional: Whether it belongs to a transaction.
        control: Whether it is a marker.
    """

    size_bytes: int
    magic: int = 2
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    transactional: bool = False
    control: bool = False


class RecordError(Struct, frozen=True, gc=False):
    """Why one record of a batch is refused. Source: KIP-467.

    Args:
        index: Of the record in its batch, from 0.
        message: What is wrong with it.
    """

    index: int
    message: str


class Appended(Struct, frozen=True, kw_only=True, gc=False):
    """What became of an append, in the words of a Produce response.

    Args:
        error: NONE when the records are in the log.
        message: What a client is told beside the error; None in most cases, as Kafka has it.
        base_offset: Of the first record; -1 when refused.
        last_offset: Of the last record; -1 when refused.
        log_append_time_ms: That the log stamped; -1 where the producer's times stay.
        log_start_offset: Of the log; -1 with the errors that Kafka tells without it.
        record_errors: Of the records that are to blame.
        is_duplicate: Whether the batch was there before; the offsets are then the old ones.
    """

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    base_offset: int = -1
    last_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: tuple[RecordError, ...] = ()
    is_duplicate: bool = False


class Refused(Struct, frozen=True, kw_only=True, gc=False):
    """Why records may not be appended.

    Args:
        error: Never NONE.
        message: What a client is told beside it.
        record_errors: Of single records.
        names_log_start: Whether the answer still tells where the log starts.
        reason: For a broker's log; a client is not told.
    """

    error: ErrorCode
    message: str | None = None
    record_errors: tuple[RecordError, ...] = ()
    names_log_start: bool = True
    reason: str = ""


class Prepared(Struct, frozen=True, kw_only=True, gc=False):
    """Records as they go into the log: checked, offsets given.

    Args:
        data: Whole batches.
        spans: One each.
        is_resized: Whether the batches are others than those that came.
    """

    data: bytes
    spans: tuple[BatchSpan, ...]
    is_resized: bool = False


class ReadResult(Struct, frozen=True, kw_only=True):
    """What a read finds, in the words of a Fetch response.

    Args:
        error: OFFSET_OUT_OF_RANGE, UNSUPPORTED_COMPRESSION_TYPE or NONE.
        records: Whole batches; the first may begin before the offset.
        aborted: Transactions among them to be passed over; None unless committed records were
            asked for.
        cut_off: Where the first batch is too large: its front, as Fetch up to version 2 sends it.
    """

    error: ErrorCode = ErrorCode.NONE
    records: bytes = b""
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    aborted: tuple[AbortedTransaction, ...] | None = None
    cut_off: bytes = b""


class TimedOffset(Struct, frozen=True, gc=False):
    """An answer of ListOffsets.

    Args:
        timestamp_ms: Of the record; -1 where a position was asked for.
        offset: -1 when there is none.
        leader_epoch: Of the record; -1 unknown.
    """

    timestamp_ms: int = -1
    offset: int = -1
    leader_epoch: int = -1


class EpochEnd(Struct, frozen=True, gc=False):
    """An answer of OffsetForLeaderEpoch: the largest epoch not above the asked one, and its end.

    Args:
        leader_epoch: -1 unknown.
        end_offset: -1 unknown.
    """

    leader_epoch: int = -1
    end_offset: int = -1


class ActiveProducer(Struct, frozen=True, kw_only=True, gc=False):
    """An answer of DescribeProducers; -1 where there is nothing to tell."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    current_txn_start_offset: int
