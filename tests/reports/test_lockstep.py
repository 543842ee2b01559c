"""Worlds in lockstep are told by the data-quality section, and costs agree with plain Python's."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

pytest.importorskip("pyspark", reason="needs the spark extra")

from coordinator_sim.runs.holdings import costs_of
from coordinator_sim.runs.ownership import OwnershipTracker
from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.sim.scenario import Scenario, Variety, with_assignor
from coordinator_sim.sim.scenario.variants import with_variety
from coordinator_sim.trace.events import RunInfo, Source, TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim.trace.schema import plain, rows_of
from coordinator_sim_reports.transforms import availability, rebalances, working
from coordinator_sim_reports.transforms.quality import lockstep
from coordinator_sim_scenarios.catalog import scenario_named

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark
Frame = Callable[[str, Any], "DataFrame"]
INFO = RunInfo(trace_id="t", source=Source.SIM, cluster_id="sim", version="0", profile="4.4")


def played(scenario: Scenario) -> list[TraceEvent]:
    """The events of one run."""
    recorder = MemoryRecorder()
    run_scenario(scenario, seed=0, recorder=recorder)
    return recorder.events


def as_rows(row: Any) -> dict[str, Any]:  # noqa: ANN401 - any row of the schema
    """One row of a table of the trace."""
    return {name: plain(value) for name, value in msgspec.structs.asdict(row).items()}


def frames(frame: Frame, events: list[TraceEvent]) -> tuple[Any, Any, Any, Any, Any]:
    """Events of groups, dense generations, resource lists, rebalances and runs of one trace."""
    told = [
        {**as_rows(row), "cluster_id": "sim"}
        for ordinal, event in enumerate(events)
        for row in rows_of(event, ordinal, INFO)
    ]
    tracker = OwnershipTracker("t", "sim")
    for event in events:
        tracker.record(event)
    tracker.finish()
    generations, resources = tracker.take()
    of_groups = rebalances.group_events(frame("events", told)).cache()
    last = max(event.ts_us for event in events)
    return (
        of_groups,
        frame("generations", [as_rows(row) for row in generations]),
        frame("resources", [as_rows(row) for row in resources]),
        rebalances.rebalances(of_groups).cache(),
        frame("trace_id string, last_ts_us bigint", [{"trace_id": "t", "last_ts_us": last}]),
    )


STORIES = {
    "exact": with_assignor(scenario_named("rolling-bounce"), "range"),
    "varied": with_variety(
        with_assignor(scenario_named("rolling-bounce"), "cooperative-sticky"), Variety()
    ),
    "varied Connect": with_variety(
        with_assignor(scenario_named("connect-worker-bounce"), "eager"), Variety()
    ),
}


@pytest.mark.parametrize("name", STORIES)
def test_exact_worlds_are_in_lockstep_and_drawn_ones_are_not(frame: Frame, name: str) -> None:
    """The finding is one of the trace; and whatever it says, both ways of counting agree."""
    events = played(STORIES[name])
    of_groups, dense, resources, held, runs = frames(frame, events)
    (found,) = lockstep(of_groups, held).collect()
    assert found.is_lockstep == name.startswith("exact")

    owned = working.ownership_of(dense, resources, of_groups, runs).cache()
    unowned = availability.unowned(owned, held, runs).agg({"unowned_us": "sum"}).first()
    stopped = availability.stop_the_world(owned, held, runs).agg({"stopped_us": "sum"}).first()
    assert unowned is not None
    assert stopped is not None
    (cost,) = costs_of(events)
    assert (unowned[0] or 0, stopped[0] or 0) == (cost.unowned_us, cost.stopped_us)
