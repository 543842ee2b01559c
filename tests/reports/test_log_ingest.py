"""Logs that are read on Spark in ranges give the trace of an import without it, to the byte."""

import gzip
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.ingest import month_events
from coordinator_sim.errors import DataError
from coordinator_sim.ingest.appending import Appending
from coordinator_sim.ingest.importing import Importing, Options, prepare
from coordinator_sim.ingest.ranges import LogRange, RangeTask, read_range
from coordinator_sim.ingest.writing import write_trace
from coordinator_sim.kafka.profiles import PROFILES
from coordinator_sim.logtext.writing.writer import broker_log
from coordinator_sim.trace.schema import APPENDABLE_NAME
from coordinator_sim_reports.log_ingest import logs_on_spark, run_tasks
from coordinator_sim_scenarios.catalog import scenario_named
from tests.unit.ingest.runs_as_sources import leave_behind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
OPTIONS = Options(zone=UTC)
EXAMPLE = Path(__file__).parents[2] / "examples" / "broker-log" / "server.log"


def write_logs(folder: Path) -> None:
    """Two brokers' logs, one of them rotated, compressed in part, and in part there twice."""
    for number, profile in ((1, "3.9"), (2, "4.4")):
        events = month_events(400, groups=20, seed=number)
        lines = [f"{line}\n" for line in broker_log(events, PROFILES[profile])]
        if number == 1:
            lines = [line.replace("orders-service", "billing") for line in lines]
        lines.insert(900, "java.lang.IllegalStateException: no\n\tat kafka.Main.main\n")
        broker = folder / f"broker-{number}"
        broker.mkdir(parents=True)
        (broker / "server.log").write_text("".join(lines[1_000:]))
        (broker / "server.log.1").write_text("".join(lines[:1_000]))
    with gzip.open(folder / "excerpt.gz", "wt") as file:
        file.write("".join(lines[500:1_200]))


def written(folder: Path) -> dict[str, bytes]:
    """The files of a trace, by their places in it, without what is put aside for appending."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != APPENDABLE_NAME
    }


def ingested(paths: list[Path], out: Path, range_bytes: int | None) -> Importing:
    """Import logs, on Spark where ranges are given."""
    if range_bytes is None:
        importing = prepare(paths)
        write_trace(importing, OPTIONS, out, lambda _used: None)
        return importing
    with logs_on_spark(OPTIONS, master="", range_bytes=range_bytes) as logs:
        importing = prepare(paths, logs.contents_of)
        write_trace(importing, OPTIONS, out, lambda _used: None, logs.reader(importing))
    return importing


@pytest.mark.usefixtures("spark")
def test_ranges_on_spark_give_the_same_trace_to_the_byte(tmp_path: Path) -> None:
    """Brokers side by side, rotated and compressed files, and lines that two files have."""
    logs = tmp_path / "logs"
    write_logs(logs)

    alone = ingested([logs], tmp_path / "alone", None)
    together = ingested([logs], tmp_path / "together", 20_000)

    assert written(tmp_path / "together") == written(tmp_path / "alone")
    assert together.contents.overlaps == alone.contents.overlaps != {}
    assert [one.summary for one in together.files] == [one.summary for one in alone.files]
    assert sum(one.summary.repeated for one in together.files) > 0
    assert sum(one.summary.events for one in together.files) > 3_000


@pytest.mark.usefixtures("spark")
def test_an_example_log_of_many_small_ranges_gives_the_same_trace(tmp_path: Path) -> None:
    """Ranges of some lines each."""
    ingested([EXAMPLE], tmp_path / "alone", None)
    ingested([EXAMPLE], tmp_path / "together", 1_500)

    assert written(tmp_path / "together") == written(tmp_path / "alone")


def test_a_log_that_a_worker_does_not_see_is_one_line(spark: "SparkSession") -> None:
    """Nothing of it is taken for an empty log."""
    task = RangeTask(0, LogRange(path="/absent/server.log", name="server.log", stop=10))

    with pytest.raises(DataError, match=r"a Spark worker failed: .*No such file.*same paths") as no:
        list(run_tasks(spark, [task], partial(read_range, zone=UTC)))

    assert "\n" not in str(no.value)


@pytest.mark.usefixtures("spark")
def test_every_source_on_spark_gives_the_same_trace_to_the_byte(tmp_path: Path) -> None:
    """Request logs and segments, too: what of each was read, and a day that is appended."""
    left = leave_behind(scenario_named("coordinator-lost-in-join"), tmp_path / "run")
    lines = left.request_log.read_text().splitlines(keepends=True)
    days = [tmp_path / "request.log.1", tmp_path / "request.log.2"]
    days[0].write_text("".join(lines[:150]))
    days[1].write_text("".join(lines[150:]))
    paths = [left.broker_log, days[0], left.log_dir]

    alone = ingested(paths, tmp_path / "alone", None)
    together = ingested(paths, tmp_path / "together", 1_500)

    assert written(tmp_path / "together") == written(tmp_path / "alone")
    assert [one.as_read for one in together.files] == [one.as_read for one in alone.files]
    assert [one.segment for one in together.files] == [one.segment for one in alone.files]
    assert sum(one.summary.events for one in together.files) > 100

    appended(tmp_path / "alone", days[1])
    with logs_on_spark(OPTIONS, master="") as logs:
        appending = Appending(tmp_path / "together")
        importing = appending.prepare([days[1]], logs.contents_of)
        appending.write(importing, lambda _used: None, logs.reader(importing))
    assert written(tmp_path / "together") == written(tmp_path / "alone")


def appended(trace: Path, path: Path) -> None:
    """Append a file without Spark."""
    appending = Appending(trace)
    appending.write(appending.prepare([path]), lambda _used: None)
