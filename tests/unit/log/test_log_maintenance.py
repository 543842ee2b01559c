"""What goes of a log by itself: old segments, superseded records, forgotten producers."""

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.format.log_batches import decode_batches
from coordinator_sim.log.format.record_batches import Record, batch_of, encode_record_batch
from coordinator_sim.log.log_config import LogConfig, config_of
from coordinator_sim.log.memory_store import MemoryStore
from coordinator_sim.log.partition_log import PartitionLog
from coordinator_sim.log.spans import batches_in
from coordinator_sim.messages.group_records import OffsetCommitKey, OffsetCommitValue
from coordinator_sim.messages.records import EndTransactionMarker, LogBatch, LogRecord

NOW_MS = 1_700_000_000_000
DAY_MS = 86_400_000
ABORT = EndTransactionMarker(committed=False)


def batch(key: bytes, value: bytes | None, at_ms: int = NOW_MS, **settings: object) -> bytes:
    """One record as a producer sends it."""
    record = Record(offset=0, timestamp_ms=at_ms, key=key, value=value)
    return encode_record_batch(batch_of((record,), **settings))


def make_log(**config: object) -> PartitionLog:
    """An empty log of partition t-0."""
    return PartitionLog("t", 0, MemoryStore(), LogConfig(**config))  # type: ignore[arg-type]


def send(log: PartitionLog, records: bytes, now_ms: int = NOW_MS) -> None:
    """Append, and see that it worked."""
    appended = log.append(records, now_ms=now_ms, leader_epoch=0)
    assert appended.error is ErrorCode.NONE


def values(log: PartitionLog) -> list[tuple[int, bytes | None, bytes | None]]:
    """Offset, key and value of all records that are left, markers aside."""
    return [
        (record.offset, record.key, record.value)
        for data in log.chunks()
        for found in batches_in(data)
        if not found.control
        for record in found.records()
    ]


def maintain(log: PartitionLog, now_ms: int = NOW_MS) -> None:
    """All that is due."""
    log.expire_producers(now_ms)
    log.maintain_retention(now_ms)
    while log.clean_some(now_ms):
        pass


