"""The checkers judged by histories whose verdict is known."""

import msgspec
import pytest

from coordinator_sim.trace.events import Event, Source
from coordinator_sim_conformance.broken.histories import BROKEN, broken_history, correct_history
from coordinator_sim_conformance.checkers import CHECKERS, Verdict, check_all

INVARIANTS = tuple(f"I{number}" for number in range(1, 11))


def test_correct_history_passes_every_checker() -> None:
    """Every invariant is judged, and none is broken."""
    report = check_all(correct_history())

    assert report.violations == ()
    assert report.having(Verdict.PASS) == INVARIANTS


@pytest.mark.parametrize("name", BROKEN)
def test_broken_history_is_found_by_exactly_its_checker(name: str) -> None:
    """One thing is wrong, one checker fails, and the others stay silent."""
    invariant, _ = BROKEN[name]

    report = check_all(broken_history(name))

    assert report.having(Verdict.FAIL) == (invariant,)
    assert report.verdict is Verdict.FAIL


def test_every_invariant_has_a_broken_history() -> None:
    """No checker goes untested."""
    assert {invariant for invariant, _ in BROKEN.values()} == set(INVARIANTS)
    assert tuple(checker.invariant for checker in CHECKERS) == INVARIANTS


def test_empty_history_is_unknown_to_every_checker() -> None:
    """Where nothing happened, nothing is proven."""
    report = check_all([])

    assert report.having(Verdict.UNKNOWN) == INVARIANTS
    assert report.verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("missing", "invariant"),
    [
        ({Event.ASSIGNED}, "I1"),
        ({Event.JOIN_COMPLETE, Event.GROUP_EMPTY}, "I2"),
        ({Event.JOIN_REQ, Event.SYNC_REQ}, "I3"),
        ({Event.HEARTBEAT, Event.MEMBER_FAILED}, "I6"),
        ({Event.FAULT, Event.LIFECYCLE}, "I7"),
        ({Event.OFFSET_FETCH}, "I8"),
        ({Event.GROUP_LOADED}, "I9"),
    ],
)
def test_history_without_the_evidence_is_unknown(missing: set[Event], invariant: str) -> None:
    """A trace that lacks an invariant's events leaves it open instead of passing it."""
    events = [event for event in correct_history() if event.event not in missing]

    assert check_all(events).of(invariant).verdict is Verdict.UNKNOWN


def test_log_of_a_correct_history_is_not_blamed() -> None:
    """A broker's log has neither answers, heartbeats nor faults: what it lacks is left open."""
    unlogged = {Event.HEARTBEAT, Event.GROUP_STABLE, Event.OFFSET_COMMIT, Event.OFFSET_FETCH}
    log = [
        msgspec.structs.replace(event, source=Source.BROKER_LOG, correlation_id=None)
        for event in correct_history()
        if event.event not in unlogged
    ]

    report = check_all(log)

    assert report.violations == ()
    assert report.having(Verdict.UNKNOWN) == ("I3", "I5", "I7", "I8")


def test_violation_names_its_evidence() -> None:
    """A reader can go from the verdict to the events."""
    history = broken_history("a follower receives the members")

    (violation,) = check_all(history).violations

    (evidence,) = violation.evidence
    (event,) = [event for event in history if event.seq == evidence]
    assert event.event is Event.JOIN_RESP
    assert "received 2 members" in violation.message
