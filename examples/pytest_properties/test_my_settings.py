"""A property of one's own settings: a crash of any member is over within two minutes."""

from hypothesis import given, settings

from coordinator_sim.sim.scenario import Scenario
from coordinator_sim_pytest import converged_within, simulated
from coordinator_sim_scenarios.strategies import scenarios

MINE = {"session.timeout.ms": "45000", "max.poll.interval.ms": "60000"}


@settings(max_examples=5, deadline=None, derandomize=True)
@given(scenarios(settings=MINE, topologies={"orders": 12}, members=(2, 5), faults=["CrashMember"]))
def test_a_crash_is_over_in_two_minutes(scenario: Scenario) -> None:
    """From the first step of a rebalance to the last."""
    with simulated(scenario) as run:
        converged_within(run, 120_000, judged=0)
