"""Worked examples of the client-side assignors."""

import pytest

from coordinator_sim.assignors import contract
from coordinator_sim.assignors.registry import make_connect_assignor, make_consumer_assignor
from coordinator_sim.assignors.user_data import encode_sticky_user_data
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, Subscription

Owned = dict[str, list[TopicPartition]]


def member(
    member_id: str,
    topics: str,
    *,
    owned: str = "",
    generation_id: int = -1,
    instance_id: str | None = None,
    rack: str | None = None,
) -> contract.AssignorMember:
    """A member; `owned` are names like `t0-1`, offered in the subscription and as user data."""
    partitions = parse(owned)
    user_data = encode_sticky_user_data(partitions, generation_id) if owned else None
    return contract.AssignorMember(
        member_id=member_id,
        group_instance_id=instance_id,
        subscription=Subscription(
            topics=tuple(topics.split()),
            user_data=user_data,
            owned_partitions=partitions,
            generation_id=generation_id,
            rack_id=rack,
        ),
    )


def parse(names: str) -> tuple[TopicPartition, ...]:
    """`t0-1 t1-0` as partitions."""
    pairs = [name.rsplit("-", 1) for name in names.split()]
    return tuple(TopicPartition(topic, int(number)) for topic, number in pairs)


def without_racks(**counts: int) -> contract.TopicRacks:
    """Topics of so many partitions, replicas without racks."""
    return {topic: [()] * count for topic, count in counts.items()}


def assign(
    assignor: contract.ConsumerAssignor | str,
    topics: contract.TopicRacks,
    *members: contract.AssignorMember,
) -> Owned:
    """One assignment, by an instance or a fresh one of that name."""
    if isinstance(assignor, str):
        assignor = make_consumer_assignor(assignor)
    return assignor.assign(topics, members)


def named(assignment: Owned) -> dict[str, str]:
    """The assignment in the notation of `parse`."""
    return {m: " ".join(f"{t}-{n}" for t, n in own) for m, own in sorted(assignment.items())}


def test_range_gives_each_topic_in_ranges() -> None:
    """The first members of every topic get its extra partitions."""
    both = "t0 t1"
    given = assign("range", without_racks(t0=3, t1=3), member("C0", both), member("C1", both))
    assert named(given) == {"C0": "t0-0 t0-1 t1-0 t1-1", "C1": "t0-2 t1-2"}


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_uneven_subscriptions(assignor: str) -> None:
    """Only subscribers receive a topic."""
    members = [member("C0", "t0"), member("C1", "t0 t1"), member("C2", "t0 t1 t2")]
    given = assign(assignor, without_racks(t0=1, t1=2, t2=3), *members)
    assert named(given) == {"C0": "t0-0", "C1": "t1-0", "C2": "t1-1 t2-0 t2-1 t2-2"}


@pytest.mark.parametrize(
    ("assignor", "expected"),
    [
        ("range", {"z1": "t-0 t-1", "y2": "t-2 t-3", "a3": "t-4"}),
        ("roundrobin", {"z1": "t-0 t-3", "y2": "t-1 t-4", "a3": "t-2"}),
    ],
)
def test_static_members_come_first(assignor: str, expected: dict[str, str]) -> None:
    """Static members sort by instance id, before all dynamic ones."""
    members = [
        member("a3", "t"),
        member("y2", "t", instance_id="i2"),
        member("z1", "t", instance_id="i1"),
    ]
    assert named(assign(assignor, without_racks(t=5), *members)) == expected


def test_round_robin_never_resets_its_pointer() -> None:
    """The second topic goes on where the first one ended."""
    both = "t0 t1"
    given = assign("roundrobin", without_racks(t0=3, t1=3), member("C0", both), member("C1", both))
    assert named(given) == {"C0": "t0-0 t0-2 t1-1", "C1": "t0-1 t1-0 t1-2"}


RACKED = [member(f"consumer{i}", "t1", rack=rack) for i, rack in enumerate("abc")]


@pytest.mark.parametrize(
    ("assignor", "expected"),
    [
        ("range", ["t1-0 t1-2", "t1-1 t1-3", "t1-4 t1-5"]),
        ("sticky", ["t1-0 t1-3", "t1-1 t1-4", "t1-2 t1-5"]),
        ("cooperative-sticky", ["t1-0 t1-3", "t1-1 t1-4", "t1-2 t1-5"]),
    ],
)
def test_racks_are_matched(assignor: str, expected: list[str]) -> None:
    """Members read from replicas in their rack where the balance allows it."""
    topics = {"t1": [tuple(racks) for racks in ("ab", "bc", "ca", "ab", "bc", "ca")]}
    assert list(named(assign(assignor, topics, *RACKED)).values()) == expected


