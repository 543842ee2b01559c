import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="needs the spark extra")

from benchmarks.month import write_month
from coordinator_sim.runs.run_directory import RunDirectory, read_run
from coordinator_sim_reports.sources import open_traces
from coordinator_sim_reports.spark_engine import SparkEngine
from coordinator_sim_reports.tables import derive_tables
from coordinator_sim_reports.workers.group import FaultWindow
from coordinator_sim_reports.workers.group_tables import GROUP_TABLES, GROUPS, tables_of
from tests.reports.groups import S, of_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

pytestmark = pytest.mark.spark

REBALANCES = 100
MOST_PER_EVENT = 4
"""A gap has two ends, and a rebalance two phases: far below one row for each pair of them."""


class CountingEngine(SparkEngine):
    """Keeps tables in memory, and counts the rows that the busiest operator of each put out."""

    def __init__(self, spark: "SparkSession", runs: list[RunDirectory]) -> None:
        super().__init__(spark, Path(), str, runs)
        self._session = spark
        self.most_rows: dict[str, int] = {}
        self.counts: dict[str, int] = {}

    def keep(self, name: str, frame: "DataFrame") -> "DataFrame":
        """Run the table's plan, and return its rows as a table without a plan."""
        return self._session.createDataFrame(self.run(name, frame), frame.schema)

    def write(self, name: str, frame: "DataFrame") -> "DataFrame":
        """Run the table's plan, and return it as it is."""
        self.run(name, frame)
        return frame

    def run(self, name: str, table: "DataFrame") -> "list[Row]":
        """Run a table's plan and look at its metrics."""
        rows = table.collect()
        self.most_rows[name] = most_rows(table._jdf.queryExecution().executedPlan())
        self.counts[name] = len(rows)
        return rows


def most_rows(plan: Any) -> int:  # noqa: ANN401 - a Java object
    """The largest number of rows that an operator of an executed plan put out."""
    metric = plan.metrics().get("numOutputRows")
    own = int(metric.get().value()) if metric.isDefined() else 0
    children = plan.children()
    return max([own, *(most_rows(children.apply(n)) for n in range(children.size()))])


def test_no_table_makes_a_row_for_each_pair(tmp_path: Path, spark: "SparkSession") -> None:
    """No operator of any table puts out more rows than a few for each event of the trace.

    All rebalances are one group's, so a join of gaps and phases by group would make 800 x 200.
    """
    write_month(tmp_path, groups=1, rebalances=REBALANCES, days=1, assignments=True)
    runs = open_traces([tmp_path])
    store = CountingEngine(spark, runs)
    tables = derive_tables(store)
    assert set(store.most_rows) == set(tables)
    assert store.counts["unowned"] > REBALANCES, "the trace has gaps to be split"
    limit = MOST_PER_EVENT * runs[0].info.counts["events"]
    assert {name: rows for name, rows in store.most_rows.items() if rows > limit} == {}


def calls_for(rebalances: int, folder: Path) -> int:
    """How often a function is called, or returns, until all tables of one group are made."""
    path = folder / str(rebalances)
    write_month(path, groups=1, rebalances=rebalances, days=1, assignments=True)
    run = read_run(path)
    of_group = of_events(
        list(run.events()),
        list(run.generations()),
        {row.resource_list_id: row.resources for row in run.resources()},
        faults=tuple(
            FaultWindow(
                window_no=number,
                from_us=number * S,
                to_us=(number + 1) * S,
                is_ended=True,
                next_from_us=None,
            )
            for number in range(rebalances)
        ),
    )
    calls = 0

    def counted(_frame: object, _event: str, _argument: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(counted)
    try:
        tables = tables_of(of_group, (*GROUP_TABLES, GROUPS))
    finally:
        sys.setprofile(None)
    assert len(tables["rebalances"]) == rebalances
    return calls


def test_twice_the_rebalances_take_twice_the_work(tmp_path: Path) -> None:
    """Nothing of one group is compared with everything else of it."""
    calls_for(10, tmp_path)
    once, twice = (calls_for(count, tmp_path) for count in (200, 400))
    assert once > 10_000
    assert twice < 2.2 * once
