"""Record batches of magic 0, 1 and 2 as bytes: what a segment file and a Fetch response hold.

A batch of magic 2 holds records; one of magic 0 and 1 is made of entries that are records.

`offsets_records` and `log_batches` interpret the records.

Source: kafka trunk, clients/.../common/record: DefaultRecordBatch, DefaultRecord,
AbstractLegacyRecordBatch, LegacyRecord.
"""

import struct
import zlib
from collections.abc import Iterator
from enum import IntEnum, unique
from functools import lru_cache
from typing import Final

import crc32c
from msgspec import Struct

from coordinator_sim.errors import WireFormatError
from coordinator_sim.log.format.compression import Compression, compress

HEADER_SIZE: Final = 61
"""Bytes of a magic 2 batch before its records."""
LOG_OVERHEAD: Final = 12
"""Offset and size in front of every entry of a log, in all magics."""

TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40
LOG_APPEND: Final = 0x08

CURRENT_MAGIC: Final = 2
NO_ID: Final = -1
"""Stands for no producer id, epoch, sequence, leader epoch or timestamp."""

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
"""Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, base and maximal
timestamp, producer id, producer epoch, base sequence, record count."""
_CHECKED_FROM: Final = 21
_FRONT: Final = struct.Struct(">qiibI")
_CHECKED_HEADER: Final = struct.Struct(">hiqqqhii")

Header = tuple[str, bytes | None]


class Record(Struct, frozen=True, kw_only=True, gc=False):
    """One record of a log: key, value and headers, with offset and timestamp.

    Args:
        offset: Offset in the partition.
        timestamp_ms: Timestamp; -1 if the format has none.
        key: The key; None for no key.
        value: The value; None for a tombstone.
        headers: Headers in order; keys may repeat. Magic 2 only.
    """

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


@unique
class TimestampType(IntEnum):
    """Origin of a batch's timestamps: bit 3 of its attributes, from magic 1 on."""

    NONE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class RecordBatch(Struct, frozen=True, kw_only=True):
    """Records with the fields of their batch.

    Args:
        base_offset: Offset of the first record that the batch ever had; cleaning keeps it.
        last_offset: Offset of the last record that the batch ever had.
        records: Remaining records, in order of offsets.
        magic: Format: 0 up to 0.9, 1 for 0.10, 2 from 0.11 on.
        leader_epoch: Epoch of the leader that appended the batch; -1 unknown.
        base_timestamp_ms: Timestamp that record timestamps are stored relative to.
        max_timestamp_ms: The largest timestamp, or the append time.
        producer_id: Id of the producer; -1 if it is not idempotent.
        base_sequence: Sequence of the first record; -1 none.
        has_delete_horizon: Whether `base_timestamp_ms` is the instant after which the log cleaner
            may drop the batch's tombstones or marker.
    """

    base_offset: int
    last_offset: int
    records: tuple[Record, ...]
    base_timestamp_ms: int
    max_timestamp_ms: int
    magic: int = CURRENT_MAGIC
    compression: Compression = Compression.NONE
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    leader_epoch: int = NO_ID
    producer_id: int = NO_ID
    producer_epoch: int = NO_ID
    base_sequence: int = NO_ID
    transactional: bool = False
    control: bool = False
    has_delete_horizon: bool = False

    @property
    def next_offset(self) -> int:
        """The offset after the batch's last one."""
        return self.last_offset + 1

    @property
    def delete_horizon_ms(self) -> int | None:
        """When tombstones and marker may be removed; None before the first cleaning."""
        return self.base_timestamp_ms if self.has_delete_horizon else None


def batch_of(records: tuple[Record, ...], **settings: object) -> RecordBatch:
    """Make a batch of records, with offsets and timestamps taken from them.

    Args:
        records: At least one record.
        settings: Other fields of `RecordBatch`.
    """
    fields: dict[str, object] = {
        "base_offset": records[0].offset,
        "last_offset": records[-1].offset,
        "base_timestamp_ms": records[0].timestamp_ms,
        "max_timestamp_ms": max(record.timestamp_ms for record in records),
        "records": records,
    }
    return RecordBatch(**{**fields, **settings})  # type: ignore[arg-type] # checked by callers


def encode_record_batch(batch: RecordBatch) -> bytes:
    """A batch as a log holds it; legacy records without compression are entries of their own.

    Raises:
        ValueError: A legacy batch is compressed with zstd, which no legacy reader knows.
    """
    if batch.magic < CURRENT_MAGIC:
        return b"".join(_legacy_entries(batch))
    records = b"".join(
        record_bytes(record, batch.base_offset, batch.base_timestamp_ms) for record in batch.records
    )
    # An emptied batch has no compressed stream. Source: writeEmptyHeader.
    body = compress(batch.compression, records) if batch.compression and records else records
    return framed(batch, body, len(batch.records), batch.base_timestamp_ms)


