"""A segment that ends anywhere, or has a wrong byte, loses what is behind and nothing before."""

import contextlib
from pathlib import Path

import pytest

from coordinator_sim.log.format.record_batches import Record, batch_of, encode_record_batch
from coordinator_sim.log.log_config import LogConfig
from coordinator_sim.log.partition_log import PartitionLog
from coordinator_sim.messages.records import EndTransactionMarker
from tests.unit.disk.segment_worlds import (
    START_MS,
    Dead,
    MortalFiles,
    contents,
    encoded,
    opened,
    put,
    span,
)

NAME = "00000000000000000000.log"


def test_every_cut_keeps_the_whole_batches_before_it(tmp_path: Path) -> None:
    """Cut at every byte of the last two batches: the store ends with the last whole one."""
    store, _ = opened(tmp_path / "t-0")
    ends = [0]
    offset = 0
    for _ in range(5):
        offset = put(store, offset, count=2, at_ms=START_MS + offset)
        ends.append(store.segments()[0].size_bytes)
    store.close()
    log = tmp_path / "t-0" / NAME
    data = log.read_bytes()
    for size in range(ends[3], len(data) + 1):
        log.write_bytes(data[:size])
        again, recovery = opened(tmp_path / "t-0", is_clean=False)
        whole = max(end for end in ends if end <= size)
        assert contents(again) == data[:whole]
        assert log.stat().st_size == whole
        assert [cut.cut_bytes for cut in recovery.cuts] == [size - whole] * (size > whole)
        assert again.segments()[-1].next_offset == 2 * ends.index(whole)
        put(again, 2 * ends.index(whole))
        again.close()


def test_every_wrong_byte_of_the_last_batch_is_noticed(tmp_path: Path) -> None:
    """Whatever byte of it is flipped, the batch goes.

    No CRC covers its base offset and leader epoch, which may hold other values.
    """
    store, _ = opened(tmp_path / "t-0")
    end = put(store, 0, count=2)
    start = store.segments()[0].size_bytes
    put(store, end, count=2)
    store.close()
    log = tmp_path / "t-0" / NAME
    data = log.read_bytes()
    survived = []
    for position in range(start, len(data)):
        log.write_bytes(data[:position] + bytes([data[position] ^ 0x41]) + data[position + 1 :])
        again, recovery = opened(tmp_path / "t-0", is_clean=False)
        if recovery.cuts:
            assert contents(again) == data[:start]
        else:
            survived.append(position - start)
        again.close()
    assert set(survived) <= {4, 5, 6, 7, 12, 13, 14, 15}


def test_what_follows_a_damaged_segment_goes_too(tmp_path: Path) -> None:
    """After a bad batch in an older segment nothing can be kept, and all of it is reported."""
    store, _ = opened(tmp_path / "t-0")
    for offset in range(60):
        put(store, offset)
    bases = [info.base_offset for info in store.segments()]
    assert len(bases) == 2
    store.close()
    log = tmp_path / "t-0" / NAME
    data = bytearray(log.read_bytes())
    data[-1] ^= 1
    log.write_bytes(data)
    again, recovery = opened(tmp_path / "t-0", is_clean=False)
    assert [cut.reason for cut in recovery.cuts] == [
        f"batch at offset {bases[1] - 1}: wrong CRC",
        "a segment before it was cut",
    ]
    assert again.segments()[-1].next_offset == bases[1] - 1
    assert sorted(path.name for path in (tmp_path / "t-0").iterdir()) == [
        f"{0:020d}.index",
        f"{0:020d}.log",
        f"{0:020d}.log.damaged",
        f"{0:020d}.timeindex",
        f"{bases[1]:020d}.log.damaged",
    ]
    assert (tmp_path / "t-0" / f"{0:020d}.log.damaged").read_bytes() == data[log.stat().st_size :]
    again.close()


