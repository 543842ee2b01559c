"""Record batches of magic 0, 1 and 2 as bytes: what a segment file and a Fetch response hold.

`offsets_records` and `log_batches` interpret the records.

Source: kafka trunk, clients/.../common/record: DefaultRecordBatch, DefaultRecord,
AbstractLegacyRecordBatch, LegacyRecord.
"""

import struct
import zlib
from collections.abc import Iterator
from enum import IntEnum, unique
from typing import Final

import crc32c
from msgspec import Struct

from coordinator_sim.errors import WireFormatError
from coordinator_sim.log.format.compression import Compression, compress
from coordinator_sim.log.format.record_bytes import Record, legacy_entry_bytes, record_bytes

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
