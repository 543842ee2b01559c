"""Reads a batch record by record, and writes a batch so, with one record in memory at a time.

A reader gets a record, or None after a piece of the content that completes no record, so that it
can do other work while a huge record is read.

Source: kafka trunk, clients/.../common/record: DefaultRecordBatch (streamingIterator),
AbstractLegacyRecordBatch.DeepRecordsIterator, MemoryRecordsBuilder.
"""

from collections.abc import Callable, Iterator
from typing import Final

from coordinator_sim.errors import WireFormatError
from coordinator_sim.log.format import record_batches
from coordinator_sim.log.format.compression import ContentWriter
from coordinator_sim.log.format.record_batches import (
    LOG_OVERHEAD,
    LegacyEntry,
    Record,
    RecordReader,
    legacy_entry_bytes,
    legacy_size_at,
    read_legacy_entry,
    record_bytes,
)
from coordinator_sim.log.format.steps import Steps

_COST_OF_PAUSE: Final = 250
"""Cost of reading a piece of content."""
_PASSED_A_PAUSE: Final = 100
_COST_OF_STEP: Final = 1_000
"""Cost of records that are compressed at a time."""
_COST_OF_RECORD: Final = 8
"""Cost of reading a record and writing it again."""
_BYTES_A_UNIT: Final = 128
"""Bytes of content that cost one unit to copy and compress."""


class _Gathering:
    """The part of a content that is in memory.

    Attributes:
        data: The current bytes; chunks are joined if a record crosses their ends.
    """

    __slots__ = ("_chunks", "data")

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self.data = b""

    def gather(self, position: int, size: int) -> Iterator[bool]:
        """Read until `size` bytes follow a position, which becomes position 0.

        Yields after each chunk; False at the end of the content.
        """
        parts = [self.data[position:]]
        there = len(parts[0])
        while there < size:
            chunk = next(self._chunks, None)
            if chunk is None:
                yield False
                break
            parts.append(chunk)
            there += len(chunk)
            yield True
        self.data = b"".join(parts)


def streamed_records(
    chunks: Iterator[bytes],
    count: int,
    base_offset: int,
    base_timestamp_ms: int,
    append_time_ms: int | None = None,
) -> Iterator[Record | None]:
    """The records of one batch of magic 2.

    Args:
        chunks: Content of the batch.
        count: Number of records, which must fill the content.
        base_offset: Base offset of the batch.
        base_timestamp_ms: Base timestamp of the batch.
        append_time_ms: The timestamp of every record if the broker set it, else None.

    Raises:
        WireFormatError: A record does not match its size, or there are more or fewer bytes.
    """
    content = _Gathering(chunks)
    reader = RecordReader(b"", base_offset, base_timestamp_ms, append_time_ms)
    left = count
    while left > 0:
        try:
            record = reader.next_record()
        except (IndexError, WireFormatError) as error:
            # Nearly all records are whole, so check only now whether this one is not.
            missing = reader.missing_bytes()
            if not missing and isinstance(error, WireFormatError):
                raise
            if not missing:
                raise WireFormatError("record batch: the records end too soon", 0) from error
            size = len(content.data) - reader.position + missing
            for is_more in content.gather(reader.position, size):
                if not is_more:
                    raise WireFormatError("record batch: the records end too soon", 0) from error
                yield None
            reader.go_on_in(content.data)
            continue
        left -= 1
        yield record
    for is_more in content.gather(reader.position, 1):
        if is_more:
            yield None
    if content.data:
        raise WireFormatError(f"record batch: bytes are left after {count} records", 0)


def streamed_entries(chunks: Iterator[bytes]) -> Iterator[LegacyEntry | None]:
    """The entries of one message set of magic 0 or 1, up to the end of its content.

    Raises:
        WireFormatError: A size does not fit.
    """
    content = _Gathering(chunks)
    position = 0
    while True:
        wanted = LOG_OVERHEAD
        if len(content.data) - position >= LOG_OVERHEAD:
            wanted = legacy_size_at(content.data, position)
        if len(content.data) - position >= wanted:
            entry, position = read_legacy_entry(content.data, position)
            yield entry
            continue
        is_over = False
        for is_more in content.gather(position, wanted):
            is_over = not is_more
            yield None
        position = 0
        if is_over and not content.data:
            return
        if is_over:
            # The entry is truncated: this call raises the error.
            read_legacy_entry(content.data, position)


def chosen(
    records: Iterator[Record | None], is_wanted: Callable[[Record], bool]
) -> Iterator[Record | None]:
    """The wanted records; also None after many skipped ones."""
    passed = 0
    for record in records:
        if record is None or is_wanted(record):
            yield record
            continue
        passed += 1
        if passed % _PASSED_A_PAUSE == 0:
            yield None


def encoded(
    batch: record_batches.RecordBatch,
    records: Iterator[Record | None],
    *,
    max_bytes: int | None = None,
    keeps_offsets: bool = False,
    base_timestamp_ms: int | None = None,
) -> Steps[bytes | None]:
    """Encode records as a batch.

    Uncompressed entries of an old format are a batch each, one after another.

    Args:
        batch: All fields of the batch except records and base timestamp.
        records: Records in order of offsets.
        max_bytes: Largest size of the batch; None for no limit.
        keeps_offsets: Whether records keep their offsets, or are numbered from the base offset.
        base_timestamp_ms: Base timestamp of magic 2; None for that of the first record.

    Returns:
        Empty bytes for no records. None if the batch becomes too large; the encoding stops then.
    """
    writer = ContentWriter(batch.compression, batch.magic)
    attributes = record_batches.legacy_attributes(batch)
    first: Record | None = None
    offset = count = cost = 0
    parts: list[bytes] = []
    for record in records:
        if record is None:
            yield _COST_OF_PAUSE
            continue
        offset = record.offset if keeps_offsets else batch.base_offset + count
        if first is None:
            first, first_offset = record, offset
            base_ms = record.timestamp_ms if base_timestamp_ms is None else base_timestamp_ms
        count += 1
        if batch.magic < record_batches.CURRENT_MAGIC:
            inner = offset - first_offset if batch.magic == 1 and batch.compression else offset
            data = legacy_entry_bytes(record, batch.magic, attributes, offset=inner)
        else:
            base = batch.base_offset + record.offset - offset
            data = record_bytes(record, base, base_ms)
        parts.append(data)
        cost += _COST_OF_RECORD + len(data) // _BYTES_A_UNIT
        if cost >= _COST_OF_STEP:
            yield cost
            yield from writer.write(b"".join(parts))
            parts.clear()
            cost = 0
            if max_bytes is not None and writer.size > max_bytes:
                return None
    yield cost
    yield from writer.write(b"".join(parts))
    if first is None:
        return b""
    made = writer.finish()
    if batch.magic == record_batches.CURRENT_MAGIC:
        made = record_batches.framed(batch, made, count, base_ms)
    elif batch.compression:
        made = record_batches.wrapper_bytes(batch, offset, made)
    return made if max_bytes is None or len(made) <= max_bytes else None
