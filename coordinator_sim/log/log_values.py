"""Results of a partition's log as plain values, including protocol errors."""

from enum import IntEnum, unique

from msgspec import Struct

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.contract import AbortedTransaction, StoredSpan

LogEntry = tuple[bytes, bytes | None]
"""Key and value of a record; None is a tombstone."""


@unique
class OffsetSpec(IntEnum):
    """Timestamps of ListOffsets that stand for a position. Source: ListOffsetsRequest."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5


class BatchSpan(StoredSpan, frozen=True, kw_only=True, gc=False):
    """The facts of one batch, with the producer fields of its header.

    Args:
        size_bytes: Size of the whole batch.
        magic: Format of the batch.
        producer_id: Id of the producer; -1 if it is not idempotent.
        base_sequence: Sequence of the first record; -1 none.
        transactional: Whether the batch belongs to a transaction.
        control: Whether the batch is a marker.
    """

    size_bytes: int
    magic: int = 2
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    transactional: bool = False
    control: bool = False


class RecordError(Struct, frozen=True, gc=False):
    """The error of one record of a batch. Source: KIP-467.

    Args:
        index: Index of the record in its batch, from 0.
        message: What is wrong with the record.
    """

    index: int
    message: str


class Appended(Struct, frozen=True, kw_only=True, gc=False):
    """Result of an append, with the fields of a Produce response.

    Args:
        error: NONE when the records are in the log.
        message: Error message for the client; None in most cases, as in Kafka.
        base_offset: Offset of the first record; -1 when refused.
        last_offset: Offset of the last record; -1 when refused.
        log_append_time_ms: Timestamp given by the log; -1 if the producer's timestamps stay.
        log_start_offset: Start of the log; -1 with errors that Kafka answers without it.
        record_errors: Errors of single records.
        is_duplicate: Whether the batch was in the log already; the offsets are the old ones.
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
    """Refusal of records.

    Args:
        error: The error; never NONE.
        message: Error message for the client.
        record_errors: Errors of single records.
        names_log_start: Whether the answer has the log start nevertheless.
        reason: Reason for the broker's log; not sent to the client.
    """

    error: ErrorCode
    message: str | None = None
    record_errors: tuple[RecordError, ...] = ()
    names_log_start: bool = True
    reason: str = ""


class Prepared(Struct, frozen=True, kw_only=True, gc=False):
    """Records ready for the append: checked, with offsets.

    Args:
        data: Whole batches.
        spans: One span per batch.
        is_resized: Whether the batches were rebuilt.
    """

    data: bytes
    spans: tuple[BatchSpan, ...]
    is_resized: bool = False


class ReadResult(Struct, frozen=True, kw_only=True):
    """Result of a read, with the fields of a Fetch response.

    Args:
        error: OFFSET_OUT_OF_RANGE, UNSUPPORTED_COMPRESSION_TYPE or NONE.
        records: Whole batches; the first may begin before the offset.
        aborted: Aborted transactions in the range; None unless read_committed was asked for.
        cut_off: Beginning of the first batch if it is too large, as Fetch up to version 2
            sends it.
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
        timestamp_ms: Timestamp of the record; -1 if a position was asked for.
        offset: Offset of the record; -1 when there is none.
        leader_epoch: Leader epoch of the record; -1 unknown.
    """

    timestamp_ms: int = -1
    offset: int = -1
    leader_epoch: int = -1


class EpochEnd(Struct, frozen=True, gc=False):
    """An answer of OffsetForLeaderEpoch: the largest epoch not above the asked one, and its end.

    Args:
        leader_epoch: The epoch; -1 unknown.
        end_offset: End offset of the epoch; -1 unknown.
    """

    leader_epoch: int = -1
    end_offset: int = -1


class ActiveProducer(Struct, frozen=True, kw_only=True, gc=False):
    """An answer of DescribeProducers; fields without a value are -1."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    current_txn_start_offset: int
