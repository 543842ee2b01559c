"""A store that counts records: reading by any limits, transactions beside them, compaction."""

import pytest

from coordinator_sim.log.counting_store import CountingStore
from coordinator_sim.log.format.counted_batches import counted_batch, counted_batches, declared_size
from coordinator_sim.log.format.record_batches import (
    HEADER_SIZE,
    Record,
    batch_of,
    encode_record_batch,
)
from coordinator_sim.log.format.segments import EncodedBatch
from coordinator_sim.log.format.stored_batches import next_batch
from coordinator_sim.log.log_config import LogConfig
from coordinator_sim.log.partition_log import PartitionLog
from coordinator_sim.messages.records import EndTransactionMarker

COMPACT = LogConfig(cleanup_policy="compact", segment_bytes=1 << 20)


def log_of(*keys: bytes) -> PartitionLog:
    """A log with a record for each key, whose value is its number."""
    log = PartitionLog("t", 0, CountingStore(), COMPACT)
    for number, key in enumerate(keys):
        put(log, key, b"%d" % number)
    return log


def put(log: PartitionLog, key: bytes, value: bytes, producer_id: int = -1) -> None:
    """Append a record as a producer does."""
    is_ours = producer_id >= 0
    batch = batch_of(
        (Record(offset=0, timestamp_ms=0, key=key, value=value),),
        producer_id=producer_id,
        producer_epoch=0 if is_ours else -1,
        base_sequence=0 if is_ours else -1,
        transactional=is_ours,
    )
    assert log.append(encode_record_batch(batch), now_ms=0, leader_epoch=0).base_offset >= 0


def put_counted(log: PartitionLog, count: int, value_bytes: int, span: int | None = None) -> None:
    """Append records that are only counted."""
    for each in counted_batches(log.end_offset, count, span=span or count, value_bytes=value_bytes):
        encoded = EncodedBatch(each.base_offset, each.next_offset, each.header())
        log.append_encoded(encoded, now_ms=0)


def values(log: PartitionLog, *, committed: bool = False) -> list[bytes | None]:
    """The values of all records that are not only counted, aborted ones as well."""
    found: list[bytes | None] = []
    at = 0
    while data := log.read(at, max_bytes=1 << 20, read_committed=committed).records:
        counted = counted_batch(data)
        at = at if counted is None else counted.next_offset
        position = 0
        while (batch := next_batch(data, position)) is not None:
            position += batch.size
            at = batch.next_offset
            found += [] if batch.control else [record.value for record in batch.records()]
    return found


@pytest.mark.parametrize("span", [1_000_000, 3_000_007])
def test_counted_records_are_read_in_pieces_that_make_the_whole(span: int) -> None:
    """No record is lost or read twice, whatever fetch sizes do to it."""
    log = log_of(b"first")
    put_counted(log, 1_000_000, 100, span)
    put(log, b"last", b"x")
    assert log.size_bytes > 110_000_000
    at, count, size_bytes, fetches = 1, 0, 0, 0
    while (read := counted_batch(log.read(at, max_bytes=1 << 20).records)) is not None:
        assert declared_size(read.header()) <= 1 << 20
        assert read.base_offset == at
        at, count, size_bytes = read.next_offset, count + read.count, size_bytes + read.size_bytes
        fetches += 1
    assert (at, count, size_bytes) == (span + 1, 1_000_000, 110_000_000)
    assert 100 < fetches < 120
    assert values(log) == [b"0", b"x"]


def test_more_bytes_than_a_header_can_say_are_several_batches() -> None:
    """Thirty million records of a hundred bytes are three gigabytes, in one partition."""
    found = list(counted_batches(0, 30_000_000, span=5_000_000_000, value_bytes=100))
    assert sum(each.count for each in found) == 30_000_000
    assert [found[0].base_offset, found[-1].next_offset] == [0, 5_000_000_000]
    assert sum(each.size_bytes for each in found) == 3_300_000_000
    assert [counted_batch(each.header()) for each in found] == found


def test_an_empty_batch_is_no_counted_one() -> None:
    """What the cleaner leaves of a batch is a header as well, but of no records."""
    (sparse, *_) = counted_batches(0, 1, span=5_000_000_000, value_bytes=1)
    assert sparse.count == 0
    assert counted_batch(sparse.header()) is None
    assert declared_size(sparse.header()) == HEADER_SIZE
    log = PartitionLog("t", 0, CountingStore(), COMPACT)
    put_counted(log, 1, 1, 5_000_000_000)
    assert log.end_offset == 5_000_000_000


def test_a_first_batch_beyond_the_limit_is_left_out_if_one_is_not_due() -> None:
    """A counted batch has the size that it declares."""
    log = log_of()
    put_counted(log, 5, 1_000)
    assert log.read(0, max_bytes=100, min_one_batch=False).records == b""
    part = counted_batch(log.read(0, max_bytes=100).records)
    assert part is not None
    assert (part.count, part.size_bytes) == (1, 1_010)


def test_compaction_keeps_counted_records_and_the_last_of_each_key() -> None:
    """Offsets stay; a second pass changes nothing."""
    log = log_of(b"a", b"b")
    put_counted(log, 1_000, 10, 2_000)
    for key in (b"a", b"c", b"c"):
        put(log, key, b"new " + key)
    for _ in range(2):
        log.compact(now_ms=1)
        assert values(log) == [b"1", b"new a", b"new c"]
        read = counted_batch(log.read(2, max_bytes=1 << 20).records)
        assert read is not None
        assert (read.base_offset, read.next_offset, read.count) == (2, 2_002, 1_000)
    assert log.end_offset == 2_005


def test_compaction_leaves_open_transactions_alone() -> None:
    """Nothing behind the first record of one goes, and an aborted record hides no other."""
    log = log_of(b"a", b"a")
    put(log, b"a", b"open", producer_id=7)
    put(log, b"a", b"plain")
    log.compact(now_ms=0)
    assert values(log) == [b"0", b"1", b"open", b"plain"]
    log.append_marker(
        7, 0, EndTransactionMarker(committed=False, coordinator_epoch=0), now_ms=0, leader_epoch=0
    )
    log.compact(now_ms=0)
    assert values(log, committed=True) == [b"plain"]


def test_a_log_that_is_cut_keeps_whole_counted_batches() -> None:
    """As of other batches; a deleted log has none."""
    log = log_of(b"a")
    put_counted(log, 10, 1)
    put_counted(log, 10, 1)
    put(log, b"b", b"x")
    log.truncate_to(15, now_ms=0)
    assert log.end_offset == 15
    assert counted_batch(log.read(1, max_bytes=1 << 20).records) is not None
    assert log.read(11, max_bytes=1 << 20).records == b""
    log.delete()
    assert log.read(0, max_bytes=1 << 20).records == b""


def test_counted_batches_go_with_their_segment() -> None:
    """Deletion of old records deletes counted ones too."""
    store = CountingStore()
    log = PartitionLog("t", 0, store, LogConfig())
    put_counted(log, 10, 1)
    put(log, b"a", b"x")
    store.roll(log.end_offset)
    put_counted(log, 5, 1)
    log.delete_before(11)
    assert [segment.size_bytes for segment in store.segments()] == [5 * 11]
    assert store.read(0, 1 << 20, before_offset=11) == b""
