"""A partition's log in memory: what it takes, refuses and gives back."""

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.format import record_batches
from coordinator_sim.log.format.compression import Compression
from coordinator_sim.log.format.record_batches import Record
from coordinator_sim.log.log_config import LogConfig
from coordinator_sim.log.log_values import Appended, OffsetSpec, TimedOffset
from coordinator_sim.log.memory_store import MemoryStore
from coordinator_sim.log.partition_log import PartitionLog
from coordinator_sim.log.spans import batches_in
from coordinator_sim.messages.records import EndTransactionMarker

NOW_MS = 1_700_000_000_000
COMMIT = EndTransactionMarker(committed=True, coordinator_epoch=1)
ABORT = EndTransactionMarker(committed=False, coordinator_epoch=1)


def batch(
    *values: bytes, key: bytes | None = b"k", at_ms: int = NOW_MS, **settings: object
) -> bytes:
    """A batch as a producer sends it: offsets from 0."""
    records = tuple(
        Record(offset=offset, timestamp_ms=at_ms, key=key, value=value)
        for offset, value in enumerate(values)
    )
    return record_batches.encode_record_batch(record_batches.batch_of(records, **settings))


def make_log(**config: object) -> PartitionLog:
    """An empty log of partition t-0."""
    return PartitionLog("t", 0, MemoryStore(), LogConfig(**config))  # type: ignore[arg-type]


def send(log: PartitionLog, records: bytes, version: int = 9) -> Appended:
    """Append as the leader of epoch 3."""
    return log.append(records, now_ms=NOW_MS, leader_epoch=3, produce_version=version)


def decoded(data: bytes) -> list[record_batches.RecordBatch]:
    """All batches as values."""
    return [found.decoded() for found in batches_in(data)]


def test_append_gives_offsets_and_the_leader_epoch() -> None:
    """Batches get consecutive offsets and the epoch of the leader; the rest stays as it was."""
    log = make_log()
    assert send(log, batch(b"a", b"b")).base_offset == 0
    appended = send(log, batch(b"c"))
    assert (appended.error, appended.base_offset, log.end_offset) == (ErrorCode.NONE, 2, 3)
    found = decoded(log.read(0, max_bytes=10_000).records)
    assert [one.base_offset for one in found] == [0, 2]
    assert {one.leader_epoch for one in found} == {3}
    assert [record.value for one in found for record in one.records] == [b"a", b"b", b"c"]
    assert all(one.is_valid for one in batches_in(log.read(0, max_bytes=10_000).records))


def test_damaged_batch_is_corrupt() -> None:
    """A batch whose checksum is wrong is refused, and nothing is appended."""
    log = make_log()
    damaged = bytearray(batch(b"abc"))
    damaged[-1] ^= 1
    assert send(log, bytes(damaged)).error is ErrorCode.CORRUPT_MESSAGE
    assert log.end_offset == 0


def test_sizes_are_limited() -> None:
    """Batches above max.message.bytes and above segment.bytes have errors of their own."""
    large = batch(b"x" * 500)
    assert send(make_log(max_message_bytes=400), large).error is ErrorCode.MESSAGE_TOO_LARGE
    assert send(make_log(segment_bytes=400), large).error is ErrorCode.RECORD_LIST_TOO_LARGE


def test_compacted_topic_names_the_records_without_key() -> None:
    """A record without a key fails the whole batch, and the answer says which one."""
    refused = send(make_log(cleanup_policy="compact"), batch(b"a", key=None))
    assert refused.error is ErrorCode.INVALID_RECORD
    assert [error.index for error in refused.record_errors] == [0]
    assert "t-0" in refused.record_errors[0].message


def test_timestamps_have_bounds() -> None:
    """A record from more than an hour ahead is refused by default, an old one is not."""
    log = make_log()
    assert send(log, batch(b"a", at_ms=NOW_MS + 3_600_001)).error is ErrorCode.INVALID_TIMESTAMP
    assert send(log, batch(b"a", at_ms=1)).error is ErrorCode.NONE


def test_log_append_time_stamps_the_batch() -> None:
    """LogAppendTime: every record has the instant of the append, and the CRC is right."""
    log = make_log(message_timestamp_type="LogAppendTime")
    assert send(log, batch(b"a", at_ms=1)).log_append_time_ms == NOW_MS
    (found,) = batches_in(log.read(0, max_bytes=1000).records)
    assert found.is_valid
    assert [record.timestamp_ms for record in found.records()] == [NOW_MS]


