"""The simulation's kernel: simpy's environment with a clock of whole microseconds.

Clock, queue and `step` are simpy's own. Timers and deliveries are events that call one action, and
cost less than simpy's events and processes, which run beside them in the same order: by instant,
by priority, first in first out. A run may draw the priority of simultaneous events instead.
"""

from collections.abc import Callable, Sequence
from heapq import heapify, heappush
from operator import methodcaller
from typing import Any, ClassVar, Final, Never

import simpy
from msgspec import Struct
from simpy.events import NORMAL, Event, EventPriority

from coordinator_sim.clock import Action
from coordinator_sim.sim.scenario.choices import Choices

_TIE_RANKS: Final = 8
"""Priorities that shuffled ties draw from: enough to reorder a handful of simultaneous events."""
_LAST: Final = NORMAL + _TIE_RANKS
"""Priority behind every event of the same instant."""
_CALL_ACTION: Final = (methodcaller("action"),)


class Call(Struct):
    """An event of simpy's queue that calls an action, and that no process can wait for."""

    action: Action
    callbacks: tuple[Callable[[Any], None], ...] | None = _CALL_ACTION
    _ok: ClassVar[bool] = True  # simpy reads it: the event has not failed


Scheduled = Event | Call
Entry = tuple[int, int, int, Scheduled]
"""An event of the queue: instant, priority, number in order of scheduling, event."""


class Environment(simpy.Environment):
    """Virtual time in whole microseconds, from 0.

    Args:
        tie_choices: Source of the priorities of simultaneous events; None keeps them first in,
            first out, and draws nothing.

    Attributes:
        now_us: The present instant in microseconds; another name of what simpy calls `now`.
        scheduled_count: Events scheduled until the last run began.
    """

    __slots__ = ("_now",)
    now_us: int

    def __init__(self, tie_choices: Choices | None = None) -> None:
        super().__init__(initial_time=0)
        self._calls: list[Entry] = self._queue  # type: ignore[assignment] # for simpy: events
        self._tie_choices = tie_choices
        self.scheduled_count = 0

    def call_at(self, at_us: int, action: Action) -> None:
        """Call the action at the instant, which must not have passed."""
        priority: int = NORMAL
        if self._tie_choices is not None:
            priority = self._drawn_priority(self._tie_choices)
        heappush(self._calls, (at_us, priority, next(self._eid), Call(action)))

    def schedule(self, event: Event, priority: EventPriority = NORMAL, delay: float = 0) -> None:
        """Fire a simpy event after `delay` microseconds; simpy's own classes ask for it."""
        drawn: int = priority
        if priority == NORMAL and self._tie_choices is not None:
            drawn = self._drawn_priority(self._tie_choices)
        heappush(self._calls, (self.now_us + int(delay), drawn, next(self._eid), event))

    def pending(self) -> Sequence[Entry]:
        """Return the events to come, in no order."""
        return self._calls

    def withdraw(self, is_withdrawn: Callable[[Scheduled], bool]) -> None:
        """Do not fire these events any more."""
        self._calls[:] = [entry for entry in self._calls if not is_withdrawn(entry[3])]
        heapify(self._calls)

    def put_back(self, entry: Entry) -> None:
        """Fire a withdrawn event now, in its place among the events of this instant."""
        heappush(self._calls, (self.now_us, *entry[1:]))

    @property
    def shuffles_ties(self) -> bool:
        """Whether simultaneous events are put in an order that is drawn."""
        return self._tie_choices is not None

    def run_until(self, end_us: int) -> None:
        """Fire everything due up to and including `end_us`, and set the clock to it.

        What an event raises ends the simulation: it cannot be continued.
        """
        if end_us < self.now_us:
            return
        self.scheduled_count = next(self._eid)
        heappush(self._calls, (end_us, _LAST, self.scheduled_count, Call(_reach_end)))
        try:
            while True:
                self.step()
        except _EndReached:
            return

    def _drawn_priority(self, choices: Choices) -> int:
        return NORMAL + choices.choose("tie", "", _TIE_RANKS)


# simpy keeps the present in `_now`, here a slot: a second name for it costs no call.
Environment.now_us = vars(Environment)["_now"]


class _EndReached(Exception):
    """The last event of a run."""


def _reach_end() -> Never:
    raise _EndReached
