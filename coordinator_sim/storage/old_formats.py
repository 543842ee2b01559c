"""Message sets of magic 0 and 1 on their way into a log, and any log on its way to old readers.

A log of either format takes both: what does not fit is built anew, as is a message set whose
inner offsets are not 0, 1, 2, ..., which some old clients send.

Source: kafka 3.9, storage/.../internals/log/LogValidator.java; clients/.../common/record:
AbstractLegacyRecordBatch (DeepRecordsIterator), MemoryRecordsBuilder, RecordsUtil.downConvert.
"""

import struct
import zlib
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.errors import WireFormatError
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.storage.arrivals import Arrival, invalid_record, record_refusal
from coordinator_sim.storage.log_values import BatchSpan, Prepared, Refused
from coordinator_sim.storage.spans import batches_in, span_of
from coordinator_sim.wire.compression import Compression
from coordinator_sim.wire.record_batches import (
    CURRENT_MAGIC,
    LOG_APPEND,
    NO_ID,
    RecordBatch,
    TimestampType,
    encode_record_batch,
)
from coordinator_sim.wire.record_bytes import Record
from coordinator_sim.wire.stored_batches import StoredBatch

_OFFSET: Final = struct.Struct(">q")
_CRC: Final = struct.Struct(">I")
_CRC_AT: Final = 12
_CHECKED_FROM: Final = 16
_ATTRIBUTES_AT: Final = 17
_TIMESTAMP_AT: Final = 18


class _Arrived(Struct, frozen=True, kw_only=True):
    """The records of what came, with what decides whether its bytes may stay.

    Args:
        records: Offsets and times as they came.
        is_consecutive: Whether the offsets inside a wrapper are 0, 1, 2, ...
    """

    records: list[Record]
    is_consecutive: bool


def converted(batches: Sequence[StoredBatch], arrival: Arrival) -> Prepared | Refused:
    """Batches with a log or a producer of an old format, as they go into the log.

    Args:
        batches: At least one; whole, their checksums right.
        arrival: Where and when.

    Source: LogValidator.validateMessagesAndAssignOffsets.
    """
    source = Compression(max(batch.codec for batch in batches))
    target = arrival.config.codec_for(source)
    to_magic = arrival.config.message_format_magic
    refused = _batch_refusal(batches, source, to_magic)
    if refused is not None:
        return refused
    try:
        arrived = _arrived(batches)
    except WireFormatError as error:
        return invalid_record(str(error.args[0]))
    if arrived is None:
        return Refused(error=ErrorCode.CORRUPT_MESSAGE, names_log_start=False)
    refused = _record_refusal(batches, arrived.records, arrival)
    if refused is not None:
        return refused
    stays = source is target and batches[0].magic == to_magic
    if stays and source is not Compression.NONE:
        stays = to_magic > 0 and arrived.is_consecutive
    if stays:
        return _in_place(batches, len(arrived.records), arrived, arrival)
    return _rebuilt(batches[0], arrived.records, target, arrival)


def _batch_refusal(
    batches: Sequence[StoredBatch], source: Compression, to_magic: int
) -> Refused | None:
    """Source: getFirstBatchAndMaybeValidateNoMoreBatches, validateBatch."""
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


def _arrived(batches: Sequence[StoredBatch]) -> _Arrived | None:
    """All records; None where one inside a wrapper has a wrong checksum.

    Raises:
        WireFormatError: They do not parse.
    """
    first = batches[0]
    if first.magic == CURRENT_MAGIC:
        records = first.records()
        return _Arrived(records=records, is_consecutive=True)
    if first.codec == Compression.NONE:
        return _Arrived(records=[batch.records()[0] for batch in batches], is_consecutive=True)
    entries = first.legacy_entries()
    if not all(entry.is_valid for entry in entries):
        return None
    offsets = [entry.record.offset for entry in entries]
    if first.magic == 1 and 0 != first.last_offset < offsets[-1]:
        raise WireFormatError(f"message set: wrapper offset {first.last_offset}", 0)
    # A wrapper at offset 0 is what some librdkafka send: inner offsets count as they are.
    base = first.last_offset - offsets[-1] if first.last_offset else 0
    records = [entry.record for entry in entries]
    if first.timestamp_type is TimestampType.LOG_APPEND_TIME:
        records = [replace(one, timestamp_ms=first.max_timestamp_ms) for one in records]
    return _Arrived(
        records=records,
        is_consecutive=base == 0 and offsets == list(range(len(offsets))),
    )


def _record_refusal(
    batches: Sequence[StoredBatch], records: Sequence[Record], arrival: Arrival
) -> Refused | None:
    """Why records are refused; each plain message is a batch alone, and the first one counts."""
    if len(batches) == 1:
        return _refusal_within(batches[0], records, arrival)
    found = (
        _refusal_within(batch, (record,), arrival)
        for batch, record in zip(batches, records, strict=True)
    )
    return next((refused for refused in found if refused is not None), None)


