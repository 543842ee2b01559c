import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.logtext.reading.incarnations import IncarnationCounter
from coordinator_sim.trace.batches import Names, batch_of
from coordinator_sim.trace.events import Event, Source, TraceEvent

NAMES = Names()


def number(counter: IncarnationCounter, event: TraceEvent) -> TraceEvent:
    """An event with its incarnation."""
    (numbered,) = counter.number(batch_of([event], NAMES)).events()
    return numbered


def told(event: Event, generation: int | None = None, **columns: object) -> TraceEvent:
    """An event of one group, from a broker's log."""
    columns.setdefault("source", Source.BROKER_LOG)
    return TraceEvent(event=event, ts_us=0, group_id="shop", generation=generation, **columns)  # type: ignore[arg-type]


EVENTS = st.builds(
    told,
    st.sampled_from(
        [Event.PREPARE_REBALANCE, Event.JOIN_COMPLETE, Event.GROUP_DEAD, Event.OFFSET_TOMBSTONE]
    ),
    st.none() | st.integers(0, 3),
    source=st.sampled_from([Source.BROKER_LOG, Source.CONSUMER_LOG]),
)
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
    numbered = [number(counter, told(event, generation)) for event, generation in story]
    assert [event.incarnation for event in numbered] == expected


def test_groups_are_counted_apart() -> None:
    """One group's death is not another's; events of no group have no incarnation."""
    counter = IncarnationCounter()
    number(counter, told(Event.GROUP_DEAD, 3))
    other = TraceEvent(event=Event.JOIN_COMPLETE, ts_us=0, group_id="till", generation=1)
    assert number(counter, other).incarnation == 0
    nobody = TraceEvent(event=Event.COORD_ELECTED, ts_us=0)
    assert number(counter, nobody) is nobody


def test_clients_late_words_begin_nothing() -> None:
    """A client may still name the generation before; it takes the incarnation as it is."""
    counter = IncarnationCounter()
    number(counter, told(Event.JOIN_COMPLETE, 9))
    late = number(counter, told(Event.SYNC_RESP, 8, source=Source.CONSUMER_LOG))
    assert late.incarnation == 0
    assert number(counter, told(Event.PREPARE_REBALANCE, 9)).incarnation == 0


@given(st.lists(st.tuples(st.sampled_from(["shop", "till", None]), EVENTS), max_size=40))
def test_events_all_at_once_are_numbered_like_one_by_one(
    drawn: list[tuple[str | None, TraceEvent]],
) -> None:
    """However events are cut into batches, each has the same incarnation."""
    events = [msgspec.structs.replace(event, group_id=group) for group, event in drawn]
    alone = IncarnationCounter()
    expected = [number(alone, event).incarnation for event in events]
    together = IncarnationCounter().number(batch_of(events, Names()))
    assert together.incarnations.tolist() == expected