def test_range_keeps_co_partitioned_topics_together() -> None:
    """Topics with the same members and counts give the same partitions to a member."""
    topics = {topic: [(rack,) for rack in "abcabc"] for topic in ("t1", "t2")}
    members = [member(f"consumer{i}", "t1 t2", rack=rack) for i, rack in enumerate("abc")]
    assert named(assign("range", topics, *members)) == {
        "consumer0": "t1-0 t1-3 t2-0 t2-3",
        "consumer1": "t1-1 t1-4 t2-1 t2-4",
        "consumer2": "t1-2 t1-5 t2-2 t2-5",
    }


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_unknown_and_empty_topics_are_skipped(assignor: str) -> None:
    """A topic that the metadata lacks leaves its subscribers empty-handed."""
    given = assign(assignor, {"empty": []}, member("m", "missing empty"))
    assert given == {"m": []}
    assert assign(assignor, {"empty": []}) == {}


SEVEN = without_racks(topic=7)


def test_sticky_takes_from_the_last_in_map_order() -> None:
    """The member that comes first in HashMap order keeps the extra partition."""
    first = assign("sticky", SEVEN, member("consumer1", "topic"), member("consumer2", "topic"))
    assert named(first) == {
        "consumer1": "topic-0 topic-2 topic-4 topic-6",
        "consumer2": "topic-1 topic-3 topic-5",
    }
    c1 = member("consumer1", "topic", owned=named(first)["consumer1"], generation_id=1)
    c2 = member("consumer2", "topic", owned=named(first)["consumer2"], generation_id=1)
    second = assign("sticky", SEVEN, c1, c2, member("consumer3", "topic"))
    assert named(second) == {
        "consumer1": "topic-0 topic-2",
        "consumer2": "topic-1 topic-3 topic-5",
        "consumer3": "topic-4 topic-6",
    }


def test_sticky_hands_out_what_a_leaver_had() -> None:
    """The leaver's partitions are appended, round robin over the sorted members."""
    given = assign(
        "sticky",
        SEVEN,
        member("consumer2", "topic", owned="topic-1 topic-3 topic-5", generation_id=2),
        member("consumer3", "topic", owned="topic-4 topic-6", generation_id=2),
    )
    assert named(given) == {
        "consumer2": "topic-1 topic-3 topic-5 topic-2",
        "consumer3": "topic-4 topic-6 topic-0",
    }


def test_cooperative_sticky_withholds_moving_partitions_for_a_round() -> None:
    """What must be revoked first is given in the follow-up rebalance."""
    c1, c2 = "topic-0 topic-2 topic-4 topic-6", "topic-1 topic-3 topic-5"
    first = assign(
        "cooperative-sticky",
        SEVEN,
        member("consumer1", "topic", owned=c1, generation_id=1),
        member("consumer2", "topic", owned=c2, generation_id=1),
        member("consumer3", "topic"),
    )
    kept = {"consumer1": "topic-0 topic-2", "consumer2": c2, "consumer3": ""}
    assert named(first) == kept
    rejoined = [member(m, "topic", owned=own, generation_id=2) for m, own in kept.items()]
    follow_up = assign("cooperative-sticky", SEVEN, *rejoined)
    assert named(follow_up) == kept | {"consumer3": "topic-4 topic-6"}


GENERAL = without_racks(t0=4, t1=4, t2=4)
GENERAL_FIRST = {
    "c1": "t0-0 t0-2 t1-2 t1-0",
    "c2": "t1-1 t1-3 t2-1 t2-3",
    "c3": "t0-1 t0-3 t2-0 t2-2",
}
SUBSCRIBED = {"c1": "t0 t1", "c2": "t1 t2", "c3": "t0 t2", "c4": "t0 t1 t2"}


def general_members(owned: dict[str, str], generation_id: int) -> list[contract.AssignorMember]:
    """The members with different subscriptions, each owning what it is said to."""
    return [
        member(m, SUBSCRIBED[m], owned=own, generation_id=generation_id) for m, own in owned.items()
    ]


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_different_subscriptions_balance(assignor: str) -> None:
    """Partitions move to the least loaded until nobody can gain."""
    members = general_members(dict.fromkeys(GENERAL_FIRST, ""), -1)
    assert named(assign(assignor, GENERAL, *members)) == GENERAL_FIRST


def test_different_subscriptions_with_a_joiner() -> None:
    """One partition of every member moves; cooperative withholds them for a round."""
    members = general_members(GENERAL_FIRST | {"c4": ""}, 1)
    kept = {"c1": "t0-2 t1-2 t1-0", "c2": "t1-3 t2-1 t2-3", "c3": "t0-3 t2-0 t2-2"}
    given = {"c4": "t0-0 t0-1 t1-1"}
    assert named(assign("sticky", GENERAL, *members)) == kept | given
    assert named(assign("cooperative-sticky", GENERAL, *members)) == kept | {"c4": ""}
    without_c2 = {m: own for m, own in (kept | given).items() if m != "c2"}
    after = assign("sticky", GENERAL, *general_members(without_c2, 2))
    assert {m: set(own) - set(parse((kept | given)[m])) for m, own in after.items()} == {
        "c1": set(parse("t1-3")),
        "c3": set(parse("t2-1")),
        "c4": set(parse("t2-3")),
    }


