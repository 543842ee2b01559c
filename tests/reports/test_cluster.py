"""Jobs on a standalone Spark cluster: workers lack this package, and one is killed."""

import threading
import time
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks import standalone
from benchmarks.ingest import month_events, other_lines
from coordinator_sim.disk.last_offsets import read_last_offsets
from coordinator_sim.disk.segment_sources import find_logs
from coordinator_sim.ingest.importing import Options, prepare
from coordinator_sim.ingest.writing import write_trace
from coordinator_sim.kafka.profiles import PROFILES
from coordinator_sim.logtext.writing.writer import broker_log
from coordinator_sim.runs.run_directory import read_run
from coordinator_sim_reports.data_source import FORMAT, register
from coordinator_sim_reports.hadoop_files import location
from coordinator_sim_reports.jobs import build_report
from coordinator_sim_reports.log_ingest import logs_on_spark
from coordinator_sim_reports.offsets import read_on_spark
from coordinator_sim_reports.session import spark_session
from coordinator_sim_scenarios.catalog import scenario_named
from tests.unit.ingest.runs_as_sources import leave_behind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly]
GOLDEN = Path(__file__).parents[1] / "unit" / "log" / "golden" / "offsets-log-4.4.0"
OPTIONS = Options(zone=UTC)
_PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of the workers, without this package."""
    interpreter = standalone.plain_python(tmp_path_factory.mktemp("python") / "python")
    assert not standalone.has_our_package(interpreter)
    return interpreter


@pytest.fixture
def cluster(tmp_path: Path, python: Path) -> Iterator[standalone.StandaloneCluster]:
    """A master and two workers of one core each."""
    with (
        standalone.StandaloneCluster(tmp_path / "cluster", 2) as started,
        standalone.python_of_workers(python),
    ):
        yield started


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A broker's log of which few lines tell of groups."""
    path = tmp_path_factory.mktemp("logs") / "server.log"
    rest = list(other_lines(200))
    with path.open("w") as file:
        for line in broker_log(month_events(1_000, groups=50), PROFILES["4.4"]):
            file.write("\n".join([line, *rest[: len(line) % 9]]) + "\n")
    return path


def ingested(log: Path, out: Path, master: str | None) -> str:
    """Import a log, on Spark where a master is named; return the digest of its trace."""
    if master is None:
        write_trace(prepare([log]), OPTIONS, out, lambda _used: None)
    else:
        with logs_on_spark(OPTIONS, master=master, range_bytes=100_000) as logs:
            importing = prepare([log], logs.contents_of)
            write_trace(importing, OPTIONS, out, lambda _used: None, logs.reader(importing))
    return read_run(out).info.digest


def test_every_job_runs_on_workers_that_lack_this_package(
    cluster: standalone.StandaloneCluster, log: Path, tmp_path: Path
) -> None:
    """Its code is sent with the job; the answers are those of one process."""
    logs = find_logs([GOLDEN]).logs
    expected = ingested(log, tmp_path / "alone", None)

    with spark_session(cluster.url, small=True):
        assert read_on_spark(logs, master=cluster.url) == read_last_offsets(logs)
        assert ingested(log, tmp_path / "trace", cluster.url) == expected
        summary = build_report([tmp_path / "trace"], tmp_path / "report", master=cluster.url)

    assert summary.rebalances == 1_000


def test_files_behind_uris_are_sent_to_workers(
    cluster: standalone.StandaloneCluster, log: Path, tmp_path: Path
) -> None:
    """Ranges of a log, a request log, and segments of partitions, in copies of the workers' own."""
    left = leave_behind(scenario_named("coordinator-lost-in-join"), tmp_path / "run")
    sources = [log, left.request_log, left.log_dir]
    alone = prepare(sources, fetch=lambda files: {path: path.as_uri() for path in files})
    write_trace(alone, OPTIONS, tmp_path / "alone", lambda _used: None)

    with (
        spark_session(cluster.url, small=True) as spark,
        logs_on_spark(OPTIONS, master=cluster.url, range_bytes=100_000) as logs,
    ):
        named = [location(path.as_uri(), spark) for path in (*sources, GOLDEN)]
        importing = prepare(named[:-1], logs.contents_of, fetch=logs.files.fetch)
        folder = logs.files.at.there
        write_trace(
            importing, OPTIONS, tmp_path / "trace", lambda _used: None, logs.reader(importing)
        )
        found = read_on_spark(find_logs(named[-1:]).logs, master=cluster.url)
        register(spark)
        told = spark.read.format(FORMAT).load([str(path) for path in sources]).count()

    assert not Path(folder).is_absolute(), "in the working directory of each worker"
    assert read_run(tmp_path / "trace").info.digest == read_run(tmp_path / "alone").info.digest
    assert found.commits == read_last_offsets(find_logs([GOLDEN]).logs).commits
    assert told > read_run(tmp_path / "trace").info.counts["events"]


def test_a_job_goes_on_when_a_worker_is_killed(
    cluster: standalone.StandaloneCluster, log: Path, tmp_path: Path
) -> None:
    """Spark gives the ranges that were lost to the other worker: nothing is missing or doubled."""
    expected = ingested(log, tmp_path / "alone", None)

    with spark_session(cluster.url, small=True) as spark:
        killed_at: list[int] = []
        killer = threading.Thread(
            target=_kill_in_the_middle, args=(cluster, spark, killed_at), daemon=True
        )
        killer.start()
        found = ingested(log, tmp_path / "trace", cluster.url)
        killer.join(_PATIENCE_S)

    assert killed_at
    assert cluster.processes[0].returncode is not None
    assert found == expected


def _kill_in_the_middle(
    cluster: standalone.StandaloneCluster, spark: "SparkSession", killed_at: list[int]
) -> None:
    """Kill a worker and what it runs once some tasks of a job are done, and others are not."""
    tracker = spark.sparkContext.statusTracker()
    deadline_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline_s:
        for stage_id in tracker.getActiveStageIds():
            stage = tracker.getStageInfo(stage_id)
            if stage is not None and 0 < stage.numCompletedTasks < stage.numTasks:
                cluster.kill_worker(0)
                killed_at.append(stage.numCompletedTasks)
                return
        time.sleep(0.01)
