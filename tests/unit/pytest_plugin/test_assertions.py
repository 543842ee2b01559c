"""Assertions over the trace of a test."""

from collections.abc import Callable

import msgspec
import pytest

import coordinator_sim_pytest
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim_conformance.broken.histories import BROKEN, GROUP, correct_history
from coordinator_sim_pytest import stories

BY_INVARIANT = {
    "I1": stories.no_double_ownership,
    "I2": stories.generations_grow,
    "I3": stories.answered_in_time,
    "I4": stories.one_leader,
    "I5": stories.member_ids_are_issued,
    "I6": stories.no_healthy_eviction,
    "I8": stories.no_commit_lost,
    "I9": stories.load_brings_back,
    "I10": stories.one_member_per_instance,
}


@pytest.mark.parametrize("assertion", BY_INVARIANT.values())
def test_a_correct_history_passes(assertion: Callable[[list[TraceEvent]], None]) -> None:
    """And every assertion has something to judge in it."""
    assertion(correct_history())


@pytest.mark.parametrize("what", [name for name, (which, _) in BROKEN.items() if which != "I7"])
def test_a_broken_history_fails_with_its_proof(what: str) -> None:
    """The message has the invariant and the lines of the story."""
    invariant, edit = BROKEN[what]
    events = edit(correct_history())
    with pytest.raises(AssertionError, match=rf"^{invariant} "):
        BY_INVARIANT[invariant](events)
    with pytest.raises(AssertionError, match=rf"^{invariant} "):
        stories.invariants_hold(events)


def test_all_invariants_of_a_correct_history_hold() -> None:
    """Also where the trace lets nothing be judged."""
    stories.invariants_hold(correct_history())
    stories.invariants_hold([])


@pytest.mark.parametrize("assertion", BY_INVARIANT.values())
def test_a_trace_with_nothing_to_judge_fails(assertion: Callable[[list[TraceEvent]], None]) -> None:
    """A check of nothing would pass for the wrong reason."""
    with pytest.raises(AssertionError, match="0 instances"):
        assertion([])


def of_group(at_ms: int, event: Event) -> TraceEvent:
    """An event of the group."""
    return TraceEvent(event=event, ts_us=at_ms * 1_000, group_id=GROUP, generation=1)


REBALANCE = [
    of_group(0, Event.PREPARE_REBALANCE),
    of_group(3_000, Event.JOIN_COMPLETE),
    of_group(3_010, Event.GROUP_STABLE),
]


def test_a_group_that_came_to_rest_in_time() -> None:
    """From the first step out of rest to the next state of rest."""
    stories.converged_within(REBALANCE, 3_010)
    stories.converged_within(REBALANCE, 3_010, group_id=GROUP)


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (REBALANCE, "needed 3010 ms, at most 3000"),
        (REBALANCE[:2], "not at rest"),
        ([], "tells of no rebalance of group"),
    ],
)
def test_a_group_that_did_not(events: list[TraceEvent], message: str) -> None:
    """Too slow, still moving, or never seen."""
    with pytest.raises(AssertionError, match=message):
        stories.converged_within(events, 3_000, group_id=GROUP)


def test_whatever_has_events_is_a_trace() -> None:
    """A fixture, or a run in virtual time."""

    class Fixture(msgspec.Struct):
        """Has a trace."""

        events: list[TraceEvent]

    stories.converged_within(Fixture(REBALANCE), 5_000)


def test_the_package_offers_them_by_name() -> None:
    """Loaded when asked for."""
    for name in coordinator_sim_pytest.ASSERTIONS:
        assert getattr(coordinator_sim_pytest, name) is getattr(stories, name)
    with pytest.raises(AttributeError, match="no attribute"):
        _ = coordinator_sim_pytest.nothing
