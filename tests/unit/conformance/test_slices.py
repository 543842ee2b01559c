"""The smallest sub-history that shows a violation."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim_conformance import checkers
from coordinator_sim_conformance.broken.histories import BROKEN, broken_history, correct_history

Parts = list[TraceEvent]


def checker_of(name: str) -> checkers.Checker:
    """The checker that a broken history is for."""
    return next(each for each in checkers.CHECKERS if each.invariant == BROKEN[name][0])


def words_of(violations: list[checkers.Violation]) -> set[tuple[str | None, int, str]]:
    """What violations say, without the numbers of their events."""
    return {(each.group_id, each.at_us, each.message) for each in violations}


def assert_smallest(
    checker: checkers.Checker, events: Parts, violation: checkers.Violation
) -> None:
    """The slice is a part in order, shows the violation, and needs each of its events."""
    found = checkers.slice_of(checker, events, violation)
    rest = iter(events)
    assert all(any(event is each for each in rest) for event in found)
    wanted = words_of([violation])
    assert wanted <= words_of(checker.check(found))
    for left_out in found:
        part = [event for event in found if event is not left_out]
        assert not wanted & words_of(checker.check(part))


@pytest.mark.parametrize("name", BROKEN)
def test_slice_of_a_broken_history_is_rejected_and_minimal(name: str) -> None:
    """At most four events show each fault, and none of them can be left out."""
    checker, events = checker_of(name), broken_history(name)
    for violation in checker.check(events):
        assert_smallest(checker, events, violation)
        assert len(checkers.slice_of(checker, events, violation)) <= 4


def other_group(events: Parts, name: str) -> Parts:
    """The same story of another group, on other partitions of the offsets topic."""
    return [
        msgspec.structs.replace(event, group_id=name, offsets_partition=8)
        for event in events
        if event.group_id is not None
    ]


@pytest.mark.property
@given(
    name=st.sampled_from(sorted(BROKEN)),
    others=st.integers(0, 3),
    dropped=st.sets(st.integers(0, 60), max_size=12),
)
def test_slice_is_minimal_whatever_happens_beside_it(
    name: str, others: int, dropped: set[int]
) -> None:
    """Other groups run their own stories between, and the trace lacks some events."""
    checker = checker_of(name)
    history = [each for nth, each in enumerate(broken_history(name)) if nth not in dropped]
    for number in range(others):
        history += other_group(correct_history(), f"other-{number}")
    history.sort(key=lambda event: event.ts_us)
    events = [msgspec.structs.replace(each, seq=nth) for nth, each in enumerate(history)]
    for violation in checker.check(events):
        assert_smallest(checker, events, violation)


def test_work_grows_with_the_length_alone() -> None:
    """A checker that needs every event is asked about so many events only, and then no more."""
    judged = [0]

    def needs_all(history: checkers.History) -> checkers.Findings:
        judged[0] += len(history.events)
        found = checkers.Violation(
            invariant="I1", at_us=0, group_id="orders", message="all of them"
        )
        return checkers.Findings(1, (found,) if len(history.events) == 20_000 else ())

    (heartbeat, *_) = [each for each in correct_history() if each.event is Event.HEARTBEAT]
    events = [msgspec.structs.replace(heartbeat, seq=nth) for nth in range(20_000)]
    checker = checkers.Checker(invariant="I1", name="needs-all", title="all", judge=needs_all)
    (violation,) = checker.check(events)

    assert list(checkers.slice_of(checker, events, violation)) == events
    assert judged[0] <= 300_000 + 32 * len(events)
    assert checkers.slice_lines(correct_history(), violation)[-1].startswith("... ")


def test_lines_of_a_slice_are_those_of_the_story() -> None:
    """Two owners of one partition: the two assignments, and nothing else of fifty events."""
    events = broken_history("two members own one partition")
    (checker,) = (each for each in checkers.CHECKERS if each.invariant == "I1")
    (violation,) = checker.check(events)
    first, second = checkers.slice_lines(events, violation)
    assert "ASSIGNED           i2-0002" in first
    assert "ASSIGNED           c1-0001" in second
