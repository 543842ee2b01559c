"""`spark.read.format("kafka-group-trace")`: the events that `ingest` writes, in a frame."""

import re
from contextlib import chdir, redirect_stdout
from datetime import UTC
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="needs the spark extra")

from coordinator_sim.errors import ConfigError
from coordinator_sim.ingest.importing import Options, prepare
from coordinator_sim.ingest.writing import write_trace
from coordinator_sim.runs.run_directory import read_run
from coordinator_sim_reports.data_source import FORMAT, GroupTraceReader, register
from coordinator_sim_reports.sources import read_traces
from coordinator_sim_scenarios.catalog import scenario_named
from tests.unit.ingest.runs_as_sources import LeftBehind, leave_behind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[2]
EXAMPLE = re.compile(
    r"```python\n(from pyspark[^`]*?kafka-group-trace[^`]*?)```\n\n"
    r"<!-- shown by [^\n]*\n```text\n(.*?)```",
    re.DOTALL,
)


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> LeftBehind:
    """A run in the forms in which a cluster leaves it."""
    folder = tmp_path_factory.mktemp("sources")
    return leave_behind(scenario_named("coordinator-lost-in-join"), folder)


@pytest.fixture
def known(spark: "SparkSession") -> "SparkSession":
    """A session that knows the format."""
    register(spark)
    return spark


def rows(frame: "DataFrame") -> list[dict[str, Any]]:
    """Its rows in order, without the id of the trace."""
    told = [row.asDict() for row in frame.drop("trace_id", "cluster_id").collect()]
    return sorted(told, key=lambda row: (row["ordinal"], str(sorted(row.items()))))


@pytest.mark.parametrize("kind", ["broker-log", "request-log", "segments"])
def test_a_source_in_a_frame_is_the_trace_of_its_import(
    kind: str, left: LeftBehind, known: "SparkSession", tmp_path: Path
) -> None:
    """Every column of every event, of three kinds of sources."""
    path = {
        "broker-log": left.broker_log,
        "request-log": left.request_log,
        "segments": left.log_dir,
    }[kind]
    importing = prepare([path])
    write_trace(importing, Options(zone=UTC), tmp_path / "trace", lambda _used: None)

    frame = known.read.format(FORMAT).option("kind", kind).load(path.as_uri())

    expected = rows(read_traces(known, [read_run(tmp_path / "trace")]).events)
    assert len(expected) > 10
    assert rows(frame) == expected


def test_several_files_are_tasks_of_one_trace(left: LeftBehind, known: "SparkSession") -> None:
    """Each file is read by a task of its own, and recognised where no kind is named."""
    paths = [str(left.broker_log), str(left.request_log), str(left.log_dir)]
    frame = known.read.format(FORMAT).load(paths)
    assert frame.rdd.getNumPartitions() == 3
    assert frame.select("trace_id").distinct().count() == 1
    assert {Path(row[0]).name for row in frame.select("source_ref").distinct().collect()} >= {
        left.broker_log.name,
        left.request_log.name,
    }


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"kind": "log"}, "option kind='log': must be one of broker-log, request-log, segments"),
        ({"knid": "segments"}, "option 'knid': must be one of kind, tz, cluster, damaged"),
        ({"tz": "Mars/North"}, "option tz='Mars/North': no such time zone"),
        ({"damaged": "maybe"}, "option damaged='maybe': must be one of fail, keep"),
        ({"path": "s3a://logs/a"}, "s3a://logs/a is a URI, and this format takes paths"),
        ({"path": ""}, "no path: name files or folders in load(...)"),
    ],
)
def test_a_bad_option_is_one_line(options: dict[str, str], line: str) -> None:
    """It names the value and what there is."""
    with pytest.raises(ConfigError) as refused:
        GroupTraceReader({"path": "server.log", **options})
    assert str(refused.value).startswith(line)
    assert "\n" not in str(refused.value)


def test_bad_files_are_one_line_in_what_spark_says(
    left: LeftBehind, known: "SparkSession", tmp_path: Path
) -> None:
    """Another kind than was named, a file that is not there, and a segment with a torn batch."""
    (segment,) = left.log_dir.rglob("*.log")
    torn = tmp_path / "__consumer_offsets-1" / segment.name
    torn.parent.mkdir()
    torn.write_bytes(segment.read_bytes()[:-3])
    log = str(left.broker_log)
    told = {
        ("segments", log): f"ConfigError: {log} is a log, and option kind='segments' asks",
        ("any", "gone.log"): "ConfigError: gone.log: no such file or folder",
        ("segments", str(torn)): f"DataError: {torn}: ",
    }
    for (kind, path), line in told.items():
        with pytest.raises(Exception, match=re.escape(line)):
            known.read.format(FORMAT).option("kind", kind).load(path).collect()
    kept = known.read.format(FORMAT).option("damaged", "keep").load(str(torn))
    whole = known.read.format(FORMAT).load(str(segment))
    assert 0 < kept.count() < whole.count()


@pytest.mark.usefixtures("known")
def test_the_example_of_the_guide_prints_what_it_shows() -> None:
    """As a reader would type it, beside the examples."""
    page = (ROOT / "docs" / "guides" / "ingest.md").read_text("utf-8")
    ((program, shown),) = EXAMPLE.findall(page)
    printed = StringIO()
    with chdir(ROOT), redirect_stdout(printed):
        exec(compile(program, "ingest.md", "exec"), {})  # noqa: S102 - our own page
    assert printed.getvalue().strip() == shown.strip()
