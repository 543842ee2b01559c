"""Records of aborted transactions among what a member acquired.

Source: kafka 4.3.1, core/.../share/SharePartition.java.
"""

from collections.abc import Iterable, Sequence

from coordinator_sim.broker.shares.share_values import NO_PRODUCER, Aborted, FetchedBatch
from coordinator_sim.messages.share_fetch import AcquiredRecords


def aborted_batches(
    batches: Iterable[FetchedBatch], aborted: Iterable[Aborted]
) -> list[FetchedBatch]:
    """The batches that belong to aborted transactions, in order.

    Source: SharePartition.fetchAbortedTransactionRecordBatches.
    """
    waiting = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
    producers: set[int] = set()
    found = []
    for batch in batches:
        if batch.producer_id == NO_PRODUCER:
            continue
        while waiting and waiting[-1].first_offset <= batch.last_offset:
            producers.add(waiting.pop().producer_id)
        if batch.is_abort_marker:
            producers.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in producers:
            found.append(batch)
    return found


def without_batches(
    acquired: Sequence[AcquiredRecords], batches: Sequence[FetchedBatch]
) -> list[AcquiredRecords]:
    """The acquired records that are in none of these batches; both are in ascending order.

    Source: SharePartition.filterRecordBatchesFromAcquiredRecords.
    """
    if not batches:
        return list(acquired)
    kept: list[AcquiredRecords] = []
    cutting = iter(batches)
    batch: FetchedBatch | None = next(cutting)
    for records in acquired:
        rest: AcquiredRecords | None = records
        while rest is not None:
            if batch is None:
                kept.append(rest)
                break
            last_offset = rest.last_offset
            rest = _cut(rest, batch, kept)
            if last_offset > batch.last_offset:
                batch = next(cutting, None)
    return kept


def _cut(
    records: AcquiredRecords, batch: FetchedBatch, kept: list[AcquiredRecords]
) -> AcquiredRecords | None:
    """Keep what is before a batch, and return what is after it."""
    if records.last_offset < batch.base_offset:
        kept.append(records)
        return None
    if records.first_offset > batch.last_offset:
        return records
    if records.first_offset < batch.base_offset:
        kept.append(
            AcquiredRecords(records.first_offset, batch.base_offset - 1, records.delivery_count)
        )
    if records.last_offset > batch.last_offset:
        return AcquiredRecords(batch.last_offset + 1, records.last_offset, records.delivery_count)
    return None
