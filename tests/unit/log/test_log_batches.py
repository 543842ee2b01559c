"""Batches of the offsets log to bytes and back; real segments."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from coordinator_sim.errors import WireFormatError
from coordinator_sim.log.format import log_batches
from coordinator_sim.log.format.compression import Compression
from coordinator_sim.log.format.offsets_records import encode_key
from coordinator_sim.log.format.record_batches import Record, batch_of, encode_record_batch
from coordinator_sim.log.format.segments import CorruptSegmentError, SegmentReader, roll_segments
from coordinator_sim.messages import group_records
from coordinator_sim.messages.records import (
    EndTransactionMarker,
    LogBatch,
    LogRecord,
    OpaqueKey,
    OpaqueValue,
)

REPO = Path(__file__).resolve().parents[3]
SAMPLES = REPO.parent / "shared" / "samples" / "offsets-segments"
NOW_MS = 1_700_000_000_000


def committed(partition: int, offset: int, version: int = 3) -> LogRecord:
    """An offset of group g."""
    value = group_records.OffsetCommitValue(offset=offset, commit_timestamp=NOW_MS)
    return LogRecord(group_records.OffsetCommitKey("g", "t", partition), value, version)


GROUP = LogRecord(
    group_records.GroupMetadataKey("g"),
    group_records.GroupMetadataValue(
        protocol_type="consumer",
        generation=1,
        protocol=None,
        leader=None,
        current_state_timestamp=NOW_MS,
    ),
    3,
)
TOMBSTONE = LogRecord(group_records.OffsetCommitKey("g", "t", 0), None, 0)
FOREIGN = LogRecord(OpaqueKey(3, b"\x00\x01g"), OpaqueValue(b"\x00\x00\x01"), 0)


def batch(base_offset: int, *records: LogRecord, producer_id: int = -1) -> LogBatch:
    """A batch of partition 7, transactional when it has a producer."""
    return LogBatch(
        partition=7,
        base_offset=base_offset,
        timestamp_ms=NOW_MS,
        records=records,
        producer_id=producer_id,
        producer_epoch=-1 if producer_id < 0 else 2,
        transactional=producer_id >= 0,
    )


def marker(base_offset: int, *, committed: bool) -> LogBatch:
    """The end of producer 4000's transaction."""
    return LogBatch(
        partition=7,
        base_offset=base_offset,
        timestamp_ms=NOW_MS,
        records=(),
        producer_id=4000,
        producer_epoch=2,
        transactional=True,
        marker=EndTransactionMarker(committed=committed, coordinator_epoch=11),
        control=True,
    )


LOG = (
    batch(0, GROUP, committed(0, 5)),
    batch(2, committed(1, 6, version=4), producer_id=4000),
    marker(3, committed=True),
    batch(4, TOMBSTONE, FOREIGN),
    marker(6, committed=False),
)


def joined(log: tuple[LogBatch, ...], form: log_batches.BatchForm) -> bytes:
    """A log as one segment."""
    return b"".join(data for _, data in roll_segments(log_batches.encode_log(log, form)))


@pytest.mark.parametrize("codec", Compression)
def test_a_log_reads_back_as_it_was_written(codec: Compression) -> None:
    """Groups, offsets, tombstones, transactions, markers and foreign records, in all codecs."""
    data = joined(LOG, log_batches.BatchForm(compression=codec, leader_epoch=5))

    assert tuple(log_batches.decode_batches(data, 7)) == LOG
    assert {stored.leader_epoch for stored in SegmentReader(data)} == {5}


@pytest.mark.parametrize("magic", [0, 1])
def test_an_old_log_reads_back_record_by_record(magic: int) -> None:
    """Before magic 2 every record is a batch of its own; magic 0 has no timestamps."""
    data = joined(LOG[:1], log_batches.BatchForm(magic=magic))

    found = list(log_batches.decode_batches(data, 7))

    assert [(one.base_offset, one.records) for one in found] == [
        (0, LOG[0].records[:1]),
        (1, LOG[0].records[1:]),
    ]
    assert {one.timestamp_ms for one in found} == {NOW_MS if magic else -1}


def test_a_legacy_key_is_written_as_it_was_read() -> None:
    """Brokers up to 0.8.2 wrote key version 0."""
    record = LogRecord(
        group_records.OffsetCommitKey("g", "t", 0), committed(0, 5).value, 0, legacy_key=True
    )
    data = log_batches.encode_batch(batch(0, record))

    (found,) = log_batches.decode_batches(data, 7)

    assert found.records[0].legacy_key
    assert log_batches.encode_batch(found) == data


