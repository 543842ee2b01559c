"""Logs that keep their records: reading, counted runs, transactions, compaction."""

import pytest

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.records import EndTransactionMarker, LogBatch
from coordinator_sim.sim.data_messages import StoredRecord, StoredRun
from coordinator_sim.sim.record_log import RECORD_OVERHEAD_BYTES, RecordLog


def log_of(*keys: bytes) -> RecordLog:
    """A log with a record for each key, whose value is its number."""
    log = RecordLog(0)
    for number, key in enumerate(keys):
        log.append_records([(key, b"%d" % number)], now_ms=number)
    return log


def values(log: RecordLog, offset: int = 0, *, committed: bool = False) -> list[bytes | None]:
    """The values that a fetch from the offset brings."""
    part = log.read(offset, max_bytes=1 << 20, read_committed=committed)
    assert part is not None
    return [entry.value for entry in part.entries if isinstance(entry, StoredRecord)]


def end(log: RecordLog, producer_id: int, *, committed: bool) -> ErrorCode:
    """End a producer's transaction."""
    return log.append_marker(
        LogBatch(
            partition=0,
            base_offset=log.end_offset,
            timestamp_ms=0,
            records=(),
            producer_id=producer_id,
            producer_epoch=0,
            marker=EndTransactionMarker(committed=committed),
        )
    )


def test_a_fetch_brings_what_has_room() -> None:
    """The first record in any case; the position goes to the end with the last one."""
    log = log_of(b"a", b"b", b"c")
    part = log.read(0, max_bytes=1, read_committed=False)
    assert part is not None
    assert (part.next_offset, part.record_count) == (1, 1)
    assert part.size_bytes == 2 + RECORD_OVERHEAD_BYTES
    assert values(log, 1) == [b"1", b"2"]
    assert log.read(3, max_bytes=1, read_committed=False) is None


def test_compaction_keeps_the_last_of_each_key_and_its_offset() -> None:
    """A reader from the beginning steps over the holes."""
    log = log_of(b"a", b"b", b"a", b"b", b"c")
    assert log.compact() == 2
    assert values(log) == [b"2", b"3", b"4"]
    part = log.read(0, max_bytes=1, read_committed=False)
    assert part is not None
    assert part.next_offset == 3
    assert log.end_offset == 5


@pytest.mark.parametrize("span", [1_000_000, 3_000_007])
def test_a_run_is_read_in_pieces_that_make_the_whole(span: int) -> None:
    """No record is lost or read twice, whatever fetch sizes do to it."""
    log = log_of(b"first")
    log.append_run(1_000_000, 100_000_000, span)
    log.append_records([(b"last", b"x")], now_ms=0)
    at = count = size_bytes = 0
    fetches = 0
    while True:
        part = log.read(at, max_bytes=1 << 20, read_committed=False)
        if part is None:
            break
        assert part.size_bytes <= (1 << 20) + 110
        at, count, fetches = part.next_offset, count + part.record_count, fetches + 1
        size_bytes += sum(e.size_bytes for e in part.entries if isinstance(e, StoredRun))
    assert (at, count) == (span + 2, 1_000_002)
    assert 100 < fetches < 120
    assert size_bytes == pytest.approx(100_000_000, abs=fetches)


def test_readers_of_committed_records_wait_for_the_end_of_a_transaction() -> None:
    """What was aborted never comes; the position passes it and the markers."""
    log = log_of(b"a")
    log.append_records([(b"b", b"open")], now_ms=0, producer_id=7, producer_epoch=0)
    log.append_records([(b"c", b"plain")], now_ms=0)
    assert values(log, committed=True) == [b"0"]
    assert log.read(1, max_bytes=100, read_committed=True) is None
    assert values(log, 1) == [b"open", b"plain"]
    end(log, 7, committed=False)
    assert values(log, committed=True) == [b"0", b"plain"]
    log.append_records([(b"b", b"done")], now_ms=0, producer_id=8, producer_epoch=0)
    end(log, 8, committed=True)
    part = log.read(4, max_bytes=100, read_committed=True)
    assert part is not None
    assert part.next_offset == log.end_offset == 6


def test_a_marker_before_an_open_transaction_is_passed() -> None:
    """A reader of committed records moves on to where the transaction begins."""
    log = log_of(b"a")
    log.append_records([(b"b", b"x")], now_ms=0, producer_id=7, producer_epoch=0)
    end(log, 7, committed=True)
    log.append_records([(b"c", b"open")], now_ms=0, producer_id=8, producer_epoch=0)
    part = log.read(2, max_bytes=100, read_committed=True)
    assert part is not None
    assert (part.entries, part.next_offset) == ((), 3)
    assert log.read(3, max_bytes=100, read_committed=True) is None


def test_compaction_leaves_open_transactions_alone() -> None:
    """Nothing behind the first record of one goes, and an aborted record hides no other."""
    log = log_of(b"a", b"a")
    log.append_records([(b"a", b"open")], now_ms=0, producer_id=7, producer_epoch=0)
    log.append_records([(b"a", b"plain")], now_ms=0)
    assert log.compact() == 1
    assert values(log) == [b"1", b"open", b"plain"]
    end(log, 7, committed=False)
    assert log.compact() == 2
    assert values(log, committed=True) == [b"plain"]


def test_an_old_epoch_is_refused() -> None:
    """The log remembers the newest epoch of each producer."""
    log = RecordLog(0)
    log.append_records([(b"a", b"1")], now_ms=0, producer_id=7, producer_epoch=2)
    refused = log.append_records([(b"a", b"2")], now_ms=0, producer_id=7, producer_epoch=1)
    assert refused == (ErrorCode.INVALID_PRODUCER_EPOCH, -1)
    assert len(log.entries) == 1