def test_what_is_behind_the_recovery_point_is_not_read(tmp_path: Path) -> None:
    """Segments that are on the medium for certain are taken as they are."""
    store, _ = opened(tmp_path / "t-0")
    for offset in range(60):
        put(store, offset)
    second = store.segments()[1].base_offset
    store.close()
    log = tmp_path / "t-0" / NAME
    data = bytearray(log.read_bytes())
    data[-1] ^= 1
    log.write_bytes(data)
    again, recovery = opened(tmp_path / "t-0", is_clean=False, recovery_point=second + 3)
    assert recovery.cuts == []
    assert recovery.scanned_bytes == again.segments()[1].size_bytes
    again.close()


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
@pytest.mark.parametrize("damage", ["missing", "torn", "disordered"])
def test_a_bad_index_is_made_anew(tmp_path: Path, suffix: str, damage: str) -> None:
    """An index that is gone or nonsense costs a scan, also after an orderly end."""
    store, _ = opened(tmp_path / "t-0")
    for offset in range(35):
        put(store, offset, at_ms=START_MS + offset)
    expected = contents(store)
    store.close()
    index = tmp_path / "t-0" / f"{0:020d}.{suffix}"
    good = index.read_bytes()
    if damage == "missing":
        index.unlink()
    else:
        index.write_bytes(good[:-1] if damage == "torn" else good[::-1])
    again, recovery = opened(tmp_path / "t-0")
    assert len(recovery.rebuilt) == 1
    assert contents(again) == expected
    again.close()
    assert index.read_bytes() == good


def batch(producer_id: int) -> bytes:
    """One record of a transaction."""
    record = Record(offset=0, timestamp_ms=START_MS, key=b"k", value=bytes(200))
    return encode_record_batch(
        batch_of(
            (record,),
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
    )


@pytest.mark.parametrize("is_clean", [True, False])
def test_producers_and_transactions_come_back(tmp_path: Path, *, is_clean: bool) -> None:
    """Producers, open and aborted transactions and leader epochs are as they were."""
    config = LogConfig(segment_bytes=1_500)
    log = PartitionLog("t", 0, opened(tmp_path / "t-0")[0], config)
    for producer_id in range(12):
        log.append(batch(producer_id), now_ms=START_MS, leader_epoch=producer_id // 5)
        if producer_id % 4:
            marker = EndTransactionMarker(committed=producer_id % 4 == 1, coordinator_epoch=2)
            log.append_marker(producer_id, 0, marker, now_ms=START_MS, leader_epoch=2)
    seen = [(log.producers(), log.last_stable_offset, log.end_offset_for_epoch(1))]
    seen[0] += (log.read(0, max_bytes=1, read_committed=True),)
    if is_clean:
        log.close()
    store, _ = opened(tmp_path / "t-0", is_clean=is_clean)
    again = PartitionLog("t", 0, store, config)
    assert again.producers() == seen[0][0]
    assert again.last_stable_offset == seen[0][1]
    assert again.end_offset_for_epoch(1) == seen[0][2]
    assert again.read(0, max_bytes=1, read_committed=True) == seen[0][3]
    assert len(store.aborted(0, again.end_offset)) == 6
    again.close()


def test_a_cleaning_that_was_interrupted_is_finished_or_undone(tmp_path: Path) -> None:
    """Whatever step a cleaning died at, the log holds the old batches or the new, and opens."""
    outcomes = []
    for step in range(40):
        folder = tmp_path / f"t-{step}"
        files = MortalFiles(-1)
        store, _ = opened(folder, files=files)
        for offset in range(95):
            put(store, offset)
        old = contents(store)
        bases = [info.base_offset for info in store.segments()]
        new = encoded(3, 1, START_MS) + encoded(bases[2] - 1, 1, START_MS)
        spans = (span(3, 1, START_MS), span(bases[2] - 1, 1, START_MS))
        files.changes = step
        with contextlib.suppress(Dead):
            store.replace(bases[:2], new, spans)
        store.let_go()
        again, _ = opened(folder, is_clean=False)
        found = contents(again)
        outcomes.append(found != old)
        assert found in {old, new + old[old.index(encoded(bases[2], 1, START_MS)) :]}
        assert {path.suffix for path in folder.iterdir()} == {".index", ".log", ".timeindex"}
        again.close()
        if files.changes > 0:
            break
    assert outcomes == sorted(outcomes)
    assert 10 < len(outcomes) < 40
