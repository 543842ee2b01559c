"""What a log looks at before it takes records: checks in Kafka's order, then offsets in place.

Batches of magic 2 into a log of magic 2 are here; other formats are in `old_formats`.

Source: kafka trunk, storage/.../internals/log/LogValidator.java; core/.../log/UnifiedLog.scala
(analyzeAndValidateRecords); clients/.../requests/ProduceRequest.java (validateRecords).
"""

import struct
from typing import Final

import crc32c

from coordinator_sim.errors import WireFormatError
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.storage.arrivals import Arrival, invalid_record, record_refusal
from coordinator_sim.storage.log_values import BatchSpan, Prepared, Refused
from coordinator_sim.storage.old_formats import converted
from coordinator_sim.storage.record_scan import Scanned, scan_records
from coordinator_sim.wire.compression import Compression, decompress
from coordinator_sim.wire.record_batches import (
    CONTROL,
    CURRENT_MAGIC,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND,
    LOG_OVERHEAD,
    NO_ID,
    TRANSACTIONAL,
    RecordBatch,
    encode_record_batch,
)
from coordinator_sim.wire.record_bytes import Record, RecordReader
from coordinator_sim.wire.stored_batches import StoredBatch, next_batch

_FRONT: Final = struct.Struct(">qii")
"""Base offset, length and leader epoch: the part that no checksum covers."""
_FRONT_SIZE: Final = 16
_CHECKED_FROM: Final = 21
_CODEC: Final = 0x07
_ATTRIBUTES: Final = struct.Struct(">h")
_TIMESTAMP: Final = struct.Struct(">q")
_CRC: Final = struct.Struct(">I")
_MAX_TIMESTAMP_AT: Final = 14
"""Counted from the attributes."""
_ONE_BATCH_VERSION: Final = 3
_ZSTD_VERSION: Final = 7
_CORRUPT: Final = Refused(error=ErrorCode.CORRUPT_MESSAGE, names_log_start=False)


def prepared(records: bytes, arrival: Arrival, produce_version: int) -> Prepared | Refused:
    """Records of a client as they go into the log, or why they may not.

    The usual case, one whole batch of magic 2 for a log of magic 2, is told apart at once.

    Args:
        records: As they came; a cut-off batch at the end is dropped.
        arrival: Where and when.
        produce_version: Of the request: from 3 on it brings exactly one batch of magic 2.
    """
    size = len(records)
    if size >= HEADER_SIZE and records[_FRONT_SIZE] == CURRENT_MAGIC:
        header = HEADER.unpack_from(records)
        if header[1] == size - LOG_OVERHEAD and arrival.config.message_format_magic == header[3]:
            return _one_batch(records, header, arrival, produce_version)
    return _several(records, arrival, produce_version)


def _several(records: bytes, arrival: Arrival, produce_version: int) -> Prepared | Refused:
    """Anything else: an old format on either side, no batch, more than one, a cut-off one."""
    batches = batches_of(records)
    if batches is None:
        return Refused(error=ErrorCode.CORRUPT_MESSAGE, names_log_start=False)
    refused = _version_refusal(batches, produce_version) or analyzed(batches, arrival)
    if refused is not None:
        return refused
    if not batches:
        return Prepared(data=b"", spans=())
    if batches[0].magic == arrival.config.message_format_magic == CURRENT_MAGIC:
        if len(batches) > 1:
            return invalid_record("more than one batch")
        data = bytes(batches[0].raw())
        return _one_batch(data, HEADER.unpack_from(data), arrival, produce_version)
    return converted(batches, arrival)


def batches_of(records: bytes) -> list[StoredBatch] | None:
    """The whole batches; None where a size or a magic cannot be."""
    found: list[StoredBatch] = []
    position = 0
    try:
        while (batch := next_batch(records, position)) is not None:
            found.append(batch)
            position += batch.size
    except WireFormatError:
        return None
    return found


