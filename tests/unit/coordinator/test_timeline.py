"""The order and the memory of Kafka's timeline tables."""

from coordinator_sim.coordinator.timeline import Timeline, TimelineTable, timeline_capacity
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
        2,
        2,
        2,
        4,
        4,
        8,
        8,
        16,
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