def _refusal_within(
    batch: StoredBatch, records: Sequence[Record], arrival: Arrival
) -> Refused | None:
    keyless = {
        index
        for index, record in enumerate(records)
        if record.key is None and arrival.config.is_compacted
    }
    return record_refusal(
        [(record.timestamp_ms, record.offset) for record in records],
        keyless,
        arrival,
        claims_append=batch.timestamp_type is TimestampType.LOG_APPEND_TIME,
    )


def _in_place(
    batches: Sequence[StoredBatch], count: int, arrived: _Arrived, arrival: Arrival
) -> Prepared:
    """Each entry with its offset, the broker's time where that is wished; the rest stays."""
    parts = []
    spans = []
    offset = arrival.offset
    per_batch = count // len(batches)
    for batch, record in zip(batches, arrived.records, strict=False):
        newest_ms = (
            max(one.timestamp_ms for one in arrived.records) if batch.codec else record.timestamp_ms
        )
        last_offset = offset + per_batch - 1
        data = _entry_at(batch, last_offset, newest_ms, arrival)
        parts.append(data)
        spans.append(_span(data, offset))
        offset = last_offset + 1
    return Prepared(data=b"".join(parts), spans=tuple(spans))


def _entry_at(batch: StoredBatch, offset: int, newest_ms: int, arrival: Arrival) -> bytes:
    """Source: ByteBufferLegacyRecordBatch.setLastOffset and setMaxTimestamp."""
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
    first: StoredBatch, records: Sequence[Record], target: Compression, arrival: Arrival
) -> Prepared | Refused:
    """The records in the log's format. Source: buildRecordsAndAssignOffsets, appendWithOffset."""
    magic = arrival.config.message_format_magic
    stamps = arrival.config.stamps
    if magic < CURRENT_MAGIC and (
        target is Compression.ZSTD or any(record.headers for record in records)
    ):
        # Kafka's builder throws what is no protocol error.
        return Refused(error=ErrorCode.UNKNOWN_SERVER_ERROR)
    stamps_each = stamps and magic < CURRENT_MAGIC and target is Compression.NONE
    placed = tuple(
        Record(
            offset=offset,
            timestamp_ms=arrival.now_ms if stamps_each else record.timestamp_ms,
            key=record.key,
            value=record.value,
            headers=record.headers,
        )
        for offset, record in enumerate(records, start=arrival.offset)
    )
    newest_ms = max(record.timestamp_ms for record in placed)
    batch = RecordBatch(
        base_offset=placed[0].offset,
        last_offset=placed[-1].offset,
        records=placed,
        base_timestamp_ms=placed[0].timestamp_ms,
        max_timestamp_ms=arrival.now_ms if stamps else max(newest_ms, NO_ID),
        magic=magic,
        compression=target,
        timestamp_type=TimestampType.LOG_APPEND_TIME if stamps else TimestampType.CREATE_TIME,
        leader_epoch=arrival.leader_epoch,
        producer_id=first.producer_id,
        producer_epoch=first.producer_epoch,
        base_sequence=first.base_sequence,
        transactional=first.transactional,
    )
    data = encode_record_batch(batch)
    spans = []
    offset = arrival.offset
    for stored in batches_in(data):
        spans.append(_span(bytes(stored.raw()), offset))
        offset = stored.last_offset + 1
    if any(span.size_bytes > arrival.config.max_message_bytes for span in spans):
        return Refused(error=ErrorCode.MESSAGE_TOO_LARGE, names_log_start=False)
    return Prepared(data=data, spans=tuple(spans), is_resized=True)


def _span(data: bytes, base_offset: int) -> BatchSpan:
    """Of one entry, without decompressing it for its first offset."""
    batch = StoredBatch(data, 0, len(data))
    if batch.magic == CURRENT_MAGIC:
        return span_of(batch)
    return BatchSpan(
        base_offset=base_offset,
        last_offset=batch.last_offset,
        max_timestamp_ms=batch.max_timestamp_ms,
        leader_epoch=NO_ID,
        size_bytes=len(data),
        magic=batch.magic,
    )


def down_converted(data: bytes, max_magic: int, first_offset: int) -> bytes | None:
    """Batches for a reader that knows no newer format; None where one is compressed with zstd.

    Markers are left out, headers too; of a batch without compression so are the records before
    the offset that was asked for.

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
        batch = stored.decoded()
        records = tuple(
            record
            for record in batch.records
            if batch.compression is not Compression.NONE or record.offset >= first_offset
        )
        if records:
            parts.append(encode_record_batch(replace(batch, records=records, magic=max_magic)))
    return b"".join(parts)
