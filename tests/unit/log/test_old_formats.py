"""Logs and producers of several formats, with the record builders of other clients as judges."""

import struct
import zlib

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.format.compression import Compression
from coordinator_sim.log.format.record_batches import Record, batch_of, encode_record_batch
from coordinator_sim.log.format.steps import finished
from coordinator_sim.log.log_config import LogConfig
from coordinator_sim.log.memory_store import MemoryStore
from coordinator_sim.log.partition_log import PartitionLog
from coordinator_sim.log.spans import batches_in
from coordinator_sim.messages.records import EndTransactionMarker

NOW_MS = 1_700_000_000_000
COUNT = 3
CODECS = [Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4]
# aiokafka has no LZ4 in magic 0.
WAYS = [
    (stored, produced, codec)
    for stored in (0, 1, 2)
    for produced in (0, 1, 2)
    for codec in CODECS
    if codec is not Compression.LZ4 or (stored and produced)
]
Seen = list[tuple[int, int | None, bytes | None, bytes | None]]


def make_log(**config: object) -> PartitionLog:
    """An empty log of partition t-0."""
    return PartitionLog("t", 0, MemoryStore(), LogConfig(**config))  # type: ignore[arg-type]


def sent(magic: int, codec: Compression, count: int = COUNT) -> bytes:
    """Records as aiokafka's builders write them."""
    if magic == 2:
        builder = DefaultRecordBatchBuilder(
            magic=2,
            compression_type=codec,
            is_transactional=0,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=1 << 20,
        )
    else:
        builder = LegacyRecordBatchBuilder(magic=magic, compression_type=codec, batch_size=1 << 20)
    for index in range(count):
        arguments = {"timestamp": NOW_MS + index, "key": b"k%d" % index, "value": b"v%d" % index}
        if magic == 2:
            arguments["headers"] = []
        builder.append(index, **arguments)
    return bytes(builder.build())


def seen(data: bytes) -> Seen:
    """Offset, time, key and value of all records, as aiokafka reads them."""
    records = MemoryRecords(data)
    found: Seen = []
    while (batch := records.next_batch()) is not None:
        assert batch.validate_crc()
        found += [(one.offset, one.timestamp, one.key, one.value) for one in batch]
    return found


def expected(first_offset: int, *, timed: bool) -> Seen:
    """What `sent` should look like in the log."""
    return [
        (first_offset + index, NOW_MS + index if timed else None, b"k%d" % index, b"v%d" % index)
        for index in range(COUNT)
    ]


def read_old(log: PartitionLog, offset: int, magic: int, max_bytes: int = 1 << 20) -> bytes | None:
    """The log as an old Fetch gets it."""
    read = log.read(offset, max_bytes=max_bytes)
    return finished(log.for_old_reader(read.records, offset, magic, read.high_watermark))


def untimed(records: Seen) -> Seen:
    """The records without times: the formats say none as None or as -1."""
    return [(offset, None, key, value) for offset, _, key, value in records]


@pytest.mark.parametrize(("stored", "produced", "codec"), WAYS)
def test_any_format_is_stored_in_the_logs(stored: int, produced: int, codec: Compression) -> None:
    """Whatever a producer speaks, the log holds its own format with consecutive offsets."""
    log = make_log(message_format_magic=stored)
    for first_offset in (0, COUNT):
        appended = log.append(
            sent(produced, codec),
            now_ms=NOW_MS,
            leader_epoch=0,
            produce_version=3 if produced == 2 else 2,
        )
        assert (appended.error, appended.base_offset) == (ErrorCode.NONE, first_offset)
    data = log.read(0, max_bytes=1 << 20).records
    assert {batch.magic for batch in batches_in(data)} == {stored}
    assert {batch.codec for batch in batches_in(data)} == {codec}
    timed = produced > 0 and stored > 0
    wanted = expected(0, timed=timed) + expected(COUNT, timed=timed)
    assert (seen(data) if timed else untimed(seen(data))) == wanted
    assert log.end_offset == 2 * COUNT


