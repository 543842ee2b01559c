"""Deploys of one group, simulated and ranked by Spark."""

from pathlib import Path

import msgspec
import pytest

from coordinator_sim.errors import ConfigError
from coordinator_sim.sim.scenario import ConsumerGroupSpec, load_scenario
from coordinator_sim.sim.scenario.rollout import RolloutPlan
from coordinator_sim.sim.scenario.topology import Topology, named_members, shaped, spread_partitions
from coordinator_sim_reports.rollouts import Rollouts, compare_rollouts

pytestmark = pytest.mark.spark


def asked(**fields: object) -> Rollouts:
    """Three members under the range assignor: one by one, or all at once."""
    scenario = shaped(
        Topology(
            name="three",
            title="Three",
            story="Three members.",
            group_id="g",
            topics=spread_partitions(1, 6),
            members=named_members(3, static=False),
            assignors=("range",),
            restarts=(),
            duration_ms=60_000,
        )
    )
    plans = (RolloutPlan(batch=1, pause_ms=30_000), RolloutPlan(batch=3))
    given = {"scenario": scenario, "group_id": "g", "plans": plans, "down_ms": 8_000, **fields}
    return Rollouts(**given)  # type: ignore[arg-type]


def test_plans_are_ranked_and_can_be_run_again(tmp_path: Path) -> None:
    """All at once stop the group; static members one by one hardly stop or rebalance it."""
    summary = compare_rollouts(asked(memberships=("dynamic", "static")), tmp_path)
    medians = [each.unowned_s[0] for each in summary.costs]
    assert medians == sorted(medians)
    found = {(each.plan.batch, each.membership): each for each in summary.costs}
    assert len(found) == len(summary.costs) == 4
    assert found[3, "dynamic"].stopped_s[0] > 2
    assert found[1, "static"].stopped_s[0] < 0.1
    assert found[1, "static"].rebalances[0] < found[1, "dynamic"].rebalances[0]
    group = load_scenario(Path(found[1, "static"].file)).groups[0]
    assert isinstance(group, ConsumerGroupSpec)
    assert [each.instance_id for each in group.members] == [
        "consumer-1",
        "consumer-2",
        "consumer-3",
    ]


def test_a_mixed_group_must_be_told_what_to_compare(tmp_path: Path) -> None:
    """Half static, half dynamic is neither."""
    mixed = asked()
    group = mixed.scenario.groups[0]
    assert isinstance(group, ConsumerGroupSpec)
    first = msgspec.structs.replace(group.members[0], instance_id="a")
    group = msgspec.structs.replace(group, members=(first, *group.members[1:]))
    world = msgspec.structs.replace(mixed.scenario, groups=(group,))
    with pytest.raises(ConfigError, match="has dynamic and static members"):
        compare_rollouts(msgspec.structs.replace(mixed, scenario=world), tmp_path)


def test_a_plan_named_twice_is_refused(tmp_path: Path) -> None:
    """It would be simulated twice."""
    plan = RolloutPlan(batch=1)
    with pytest.raises(ConfigError, match="a plan is there twice"):
        compare_rollouts(asked(plans=(plan, plan)), tmp_path)
