"""Ranges in names are expanded as Kafka's StringExpander and ConsumeBenchSpec do."""

import pytest

from coordinator_sim.trogdor.string_expander import InvalidName, expand, expand_repeatedly
from coordinator_sim.trogdor.topic_specs import PartitionsSpec, TopicsSpec
from coordinator_sim.trogdor.workload_specs import ConsumeBenchSpec

ALL_FIVE = (1, 2, 3, 4, 5)


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("foo", {"foo"}),
        ("", {""}),
        ("foo[1-3]", {"foo1", "foo2", "foo3"}),
        ("foo[1-3]bar", {"foo1bar", "foo2bar", "foo3bar"}),
        ("[[ wow[50-52] ]]", {"[[ wow50 ]]", "[[ wow51 ]]", "[[ wow52 ]]"}),
        ("start[1-3]middle[1-3]epilogue", {f"start[1-3]middle{n}epilogue" for n in (1, 2, 3)}),
        ("foo[07-8]", {"foo7", "foo8"}),
    ],
)
def test_the_last_range_of_a_name_is_expanded(name: str, names: set[str]) -> None:
    """J01: the last range alone; a name without a range stands for itself."""
    assert set(expand(name)) == names


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("foo[3-1]", "Invalid range: start 3 is higher than end 1"),
        ("foo[-1]", 'For input string: ""'),
        ("foo[1-2147483648]", 'For input string: "2147483648"'),
    ],
)
def test_a_range_that_cannot_be_is_refused(name: str, message: str) -> None:
    """J01: an end before the start; an end that is missing or beyond 32 bits."""
    with pytest.raises(InvalidName) as refused:
        expand(name)

    assert str(refused.value) == message


def test_names_come_in_the_order_of_a_hash_set() -> None:
    """Names of equal length and consecutive hashes ascend; across a power of ten they do not."""
    assert expand("foo[1-3]") == ("foo1", "foo2", "foo3")
    assert sorted(expand("t[8-12]")) != list(expand("t[8-12]"))


def test_a_range_of_one_number_ends_a_repeated_expansion() -> None:
    """Kafka stops as soon as an expansion has one name, with ranges left in it."""
    assert set(expand_repeatedly("a[1-2][5-6]")) == {"a15", "a16", "a25", "a26"}
    assert expand_repeatedly("a[1-2][5-5]") == ("a[1-2]5",)


@pytest.mark.parametrize(
    ("given", "topics"),
    [
        (
            ("topic[1-3]", "secondTopic"),
            {"topic1": (), "topic2": (), "topic3": (), "secondTopic": ()},
        ),
        (
            ("topic[1-3]:[1-5]", "secondTopic", "thirdTopic:1"),
            {f"topic{n}": ALL_FIVE for n in (1, 2, 3)} | {"secondTopic": (), "thirdTopic": (1,)},
        ),
        (("a:2", "a", "a:0"), {"a": (2, 0)}),
    ],
)
def test_topics_to_consume_are_expanded(
    given: tuple[str, ...], topics: dict[str, tuple[int, ...]]
) -> None:
    """J02: every range is expanded; a topic alone is subscribed to."""
    found = ConsumeBenchSpec(active_topics=given).materialize_topics()

    assert {topic: sorted(partitions) for topic, partitions in found.items()} == {
        topic: sorted(partitions) for topic, partitions in topics.items()
    }


@pytest.mark.parametrize(
    "name",
    [
        *("In:valid", "invalid:", ":invalid", "in:valid:1", "invalid:2:2", "invalid::1"),
        "invalid[1-3]:",
    ],
)
def test_a_name_with_a_colon_must_name_a_partition(name: str) -> None:
    """J02: a colon must stand between a topic and a number."""
    with pytest.raises(InvalidName, match="Expanded topic name"):
        ConsumeBenchSpec(active_topics=(name,)).materialize_topics()


@pytest.mark.parametrize(
    ("spec", "partitions", "replicas"),
    [
        (PartitionsSpec(), 1, 3),
        (PartitionsSpec(num_partitions=0, replication_factor=-1), 1, 3),
        (PartitionsSpec(num_partitions=5, replication_factor=1), 5, 1),
    ],
)
def test_a_topic_has_one_partition_and_three_replicas_by_default(
    spec: PartitionsSpec, partitions: int, replicas: int
) -> None:
    """J20: numbers of 0 and less count as not given."""
    assert spec.effective_num_partitions == partitions
    assert spec.effective_replication_factor == replicas
    assert spec.partition_numbers == tuple(range(partitions))


def test_assigned_partitions_are_those_of_the_topic() -> None:
    """With assignments, the number of partitions means nothing."""
    spec = PartitionsSpec(num_partitions=9, partition_assignments={2: (1,), 0: (1, 2)})

    assert spec.partition_numbers == (0, 2)


def test_topics_to_make_are_expanded_by_their_last_range() -> None:
    """All names of a range have the same partitions; one that is named later wins."""
    one, two = PartitionsSpec(num_partitions=1), PartitionsSpec(num_partitions=2)

    topics = TopicsSpec(topics={"t[1-3]": one, "t2": two}).materialize()

    assert topics == {"t1": one, "t2": two, "t3": one}
