"""Worlds in lockstep are told by the data-quality section."""

import pytest

pytest.importorskip("pyarrow", reason="needs the columns extra")

from coordinator_sim.sim.scenario import Variety, with_assignor
from coordinator_sim.sim.scenario.variants import with_variety
from coordinator_sim.trace.events import TraceEvent
from coordinator_sim_reports.workers.rebalance_tables import is_lockstep
from coordinator_sim_scenarios.catalog import scenario_named
from tests.reports.groups import of_events
from tests.simulated import events_of

STORIES = {
    "exact": with_assignor(scenario_named("rolling-bounce"), "range"),
    "varied": with_variety(
        with_assignor(scenario_named("rolling-bounce"), "cooperative-sticky"), Variety()
    ),
    "varied Connect": with_variety(
        with_assignor(scenario_named("connect-worker-bounce"), "eager"), Variety()
    ),
}


@pytest.fixture(scope="module")
def runs() -> dict[str, list[TraceEvent]]:
    """The events of each story's run."""
    return {name: events_of(scenario) for name, scenario in STORIES.items()}


@pytest.mark.parametrize("name", STORIES)
def test_exact_worlds_are_in_lockstep_and_drawn_ones_are_not(
    name: str, runs: dict[str, list[TraceEvent]]
) -> None:
    """The trace alone tells lockstep."""
    groups = {each.group_id for each in runs[name]} - {None}
    of = [of_events([each for each in runs[name] if each.group_id == own]) for own in groups]
    assert any(map(is_lockstep, of)) == name.startswith("exact")
