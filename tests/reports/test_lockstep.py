"""Worlds in lockstep are told by the data-quality section, and costs agree with plain Python's."""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pytest

pytest.importorskip("pyspark", reason="needs the spark extra")

from coordinator_sim.replay.charges import charges_in, trace_of
from coordinator_sim.runs.ownership import OwnershipTracker
from coordinator_sim.sim.scenario import Variety, with_assignor
from coordinator_sim.sim.scenario.variants import with_variety
from coordinator_sim.trace.events import RunInfo, Source, TraceEvent
from coordinator_sim.trace.schema import plain, rows_of
from coordinator_sim_reports.tables import kinds_of
from coordinator_sim_reports.transforms import availability, rebalances, working
from coordinator_sim_reports.transforms.quality import lockstep
from coordinator_sim_scenarios.catalog import scenario_named
from tests.simulated import events_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark
Frame = Callable[[str, Any], "DataFrame"]


def as_rows(row: Any) -> dict[str, Any]:  # noqa: ANN401 - any row of the schema
    """One row of a table of the trace."""
    return {name: plain(value) for name, value in msgspec.structs.asdict(row).items()}


STORIES = {
    "exact": with_assignor(scenario_named("rolling-bounce"), "range"),
    "varied": with_variety(
        with_assignor(scenario_named("rolling-bounce"), "cooperative-sticky"), Variety()
    ),
    "varied Connect": with_variety(
        with_assignor(scenario_named("connect-worker-bounce"), "eager"), Variety()
    ),
}


class Counted(NamedTuple):
    """What Spark makes of a run: whether it is in lockstep, and its costs."""

    is_lockstep: bool
    unowned_us: int
    stopped_us: int


@pytest.fixture(scope="module")
def runs() -> dict[str, list[TraceEvent]]:
    """The events of each story's run."""
    return {name: events_of(scenario) for name, scenario in STORIES.items()}


@pytest.fixture(scope="module")
def counted(frame: Frame, runs: dict[str, list[TraceEvent]]) -> dict[str, Counted]:
    """What Spark makes of every run, each a trace of its own in one job."""
    told: list[dict[str, Any]] = []
    dense: list[dict[str, Any]] = []
    lists: list[dict[str, Any]] = []
    for name, events in runs.items():
        info = RunInfo(
            trace_id=name, source=Source.SIM, cluster_id="sim", version="0", profile="4.4"
        )
        told += [
            {**as_rows(row), "cluster_id": "sim"}
            for ordinal, event in enumerate(events)
            for row in rows_of(event, ordinal, info)
        ]
        tracker = OwnershipTracker(name, "sim")
        for event in events:
            tracker.record(event)
        tracker.finish()
        generations, resources = tracker.take()
        dense += [as_rows(row) for row in generations]
        lists += [as_rows(row) for row in resources]
    ends = [
        {"trace_id": name, "last_ts_us": max(event.ts_us for event in events)}
        for name, events in runs.items()
    ]
    of_groups = rebalances.group_events(frame("events", told)).cache()
    held = rebalances.rebalances(of_groups).cache()
    of_runs = frame("trace_id string, last_ts_us bigint", ends)
    owned = working.ownership_of(
        *(frame("generations", dense), frame("resources", lists), of_groups, of_runs),
        kinds_of(of_groups),
    ).cache()
    in_step = {row.trace_id: row.is_lockstep for row in lockstep(of_groups, held).collect()}
    unowned = by_trace(availability.unowned(owned, held, of_runs), "unowned_us")
    stopped = by_trace(availability.stop_the_world(owned, held, of_runs), "stopped_us")
    return {name: Counted(in_step[name], unowned[name], stopped[name]) for name in runs}


def by_trace(costs: "DataFrame", column: str) -> Counter[str]:
    """The sum of a column of each trace."""
    return Counter(dict(costs.groupBy("trace_id").agg({column: "sum"}).collect()))


@pytest.mark.parametrize("name", STORIES)
def test_exact_worlds_are_in_lockstep_and_drawn_ones_are_not(
    name: str, counted: dict[str, Counted], runs: dict[str, list[TraceEvent]]
) -> None:
    """The trace alone tells lockstep, and Spark and the pure module count the same costs."""
    assert counted[name].is_lockstep == name.startswith("exact")
    charges = charges_in(trace_of(runs[name], Source.SIM))
    assert counted[name][1:] == (
        sum(each.unowned_us or 0 for each in charges),
        sum(each.stopped_us or 0 for each in charges),
    )
