"""Facts of batches that a log needs, read from their headers."""

from collections.abc import Iterator

from coordinator_sim.log.format.counted_batches import counted_batch
from coordinator_sim.log.format.stored_batches import StoredBatch, next_batch
from coordinator_sim.log.log_values import BatchSpan


def span_of(batch: StoredBatch) -> BatchSpan:
    """The span of a batch: offsets, timestamp and producer."""
    return BatchSpan(
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        max_timestamp_ms=batch.max_timestamp_ms,
        leader_epoch=batch.leader_epoch,
        size_bytes=batch.size,
        magic=batch.magic,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        transactional=batch.transactional,
        control=batch.control,
    )


def batches_in(data: bytes) -> Iterator[StoredBatch]:
    """The whole batches in these bytes, in order."""
    position = 0
    while (batch := next_batch(data, position)) is not None:
        yield batch
        position += batch.size


def end_of(data: bytes) -> int:
    """The offset after the last batch in the bytes; 0 for no batch."""
    counted = counted_batch(data)
    end = 0 if counted is None else counted.next_offset
    for batch in batches_in(data):
        end = batch.next_offset
    return end
