import pytest

from coordinator_sim.logtext.reading.incarnations import IncarnationCounter
from coordinator_sim.trace.events import Event, Source, TraceEvent


def told(event: Event, generation: int | None = None, **columns: object) -> TraceEvent:
    """An event of one group, from a broker's log."""
    columns.setdefault("source", Source.BROKER_LOG)
    return TraceEvent(event=event, ts_us=0, group_id="shop", generation=generation, **columns)  # type: ignore[arg-type]


STORIES = {
    "generations grow": (
        [(Event.PREPARE_REBALANCE, 4), (Event.JOIN_COMPLETE, 5), (Event.PREPARE_REBALANCE, 5)],
        [0, 0, 0],
    ),
    "dead, then back": (
        [(Event.GROUP_EMPTY, 3), (Event.GROUP_DEAD, 3), (Event.PREPARE_REBALANCE, 0)],
        [0, 0, 1],
    ),
    "deleted without a generation": (
        [(Event.JOIN_COMPLETE, 3), (Event.GROUP_DEAD, None), (Event.MEMBER_ADDED, None)],
        [0, 0, 1],
    ),
    "what follows death at once belongs to the old life": (
        [(Event.GROUP_DEAD, 3), (Event.OFFSET_TOMBSTONE, None), (Event.GROUP_DEAD, None)],
        [0, 0, 0],
    ),
    "generation falls without a death in the log": (
        [(Event.JOIN_COMPLETE, 9), (Event.PREPARE_REBALANCE, 0), (Event.JOIN_COMPLETE, 1)],
        [0, 1, 1],
    ),
    "events without generation change nothing": (
        [(Event.JOIN_COMPLETE, 9), (Event.MEMBER_LEFT, None), (Event.PREPARE_REBALANCE, 9)],
        [0, 0, 0],
    ),
}


@pytest.mark.parametrize("name", STORIES)
def test_incarnation_of_each_event(name: str) -> None:
    """A new incarnation begins after death, or when the generation falls."""
    story, expected = STORIES[name]
    counter = IncarnationCounter()
    numbered = [counter.number(told(event, generation)) for event, generation in story]
    assert [event.incarnation for event in numbered] == expected


def test_groups_are_counted_apart() -> None:
    """One group's death is not another's; events of no group have no incarnation."""
    counter = IncarnationCounter()
    counter.number(told(Event.GROUP_DEAD, 3))
    other = TraceEvent(event=Event.JOIN_COMPLETE, ts_us=0, group_id="till", generation=1)
    assert counter.number(other).incarnation == 0
    nobody = TraceEvent(event=Event.COORD_ELECTED, ts_us=0)
    assert counter.number(nobody) is nobody


def test_clients_late_words_begin_nothing() -> None:
    """A client may still name the generation before; it takes the incarnation as it is."""
    counter = IncarnationCounter()
    counter.number(told(Event.JOIN_COMPLETE, 9))
    late = counter.number(told(Event.SYNC_RESP, 8, source=Source.CONSUMER_LOG))
    assert late.incarnation == 0
    assert counter.number(told(Event.PREPARE_REBALANCE, 9)).incarnation == 0