def _version_refusal(batches: list[StoredBatch], produce_version: int) -> Refused | None:
    """Source: ProduceRequest.validateRecords, whose answer says nothing but the error."""
    if produce_version < _ONE_BATCH_VERSION:
        return None
    if not batches:
        return Refused(error=ErrorCode.INVALID_RECORD, names_log_start=False)
    if batches[0].magic != CURRENT_MAGIC:
        return Refused(error=ErrorCode.INVALID_RECORD, names_log_start=False)
    if produce_version < _ZSTD_VERSION and batches[0].codec == Compression.ZSTD:
        return Refused(error=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, names_log_start=False)
    if len(batches) > 1:
        return Refused(error=ErrorCode.INVALID_RECORD, names_log_start=False)
    return None


def analyzed(batches: list[StoredBatch], arrival: Arrival) -> Refused | None:
    """Why batches are refused for what they are from outside.

    Source: UnifiedLog.analyzeAndValidateRecords.
    """
    limit = arrival.config.max_message_bytes
    for batch in batches:
        if batch.magic == CURRENT_MAGIC and batch.base_offset != 0:
            return invalid_record(f"the base offset is {batch.base_offset} and must be 0")
        if batch.size > limit:
            return Refused(error=ErrorCode.MESSAGE_TOO_LARGE, names_log_start=False)
        if not batch.is_valid:
            return _CORRUPT
        if batch.codec > Compression.ZSTD:
            return Refused(error=ErrorCode.UNKNOWN_SERVER_ERROR)
    return None


_Header = tuple[int, int, int, int, int, int, int, int, int, int, int, int, int]


def _one_batch(
    records: bytes, header: _Header, arrival: Arrival, produce_version: int
) -> Prepared | Refused:
    """A batch of magic 2 that is all that came; its own bytes are kept wherever possible."""
    refused = _front_refusal(header, produce_version) or _outer_refusal(records, header, arrival)
    if refused is not None:
        return refused
    codec, count = header[5] & _CODEC, header[12]
    try:
        if codec:
            body = decompress(Compression(codec), records[HEADER_SIZE:])
            scanned = scan_records(body, 0, count)
        else:
            scanned = scan_records(records, HEADER_SIZE, count)
    except WireFormatError as error:
        return invalid_record(str(error.args[0]))
    refused = _record_refusal(scanned, header, arrival)
    if refused is not None:
        return refused
    return _placed(records, header, scanned, arrival)


def _front_refusal(header: _Header, produce_version: int) -> Refused | None:
    """Source: ProduceRequest.validateRecords; UnifiedLog.analyzeAndValidateRecords."""
    is_zstd = header[5] & _CODEC == Compression.ZSTD
    if is_zstd and _ONE_BATCH_VERSION <= produce_version < _ZSTD_VERSION:
        return Refused(error=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, names_log_start=False)
    if header[0] != 0:
        return invalid_record(f"the base offset is {header[0]} and must be 0")
    return None


def _outer_refusal(records: bytes, header: _Header, arrival: Arrival) -> Refused | None:
    """Source: UnifiedLog.analyzeAndValidateRecords, LogValidator.validateBatch."""
    attributes, last_delta, count = header[5], header[6], header[12]
    if len(records) > arrival.config.max_message_bytes:
        return Refused(error=ErrorCode.MESSAGE_TOO_LARGE, names_log_start=False)
    if crc32c.crc32c(records[_CHECKED_FROM:]) != header[4]:
        return _CORRUPT
    if attributes & _CODEC > Compression.ZSTD:
        return Refused(error=ErrorCode.UNKNOWN_SERVER_ERROR)
    if count <= 0 or last_delta != count - 1:
        return invalid_record(f"offsets up to {last_delta} and {count} records")
    if attributes & CONTROL:
        return invalid_record("clients may not write control records")
    if header[9] >= 0 and header[11] < 0:
        return invalid_record(f"sequence {header[11]} of producer {header[9]}")
    return None


def _record_refusal(scanned: Scanned, header: _Header, arrival: Arrival) -> Refused | None:
    """Why single records are refused. Source: LogValidator.validateRecord."""
    config = arrival.config
    base_ms = header[7]
    lowest = arrival.now_ms - config.message_timestamp_before_max_ms
    highest = arrival.now_ms + config.message_timestamp_after_max_ms
    is_late = not config.stamps and (
        base_ms + scanned.min_time_delta < lowest or base_ms + scanned.max_time_delta > highest
    )
    lacks_key = bool(scanned.keyless) and config.is_compacted
    claims_append = bool(header[5] & LOG_APPEND)
    if not (is_late or lacks_key or claims_append):
        return None
    times = [header[8] if claims_append else base_ms + delta for delta in scanned.time_deltas]
    return record_refusal(
        [(time_ms, index) for index, time_ms in enumerate(times)],
        set(scanned.keyless) if config.is_compacted else set(),
        arrival,
        claims_append=claims_append,
    )