@pytest.mark.parametrize(("magic", "codec"), [way[1:] for way in WAYS if way[0] == 2 != way[1]])
def test_old_readers_get_their_format(magic: int, codec: Compression) -> None:
    """What is stored in magic 2 comes to an old Fetch as it can read it, markers left out."""
    log = make_log()
    log.append(sent(2, codec), now_ms=NOW_MS, leader_epoch=0)
    marker = EndTransactionMarker(committed=True)
    log.append_marker(1, 0, marker, now_ms=NOW_MS, leader_epoch=0)
    log.append(sent(2, codec), now_ms=NOW_MS, leader_epoch=0)
    data = read_old(log, 0, magic) or b""
    assert {batch.magic for batch in batches_in(data)} == {magic}
    found = seen(data) if magic else untimed(seen(data))
    wanted = expected(0, timed=magic > 0) + expected(COUNT + 1, timed=magic > 0)
    assert found == wanted
    tail = read_old(log, COUNT, magic, 90) or b""
    assert [offset for offset, *_ in seen(tail)][:1] == [COUNT + 1]


def test_records_before_the_offset_are_left_out_for_old_readers() -> None:
    """From the middle of a plain batch an old reader gets what it asked for, no more."""
    log = make_log()
    log.append(sent(2, Compression.NONE), now_ms=NOW_MS, leader_epoch=0)
    found = seen(read_old(log, 1, 1) or b"")
    assert [offset for offset, *_ in found] == [1, 2]


def test_zstd_is_nothing_for_old_readers() -> None:
    """A batch compressed with zstd cannot be converted."""
    log = make_log()
    log.append(sent(2, Compression.ZSTD), now_ms=NOW_MS, leader_epoch=0)
    assert read_old(log, 0, 1) is None


def test_append_time_stamps_old_messages() -> None:
    """LogAppendTime in a log of magic 1: plain messages and wrappers have the broker's time."""
    for codec in (Compression.NONE, Compression.GZIP):
        log = make_log(message_format_magic=1, message_timestamp_type="LogAppendTime")
        log.append(sent(1, codec), now_ms=NOW_MS + 77, leader_epoch=0, produce_version=2)
        found = seen(log.read(0, max_bytes=1 << 20).records)
        assert {time_ms for _, time_ms, _, _ in found} == {NOW_MS + 77}


def test_a_wrapper_at_offset_0_is_understood() -> None:
    """Some librdkafka leave the wrapper's offset 0; the records get their offsets all the same."""
    data = bytearray(sent(1, Compression.GZIP))
    struct.pack_into(">q", data, 0, 0)
    log = make_log(message_format_magic=1)
    log.append(bytes(data), now_ms=NOW_MS, leader_epoch=0, produce_version=2)
    assert seen(log.read(0, max_bytes=1 << 20).records) == expected(0, timed=True)


def test_a_damaged_message_inside_a_wrapper_is_corrupt() -> None:
    """The checksum of a message inside a wrapper counts too."""
    inner = bytearray(sent(1, Compression.NONE, 1))
    inner[-1] ^= 1
    body = zlib.compressobj(wbits=31)
    value = body.compress(bytes(inner)) + body.flush()
    checked = struct.pack(">bbq", 1, Compression.GZIP, NOW_MS) + struct.pack(">ii", -1, len(value))
    front = struct.pack(">qiI", 0, 4 + len(checked + value), zlib.crc32(checked + value))
    log = make_log(message_format_magic=1)
    refused = log.append(front + checked + value, now_ms=NOW_MS, leader_epoch=0, produce_version=2)
    assert refused.error is ErrorCode.CORRUPT_MESSAGE


def test_idempotence_needs_the_newer_format() -> None:
    """A log of magic 1 has no room for a producer's sequence."""
    record = Record(offset=0, timestamp_ms=NOW_MS, key=b"k", value=b"v")
    data = encode_record_batch(
        batch_of((record,), producer_id=1, producer_epoch=0, base_sequence=0)
    )
    refused = make_log(message_format_magic=1).append(data, now_ms=NOW_MS, leader_epoch=0)
    assert refused.error is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


def test_newer_produce_requests_bring_one_batch_of_magic_2() -> None:
    """From version 3 on anything else is INVALID_RECORD; zstd comes with version 7."""
    log = make_log()
    two = sent(2, Compression.NONE) * 2
    for data in (b"", sent(1, Compression.NONE), two):
        refused = log.append(data, now_ms=NOW_MS, leader_epoch=0, produce_version=3)
        assert refused.error is ErrorCode.INVALID_RECORD
    zstd = sent(2, Compression.ZSTD)
    refused = log.append(zstd, now_ms=NOW_MS, leader_epoch=0, produce_version=6)
    assert refused.error is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    appended = log.append(zstd, now_ms=NOW_MS, leader_epoch=0, produce_version=7)
    assert appended.error is ErrorCode.NONE