def test_compression_type_of_the_topic_wins() -> None:
    """A topic with a codec of its own stores batches in that."""
    log = make_log(compression_type="gzip")
    send(log, batch(b"a" * 100, compression=Compression.LZ4))
    (found,) = batches_in(log.read(0, max_bytes=1000).records)
    assert (found.codec, found.is_valid) == (Compression.GZIP, True)
    assert found.records()[0].value == b"a" * 100


def test_idempotent_producer_is_not_counted_twice() -> None:
    """The same batch again is answered with its old offsets; a gap or an old epoch is refused."""
    log = make_log()
    first = batch(b"a", b"b", producer_id=7, producer_epoch=1, base_sequence=0)
    assert send(log, first).base_offset == 0
    again = send(log, first)
    assert (again.is_duplicate, again.base_offset, again.last_offset) == (True, 0, 1)
    gap = batch(b"c", producer_id=7, producer_epoch=1, base_sequence=5)
    assert send(log, gap).error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    old = batch(b"c", producer_id=7, producer_epoch=0, base_sequence=2)
    assert send(log, old).error is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.end_offset == 2


def test_a_new_epoch_per_transaction_begins_at_sequence_0() -> None:
    """From Produce 12 on an unknown producer cannot go on in a transaction; before, it can."""
    data = batch(b"t", producer_id=7, producer_epoch=3, base_sequence=5, transactional=True)
    refused = send(make_log(), data, version=12)
    assert refused.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(make_log(), data, version=11).error is ErrorCode.NONE


def test_open_transaction_hides_what_follows_from_readers_of_committed_records() -> None:
    """The last stable offset stays at an open transaction; its abort is told to readers."""
    log = make_log()
    send(log, batch(b"plain"))
    send(log, batch(b"t", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True))
    send(log, batch(b"behind"))
    assert (log.last_stable_offset, log.high_watermark) == (1, 3)
    assert len(decoded(log.read(0, max_bytes=9999, read_committed=True).records)) == 1
    ended = log.append_marker(7, 0, ABORT, now_ms=NOW_MS, leader_epoch=3)
    assert (ended.base_offset, log.last_stable_offset) == (3, 4)
    aborted = log.read(0, max_bytes=9999, read_committed=True).aborted
    assert aborted is not None
    assert [(one.producer_id, one.first_offset) for one in aborted] == [(7, 1)]


def test_zombie_coordinator_is_fenced() -> None:
    """A marker of an older coordinator or an older producer epoch is refused."""
    log = make_log()
    assert log.append_marker(7, 2, COMMIT, now_ms=NOW_MS, leader_epoch=3).error is ErrorCode.NONE
    older = EndTransactionMarker(committed=True, coordinator_epoch=0)
    refused = log.append_marker(7, 2, older, now_ms=NOW_MS, leader_epoch=3)
    assert refused.error is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    refused = log.append_marker(7, 1, COMMIT, now_ms=NOW_MS, leader_epoch=3)
    assert refused.error is ErrorCode.INVALID_PRODUCER_EPOCH