@pytest.mark.parametrize(("assignor", "third"), [("sticky", "t-1"), ("cooperative-sticky", "")])
def test_two_claims_of_one_generation_void_each_other(assignor: str, third: str) -> None:
    """A partition that two members claim is owned by neither, and counts as moving."""
    members = [
        member("A", "t", owned="t-0 t-1", generation_id=5),
        member("B", "t", owned="t-1 t-2", generation_id=5),
        member("C", "t", generation_id=5),
    ]
    given = assign(assignor, without_racks(t=4), *members)
    assert named(given) == {"A": "t-0 t-3", "B": "t-2", "C": third}


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_the_claim_of_the_later_generation_wins(assignor: str) -> None:
    """A member that missed a generation keeps only what nobody else owns."""
    members = [
        member("A", "t", owned="t-0 t-1", generation_id=5),
        member("B", "t", owned="t-1 t-2 t-3", generation_id=4),
    ]
    given = assign(assignor, without_racks(t=4), *members)
    assert named(given) == {"A": "t-0 t-1", "B": "t-2 t-3"}


def test_ownership_beyond_the_partition_count_fails_as_in_java() -> None:
    """After a topic was made anew with fewer partitions, Java's walk cannot finish."""
    ghosts = member("A", "t", owned="t-4 t-5 t-6 t-7", generation_id=1)
    with pytest.raises(contract.AssignmentFailed, match="no member may take p:t-0"):
        assign("sticky", without_racks(t=2), ghosts)


def test_a_previous_owner_that_is_settled_fails_as_in_java() -> None:
    """A stale claim leads the balancing to a member that takes no part in it."""
    members = [
        member("m773878", "t0", owned="t1-6 t1-0"),
        member("m32740", "t1", generation_id=5),
        member("m80388", "t1", owned="t1-5 t1-3 t1-2 t1-4 t1-1"),
    ]
    with pytest.raises(contract.AssignmentFailed, match="'m773878' takes no part"):
        assign("cooperative-sticky", without_racks(t0=1, t1=7), *members)


def test_members_come_in_the_order_of_a_copied_map() -> None:
    """Twelve members fill a map to 3/4, and Java's copy of it has twice the buckets."""
    names = ["83", "326765843", "335308800", "82", "136187746", "11", "92267579", "32"]
    names += ["657320220", "681255500", "343718725", "61316077"]
    members = [member(f"m{name}", "t") for name in names]
    order = (
        "326765843 82 335308800 136187746 61316077 92267579 343718725 681255500 83 11 32 657320220"
    )
    assert list(assign("sticky", without_racks(t=1), *members)) == [f"m{n}" for n in order.split()]


def test_a_member_without_topics_may_hide_in_front() -> None:
    """Before the first real subscription in map order it counts as subscribed like the others."""
    in_front = [member("0", ""), member("00", "t")]
    assert named(assign("sticky", without_racks(t=1), *in_front)) == {"0": "t-0", "00": ""}
    behind = [member("0", "t"), member("00", "")]
    assert named(assign("sticky", without_racks(t=1), *behind)) == {"0": "t-0", "00": ""}


def test_sticky_remembers_in_user_data() -> None:
    """No user data before the first assignment; then partitions and generation."""
    sticky = make_consumer_assignor("sticky")
    assert sticky.subscription_user_data(["t"]) is None
    sticky.on_assignment(ConsumerAssignment(partitions=parse("t-1")), 7)
    assert sticky.subscription_user_data(["t"]) == encode_sticky_user_data(parse("t-1"), 7)
    cooperative = make_consumer_assignor("cooperative-sticky")
    assert cooperative.subscription_user_data(["t"]) == b"\xff\xff\xff\xff"
    cooperative.on_assignment(ConsumerAssignment(), 7)
    assert cooperative.subscription_user_data(["t"]) == b"\x00\x00\x00\x07"
    for name in ("range", "roundrobin"):
        plain = make_consumer_assignor(name)
        plain.on_assignment(ConsumerAssignment(), 7)
        assert plain.subscription_user_data(["t"]) is None


def test_names_and_protocols() -> None:
    """Only cooperative-sticky can rebalance cooperatively."""
    for name in ("range", "roundrobin", "sticky", "cooperative-sticky"):
        assignor = make_consumer_assignor(name)
        assert assignor.name == name
        is_cooperative = contract.RebalanceProtocol.COOPERATIVE in assignor.supported_protocols
        assert is_cooperative == (name == "cooperative-sticky")
        assert contract.RebalanceProtocol.EAGER in assignor.supported_protocols


def test_unknown_names_are_refused() -> None:
    """The error lists what exists."""
    with pytest.raises(ConfigError, match="known are range, roundrobin, sticky"):
        make_consumer_assignor("uniform")
    with pytest.raises(ConfigError, match="known are default, compatible, sessioned"):
        make_connect_assignor("eager", scheduled_rebalance_max_delay_ms=0)
    with pytest.raises(ConfigError, match="is negative"):
        make_connect_assignor("sessioned", scheduled_rebalance_max_delay_ms=-1)
