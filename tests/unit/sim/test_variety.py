"""A variety draws worlds: by seed and name, within its bounds, and the same for every assignor."""

from typing import Any

import pytest

from coordinator_sim.errors import ScenarioError
from coordinator_sim.sim import scenario as scenarios
from coordinator_sim.sim.scenario.quantiles import interpolated, table_options
from coordinator_sim.sim.scenario.variants import realised, with_variety
from coordinator_sim_scenarios.catalog import scenario_named

DEPLOY = scenario_named("consumer-rolling-deploy")
VARIED = with_variety(DEPLOY, scenarios.Variety())


def world(scenario: scenarios.Scenario, seed: int = 0) -> scenarios.Scenario:
    """One world of the scenario."""
    return realised(scenario, scenarios.Choices(seed))


def typical_times(scenario: scenarios.Scenario) -> list[int]:
    """The typical processing time of each consumer, in milliseconds."""
    (group,) = scenario.groups
    assert isinstance(group, scenarios.ConsumerGroupSpec)
    laws = [member.processing for member in group.members]
    return [law.typical_ms for law in laws if isinstance(law, scenarios.ShapedPerPoll)]


def test_an_exact_scenario_is_its_only_world() -> None:
    """Without a variety nothing is drawn."""
    choices = scenarios.Choices(7)
    assert realised(DEPLOY, choices) is DEPLOY
    assert choices.tape == []


def test_a_seed_is_a_world_and_another_seed_another() -> None:
    """The same seed draws the same, whatever the assignor."""
    assert world(VARIED) == world(VARIED) != world(VARIED, seed=1)
    other = world(scenarios.with_assignor(VARIED, "cooperative-sticky"))
    assert other == scenarios.with_assignor(world(VARIED), "cooperative-sticky")


def test_members_start_apart_and_work_at_their_own_pace() -> None:
    """Starts within the spread, typical times within the range, no two alike."""
    drawn = world(VARIED)
    starts = [member.start_ms or 0 for member in drawn.members()]
    times = typical_times(drawn)
    assert len(set(starts)) == len(set(times)) == len(starts)
    assert all(0 <= start <= 20_000 for start in starts)
    assert all(100 <= time <= 1_500 for time in times)
    assert isinstance(drawn.network.latency, scenarios.TableLatency)


def test_the_story_begins_when_the_group_is_there() -> None:
    """Happenings are put off by the spread of starts, and each comes up to two seconds later."""
    drawn = world(VARIED)
    assert drawn.duration_ms == DEPLOY.duration_ms + 20_000
    for before, after in zip(DEPLOY.happenings, drawn.happenings, strict=True):
        assert isinstance(before, scenarios.RestartMember)
        assert isinstance(after, scenarios.RestartMember)
        assert 20_000 <= after.at_ms - before.at_ms <= 22_000
        assert 60 * before.down_ms <= 100 * after.down_ms <= 200 * before.down_ms
    assert len({happening.at_ms % 1_000 for happening in drawn.happenings}) > 4


def test_what_a_story_says_itself_is_kept() -> None:
    """Members with a processing time of their own, and another network, are not drawn."""
    mass = with_variety(scenario_named("mass-restart"), scenarios.Variety())
    assert typical_times(world(mass)) == []
    network = scenarios.NetworkSpec(latency=scenarios.UniformLatency(1, 2))
    own = scenarios.Scenario(name="own", title="", story="", duration_ms=1, network=network)
    assert world(with_variety(own, scenarios.Variety())).network == network


@pytest.mark.parametrize("name", ["pattern-storm", "connect-power-cut", "rolling-bounce"])
def test_happenings_of_one_member_keep_their_order(name: str) -> None:
    """However far apart the draws are, nothing happens to a member before its start."""
    scenario = with_variety(scenario_named(name), scenarios.Variety(happening_spread_ms=60_000))
    drawn = world(scenario)
    reached = {member.name: member.start_ms or 0 for member in drawn.members()}
    written: dict[str, list[str]] = {}
    for happening in sorted(scenario.happenings, key=lambda each: each.at_ms):
        written.setdefault(getattr(happening, "member", ""), []).append(type(happening).__name__)
    for happening in drawn.happenings:
        member = getattr(happening, "member", "")
        assert reached.get(member, 0) <= happening.at_ms <= drawn.duration_ms
        reached[member] = happening.at_ms
        assert written[member].pop(0) == type(happening).__name__


def test_a_variety_survives_its_json() -> None:
    """A file may replace every table."""
    changed = with_variety(
        DEPLOY,
        scenarios.Variety(
            processing="batch", processing_ms=(5, 6), pause_ms=(), down_percent=(1, 2)
        ),
    )
    assert scenarios.scenario_from_json(scenarios.scenario_to_json(changed)) == changed
    assert b'"variety": null' in scenarios.scenario_to_json(DEPLOY)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"start_spread_ms": -1}, "variety.start_spread_ms=-1: must be from 0 to 86400000"),
        ({"processing": "slow"}, "must be one of steady, heavy-tailed, batch"),
        ({"processing_ms": (0, 5)}, r"variety.processing_ms\[0\]=0: must be from 1"),
        ({"processing_ms": (9, 5)}, r"variety.processing_ms\[1\]=5: must be from 9"),
        ({"pause_gap_ms": (0, 5)}, r"variety.pause_gap_ms\[0\]=0: must be from 1"),
        ({"stop_task_ms": (5,)}, "variety.stop_task_ms=.*: give at least two values"),
        ({"latency": scenarios.UniformLatency(5, 4)}, "variety.latency.high_us=4: must be from 5"),
    ],
)
def test_an_impossible_variety_is_refused(fields: dict[str, Any], message: str) -> None:
    """The message names the field, the value and the bound."""
    with pytest.raises(ScenarioError, match=message):
        with_variety(DEPLOY, scenarios.Variety(**fields))


@pytest.mark.parametrize("shape", scenarios.SHAPES)
def test_a_typical_time_is_the_median_of_its_shape(shape: str) -> None:
    """What differs between shapes is how far the slow polls lie from it."""
    table = scenarios.SHAPES[shape]  # type: ignore[index]
    assert interpolated(table, table_options(table) // 2) == 100


def test_one_poll_in_a_hundred_of_a_heavy_tail_takes_ten_times_as_long() -> None:
    """The share and the factor are those of the definition."""
    table = scenarios.SHAPES["heavy-tailed"]
    assert 950 <= interpolated(table, table_options(table) * 99 // 100) <= 1_050
