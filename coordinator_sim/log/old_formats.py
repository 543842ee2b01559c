"""Conversion of message sets of magic 0 and 1 for the append, and of batches for old readers.

A log of either format takes both: batches of another format are rebuilt, and so are message sets
whose inner offsets are not 0, 1, 2, ..., which some old clients send.

Source: kafka 3.9, storage/.../internals/log/LogValidator.java; clients/.../common/record:
AbstractLegacyRecordBatch (DeepRecordsIterator), MemoryRecordsBuilder, RecordsUtil.downConvert.
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.arrivals import (
    Arrival,
    Ending,
    Placing,
    RecordErrors,
    invalid_record,
    too_large,
)
from coordinator_sim.log.format.batch_stream import chosen, encoded
from coordinator_sim.log.format.compression import (
    NO_BOUNDS,
    Compression,
    ContentBounds,
    ContentTooLarge,
)
from coordinator_sim.log.format.record_batches import (
    CURRENT_MAGIC,
    LOG_APPEND,
    NO_ID,
    Record,
    RecordBatch,
    TimestampType,
)
from coordinator_sim.log.format.steps import Steps, finished
from coordinator_sim.log.format.stored_batches import StoredBatch
from coordinator_sim.log.log_values import BatchSpan, Prepared, Refused
from coordinator_sim.log.spans import batches_in, span_of

_OFFSET: Final = struct.Struct(">q")
_CRC: Final = struct.Struct(">I")
_EPOCH: Final = struct.Struct(">i")
_RECORDS_A_STEP: Final = 200
_COST_OF_RECORD: Final = 5
_COST_OF_SPAN: Final = 8
_COST_OF_PAUSE: Final = 250
_CRC_AT: Final = 12
_CHECKED_FROM: Final = 16
_ATTRIBUTES_AT: Final = 17
_TIMESTAMP_AT: Final = 18


class _Looked(Struct, frozen=True, kw_only=True):
    """Result of checking all records.

    Args:
        count: Number of records.
        newest_ms: The largest timestamp.
        is_consecutive: Whether the offsets inside a wrapper are 0, 1, 2, ...
        has_headers: Whether any record has headers.
        refused: The refusal; None if the records are valid.
    """

    count: int
    newest_ms: int
    is_consecutive: bool
    has_headers: bool
    refused: Refused | None


def converted(batches: Sequence[StoredBatch], arrival: Arrival) -> Steps[Placing | Refused]:
    """Check and prepare batches for which the log's or the batches' format is old.

    Args:
        batches: At least one batch; whole, with correct checksums.
        arrival: Circumstances of the arrival.

    Source: LogValidator.validateMessagesAndAssignOffsets.
    """
    source = Compression(max(batch.codec for batch in batches))
    target = arrival.config.codec_for(source)
    to_magic = arrival.config.message_format_magic
    refused = _batch_refusal(batches, source, to_magic)
    if refused is not None:
        return refused
    try:
        looked = yield from _look(batches, arrival)
        if looked.refused is not None:
            return looked.refused
        stays = source is target and batches[0].magic == to_magic
        if stays and source is not Compression.NONE:
            stays = to_magic > 0 and looked.is_consecutive
        if stays:
            return (yield from _in_place(batches, looked, arrival))
        return (yield from _rebuilt(batches, looked, target, arrival))
    except ContentTooLarge as error:
        return too_large(arrival.place, error)
    except WireFormatError as error:
        return invalid_record(str(error.args[0]))


def _batch_refusal(
    batches: Sequence[StoredBatch], source: Compression, to_magic: int
) -> Refused | None:
    """Check the batches. Source: getFirstBatchAndMaybeValidateNoMoreBatches, validateBatch."""
    first = batches[0]
    if len(batches) > 1 and (first.magic == CURRENT_MAGIC or source is not Compression.NONE):
        return invalid_record("more than one batch")
    if any(batch.magic != first.magic for batch in batches):
        return invalid_record("batches of several formats")
    if first.magic < CURRENT_MAGIC:
        return None
    if first.count is None or first.count <= 0:
        return invalid_record(f"{first.count} records")
    if first.last_offset - first.base_offset + 1 != first.count:
        return invalid_record("offsets and count differ")
    if first.control or (first.producer_id >= 0 and first.base_sequence < 0):
        return invalid_record("a control batch, or no sequence")
    if to_magic < CURRENT_MAGIC and (first.transactional or first.producer_id >= 0):
        return Refused(error=ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)
    return None


def _records_of(batches: Sequence[StoredBatch], bounds: ContentBounds) -> Iterator[Record | None]:
    """All records, with offsets and times as sent; for None see `StoredBatch.streamed`."""
    first = batches[0]
    if first.magic == CURRENT_MAGIC:
        yield from first.streamed(bounds)
        return
    if first.codec == Compression.NONE:
        for batch in batches:
            yield from batch.streamed(bounds)
        return
    is_stamped = first.timestamp_type is TimestampType.LOG_APPEND_TIME
    for entry in first.streamed_entries(bounds):
        if entry is None or not is_stamped:
            yield None if entry is None else entry.record
        else:
            yield replace(entry.record, timestamp_ms=first.max_timestamp_ms)


def _look(batches: Sequence[StoredBatch], arrival: Arrival) -> Steps[_Looked]:
    """Check all records in Kafka's order: parsing, checksums, single records.

    Raises:
        ContentTooLarge: The records exceed the bounds.
        WireFormatError: The records do not parse.
    """
    bounds = arrival.config.bounds
    first = batches[0]
    is_wrapper = first.magic < CURRENT_MAGIC and first.codec != Compression.NONE
    is_valid = True
    if is_wrapper:
        is_valid = yield from _sums_are_right(first, bounds.content)
    count, newest_ms, last_offset = 0, NO_ID - 1, -1
    is_consecutive, has_headers = True, False
    refused: Refused | None = None
    errors = _errors_of(first, arrival)
    for record in _records_of(batches, bounds.content):
        if record is None:
            yield _COST_OF_PAUSE
            continue
        if len(batches) > 1:
            errors = _errors_of(batches[count], arrival)
        index = count if len(batches) == 1 else 0
        errors.look_at(index, record.timestamp_ms, record.offset, has_key=record.key is not None)
        if refused is None and len(batches) > 1:
            # Each uncompressed message is a batch of its own, and the first refused one counts.
            refused = errors.refusal()
        newest_ms = max(newest_ms, record.timestamp_ms)
        has_headers = has_headers or bool(record.headers)
        is_consecutive = is_consecutive and record.offset == count
        last_offset = record.offset
        count += 1
        if count > bounds.max_records:
            raise ContentTooLarge(f"more than {bounds.max_records} messages in one set", 0)
        if count % _RECORDS_A_STEP == 0:
            yield _RECORDS_A_STEP * _COST_OF_RECORD
    if not is_valid:
        refused = Refused(error=ErrorCode.CORRUPT_MESSAGE, names_log_start=False)
    elif first.magic == 1 and is_wrapper and 0 != first.last_offset < last_offset:
        raise WireFormatError(f"message set: wrapper offset {first.last_offset}", 0)
    # Some librdkafka versions send wrappers at offset 0: inner offsets are taken as they are.
    is_based = not is_wrapper or first.last_offset in (0, last_offset)
    return _Looked(
        count=count,
        newest_ms=newest_ms,
        is_consecutive=not is_wrapper or (is_based and is_consecutive),
        has_headers=has_headers,
        refused=errors.refusal() if refused is None else refused,
    )


def _errors_of(batch: StoredBatch, arrival: Arrival) -> RecordErrors:
    claims_append = batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    return RecordErrors(arrival, claims_append=claims_append)


def _sums_are_right(wrapper: StoredBatch, bounds: ContentBounds) -> Steps[bool]:
    """Whether every entry inside a wrapper has a correct checksum."""
    is_valid = True
    for number, entry in enumerate(wrapper.streamed_entries(bounds)):
        is_valid = is_valid and (entry is None or entry.is_valid)
        if entry is None or number % _RECORDS_A_STEP == 0:
            yield _COST_OF_PAUSE
    return is_valid


def _in_place(batches: Sequence[StoredBatch], looked: _Looked, arrival: Arrival) -> Steps[Placing]:
    """Prepare entries without rebuilding them; only the broker's timestamps are set if needed."""
    parts = []
    for index, batch in enumerate(batches):
        newest_ms = looked.newest_ms if batch.codec else batch.max_timestamp_ms
        last = looked.count - 1 if batch.codec else index
        parts.append(_entry_at(batch, last, newest_ms, arrival))
        yield _COST_OF_RECORD
    return (yield from _laid_out(b"".join(parts), is_resized=False))


