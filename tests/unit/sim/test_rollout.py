"""Deploys to choose from: who is restarted when, and how long the run must last."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.errors import ConfigError, ScenarioError
from coordinator_sim.sim import scenario
from coordinator_sim.sim.scenario.rollout import RolloutPlan, group_to_deploy, rolled_out
from coordinator_sim.sim.scenario.topology import SETTLE_MS
from coordinator_sim.trace.events import Event
from coordinator_sim_scenarios.catalog import scenario_named
from tests.simulated import events_of, scenario_of

DOWN_MS = 5_000


def group_of(count: int, group_id: str = "g") -> scenario.ConsumerGroupSpec:
    """A group of so many members."""
    members = tuple(
        scenario.ConsumerSpec(name=f"{group_id}-{n}", start_ms=None if n == count else 40_000)
        for n in range(1, count + 1)
    )
    return scenario.ConsumerGroupSpec(group_id=group_id, topics=("t",), members=members)


def world(*groups: scenario.ConsumerGroupSpec) -> scenario.Scenario:
    """Groups of one topic, in which one member restarts anyway."""
    return scenario_of(
        name="world",
        duration_ms=1_000,
        topics=(scenario.TopicSpec(name="t", partitions=6),),
        groups=groups,
        happenings=(scenario.RestartMember(at_ms=0, member=groups[0].members[0].name, down_ms=1),),
    )


@given(
    members=st.integers(1, 30),
    batch=st.integers(1, 30),
    pause_ms=st.integers(0, 100_000),
    is_reversed=st.booleans(),
)
def test_each_member_is_restarted_once_and_no_more_than_a_batch_is_down(
    members: int, batch: int, pause_ms: int, is_reversed: bool
) -> None:
    """Batches do not overlap, and the last one starts when the plan says."""
    plan = RolloutPlan(batch=batch, pause_ms=pause_ms, is_reversed=is_reversed)
    names = [f"m{n}" for n in range(members)]
    restarts = plan.restarts(names, first_at_ms=100, down_ms=DOWN_MS)
    order = names[::-1] if is_reversed else names
    assert [each.member for each in restarts] == order
    for each in restarts:
        down = [one for one in restarts if one.at_ms <= each.at_ms < one.at_ms + DOWN_MS]
        assert len(down) <= batch
    lasts_ms = plan.lasts_ms(members, DOWN_MS)
    assert max(each.at_ms + each.down_ms for each in restarts) == 100 + lasts_ms


def test_nothing_else_happens_in_the_world_of_a_plan() -> None:
    """Other groups and happenings are left out, and everybody is there before the deploy."""
    plan = RolloutPlan(batch=2, pause_ms=10_000)
    made = rolled_out(world(group_of(3), group_of(2, "other")), "g", plan, DOWN_MS)
    (group,) = made.groups
    assert [each.start_ms for each in group.members] == [0, 0, 0]  # type: ignore[union-attr]
    assert [(each.at_ms, each.member) for each in made.happenings] == [  # type: ignore[union-attr]
        (SETTLE_MS, "g-1"),
        (SETTLE_MS, "g-2"),
        (SETTLE_MS + 15_000, "g-3"),
    ]
    assert made.duration_ms == SETTLE_MS + 20_000 + 45_000 + SETTLE_MS


def test_a_cluster_of_workers_is_whole_again_at_the_end() -> None:
    """The run outlasts Connect's scheduled delay, during which tasks of a worker wait for it."""
    plan = RolloutPlan(batch=1, pause_ms=10_000)
    made = rolled_out(scenario_named("connect-rolling-deploy"), "", plan, DOWN_MS)
    last = [each for each in events_of(made) if each.event is Event.GROUP_STABLE][-1]
    assert last.ts_us < (made.duration_ms - SETTLE_MS) * 1_000
    assert last.members == len(made.happenings)


@pytest.mark.parametrize(
    ("group_id", "problem"),
    [
        ("", "--group is missing; scenario 'world' has g, other"),
        ("x", "--group x: no such group; scenario 'world' has g, other"),
    ],
)
def test_a_group_must_be_named_where_there_are_more(group_id: str, problem: str) -> None:
    """The message says which there are."""
    with pytest.raises(ConfigError, match=problem):
        group_to_deploy(world(group_of(1), group_of(1, "other")), group_id)


def test_a_batch_is_no_larger_than_the_group() -> None:
    """Of three members, at most three at once."""
    with pytest.raises(ScenarioError, match="batch of a rollout=4: must be from 1 to 3"):
        rolled_out(world(group_of(3)), "g", RolloutPlan(batch=4), DOWN_MS)
