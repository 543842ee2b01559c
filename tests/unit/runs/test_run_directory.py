from pathlib import Path

import pytest

from coordinator_sim.errors import ConfigError, DataError
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.kafka.states import GroupState
from coordinator_sim.messages.embedded.consumer_protocol import encode_assignment
from coordinator_sim.messages.embedded.contents import ConsumerAssignment
from coordinator_sim.runs import parquet
from coordinator_sim.runs.run_directory import RunDirectoryWriter, TraceFormat, read_run
from coordinator_sim.trace import events
from coordinator_sim.trace.digest import digest_of
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim.trace.schema import day_of

INFO = events.RunInfo(
    trace_id="run-1",
    source=events.Source.SIM,
    cluster_id="eu/1",
    version="0.1",
    profile="4.4",
    seed=7,
    options={"b": "2", "a": "1"},
)
FORMATS: tuple[TraceFormat, ...] = ("parquet", "jsonl")
DAY_US = 86_400_000_000


def story() -> list[events.TraceEvent]:
    """A few events that use every kind of column, over two days."""
    given = ConsumerAssignment(partitions=(TopicPartition("t", 1), TopicPartition("t", 0)))
    return [
        events.TraceEvent(
            event=events.Event.PREPARE_REBALANCE,
            ts_us=10,
            group_id="z",
            generation=0,
            reason=events.RebalanceReason.MEMBER_JOINED,
            state_from=GroupState.EMPTY,
            state_to=GroupState.PREPARING_REBALANCE,
            attrs={"y": "2", "x": "1"},
        ),
        events.TraceEvent(
            event=events.Event.JOIN_COMPLETE, ts_us=20, group_id="z", generation=1, members=1
        ),
        events.TraceEvent(
            event=events.Event.ASSIGNED,
            ts_us=30,
            group_id="z",
            generation=1,
            member_id="m",
            protocol_type="consumer",
            assignment=encode_assignment(given),
            error_code=ErrorCode.NONE,
            ts_kind=events.TimeKind.INFERRED,
            confidence=0.6,
        ),
        events.TraceEvent(
            event=events.Event.OFFSET_COMMIT,
            ts_us=DAY_US + 5,
            group_id="a",
            offsets=(
                events.OffsetEntry("t", 0, 12, metadata="note"),
                events.OffsetEntry("t", 1, 13, leader_epoch=4, commit_ts_us=9),
            ),
        ),
        events.TraceEvent(
            event=events.Event.GAP, ts_us=15, seq=900, source=events.Source.BROKER_LOG
        ),
    ]


def write(path: Path, trace_format: TraceFormat, *, keep_raw: bool = False) -> None:
    """Write the story as a run."""
    with RunDirectoryWriter(path, INFO, format=trace_format, keep_raw=keep_raw) as writer:
        for event in story():
            writer.record(event)


@pytest.mark.parametrize("trace_format", FORMATS)
def test_a_run_reads_back_as_it_was_recorded(tmp_path: Path, trace_format: TraceFormat) -> None:
    """Events come back in emission order, whatever their times, groups and days."""
    write(tmp_path / "run", trace_format)
    recorder = MemoryRecorder()
    for event in story():
        recorder.record(event)
    run = read_run(tmp_path / "run")
    assert list(run.events()) == recorder.events
    assert run.info.digest == recorder.digest == digest_of(run.events())


@pytest.mark.parametrize("trace_format", FORMATS)
def test_run_json_says_what_was_run_and_written(tmp_path: Path, trace_format: TraceFormat) -> None:
    """The manifest holds the run's facts, counts of rows and the span of time."""
    write(tmp_path / "run", trace_format)
    info = read_run(tmp_path / "run").info
    assert (info.trace_id, info.seed, info.options) == ("run-1", 7, {"a": "1", "b": "2"})
    assert info.counts == {
        "events": 5,
        "event_rows": 6,
        "generations": 1,
        "resource_lists": 1,
        "undecodable_assignments": 0,
    }
    assert (info.first_ts_us, info.last_ts_us) == (10, DAY_US + 5)


@pytest.mark.parametrize("trace_format", FORMATS)
def test_assignments_are_stored_dense(tmp_path: Path, trace_format: TraceFormat) -> None:
    """A generation is one row: an owner per resource, pointing to a list of names."""
    write(tmp_path / "run", trace_format)
    run = read_run(tmp_path / "run")
    (generation,) = run.generations()
    (names,) = run.resources()
    assert (generation.group_id, generation.generation, generation.owners) == ("z", 1, (0, 0))
    assert generation.resource_list_id == names.resource_list_id
    assert names.resources == ("p:t-0", "p:t-1")


def test_parquet_is_partitioned_by_cluster_and_day(tmp_path: Path) -> None:
    """Partition directories are Hive's, with the cluster's name escaped."""
    write(tmp_path / "run", "parquet")
    days = sorted(path.parent for path in (tmp_path / "run" / "events").rglob("*.parquet"))
    assert [day.name for day in days] == ["day=1970-01-01", "day=1970-01-02"]
    assert {day.parent.name for day in days} == {"cluster_id=eu%2F1"}


