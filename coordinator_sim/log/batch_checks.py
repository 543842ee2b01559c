"""Checks of records before the append, in Kafka's order, and the assignment of offsets.

This module handles batches of magic 2 for logs of magic 2; `old_formats` handles the others.

Source: kafka trunk, storage/.../internals/log/LogValidator.java; core/.../log/UnifiedLog.scala
(analyzeAndValidateRecords); clients/.../requests/ProduceRequest.java (validateRecords).
"""

import itertools
import struct
from functools import partial
from typing import Final

import crc32c

from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.arrivals import (
    Arrival,
    Ending,
    Placing,
    RecordErrors,
    invalid_record,
    is_long,
    too_large,
)
from coordinator_sim.log.format.batch_stream import encoded, streamed_records
from coordinator_sim.log.format.compression import Compression, ContentTooLarge, decompressed_chunks
from coordinator_sim.log.format.record_batches import (
    CONTROL,
    CURRENT_MAGIC,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND,
    LOG_OVERHEAD,
    NO_ID,
    TRANSACTIONAL,
    RecordBatch,
)
from coordinator_sim.log.format.record_scan import RecordScan, Scanned, Watcher
from coordinator_sim.log.format.steps import Steps
from coordinator_sim.log.format.stored_batches import StoredBatch, next_batch
from coordinator_sim.log.log_config import LogConfig
from coordinator_sim.log.log_values import BatchSpan, Prepared, Refused
from coordinator_sim.log.old_formats import converted

_FRONT: Final = struct.Struct(">qii")
"""Base offset, length and leader epoch: the part that the checksum does not cover."""
_FRONT_SIZE: Final = 16
_CHECKED_FROM: Final = 21
_CODEC: Final = 0x07
_ATTRIBUTES: Final = struct.Struct(">h")
_TIMESTAMP: Final = struct.Struct(">q")
_CRC: Final = struct.Struct(">I")
_MAX_TIMESTAMP_AT: Final = 14
"""Position counted from the attributes."""
_ONE_BATCH_VERSION: Final = 3
_ZSTD_VERSION: Final = 7
_CORRUPT: Final = Refused(error=ErrorCode.CORRUPT_MESSAGE, names_log_start=False)
_LARGER: Final = Refused(error=ErrorCode.MESSAGE_TOO_LARGE, names_log_start=False)
_CHECKED_AT_ONCE: Final = 1 << 22
"""Largest batch, in bytes, whose checksum is computed at once: takes a millisecond."""
_CHECKED_A_UNIT: Final = 4096
"""Bytes whose checksum costs one unit, as much as checking a record."""
_BATCHES_A_STEP: Final = 500
_COST_OF_BATCH: Final = 3


def prepared(records: bytes, arrival: Arrival, produce_version: int) -> Steps[Placing | Refused]:
    """Check and prepare a client's records for the append, or refuse them.

    The usual case, one whole batch of magic 2 for a log of magic 2, has a fast path.

    Args:
        records: Records as sent; a truncated batch at the end is dropped.
        arrival: Circumstances of the arrival.
        produce_version: Version of the request: from 3 on it has exactly one batch of magic 2.
    """
    size = len(records)
    if size >= HEADER_SIZE and records[_FRONT_SIZE] == CURRENT_MAGIC:
        header = HEADER.unpack_from(records)
        if header[1] == size - LOG_OVERHEAD and arrival.config.message_format_magic == header[3]:
            return _one_batch(records, header, arrival, produce_version)
    return _several(records, arrival, produce_version)


def _several(records: bytes, arrival: Arrival, produce_version: int) -> Steps[Placing | Refused]:
    """Prepare all other cases: old formats, no batch, several batches or a truncated one."""
    try:
        batches = yield from _batches_of(records, arrival)
    except ContentTooLarge as error:
        return too_large(arrival.place, error)
    except WireFormatError:
        return _CORRUPT
    refused = _version_refusal(batches, produce_version)
    if refused is None:
        refused = yield from _analyzed(batches, arrival)
    if refused is not None:
        return refused
    if not batches:
        return lambda _ending: Prepared(data=b"", spans=())
    if batches[0].magic == arrival.config.message_format_magic == CURRENT_MAGIC:
        if len(batches) > 1:
            return invalid_record("more than one batch")
        data = bytes(batches[0].raw())
        return (yield from _one_batch(data, HEADER.unpack_from(data), arrival, produce_version))
    return (yield from converted(batches, arrival))


def _batches_of(records: bytes, arrival: Arrival) -> Steps[list[StoredBatch]]:
    """The whole batches in a client's bytes.

    Raises:
        ContentTooLarge: There are more batches than one batch may have records.
        WireFormatError: A size or a magic number is impossible.
    """
    found: list[StoredBatch] = []
    most = arrival.config.bounds.max_records
    position = 0
    while (batch := next_batch(records, position)) is not None:
        found.append(batch)
        position += batch.size
        if len(found) > most:
            raise ContentTooLarge(f"more than {most} messages in one set", position)
        if len(found) % _BATCHES_A_STEP == 0:
            yield _BATCHES_A_STEP * _COST_OF_BATCH
    return found


