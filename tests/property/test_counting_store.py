"""A log with counted records: whatever is appended is read once and in order, by any limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.log.counting_store import CountingStore
from coordinator_sim.log.format.counted_batches import counted_batch, declared_size
from coordinator_sim.log.format.record_batches import HEADER_SIZE
from coordinator_sim.log.format.stored_batches import next_batch
from coordinator_sim.log.log_config import LogConfig
from coordinator_sim.log.partition_log import PartitionLog
from tests.unit.log.test_counting_store import put, put_counted

RUNS = st.tuples(st.integers(1, 5_000), st.integers(0, 300), st.integers(0, 10_000_000_000))
"""Records, bytes of each, offsets without a record."""
APPENDS = st.lists(st.one_of(RUNS, st.sampled_from("abcdef")), max_size=12)
LIMITS = st.lists(st.integers(0, 200_000), min_size=1, max_size=20)


@pytest.mark.property
@given(appends=APPENDS, limits=LIMITS, compacts=st.booleans())
def test_every_record_is_read_once_and_in_order(
    appends: list[tuple[int, int, int] | str], limits: list[int], *, compacts: bool
) -> None:
    """Counted ones as many as there are with the sizes that they have, others with their keys."""
    log = PartitionLog("t", 0, CountingStore(), LogConfig(cleanup_policy="compact"))
    for number, each in enumerate(appends):
        if isinstance(each, str):
            put(log, each.encode(), b"%d" % number)
        else:
            put_counted(log, each[0], each[1], each[0] + each[2])
    keys = [each for each in appends if isinstance(each, str)]
    if compacts:
        log.compact(now_ms=0)
        keys = sorted(dict.fromkeys(keys), key=lambda key: -keys[::-1].index(key))
    read: list[str] = []
    at = count = size_bytes = fetches = 0
    while at < log.end_offset:
        limit = limits[fetches % len(limits)] + HEADER_SIZE
        fetches += 1
        data = log.read(at, max_bytes=limit).records
        if not data:
            break
        counted = counted_batch(data)
        if counted is not None:
            assert counted.base_offset >= at
            assert declared_size(data) <= limit or counted.count == 1
            at, count = counted.next_offset, count + counted.count
            size_bytes += counted.size_bytes
        position = 0
        while (batch := next_batch(data, position)) is not None:
            assert batch.base_offset >= at
            position, at = position + batch.size, batch.next_offset
            read += [(record.key or b"").decode() for record in batch.records()]
    runs = [each for each in appends if not isinstance(each, str)]
    assert read == keys
    assert count == sum(run[0] for run in runs)
    assert size_bytes == sum(run[0] * (run[1] + 10) for run in runs)
