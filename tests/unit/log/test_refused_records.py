"""Records that no log takes, and why; a coordinator's own batches."""

import struct
from collections.abc import Callable, Iterator

import crc32c
import pytest
from msgspec.structs import replace

from coordinator_sim.errors import InvariantViolation, WireFormatError
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.format.compression import Compression
from coordinator_sim.log.format.record_batches import (
    Record,
    TimestampType,
    batch_of,
    encode_record_batch,
    record_bytes,
)
from coordinator_sim.log.format.record_scan import RecordScan, Scanned
from coordinator_sim.log.format.segments import EncodedBatch
from coordinator_sim.log.format.steps import finished
from coordinator_sim.log.log_config import LogConfig
from coordinator_sim.log.memory_store import MemoryStore
from coordinator_sim.log.partition_log import PartitionLog
from coordinator_sim.log.spans import batches_in
from coordinator_sim.messages.group_records import OffsetCommitKey, OffsetCommitValue
from coordinator_sim.messages.records import EndTransactionMarker, LogBatch, LogRecord

NOW_MS = 1_700_000_000_000
HEADERS = (("name", b"value"), ("empty", None))


def record(offset: int = 0, **fields: object) -> Record:
    """A small record."""
    given = {"timestamp_ms": NOW_MS, "key": b"k", "value": b"v" * 200, "headers": HEADERS}
    return Record(offset=offset, **(given | fields))  # type: ignore[arg-type]


def batch(count: int = 2, **settings: object) -> bytes:
    """A batch as a producer sends it."""
    return encode_record_batch(batch_of(tuple(map(record, range(count))), **settings))


def with_crc(data: bytes) -> bytes:
    """The batch with the checksum of what it is now."""
    return data[:17] + struct.pack(">I", crc32c.crc32c(data[21:])) + data[21:]


def patched(position: int, field: bytes) -> bytes:
    """A batch with other bytes there, its checksum right."""
    data = batch()
    return with_crc(data[:position] + field + data[position + len(field) :])


def make_log(**config: object) -> PartitionLog:
    """An empty log of partition t-0."""
    return PartitionLog("t", 0, MemoryStore(), LogConfig(**config))  # type: ignore[arg-type]


def refusal(data: bytes, version: int = 9, **config: object) -> ErrorCode:
    """What a log says to it, having taken nothing."""
    log = make_log(**config)
    appended = log.append(data, now_ms=NOW_MS, leader_epoch=0, produce_version=version)
    assert log.end_offset == 0
    return appended.error


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(patched(0, struct.pack(">q", 5)), id="base offset"),
        pytest.param(patched(57, struct.pack(">i", 0)), id="no count"),
        pytest.param(patched(57, struct.pack(">i", 3)), id="count and offsets differ"),
        pytest.param(patched(61, b"\x7f"), id="a record's size"),
        pytest.param(with_crc(batch()[:-1] + b"\x06"), id="a header's size"),
        pytest.param(batch(control=True), id="control"),
        pytest.param(batch(producer_id=1, producer_epoch=0), id="no sequence"),
        pytest.param(with_crc(batch(compression=Compression.GZIP)[:-20]), id="cut gzip"),
    ],
)
def test_a_batch_that_does_not_hold_together_is_an_invalid_record(data: bytes) -> None:
    """Headers and records are looked at, whatever the checksum says."""
    sized = data[:8] + struct.pack(">i", len(data) - 12) + data[12:]
    assert refusal(sized) is ErrorCode.INVALID_RECORD


def test_what_cannot_be_a_batch_is_corrupt() -> None:
    """A size below any entry's, a magic of the future, a wrong checksum in old formats."""
    assert refusal(batch()[:8] + struct.pack(">i", 3) + batch()[12:]) is ErrorCode.CORRUPT_MESSAGE
    assert refusal(batch()[:16] + b"\x09" + batch()[17:]) is ErrorCode.CORRUPT_MESSAGE
    old = bytearray(batch(1, magic=1))
    old[-1] ^= 1
    assert refusal(bytes(old), 2) is ErrorCode.CORRUPT_MESSAGE