def framed(batch: RecordBatch, body: bytes, count: int, base_timestamp_ms: int) -> bytes:
    """Encode a batch of magic 2 around encoded records.

    Args:
        batch: Fields of the batch; its records are ignored.
        body: The encoded records, compressed with the batch's codec.
        count: Number of records.
        base_timestamp_ms: Timestamp that record timestamps are stored relative to.
    """
    about = (
        _attributes(batch, count),
        batch.last_offset - batch.base_offset,
        base_timestamp_ms,
        batch.max_timestamp_ms,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        count,
    )
    return frame_records(body, batch.base_offset, batch.leader_epoch, about)


def frame_records(
    body: bytes, base_offset: int, leader_epoch: int, about: tuple[int, ...]
) -> bytes:
    """Put the header of a batch before encoded records of magic 2.

    Args:
        body: The records, compressed by the codec in the attributes.
        base_offset: Offset of the first record.
        leader_epoch: Epoch of the leader that appends them.
        about: The header's fields from the attributes on.
    """
    checked = _CHECKED_HEADER.pack(*about) + body
    length = HEADER_SIZE - LOG_OVERHEAD + len(body)
    checksum = crc32c.crc32c(checked)
    return _FRONT.pack(base_offset, length, leader_epoch, CURRENT_MAGIC, checksum) + checked


def checksum_of(data: bytes | memoryview, magic: int) -> int:
    """The CRC of a whole entry: CRC-32C from attributes on, before magic 2 CRC-32 from magic on."""
    if magic >= CURRENT_MAGIC:
        return int(crc32c.crc32c(data[_CHECKED_FROM:]))
    return zlib.crc32(data[LOG_OVERHEAD + 4 :])


def _attributes(batch: RecordBatch, count: int) -> int:
    # An emptied batch is written without a codec. Source: DefaultRecordBatch.writeEmptyHeader.
    codec = batch.compression if count else 0
    return (
        codec
        | (LOG_APPEND if batch.timestamp_type is TimestampType.LOG_APPEND_TIME else 0)
        | (TRANSACTIONAL if batch.transactional else 0)
        | (CONTROL if batch.control else 0)
        | (DELETE_HORIZON if batch.has_delete_horizon else 0)
    )


def legacy_attributes(batch: RecordBatch) -> int:
    """Attributes of each entry of an old format, without the codec of a wrapper."""
    is_appended = batch.magic and batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    return LOG_APPEND if is_appended else 0


def _legacy_entries(batch: RecordBatch) -> Iterator[bytes]:
    """Plain entries, or one wrapper around a message set. Source: AbstractLegacyRecordBatch."""
    attributes = legacy_attributes(batch)
    if batch.compression is Compression.NONE:
        for record in batch.records:
            yield legacy_entry_bytes(record, batch.magic, attributes)
        return
    if batch.compression is Compression.ZSTD:
        raise ValueError("zstd needs magic 2; choose gzip, snappy, lz4 or none for older ones")
    # Inner offsets count from 0 in magic 1, and are the log's own in magic 0.
    origin = batch.records[0].offset if batch.magic == 1 else 0
    inner = b"".join(
        legacy_entry_bytes(record, batch.magic, attributes, offset=record.offset - origin)
        for record in batch.records
    )
    compressed = compress(batch.compression, inner, batch.magic)
    yield wrapper_bytes(batch, batch.records[-1].offset, compressed)


def wrapper_bytes(batch: RecordBatch, offset: int, compressed: bytes) -> bytes:
    """The entry of an old format that wraps a message set.

    Args:
        batch: Gives format, codec and largest timestamp.
        offset: Offset of the last record inside.
        compressed: The message set.
    """
    wrapper = Record(offset=offset, timestamp_ms=batch.max_timestamp_ms, key=None, value=compressed)
    attributes = legacy_attributes(batch) | batch.compression
    return legacy_entry_bytes(wrapper, batch.magic, attributes)


def require_magic(magic: int, position: int) -> None:
    """Refuse an entry of no known format.

    Raises:
        WireFormatError: The magic is not 0, 1 or 2.
    """
    if not 0 <= magic <= CURRENT_MAGIC:
        raise WireFormatError(f"record batch: magic {magic} is none of 0, 1 and 2", position)


# -- records of magic 2 ----------------------------------------------------------------------

_MORE: Final = 0x80
_MAX_VARLONG_BYTES: Final = 10


@lru_cache(maxsize=4_096)
def varint_bytes(value: int) -> bytes:
    """A signed number of up to 64 bits: zigzag, then seven bits per byte, lowest first."""
    value = value << 1 ^ value >> 63
    out = bytearray()
    while value >= _MORE:
        out.append(value & 0x7F | _MORE)
        value >>= 7
    out.append(value)
    return bytes(out)


