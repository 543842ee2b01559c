"""Batches that become very large: looked at in steps, with next to nothing in memory."""

import random
import struct
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from types import FrameType

import crc32c
import pytest

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.arrivals import MAX_TOLD_ERRORS
from coordinator_sim.log.cleaning import LogCleaning
from coordinator_sim.log.format import record_batches
from coordinator_sim.log.format.compression import (
    Compression,
    ContentBounds,
    compress,
    decompressed_chunks,
)
from coordinator_sim.log.format.record_batches import (
    Record,
    legacy_entry_bytes,
    record_bytes,
    varint_bytes,
)
from coordinator_sim.log.format.record_scan import RecordScan, Scanned
from coordinator_sim.log.format.steps import SLICE, finished
from coordinator_sim.log.log_config import BatchBounds, LogConfig
from coordinator_sim.log.memory_store import MemoryStore
from coordinator_sim.log.partition_log import PartitionLog
from coordinator_sim.log.spans import batches_in

NOW_MS = 1_700_000_000_000
NO_KEY = b"\x0c\x00\x00\x00\x01\x01\x00"
"""A record at offset delta 0 without key, value and headers."""
CODECS = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]


def batch(content: bytes, count: int, codec: Compression = Compression.NONE) -> bytes:
    """A batch of magic 2 of that content, which counts so many records."""
    about = (codec, count - 1, NOW_MS, NOW_MS, -1, -1, -1, count)
    checked = struct.pack(">hiqqqhii", *about) + compress(codec, content)
    front = (0, len(checked) + 9, -1, 2, crc32c.crc32c(checked))
    return struct.pack(">qiibI", *front) + checked


def make_log(**config: object) -> PartitionLog:
    """An empty log of partition t-0 that takes large batches."""
    given: dict[str, object] = {"max_message_bytes": 100_000_000, **config}
    return PartitionLog("t", 0, MemoryStore(), LogConfig(**given))  # type: ignore[arg-type]


def appended(log: PartitionLog, data: bytes) -> ErrorCode:
    """What the log says to a batch."""
    return log.append(data, now_ms=NOW_MS, leader_epoch=0).error


def peak_bytes(do: Callable[[], object]) -> int:
    """How much memory it takes at a time."""
    tracemalloc.start()
    try:
        do()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def one_record(value_size: int) -> bytes:
    """A record with a value of so many zeros."""
    inner = b"\x00\x00\x00\x01" + varint_bytes(value_size) + bytes(value_size) + b"\x00"
    return varint_bytes(len(inner)) + inner


@pytest.mark.parametrize("codec", CODECS)
def test_many_records_take_no_memory(codec: Compression) -> None:
    """Also where all of them have delta 0, which Kafka takes and counts anew: one at a time."""
    data = batch(NO_KEY * 20_000, 20_000, codec)
    log = make_log()
    assert appended(log, data) is ErrorCode.NONE
    assert peak_bytes(lambda: appended(log, data)) < 3_000_000
    (first, _) = batches_in(log.read(0, max_bytes=99_999_999).records)
    assert [each.offset for each in first.records()] == list(range(20_000))


@pytest.mark.parametrize("codec", CODECS)
def test_a_huge_value_is_passed_over(codec: Compression) -> None:
    """The value is never in memory as a whole: a chunk at a time is."""
    data = batch(one_record(16_000_000), 1, codec)
    log = make_log()
    assert peak_bytes(lambda: appended(log, data)) < len(data) * 6 + 2_000_000
    assert log.end_offset == 1


def test_a_look_is_cut_in_steps_of_even_size() -> None:
    """Twice as many records, or headers, are twice as many steps, and none of them is large."""
    contents: list[Callable[[int], tuple[bytes, int]]] = [
        lambda count: (NO_KEY * count, count),
        lambda count: (headed(count), 1),
    ]
    for content in contents:
        sums = []
        for count in (10_000, 20_000, 40_000):
            data, records = content(count)
            costs = list(RecordScan(records, data=data).steps())
            assert max(costs) <= 5_000
            sums.append(sum(costs))
        assert sums[1] <= 2 * sums[0] + 100
        assert sums[2] <= 2 * sums[1] + 100


def headed(count: int) -> bytes:
    """A record with so many empty headers."""
    inner = b"\x00\x00\x00\x01\x01" + varint_bytes(count) + b"\x00\x01" * count
    return varint_bytes(len(inner)) + inner


