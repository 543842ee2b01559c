"""The order and the memory of Kafka's timeline tables."""

import weakref
from dataclasses import dataclass
from typing import Any

import pytest

from coordinator_sim.coordinator.common.timeline import Timeline, TimelineTable, timeline_capacity
from coordinator_sim.kafka.orders.iteration_order import integer_hash


def table(timeline: Timeline, *keys: int) -> TimelineTable[int, str]:
    """A table of these keys, committed."""
    made: TimelineTable[int, str] = TimelineTable(timeline, integer_hash)
    for key in keys:
        made.put(key, f"old {key}")
    return made


def test_table_doubles_when_three_quarters_of_the_keys_exceed_its_slots() -> None:
    """Kafka compares the other way round than its name of the load factor suggests."""
    assert [timeline_capacity(size) for size in (0, 1, 2, 3, 5, 6, 10, 11)] == [
        *(2, 2, 2, 4, 4, 8, 8, 16)
    ]


def test_replacing_a_key_may_double_the_table() -> None:
    """Room is made before the key is looked for."""
    made = table(Timeline(), 0, 1)
    assert timeline_capacity(made.made_for) == 2
    made.put(1, "new")
    assert timeline_capacity(made.made_for) == 4


def test_reader_at_a_committed_position_sees_what_was_there() -> None:
    """Until the change is committed."""
    timeline = Timeline()
    made = table(timeline, 1, 2)
    timeline.settle(5, 5)
    timeline.is_remembering = True
    made.put(1, "new")
    made.put(3, "new")
    made.remove(2)
    timeline.settle(8, 5)

    assert (made.get(1, 5), made.get(2, 5), made.get(3, 5)) == ("old 1", "old 2", None)
    assert (made.get(1), made.get(2), made.get(3)) == ("new", None, "new")

    timeline.settle(8, 8)

    assert (made.get(1, 8), made.get(2, 8), made.get(3, 8)) == ("new", None, "new")


def test_take_back_restores_what_was_written() -> None:
    """What was new is gone, what went is back, and nobody reads it wrong by name."""
    timeline = Timeline()
    made = table(timeline, 1, 2)
    timeline.settle(5, 5)
    timeline.is_remembering = True
    made.put(1, "new")
    made.put(3, "new")
    made.remove(2)
    timeline.take_back()

    assert dict(made.entries) == {1: "old 1", 2: "old 2"}
    assert (made.get(1, 5), made.get(2, 5), made.get(3, 5)) == ("old 1", "old 2", None)


def test_a_listing_after_a_take_back_repeats_until_the_next_commit() -> None:
    """The table that remembered what went is not emptied."""
    timeline = Timeline()
    made = table(timeline, 1)
    timeline.settle(5, 5)
    timeline.is_remembering = True
    made.put(1, "new")
    timeline.take_back()
    assert list(made.items(5)) == [(1, "old 1"), (1, "old 1")]
    assert list(made.items()) == [(1, "old 1")]

    timeline.settle(6, 6)

    assert list(made.items(6)) == [(1, "old 1")]


def told(script: str) -> list[list[int]]:
    """What a table lists in a script of one line.

    `p1` puts key 1, `r1` removes it, `s` writes and commits position 5, `b` takes everything after
    it back, `l` lists the table, `c` lists it for a reader at position 5.
    """
    timeline = Timeline()
    made = table(timeline)
    heard: list[list[int]] = []
    for word in script.split():
        match word[0]:
            case "p":
                made.put(int(word[1:]), "value")
            case "r":
                made.remove(int(word[1:]))
            case "s":
                timeline.settle(5, 5)
                timeline.remember()
            case "b":
                timeline.take_back()
            case "l":
                heard.append(made.keys())
            case _:
                heard.append([key for key, _ in made.items(5)])
    return heard


@pytest.mark.parametrize(
    ("script", "listed"),
    [
        ("p3 p1 l s r3 b l b l", [[1, 3], [3, 1], [1, 3]]),
        ("p5 p2 l s r5 r2 b l r5 b l c", [[2, 5], [2, 5], [5, 2], [2, 5, 5, 2]]),
        ("p1 p2 l s r1 r2 b l r1 b l c", [[2, 1], [2, 1], [2, 1], [2, 2, 1]]),
        ("p0 p1 p2 p3 p4 p5 p6 p7 p8 p9 r3 r4 r5 r6 r7 r8 r9 l s p2 b l", [[0, 2, 1], [0, 2, 1]]),
    ],
)
def test_orders_after_a_take_back_are_those_of_kafka(script: str, listed: list[list[int]]) -> None:
    """Recorded from TimelineHashMap and SnapshotRegistry of Kafka 4.4.0."""
    assert told(script) == listed


def test_a_key_is_placed_by_all_bits_of_its_hash() -> None:
    """Two keys at the edge of their slots, as TimelineHashMap of Kafka 4.4.0 lists them."""
    (few,) = told("p1769333329 p0 p1 p2 p3 p4 p5 p6 l")
    assert few == [5, 0, 2, 4, 1, 6, 3, 1769333329]
    (many,) = told("p1523166341 " + " ".join(f"p{key}" for key in range(85)) + " l")
    assert many[21:25] == [36, 1523166341, 70, 15]


def test_nothing_is_written_before_the_first_position() -> None:
    """A reader at position 0 sees nothing of what comes after it."""
    timeline = Timeline()
    timeline.remember()
    made = table(timeline, 1)
    assert (made.get(1, 0), made.get(1, 1)) == (None, "old 1")


def test_a_value_that_was_written_comes_back_uncommitted() -> None:
    """Taken back to a position that is not committed yet, readers before it still do not see it."""
    timeline = Timeline()
    made = table(timeline)
    timeline.settle(5, 5)
    timeline.remember()
    made.put(1, "written")
    timeline.settle(6, 5)
    assert (list(made.items(5)), list(made.items(6))) == ([], [(1, "written")])
    made.put(1, "refused")
    timeline.take_back()
    assert (made.get(1), made.get(1, 5), made.get(1, 6)) == ("written", None, "written")


@dataclass
class Value:
    """Something that can be seen to be let go."""


def test_what_nobody_can_see_any_more_is_let_go() -> None:
    """A replaced value, and the values of a table that is gone, live until that is committed."""
    timeline = Timeline()
    outer: TimelineTable[int, Any] = TimelineTable(timeline, integer_hash)
    inner: TimelineTable[int, Value] = TimelineTable(timeline, integer_hash)
    outer.put(1, inner)
    inner.put(1, Value())
    inner.put(2, Value())
    replaced, last = (weakref.ref(value) for value in inner.entries.values())
    timeline.settle(5, 5)
    timeline.remember()
    inner.put(1, Value())
    outer.remove(1)
    del inner
    timeline.settle(8, 5)
    assert (replaced() is None, last() is None) == (False, False)
    timeline.settle(8, 8)
    assert (replaced() is None, last() is None) == (True, True)