def test_markers_of_newer_transactions_have_an_epoch_above_the_records() -> None:
    """From transaction version 2 on an equal epoch is late, but for the same marker sent again."""
    log = make_log()
    send(log, batch(b"t", producer_id=7, producer_epoch=4, base_sequence=0, transactional=True))

    def ended(epoch: int, version: int) -> ErrorCode:
        told = log.append_marker(
            7, epoch, COMMIT, now_ms=NOW_MS, leader_epoch=3, transaction_version=version
        )
        return told.error

    assert ended(4, 2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.has_open_transaction(7, 4)
    assert ended(5, 2) is ErrorCode.NONE
    assert ended(5, 2) is ErrorCode.NONE
    assert ended(4, 1) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_read_outside_the_log_is_out_of_range() -> None:
    """Offsets before the start and after the end are refused, the end itself is empty."""
    log = make_log()
    send(log, batch(b"a"))
    assert log.read(2, max_bytes=1).error is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.read(1, max_bytes=1).records == b""
    assert log.delete_before(-1) is ErrorCode.NONE
    assert log.read(0, max_bytes=1).error is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_large_first_batch_comes_whole_only_where_that_is_wished() -> None:
    """One batch at least, or none when the reader has something of another partition already."""
    log = make_log()
    send(log, batch(b"x" * 1000))
    assert len(log.read(0, max_bytes=10).records) > 1000
    cut = log.read(0, max_bytes=10, min_one_batch=False)
    assert (cut.records, len(cut.cut_off)) == (b"", 10)


def test_held_high_watermark_hides_the_end() -> None:
    """With the high watermark held, readers and ListOffsets see nothing beyond it."""
    log = make_log()
    send(log, batch(b"a"))
    log.hold_high_watermark(1)
    send(log, batch(b"b"))
    assert log.read(1, max_bytes=1000).records == b""
    assert log.offset_for_timestamp(OffsetSpec.LATEST).offset == 1
    log.hold_high_watermark(None)
    assert log.high_watermark == 2


def test_offsets_by_time() -> None:
    """The first record that is not older; positions by their negative names."""
    log = make_log()
    for at_ms in (100, 300, 200):
        send(log, batch(b"a", at_ms=at_ms))
    assert log.offset_for_timestamp(150) == TimedOffset(300, 1, 3)
    assert log.offset_for_timestamp(301) == TimedOffset()
    assert log.offset_for_timestamp(OffsetSpec.EARLIEST) == TimedOffset(-1, 0, 3)
    assert log.offset_for_timestamp(OffsetSpec.LATEST) == TimedOffset(-1, 3, 3)
    assert log.offset_for_timestamp(OffsetSpec.MAX_TIMESTAMP) == TimedOffset(300, 1, 3)


def test_epochs_end_where_the_next_begins() -> None:
    """OffsetForLeaderEpoch: the end of the largest epoch that is not above the asked one."""
    log = make_log()
    send(log, batch(b"a"))
    log.become_leader(6)
    log.append(batch(b"b"), now_ms=NOW_MS, leader_epoch=6)
    ends = [log.end_offset_for_epoch(epoch) for epoch in (2, 3, 5, 7)]
    assert [(end.leader_epoch, end.end_offset) for end in ends] == [
        (2, 0), (3, 1), (3, 1), (-1, -1)
    ]  # fmt: skip


def test_reopened_log_knows_its_producers_epochs_and_aborted_transactions() -> None:
    """A log over a store that holds batches already goes on where it ended."""
    store = MemoryStore()
    log = PartitionLog("t", 0, store)
    data = batch(b"t", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    send(log, data)
    log.append_marker(7, 0, ABORT, now_ms=NOW_MS, leader_epoch=3)
    again = PartitionLog("t", 0, store, now_ms=NOW_MS)
    assert (again.end_offset, again.leader_epoch, again.last_stable_offset) == (2, 3, 2)
    assert again.producers() == log.producers()
    assert again.read(0, max_bytes=999, read_committed=True).aborted
    assert send(again, data).is_duplicate


def test_a_transaction_that_ended_above_the_high_watermark_still_hides() -> None:
    """Readers of committed records wait until the marker is below the high watermark."""
    log = make_log()
    send(log, batch(b"a"))
    log.hold_high_watermark(1)
    for producer_id in (7, 8):
        data = batch(
            b"t", producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True
        )
        send(log, data)
    # The later one ends first.
    for producer_id in (8, 7):
        log.append_marker(producer_id, 0, COMMIT, now_ms=NOW_MS, leader_epoch=3)
    assert log.last_stable_offset == 1
    log.hold_high_watermark(4)
    assert log.last_stable_offset == 1
    log.hold_high_watermark(None)
    assert log.last_stable_offset == 5


def test_truncation_forgets_producers_and_epochs_behind() -> None:
    """What was cut off may be sent again; the epoch that began there is unknown."""
    log = make_log()
    first = batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0)
    second = batch(b"b", producer_id=7, producer_epoch=0, base_sequence=1)
    send(log, first)
    log.append(second, now_ms=NOW_MS, leader_epoch=4)
    log.truncate_to(1, now_ms=NOW_MS)
    assert (log.end_offset, log.leader_epoch) == (1, 3)
    assert send(log, first).is_duplicate
    assert send(log, second).base_offset == 1


def test_markers_are_stamped_where_the_topic_stamps() -> None:
    """LogAppendTime is told of markers too, as in Kafka."""
    log = make_log(message_timestamp_type="LogAppendTime")
    ended = log.append_marker(7, 0, COMMIT, now_ms=NOW_MS, leader_epoch=3)
    assert ended.log_append_time_ms == NOW_MS
    (marker,) = batches_in(log.read(0, max_bytes=999).records)
    assert (marker.is_valid, marker.timestamp_type) == (
        True,
        record_batches.TimestampType.LOG_APPEND_TIME,
    )