def _entry_at(batch: StoredBatch, offset: int, newest_ms: int, arrival: Arrival) -> bytes:
    """Set offset and time. Source: ByteBufferLegacyRecordBatch.setLastOffset, setMaxTimestamp."""
    data = bytearray(batch.raw())
    _OFFSET.pack_into(data, 0, offset)
    if batch.magic == 0:
        return bytes(data)
    stamps = arrival.config.stamps
    wanted_ms = arrival.now_ms if stamps else newest_ms
    claims_append = batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    if stamps or claims_append or wanted_ms != batch.max_timestamp_ms:
        attributes = data[_ATTRIBUTES_AT]
        data[_ATTRIBUTES_AT] = attributes | LOG_APPEND if stamps else attributes & ~LOG_APPEND
        _OFFSET.pack_into(data, _TIMESTAMP_AT, wanted_ms)
        _CRC.pack_into(data, _CRC_AT, zlib.crc32(data[_CHECKED_FROM:]))
    return bytes(data)


def _rebuilt(
    batches: Sequence[StoredBatch], looked: _Looked, target: Compression, arrival: Arrival
) -> Steps[Placing | Refused]:
    """Rebuild in the log's format. Source: buildRecordsAndAssignOffsets, appendWithOffset."""
    first, config = batches[0], arrival.config
    magic = config.message_format_magic
    if magic < CURRENT_MAGIC and (target is Compression.ZSTD or looked.has_headers):
        # Kafka's builder throws an exception that is no protocol error.
        return Refused(error=ErrorCode.UNKNOWN_SERVER_ERROR)
    stamps_each = config.stamps and magic < CURRENT_MAGIC and target is Compression.NONE
    batch = RecordBatch(
        base_offset=0,
        last_offset=looked.count - 1,
        records=(),
        base_timestamp_ms=NO_ID,
        max_timestamp_ms=arrival.now_ms if config.stamps else max(looked.newest_ms, NO_ID),
        magic=magic,
        compression=target,
        timestamp_type=(
            TimestampType.LOG_APPEND_TIME if config.stamps else TimestampType.CREATE_TIME
        ),
        producer_id=first.producer_id,
        producer_epoch=first.producer_epoch,
        base_sequence=first.base_sequence,
        transactional=first.transactional,
    )

    def records() -> Iterator[Record | None]:
        for record in _records_of(batches, config.bounds.content):
            stamped = stamps_each and record is not None
            yield replace(record, timestamp_ms=arrival.now_ms) if stamped and record else record

    data = (yield from encoded(batch, records())) or b""
    for stored in batches_in(data):
        if stored.size > config.max_message_bytes:
            return Refused(error=ErrorCode.MESSAGE_TOO_LARGE, names_log_start=False)
        yield 1
    if magic == 0 and target is not Compression.NONE:
        return lambda ending: _in_order(batch, records(), ending)
    return (yield from _laid_out(data, is_resized=True))


