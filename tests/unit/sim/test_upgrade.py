"""The deploys of an upgrade: which protocol before and after, which settings, which brokers."""

import pytest

from coordinator_sim.errors import ScenarioError
from coordinator_sim.sim.scenario import ConsumerGroupSpec, RestartMember, Scenario
from coordinator_sim.sim.scenario.files import scenario_from_json, scenario_to_json
from coordinator_sim.sim.scenario.topology import SETTLE_MS, Topology, named_members
from coordinator_sim.sim.scenario.upgrade import Deploy, UpgradePlan, upgrade_worlds
from coordinator_sim.trace.epoch_groups import CONVERTED
from tests.simulated import events_of


def worlds(**fields: object) -> dict[Deploy, Scenario]:
    """Three members of six partitions, restarted 10 s apart."""
    group = Topology(
        name="g",
        title="G",
        story="Three members.",
        group_id="g",
        topics={"t": 6},
        members=named_members(3, static=False),
        assignors=("range",),
        restarts=(),
        duration_ms=60_000,
    )
    given = {"group": group, "pace_ms": 10_000, "down_ms": 4_000, "profile": "4.4", "today": "3.9"}
    return upgrade_worlds(UpgradePlan(**{**given, **fields}))  # type: ignore[arg-type]


def conversions(world: Scenario) -> list[str]:
    """Into which type a run's group is converted."""
    return [
        each.attrs["to_type"] for each in events_of(world, seed=1) if each.reason_text == CONVERTED
    ]


def test_only_the_upgrade_and_the_way_back_convert_the_group() -> None:
    """Once each, although members have settings that the other protocol refuses."""
    found = worlds(
        classic={"session.timeout.ms": "9000", "heartbeat.interval.ms": "1000"},
        consumer={"group.remote.assignor": "range"},
    )
    assert {deploy: conversions(world) for deploy, world in found.items()} == {
        Deploy.TODAY: [],
        Deploy.UPGRADE: ["consumer"],
        Deploy.AFTERWARDS: [],
        Deploy.BACK: ["classic"],
    }
    assert [found[deploy].profile for deploy in Deploy] == ["3.9", "4.4", "4.4", "4.4"]


def test_each_member_is_restarted_once_in_the_same_rhythm() -> None:
    """The file holds the same world."""
    for deploy, world in worlds().items():
        restarts = [each for each in world.happenings if isinstance(each, RestartMember)]
        assert [each.at_ms - SETTLE_MS for each in restarts] == [0, 10_000, 20_000]
        settings = {each.settings.get("group.protocol") for each in restarts}
        assert settings == ({deploy.ends_as} if deploy.begins_as != deploy.ends_as else {None})
        (group,) = world.groups
        assert isinstance(group, ConsumerGroupSpec)
        assert group.settings["group.protocol"] == deploy.begins_as
        assert world.duration_ms == SETTLE_MS + 24_000 + 45_000 + SETTLE_MS
        assert scenario_from_json(scenario_to_json(world)) == world


def test_lengths_outside_their_bounds_are_named() -> None:
    """With the bound."""
    with pytest.raises(ScenarioError, match="pace_ms of an upgrade"):
        worlds(pace_ms=-1)
