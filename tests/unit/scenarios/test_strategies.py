"""What is asked of the strategies is in every scenario that they draw."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_sim.errors import ConfigError
from coordinator_sim.sim.scenario import ConsumerGroupSpec, Scenario, scenario_from_json
from coordinator_sim.sim.scenario.files import scenario_to_json
from coordinator_sim_scenarios.catalog import scenario_named
from coordinator_sim_scenarios.strategies import (
    FAULTS,
    connect_scenarios,
    consumer_scenarios,
    faults_on,
    scenarios,
)

FEW = settings(max_examples=15)
MINE = {
    "session.timeout.ms": "30000",
    "max.poll.interval.ms": ["60000", "120000"],
    "group.initial.rebalance.delay.ms": st.integers(0, 9).map(str),
}
TOPOLOGIES = [{"orders": 12}, {"orders": 3, "payments": 5}]


@FEW
@given(
    scenario=scenarios(
        settings=MINE,
        topologies=TOPOLOGIES,
        faults=["RestartMember", "CrashBroker"],
        assignors=["sticky", ("range", "cooperative-sticky")],
        members=(2, 4),
    )
)
def test_drawn_scenarios_are_as_asked(scenario: Scenario) -> None:
    """Settings where they are read, topics, kinds of faults, assignors and members."""
    (group,) = scenario.groups
    assert isinstance(group, ConsumerGroupSpec)  # one of the settings is of consumers alone
    assert group.settings["session.timeout.ms"] == "30000"
    assert group.settings["max.poll.interval.ms"] in {"60000", "120000"}
    assert int(scenario.broker_settings["group.initial.rebalance.delay.ms"]) < 10
    assert {topic.name: topic.partitions for topic in scenario.topics} in TOPOLOGIES
    assert group.assignors in {("sticky",), ("range", "cooperative-sticky")}
    assert 2 <= len(group.members) <= 4
    kinds = {type(happening).__name__ for happening in scenario.happenings}
    assert kinds <= {"RestartMember", "CrashBroker"}
    assert all(not getattr(happening, "settings", None) for happening in scenario.happenings)


@FEW
@given(scenario=scenarios(faults=[], assignors=["eager"], members=3))
def test_a_protocol_of_connect_draws_connect(scenario: Scenario) -> None:
    """Nothing happens to a cluster of three workers."""
    (group,) = scenario.groups
    assert not isinstance(group, ConsumerGroupSpec)
    assert group.connect_protocol == "eager"
    assert len(group.workers) == 3
    assert scenario.happenings == ()


@FEW
@given(data=st.data(), own=scenarios(faults=["StopMember"]))
def test_faults_on_a_world_of_ones_own(data: st.DataObject, own: Scenario) -> None:
    """Everything stays, and happenings of the kinds that were asked for come to it."""
    kinds = data.draw(st.lists(st.sampled_from(FAULTS), min_size=1, unique=True))
    faulty = data.draw(faults_on(own, faults=kinds))
    count = len(own.happenings)
    assert faulty.happenings[:count] == own.happenings
    assert {type(each).__name__ for each in faulty.happenings[count:]} <= set(kinds)
    assert msgspec.structs.replace(faulty, happenings=own.happenings) == own


@FEW
@given(scenario=faults_on(scenario_named("keda-thrash")))
def test_pods_are_started_by_kubernetes_alone(scenario: Scenario) -> None:
    """Everything else befalls them, and their workload too."""
    kinds = {type(each).__name__ for each in scenario.happenings}
    assert not kinds & {"StartMember", "RestartMember"}
    assert scenario_from_json(scenario_to_json(scenario)) == scenario


@FEW
@given(scenario=scenarios())
def test_a_scenario_is_told_in_a_line_and_kept_in_its_file(scenario: Scenario) -> None:
    """The line is for failures; the file is the same scenario."""
    assert "\n" not in repr(scenario)
    assert len(repr(scenario)) < 900
    assert type(scenario.happenings[0]).__name__ in repr(scenario)
    assert scenario_from_json(scenario_to_json(scenario)) == scenario


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: scenarios(settings={"session.timeout": "1"}), "did you mean session.timeout.ms"),
        (lambda: scenarios(settings={"session.timeout.ms": "0"}), "=0: must be from 1 to"),
        (lambda: scenarios(faults=["RestartMembers"]), "did you mean RestartMember"),
        (lambda: scenarios(assignors=["stickiest"]), "unknown 'stickiest': must be of range"),
        (lambda: scenarios(members=(3, 2)), "members=(3, 2): must be a number from 1 to 1000"),
        (lambda: scenarios(members=0), "members=0: must be"),
        (lambda: scenarios(assignors=["range", "eager"]), "ask for them apart"),
        (lambda: consumer_scenarios(assignors=["eager"]), "take connect_scenarios"),
        (lambda: connect_scenarios(assignors=["range"]), "take consumer_scenarios"),
    ],
)
def test_what_cannot_be_drawn_is_refused_at_once(ask: Callable[[], object], message: str) -> None:
    """One line that names the value and the fix, before anything is drawn."""
    with pytest.raises(ConfigError) as refused:
        ask()
    assert message in str(refused.value)