def test_chunks_may_end_anywhere() -> None:
    """What a look comes to does not depend on how the content is cut; drawn contents and cuts."""
    draw = random.Random(3)  # noqa: S311 - draws records
    for _ in range(60):
        count = draw.randrange(1, 12)
        records = [
            Record(
                offset=index + draw.choice([0, 0, 0, 70]),
                timestamp_ms=draw.randrange(-9_000, 9_000),
                key=draw.choice([None, b"", b"k" * 90]),
                value=draw.choice([None, bytes(draw.randrange(300))]),
                headers=(("name", b"v"), ("n" * 80, None)) * draw.choice([0, 1, 20]),
            )
            for index in range(count)
        ]
        content = b"".join(record_bytes(record, 0, 0) for record in records)
        times = [record.timestamp_ms for record in records]
        expected = Scanned(
            max(times),
            min(times),
            sum(record.key is None for record in records),
            is_consecutive=[record.offset for record in records] == list(range(count)),
        )
        for size in (1, 2, 7, 64, len(content)):
            scan = RecordScan(count, chunks=cut(content, size, draw))
            assert finished(scan.steps()) == expected


def cut(content: bytes, size: int, draw: random.Random) -> Iterator[bytes]:
    """A content in chunks of about that size, empty ones among them."""
    position = 0
    while position < len(content):
        length = draw.randrange(size + 1)
        yield content[position : position + length]
        position += length


def test_a_batch_that_counts_too_many_records_is_not_looked_at() -> None:
    """The header is enough; a producer splits such a batch, and is told which setting it was."""
    log = make_log(bounds=BatchBounds(max_records=9))
    assert appended(log, batch(NO_KEY * 9, 9)) is ErrorCode.NONE
    steps = log.checking(batch(NO_KEY * 10, 10, Compression.ZSTD), now_ms=NOW_MS)
    with pytest.raises(StopIteration):
        next(steps)
    told = log.append(batch(NO_KEY * 10, 10), now_ms=NOW_MS, leader_epoch=0)
    assert told.error is ErrorCode.MESSAGE_TOO_LARGE
    assert told.message == (
        "t-0: a batch of 10 records, more than 9; send less in one batch, or set the server's "
        "simulator.batch.max.* higher"
    )


@pytest.mark.parametrize("codec", CODECS)
def test_content_beyond_its_bounds_is_too_large(codec: Compression) -> None:
    """Not invalid: a producer that sends less in one batch comes through."""
    bounds = BatchBounds(content=ContentBounds(max_bytes=7_000))
    log = make_log(bounds=bounds)
    assert appended(log, batch(NO_KEY * 1_000, 1_000, codec)) is ErrorCode.NONE
    assert appended(log, batch(NO_KEY * 1_001, 1_001, codec)) is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_old_message_sets_have_the_same_bounds(codec: Compression) -> None:
    """Plain messages, one after another, and those in a wrapper."""
    log = make_log(bounds=BatchBounds(max_records=9))
    for count, error in ((9, ErrorCode.NONE), (10, ErrorCode.MESSAGE_TOO_LARGE)):
        records = tuple(
            Record(offset=index, timestamp_ms=NOW_MS, key=None, value=b"v")
            for index in range(count)
        )
        data = record_batches.encode_record_batch(
            record_batches.batch_of(records, magic=1, compression=codec)
        )
        assert appended(log, data) is error


def test_of_very_many_records_to_blame_the_first_are_named() -> None:
    """All are counted."""
    count = MAX_TOLD_ERRORS + 7
    told = make_log(cleanup_policy="compact").append(
        batch(NO_KEY * count, count, Compression.LZ4), now_ms=NOW_MS, leader_epoch=0
    )
    assert told.error is ErrorCode.INVALID_RECORD
    assert len(told.record_errors) == MAX_TOLD_ERRORS
    assert told.message is not None
    assert f"due to {count} record errors in total" in told.message


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP, Compression.ZSTD])
def test_finding_an_offset_by_time_builds_no_records(codec: Compression) -> None:
    """The last of many records is found with one chunk in memory, in steps."""
    content = b"".join(
        record_bytes(
            Record(offset=index, timestamp_ms=NOW_MS + index, key=None, value=None), 0, NOW_MS
        )
        for index in range(30_000)
    )
    log = make_log()
    assert appended(log, batch(content, 30_000, codec)) is ErrorCode.NONE
    wanted_ms = NOW_MS + 29_999
    assert log.offset_for_timestamp(wanted_ms).offset == 29_999
    assert peak_bytes(lambda: log.offset_for_timestamp(wanted_ms)) < 2_000_000
    assert len(list(log.finding_offset(wanted_ms))) >= 15


