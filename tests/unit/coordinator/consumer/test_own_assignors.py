"""Server-side assignors of the user's own: what they are asked, and what a group makes of it."""

from collections.abc import Iterator

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from coordinator_sim.assignors.foreign.contract import Answer, Member, OwnAssignor, Topics
from coordinator_sim.assignors.registry import register_assignor, register_own
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.properties import configured, properties_of
from coordinator_sim.errors import ConfigError
from coordinator_sim.harness.group_driver import answer
from coordinator_sim.harness.harness import Harness
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from coordinator_sim.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from tests.own_assignors import own_assignors_forgotten

FOO, BAR = bytes(15) + b"\1", bytes(15) + b"\2"


@pytest.fixture(autouse=True)
def _forget_own() -> Iterator[None]:
    with own_assignors_forgotten():
        yield


def broker_with(*assignors: str) -> Harness:
    """A broker with two topics whose server-side assignors are these."""
    config = CoordinatorConfig(
        offsets_topic_num_partitions=1,
        group_consumer_assignors=assignors,
        group_consumer_assignment_interval_ms=0,
        group_coordinator_append_linger_ms=0,
    )
    broker = Harness(config, profile_named("4.4"))
    broker.set_topic("foo", 4, FOO)
    broker.set_topic("bar", 2, BAR)
    return broker


def joins(
    broker: Harness, member_id: str, *topics: str, assignor: str | None = None
) -> ConsumerGroupHeartbeatResponse:
    """The answer to a member that joins the group."""
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member_id,
        member_epoch=0,
        rack_id=f"rack of {member_id}",
        rebalance_timeout_ms=5_000,
        subscribed_topic_names=topics,
        server_assignor=assignor,
        topic_partitions=(),
    )
    return answer(broker.call(request, api_version=1), ConsumerGroupHeartbeatResponse)


def given(answered: ConsumerGroupHeartbeatResponse) -> dict[bytes, tuple[int, ...]]:
    """The partitions that a member has from an answer, by topic id."""
    assert answered.assignment is not None
    return {topic.topic_id: topic.partitions for topic in answered.assignment.topic_partitions}


def test_it_is_asked_by_names_with_what_members_shall_have() -> None:
    """Only topics that somebody subscribes to are shown, and racks of members."""
    asked: list[tuple[Topics, tuple[Member, ...]]] = []

    def first_has_all(topics: Topics, members: tuple[Member, ...]) -> Answer:
        asked.append((topics, members))
        return {members[0].id: [("foo", number) for number in range(len(topics["foo"]))]}

    register_assignor("first", first_has_all)
    broker = broker_with("first")

    assert given(joins(broker, "a", "foo")) == {FOO: (0, 1, 2, 3)}
    assert given(joins(broker, "b", "foo")) == {}
    topics, (of_a, of_b) = asked[1]
    assert topics == {"foo": ((), (), (), ())}
    assert (of_a.id, of_a.owned, of_a.generation) == (
        "a",
        tuple(("foo", number) for number in range(4)),
        2,
    )
    assert (of_b.topics, of_b.owned, of_b.generation, of_b.rack) == (("foo",), (), -1, "rack of b")


def test_a_wrong_answer_changes_nothing_and_is_told_to_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The member is told no reason, as by Kafka; the log names assignor, partition and member."""
    register_assignor("wrong", lambda _topics, members: {members[0].id: [("bar", 0)]})
    broker = broker_with("uniform", "wrong")
    joins(broker, "a", "foo")

    refused = joins(broker, "b", "foo", assignor="wrong")

    assert (refused.error_code, refused.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert caplog.messages == ["assignor 'wrong' gives bar-0 to a: there is no such topic"]
    assert given(joins(broker, "c", "bar")) == {BAR: (0, 1)}


@drawn(
    subscribed=st.lists(
        st.sampled_from([("foo",), ("bar",), ("foo", "bar")]), min_size=1, max_size=6
    )
)
def test_a_group_has_what_it_answers(subscribed: list[tuple[str, ...]]) -> None:
    """Whatever members subscribe to, the last one that joins gets its share of the answer."""

    def by_turns(topics: Topics, members: tuple[Member, ...]) -> Answer:
        found: dict[str, list[tuple[str, int]]] = {member.id: [] for member in members}
        for topic, racks in topics.items():
            readers = sorted(member.id for member in members if topic in member.topics)
            for number in range(len(racks)):
                found[readers[number % len(readers)]].append((topic, number))
        return found

    with own_assignors_forgotten():
        register_assignor("by-turns", by_turns)
        broker = broker_with("by-turns")
        ids = [f"m{number}" for number in range(len(subscribed))]
        for member_id, topics in zip(ids, subscribed, strict=True):
            answered = joins(broker, member_id, *topics)

            assert answered.error_code is ErrorCode.NONE

        step = broker.call(ConsumerGroupDescribeRequest(group_ids=("g",)), api_version=1)
        (group,) = answer(step, ConsumerGroupDescribeResponse).groups
        targets = {
            (member.member_id, topic.topic_id): topic.partitions
            for member in group.members
            for topic in member.target_assignment.topic_partitions
        }
        for name, topic_id, count in (("foo", FOO, 4), ("bar", BAR, 2)):
            readers = [each for each, names in zip(ids, subscribed, strict=True) if name in names]
            for turn, member_id in enumerate(readers):
                expected = tuple(range(turn, count, len(readers)))
                assert targets.get((member_id, topic_id), ()) == expected


def test_names_of_a_broker_are_kafkas_and_those_that_coordinators_can_ask() -> None:
    """A Java class runs in consumers only; it is no name of a broker."""
    register_assignor("mine", lambda _topics, _members: {})
    register_own(OwnAssignor(name="java", kind="java", target="A@a.jar", folder="."))

    config = configured(CoordinatorConfig(), {"group.consumer.assignors": "mine,range"})

    assert properties_of(config) == {"group.consumer.assignors": "mine,range"}
    with pytest.raises(ConfigError, match=r"=java: name one or more of uniform, range, mine"):
        configured(CoordinatorConfig(), {"group.consumer.assignors": "java"})
