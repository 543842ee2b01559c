"""Spark and DuckDB run the same statements: every table and the page are the same by both."""

from collections.abc import Callable
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.runs.run_directory import RunDirectoryWriter, TraceFormat
from coordinator_sim.sim.scenario.variants import with_counted_work
from coordinator_sim.trace.events import Event, RunInfo, Source, TraceEvent
from coordinator_sim.trace.schema import RunManifest
from coordinator_sim.trace.window import ALWAYS, Window
from coordinator_sim_scenarios.catalog import all_scenarios
from tests.simulated import events_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("pyspark", reason="needs the spark extra")
pytest.importorskip("duckdb", reason="needs the spark extra")

import pyarrow.parquet as pq

from coordinator_sim_reports.jobs import build_report

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "broker-log" / "server.log"
PAUSED = ("poll-timeout-loop", "connect-worker-crash", "share-poison", "streams-lost-disk")
"""Scenarios with faults, of each kind of group."""


def written(
    path: Path, events: list[TraceEvent], source: Source, form: TraceFormat = "parquet"
) -> None:
    """Write a trace."""
    info = RunInfo(
        trace_id=path.name, source=source, cluster_id=path.name[0], version="0", profile="4.4"
    )
    with RunDirectoryWriter(path, info, format=form) as writer:
        for each in events:
            writer.record(each)


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Simulations with counted work, one of them in JSON Lines, and a broker's log."""
    folder = tmp_path_factory.mktemp("traces")
    for name in PAUSED:
        events = events_of(with_counted_work(all_scenarios()[name]))
        written(folder / name, events, Source.SIM, "jsonl" if name == PAUSED[0] else "parquet")
    with EXAMPLE.open(encoding="utf-8") as lines:
        told = list(parse_broker_log(lines, source_ref=EXAMPLE.name, tz=UTC))
    resigned = TraceEvent(
        event=Event.COORD_RESIGNED,
        ts_us=told[-1].ts_us,
        offsets_partition=7,
        source_ref=EXAMPLE.name,
    )
    written(folder / "log", [*told, resigned], Source.BROKER_LOG)
    return folder


def second_half(info: RunManifest) -> Window:
    """From the middle of a trace on."""
    middle_us = ((info.first_ts_us or 0) + (info.last_ts_us or 0)) // 2
    return Window(middle_us // 1000 * 1000, ALWAYS.until_us)


@pytest.mark.spark
@pytest.mark.parametrize("window_of", [None, second_half], ids=["whole", "cut"])
def test_both_engines_make_the_same_tables_and_page(
    window_of: Callable[[RunManifest], Window] | None,
    traces: Path,
    tmp_path: Path,
    spark: "SparkSession",
) -> None:
    """All traces in one report, so that they are compared too."""
    del spark
    here, by_spark = (
        build_report(
            [traces],
            tmp_path / ("here" if master is None else "spark"),
            master=master,
            window_of=window_of,
        )
        for master in (None, "local[1]")
    )
    assert here.runs == len(PAUSED) + 1
    found, wanted = (tables_in(Path(each.tables)) for each in (here, by_spark))
    assert found.keys() == wanted.keys()
    for name, (columns, rows) in wanted.items():
        assert found[name] == (columns, rows), name
    assert Path(here.page).read_text() == Path(by_spark.page).read_text()
    assert sum(bool(rows) for _, rows in found.values()) >= len(found) - 3, "most are not empty"


def tables_in(folder: Path) -> dict[str, tuple[list[tuple[str, str]], list[str]]]:
    """Columns and rows of each table, in an order of their own."""
    found = {}
    for path in folder.iterdir():
        table = pq.ParquetDataset(path).read()
        # Whether items of a list may be null is said in Spark's files alone.
        columns = [(each.name, str(each.type).replace(" not null", "")) for each in table.schema]
        found[path.name] = columns, sorted(str(rounded(row)) for row in table.to_pylist())
    return found


def rounded(value: Any) -> Any:  # noqa: ANN401 - a row
    """The value with its numbers to ten digits: sums depend on the order of their rows."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value