@pytest.mark.parametrize("stamps", ["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize(("base_ms", "delta"), [(2**63 - 1, 5), (-(2**63), -5)])
def test_a_time_beyond_64_bits_is_refused(base_ms: int, delta: int, stamps: str) -> None:
    """The producer is told which record is to blame."""
    inner = b"\x00" + varint_bytes(delta) + b"\x00\x01\x01\x00"
    about = (0, 0, base_ms, NOW_MS, -1, -1, -1, 1)
    checked = struct.pack(">hiqqqhii", *about) + varint_bytes(len(inner)) + inner
    front = (0, len(checked) + 9, -1, 2, crc32c.crc32c(checked))
    told = make_log(message_timestamp_type=stamps).append(
        struct.pack(">qiibI", *front) + checked, now_ms=NOW_MS, leader_epoch=0
    )
    assert told.error is ErrorCode.INVALID_TIMESTAMP
    assert [each.index for each in told.record_errors] == [0]


def test_a_time_is_found_in_an_old_wrapper_in_small_steps() -> None:
    """Each record is built, so that no step has many of them."""
    count = 5_000
    entries = b"".join(
        legacy_entry_bytes(
            Record(offset=each, timestamp_ms=NOW_MS + each, key=None, value=b""), 1, 0, offset=each
        )
        for each in range(count)
    )
    about = record_batches.RecordBatch(
        base_offset=0,
        last_offset=count - 1,
        records=(),
        base_timestamp_ms=NOW_MS,
        max_timestamp_ms=NOW_MS + count - 1,
        magic=1,
        compression=Compression.GZIP,
    )
    data = record_batches.wrapper_bytes(about, count - 1, compress(Compression.GZIP, entries, 1))
    log = make_log(message_format_magic=1)
    assert appended(log, data) is ErrorCode.NONE
    costs = list(log.finding_offset(NOW_MS + count - 1))
    assert sum(costs) > 2 * count
    assert len(costs) > count // 200


def test_plain_messages_get_their_place_without_being_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is done in one go is little for each."""
    record = Record(offset=0, timestamp_ms=NOW_MS, key=None, value=b"a")
    data = b"".join(legacy_entry_bytes(record, 1, 0, offset=0) for _ in range(1_000))
    log = make_log(message_format_magic=1)
    checked = finished(log.checking(data, now_ms=NOW_MS))

    def fail(*_: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr("coordinator_sim.log.format.stored_batches.StoredBatch.__init__", fail)
    for first in (0, 1_000):
        told = log.append_checked(checked, now_ms=NOW_MS, leader_epoch=0)
        assert (told.base_offset, told.last_offset) == (first, first + 999)


def test_what_was_accepted_is_read_again_whatever_the_bounds_are_now() -> None:
    """A server may be started with lower bounds than those of its log, or have had higher ones."""
    data = batch(NO_KEY * 2_000, 2_000, Compression.GZIP)
    log = make_log()
    assert appended(log, data) is ErrorCode.NONE
    few = BatchBounds(max_records=10, content=ContentBounds(max_bytes=100, max_blocks=1))
    log.configure(LogConfig(bounds=few))
    assert appended(log, data) is ErrorCode.MESSAGE_TOO_LARGE
    records = bytes(log.read(0, max_bytes=1 << 20).records)
    assert finished(log.for_old_reader(records, 0, 1, 2_000))
    assert log.offset_for_timestamp(NOW_MS).offset == 0


def test_zstd_blocks_without_content_cost_what_they_take() -> None:
    """Empty zstd blocks are read in many steps, so that a million of them block nobody."""
    blocks = 10_000
    frame = b"\x28\xb5\x2f\xfd\x00\x38" + bytes(3) * blocks + b"\x01\x00\x00"
    pieces = list(decompressed_chunks(Compression.ZSTD, frame))
    assert b"".join(pieces) == b""
    assert len(pieces) > blocks // 50


# -- The cleaner over very large batches: in slices, with next to nothing in memory ------------


LATER_MS = NOW_MS + 1000


def two_segments(
    count: int, codec: Compression = Compression.NONE, **config: object
) -> MemoryStore:
    """A compacted log of one large batch, and of another one in the active segment."""
    store = MemoryStore()
    log = log_of(store, **config)
    for _ in range(2):
        assert send(log, content_of(count), count, codec) is ErrorCode.NONE
    assert len(store.segments()) == 2
    return store


def content_of(count: int) -> bytes:
    """Bytes of `count` records of one key, which have their number as value."""
    return b"".join(
        record_bytes(Record(offset=index, timestamp_ms=0, key=b"k", value=b"%d" % index), 0, 0)
        for index in range(count)
    )


def log_of(store: MemoryStore, **config: object) -> PartitionLog:
    """The compacted log over a store; every batch begins a segment."""
    return PartitionLog("t", 0, store, make_config(**config))


def make_config(**config: object) -> LogConfig:
    """Compacted, with segments of one batch each."""
    log = make_log(cleanup_policy="compact", min_cleanable_dirty_ratio=0.0, **config)
    return log.config


def send(log: PartitionLog, content: bytes, count: int, codec: Compression) -> ErrorCode:
    """Append a batch into a new segment."""
    if log.end_offset:
        log._store.roll(log.end_offset)
    return log.append(batch(content, count, codec), now_ms=NOW_MS, leader_epoch=0).error


def clean(log: PartitionLog, between: Callable[[], object] = lambda: None) -> int:
    """A whole pass; how many slices it was."""
    slices = 0
    while log.clean_some(LATER_MS):
        slices += 1
        between()
    return slices


def left_in(log: PartitionLog) -> list[tuple[int, bytes | None]]:
    """Offset and value of every record."""
    return [
        (record.offset, record.value)
        for data in log.chunks()
        for found in batches_in(data)
        for record in found.records()
    ]


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
def test_a_pass_holds_one_record(codec: Compression) -> None:
    """A batch of 20,000 records is cleaned in less than 1 MB beside its bytes."""
    store = two_segments(20_000, codec)
    log = log_of(store)
    stored = sum(segment.size_bytes for segment in store.segments())
    assert peak_bytes(lambda: clean(log)) < 4 * stored + 1_000_000
    first = next(iter(batches_in(store.read(0, 1, before_offset=1))))
    assert [record.offset for record in first.records()] == [19_999]


def test_a_pass_is_cut_in_steps_of_even_size() -> None:
    """Twice as many records are twice as many steps, and none of them is large."""
    sums = []
    for count in (5_000, 10_000, 20_000):
        store = two_segments(count)
        cleaning = LogCleaning(store, make_config(), count, {}, LATER_MS)
        costs = list(cleaning.steps(0, 0))
        assert max(costs) <= SLICE / 2
        sums.append(sum(costs))
    assert sums[0] > 5_000
    assert sums[1] <= 2 * sums[0] + 100
    assert sums[2] <= 2 * sums[1] + 100


def test_no_slice_is_longer_than_it_says() -> None:
    """Calls within a slice, whether records stay, go or are rebuilt: some thousands."""
    log = log_of(two_segments(20_000, Compression.ZSTD))
    counts = [0]

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        counts[-1] += event == "call"

    sys.setprofile(count)
    try:
        clean(log, lambda: counts.append(0))
    finally:
        sys.setprofile(None)
    assert max(counts) < 30_000
    assert sum(counts) > 100_000


def test_a_log_may_change_between_slices() -> None:
    """Records that come meanwhile stay; what is left of the others is the same."""
    calm = log_of(two_segments(10_000))
    slices = clean(calm)
    assert slices > 10
    store = two_segments(10_000)
    busy = log_of(store)
    assert clean(busy, lambda: send(busy, content_of(1), 1, Compression.NONE)) == slices
    assert left_in(busy)[: len(left_in(calm))] == left_in(calm)
    assert len(left_in(busy)) == len(left_in(calm)) + slices


def test_segments_that_go_between_slices_stay_gone() -> None:
    """The log's start moves over what a pass was cleaning: nothing of it comes back."""
    log = log_of(two_segments(10_000))
    assert log.clean_some(LATER_MS)
    assert log.clean_some(LATER_MS)
    log._start_at(10_000)
    clean(log)
    assert (log.log_start_offset, log.end_offset) == (10_000, 20_000)
    assert [offset for offset, _ in left_in(log)] == list(range(10_000, 20_000))


def test_a_pass_ends_with_its_log() -> None:
    """A partition that is deleted meanwhile is not looked at again."""
    log = log_of(two_segments(10_000))
    assert log.clean_some(LATER_MS)
    assert log.clean_some(LATER_MS)
    log.delete()
    assert not log.clean_some(LATER_MS)


def test_a_batch_that_larger_bounds_let_in_is_cleaned() -> None:
    """Bounds are for what comes in; what is in a log is read whatever they are now."""
    store = two_segments(10_000, Compression.GZIP)
    log = log_of(store, bounds=BatchBounds(content=ContentBounds(max_bytes=10_000)))
    before = len(store.read(0, 1, before_offset=1))
    clean(log)
    assert len(store.read(0, 1, before_offset=1)) < before


def test_a_huge_record_stays_whole() -> None:
    """A record that is many chunks long is copied as it is, beside one that goes."""
    large = Record(offset=1, timestamp_ms=0, key=b"l", value=bytes(1_000_000))
    store = MemoryStore()
    log = log_of(store)
    content = record_bytes(Record(offset=0, timestamp_ms=0, key=b"k", value=b"old"), 0, 0)
    send(log, content + record_bytes(large, 0, 0), 2, Compression.ZSTD)
    send(log, content_of(1), 1, Compression.NONE)
    send(log, content_of(1), 1, Compression.NONE)
    clean(log)
    assert left_in(log) == [(1, bytes(1_000_000)), (2, b"0"), (3, b"0")]