def _in_order(batch: RecordBatch, records: Iterator[Record | None], ending: Ending) -> Prepared:
    """Build a wrapper of magic 0 with offsets of the log inside."""
    placed = replace(batch, base_offset=ending.offset, last_offset=NO_ID)
    data = finished(encoded(placed, records)) or b""
    return Prepared(
        data=data, spans=(_span(StoredBatch(data, 0, len(data)), ending.offset),), is_resized=True
    )


def _laid_out(data: bytes, *, is_resized: bool) -> Steps[Placing]:
    """Compute the spans of batches with offsets from 0, ready to be shifted to the log's end."""
    spans = []
    base_offset = 0
    for stored in batches_in(data):
        spans.append(_span(stored, base_offset))
        base_offset = stored.last_offset + 1
        yield _COST_OF_SPAN
    return partial(_shifted, data, tuple(spans), is_resized=is_resized)


def _shifted(
    data: bytes, counted: tuple[BatchSpan, ...], ending: Ending, *, is_resized: bool
) -> Prepared:
    """Shift batches with offsets from 0 to the log's end.

    Source: ByteBufferLegacyRecordBatch.setLastOffset, DefaultRecordBatch.setLastOffset.
    """
    shifted = bytearray(data)
    spans = []
    start = 0
    for span in counted:
        base_offset = ending.offset + span.base_offset
        last_offset = ending.offset + span.last_offset
        epoch = NO_ID
        if span.magic == CURRENT_MAGIC:
            epoch = ending.leader_epoch
            _OFFSET.pack_into(shifted, start, base_offset)
            _EPOCH.pack_into(shifted, start + _CRC_AT, epoch)
        else:
            _OFFSET.pack_into(shifted, start, last_offset)
        start += span.size_bytes
        spans.append(
            replace(span, base_offset=base_offset, last_offset=last_offset, leader_epoch=epoch)
        )
    return Prepared(data=bytes(shifted), spans=tuple(spans), is_resized=is_resized)


def _span(batch: StoredBatch, base_offset: int) -> BatchSpan:
    """The span of one entry; `base_offset` saves decompressing it."""
    if batch.magic == CURRENT_MAGIC:
        return span_of(batch)
    return BatchSpan(
        base_offset=base_offset,
        last_offset=batch.last_offset,
        max_timestamp_ms=batch.max_timestamp_ms,
        leader_epoch=NO_ID,
        size_bytes=batch.size,
        magic=batch.magic,
    )


def _is_from(offset: int, record: Record) -> bool:
    return record.offset >= offset


def down_converted(data: bytes, max_magic: int, first_offset: int) -> Steps[bytes | None]:
    """Convert batches for a reader of an old format; None if one is compressed with zstd.

    Markers and headers are left out, and in batches without compression also the records before
    the requested offset.

    Raises:
        WireFormatError: A batch does not parse.

    Source: RecordsUtil.downConvert.
    """
    parts = []
    for stored in batches_in(data):
        if stored.control:
            continue
        if stored.codec == Compression.ZSTD:
            return None
        if stored.magic <= max_magic:
            parts.append(bytes(stored.raw()))
            continue
        begins_at = first_offset if stored.codec == Compression.NONE else 0
        records = chosen(stored.streamed(NO_BOUNDS), partial(_is_from, begins_at))
        batch = replace(stored.without_records(), magic=max_magic)
        parts.append((yield from encoded(batch, records, keeps_offsets=True)) or b"")
    return b"".join(parts)
