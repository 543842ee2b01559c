"""Drawn scenarios keep every invariant: through faults, and by coming to rest after them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.sim.scenario import Scenario, scenario_to_json
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim_conformance.checkers import Report, check_all
from coordinator_sim_conformance.scenario_timing import circumstances_of, with_calm
from coordinator_sim_scenarios.strategies import (
    connect_scenarios,
    consumer_scenarios,
    scenarios,
    share_scenarios,
)
from tests.simulated import examples

SMOKE_EXAMPLES = 15
SEEDS = st.integers(0, 2**16)


def report_on(scenario: Scenario, seed: int) -> Report:
    """Run both phases, faults and calm, and judge the trace by every invariant."""
    recorder = MemoryRecorder()
    run_scenario(scenario, seed=seed, recorder=recorder, shuffle_ties=True)
    return check_all(recorder.events, circumstances_of(scenario))


def check(faulty: Scenario, seed: int) -> None:
    """Fail with everything that is needed to see the failure again."""
    scenario = with_calm(faulty)
    try:
        report = report_on(scenario, seed)
    except Exception as error:
        error.add_note(how_to_replay(scenario, seed))
        raise
    if report.violations:
        found = "\n".join(
            f"{violation.invariant} at {violation.at_us // 1_000} ms: {violation.message}"
            for violation in report.violations
        )
        pytest.fail(f"{found}\n{how_to_replay(scenario, seed)}", pytrace=False)
    # Only a world in which no member ever joined leaves liveness unjudged.
    assert report.of("I7").judged or not report.of("I2").judged


def how_to_replay(scenario: Scenario, seed: int) -> str:
    """The scenario as JSON, and the command that runs it."""
    return (
        f"{scenario_to_json(scenario).decode()}"
        "Save the JSON as drawn.json, then: "
        f"coordinator-sim run drawn.json --shuffle-ties --seed {seed}"
    )


@settings(max_examples=SMOKE_EXAMPLES)
@given(scenario=scenarios(), seed=SEEDS)
def test_a_few_drawn_scenarios_keep_every_invariant(scenario: Scenario, seed: int) -> None:
    """A small draw of the properties below, for every run of the suite."""
    check(scenario, seed)


@pytest.mark.property
@given(scenario=consumer_scenarios(), seed=SEEDS)
def test_consumers_keep_every_invariant_and_converge(scenario: Scenario, seed: int) -> None:
    """Whatever happens to a consumer group, I1 to I10 hold; once it ends, the group is at rest."""
    check(scenario, seed)


@pytest.mark.property
@given(scenario=connect_scenarios(), seed=SEEDS)
def test_workers_keep_every_invariant_and_converge(scenario: Scenario, seed: int) -> None:
    """Whatever happens to a Connect cluster, I1 to I10 hold; once it ends, it is at rest."""
    check(scenario, seed)


@settings(max_examples=3)
@given(scenario=share_scenarios(), seed=SEEDS)
def test_a_few_drawn_share_groups_keep_every_invariant(scenario: Scenario, seed: int) -> None:
    """A small draw of the property below, for every run of the suite."""
    report = report_on(scenario, seed)
    assert report.violations == (), how_to_replay(scenario, seed)


@pytest.mark.property
@settings(max_examples=examples(often=25, nightly=5_000))
@given(scenario=share_scenarios(), seed=SEEDS)
def test_share_groups_keep_every_invariant(scenario: Scenario, seed: int) -> None:
    """Whatever happens to a share group, I1 to I13 hold."""
    report = report_on(scenario, seed)
    assert report.violations == (), how_to_replay(scenario, seed)
