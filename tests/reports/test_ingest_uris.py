"""Sources and traces behind URIs that Python cannot open, read and written through Spark."""

import json
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from coordinator_sim.disk.offsets_log import read_log, write_log
from coordinator_sim.runs.run_directory import read_run
from coordinator_sim_scenarios.catalog import scenario_named
from tests.command_line import run_here
from tests.unit.ingest.runs_as_sources import leave_behind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
CUT_AT = 12
GOLDEN = Path(__file__).parents[1] / "unit" / "log" / "golden" / "offsets-log-4.4.0"


@pytest.fixture(scope="module")
def mount(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that is mounted elsewhere: Hadoop keeps a mount for the life of its JVM."""
    return tmp_path_factory.mktemp("mounted")


@pytest.fixture
def disk(mount: Path, tmp_path: Path) -> Path:
    """A folder in it, for one test."""
    folder = mount / tmp_path.name
    folder.mkdir()
    return folder


@pytest.fixture
def mounted(mount: Path, disk: Path, spark: "SparkSession") -> Iterator[str]:
    """The URI of that folder: a name of Hadoop's configuration, and no path of this machine."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    link = "fs.viewfs.mounttable.sources.link./data"
    hadoop.set(link, mount.as_uri())
    yield f"viewfs://sources/data/{disk.name}"
    hadoop.unset(link)


def ingest(*words: str | Path, folder: Path) -> "CompletedProcess[str]":
    """Run the command; it succeeds."""
    done = run_here("ingest", *words, folder=folder)
    assert done.returncode == 0, done.stderr
    return done


def rows(trace: Path, disk: Path, uri: str) -> dict[str, list[dict[str, Any]]]:
    """The tables of a trace without its id, and with paths for URIs."""
    found = {}
    for table in ("events", "generations", "resources"):
        read = pq.read_table(trace / table).to_pylist() if (trace / table).is_dir() else []
        text = json.dumps([{**row, "trace_id": ""} for row in read], default=str)
        found[table] = json.loads(text.replace(f"{uri}/", f"{disk}/"))
    return found


def test_every_source_behind_a_uri_gives_the_trace_of_paths(
    disk: Path, mounted: str, tmp_path: Path
) -> None:
    """A log, a request log and segments, to a trace behind a URI, in the place of an older one."""
    leave_behind(scenario_named("coordinator-lost-in-join"), disk / "sources")
    names = sorted(path.name for path in (disk / "sources").iterdir())
    ingest(*(disk / "sources" / name for name in names), "--out", "here", folder=tmp_path)
    (disk / "there").mkdir()
    (disk / "there" / "run.json").write_text("{}")

    told = ingest(
        *(f"{mounted}/sources/{name}" for name in names),
        *("--spark", "local[1]", "--out", f"{mounted}/there"),
        folder=tmp_path,
    )

    assert f"events written to {mounted}/there" in told.stdout
    assert rows(disk / "there", disk, mounted) == rows(tmp_path / "here", disk, mounted)
    files = read_run(disk / "there").info.files
    assert all(file.path.startswith(f"{mounted}/sources/") for file in files)
    assert sorted(path.name for path in disk.iterdir()) == ["sources", "there"]


def test_a_day_is_appended_behind_a_uri(disk: Path, mounted: str, tmp_path: Path) -> None:
    """Known files are passed over, files of the trace that are settled stay as they are."""
    leave_behind(scenario_named("coordinator-lost-in-join"), disk / "all")
    lines = (disk / "all" / "server.log").read_text("utf-8").splitlines(keepends=True)
    logs = disk / "logs"
    logs.mkdir()
    (logs / "server.log.1").write_text("".join(lines[:CUT_AT]), "utf-8")
    spark = ("--spark", "local[1]")
    ingest(f"{mounted}/logs", *spark, "--out", f"{mounted}/month", folder=tmp_path)
    (logs / "server.log.2").write_text("".join(lines[CUT_AT:]), "utf-8")

    told = ingest(f"{mounted}/logs", *spark, "--append-to", f"{mounted}/month", folder=tmp_path)
    again = ingest(f"{mounted}/logs", *spark, "--append-to", f"{mounted}/month", folder=tmp_path)
    ingest(logs, "--out", "whole", folder=tmp_path)

    assert "1 file read before" in told.stdout
    assert f"events appended to {mounted}/month" in told.stdout
    assert "Nothing to append" in again.stdout
    month = rows(disk / "month", disk, mounted)
    assert month == rows(tmp_path / "whole", disk, mounted)
    assert len(month["events"]) > CUT_AT
    assert sorted(path.name for path in disk.iterdir()) == ["all", "logs", "month"]


def test_last_offsets_of_segments_behind_a_uri(disk: Path, mounted: str, tmp_path: Path) -> None:
    """The same as of paths, a torn segment included, which is named by its URI."""
    write_log(disk, read_log(GOLDEN), segment_bytes=400)
    torn = max(disk.glob("*/*.log"))
    torn.write_bytes(torn.read_bytes()[:-3])

    here = run_here("log", "offsets", disk, "--json", folder=tmp_path)
    words = (mounted, "--json", "--spark", "local[1]")
    there = run_here("log", "offsets", *words, folder=tmp_path)

    assert (there.returncode, here.returncode) == (1, 1), there.stderr
    told = [path.as_posix() for path in disk.rglob("*") if path.is_file()]
    assert there.stdout.count(mounted) >= len(told)
    assert there.stdout.replace(mounted, str(disk)) == here.stdout


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (("{uri}/gone.log",), 2, "{uri}/gone.log: no such file or folder"),
        (("{uri}/empty",), 2, "{uri}/empty: no log in this folder"),
        (("{uri}/zero.log",), 1, "{uri}/zero.log: is empty"),
        (("nowhere://host/a.log",), 2, "nowhere://host/a.log: Spark knows no file system"),
        (("{uri}/some.log", "--out", "{uri}/other"), 2, "{uri}/other holds 'mine.txt'"),
        (("{uri}/some.log", "--append-to", "{uri}/other"), 1, "{uri}/other is not a trace"),
    ],
)
def test_bad_uris_are_one_line(
    words: tuple[str, ...], code: int, line: str, disk: Path, mounted: str, tmp_path: Path
) -> None:
    """Each names the URI, and nothing is left beside what was there."""
    (disk / "empty").mkdir()
    (disk / "other").mkdir()
    (disk / "other" / "mine.txt").write_text("mine")
    (disk / "zero.log").touch()
    (disk / "some.log").write_text("[2026-01-01 00:00:00,000] INFO started (kafka.server)\n")
    before = sorted(disk.rglob("*"))

    named = [word.format(uri=mounted) for word in words]
    done = run_here("ingest", *named, "--spark", "local[1]", folder=tmp_path)

    assert done.returncode == code
    (told,) = done.stderr.splitlines()
    assert told.startswith(f"error: {line.format(uri=mounted)}")
    assert sorted(disk.rglob("*")) == before
