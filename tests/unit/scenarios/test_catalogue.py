"""Every scenario of the catalogue comes to rest, and tells its story."""

from importlib import import_module

import pytest

from coordinator_sim.errors import ScenarioError
from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.sim.scenario import ConnectGroupSpec, ConsumerGroupSpec, Scenario
from coordinator_sim.trace.events import TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim_conformance.checkers import Verdict, check_all
from coordinator_sim_conformance.scenario_timing import circumstances_of, with_calm
from coordinator_sim_scenarios.catalog import all_scenarios, scenario_named

NAMES = tuple(all_scenarios())


def comes_to_rest(scenario: Scenario) -> bool:
    """Whether its groups are ones that a trace shows at rest, and something ends their unrest.

    Autoscalers and poison records have no last happening. Members of share and Streams groups have
    no generations.
    """
    is_calm = not scenario.kubernetes and not any(topic.poison for topic in scenario.topics)
    told = (ConsumerGroupSpec, ConnectGroupSpec)
    return is_calm and all(isinstance(group, told) for group in scenario.groups)


RESTING = tuple(name for name, scenario in all_scenarios().items() if comes_to_rest(scenario))


def events_of(scenario: Scenario) -> tuple[TraceEvent, ...]:
    """The events of a run with seed 1."""
    recorder = MemoryRecorder()
    run_scenario(scenario, seed=1, recorder=recorder)
    return tuple(recorder.events)


@pytest.mark.property
@pytest.mark.parametrize("name", RESTING)
def test_scenario_converges(name: str) -> None:
    """Left alone after its last happening, every group comes to rest with everyone in it.

    Of a group of the consumer protocol only its members tell, which leaves this unjudged;
    `tests/property/test_new_consumers.py` looks at its coordinator.
    """
    scenario = with_calm(scenario_named(name))

    report = check_all(events_of(scenario), circumstances_of(scenario))

    assert report.violations == ()
    assert name.startswith("new-") or report.of("I7").verdict is Verdict.PASS


@pytest.mark.parametrize("name", NAMES)
def test_scenario_tells_its_story(name: str) -> None:
    """The module is named like the scenario, and its docstring has a title and a story."""
    module = import_module(f"coordinator_sim_scenarios.catalog.{name.replace('-', '_')}")

    title, _, story = (module.__doc__ or "").partition("\n\n")
    assert title.endswith(".")
    assert story
    assert scenario_named(name).story


def test_misspelt_name_is_answered_with_the_nearest() -> None:
    """Or with all names, where none is near."""
    with pytest.raises(ScenarioError, match="did you mean rolling-bounce"):
        scenario_named("roling-bounce")
    with pytest.raises(ScenarioError, match="known: connect-"):
        scenario_named("zzz")
