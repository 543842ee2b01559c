"""Traces and reports behind URIs that plain Python cannot open, through Spark's file systems."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
import pytest

from coordinator_sim.cli.arguments import find_task_file
from coordinator_sim.cli.sweep import asked_for, grid_alone
from coordinator_sim.cli.uris import located
from coordinator_sim.disk.offsets_log import read_log, write_log
from coordinator_sim.errors import ConfigError, CoordinatorSimError, DataError
from coordinator_sim.sim.scenario.files import load_plan
from coordinator_sim.sim.scenario.variety import Variety
from coordinator_sim_reports.hadoop_files import HadoopPath, location
from coordinator_sim_reports.jobs import build_report
from coordinator_sim_reports.sources import open_traces, read_traces
from coordinator_sim_scenarios.catalog import scenario_named
from tests.command_line import run_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
GOLDEN = Path(__file__).parents[1] / "unit" / "log" / "golden" / "offsets-log-4.4.0"
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
        ("run", "s3a://bucket/story.py"),
        ("run", "member-crash", "--out", "s3a://bucket/trace"),
        ("run", "member-crash", "--out", "s3a:bucket"),
        ("run", "member-crash", "--out", "a:b"),
        ("run", "member-crash", "--log-dir", "s3a://bucket/log"),
        ("run", "member-crash", "--broker-log", "hdfs://cluster/server.log"),
        ("run", "member-crash", "--request-log", "file:///tmp/requests.log"),
        ("rehearse", "trace", "--out", "hdfs://cluster/rehearsal"),
    ],
)
def test_what_is_to_be_a_path_is_no_uri(command: tuple[str, ...], tmp_path: Path) -> None:
    """In one line, before anything is written: a URI is no folder of that name."""
    done = run_here(*command, folder=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert "is a URI, and this is to be a path of this machine" in line
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "command",
    [
        ("ingest", "s3a://logs/server.log"),
        ("ingest", "server.log", "--out", "hdfs://cluster/trace"),
        ("ingest", "server.log", "--append-to", "hdfs://cluster/trace"),
        ("log", "offsets", "hdfs://cluster/segments"),
        ("log", "offsets", "segments", "--parquet", "hdfs://cluster/offsets"),
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


@pytest.fixture(scope="module")
def world(disk: Path) -> str:
    """A scenario's file whose load is in a file beside it, and a grid of it."""
    data = msgspec.to_builtins(scenario_named("member-crash"))
    data["topics"][0]["load"] = {"type": "recorded", "file": "load.csv"}
    (disk / "mine.json").write_bytes(msgspec.json.encode(data))
    (disk / "load.csv").write_text("second,records\n0,20\n60,40\n")
    (disk / "grid.toml").write_text('scenarios = ["mine.json"]\nseeds = [3]\n')
    return "mine.json"


def test_a_scenario_behind_a_uri_is_that_of_a_path(
    world: str, mounted: str, disk: Path, tmp_path: Path, spark: "SparkSession"
) -> None:
    """For all that read one: what lies beside it is found there, too."""
    found = [run_here("show", f"{place}/{world}", "--json").stdout for place in (mounted, disk)]
    assert found[0] == found[1]
    assert '"points"' in found[0]
    there = run_here("run", f"{mounted}/{world}", "--json", folder=tmp_path)
    here = run_here("run", disk / world, "--json", folder=tmp_path)
    assert json.loads(there.stdout)["digest"] == json.loads(here.stdout)["digest"]

    path_of = partial(located, spark=spark)
    asked = [
        asked_for(
            [f"{folder}/{world}"],
            1,
            path_of=path_of,
            variety=Variety(),
            processing_times=(),
            assignors="",
            memberships="",
            own=(),
        )
        for folder in (mounted, str(disk))
    ]
    assert asked[0] == asked[1]
    assert asked[0].written["member-crash"].topics[0].load is not None
    grids = [grid_alone([f"{folder}/grid.toml"], path_of, []) for folder in (mounted, str(disk))]
    assert grids[0] == grids[1]
    (disk / "tasks.json").write_bytes(find_task_file("bench-under-faults").read_bytes())
    plans = [load_plan(find_task_file(f"{each}/tasks.json", spark)) for each in (mounted, disk)]
    assert plans[0].tasks == plans[1].tasks