def test_an_unknown_codec_is_no_protocol_error() -> None:
    """Kafka's own classes stumble over it."""
    assert refusal(patched(21, b"\x00\x07")) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_torn_batch_behind_a_whole_one_is_dropped() -> None:
    """Brokers trim what is left over; two whole batches are too many."""
    log = make_log()
    appended = log.append(batch() + batch()[:30], now_ms=NOW_MS, leader_epoch=0)
    assert (appended.error, log.end_offset) == (ErrorCode.NONE, 2)
    assert refusal(batch() + batch(), 2) is ErrorCode.INVALID_RECORD
    assert log.append(b"", now_ms=NOW_MS, leader_epoch=0, produce_version=2).base_offset == -1


def test_producers_do_not_stamp_records_themselves() -> None:
    """A batch that says LogAppendTime is refused where that is the log's to say.

    QUIRK: a topic with CreateTime takes it, with the time that it claims for all its records.
    """
    claimed = patched(21, b"\x00\x08")
    assert refusal(claimed, message_timestamp_type="LogAppendTime") is ErrorCode.INVALID_TIMESTAMP
    log = make_log()
    assert log.append(claimed, now_ms=NOW_MS, leader_epoch=0).error is ErrorCode.NONE
    (found,) = batches_in(log.read(0, max_bytes=9999).records)
    assert (found.is_valid, found.timestamp_type) == (True, TimestampType.CREATE_TIME)


def test_many_records_without_key_are_told_in_short() -> None:
    """The message shows three of them, the list all."""
    records = tuple(record(offset, key=None) for offset in range(5))
    told = make_log(cleanup_policy="compact").append(
        encode_record_batch(batch_of(records)), now_ms=NOW_MS, leader_epoch=0
    )
    assert [error.index for error in told.record_errors] == [0, 1, 2, 3, 4]
    assert told.message is not None
    assert told.message.count("RecordError(") == 3


def test_a_batch_that_recompression_makes_too_large_is_refused() -> None:
    """The limit counts for what would be stored."""
    data = encode_record_batch(batch_of((record(value=bytes(5000)),), compression=Compression.GZIP))
    for config in ({"compression_type": "uncompressed"}, {"message_format_magic": 1}):
        settings = {"compression_type": "uncompressed", **config, "max_message_bytes": 1000}
        plain = encode_record_batch(
            batch_of((record(value=bytes(5000), headers=()),), compression=Compression.GZIP)
        )
        sent = data if "message_format_magic" not in config else plain
        assert refusal(sent, **settings) is ErrorCode.MESSAGE_TOO_LARGE


def test_headers_have_no_place_in_old_logs() -> None:
    """Kafka's builder stumbles over them, which is no protocol error."""
    assert refusal(batch(), message_format_magic=1) is ErrorCode.UNKNOWN_SERVER_ERROR
    plain = encode_record_batch(batch_of((record(headers=()),)))
    zstd = {"message_format_magic": 1, "compression_type": "zstd"}
    assert refusal(plain, **zstd) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_offsets_with_gaps_inside_a_compressed_batch_are_put_right() -> None:
    """Records are counted anew, as the broker has always done for some old clients."""
    records = (record(0), record(7))
    crooked = encode_record_batch(
        replace(batch_of(records, compression=Compression.LZ4), last_offset=1)
    )
    log = make_log()
    assert log.append(crooked, now_ms=NOW_MS, leader_epoch=0).last_offset == 1
    (found,) = batches_in(log.read(0, max_bytes=9999).records)
    assert [one.offset for one in found.records()] == [0, 1]


