"""The cleaner over very large batches: in slices, with next to nothing in memory."""

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.cleaning import LogCleaning
from coordinator_sim.log.format.compression import Compression, ContentBounds
from coordinator_sim.log.format.record_bytes import Record, record_bytes
from coordinator_sim.log.format.steps import SLICE
from coordinator_sim.log.log_config import BatchBounds, LogConfig
from coordinator_sim.log.memory_store import MemoryStore
from coordinator_sim.log.partition_log import PartitionLog
from coordinator_sim.log.spans import batches_in
from tests.unit.log.test_large_batches import NOW_MS, batch, make_log, peak_bytes

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
