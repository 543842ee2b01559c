"""Traces and reports behind URIs that plain Python cannot open, through Spark's file systems."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from coordinator_sim.errors import ConfigError, CoordinatorSimError, DataError
from coordinator_sim_reports.hadoop_files import HadoopPath, location
from coordinator_sim_reports.jobs import build_report
from coordinator_sim_reports.sources import open_traces, read_traces
from tests.command_line import run_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
TABLES = ("groups", "rebalances", "reasons", "costs")


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one run as a trace of each form, which is mounted elsewhere."""
    folder = tmp_path_factory.mktemp("mounted")
    for name, form in (("trace", "parquet"), ("lines", "jsonl")):
        done = run_here("run", "member-crash", "--out", name, "--format", form, folder=folder)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def mounted(disk: Path, spark: "SparkSession") -> Iterator[str]:
    """The URI of that folder: a name of Hadoop's configuration, and no path of this machine."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    link = "fs.viewfs.mounttable.elsewhere.link./data"
    hadoop.set(link, disk.as_uri())
    yield "viewfs://elsewhere/data"
    hadoop.unset(link)


@pytest.mark.nightly
@pytest.mark.parametrize("trace", ["trace", "lines"])
def test_a_report_behind_uris_is_that_of_paths(
    trace: str, mounted: str, disk: Path, tmp_path: Path, spark: "SparkSession"
) -> None:
    """Page and tables, in a file system that Python knows nothing of."""
    here = build_report([disk / trace], tmp_path / "here")
    there = build_report([f"{mounted}/{trace}"], f"{mounted}/out/{trace}")
    assert there.page == f"{mounted}/out/{trace}/report.html"
    assert there.groups == here.groups
    page = (disk / "out" / trace / "report.html").read_text(encoding="utf-8")
    of_paths = Path(here.page).read_text(encoding="utf-8")
    assert page.replace(f"{mounted}/{trace}", str(disk / trace)) == of_paths
    for name in TABLES:
        one, other = (
            spark.read.parquet(f"{tables}/{name}") for tables in (here.tables, there.tables)
        )
        assert one.exceptAll(other).isEmpty(), name
        assert one.count() == other.count() > 0, name


def test_a_folder_of_traces_behind_a_uri(mounted: str, disk: Path, spark: "SparkSession") -> None:
    """What is no trace holds some below it; file URIs and paths go together."""
    with pytest.raises(ConfigError, match="are the same run"):
        open_traces([location(mounted, spark)])
    (told,) = open_traces([location(f"{disk.as_uri()}/trace/", spark)])
    (known,) = open_traces([location(str(disk / "trace"), spark)])
    assert told.info == known.info
    frames, of_paths = (read_traces(spark, [run]) for run in (told, known))
    assert frames.events.count() == of_paths.events.count() > 0


@pytest.mark.parametrize(
    "command",
    [
        ("sweep", "s3a://bucket/mine.json"),
        ("sweep", "hdfs://cluster/grid.toml"),
        ("log", "dump", "hdfs://cluster/segments"),
        ("log", "offsets", "segments", "--parquet", "hdfs://cluster/offsets"),
        ("rollout", "mine.json", "--out", "s3a://bucket/rollout"),
    ],
)
def test_a_command_of_paths_refuses_uris(command: tuple[str, ...], tmp_path: Path) -> None:
    """In one line, before anything is written: a URI is no folder of that name."""
    done = run_here(*command, folder=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert "is a URI, and this command takes paths of this machine" in line
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "command",
    [
        ("ingest", "s3a://logs/server.log"),
        ("ingest", "server.log", "--out", "hdfs://cluster/trace"),
        ("ingest", "server.log", "--append-to", "hdfs://cluster/trace"),
        ("log", "offsets", "hdfs://cluster/segments"),
    ],
)
def test_a_uri_without_spark_says_what_opens_it(command: tuple[str, ...], tmp_path: Path) -> None:
    """In one line, before anything is written."""
    done = run_here(*command, folder=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "is a URI, which is opened through Spark's file systems: add --spark MASTER" in line
    assert not list(tmp_path.iterdir())


def test_bad_uris_are_one_line(mounted: str, disk: Path, tmp_path: Path) -> None:
    """An unknown scheme, a missing trace, a folder that holds none, a damaged file, a bad place."""
    events = disk / "damaged" / "events"
    events.mkdir(parents=True)
    (disk / "damaged" / "run.json").write_bytes((disk / "trace" / "run.json").read_bytes())
    (events / "part-0.parquet").write_bytes(b"PAR1 and no more")
    (disk / "empty").mkdir()
    out = tmp_path / "report"
    cases: list[tuple[str, type[CoordinatorSimError], str]] = [
        ("nowhere://host/trace", ConfigError, "nowhere://host/trace: Spark knows no file system"),
        (f"{mounted}/gone", ConfigError, f"{mounted}/gone: no such file or folder"),
        (f"{mounted}/empty", DataError, f"{mounted}/empty is not a trace and holds none"),
        (f"{mounted}/damaged", DataError, f"{mounted}/damaged/events/part-0.parquet is not a file"),
        ("viewfs://unmounted/trace", CoordinatorSimError, "viewfs://unmounted/trace: "),
    ]
    for trace, kind, line in cases:
        with pytest.raises(kind) as caught:
            build_report([trace], out)
        assert str(caught.value).startswith(line)
        assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError, match="is a file; name a directory"):
        build_report([f"{mounted}/trace"], f"{mounted}/trace/run.json")
    assert not out.exists()


@pytest.mark.parametrize("name", ["127.0.0.1:9820", "a b", "50%", "%3A", "Größe"])
def test_any_name_of_this_machine_is_copied(
    name: str, disk: Path, mounted: str, tmp_path: Path, spark: "SparkSession"
) -> None:
    """From and to a URI: a name is not read as part of one."""
    (disk / "source").write_bytes(b"content")
    cast("HadoopPath", location(f"{mounted}/source", spark)).copy_here(tmp_path / name / "file")
    assert (tmp_path / name / "file").read_bytes() == b"content"
    cast("HadoopPath", location(f"{mounted}/sent", spark)).copy_from(tmp_path / name / "file")
    assert (disk / "sent").read_bytes() == b"content"


def test_the_command_takes_uris(mounted: str, disk: Path, tmp_path: Path) -> None:
    """Words of the command line reach Spark as they are."""
    done = run_here("report", f"{mounted}/trace", "--out", f"{mounted}/told", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"report: {mounted}/told/report.html" in done.stdout
    page = (disk / "told" / "report.html").read_text(encoding="utf-8")
    assert page.rstrip().endswith("</html>")
    assert str(disk) not in page
    assert (disk / "told" / "tables" / "rebalances").is_dir()
    assert not list(tmp_path.iterdir())
