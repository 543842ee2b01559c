"""Scenarios of tests, the events of their runs, and what a trace says of such a run."""

from typing import Any, Final

from hypothesis import settings

from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.sim.scenario import Scenario
from coordinator_sim.trace.events import RunInfo, Source, TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder

SIMULATED: Final = RunInfo(
    trace_id="t",
    source=Source.SIM,
    cluster_id="sim",
    version="0",
    profile="4.4",
    assignor="range+cooperative-sticky",
)
"""A run of one of the catalogue's scenarios."""
INGESTED: Final = RunInfo(
    trace_id="t", source=Source.BROKER_LOG, cluster_id="c", version="0", profile="ingested"
)
"""A broker's log."""
MOST_OF_A_PUSH: Final = 1_000
"""Examples of a profile that is not `nightly`, at most."""


def scenario_of(**fields: Any) -> Scenario:  # noqa: ANN401 - the fields of a scenario
    """A scenario without a title and a story."""
    return Scenario(title="", story="", **fields)


def events_of(scenario: Scenario, seed: int = 0) -> list[TraceEvent]:
    """The events of one run."""
    recorder = MemoryRecorder()
    run_scenario(scenario, seed=seed, recorder=recorder)
    return recorder.events


def examples(*, often: int, nightly: int) -> int:
    """How many worlds a costly property draws: with the profile `nightly`, and with others."""
    return nightly if settings().max_examples > MOST_OF_A_PUSH else often