def _placed(
    records: bytes, header: _Header, scanned: Scanned, arrival: Arrival
) -> Prepared | Refused:
    """The batch with its place in the log; only what must be is written anew."""
    _, length, _, _, _, attributes, last_delta, base_ms, max_ms = header[:9]
    config = arrival.config
    source = Compression(attributes & _CODEC)
    target = config.codec_for(source)
    is_resized = source is not target or (source > 0 and not scanned.is_consecutive)
    claims_append = bool(attributes & LOG_APPEND)
    newest_ms = max_ms if claims_append else max(NO_ID, base_ms + scanned.max_time_delta)
    stamp_ms = arrival.now_ms if config.stamps else newest_ms
    if is_resized:
        records = _recompressed(records, header, target)
        length = len(records) - LOG_OVERHEAD
    if is_resized or config.stamps or claims_append or stamp_ms != max_ms:
        records = stamped(records, stamp_ms, is_appended=config.stamps)
    data = _FRONT.pack(arrival.offset, length, arrival.leader_epoch) + records[_FRONT_SIZE:]
    span = BatchSpan(
        base_offset=arrival.offset,
        last_offset=arrival.offset + last_delta,
        size_bytes=len(data),
        max_timestamp_ms=stamp_ms,
        leader_epoch=arrival.leader_epoch,
        producer_id=header[9],
        producer_epoch=header[10],
        base_sequence=header[11],
        transactional=bool(attributes & TRANSACTIONAL),
    )
    if is_resized and len(data) > config.max_message_bytes:
        return Refused(error=ErrorCode.MESSAGE_TOO_LARGE, names_log_start=False)
    return Prepared(data=data, spans=(span,), is_resized=is_resized)


def _recompressed(records: bytes, header: _Header, target: Compression) -> bytes:
    """The batch built anew with another codec, offsets counted from 0 without gaps.

    Source: LogValidator.buildRecordsAndAssignOffsets.
    """
    body = decompress(Compression(header[5] & _CODEC), records[HEADER_SIZE:])
    append_ms = header[8] if header[5] & LOG_APPEND else None
    found = RecordReader(body, 0, header[7], append_ms).read(header[12])
    return encode_record_batch(
        RecordBatch(
            base_offset=0,
            last_offset=len(found) - 1,
            records=tuple(
                Record(
                    offset=offset,
                    timestamp_ms=record.timestamp_ms,
                    key=record.key,
                    value=record.value,
                    headers=record.headers,
                )
                for offset, record in enumerate(found)
            ),
            base_timestamp_ms=found[0].timestamp_ms,
            max_timestamp_ms=header[8],
            compression=target,
            producer_id=header[9],
            producer_epoch=header[10],
            base_sequence=header[11],
            transactional=bool(header[5] & TRANSACTIONAL),
        )
    )


def stamped(records: bytes, max_timestamp_ms: int, *, is_appended: bool) -> bytes:
    """A batch of magic 2 with another largest timestamp.

    Args:
        records: The batch.
        max_timestamp_ms: Of its records, or the time of the append.
        is_appended: Whether the records have that time: LogAppendTime.

    Source: DefaultRecordBatch.setMaxTimestamp.
    """
    (attributes,) = _ATTRIBUTES.unpack_from(records, _CHECKED_FROM)
    attributes = attributes | LOG_APPEND if is_appended else attributes & ~LOG_APPEND
    checked = bytearray(records[_CHECKED_FROM:])
    _ATTRIBUTES.pack_into(checked, 0, attributes)
    _TIMESTAMP.pack_into(checked, _MAX_TIMESTAMP_AT, max_timestamp_ms)
    crc = _CRC.pack(crc32c.crc32c(checked))
    return records[: _CHECKED_FROM - _CRC.size] + crc + bytes(checked)
