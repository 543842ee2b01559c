"""The simulation's kernel: simpy's environment with an integer clock and cheap callbacks.

Timers and deliveries are plain callbacks in simpy's own queue; simpy's events and processes work
beside them. Simultaneous callbacks are ordered by a tie key: first in, first out, unless ties are
shuffled by choice.
"""

from collections.abc import Callable, Sequence
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Final, cast

import simpy
from simpy.core import EmptySchedule
from simpy.events import NORMAL, URGENT, Event, EventPriority

from coordinator_sim.clock import Action
from coordinator_sim.sim.scenario.choices import Choices

_RANK: Final = 1 << 60
"""Weight of a rank in the tie key, above every counter that a run can reach."""
_TIE_RANKS: Final = 8
"""Ranks that shuffled ties draw from: enough to reorder a handful of simultaneous callbacks."""

_Entry = tuple[int, int, Action]
"""Instant, tie key (rank and counter), callback. The key is unique, so callbacks never compare."""


class Environment(simpy.Environment):
    """Virtual time in whole microseconds, from 0.

    Args:
        tie_choices: Source of the ranks of simultaneous callbacks; None keeps them first in, first
            out, and draws nothing.
    """

    def __init__(self, tie_choices: Choices | None = None) -> None:
        super().__init__(initial_time=0)
        self._heap: list[_Entry] = []
        self._queue = cast("Any", self._heap)  # simpy looks at the times alone
        self._next_count = count().__next__
        self._tie_choices = tie_choices
        self.now_us = 0
        """The present instant in microseconds."""
        self.fired_count = 0
        """Callbacks fired by `run_until` so far."""

    @property
    def now(self) -> int:
        """The present instant in microseconds, under simpy's name."""
        return self.now_us

    def call_at(self, at_us: int, action: Action) -> None:
        """Call the action at the instant, which must not have passed."""
        key = self._next_count()
        if self._tie_choices is not None:
            key += self._tie_choices.choose("tie", "", _TIE_RANKS) * _RANK
        heappush(self._heap, (at_us, key, action))

    def pending(self) -> Sequence[tuple[int, int, Action]]:
        """Return what is to be called: instant, tie key and action, in no order."""
        return self._heap

    def withdraw(self, is_withdrawn: Callable[[Action], bool]) -> None:
        """Do not call these actions any more."""
        self._heap[:] = [entry for entry in self._heap if not is_withdrawn(entry[2])]
        heapify(self._heap)

    @property
    def shuffles_ties(self) -> bool:
        """Whether simultaneous callbacks are put in an order that is drawn."""
        return self._tie_choices is not None

    def schedule(self, event: Event, priority: EventPriority = NORMAL, delay: float = 0) -> None:
        """Fire a simpy event after `delay` microseconds, for simpy's own classes."""
        key = self._next_count() - (_RANK if priority == URGENT else 0)
        fire: Action = partial(_fire, event)
        heappush(self._heap, (self.now_us + int(delay), key, fire))

    def step(self) -> None:
        """Fire the next callback.

        Raises:
            EmptySchedule: the queue is empty.
        """
        if not self._heap:
            raise EmptySchedule
        at_us, _, action = heappop(self._heap)
        self.now_us = at_us
        action()

    def run_until(self, end_us: int) -> None:
        """Fire everything due up to and including `end_us`, and set the clock to it."""
        heap = self._heap
        pop = heappop
        fired = 0
        while heap and heap[0][0] <= end_us:
            at_us, _, action = pop(heap)
            self.now_us = at_us
            fired += 1
            action()
        self.fired_count += fired
        self.now_us = max(self.now_us, end_us)


def _fire(event: Event) -> None:
    """Run a simpy event's callbacks; an unhandled failure ends the simulation."""
    callbacks, event.callbacks = event.callbacks, None  # type: ignore[assignment] # simpy's mark
    for callback in callbacks:
        callback(event)
    if not event.ok and not event.defused:
        raise cast("BaseException", event.value)