def test_old_segments_go_by_time() -> None:
    """Segments whose newest record is older than retention.ms go, the active one too."""
    log = make_log(segment_bytes=100, retention_ms=DAY_MS)
    send(log, batch(b"a", b"1"))
    send(log, batch(b"b", b"2", NOW_MS + DAY_MS // 2), NOW_MS + DAY_MS // 2)
    maintain(log, NOW_MS + DAY_MS + 1)
    assert (log.log_start_offset, log.end_offset) == (1, 2)
    maintain(log, NOW_MS + 2 * DAY_MS)
    assert (log.log_start_offset, log.end_offset, log.size_bytes) == (2, 2, 0)
    send(log, batch(b"c", b"3"))
    assert log.end_offset == 3


def test_segments_go_by_size() -> None:
    """The oldest go while what is left is still at least retention.bytes."""
    log = make_log(segment_bytes=100, retention_bytes=150)
    for value in (b"1", b"2", b"3", b"4"):
        send(log, batch(b"a", value))
    size = len(batch(b"a", b"1"))
    maintain(log)
    assert log.size_bytes >= 150
    assert log.size_bytes - size < 150


def test_nothing_goes_beyond_the_high_watermark() -> None:
    """A segment that followers have not caught up with stays, however old."""
    log = make_log(segment_bytes=100, retention_ms=1)
    log.hold_high_watermark(1)
    send(log, batch(b"a", b"1"))
    send(log, batch(b"b", b"2"))
    maintain(log, NOW_MS + DAY_MS)
    assert log.log_start_offset == 1


def test_of_each_key_the_last_record_stays() -> None:
    """Compaction keeps offsets and the newest value; the active segment is not touched."""
    log = make_log(cleanup_policy="compact", segment_bytes=400)
    for number in range(40):
        send(log, batch(b"k%d" % (number % 3), b"v%d" % number))
    before = {key: value for _, key, value in values(log)}
    size = log.size_bytes
    maintain(log)
    assert log.size_bytes < size / 3
    assert {key: value for _, key, value in values(log)} == before
    assert all(int(value[1:]) == offset for offset, _, value in values(log) if value)
    assert log.end_offset == 40


def test_tombstones_stay_for_a_while() -> None:
    """A deleted key's tombstone goes with a pass after delete.retention.ms, not before."""
    log = make_log(cleanup_policy="compact", segment_bytes=150, delete_retention_ms=1000)
    send(log, batch(b"gone", b"1"))
    send(log, batch(b"gone", None))
    for number in range(6):
        send(log, batch(b"k", b"%d" % number))
    maintain(log)
    assert [entry for entry in values(log) if entry[1] == b"gone"] == [(1, b"gone", None)]
    for number in range(12):
        send(log, batch(b"k", b"%d" % number))
    maintain(log, NOW_MS + 2000)
    assert [entry for entry in values(log) if entry[1] == b"gone"] == []


def test_records_of_aborted_transactions_go() -> None:
    """What was aborted supersedes nothing and goes with the next pass."""
    log = make_log(cleanup_policy="compact", segment_bytes=200)
    send(log, batch(b"a", b"committed"))
    send(
        log, batch(b"a", b"x", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    )
    log.append_marker(1, 0, ABORT, now_ms=NOW_MS, leader_epoch=0)
    for number in range(9):
        send(log, batch(b"b", b"%d" % number))
    maintain(log)
    assert [entry for entry in values(log) if entry[1] == b"a"] == [(0, b"a", b"committed")]


def test_readers_are_not_told_of_aborts_that_are_gone() -> None:
    """Once marker and data of an aborted transaction went, what its producer wrote since counts."""
    log = make_log(cleanup_policy="compact", segment_bytes=150, delete_retention_ms=0)
    for sequence, ends in enumerate((ABORT, EndTransactionMarker(committed=True))):
        data = batch(
            b"a", b"x", producer_id=1, producer_epoch=0, base_sequence=sequence, transactional=True
        )
        send(log, data)
        log.append_marker(1, 0, ends, now_ms=NOW_MS, leader_epoch=0)
    for passes in range(3):
        for number in range(6):
            send(log, batch(b"b", b"%d" % number))
        maintain(log, NOW_MS + passes + 1)
    read = log.read(0, max_bytes=9999, read_committed=True)
    assert read.aborted == ()


def test_a_pass_stops_at_an_open_transaction() -> None:
    """The segment in which an open transaction begins, and those behind, are not cleaned."""
    log = make_log(cleanup_policy="compact", segment_bytes=80)
    send(
        log, batch(b"a", b"x", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    )
    for number in range(9):
        send(log, batch(b"b", b"%d" % number))
    maintain(log)
    assert len(values(log)) == 10


def test_commits_do_not_fill_the_memory() -> None:
    """A million commits of the same offsets leave some thousand batches, the newest among them."""
    log = make_log(cleanup_policy="compact")
    for number in range(20_000):
        value = OffsetCommitValue(offset=number)
        records = tuple(
            LogRecord(OffsetCommitKey(f"g{number % 7}", "t", partition), value, 4)
            for partition in range(3)
        )
        committed = LogBatch(
            partition=0, base_offset=log.end_offset, timestamp_ms=NOW_MS, records=records
        )
        assert log.append_batch(committed, now_ms=NOW_MS) is ErrorCode.NONE
    assert log.size_bytes < 9000 * 400
    found = {
        record.key: record.value
        for data in log.chunks()
        for decoded in decode_batches(data, 0)
        for record in decoded.records
    }
    newest = {f"g{number % 7}": number for number in range(19_993, 20_000)}
    assert len(found) == 21
    for key, value in found.items():
        assert isinstance(key, OffsetCommitKey)
        assert isinstance(value, OffsetCommitValue)
        assert value.offset == newest[key.group]


def test_silent_producers_are_forgotten() -> None:
    """A producer that wrote nothing for producer.id.expiration.ms may begin at any sequence."""
    log = make_log()
    send(log, batch(b"a", b"1", producer_id=1, producer_epoch=0, base_sequence=0))
    maintain(log, NOW_MS + DAY_MS)
    assert log.producers() == ()
    send(log, batch(b"a", b"1", producer_id=1, producer_epoch=0, base_sequence=77))


def test_settings_have_kafkas_names() -> None:
    """A topic's settings become a config; what is about no log is passed over."""
    config = config_of({"retention.ms": "5", "cleanup.policy": "compact", "other": "x"})
    assert (config.retention_ms, config.is_compacted, config.deletes) == (5, True, False)
