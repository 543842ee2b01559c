"""The order that a commit's partitions get in the maps of each Kafka, as its own code gave it."""

from coordinator_sim.kafka.orders.iteration_order import old_scala_map_order, old_scala_set_order
from coordinator_sim.kafka.orders.offset_maps import (
    OffsetMaps,
    answered_order,
    asked_order,
    by_topic,
    kept_order,
    requested_order,
)
from coordinator_sim.kafka.resources import TopicPartition as Place

SIX = (
    Place("nope", 2),
    Place("nope", 1),
    Place("u", 0),
    Place("t", 5),
    Place("t", 4),
    Place("t", 3),
)
"""A commit that Kafka 0.10.2.2 took; the topic `nope` does not exist."""


def test_0_10_2_orders_the_whole_request_by_a_trie_of_2_12() -> None:
    """What exists of more than four partitions is stored in the order of the whole request."""
    ordered = requested_order(OffsetMaps.JAVA, SIX)
    stored = [place for place in ordered if place.topic != "nope"]
    assert stored == [Place("u", 0), Place("t", 5), Place("t", 4), Place("t", 3)]


def test_0_10_2_answers_by_hash_maps_of_topics_and_of_partitions() -> None:
    """Topics come in the order of their hashes, partitions by number."""
    answered = answered_order(OffsetMaps.JAVA, SIX[2:], SIX[:2], transactional=False)
    assert [place.topic for place in answered] == ["t"] * 3 + ["u"] + ["nope"] * 2
    assert [place.partition for place in answered] == [3, 4, 5, 0, 1, 2]


def test_2_8_keeps_up_to_four_partitions_as_asked() -> None:
    """An immutable Map of four or fewer keeps the order of insertion, also when filtered."""
    places = (Place("v", 1), Place("v", 2), Place("t", 0))
    assert asked_order(OffsetMaps.PARTITIONS, places, transactional=False) == places
    left = kept_order(OffsetMaps.PARTITIONS, places, frozenset(places[1:]), transactional=False)
    assert left == places[1:]


def test_2_8_takes_a_transactional_commit_through_a_hash_map() -> None:
    """Kafka 2.8.2 stored partition 2 of `v` before partition 1."""
    places = (Place("v", 1), Place("v", 2))
    assert asked_order(OffsetMaps.PARTITIONS, places, transactional=True) == places[::-1]


def test_topics_are_gathered_where_they_come_up() -> None:
    """In 2.8 the partitions of a topic stay in the order of the map before."""
    places = [Place("u", 5), Place("t", 1), Place("u", 3)]
    assert by_topic(OffsetMaps.PARTITIONS, places) == [places[1], places[0], places[2]]


def test_a_table_of_2_12_hands_out_the_newest_of_a_bucket_first() -> None:
    """Keys of one hash come back in reverse, and are turned around when the table grows."""
    same = old_scala_map_order(range(3), hash_of=lambda _: 7)
    assert same == [2, 1, 0]
    grown = old_scala_map_order(range(13), hash_of=lambda _: 7)
    assert grown == list(range(13))


def test_a_trie_of_2_12_begins_with_the_fifth_key() -> None:
    """Up to four keys keep the order of insertion."""
    assert old_scala_set_order("dcba") == ["d", "c", "b", "a"]
    assert sorted(old_scala_set_order("edcba")) == ["a", "b", "c", "d", "e"]
    assert old_scala_set_order("edcba") == old_scala_set_order("abcde")


def test_0_10_2_answers_what_it_refused_in_the_order_of_the_request_map() -> None:
    """Kafka 0.10.2.2 told of `nope` before `u`, whose names share a bucket, as it was asked."""
    asked = (Place("nope", 1), Place("u", 1))
    answered = answered_order(OffsetMaps.JAVA, (), asked, transactional=False)
    assert answered == list(asked)
