"""Compaction of the offsets log: the result of one pass of the log cleaner.

It is a pure function without threads, segments or a dirty ratio; a pass covers the whole given log.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.kafka.records import LogBatch, LogKey

DELETE_RETENTION_MS: Final = 86_400_000
"""Default `delete.retention.ms` of a topic: one day."""


class CleanedBatch(Struct, frozen=True):
    """A batch, and when its tombstones may be removed; None before its first pass."""

    batch: LogBatch
    delete_horizon_ms: int | None = None


def clean(
    log: Sequence[CleanedBatch], now_ms: int, delete_retention_ms: int = DELETE_RETENTION_MS
) -> list[CleanedBatch]:
    """The log after one pass: the last record of each key, tombstones until their horizon.

    Records keep their offsets; a batch that loses some in its middle is returned in pieces.

    Args:
        log: In offset order, without an open transaction.
        now_ms: Instant of the pass.
        delete_retention_ms: How long a tombstone stays after its first pass.

    Source: kafka trunk, storage/.../log/Cleaner.java, cleanInto and shouldRetainRecord;
    MemoryRecords.filterTo sets the horizon.
    """
    last: dict[LogKey, int] = {}
    aborted = _aborted(log)
    for entry in log:
        if entry.batch.base_offset in aborted:
            continue
        for index, record in enumerate(entry.batch.records):
            last[record.key] = entry.batch.base_offset + index
    return [piece for entry in log for piece in _cleaned(entry, last, now_ms, delete_retention_ms)]


def _aborted(log: Sequence[CleanedBatch]) -> set[int]:
    """The base offsets of batches of aborted transactions; they supersede no other records.

    Source: Cleaner.buildOffsetMapForSegment, CleanedTransactionMetadata.onBatchRead.
    """
    found: set[int] = set()
    unfinished: dict[int, list[int]] = {}
    for entry in log:
        batch = entry.batch
        if batch.marker is not None:
            ended = unfinished.pop(batch.producer_id, [])
            found.update([] if batch.marker.committed else ended)
        elif batch.transactional:
            unfinished.setdefault(batch.producer_id, []).append(batch.base_offset)
    return found


def _cleaned(
    entry: CleanedBatch, last: dict[LogKey, int], now_ms: int, delete_retention_ms: int
) -> Iterator[CleanedBatch]:
    """The remaining pieces of one batch."""
    batch, horizon_ms = entry.batch, entry.delete_horizon_ms
    # DEVIATION: batches of transactions and their markers stay whole, where Kafka drops aborted
    # data and markers without data. Loading either log gives the same state.
    if batch.transactional or batch.control or batch.marker is not None:
        yield entry
        return
    if horizon_ms is None and any(record.value is None for record in batch.records):
        horizon_ms = now_ms + delete_retention_ms
    is_over = horizon_ms is not None and horizon_ms <= now_ms
    kept = [
        index
        for index, record in enumerate(batch.records)
        if last[record.key] == batch.base_offset + index and not (is_over and record.value is None)
    ]
    for first, following in _runs(kept):
        records = batch.records[first:following]
        piece = replace(batch, base_offset=batch.base_offset + first, records=records)
        yield CleanedBatch(piece, horizon_ms)


def _runs(indexes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Runs of adjacent numbers, each as its first number and the one after its last."""
    start = 0
    for at in range(1, len(indexes) + 1):
        if at == len(indexes) or indexes[at] != indexes[at - 1] + 1:
            yield indexes[start], indexes[at - 1] + 1
            start = at
