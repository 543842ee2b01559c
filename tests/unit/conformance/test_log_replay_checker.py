"""I9 over a trace: what counts as stored, and by whom."""

from typing import Any

from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim_conformance.checkers import check_all


def event(kind: Event, generation: int | None = None, broker_id: int = 1) -> TraceEvent:
    """An event of the group `g` in offsets partition 7."""
    return TraceEvent(
        event=kind,
        ts_us=0,
        group_id="g",
        broker_id=broker_id,
        offsets_partition=7,
        generation=generation,
    )


def load(generation: int, broker_id: int = 2) -> tuple[TraceEvent, TraceEvent]:
    """A broker takes the group over with a generation."""
    begun = TraceEvent(event=Event.LOAD_START, ts_us=0, broker_id=broker_id, offsets_partition=7)
    return begun, event(Event.GROUP_LOADED, generation, broker_id)


def fault(what: str) -> TraceEvent:
    """Something that happens to broker 1."""
    return TraceEvent(event=Event.FAULT, ts_us=0, broker_id=1, reason_text=what)


def found(*events: Any) -> list[str]:  # noqa: ANN401 - events, and tuples of them
    """What I9 finds."""
    flat = [each for one in events for each in (one if isinstance(one, tuple) else (one,))]
    return [each.message for each in check_all(flat).violations if each.invariant == "I9"]


def test_a_load_of_an_older_generation_is_a_loss() -> None:
    """What a leader has stored is what the next one loads."""
    stable = event(Event.GROUP_STABLE, 2)

    assert found(stable, load(2)) == []
    assert found(stable, load(1)) == ["loaded with generation 1; the last one stored is 2"]


def test_a_deposed_leader_stores_nothing() -> None:
    """A broker that was paused may empty its group after another one has loaded it."""
    late = event(Event.GROUP_EMPTY, 3)

    assert found(event(Event.GROUP_STABLE, 2), load(2), late, load(2, broker_id=3)) == []
    assert found(event(Event.GROUP_STABLE, 2), late, load(2)) != []


def test_a_broker_that_halts_may_have_stored_nothing_more() -> None:
    """Its last steps were on no other broker; after its restart they count again."""
    before, halt = event(Event.GROUP_STABLE, 2), fault("LogDirectoryFailed")
    last = event(Event.GROUP_EMPTY, 3)

    assert found(before, halt, last, load(2)) == []
    assert found(before, halt, last, load(3)) == []
    assert found(before, halt, last, load(1)) != []
    assert found(before, halt, fault("BrokerRestarted"), last, load(2)) != []


def test_an_assignment_under_way_tells_nothing_of_what_was_stored_before_the_trace() -> None:
    """It may not have been committed; a later generation than its own was never there."""
    assignment = event(Event.SYNC_LEADER, 5)

    assert found(assignment, load(5)) == []
    assert found(assignment, load(4)) == []
    assert found(assignment, load(6)) != []
