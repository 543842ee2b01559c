"""Reports that are computed in this process."""

from pathlib import Path

import pytest

pytest.importorskip("duckdb", reason="needs the report extra")

import pyarrow as pa
import pyarrow.parquet as pq

from coordinator_sim.errors import DataError
from coordinator_sim.runs.run_directory import RunDirectoryWriter, read_run
from coordinator_sim.trace.events import RunInfo, Source
from coordinator_sim_reports import local_engine
from coordinator_sim_reports.jobs import build_report
from coordinator_sim_reports.local_engine import LocalEngine
from coordinator_sim_scenarios.catalog import all_scenarios
from tests.simulated import events_of


def written(path: Path) -> Path:
    """Write the trace of a crash."""
    info = RunInfo(trace_id="crash", source=Source.SIM, cluster_id="c", version="0", profile="4.4")
    with RunDirectoryWriter(path, info) as writer:
        for each in events_of(all_scenarios()["member-crash"]):
            writer.record(each)
    return path


def test_a_trace_that_is_named_twice_counts_once(tmp_path: Path) -> None:
    """As where a folder is named, and a trace in it."""
    trace = written(tmp_path / "traces" / "a")
    summary = build_report([trace, trace, tmp_path / "traces"], tmp_path / "out")
    assert (summary.runs, summary.rebalances) == (1, 2)


@pytest.mark.parametrize("name", ["~/out", "s3:out"])
def test_relative_paths_are_names(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No home folder and no scheme is seen in them."""
    written(tmp_path / name / "trace")
    monkeypatch.chdir(tmp_path)
    build_report([Path(name, "trace")], Path(name, "out"))
    assert (tmp_path / name / "out" / "tables" / "groups" / "part-00000.parquet").is_file()


def test_tables_that_are_links_are_replaced(tmp_path: Path) -> None:
    """What they point to stays."""
    trace, elsewhere = written(tmp_path / "trace"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "out" / "tables").mkdir(parents=True)
    (tmp_path / "out" / "tables" / "runs").symlink_to(elsewhere)
    assert build_report([trace], tmp_path / "out").runs == 1
    assert list(elsewhere.iterdir()) == []


def test_names_with_patterns_are_names(tmp_path: Path) -> None:
    """Brackets, stars and quotes in a path select no other files."""
    summary = build_report([written(tmp_path / "it's [1] *")], tmp_path / "out [2] *")
    assert summary.rebalances == 2
    assert (tmp_path / "out [2] *" / "tables" / "groups" / "part-00000.parquet").is_file()


@pytest.mark.parametrize("table", ["events", "generations"])
def test_a_damaged_file_is_named(table: str, tmp_path: Path) -> None:
    """Its footer is whole, and its rows are not."""
    trace = written(tmp_path / "trace")
    (file, *_) = sorted((trace / table).rglob("*.parquet"))
    content = bytearray(file.read_bytes())
    middle = len(content) // 3
    content[8:middle] = bytes(middle - 8)
    file.write_bytes(content)
    with pytest.raises(DataError, match=f"{file.name} cannot be read: it is damaged"):
        build_report([trace], tmp_path / "out")


def test_columns_of_later_releases_are_null(tmp_path: Path) -> None:
    """A trace that an earlier release wrote lacks them."""
    trace = written(tmp_path / "trace")
    for table, column in (("events", "client_reason"), ("generations", "join_done_us")):
        for file in (trace / table).rglob("*.parquet"):
            pq.write_table(pq.ParquetFile(file).read().drop_columns([column]), file)
    assert build_report([trace], tmp_path / "out").rebalances == 2


def test_assignments_come_back_in_parts_that_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many bytes a batch may have, the pass is given the same records."""
    run = read_run(written(tmp_path / "trace"))
    found = []
    for most in (1, 1 << 30):
        monkeypatch.setattr(local_engine, "_PIECE_BYTES", most)
        with LocalEngine(tmp_path / "out", str, [run, run]) as engine:
            frame = engine.read().dense_pieces
            batches = engine.arrow(frame).to_batches()
            parts = list(engine._with_pieces(batches))
            assert (len(parts) > 1) == (most == 1)
            found.append(pa.Table.from_batches(parts).to_pylist())
    assert found[0] == found[1]
    assert all(row["dense"].startswith(b"\xff\xff\xff\xff") for row in found[0])