def record_bytes(record: Record, base_offset: int, base_timestamp_ms: int) -> bytes:
    """A record of magic 2, offset and time relative to its batch."""
    parts = [
        b"\x00",
        varint_bytes(record.timestamp_ms - base_timestamp_ms),
        varint_bytes(record.offset - base_offset),
        _sized(record.key),
        _sized(record.value),
        varint_bytes(len(record.headers)),
    ]
    for key, value in record.headers:
        parts += (_sized(key.encode(errors="replace")), _sized(value))
    body = b"".join(parts)
    return varint_bytes(len(body)) + body


def _sized(data: bytes | None) -> bytes:
    return b"\x01" if data is None else varint_bytes(len(data)) + data


class RecordReader:
    """Reads the records of one batch of magic 2 out of its decompressed bytes.

    Args:
        data: All records, one after another.
        base_offset: Base offset of the batch.
        base_timestamp_ms: Base timestamp of the batch.
        append_time_ms: The timestamp of every record if the broker set it, else None.
    """

    __slots__ = ("_append_time_ms", "_base_offset", "_base_timestamp_ms", "_data", "position")

    def __init__(
        self,
        data: bytes,
        base_offset: int,
        base_timestamp_ms: int,
        append_time_ms: int | None = None,
    ) -> None:
        self._data = data
        self._base_offset = base_offset
        self._base_timestamp_ms = base_timestamp_ms
        self._append_time_ms = append_time_ms
        self.position = 0

    def read(self, count: int) -> list[Record]:
        """Read a number of records, which must be all.

        Raises:
            WireFormatError: A record does not match its size, or there are more or fewer bytes.
        """
        try:
            records = [self.next_record() for _ in range(count)]
        except IndexError as error:
            raise self._error("the records end too soon") from error
        left = len(self._data) - self.position
        if left:
            raise self._error(f"{left} bytes are left after {count} records")
        return records

    def missing_bytes(self) -> int:
        """Least number of bytes missing from the next record; 0 when it is whole.

        Raises:
            WireFormatError: The record's size is impossible.
        """
        try:
            size, start = self._varint(self.position)
        except IndexError:
            return 1
        return max(0, start + size - len(self._data))

    def go_on_in(self, data: bytes) -> None:
        """Continue at the start of these bytes, which begin with the unread ones."""
        self._data = data
        self.position = 0

    def next_record(self) -> Record:
        """Read the next record; lengths of one byte, nearly all, are read inline for speed.

        Raises:
            IndexError: The record ends after the bytes.
            WireFormatError: The record does not match its size.
        """
        data, position = self._data, self.position
        size, position = self._varint(position)
        end = position + size
        if size < 0 or end > len(data):
            raise self._error(f"a record of {size} bytes does not fit")
        position += 1
        raw = data[position]
        if raw < _MORE:
            time_delta, position = raw >> 1 ^ -(raw & 1), position + 1
        else:
            time_delta, position = self._varint(position)
        raw = data[position]
        if raw < _MORE:
            offset_delta, position = raw >> 1 ^ -(raw & 1), position + 1
        else:
            offset_delta, position = self._varint(position)
        raw = data[position]
        stop = position + 1 + (raw >> 1)
        if raw < _MORE and not raw & 1 and stop <= end:
            key: bytes | None = data[position + 1 : stop]
            position = stop
        else:
            key, position = self._nullable(position, end)
        raw = data[position]
        stop = position + 1 + (raw >> 1)
        if raw < _MORE and not raw & 1 and stop <= end:
            value: bytes | None = data[position + 1 : stop]
            position = stop
        else:
            value, position = self._nullable(position, end)
        raw = data[position]
        headers: tuple[Header, ...] = ()
        if raw == 0:
            position += 1
        else:
            headers, position = self._headers(position, end)
        if position != end:
            raise self._error(f"a record of {size} bytes has {position - end + size}")
        self.position = end
        time_ms = self._append_time_ms
        return Record(
            offset=self._base_offset + offset_delta,
            timestamp_ms=self._base_timestamp_ms + time_delta if time_ms is None else time_ms,
            key=key,
            value=value,
            headers=headers,
        )

    def _nullable(self, position: int, end: int) -> tuple[bytes | None, int]:
        raw = self._data[position]
        if raw < _MORE:
            size, start = raw >> 1 ^ -(raw & 1), position + 1
        else:
            size, start = self._varint(position)
        if size < 0:
            return None, start
        stop = start + size
        if stop > end:
            raise self._error(f"{size} bytes do not fit their record")
        return self._data[start:stop], stop

    def _headers(self, position: int, end: int) -> tuple[tuple[Header, ...], int]:
        count, position = self._varint(position)
        if not 0 <= count <= end - position:
            raise self._error(f"a record counts {count} headers")
        headers = []
        for _ in range(count):
            key, position = self._nullable(position, end)
            value, position = self._nullable(position, end)
            if key is None:
                raise self._error("a header has no key")
            headers.append((key.decode(errors="replace"), value))
        return tuple(headers), position

    def _varint(self, position: int) -> tuple[int, int]:
        """A signed varint and the position after it."""
        data = self._data
        raw = data[position]
        if raw < _MORE:
            return raw >> 1 ^ -(raw & 1), position + 1
        byte = data[position + 1]
        if byte < _MORE:
            # Two bytes: the size of nearly every record and of most keys.
            raw = raw & 0x7F | byte << 7
            return raw >> 1 ^ -(raw & 1), position + 2
        raw = shift = 0
        for start in range(position, position + _MAX_VARLONG_BYTES):
            byte = data[start]
            raw |= (byte & 0x7F) << shift
            if byte < _MORE:
                return raw >> 1 ^ -(raw & 1), start + 1
            shift += 7
        raise self._error("a varint has more than 10 bytes")

    def _error(self, message: str) -> WireFormatError:
        return WireFormatError(f"record batch: {message}", self.position)


