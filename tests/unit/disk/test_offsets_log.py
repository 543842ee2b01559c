"""The offsets log on disk."""

from pathlib import Path

import pytest

from coordinator_sim.disk.offsets_log import read_log, segment_files, write_log
from coordinator_sim.errors import DataError
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.log.format.log_batches import BatchForm, encode_batch, form_of
from coordinator_sim.messages.group_records import OffsetCommitKey
from coordinator_sim.messages.records import LogBatch, LogRecord

GOLDEN = Path(__file__).parents[1] / "log" / "golden" / "offsets-log-4.4.0"


def tombstone(partition: int, offset: int) -> LogBatch:
    """A batch of one tombstone."""
    record = LogRecord(OffsetCommitKey("g", "t", 0), None, 0)
    return LogBatch(partition=partition, base_offset=offset, timestamp_ms=1, records=(record,))


def test_a_log_is_written_by_partition_and_read_back(tmp_path: Path) -> None:
    """Segments roll, older ones go, and partitions are numbers, not text."""
    batches = [tombstone(partition, offset) for offset in range(3) for partition in (10, 2)]
    write_log(tmp_path, [tombstone(2, 900)])
    (tmp_path / "__consumer_offsets-2" / "notes.log").write_text("mine")

    files = write_log(tmp_path, batches, segment_bytes=200)

    assert [str(path.relative_to(tmp_path)) for path in files] == [
        f"__consumer_offsets-{partition}/{offset:020d}.log"
        for partition in (2, 10)
        for offset in (0, 2)
    ]
    assert list(read_log(tmp_path)) == sorted(batches, key=lambda one: one.partition)
    assert segment_files(tmp_path) == files
    assert (tmp_path / "__consumer_offsets-2" / "notes.log").exists()


def test_a_real_brokers_log_is_read_and_written_back_byte_for_byte(tmp_path: Path) -> None:
    """Kafka 4.4.0: groups, offsets with topic ids, tombstones, transactions and markers."""
    write_log(tmp_path, read_log(GOLDEN))

    for path in segment_files(GOLDEN):
        assert (tmp_path / path.relative_to(GOLDEN)).read_bytes() == path.read_bytes()
    assert len(segment_files(tmp_path)) == 3


def test_a_damaged_segment_is_named(tmp_path: Path) -> None:
    """What stands before the damage is handed out."""
    (path,) = write_log(tmp_path, [tombstone(3, 0)])
    path.write_bytes(path.read_bytes() + b"\x00" * 30)
    batches = read_log(tmp_path)

    assert next(batches) == tombstone(3, 0)
    with pytest.raises(DataError, match=r"0\.log: segment: the tail is filled with zeros"):
        next(batches)


@pytest.mark.parametrize(
    ("profile", "form"),
    [
        ("4.4", BatchForm(magic=2, sequenced=True)),
        ("3.9", BatchForm(magic=2, sequenced=False)),
        ("0.10.2", BatchForm(magic=1, sequenced=False)),
    ],
)
def test_each_profile_writes_its_own_form(profile: str, form: BatchForm) -> None:
    """Magic and sequences are those of that Kafka."""
    assert form_of(profile_named(profile)) == form
    assert encode_batch(tombstone(0, 0), form)[16] == form.magic
