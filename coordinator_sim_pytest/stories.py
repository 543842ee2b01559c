"""A trace as text in a test's report.

Assertions over the trace of a test: the invariants I1 to I10, and that a group comes to rest.

Each takes a trace (events in order), or a fixture that has one, and raises `AssertionError` with
the smallest history that still shows the fault. A trace without anything to judge fails too: it
would pass for the wrong reason.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from coordinator_sim.errors import CoordinatorSimError
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.recorder import numbered
from coordinator_sim.trace.story import story_line, widest_group
from coordinator_sim_conformance.checkers import (
    CHECKERS,
    Checker,
    Findings,
    History,
    slice_lines,
)

_SHOWN: Final = 5
_MOVING: Final = frozenset({Event.PREPARE_REBALANCE, Event.JOIN_COMPLETE})
_RESTING: Final = frozenset({Event.GROUP_STABLE, Event.GROUP_EMPTY, Event.GROUP_DEAD})


class Traced(Protocol):
    """An object with a trace: a fixture of this plugin, or a run in virtual time."""

    @property
    def events(self) -> Sequence[TraceEvent]:
        """Every recorded event, in order."""
        ...


Trace = Iterable[TraceEvent] | Traced


def no_double_ownership(trace: Trace, *, judged: int = 1) -> None:
    """No partition or task has two owners in one generation, by the leader's decisions (I1).

    Args:
        trace: Events, or a fixture that has them.
        judged: Least number of generations that the trace must allow to judge.
    """
    __tracebackhide__ = True
    _holds("I1", trace, judged)


def generations_grow(trace: Trace, *, judged: int = 1) -> None:
    """Every completed join phase has a larger generation than the one before (I2)."""
    __tracebackhide__ = True
    _holds("I2", trace, judged)


def answered_in_time(trace: Trace, *, judged: int = 1) -> None:
    """Every JoinGroup and SyncGroup was answered within its bound (I3)."""
    __tracebackhide__ = True
    _holds("I3", trace, judged)


def one_leader(trace: Trace, *, judged: int = 1) -> None:
    """All members of a generation are told one leader (I4)."""
    __tracebackhide__ = True
    _holds("I4", trace, judged)


def member_ids_are_issued(trace: Trace, *, judged: int = 1) -> None:
    """Every member id in an answer was issued by the coordinator (I5)."""
    __tracebackhide__ = True
    _holds("I5", trace, judged)


def no_healthy_eviction(trace: Trace, *, judged: int = 1) -> None:
    """No session timer removed a member within its session of a heartbeat (I6)."""
    __tracebackhide__ = True
    _holds("I6", trace, judged)


def no_commit_lost(trace: Trace, *, judged: int = 1) -> None:
    """Every fetched offset is the last one accepted, also after a failover (I8).

    Only fetched offsets can be judged: let a consumer, or an admin client, ask for its offsets.
    """
    __tracebackhide__ = True
    _holds("I8", trace, judged)


def load_brings_back(trace: Trace, *, judged: int = 1) -> None:
    """A coordinator that loads a group has the generation that was stored (I9)."""
    __tracebackhide__ = True
    _holds("I9", trace, judged)


def one_member_per_instance(trace: Trace, *, judged: int = 1) -> None:
    """An instance id stands for one member at a time (I10)."""
    __tracebackhide__ = True
    _holds("I10", trace, judged)


def invariants_hold(trace: Trace) -> None:
    """Check that none of I1 to I10 is broken, as far as the trace allows to judge them."""
    __tracebackhide__ = True
    events = _events(trace)
    history = History(events)
    for checker in CHECKERS:
        _judge(checker, checker.judge(history), events, 0)


def converged_within(
    trace: Trace, ms: int, *, group_id: str | None = None, judged: int = 1
) -> None:
    """Every rebalance ended within so many milliseconds, and none is in progress.

    Args:
        trace: Events, or a fixture that has them.
        ms: Limit from the first step out of a state of rest to the next state of rest: Stable,
            Empty or Dead.
        group_id: Group to check; None for all.
        judged: Least number of groups that the trace must show in a rebalance; 0 for drawn worlds,
            where everybody may be gone before the first one.
    """
    __tracebackhide__ = True
    began: dict[str, TraceEvent] = {}
    seen: dict[str, None] = {}
    events = _events(trace)
    for event in events:
        group = event.group_id
        if group is None or group_id not in {None, group}:
            continue
        if event.event in _MOVING:
            seen[group] = None
            began.setdefault(group, event)
        elif event.event in _RESTING and group in began:
            _lasted(began.pop(group), event, ms)
    if len(seen) < judged:
        which = "a group" if group_id is None else f"group {group_id!r}"
        found = f"{len(seen)} groups, {judged} are wanted" if seen else f"no rebalance of {which}"
        raise AssertionError(f"nothing to judge: the trace tells of {found}")
    for group, event in began.items():
        raise AssertionError(f"group {group!r} is not at rest:\n{_told([event, events[-1]])}")


def _lasted(began: TraceEvent, ended: TraceEvent, ms: int) -> None:
    __tracebackhide__ = True
    lasted_us = ended.ts_us - began.ts_us
    if lasted_us > ms * 1_000:
        raise AssertionError(
            f"group {began.group_id!r} needed {lasted_us / 1_000:g} ms, at most {ms} are wanted:\n"
            + _told([began, ended])
        )


def _holds(invariant: str, trace: Trace, judged: int) -> None:
    __tracebackhide__ = True
    events = _events(trace)
    checker = next(each for each in CHECKERS if each.invariant == invariant)
    _judge(checker, checker.judge(History(events)), events, judged)


def _judge(checker: Checker, found: Findings, events: list[TraceEvent], judged: int) -> None:
    __tracebackhide__ = True
    name = f"{checker.invariant} {checker.name}"
    if found.violations:
        first = found.violations[0]
        more = len(found.violations) - 1
        rest = f" (and {more} more)" if more else ""
        proof = "\n".join(f"  {line}" for line in slice_lines(events, first))
        raise AssertionError(f"{name}: {first.message}{rest}\n{proof}")
    if found.judged < judged:
        raise AssertionError(
            f"{name}: the trace of {len(events)} events lets {found.judged} instances be judged, "
            f"{judged} are wanted"
        )


def _events(trace: Trace) -> list[TraceEvent]:
    """Return the events, numbered by their places in the trace if they have no number."""
    found = trace if isinstance(trace, Iterable) else trace.events
    return [numbered(event, place) for place, event in enumerate(found)]


def _told(events: list[TraceEvent]) -> str:
    width = widest_group(events)
    shown = [story_line(event, group_width=width) for event in events[:_SHOWN]]
    return "\n".join(f"  {line}" for line in shown)


MAX_LINES: Final = 400
"""Largest number of lines shown, the last ones."""


def story_of(traced: "Traced") -> str:
    """Return the last `MAX_LINES` events as lines; the reason where there are none."""
    try:
        events = list(traced.events)
    except (OSError, CoordinatorSimError) as error:
        return f"the trace cannot be had: {error}"
    left_out = max(0, len(events) - MAX_LINES)
    shown = events[left_out:]
    width = widest_group(shown)
    lines = [story_line(event, group_width=width) for event in shown]
    if left_out:
        lines.insert(0, f"... {left_out} events before")
    return "\n".join(lines) or "no event"