# -- entries of magic 0 and 1 ----------------------------------------------------------------

_ENTRY: Final = struct.Struct(">qiIbb")
"""Offset, size, CRC, magic, attributes."""
_CRC_FROM: Final = 16
MIN_LEGACY_SIZE: Final = 14
"""Size of a message of magic 0 without key and value. Source: RECORD_OVERHEAD_V0."""


class LegacyEntry(Struct, frozen=True, kw_only=True, gc=False):
    """An entry of a message set of magic 0 or 1, which may wrap further entries.

    Args:
        record: The record inside, with offset and timestamp as written.
        crc: CRC as written.
        is_valid: Whether the CRC is correct.
    """

    record: Record
    magic: int
    attributes: int
    crc: int
    is_valid: bool


def legacy_entry_bytes(
    record: Record, magic: int, attributes: int, *, offset: int | None = None
) -> bytes:
    """One entry of a message set.

    Args:
        record: The record; headers are dropped, as the format has none.
        magic: 0 or 1.
        attributes: Codec and, in magic 1, the timestamp type.
        offset: Offset to write instead of the record's own.
    """
    timed = struct.pack(">q", record.timestamp_ms) if magic else b""
    checked = b"".join(
        (bytes((magic, attributes)), timed, _int_sized(record.key), _int_sized(record.value))
    )
    written = record.offset if offset is None else offset
    return struct.pack(">qiI", written, len(checked) + 4, zlib.crc32(checked)) + checked


def _int_sized(data: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if data is None else struct.pack(">i", len(data)) + data


def legacy_size_at(data: bytes, position: int) -> int:
    """The size of the whole entry at a position, from its header."""
    (size,) = struct.unpack_from(">i", data, position + 8)
    return LOG_OVERHEAD + int(size)


def read_legacy_entry(data: bytes, position: int) -> tuple[LegacyEntry, int]:
    """The entry at a position, and the position after it; a wrong CRC is flagged, not raised.

    Raises:
        WireFormatError: A size is impossible.
    """
    what = "message set"
    if position + _ENTRY.size > len(data):
        raise WireFormatError(f"{what}: an entry is cut short", position)
    offset, size, crc, magic, attributes = _ENTRY.unpack_from(data, position)
    end = position + LOG_OVERHEAD + size
    if size < MIN_LEGACY_SIZE or end > len(data):
        raise WireFormatError(f"{what}: an entry of {size} bytes does not fit", position)
    start = position + _ENTRY.size
    timestamp_ms = -1
    if magic:
        (timestamp_ms,) = struct.unpack_from(">q", data[start : start + 8].ljust(8, b"\0"))
        start += 8
    key, start = _read_int_sized(data, start, end)
    value, start = _read_int_sized(data, start, end)
    if start != end:
        raise WireFormatError(f"{what}: {end - start} bytes are left in an entry", start)
    record = Record(offset=offset, timestamp_ms=timestamp_ms, key=key, value=value)
    entry = LegacyEntry(
        record=record,
        magic=magic,
        attributes=attributes,
        crc=crc,
        is_valid=zlib.crc32(data[position + _CRC_FROM : end]) == crc,
    )
    return entry, end


def _read_int_sized(data: bytes, start: int, end: int) -> tuple[bytes | None, int]:
    if start + 4 > end:
        raise WireFormatError("message set: a size is cut short", start)
    (size,) = struct.unpack_from(">i", data, start)
    start += 4
    if size < 0:
        return None, start
    if start + size > end:
        raise WireFormatError(f"message set: {size} bytes do not fit their entry", start)
    return data[start : start + size], start + size