@pytest.mark.parametrize(
    ("log_batch", "java", "scala"),
    [
        (batch(0, committed(0, 1)), 0, 0),
        (batch(0, GROUP), 0, -1),
        (batch(0, TOMBSTONE), 0, -1),
        (marker(0, committed=True), -1, -1),
    ],
)
def test_base_sequences_are_those_of_the_coordinator(
    log_batch: LogBatch, java: int, scala: int
) -> None:
    """The Java coordinator numbers every batch but markers, Scala's offset commits alone."""
    for sequenced, expected in ((True, java), (False, scala)):
        data = log_batches.encode_batch(log_batch, log_batches.BatchForm(sequenced=sequenced))
        assert [stored.base_sequence for stored in SegmentReader(data)] == [expected]


def test_gaps_of_compaction_split_a_batch() -> None:
    """Each piece starts at its own offset; what the cleaner took from the end is remembered."""
    key, value = b"\x00\x02\x00\x01g", None
    records = tuple(
        Record(offset=offset, timestamp_ms=NOW_MS, key=key, value=value) for offset in (12, 13, 17)
    )
    data = encode_record_batch(batch_of(records, base_offset=10, last_offset=19))

    found = list(log_batches.decode_batches(data, 0))

    assert [(one.base_offset, len(one.records)) for one in found] == [(12, 2), (17, 1), (20, 0)]
    assert found[-1].next_offset == 20


def test_a_control_batch_without_a_marker_stays_one() -> None:
    """Emptied by the cleaner, or of a type that ends no transaction."""
    other = Record(offset=3, timestamp_ms=NOW_MS, key=b"\x00\x00\x00\x02", value=b"")
    full = batch_of((other,), transactional=True, control=True, producer_id=4000)
    emptied = replace(full, base_offset=2, last_offset=2, records=())
    data = encode_record_batch(emptied) + encode_record_batch(full)

    found = list(log_batches.decode_batches(data, 0))

    assert [(one.base_offset, one.next_offset, one.marker) for one in found] == [
        (2, 3, None),
        (3, 4, None),
    ]
    assert all(one.control and one.producer_id == 4000 for one in found)


def test_reading_a_damaged_log_hands_out_what_is_good_first() -> None:
    """The error comes after the last good batch."""
    data = joined(LOG, log_batches.BatchForm())
    batches = log_batches.decode_batches(data[:-1], 7)

    assert [next(batches) for _ in LOG[:-1]] == list(LOG[:-1])
    with pytest.raises(CorruptSegmentError, match="the last batch is cut short"):
        next(batches)


@pytest.mark.parametrize(
    ("key", "value", "control", "message"),
    [
        (None, b"", False, "it has no key"),
        (b"\x00", b"", False, "version needs 2 bytes"),
        (b"\x00\x00", b"", True, "a key of 2 bytes"),
        (b"\x00\x00\x00\x01", b"\x00", True, "a marker of 1 bytes"),
    ],
)
def test_records_of_another_kind_are_refused(
    key: bytes | None, value: bytes, control: bool, message: str
) -> None:
    """A segment of another topic is noticed at its first record."""
    record = Record(offset=0, timestamp_ms=NOW_MS, key=key, value=value)
    data = encode_record_batch(batch_of((record,), control=control))

    with pytest.raises(WireFormatError, match=message):
        list(log_batches.decode_batches(data, 0))


def test_what_cannot_be_written_is_refused() -> None:
    """Old formats have no transactions, and a batch is never empty."""
    with pytest.raises(ValueError, match="magic 1 has no transactions"):
        log_batches.encode_batch(LOG[1], log_batches.BatchForm(magic=1))
    with pytest.raises(ValueError, match="no record to write"):
        log_batches.encode_batch(batch(4))


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="needs the shared samples beside the repository")
def test_real_segments_are_read_and_written_back_byte_for_byte() -> None:
    """Segments of Kafka 3.x: the Scala coordinator's batches of groups and tombstones."""
    paths = sorted(SAMPLES.glob("*.log"))

    for path in paths:
        data = path.read_bytes()
        epochs = [stored.leader_epoch for stored in SegmentReader(data)]
        written = b"".join(
            log_batches.encode_batch(
                one, log_batches.BatchForm(leader_epoch=epoch, sequenced=False)
            )
            for one, epoch in zip(log_batches.decode_batches(data, 0), epochs, strict=True)
        )
        assert written == data, path.name
    assert len(paths) == 8


def test_many_records_are_handed_out_in_pieces() -> None:
    """A batch of 25,000 tombstones in some hundred bytes: no more than 10,000 at a time."""
    key = encode_key(group_records.GroupMetadataKey("g"))
    records = tuple(
        Record(offset=offset, timestamp_ms=5, key=key, value=None) for offset in range(25_000)
    )
    data = encode_record_batch(batch_of(records, compression=Compression.ZSTD))
    sizes = [
        (piece.base_offset, len(piece.records)) for piece in log_batches.decode_batches(data, 0)
    ]
    assert sizes == [(0, 10_000), (10_000, 10_000), (20_000, 5_000)]