def _version_refusal(batches: list[StoredBatch], produce_version: int) -> Refused | None:
    """The refusal by request version, without message. Source: ProduceRequest.validateRecords."""
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


def _analyzed(batches: list[StoredBatch], arrival: Arrival) -> Steps[Refused | None]:
    """The refusal of batches by size, checksum and header, without reading their records.

    Source: UnifiedLog.analyzeAndValidateRecords.
    """
    limit = arrival.config.max_message_bytes
    for batch in batches:
        if batch.magic == CURRENT_MAGIC and batch.base_offset != 0:
            return invalid_record(f"the base offset is {batch.base_offset} and must be 0")
        if batch.size > limit:
            return _LARGER
        if not batch.is_valid:
            return _CORRUPT
        if batch.codec > Compression.ZSTD:
            return Refused(error=ErrorCode.UNKNOWN_SERVER_ERROR)
        yield _COST_OF_BATCH + batch.size // _CHECKED_A_UNIT
    return None


_Header = tuple[int, int, int, int, int, int, int, int, int, int, int, int, int]


def _one_batch(
    records: bytes, header: _Header, arrival: Arrival, produce_version: int
) -> Steps[Placing | Refused]:
    """Prepare a single batch of magic 2; its bytes are kept unchanged where possible."""
    refused = _front_refusal(header, produce_version)
    if refused is None and len(records) > arrival.config.max_message_bytes:
        refused = _LARGER
    if refused is None and len(records) > _CHECKED_AT_ONCE:
        refused = yield from _sum_refusal(records, header)
    elif refused is None and crc32c.crc32c(records[_CHECKED_FROM:]) != header[4]:
        refused = _CORRUPT
    if refused is None:
        refused = _header_refusal(header, arrival)
    if refused is not None:
        return refused
    try:
        scanned = yield from _scan(records, header, arrival).steps()
        refused = yield from _record_refusal(records, header, scanned, arrival)
        if refused is not None:
            return refused
        return (yield from _finished(records, header, scanned, arrival))
    except ContentTooLarge as error:
        return too_large(arrival.place, error)
    except WireFormatError as error:
        return invalid_record(str(error.args[0]))


def _scan(
    records: bytes, header: _Header, arrival: Arrival, watcher: Watcher | None = None
) -> RecordScan:
    """A scan over the records of a batch."""
    codec, count = header[5] & _CODEC, header[12]
    if not codec:
        return RecordScan(count, data=records, position=HEADER_SIZE, watcher=watcher)
    chunks = decompressed_chunks(
        Compression(codec), records[HEADER_SIZE:], bounds=arrival.config.bounds.content
    )
    return RecordScan(count, chunks=chunks, watcher=watcher)


def _sum_refusal(records: bytes, header: _Header) -> Steps[Refused | None]:
    """Verify the checksum of a large batch, piece by piece."""
    view = memoryview(records)
    checksum = 0
    for start in range(_CHECKED_FROM, len(view), _CHECKED_AT_ONCE):
        piece = view[start : start + _CHECKED_AT_ONCE]
        checksum = crc32c.crc32c(piece, checksum)
        yield len(piece) // _CHECKED_A_UNIT
    return None if checksum == header[4] else _CORRUPT


def _front_refusal(header: _Header, produce_version: int) -> Refused | None:
    """Check codec and base offset. Source: ProduceRequest.validateRecords; UnifiedLog."""
    is_zstd = header[5] & _CODEC == Compression.ZSTD
    if is_zstd and _ONE_BATCH_VERSION <= produce_version < _ZSTD_VERSION:
        return Refused(error=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, names_log_start=False)
    if header[0] != 0:
        return invalid_record(f"the base offset is {header[0]} and must be 0")
    return None


def _header_refusal(header: _Header, arrival: Arrival) -> Refused | None:
    """Check it. Source: UnifiedLog.analyzeAndValidateRecords, LogValidator.validateBatch."""
    attributes, last_delta, count = header[5], header[6], header[12]
    if attributes & _CODEC > Compression.ZSTD:
        return Refused(error=ErrorCode.UNKNOWN_SERVER_ERROR)
    if count <= 0 or last_delta != count - 1:
        return invalid_record(f"offsets up to {last_delta} and {count} records")
    if attributes & CONTROL:
        return invalid_record("clients may not write control records")
    if header[9] >= 0 and header[11] < 0:
        return invalid_record(f"sequence {header[11]} of producer {header[9]}")
    most = arrival.config.bounds.max_records
    if count > most:
        error = ContentTooLarge(f"a batch of {count} records, more than {most}", 0)
        return too_large(arrival.place, error)
    return None