def test_long_runs_are_written_in_several_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory stays bounded: full buffers become files, read back in order."""
    monkeypatch.setattr(parquet, "CELLS_PER_FILE", 10)
    monkeypatch.setattr(parquet.ParquetEvents.__init__, "__kwdefaults__", {"rows_per_file": 7})
    with RunDirectoryWriter(tmp_path / "run", INFO) as writer:
        for number in range(40):
            writer.record(
                events.TraceEvent(event=events.Event.HEARTBEAT, ts_us=1_000 - number, group_id="g")
            )
    files = list((tmp_path / "run" / "events").rglob("*.parquet"))
    assert len(files) == 6
    times = [event.ts_us for event in read_run(tmp_path / "run").events()]
    assert times == [1_000 - number for number in range(40)]


@pytest.mark.parametrize(("keep_raw", "expected"), [(True, "the line"), (False, None)])
def test_raw_text_is_kept_on_demand(tmp_path: Path, keep_raw: bool, expected: str | None) -> None:
    """The original text of a line is stored only when asked for."""
    event = events.TraceEvent(event=events.Event.UNPARSED, ts_us=0, raw="the line")
    with RunDirectoryWriter(tmp_path / "run", INFO, keep_raw=keep_raw) as writer:
        writer.record(event)
    (read,) = read_run(tmp_path / "run").events()
    assert read.raw == expected


def test_a_crashed_run_leaves_no_manifest(tmp_path: Path) -> None:
    """A directory whose run ended with an exception is no trace."""

    def crash() -> None:
        with RunDirectoryWriter(tmp_path / "run", INFO) as writer:
            writer.record(events.TraceEvent(event=events.Event.HEARTBEAT, ts_us=0))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        crash()
    with pytest.raises(DataError, match=r"has no run\.json"):
        read_run(tmp_path / "run")


def test_a_new_run_replaces_the_old_one(tmp_path: Path) -> None:
    """Writing into the directory of a trace leaves nothing of the old trace."""
    write(tmp_path / "run", "parquet")
    with RunDirectoryWriter(tmp_path / "run", INFO, format="jsonl"):
        pass
    run = read_run(tmp_path / "run")
    assert list(run.events()) == []
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["run.json"]
    assert run.info.first_ts_us is None


def test_a_foreign_directory_is_left_alone(tmp_path: Path) -> None:
    """A directory with other files in it is refused, by name."""
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(ConfigError, match=r"thesis\.tex"):
        RunDirectoryWriter(tmp_path, INFO)


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    """A file in the place of the directory is refused."""
    target = tmp_path / "run"
    target.write_text("x")
    with pytest.raises(ConfigError, match="is a file"):
        RunDirectoryWriter(target, INFO)


@pytest.mark.parametrize("content", [b"", b"\x00\xff", b"[]", b'{"trace_id": 1}'])
def test_a_damaged_manifest_is_named(tmp_path: Path, content: bytes) -> None:
    """Whatever is wrong with run.json, the error names it."""
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(DataError, match=r"run\.json is not the record of a run"):
        read_run(tmp_path)


def test_a_missing_directory_is_named() -> None:
    """A path that does not exist is a mistake of who named it, not bad data."""
    with pytest.raises(ConfigError, match="nowhere: no such file or folder"):
        read_run(Path("nowhere"))


def test_a_file_is_no_trace(tmp_path: Path) -> None:
    """A trace is a directory."""
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="file is not a trace: it is no directory"):
        read_run(tmp_path / "file")


def test_a_damaged_parquet_file_is_named(tmp_path: Path) -> None:
    """A broken file of a finished trace is an error that names the file."""
    write(tmp_path / "run", "parquet")
    part = next((tmp_path / "run" / "events").rglob("*.parquet"))
    part.write_bytes(b"PAR1 no more")
    with pytest.raises(DataError, match=part.name):
        list(read_run(tmp_path / "run").events())


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    """A broken line of JSON is an error that names file and line."""
    write(tmp_path / "run", "jsonl")
    path = tmp_path / "run" / "events" / "events.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], lines[1][:20], *lines[2:]]))
    with pytest.raises(DataError, match=r"events\.jsonl, line 2"):
        list(read_run(tmp_path / "run").events())


@pytest.mark.parametrize(
    ("ts_us", "day"), [(0, "1970-01-01"), (DAY_US - 1, "1970-01-01"), (-1, "1969-12-31")]
)
def test_day_of_an_instant_is_its_utc_date(ts_us: int, day: str) -> None:
    """Days begin at midnight UTC, before 1970 as well."""
    assert day_of(ts_us) == day


def test_a_run_that_was_killed_reads_up_to_its_last_checkpoint(tmp_path: Path) -> None:
    """Lines behind the last checkpoint, and half a line, count as not written."""
    whole = MemoryRecorder()
    with RunDirectoryWriter(tmp_path / "run", INFO, format="jsonl") as writer:
        for event in story():
            writer.record(event)
            whole.record(event)
            writer.checkpoint()
            assert list(read_run(tmp_path / "run").events()) == whole.events
    with (tmp_path / "run" / "events" / "events.jsonl").open("ab") as file:
        file.write(b'{"cluster_id":"eu/1","ordinal":5,"ev')

    assert list(read_run(tmp_path / "run").events()) == whole.events
