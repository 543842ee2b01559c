"""The protocol's invariants, each a named checker over a trace.

Pure: a trace goes in, findings come out. A checker without evidence answers UNKNOWN, never PASS.
`docs/invariants.md` says what each invariant means, and what it does not.
"""

from collections.abc import Sequence
from typing import Final

from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.story import story_line, widest_group
from coordinator_sim_conformance.checkers.answers import ANSWERED_IN_TIME, IDS_ARE_ISSUED
from coordinator_sim_conformance.checkers.contract import (
    Checker,
    CheckResult,
    Findings,
    Report,
    Verdict,
    Violation,
)
from coordinator_sim_conformance.checkers.convergence import CONVERGES
from coordinator_sim_conformance.checkers.generations import GENERATIONS_GROW, ONE_LEADER
from coordinator_sim_conformance.checkers.history import NOTHING_KNOWN, Circumstances, History
from coordinator_sim_conformance.checkers.log_replay import LOAD_BRINGS_BACK_WHAT_WAS_STORED
from coordinator_sim_conformance.checkers.offsets import LAST_COMMIT_WINS
from coordinator_sim_conformance.checkers.ownership import ONE_OWNER
from coordinator_sim_conformance.checkers.sessions import NO_HEALTHY_EVICTION
from coordinator_sim_conformance.checkers.share_records import (
    LOCKS_END,
    RELEASED_COMES_AGAIN,
    SETTLED_FOR_GOOD,
)
from coordinator_sim_conformance.checkers.slices import slice_of
from coordinator_sim_conformance.checkers.static_members import ONE_MEMBER_PER_INSTANCE

CHECKERS: Final = (
    ONE_OWNER,
    GENERATIONS_GROW,
    ANSWERED_IN_TIME,
    ONE_LEADER,
    IDS_ARE_ISSUED,
    NO_HEALTHY_EVICTION,
    CONVERGES,
    LAST_COMMIT_WINS,
    LOAD_BRINGS_BACK_WHAT_WAS_STORED,
    ONE_MEMBER_PER_INSTANCE,
)
"""Every checker of any group, by invariant I1 to I10."""
SHARE_CHECKERS: Final = (SETTLED_FOR_GOOD, RELEASED_COMES_AGAIN, LOCKS_END)
"""Checkers of the records of share groups, I11 to I13."""


def check_all(events: Sequence[TraceEvent], known: Circumstances = NOTHING_KNOWN) -> Report:
    """Judge a trace by every invariant.

    Args:
        events: Events in trace order, as a recorder numbered them.
        known: Facts beside the events, such as the settings of a simulated run.

    Returns:
        One result an invariant, I1 to I10; of a trace with records of share groups, I1 to I13.
    """
    history = History(events, known)
    results: list[CheckResult] = []
    for checker in _checkers_of(events):
        findings = checker.judge(history)
        results.append(
            CheckResult(
                invariant=checker.invariant,
                name=checker.name,
                title=checker.title,
                verdict=findings.verdict,
                judged=findings.judged,
                violations=findings.violations,
            )
        )
    return Report(tuple(results))


def _checkers_of(events: Sequence[TraceEvent]) -> tuple[Checker, ...]:
    shares = any(event.event is Event.RECORDS_DELIVERED for event in events)
    return CHECKERS + SHARE_CHECKERS if shares else CHECKERS


SLICE_LINES: Final = 20
"""Lines shown of a slice; few have more than four events."""


def slice_lines(
    events: Sequence[TraceEvent], violation: Violation, known: Circumstances = NOTHING_KNOWN
) -> list[str]:
    """The smallest sub-history that still shows a violation, a line of the story an event.

    Args:
        events: The trace in which `violation` was found.
        violation: One of the report on that trace.
        known: Facts that `check_all` was given.
    """
    checker = next(
        each for each in CHECKERS + SHARE_CHECKERS if each.invariant == violation.invariant
    )
    found = slice_of(checker, events, violation, known)
    shown = found[:SLICE_LINES]
    width = widest_group(shown)
    lines = [story_line(event, group_width=width) for event in shown]
    left_out = len(found) - len(shown)
    return [*lines, f"... {left_out} events more"] if left_out else lines


__all__ = [
    "CHECKERS",
    "SHARE_CHECKERS",
    "CheckResult",
    "Checker",
    "Circumstances",
    "Findings",
    "History",
    "Report",
    "Verdict",
    "Violation",
    "check_all",
    "slice_lines",
    "slice_of",
]
