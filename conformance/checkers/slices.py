"""The smallest sub-history that still shows a violation: what a reader has to look at.

Events are left out in ever smaller pieces as long as the same checker finds the same violation:
the same invariant, group, instant and words. What remains is a history of its own that the checker
rejects, from which no single event can be left out.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from coordinator_sim.trace.events import TraceEvent
from coordinator_sim_conformance.checkers.contract import Checker, Violation
from coordinator_sim_conformance.checkers.history import NOTHING_KNOWN, Circumstances, History

_WORK_PER_EVENT: Final = 30
_WORK: Final = 300_000
"""Events that may be judged on the way, beside 30 for each of the history: a second or two."""

Slice = tuple[TraceEvent, ...]


def slice_of(
    checker: Checker,
    events: Sequence[TraceEvent],
    violation: Violation,
    known: Circumstances = NOTHING_KNOWN,
) -> Slice:
    """The smallest part of a history in which the checker finds that violation.

    Args:
        checker: The checker that found it.
        events: The history in which it did, in trace order.
        violation: What it found there.
        known: Facts beside the events that it was given.

    Returns:
        Events of the history, in its order. None of them can be left out, unless the history is so
        long that the work ended before: time grows with its length alone.
    """
    trial = _Trial(checker, violation, known, _WORK + _WORK_PER_EVENT * len(events))
    start = next((part for part in _beginnings(events, violation) if trial.shows(part)), events)
    return _made_small(list(start), trial)


class _Trial:
    """Asks the checker about parts of a history until its work is used up."""

    def __init__(
        self, checker: Checker, violation: Violation, known: Circumstances, work: int
    ) -> None:
        self._checker = checker
        self._wanted = _identity(violation)
        self._known = known
        self._left = work

    def may_ask(self, part: Sequence[TraceEvent]) -> bool:
        """Whether there is work left for one more question about a part as long as this."""
        return len(part) <= self._left

    def shows(self, part: Sequence[TraceEvent]) -> bool:
        """Whether the checker finds the violation there."""
        self._left -= len(part)
        found = self._checker.judge(History(part, self._known)).violations
        return any(_identity(each) == self._wanted for each in found)


def _identity(violation: Violation) -> tuple[str, str | None, int, str]:
    return violation.invariant, violation.group_id, violation.at_us, violation.message


def _beginnings(
    events: Sequence[TraceEvent], violation: Violation
) -> Iterator[Sequence[TraceEvent]]:
    """Parts to begin with, smaller ones first: the evidence, its members', its group's events."""
    evidence = frozenset(violation.evidence)
    proof = [event for event in events if event.seq in evidence]
    yield proof
    members = {event.member_id for event in proof if event.member_id}
    of_group = [event for event in events if event.group_id in (None, violation.group_id)]
    yield [
        event
        for event in of_group
        if event.seq in evidence or event.group_id is None or event.member_id in members
    ]
    yield of_group


def _made_small(part: list[TraceEvent], trial: _Trial) -> Slice:
    """Leave pieces out, first halves, at last single events, until each event is needed."""
    size = len(part)
    while size and trial.may_ask(part):
        size = max(size // 2, 1)
        smaller = _without_pieces(part, size, trial)
        is_done = size == 1 and len(smaller) == len(part)
        part = smaller
        if is_done:
            break
    return tuple(part)


def _without_pieces(part: list[TraceEvent], size: int, trial: _Trial) -> list[TraceEvent]:
    """The part without each piece of that size that is not needed, tried from the end."""
    end = len(part)
    while end > 0 and trial.may_ask(part):
        start = max(end - size, 0)
        rest = part[:start] + part[end:]
        if trial.shows(rest):
            part = rest
        end = start
    return part
