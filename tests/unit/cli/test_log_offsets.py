"""`log offsets`: what a user sees of the last committed offsets."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import Result
from typer.testing import CliRunner

from coordinator_sim.cli.main import app
from coordinator_sim.disk.offsets_log import read_log, write_log
from coordinator_sim.errors import ConfigError
from coordinator_sim.log.format.compression import Compression
from coordinator_sim.log.format.log_batches import BatchForm
from coordinator_sim.messages.group_records import OffsetCommitKey, OffsetCommitValue

GOLDEN = Path(__file__).parents[1] / "log" / "golden" / "offsets-log-4.4.0"
SAMPLES = Path(__file__).parents[4] / "shared" / "samples" / "offsets-segments"
SEGMENT = "00000000000000000000.log"


def command(*arguments: str | Path) -> Result:
    """What `log offsets` did."""
    return CliRunner().invoke(app, ["log", "offsets", *map(str, arguments)])


def shown(*arguments: str | Path) -> dict[str, list[dict[str, object]]]:
    """What it prints as JSON."""
    answer: dict[str, list[dict[str, object]]] = json.loads(command(*arguments, "--json").stdout)
    return answer


def replayed(directory: Path) -> dict[tuple[str, str, int], int]:
    """The offsets in a log by a plain replay: pending ones wait for their marker."""
    offsets: dict[tuple[str, str, int], tuple[int, int | None]] = {}
    pending: dict[int, list[tuple[tuple[str, str, int], int, int | None]]] = {}

    def take(rows: list[tuple[tuple[str, str, int], int, int | None]]) -> None:
        for key, at, value in rows:
            if at >= offsets.get(key, (-1, None))[0]:
                offsets[key] = (at, value)

    for batch in read_log(directory):
        if batch.control:
            ended = pending.pop(batch.producer_id, [])
            take(ended if batch.marker is not None and batch.marker.committed else [])
            continue
        rows = []
        for at, record in enumerate(batch.records, batch.base_offset):
            if isinstance(record.key, OffsetCommitKey):
                value = record.value
                key = (record.key.group, record.key.topic, record.key.partition)
                rows.append(
                    (key, at, value.offset if isinstance(value, OffsetCommitValue) else None)
                )
        if batch.transactional:
            pending.setdefault(batch.producer_id, []).extend(rows)
        else:
            take(rows)
    return {key: value for key, (_, value) in offsets.items() if value is not None}


@pytest.mark.parametrize("codec", list(Compression))
def test_a_brokers_log_has_the_offsets_that_a_replay_finds(
    tmp_path: Path, codec: Compression
) -> None:
    """A log of Kafka 4.4.0 with transactions and deletions, as it is and in each codec."""
    write_log(tmp_path, read_log(GOLDEN), BatchForm(compression=codec))
    logs = GOLDEN if codec is Compression.NONE else tmp_path

    found = {
        (row["group"], row["topic"], row["partition"]): row["offset"]
        for row in shown(logs)["offsets"]
        if row["offset"] is not None
    }

    assert found == replayed(GOLDEN)
    assert len(found) > 3


def test_a_table_of_offsets_and_one_of_segments_are_printed() -> None:
    """A line an offset, a line a segment, and the sums."""
    lines = command(GOLDEN).stdout.splitlines()

    assert lines[0].split() == ["group", "topic", "partition", "offset", "committed", "commits"]
    assert any(line.split()[:4] == ["plain", "orders", "0", "11"] for line in lines)
    assert any(line.startswith("segment ") for line in lines)
    assert any(" 100.0% " in line for line in lines)


def test_one_group_alone_is_read() -> None:
    """The others are neither printed nor counted as commits."""
    done = shown(GOLDEN, "--group", "txn")

    assert {row["group"] for row in done["offsets"]} == {"txn"}
    assert shown(GOLDEN, "--group", "none")["offsets"] == []


def test_damage_is_listed_and_is_an_exit_code(tmp_path: Path) -> None:
    """What is before a torn tail, and behind a wrong CRC, is read all the same."""
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    whole = (GOLDEN / "__consumer_offsets-0" / SEGMENT).read_bytes()
    (folder / SEGMENT).write_bytes(whole[:80] + b"\xff" + whole[81:-1])

    done = command(tmp_path)

    assert done.exit_code == 1
    assert f"damaged: {folder / SEGMENT}, byte 0: batch at offset" in done.stdout
    assert "wrong CRC" in done.stdout
    assert "the last batch is cut short; 102 bytes skipped" in done.stdout
    assert command(GOLDEN).exit_code == 0


def test_a_file_that_is_no_segment_is_damage_from_its_first_byte(tmp_path: Path) -> None:
    """Its bytes are counted as skipped."""
    other = tmp_path / "notes.txt"
    other.write_text("these are notes, and no batch of any format at all\n")

    done = command(other)

    assert done.exit_code == 1
    assert "byte 0" in done.stdout
    assert "51 bytes skipped" in done.stdout


def test_zeros_behind_the_last_batch_are_a_tail(tmp_path: Path) -> None:
    """A broker that died leaves a file as long as it was to become."""
    copy = tmp_path / SEGMENT
    copy.write_bytes((GOLDEN / "__consumer_offsets-1" / SEGMENT).read_bytes() + bytes(10_000))

    assert "the tail is filled with zeros; 10000 bytes skipped" in command(copy).stdout


def test_another_brokers_copy_of_a_partition_is_not_counted_twice(tmp_path: Path) -> None:
    """Of two folders of one partition the one that reaches further is read, and the other named."""
    write_log(tmp_path / "one", read_log(GOLDEN))
    write_log(tmp_path / "two", read_log(GOLDEN))
    behind = tmp_path / "two" / "__consumer_offsets-1" / SEGMENT
    behind.write_bytes(behind.read_bytes()[:-1])

    both = command(tmp_path / "one", tmp_path / "two", tmp_path / "one" / "__consumer_offsets-1")

    assert f"reaches further: {behind.parent}" in both.stdout
    assert both.exit_code == 0
    assert shown(tmp_path / "one", tmp_path / "two")["offsets"] == shown(GOLDEN)["offsets"]


def test_tables_are_written_as_parquet(tmp_path: Path) -> None:
    """The same rows as JSON has; the terminal shows the segments alone."""
    done = command(GOLDEN, "--parquet", tmp_path / "tables")
    rows = pq.read_table(tmp_path / "tables" / "offsets.parquet").to_pylist()
    segments = pq.read_table(tmp_path / "tables" / "segments.parquet").to_pylist()

    assert [row["offset"] for row in rows] == [row["offset"] for row in shown(GOLDEN)["offsets"]]
    assert all(row["coverage"] == 1.0 and row["damage"] == [] for row in segments)
    assert not done.stdout.startswith("group")
    assert f"tables: {tmp_path / 'tables'}" in done.stdout


def test_bad_paths_are_misuse(tmp_path: Path) -> None:
    """The message says what to name instead."""
    (tmp_path / "file").write_bytes(b"")
    for arguments, words in (
        ((tmp_path / "absent",), "no such file"),
        ((GOLDEN, "--parquet", tmp_path / "file"), "is a file; name a directory"),
    ):
        done = command(*arguments)
        assert isinstance(done.exception, ConfigError)
        assert words in str(done.exception)


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="samples of real brokers are not here")
def test_segments_of_real_brokers_are_read_whole() -> None:
    """Groups alone are in them: every record is counted, none is a commit, nothing is damaged."""
    done = shown(*sorted(SAMPLES.glob("*.log")))

    assert done["offsets"] == []
    assert [segment["records"] for segment in done["segments"]] == [2, 2, 2, 3, 1, 3, 3, 3]
    assert all(segment["coverage"] == 1.0 for segment in done["segments"])
    assert all(segment["damaged_places"] == 0 for segment in done["segments"])
