"""Ranges in scenario files stand for exactly the members and happenings that they were made of."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.errors import ScenarioError
from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    Scenario,
    TopicSpec,
    scenario_from_json,
    scenario_to_json,
)
from coordinator_sim.sim.scenario.happenings import CrashMember, RestartMember
from coordinator_sim.sim.scenario.ranges import expanded, folded
from coordinator_sim_scenarios.catalog import all_scenarios
from coordinator_sim_scenarios.strategies import scenarios
from tests.simulated import scenario_of

_NAMES = st.builds("{}{}".format, st.sampled_from(("a-", "a-0", "b", "")), st.integers(0, 12))
_ENTRIES = st.lists(
    st.builds(lambda name, other: {"name": name, "partitions": other}, _NAMES, st.integers(1, 2)),
    max_size=12,
)
_HAPPENINGS = st.lists(
    st.builds(
        lambda at_ms, member: {"kind": "CrashMember", "at_ms": at_ms, "member": member},
        st.integers(0, 6).map(lambda step: step * 10),
        _NAMES,
    ),
    max_size=14,
)


def plain(topics: list[Any], happenings: list[Any]) -> dict[str, Any]:
    """The JSON of a scenario, as far as ranges look at it."""
    group = {"type": "consumer", "topics": [each["name"] for each in topics], "members": topics}
    return {"topics": topics, "groups": [group], "happenings": happenings}


@given(topics=_ENTRIES, happenings=_HAPPENINGS)
def test_what_is_folded_expands_to_itself(topics: list[Any], happenings: list[Any]) -> None:
    """Names in any order, with gaps and twice, and happenings at any instants."""
    data = plain(topics, happenings)
    assert expanded(folded(data)) == data


@given(
    members=st.integers(3, 9),
    deploys=st.integers(3, 6),
    apart_ms=st.integers(0, 50),
    every_ms=st.integers(1_000, 2_000),
)
def test_deploys_in_a_rhythm_are_one_entry(
    members: int, deploys: int, apart_ms: int, every_ms: int
) -> None:
    """However many there are: that is what makes a year of them a small file."""
    happenings = [
        {"kind": "CrashMember", "at_ms": 7 + deploy * every_ms + n * apart_ms, "member": f"m{n}"}
        for deploy in range(deploys)
        for n in range(members)
    ]
    (entry,) = folded(plain([], happenings))["happenings"]
    assert entry["member"] == f"m{{0..{members - 1}}}"
    assert (entry["apart_ms"], entry["times"], entry["again_ms"]) == (apart_ms, deploys, every_ms)


@given(scenario=scenarios())
def test_drawn_scenarios_survive_their_file(scenario: Scenario) -> None:
    """Written and read again, a scenario is the same."""
    assert scenario_from_json(scenario_to_json(scenario)) == scenario


def test_the_catalogue_survives_its_files() -> None:
    """The plain form, without any range, is read as before."""
    for scenario in all_scenarios().values():
        assert scenario_from_json(scenario_to_json(scenario)) == scenario
        assert scenario_from_json(msgspec.json.encode(scenario)) == scenario


def test_a_file_with_ranges_is_what_it_says() -> None:
    """Members with their instance ids, and two rounds of restarts."""
    text = """{"name": "three", "title": "t", "story": "s", "duration_ms": 100000,
      "topics": [{"name": "in-{1..2}", "partitions": 4}],
      "groups": [{"type": "consumer", "group_id": "g", "topics": ["in-{1..2}"],
                  "members": [{"name": "c-{1..3}", "instance_id": "static-{1..3}"}]}],
      "happenings": [{"kind": "RestartMember", "at_ms": 5000, "member": "c-{1..3}", "down_ms": 10,
                      "apart_ms": 100, "times": 2, "again_ms": 40000},
                     {"kind": "CrashMember", "at_ms": 90000, "member": "c-2"}]}"""
    scenario = scenario_from_json(text)

    assert [topic.name for topic in scenario.topics] == ["in-1", "in-2"]
    (group,) = scenario.groups
    assert isinstance(group, ConsumerGroupSpec)
    assert group.topics == ("in-1", "in-2")
    assert [each.instance_id for each in group.members] == ["static-1", "static-2", "static-3"]
    assert scenario.happenings == (
        *(
            RestartMember(at_ms=5_000 + again + 100 * n, member=f"c-{n + 1}", down_ms=10)
            for again in (0, 40_000)
            for n in range(3)
        ),
        CrashMember(at_ms=90_000, member="c-2"),
    )


@pytest.mark.parametrize(
    ("happening", "message"),
    [
        ({"member": "c-{3..1}"}, "'c-{3..1}': a range goes from a number"),
        ({"member": "c-{1..900000000}"}, "over at most 1,000,000 numbers"),
        ({"member": "c-1", "times": 0}, "times=0 of a happening: must be a whole number from 1"),
        ({"member": "c-1", "apart_ms": "x"}, "apart_ms='x' of a happening"),
        ({"member": "c-{1..1000}", "times": 1_001}, "times=1001 of 1000 happenings: at most"),
    ],
)
def test_ranges_that_cannot_be_are_refused(happening: dict[str, Any], message: str) -> None:
    """With the value and the bound, before anything is built from them."""
    entry = {"kind": "CrashMember", "at_ms": 1, **happening}
    with pytest.raises(ScenarioError, match=message.replace("{", r"\{").replace("(", r"\(")):
        expanded({"happenings": [entry]})


def test_a_name_that_a_file_would_read_as_many_is_refused() -> None:
    """In Python every member is named by itself."""
    member = ConsumerSpec(name="c-{1..3}")
    with pytest.raises(ScenarioError, match="only a file may name a range"):
        scenario_of(
            name="n",
            duration_ms=1,
            topics=(TopicSpec(name="in", partitions=1),),
            groups=(ConsumerGroupSpec(group_id="g", topics=("in",), members=(member,)),),
        )
