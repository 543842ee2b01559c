"""Batches in a log's bytes: headers are read at once, records on demand.

Source: kafka trunk, clients/.../common/record: FileLogInputStream, DefaultRecordBatch,
AbstractLegacyRecordBatch.DeepRecordsIterator.
"""

import struct
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from coordinator_sim.errors import WireFormatError
from coordinator_sim.log.format.batch_stream import streamed_entries, streamed_records
from coordinator_sim.log.format.compression import (
    DEFAULT_BOUNDS,
    Compression,
    ContentBounds,
    decompress,
    decompressed_chunks,
)
from coordinator_sim.log.format.record_batches import (
    CONTROL,
    CURRENT_MAGIC,
    DELETE_HORIZON,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND,
    LOG_OVERHEAD,
    MIN_LEGACY_SIZE,
    NO_ID,
    TRANSACTIONAL,
    LegacyEntry,
    Record,
    RecordBatch,
    RecordReader,
    TimestampType,
    checksum_of,
    read_legacy_entry,
    require_magic,
)

_CODEC_MASK: Final = 0x07
MAGIC_AT: Final = 16
"""Position of the magic number in a batch or an entry."""
_FRONT: Final = struct.Struct(">qi")
_LEGACY_FRONT: Final = struct.Struct(">Ibb")
_TIMESTAMP: Final = struct.Struct(">q")
FRONT_TO_MAGIC: Final = 17
"""Bytes of a batch that say how large it is, and of which format."""
_ENTRIES_A_PAUSE: Final = 200