def test_unverified_first_write_of_a_transaction_is_refused() -> None:
    """The coordinator must know the partition; once the transaction is open it is not asked."""
    log = make_log()
    fields = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    first = batch(base_sequence=0, **fields)
    refused = log.append(first, now_ms=NOW_MS, leader_epoch=0, is_verified=False)
    assert refused.error is ErrorCode.INVALID_TXN_STATE
    log.append(first, now_ms=NOW_MS, leader_epoch=0)
    second = batch(base_sequence=2, **fields)
    went_on = log.append(second, now_ms=NOW_MS, leader_epoch=0, is_verified=False)
    assert went_on.error is ErrorCode.NONE
    plain = batch(producer_id=7, producer_epoch=0, base_sequence=4)
    mixed = log.append(plain, now_ms=NOW_MS, leader_epoch=0)
    assert mixed.error is ErrorCode.INVALID_TXN_STATE


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    """Bytes in pieces of that size."""
    return (data[start : start + size] for start in range(0, len(data), size))


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data + b"\x00",
        lambda data: data[:-1],
        lambda data: b"\x01" + data[1:],
        lambda data: b"\xff" * 11 + data,
        lambda data: data.replace(b"\x08name", b"\x01name"),
        lambda data: data.replace(b"\x08name", b"\x09name"),
    ],
)
def test_records_that_do_not_fit_are_noticed(damage: Callable[[bytes], bytes]) -> None:
    """More, less, other sizes: nothing is taken for granted."""
    data = record_bytes(record(timestamp_ms=NOW_MS + 300), 0, NOW_MS)
    assert finished(RecordScan(1, data=data).steps()) == Scanned(300, 300, 0, is_consecutive=True)
    for size in (len(data) + 20, 7, 1):
        with pytest.raises(WireFormatError):
            finished(RecordScan(1, chunks=pieces(damage(data), size)).steps())


def commit(base_offset: int, **fields: object) -> LogBatch:
    """A coordinator's batch of one commit."""
    value = OffsetCommitValue(offset=5)
    given = {
        "partition": 0,
        "base_offset": base_offset,
        "timestamp_ms": NOW_MS,
        "records": (LogRecord(OffsetCommitKey("g", "t", 0), value, 4),),
    }
    return LogBatch(**(given | fields))  # type: ignore[arg-type]


def test_a_coordinators_transaction_is_checked_by_epoch_alone() -> None:
    """A coordinator's batches have no sequences; an older producer or coordinator is refused."""
    log = make_log()
    pending = {"producer_id": 7, "transactional": True}

    def append(epoch: int, **fields: object) -> ErrorCode:
        own = commit(log.end_offset, producer_epoch=epoch, **pending, **fields)
        return log.append_batch(own, now_ms=NOW_MS)

    assert append(2) is ErrorCode.NONE
    assert append(2) is ErrorCode.NONE
    assert append(1) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.last_stable_offset == 0
    marker = EndTransactionMarker(committed=True, coordinator_epoch=3)
    assert append(2, records=(), marker=marker, control=True) is ErrorCode.NONE
    assert log.last_stable_offset == log.end_offset == 3
    older = EndTransactionMarker(committed=True, coordinator_epoch=2)
    refused = append(2, records=(), marker=older, control=True)
    assert refused is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_a_coordinators_batch_belongs_at_the_end() -> None:
    """Offsets that do not follow are a bug, not a refusal."""
    log = make_log()
    with pytest.raises(InvariantViolation, match="ends at 0"):
        log.append_batch(commit(3), now_ms=NOW_MS)
    data = batch(1)
    assert log.append_encoded(EncodedBatch(0, 1, data), now_ms=NOW_MS) is ErrorCode.NONE
    assert log.read(0, max_bytes=9999).records == data


def test_coordinators_are_stamped_too() -> None:
    """LogAppendTime in the offsets topic has the log's instant, not the coordinator's."""
    log = make_log(message_timestamp_type="LogAppendTime")
    assert log.append_batch(commit(0), now_ms=NOW_MS + 9) is ErrorCode.NONE
    (found,) = batches_in(log.read(0, max_bytes=9999).records)
    assert [one.timestamp_ms for one in found.records()] == [NOW_MS + 9]