def test_segments_behind_a_uri_are_dumped(mounted: str, disk: Path, tmp_path: Path) -> None:
    """The text is that of a path, and a torn segment ends in 1 as there."""
    write_log(disk / "segments", read_log(GOLDEN), segment_bytes=400)
    torn = max((disk / "segments").glob("*/*.log"))
    torn.write_bytes(torn.read_bytes()[:-3])
    here = run_here("log", "dump", disk / "segments", folder=tmp_path)
    there = run_here("log", "dump", f"{mounted}/segments", folder=tmp_path)
    assert (here.returncode, there.returncode) == (1, 1)
    assert len(here.stdout.splitlines()) > 20
    assert there.stdout.replace(mounted, str(disk)) == here.stdout


def test_tables_of_last_offsets_go_behind_a_uri(mounted: str, disk: Path, tmp_path: Path) -> None:
    """Byte for byte those of a path, in the place of older ones."""
    words = ("log", "offsets", GOLDEN, "--parquet")
    here = run_here(*words, tmp_path / "here", folder=tmp_path)
    assert here.returncode == 0, here.stderr
    (disk / "last").mkdir()
    (disk / "last" / "offsets.parquet").write_bytes(b"older" * 10_000)
    there = run_here(*words, f"{mounted}/last", "--spark", "local[1]", folder=tmp_path)
    assert there.returncode == 0, there.stderr
    names = sorted(path.name for path in (tmp_path / "here").iterdir())
    assert names == ["offsets.parquet", "segments.parquet"]
    for name in names:
        assert (disk / "last" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()
    assert there.stdout.replace(f"{mounted}/last", str(tmp_path / "here")) == here.stdout


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("run", "{uri}/gone.json"), "{uri}/gone.json: no such file or folder"),
        (("run", "nowhere://host/a.json"), "nowhere://host/a.json: Spark knows no file system"),
        (("show", "{uri}/trace/run.json"), "{uri}/trace/run.json: Object contains unknown field"),
        (("log", "dump", "{uri}/gone"), "{uri}/gone: no such file or folder"),
        (("log", "dump", "nowhere://host/a"), "nowhere://host/a: Spark knows no file system"),
        (("sweep", "{uri}/gone.toml"), "{uri}/gone.toml: no such file or folder"),
        (("rollout", "{uri}/gone.json"), "{uri}/gone.json: no such file or folder"),
        (
            ("rollout", "member-crash", "--out", "nowhere://host/a"),
            "nowhere://host/a: Spark knows no file system",
        ),
        (
            (
                "log",
                "offsets",
                str(GOLDEN),
                "--spark",
                "local[1]",
                "--parquet",
                "{uri}/trace/run.json",
            ),
            "{uri}/trace/run.json is a file; name a directory for the tables",
        ),
    ],
)
def test_a_bad_uri_of_a_command_is_one_line(
    words: tuple[str, ...], line: str, mounted: str, tmp_path: Path
) -> None:
    """Each names the URI, and nothing is written."""
    done = run_here(*(word.format(uri=mounted) for word in words), folder=tmp_path)
    assert done.returncode == 2
    (told,) = done.stderr.splitlines()
    assert told.startswith(f"error: {line.format(uri=mounted)}")
    assert not list(tmp_path.iterdir())


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


@pytest.mark.nightly
def test_a_rollout_behind_a_uri_is_that_of_a_path(
    world: str, mounted: str, disk: Path, tmp_path: Path
) -> None:
    """The same ranking; a plan's scenario, which the table names, runs from where it is."""
    words = ("rollout", "--batch", "1", "--pause", "10s", "--seeds", "1", "--json")
    here = run_here(*words, disk / world, "--out", "here", folder=tmp_path)
    there = run_here(*words, f"{mounted}/{world}", "--out", f"{mounted}/rolled", folder=tmp_path)
    assert there.returncode == here.returncode == 0, there.stderr
    assert there.stdout.replace(f"{mounted}/rolled", "here") == here.stdout
    for page in ("rollout.html", "sweep.html"):
        assert (disk / "rolled" / page).is_file()
    plan = json.loads(there.stdout)["costs"][0]["file"]
    assert plan.startswith(f"{mounted}/rolled/plans/")
    again = run_here("show", plan, "--json", folder=tmp_path)
    assert again.stdout.encode() == Path(plan.replace(mounted, str(disk))).read_bytes()


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
