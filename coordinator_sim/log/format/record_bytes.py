"""Single records as bytes, within a batch of magic 2 or as an entry of magic 0 and 1.

Source: kafka trunk, clients/.../common/record/DefaultRecord.java and LegacyRecord.java.
"""

import struct
import zlib
from functools import lru_cache
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import WireFormatError

Header = tuple[str, bytes | None]

_MORE: Final = 0x80
_MAX_VARLONG_BYTES: Final = 10


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


# -- magic 2 ---------------------------------------------------------------------------------


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


# -- magic 0 and 1 ---------------------------------------------------------------------------

_ENTRY: Final = struct.Struct(">qiIbb")
"""Offset, size, CRC, magic, attributes."""
LEGACY_OVERHEAD: Final = 12
"""Offset and size, before an entry's CRC."""
_CHECKED_FROM: Final = 16
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
    return LEGACY_OVERHEAD + int(size)


def read_legacy_entry(data: bytes, position: int) -> tuple[LegacyEntry, int]:
    """The entry at a position, and the position after it; a wrong CRC is flagged, not raised.

    Raises:
        WireFormatError: A size is impossible.
    """
    what = "message set"
    if position + _ENTRY.size > len(data):
        raise WireFormatError(f"{what}: an entry is cut short", position)
    offset, size, crc, magic, attributes = _ENTRY.unpack_from(data, position)
    end = position + LEGACY_OVERHEAD + size
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
        is_valid=zlib.crc32(data[position + _CHECKED_FROM : end]) == crc,
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
