"""Worked examples of the server-side assignors."""

import pytest

from coordinator_sim.assignors.contract import AssignmentFailed
from coordinator_sim.assignors.server import (
    ServerAssignor,
    ServerMember,
    ServerRangeAssignor,
    ServerUniformAssignor,
)
from coordinator_sim.harness.assignor_cases import CaseFormError, parse_case, run_case

RANGE: ServerAssignor = ServerRangeAssignor()
UNIFORM: ServerAssignor = ServerUniformAssignor()


def topic_id(number: int) -> bytes:
    """The id of topic t1, t2, ...: distinct in its first byte, like the recorded ones."""
    return bytes([0x4F, 0x50 + 16 * number]) + bytes(13) + bytes([number])


def parse(names: str) -> dict[bytes, list[int]]:
    """`1:0,1 3:0` as partitions 0 and 1 of t1 and 0 of t3."""
    pairs = [name.split(":") for name in names.split()]
    return {topic_id(int(t)): [int(p) for p in numbers.split(",")] for t, numbers in pairs}


def run(
    assignor: ServerAssignor,
    topics: dict[int, int],
    subscribed: dict[str, str],
    current: dict[str, str] | None = None,
) -> dict[str, dict[bytes, list[int]]]:
    """One assignment; subscriptions are topic numbers."""
    members = [
        ServerMember(
            member_id=member_id,
            subscribed=tuple(topic_id(int(number)) for number in wanted.split()),
            assigned=parse((current or {}).get(member_id, "")),
        )
        for member_id, wanted in subscribed.items()
    ]
    given = assignor.assign({topic_id(t): count for t, count in topics.items()}, members)
    return dict(sorted(given.items()))


def test_range_splits_each_topic() -> None:
    """The first members of every topic get its extra partitions."""
    assert run(RANGE, {1: 3, 3: 2}, {"A": "1 3", "B": "1 3"}) == {
        "A": parse("1:0,1 3:0"),
        "B": parse("1:2 3:1"),
    }
    assert run(RANGE, {1: 3, 2: 3, 3: 2}, {"A": "1 2", "B": "3", "C": "2 3"}) == {
        "A": parse("1:0,1,2 2:0,1"),
        "B": parse("3:0"),
        "C": parse("2:2 3:1"),
    }


def test_range_puts_static_members_first() -> None:
    """Static members sort by instance id, before all dynamic ones."""
    members = [
        ServerMember(member_id="a", subscribed=(topic_id(1),)),
        ServerMember(member_id="z", subscribed=(topic_id(1),), group_instance_id="i"),
    ]
    given = RANGE.assign({topic_id(1): 3}, members)
    assert given == {"z": parse("1:0,1"), "a": parse("1:2")}


def test_uniform_packs_whole_topics() -> None:
    """Members fill up one after the other."""
    assert run(UNIFORM, {1: 4, 2: 3}, {"A": "1 2", "B": "1 2"}) == {
        "A": parse("1:0,1,2,3"),
        "B": parse("2:0,1,2"),
    }


def test_uniform_keeps_what_fits_the_quota() -> None:
    """A joiner gets what the others hold above their quota."""
    current = {"A": "1:0,1,2,3", "B": "2:0,1,2"}
    assert run(UNIFORM, {1: 4, 2: 3}, {"A": "1 2", "B": "1 2", "C": "1 2"}, current) == {
        "A": parse("1:0,1,2"),
        "B": parse("2:0,1"),
        "C": parse("1:3 2:2"),
    }


def test_uniform_drops_topics_no_longer_subscribed() -> None:
    """A held topic that nobody wants is gone."""
    assert run(UNIFORM, {1: 1, 2: 1}, {"A": "1"}, {"A": "2:0"}) == {"A": parse("1:0")}


def test_uniform_with_different_subscriptions() -> None:
    """Contested topics even out what the others load."""
    subscribed = {"A": "1 2", "B": "3", "C": "2 3"}
    first = {"A": "1:0,1,2", "B": "3:0,1", "C": "2:0,1,2"}
    expected = {member_id: parse(own) for member_id, own in first.items()}
    assert run(UNIFORM, {1: 3, 2: 3, 3: 2}, subscribed) == expected
    grown = run(UNIFORM, {1: 6, 2: 3, 3: 5}, {**subscribed, "D": "1 2 3"}, first)
    assert grown == {
        "A": parse("1:0,1,2"),
        "B": parse("3:0,1,2,3"),
        "C": parse("2:0,1,2 3:4"),
        "D": parse("1:3,4,5"),
    }


@pytest.mark.parametrize("assignor", [RANGE, UNIFORM])
def test_an_unknown_topic_fails(assignor: ServerAssignor) -> None:
    """The group cannot be assigned until its metadata is current."""
    with pytest.raises(AssignmentFailed, match="does not exist"):
        run(assignor, {}, {"A": "1"})
    assert run(assignor, {}, {}) == {}


def test_uniform_refuses_partitions_held_twice() -> None:
    """Two holders of one partition leave more to give than there is room."""
    with pytest.raises(AssignmentFailed, match="1 partitions are left over"):
        run(UNIFORM, {1: 2, 2: 1}, {"A": "1 2"}, {"A": "1:0,1,2"})


def test_names() -> None:
    """Assignors go by the names of `group.consumer.assignors`."""
    assert (RANGE.name, UNIFORM.name) == ("range", "uniform")


@pytest.mark.parametrize("name", ["short", "&&&&&&&&&&&&&&&&&&&&&&", "\U0001f600"])
def test_a_case_with_a_bad_topic_id_is_refused(name: str) -> None:
    """Topic ids are 22 characters of URL-safe base64."""
    member = f'{{"id": "a", "subscribed": ["{name}"]}}'
    case = f'{{"assignor": "uniform", "topics": {{}}, "members": [{member}]}}'
    with pytest.raises(CaseFormError, match="no topic id"):
        list(run_case(parse_case(case.encode())))