def _record_refusal(
    records: bytes, header: _Header, scanned: Scanned, arrival: Arrival
) -> Steps[Refused | None]:
    """The refusal of single records: a second scan finds the bad ones.

    Source: LogValidator.validateRecord.
    """
    config = arrival.config
    base_ms = header[7]
    lowest = arrival.now_ms - config.message_timestamp_before_max_ms
    highest = arrival.now_ms + config.message_timestamp_after_max_ms
    oldest_ms, newest_ms = base_ms + scanned.min_time_delta, base_ms + scanned.max_time_delta
    is_beyond = not (is_long(oldest_ms) and is_long(newest_ms))
    is_late = is_beyond or (not config.stamps and (oldest_ms < lowest or newest_ms > highest))
    lacks_key = bool(scanned.keyless_count) and config.is_compacted
    claims_append = bool(header[5] & LOG_APPEND)
    if not (is_late or lacks_key or claims_append):
        return None
    errors = RecordErrors(arrival, claims_append=claims_append)
    indexes = itertools.count()

    def look(offset_delta: int, time_delta: int, /, *, has_key: bool) -> bool:
        time_ms = base_ms + time_delta
        if claims_append and is_long(time_ms):
            time_ms = header[8]
        errors.look_at(next(indexes), time_ms, offset_delta, has_key=has_key)
        return False

    yield from _scan(records, header, arrival, look).steps()
    return errors.refusal()


def _finished(
    records: bytes, header: _Header, scanned: Scanned, arrival: Arrival
) -> Steps[Placing | Refused]:
    """Prepare the batch except for its offsets; only what must change is rewritten."""
    attributes = header[5]
    config = arrival.config
    source = Compression(attributes & _CODEC)
    target = config.codec_for(source)
    is_resized = source is not target or (source > 0 and not scanned.is_consecutive)
    claims_append = bool(attributes & LOG_APPEND)
    newest_ms = header[8] if claims_append else max(NO_ID, header[7] + scanned.max_time_delta)
    stamp_ms = arrival.now_ms if config.stamps else newest_ms
    if is_resized:
        rebuilt = yield from _recompressed(records, header, target, config)
        if rebuilt is None:
            return _LARGER
        records = rebuilt
    if is_resized or config.stamps or claims_append or stamp_ms != header[8]:
        records = stamped(records, stamp_ms, is_appended=config.stamps)
    return partial(_placed, records, header, stamp_ms, is_resized=is_resized)


def _placed(
    records: bytes, header: _Header, stamp_ms: int, ending: Ending, *, is_resized: bool
) -> Prepared:
    """Put the batch's offsets and leader epoch in place."""
    offset, epoch = ending.offset, ending.leader_epoch
    data = _FRONT.pack(offset, len(records) - LOG_OVERHEAD, epoch) + records[_FRONT_SIZE:]
    span = BatchSpan(
        base_offset=offset,
        last_offset=offset + header[6],
        size_bytes=len(data),
        max_timestamp_ms=stamp_ms,
        leader_epoch=epoch,
        producer_id=header[9],
        producer_epoch=header[10],
        base_sequence=header[11],
        transactional=bool(header[5] & TRANSACTIONAL),
    )
    return Prepared(data=data, spans=(span,), is_resized=is_resized)


def _recompressed(
    records: bytes, header: _Header, target: Compression, config: LogConfig
) -> Steps[bytes | None]:
    """Rebuild the batch with another codec, with offsets from 0 without gaps.

    Returns:
        None if it becomes larger than the topic allows; the rebuilding stops then.

    Source: LogValidator.buildRecordsAndAssignOffsets.
    """
    chunks = decompressed_chunks(
        Compression(header[5] & _CODEC), records[HEADER_SIZE:], bounds=config.bounds.content
    )
    append_ms = header[8] if header[5] & LOG_APPEND else None
    found = streamed_records(chunks, header[12], 0, header[7], append_ms)
    fields = RecordBatch(
        base_offset=0,
        last_offset=header[12] - 1,
        records=(),
        base_timestamp_ms=header[7],
        max_timestamp_ms=header[8],
        compression=target,
        producer_id=header[9],
        producer_epoch=header[10],
        base_sequence=header[11],
        transactional=bool(header[5] & TRANSACTIONAL),
    )
    return (yield from encoded(fields, found, max_bytes=config.max_message_bytes))


def stamped(records: bytes, max_timestamp_ms: int, *, is_appended: bool) -> bytes:
    """A batch of magic 2 with another largest timestamp.

    Args:
        records: The batch.
        max_timestamp_ms: Largest timestamp of the records, or the time of the append.
        is_appended: Whether all records have that time (LogAppendTime).

    Source: DefaultRecordBatch.setMaxTimestamp.
    """
    (attributes,) = _ATTRIBUTES.unpack_from(records, _CHECKED_FROM)
    attributes = attributes | LOG_APPEND if is_appended else attributes & ~LOG_APPEND
    checked = bytearray(records[_CHECKED_FROM:])
    _ATTRIBUTES.pack_into(checked, 0, attributes)
    _TIMESTAMP.pack_into(checked, _MAX_TIMESTAMP_AT, max_timestamp_ms)
    crc = _CRC.pack(crc32c.crc32c(checked))
    return records[: _CHECKED_FROM - _CRC.size] + crc + bytes(checked)
