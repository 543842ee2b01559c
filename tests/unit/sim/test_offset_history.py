"""How many source offsets a compacted topic holds: counted in segments, and record by record."""

import pytest

from coordinator_sim.log.format.counted_batches import RECORD_OVERHEAD_BYTES
from coordinator_sim.sim.internal_topics import compacted_offsets
from coordinator_sim.sim.scenario.world import OffsetHistory

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def one_by_one(history: OffsetHistory, keys: int, size_bytes: int) -> tuple[int, int]:
    """The same for one partition with every record at hand: (segment, dirty, key) of each."""
    kept: list[tuple[int, bool, int]] = []
    segment = began_ms = held_bytes = written = 0
    for at_ms in range(history.commit_every_ms, history.written_ms + 1, history.commit_every_ms):
        for key in range(keys):
            is_full = held_bytes + size_bytes > history.segment_bytes
            if held_bytes and (is_full or at_ms - began_ms > history.segment_ms):
                segment, held_bytes = segment + 1, 0
                dirty = sum(is_dirty for _, is_dirty, _ in kept)
                if dirty > history.min_cleanable_dirty_ratio * len(kept):
                    last = {each[2]: each for each in kept}
                    kept = [(number, False, each) for each, (number, _, _) in last.items()]
            began_ms = began_ms if held_bytes else at_ms
            kept.append((segment, True, key))
            held_bytes += size_bytes
            written += 1
    return len(kept), written


@pytest.mark.parametrize("ratio", [0.0, 0.3, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("keys", [1, 7, 100])
@pytest.mark.parametrize("segment_bytes", [1 << 20, 3 << 20])
@pytest.mark.parametrize("segment_ms", [HOUR_MS // 2, 5 * HOUR_MS, 7 * DAY_MS])
def test_segments_count_as_records_do(
    ratio: float, keys: int, segment_bytes: int, segment_ms: int
) -> None:
    """By size, by time and by both, cleaned always, now and then and never."""
    history = OffsetHistory(
        source_partitions=keys,
        commit_every_ms=HOUR_MS,
        written_ms=37 * HOUR_MS,
        segment_bytes=segment_bytes,
        segment_ms=segment_ms,
        min_cleanable_dirty_ratio=ratio,
    )
    record_bytes = 40_000
    wanted = one_by_one(history, keys, record_bytes + RECORD_OVERHEAD_BYTES)
    assert compacted_offsets(history, 1, record_bytes) == wanted


def test_source_partitions_are_spread_over_the_partitions() -> None:
    """Some have one more; a partition without any is empty."""
    history = OffsetHistory(source_partitions=7, commit_every_ms=HOUR_MS, written_ms=DAY_MS)
    assert compacted_offsets(history, 3, 100) == (7 * 24, 7 * 24)
    assert compacted_offsets(history, 25, 100) == (7 * 24, 7 * 24)


@pytest.mark.parametrize(
    ("days", "found"), [(3, 1_512_000), (30, 945_000), (60, 1_869_000), (90, 2_793_000)]
)
def test_what_is_found_depends_on_the_day_of_the_start(days: int, found: int) -> None:
    """At Kafka's own settings a week is never cleaned: the active segment's, and it varies."""
    history = OffsetHistory(
        source_partitions=21_000, commit_every_ms=HOUR_MS, written_ms=days * DAY_MS
    )
    assert compacted_offsets(history, 25, 100) == (found, 21_000 * 24 * days)
