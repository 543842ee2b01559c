"""The assignor of share groups. That it is Kafka's own is judged by `differ --groups share`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.assignors.share_contract import ShareMember, ShareTopics, Target
from coordinator_sim.assignors.share_simple import assign_simple

IDS = tuple(bytes(15) + bytes([index]) for index in range(1, 4))
COUNTS = dict(zip(IDS, (1, 4, 7), strict=True))
ALL = ShareTopics(COUNTS, {topic_id: range(count) for topic_id, count in COUNTS.items()})


def member(name: str, topics: tuple[bytes, ...], assigned: Target = ()) -> ShareMember:
    """A member that names these topics."""
    return ShareMember(
        member_id=name, has_topics=bool(topics), subscribed=topics, assigned=assigned
    )


def pairs(target: Target) -> set[tuple[bytes, int]]:
    """The partitions of a target."""
    return {(topic_id, index) for topic_id, indexes in target for index in indexes}


def test_a_partition_whose_state_is_not_kept_is_nobodys() -> None:
    """Topics are known before they may be assigned."""
    topics = ShareTopics(COUNTS, {IDS[1]: (0, 2)})
    found = assign_simple([member("a", IDS)], topics, is_homogeneous=True)
    assert pairs(found["a"]) == {(IDS[1], 0), (IDS[1], 2)}


names = st.lists(st.integers(0, 99).map(str), min_size=1, max_size=12, unique=True)


@pytest.mark.property
@given(names, st.sets(st.sampled_from(IDS), min_size=1))
def test_members_that_subscribe_alike_are_served_alike(
    members: list[str], topic_ids: set[bytes]
) -> None:
    """Members differ by one partition at most, and every partition has somebody."""
    topics = tuple(sorted(topic_ids))
    asked = [member(name, topics) for name in members]
    found = assign_simple(asked, ALL, is_homogeneous=True)
    sizes = [len(pairs(found[name])) for name in members]
    assert max(sizes) - min(sizes) <= 1
    held = {pair for name in members for pair in pairs(found[name])}
    assert held == {(each, index) for each in topics for index in range(COUNTS[each])}
    again = [member(name, topics, found[name]) for name in members]
    kept = assign_simple(again, ALL, is_homogeneous=True)
    assert {name: pairs(kept[name]) for name in members} == {
        name: pairs(found[name]) for name in members
    }


@pytest.mark.property
@given(st.dictionaries(st.integers(0, 99).map(str), st.sets(st.sampled_from(IDS)), min_size=1))
def test_nobody_gets_what_it_does_not_subscribe_to(asked: dict[str, set[bytes]]) -> None:
    """Every partition of a topic that somebody names is somebody's who names it."""
    members = [member(name, tuple(sorted(topics))) for name, topics in asked.items()]
    found = assign_simple(members, ALL, is_homogeneous=False)
    wanted = {topic for topics in asked.values() for topic in topics}
    for name, topics in asked.items():
        assert {topic for topic, _ in pairs(found.get(name, ()))} <= topics
    held = {pair for target in found.values() for pair in pairs(target)}
    assert held == {(topic, index) for topic in wanted for index in range(COUNTS[topic])}
