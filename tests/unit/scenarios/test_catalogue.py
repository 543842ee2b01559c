"""Every scenario of the catalogue comes to rest, and tells its story."""

from importlib import import_module

import pytest

from coordinator_sim.errors import ScenarioError
from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.sim.scenario import ConnectGroupSpec, ConsumerGroupSpec, Scenario
from coordinator_sim.sim.scenario.scenario import with_settings
from coordinator_sim.trace.events import TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim_conformance.checkers import Verdict, check_all
from coordinator_sim_conformance.scenario_timing import circumstances_of, with_calm
from coordinator_sim_scenarios.catalog import all_scenarios, scenario_named

NAMES = tuple(all_scenarios())
POLLS = "max.poll.interval.ms"


def comes_to_rest(scenario: Scenario) -> bool:
    """Whether its groups are ones that a trace shows at rest, and something ends their unrest.

    Autoscalers and poison records have no last happening. Members of share and Streams groups have
    no generations.
    """
    is_calm = not scenario.kubernetes and not any(topic.poison for topic in scenario.topics)
    told = (ConsumerGroupSpec, ConnectGroupSpec)
    return is_calm and all(type(group) in told for group in scenario.groups)


def with_short_polls(scenario: Scenario) -> Scenario:
    """The scenario with a `max.poll.interval.ms` of a minute where it has none of its own.

    Events are the same but for the timeout they tell, and it must come to rest in a third of
    the time.
    """
    if POLLS in scenario.groups[0].settings or isinstance(scenario.groups[0], ConnectGroupSpec):
        return scenario
    return with_settings(scenario, {POLLS: "60000"})


RESTING = tuple(name for name, scenario in all_scenarios().items() if comes_to_rest(scenario))


def events_of(scenario: Scenario) -> tuple[TraceEvent, ...]:
    """The events of a run with seed 1."""
    recorder = MemoryRecorder()
    run_scenario(scenario, seed=1, recorder=recorder)
    return tuple(recorder.events)


def check_converges(scenario: Scenario) -> None:
    """Judge a run and its calm time by every invariant.

    Of a group of the consumer protocol only its members tell, which leaves I7 unjudged;
    `tests/property/test_new_consumers.py` looks at its coordinator.
    """
    calm = with_calm(scenario)
    report = check_all(events_of(calm), circumstances_of(calm))
    assert report.violations == ()
    assert scenario.name.startswith("new-") or report.of("I7").verdict is Verdict.PASS


@pytest.mark.property
@pytest.mark.parametrize("name", RESTING)
def test_scenario_converges(name: str) -> None:
    """Left alone after its last happening, every group comes to rest with everyone in it."""
    check_converges(with_short_polls(scenario_named(name)))


@pytest.mark.nightly
@pytest.mark.parametrize("name", RESTING)
def test_scenario_converges_with_its_own_timeouts(name: str) -> None:
    """And so it does if nothing of it is shortened, over most of an hour."""
    check_converges(scenario_named(name))


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
