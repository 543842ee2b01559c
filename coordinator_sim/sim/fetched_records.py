"""What a consumer makes of a partition's bytes in a Fetch response.

Source: kafka trunk, clients/.../consumer/internals/CompletedFetch.java.
"""

from collections import deque

from msgspec import Struct

from coordinator_sim.connect.effects import RecordRun, TopicRecord
from coordinator_sim.log.format.counted_batches import counted_batch, declared_size
from coordinator_sim.log.format.log_batches import marker_of
from coordinator_sim.log.spans import batches_in
from coordinator_sim.messages.fetch import AbortedTransaction, PartitionData


class FetchedPart(Struct, frozen=True, kw_only=True):
    """What was read of one partition.

    Args:
        next_offset: The position afterwards, past holes, markers and aborted records.
        size_bytes: Size on the wire.
        record_count: Number of records, those of runs included.
    """

    partition: int
    records: tuple[TopicRecord | RecordRun, ...]
    next_offset: int
    size_bytes: int
    record_count: int


def fetched_part(answer: PartitionData, position: int) -> FetchedPart | None:
    """Read a partition's answer; None if it has no records.

    Args:
        answer: The answer, without an error; it names aborted transactions if they are to be
            passed over.
        position: The offset that was asked for; a batch may begin before it.
    """
    data, partition = answer.records, answer.partition_index
    if not data:
        return None
    counted = counted_batch(data)
    if counted is not None:
        run = RecordRun(
            partition=partition,
            first_offset=counted.base_offset,
            count=counted.count,
            size_bytes=counted.size_bytes,
        )
        return FetchedPart(
            partition=partition,
            records=(run,),
            next_offset=counted.next_offset,
            size_bytes=declared_size(data),
            record_count=counted.count,
        )
    records, next_offset = _records(data, partition, position, answer.aborted_transactions or ())
    return FetchedPart(
        partition=partition,
        records=records,
        next_offset=next_offset,
        size_bytes=len(data),
        record_count=len(records),
    )


def _records(
    data: bytes, partition: int, position: int, aborted: tuple[AbortedTransaction, ...]
) -> tuple[tuple[TopicRecord, ...], int]:
    """The records from a position on, and the offset after the last batch."""
    found: list[TopicRecord] = []
    to_begin = deque(sorted(aborted, key=lambda each: each.first_offset))
    aborting: set[int] = set()
    for batch in batches_in(data):
        while to_begin and to_begin[0].first_offset <= batch.last_offset:
            aborting.add(to_begin.popleft().producer_id)
        if batch.control:
            marker = marker_of(batch)
            if marker is not None and not marker.committed:
                aborting.discard(batch.producer_id)
        elif not (batch.transactional and batch.producer_id in aborting):
            found.extend(
                TopicRecord(
                    partition=partition,
                    offset=record.offset,
                    key=record.key,
                    value=record.value,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in batch.records()
                if record.offset >= position
            )
        position = max(position, batch.next_offset)
    return tuple(found), position
