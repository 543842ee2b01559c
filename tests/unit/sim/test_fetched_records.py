"""What a consumer makes of the bytes that a log returned."""

import pytest

from coordinator_sim.connect.effects import TopicRecord
from coordinator_sim.log.counting_store import CountingStore
from coordinator_sim.log.format.record_batches import Record, batch_of, encode_record_batch
from coordinator_sim.log.partition_log import PartitionLog
from coordinator_sim.messages.fetch import AbortedTransaction, PartitionData
from coordinator_sim.messages.records import EndTransactionMarker
from coordinator_sim.sim.data_plane import FetchedPart, fetched_part


def put(log: PartitionLog, *values: bytes, producer_id: int = -1, sequence: int = -1) -> None:
    """Append a batch, of a transaction if it has a producer."""
    records = tuple(
        Record(offset=index, timestamp_ms=7, key=None, value=value)
        for index, value in enumerate(values)
    )
    batch = batch_of(
        records,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=sequence,
        transactional=producer_id >= 0,
    )
    assert log.append(encode_record_batch(batch), now_ms=0, leader_epoch=0).base_offset >= 0


def end(log: PartitionLog, producer_id: int, *, committed: bool) -> None:
    """End a producer's transaction."""
    marker = EndTransactionMarker(committed=committed, coordinator_epoch=0)
    log.append_marker(producer_id, 0, marker, now_ms=0, leader_epoch=0)


def read(log: PartitionLog, position: int, *, committed: bool = True) -> FetchedPart | None:
    """What a consumer takes from one fetch."""
    found = log.read(position, max_bytes=1 << 20, read_committed=committed)
    aborted = tuple(
        AbortedTransaction(each.producer_id, each.first_offset) for each in found.aborted or ()
    )
    answer = PartitionData(3, records=found.records, aborted_transactions=aborted)
    return fetched_part(answer, position)


def values(part: FetchedPart | None) -> list[bytes | None]:
    """The values of the records."""
    assert part is not None
    return [each.value for each in part.records if isinstance(each, TopicRecord)]


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_batch_may_begin_before_the_position(position: int) -> None:
    """A log returns whole batches; records before the position are passed over."""
    log = PartitionLog("t", 3, CountingStore())
    put(log, b"a", b"b", b"c")
    part = read(log, position)
    assert part is not None
    assert values(part) == [b"a", b"b", b"c"][position:]
    assert (part.next_offset, part.record_count) == (3, 3 - position)
    assert part.records[0] == TopicRecord(
        partition=3,
        offset=position,
        key=None,
        value=b"abc"[position : position + 1],
        timestamp_ms=7,
    )


def test_aborted_records_are_passed_over_and_committed_ones_of_the_same_producer_are_not() -> None:
    """A marker ends the abortion; plain records in between are nobody's transaction."""
    log = PartitionLog("t", 3, CountingStore())
    put(log, b"gone", producer_id=9, sequence=0)
    put(log, b"plain")
    end(log, 9, committed=False)
    put(log, b"kept", producer_id=9, sequence=1)
    end(log, 9, committed=True)
    part = read(log, 0)
    assert values(part) == [b"plain", b"kept"]
    assert part is not None
    assert part.next_offset == log.end_offset == 5
    assert values(read(log, 0, committed=False)) == [b"gone", b"plain", b"kept"]


def test_markers_alone_move_the_position() -> None:
    """Nothing is handed over, but the next fetch begins after them."""
    log = PartitionLog("t", 3, CountingStore())
    put(log, b"gone", producer_id=9, sequence=0)
    end(log, 9, committed=False)
    assert read(log, 1) == FetchedPart(
        partition=3, records=(), next_offset=2, size_bytes=78, record_count=0
    )
    assert read(log, 2) is None
