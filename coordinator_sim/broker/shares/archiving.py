"""Records that are archived without their members: behind the log's start, compacted, aborted.

Source: kafka 4.3.1, core/.../share/SharePartition.java.
"""

from collections.abc import Iterable

from coordinator_sim.broker.shares.in_flight_batch import InFlightBatch
from coordinator_sim.broker.shares.in_flight_records import InFlightRecords
from coordinator_sim.broker.shares.in_flight_state import RecordState


def move_log_start(records: InFlightRecords, log_start_offset: int) -> None:
    """The log begins later now: what was available before is archived.

    Records that members work on stay theirs until they give them up. Nothing is written; the next
    write has the new start offset.

    Source: SharePartition.updateCacheAndOffsets.
    """
    if log_start_offset <= records.start_offset:
        return
    if not len(records.batches):
        records.start_offset = records.end_offset = log_start_offset
        records.delivery_complete_count = 0
        return
    gone = _count_terminal_before(records, log_start_offset)
    if _archive(
        records.batches, (records.start_offset, log_start_offset - 1), RecordState.AVAILABLE
    ):
        records.has_released = True
    records.start_offset = log_start_offset
    records.delivery_complete_count -= gone
    records.end_offset = max(records.end_offset, log_start_offset)


def _count_terminal_before(records: InFlightRecords, offset: int) -> int:
    """Records from the start offset to an offset that are done with.

    Source: SharePartition.countTerminalRecordsUpToNewLSO.
    """
    count = 0
    for batch in records.batches:
        if batch.first_offset >= offset:
            break
        count += sum(
            records.count_from_start(first, min(offset - 1, last))
            for first, last, state in batch.parts()
            if state.state.is_terminal
        )
    return count


def archive_stale(records: InFlightRecords, fetch_offset: int, base_offset: int) -> None:
    """Archive available records that a fetch passed over: compaction took them.

    Source: SharePartition.maybeArchiveStaleBatches.
    """
    batches = records.batches
    if not len(batches) or fetch_offset >= base_offset:
        return
    floor = batches.floor(fetch_offset)
    first = fetch_offset
    if floor is not None and floor.last_offset >= fetch_offset:
        first = floor.first_offset
    stale = batches.beginning_in(first, base_offset - 1)
    archived = _archive(stale, (fetch_offset, base_offset - 1), RecordState.AVAILABLE)
    if archived:
        records.has_released = True
    records.delivery_complete_count += archived


def archive_acquired(
    records: InFlightRecords, batches: Iterable[InFlightBatch], offsets: tuple[int, int]
) -> None:
    """Archive what was just acquired in a range of offsets: it belongs to an aborted transaction.

    Source: SharePartition.filterAbortedTransactionalAcquiredRecords.
    """
    records.delivery_complete_count += _archive(batches, offsets, RecordState.ACQUIRED)


def _archive(batches: Iterable[InFlightBatch], offsets: tuple[int, int], only: RecordState) -> int:
    """Archive the records of a state in a range of offsets, and return how many there were.

    Source: SharePartition.archiveRecords.
    """
    first_offset, last_offset = offsets
    archived = 0
    for batch in batches:
        if batch.first_offset > last_offset:
            break
        if not batch.is_split:
            if batch.state.state is not only:
                continue
            if batch.is_within(first_offset, last_offset):
                batch.state.archive()
                archived += batch.size
                continue
        batch.split()
        for first, last, state in batch.runs_in(first_offset, last_offset):
            if state.state is only:
                state.archive()
                archived += last - first + 1
    return archived