class StoredBatch:
    """One batch of magic 2, or one entry of a message set, in the bytes of a log.

    The constructor only requires that the header is there, and checks nothing else.

    Args:
        data: The whole log.
        position: Start of the batch.
        size: Size of the batch in bytes, with offset and length fields.
        base_offset: Offset of a legacy wrapper's first record, if known without decompressing.
    """

    __slots__ = (
        "_base_offset",
        "_data",
        "attributes",
        "base_sequence",
        "base_timestamp_ms",
        "count",
        "crc",
        "last_offset",
        "leader_epoch",
        "magic",
        "max_timestamp_ms",
        "position",
        "producer_epoch",
        "producer_id",
        "size",
    )

    attributes: int
    base_timestamp_ms: int
    crc: int
    last_offset: int
    max_timestamp_ms: int

    def __init__(
        self,
        data: bytes | memoryview,
        position: int,
        size: int,
        base_offset: int | None = None,
    ) -> None:
        self._data = data
        self.position = position
        self.size = size
        self.magic: int = data[position + MAGIC_AT]
        self.leader_epoch = self.producer_id = self.producer_epoch = self.base_sequence = NO_ID
        self.count: int | None = None
        """Number of records in the header; None before magic 2."""
        self._base_offset = base_offset
        if self.magic >= CURRENT_MAGIC:
            self._read_header()
        else:
            self._read_legacy_header()

    def _read_header(self) -> None:
        (
            base_offset,
            _,
            self.leader_epoch,
            _,
            self.crc,
            self.attributes,
            last_delta,
            self.base_timestamp_ms,
            self.max_timestamp_ms,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        ) = HEADER.unpack_from(self._data, self.position)
        self._base_offset = base_offset
        self.last_offset = base_offset + last_delta

    def _read_legacy_header(self) -> None:
        (self.last_offset, _) = _FRONT.unpack_from(self._data, self.position)
        start = self.position + LOG_OVERHEAD
        self.crc, _, self.attributes = _LEGACY_FRONT.unpack_from(self._data, start)
        self.max_timestamp_ms = NO_ID
        if self.magic and self.size >= LOG_OVERHEAD + _LEGACY_FRONT.size + _TIMESTAMP.size:
            (self.max_timestamp_ms,) = _TIMESTAMP.unpack_from(
                self._data, start + _LEGACY_FRONT.size
            )
        self.base_timestamp_ms = self.max_timestamp_ms
        if self.codec == 0:
            self._base_offset = self.last_offset

    @property
    def base_offset(self) -> int:
        """Offset of the first record; a legacy wrapper is decompressed once to find it."""
        if self._base_offset is None:
            first = next(record for record in self.streamed() if record is not None)
            self._base_offset = first.offset
        return self._base_offset

    @property
    def next_offset(self) -> int:
        """The offset after the last one."""
        return self.last_offset + 1

    @property
    def codec(self) -> int:
        """The number of the codec; above 4 for an unknown one."""
        return self.attributes & _CODEC_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        """Origin of the timestamps; NONE in magic 0."""
        if self.magic == 0:
            return TimestampType.NONE
        appended = self.attributes & LOG_APPEND
        return TimestampType.LOG_APPEND_TIME if appended else TimestampType.CREATE_TIME

    @property
    def transactional(self) -> bool:
        """Whether the records belong to a transaction."""
        return self.magic >= CURRENT_MAGIC and bool(self.attributes & TRANSACTIONAL)

    @property
    def control(self) -> bool:
        """Whether this is a control batch."""
        return self.magic >= CURRENT_MAGIC and bool(self.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the log cleaner may drop tombstones and marker; None before the first cleaning."""
        has_one = self.magic >= CURRENT_MAGIC and self.attributes & DELETE_HORIZON
        return self.base_timestamp_ms if has_one else None

    @property
    def is_valid(self) -> bool:
        """Whether the CRC is correct."""
        return checksum_of(self.raw(), self.magic) == self.crc

    def raw(self) -> bytes | memoryview:
        """The bytes of this batch."""
        return self._data[self.position : self.position + self.size]

    def records(self) -> list[Record]:
        """The decompressed records in order.

        Raises:
            WireFormatError: They do not parse; the error's offset counts from the first record.
        """
        if self.magic < CURRENT_MAGIC:
            return [record for record in self._streamed_legacy(DEFAULT_BOUNDS) if record]
        body = self._body()
        content = decompress(self._compression(), body) if body else body
        reader = RecordReader(
            content, self.base_offset, self.base_timestamp_ms, self.append_time_ms
        )
        return reader.read(self._counted())

    def streamed(self, bounds: ContentBounds = DEFAULT_BOUNDS) -> Iterator[Record | None]:
        """The records one by one, with one in memory at a time.

        Yields None after a piece of content that completes no record.

        Raises:
            ContentTooLarge: The content exceeds the bounds.
            WireFormatError: They do not parse.
        """
        if self.magic < CURRENT_MAGIC:
            return self._streamed_legacy(bounds)
        return streamed_records(
            self.chunks(bounds),
            self._counted(),
            self.base_offset,
            self.base_timestamp_ms,
            self.append_time_ms,
        )

    def chunks(self, bounds: ContentBounds = DEFAULT_BOUNDS) -> Iterator[bytes]:
        """The content of a batch of magic 2, piece by piece."""
        body = self._body()
        return decompressed_chunks(self._compression(), body, bounds=bounds) if body else iter(())

    def _body(self) -> bytes:
        return bytes(self._data[self.position + HEADER_SIZE : self.position + self.size])

    def _counted(self) -> int:
        if self.count is None or self.count < 0:
            raise WireFormatError(f"record batch: count {self.count}", self.position)
        return self.count

    @property
    def append_time_ms(self) -> int | None:
        """The timestamp of every record if the broker set it, else None."""
        appended = self.timestamp_type is TimestampType.LOG_APPEND_TIME
        return self.max_timestamp_ms if appended else None

    def decoded(self) -> RecordBatch:
        """The whole batch as a value.

        Raises:
            WireFormatError: The records do not parse.
        """
        return replace(
            self.without_records(), base_offset=self.base_offset, records=tuple(self.records())
        )

    def without_records(self) -> RecordBatch:
        """The header as a value; a wrapper's unknown base offset is -1."""
        return RecordBatch(
            base_offset=NO_ID if self._base_offset is None else self._base_offset,
            last_offset=self.last_offset,
            records=(),
            base_timestamp_ms=self.base_timestamp_ms,
            max_timestamp_ms=self.max_timestamp_ms,
            magic=self.magic,
            compression=self._compression(),
            timestamp_type=self.timestamp_type,
            leader_epoch=self.leader_epoch,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
            transactional=self.transactional,
            control=self.control,
            has_delete_horizon=self.delete_horizon_ms is not None,
        )

    def _compression(self) -> Compression:
        if self.codec > Compression.ZSTD:
            raise WireFormatError(f"record batch: compression {self.codec}", self.position)
        return Compression(self.codec)

    def legacy_entries(self) -> list[LegacyEntry]:
        """The entries of magic 0 or 1: the entry itself, or those it wraps, as written.

        Raises:
            WireFormatError: They do not parse, or have another format than their wrapper.
        """
        return [entry for entry in self.streamed_entries() if entry]

    def streamed_entries(
        self, bounds: ContentBounds = DEFAULT_BOUNDS
    ) -> Iterator[LegacyEntry | None]:
        """The entries one by one, with None as in `streamed`; see `legacy_entries`.

        Raises:
            ContentTooLarge: The content exceeds the bounds.
            WireFormatError: See `legacy_entries`.
        """
        entry, _ = read_legacy_entry(bytes(self.raw()), 0)
        if self.codec == 0:
            yield entry
            return
        value = entry.record.value or b""
        is_empty = True
        for found in streamed_entries(
            decompressed_chunks(self._compression(), value, self.magic, bounds=bounds)
        ):
            if found is not None:
                self._require_like(found)
                is_empty = False
            yield found
        if is_empty:
            raise WireFormatError("message set: a wrapper around nothing", self.position)

    def _require_like(self, entry: LegacyEntry) -> None:
        if entry.magic != self.magic or entry.attributes & _CODEC_MASK:
            raise WireFormatError(
                f"message set: magic {entry.magic} with attributes {entry.attributes} "
                f"inside a wrapper of magic {self.magic}",
                self.position,
            )

    def _streamed_legacy(self, bounds: ContentBounds) -> Iterator[Record | None]:
        """Records of magic 0 or 1; a first pass finds the last inner offset, which all need."""
        last_inner = 0
        if self.magic and self.codec:
            for number, entry in enumerate(self.streamed_entries(bounds)):
                if entry is None or number % _ENTRIES_A_PAUSE == 0:
                    yield None
                last_inner = last_inner if entry is None else entry.record.offset
        for entry in self.streamed_entries(bounds):
            if entry is None or not self.codec:
                yield None if entry is None else entry.record
                continue
            record = self._unwrapped(entry.record, last_inner)
            if self._base_offset is None:
                self._base_offset = record.offset
            yield record

    def _unwrapped(self, record: Record, last_inner: int) -> Record:
        """An inner record with its offset in the log. Source: DeepRecordsIterator.makeNext."""
        if self.magic == 0:
            return record
        appended = self.timestamp_type is TimestampType.LOG_APPEND_TIME
        return Record(
            offset=self.last_offset - last_inner + record.offset,
            timestamp_ms=self.max_timestamp_ms if appended else record.timestamp_ms,
            key=record.key,
            value=record.value,
        )


def next_batch(data: bytes | memoryview, position: int) -> StoredBatch | None:
    """The batch at a position; None at the end, and if the rest is too short for it.

    Raises:
        WireFormatError: The size or the magic is impossible. Source:
            FileLogInputStream.nextBatch.
    """
    left = len(data) - position
    if left < FRONT_TO_MAGIC:
        return None
    if left < LOG_OVERHEAD + _length_at(data, position):
        return None
    return StoredBatch(data, position, stated_size(data, position))


def stated_size(data: bytes | memoryview, position: int) -> int:
    """Bytes of a batch, by its first `FRONT_TO_MAGIC` bytes.

    Raises:
        WireFormatError: The size or the magic is impossible.
    """
    length = _length_at(data, position)
    magic = data[position + MAGIC_AT]
    require_magic(magic, position)
    if magic >= CURRENT_MAGIC and length < HEADER_SIZE - LOG_OVERHEAD:
        raise WireFormatError(f"record batch: size {length} is below its header's", position)
    return LOG_OVERHEAD + length


def _length_at(data: bytes | memoryview, position: int) -> int:
    length: int = _FRONT.unpack_from(data, position)[1]
    if length < MIN_LEGACY_SIZE:
        raise WireFormatError(
            f"record batch: size {length} is below the smallest, {MIN_LEGACY_SIZE}", position
        )
    return length
