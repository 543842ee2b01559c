"""A drawn scenario that fails is told so that it can be repeated."""

from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator_sim.sim import scenario as scenarios
from coordinator_sim.sim.scenario.files import load_scenario
from coordinator_sim_conformance.broken.histories import BROKEN, broken_history
from coordinator_sim_conformance.checkers import check_all
from coordinator_sim_pytest.properties import SimulatedRun, judge, simulated
from coordinator_sim_scenarios.stories import scenario_story

RunPytest = Callable[..., tuple[int, str]]


def world() -> scenarios.Scenario:
    """Two consumers, one of which crashes."""
    members = tuple(scenarios.ConsumerSpec(name=f"consumer-{number}") for number in (1, 2))
    return scenarios.Scenario(
        name="own",
        title="",
        story="",
        duration_ms=30_000,
        topics=(scenarios.TopicSpec(name="orders", partitions=4),),
        groups=(scenarios.ConsumerGroupSpec(group_id="app", topics=("orders",), members=members),),
        happenings=(scenarios.CrashMember(at_ms=20_000, member="consumer-2"),),
    )


def failed_in(folder: Path, error: Exception) -> str:
    """The note of a block that raises an error."""
    with pytest.raises(type(error)) as raised, simulated(world(), seed=7, directory=folder):
        raise error
    (note,) = raised.value.__notes__
    return str(note)


def test_a_failure_tells_story_file_and_command(tmp_path: Path) -> None:
    """The file is the scenario that was run; the command names it and the seed."""
    with simulated(world(), seed=7, directory=tmp_path) as run:
        pass
    note = failed_in(tmp_path, AssertionError("on purpose"))
    assert "\n".join(run.story()) in note
    path = tmp_path / "test_properties.test_a_failure_tells_story_file_and_command.json"
    assert note.endswith(f"Run it again: coordinator-sim run {path} --seed 7")
    assert load_scenario(path) == run.scenario
    assert run.scenario.duration_ms > world().duration_ms


def test_failures_of_two_places_have_two_files(tmp_path: Path) -> None:
    """Hypothesis shrinks them apart, and each keeps its smallest scenario."""
    for error in (AssertionError("a"), ValueError("b"), AssertionError("c")):
        failed_in(tmp_path, error)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_invariant_is_named(name: str) -> None:
    """By its number and name, and when it broke."""
    events = broken_history(name)
    invariant, _ = BROKEN[name]
    run = SimulatedRun(scenario=world(), seed=0, events=events, report=check_all(events))
    with pytest.raises(AssertionError, match=rf"^{invariant} [a-z- ]+: .*\(at -?[0-9.]+ s\)"):
        judge(run)


DRAWN = """
from hypothesis import Phase, given, settings
from coordinator_sim_pytest import simulated
from coordinator_sim_scenarios.strategies import scenarios

@settings(max_examples=5, deadline=None, derandomize=True, database=None,
          phases=[Phase.generate, Phase.shrink])
@given(scenarios(topologies={"orders": 2}, faults=["StopMember"], assignors=["range"], members=2))
def test_nobody_stops(scenario):
    with simulated(scenario) as run:
        assert not any("StopMember" in line for line in run.story())
"""


def test_a_shrunk_failure_in_a_run_of_pytest(run_pytest: RunPytest, tmp_path: Path) -> None:
    """The scenario in the file is the smallest: one happening; nobody sees a long repr."""
    code, output = run_pytest(DRAWN, "-p", "no:cacheprovider")
    assert code == 1
    (path,) = (tmp_path / "out" / "failed").iterdir()
    assert path.name == "test_it.test_nobody_stops.json"
    scenario = load_scenario(path)
    assert len(scenario.happenings) == 1
    assert f"coordinator-sim run out/failed/{path.name} --seed 0" in output
    assert "LIFECYCLE          consumer-1  started" in output
    assert "ConsumerSpec(" not in output
    with simulated(scenario) as run:
        assert run.story()[-1] == scenario_story(run.events)[-1]
        assert run.story()[-1] in output
