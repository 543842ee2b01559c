"""Records of dead-letter queues: what is copied of the original records, and batches of them.

Source: kafka 4.4.0, server/.../share/dlq/ShareGroupDLQRecordFetcher and
ShareGroupDLQStateManager.ProduceRequestHandler.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from coordinator_sim.broker.shares.dead_letters import DeadLetters
from coordinator_sim.log.format.compression import NO_BOUNDS, ContentBounds, ContentTooLarge
from coordinator_sim.log.format.record_batches import (
    HEADER_SIZE,
    Header,
    Record,
    batch_of,
    encode_record_batch,
    record_bytes,
)
from coordinator_sim.log.format.stored_batches import StoredBatch, next_batch
from coordinator_sim.log.partition_log import PartitionLog

_FETCH_BYTES: Final = 1 << 20
"""Source: ShareGroupDLQStateManager.DLQ_MAX_FETCH_BYTES."""


class Originals(NamedTuple):
    """Original records that were read, and how far.

    Args:
        records: By offset. Records that are too large, or no longer there, are absent.
        last_offset: The last offset that was looked at; later ones are left to the next read.
    """

    records: Mapping[int, Record]
    last_offset: int


class OriginalsReader:
    """Reads original records from a log, in a bounded number of bytes.

    Args:
        first_offset: Of the first record.
        last_offset: Of the last record, inclusive.
        max_bytes: Limit of one record, of one batch's decompressed content, and of all together.
    """

    __slots__ = ("_collected_bytes", "_is_full", "_last_offset", "_max_bytes", "_next", "_records")

    def __init__(self, first_offset: int, last_offset: int, max_bytes: int) -> None:
        self._next = first_offset
        self._last_offset = last_offset
        self._max_bytes = max_bytes
        self._records: dict[int, Record] = {}
        self._collected_bytes = 0
        self._is_full = False

    def read(self, log: PartitionLog) -> Originals:
        """Read up to the high watermark; records that the log does not have are absent.

        Source: ShareGroupDLQRecordFetcher.runFrom.
        """
        while self._next <= self._last_offset:
            began = self._next
            for batch in _batches(log.read(began, max_bytes=_FETCH_BYTES).records):
                if not self._is_full:
                    self._collect(batch)
            if self._is_full:
                return Originals(self._records, self._next - 1)
            if self._next == began:
                break
        return Originals(self._records, self._last_offset)

    def _collect(self, batch: StoredBatch) -> None:
        """Take the records of a batch; one that decompresses to too much is passed over.

        Source: ShareGroupDLQRecordFetcher.collectUncompressed, collectFromCompressedBatch.
        """
        bounds = NO_BOUNDS
        if batch.codec:
            bounds = ContentBounds(self._max_bytes, NO_BOUNDS.max_blocks)
        try:
            records = [record for record in batch.streamed(bounds) if record is not None]
        except ContentTooLarge:
            self._next = max(self._next, min(batch.last_offset, self._last_offset) + 1)
            return
        for record in records:
            if record.offset > self._last_offset or self._is_full:
                return
            if record.offset >= self._next:
                self._take(record, batch)

    def _take(self, record: Record, batch: StoredBatch) -> None:
        size = len(record_bytes(record, batch.base_offset, batch.base_timestamp_ms))
        if size <= self._max_bytes:
            if self._collected_bytes + size > self._max_bytes:
                self._is_full = True
                return
            self._records[record.offset] = record
            self._collected_bytes += size
        self._next = record.offset + 1
        self._is_full = self._collected_bytes >= self._max_bytes


def _batches(data: bytes) -> Iterator[StoredBatch]:
    position = 0
    while (batch := next_batch(data, position)) is not None:
        position += batch.size
        yield batch


def dead_letter_batch(
    letters: DeadLetters, first_offset: int, originals: Originals, now_ms: int, max_bytes: int
) -> tuple[bytes, int]:
    """Return one batch for the queue, and the offset of its last original.

    Args:
        letters: Which records.
        first_offset: Offset of the batch's first original.
        originals: What is copied.
        now_ms: Timestamp of the batch's records.
        max_bytes: Limit of the batch; a single record may exceed it.

    Source: ProduceRequestHandler.topicProduceData.
    """
    records: list[Record] = []
    size = HEADER_SIZE
    end = max(first_offset, min(letters.last_offset, originals.last_offset))
    for offset in range(first_offset, end + 1):
        original = originals.records.get(offset)
        record = Record(
            offset=len(records),
            timestamp_ms=now_ms,
            key=None if original is None else original.key,
            value=None if original is None else original.value,
            headers=_headers(letters, offset),
        )
        size += len(record_bytes(record, 0, now_ms))
        if records and size > max_bytes:
            break
        records.append(record)
    return encode_record_batch(batch_of(tuple(records))), first_offset + len(records) - 1


def _headers(letters: DeadLetters, offset: int) -> tuple[Header, ...]:
    """Source: ProduceRequestHandler.headers."""
    values = {
        "topic": letters.topic,
        "partition": letters.key.partition,
        "offset": offset,
        "group": letters.key.group_id,
        "delivery.count": letters.delivery_count,
        "message": letters.cause.value,
    }
    return tuple((f"__dlq.errors.{name}", str(value).encode()) for name, value in values.items())
