"""Events of simulated scenarios."""

from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.sim.scenario import Scenario
from coordinator_sim.trace.events import TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder


def events_of(scenario: Scenario, seed: int = 0) -> list[TraceEvent]:
    """The events of one run."""
    recorder = MemoryRecorder()
    run_scenario(scenario, seed=seed, recorder=recorder)
    return recorder.events
