"""The simulation's kernel: simpy's environment with an integer clock and cheap callbacks.

Timers and deliveries are plain callbacks in simpy's own queue; simpy's events and processes work
beside them. Simultaneous callbacks are ordered by (rank, counter): first in, first out, unless
ties are shuffled by choice.
"""

from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, cast

import simpy
from simpy.core import EmptySchedule
from simpy.events import NORMAL, URGENT, Event, EventPriority

from coordinator_sim.clock import Action
from coordinator_sim.scenario.choices import Choices

_URGENT_RANK: Final = -1
_TIE_RANKS: Final = 8
"""Ranks that shuffled ties draw from: enough to reorder a handful of simultaneous callbacks."""


class Environment(simpy.Environment):
    """Virtual time in whole microseconds, from 0.

    Args:
        tie_choices: Where the ranks of simultaneous callbacks are drawn; None keeps them first
            in, first out, and draws nothing.
    """

    def __init__(self, tie_choices: Choices | None = None) -> None:
        super().__init__(initial_time=0)
        self._heap: list[tuple[int, int, int, Action]] = []
        self._queue = cast("Any", self._heap)  # simpy looks at the times alone
        self._counter = count()
        self._tie_choices = tie_choices
        self.now_us = 0
        """The present instant in microseconds."""
        self.fired_count = 0
        """Callbacks fired by `run_until` so far."""

    def call_at(self, at_us: int, action: Action) -> None:
        """Call the action at the instant; an instant in the past means now."""
        if at_us < self.now_us:  # noqa: PLR1730 - max() costs a tenth of a whole callback
            at_us = self.now_us
        rank = 0
        if self._tie_choices is not None:
            rank = self._tie_choices.choose("tie", "", _TIE_RANKS)
        heappush(self._heap, (at_us, rank, next(self._counter), action))

    def schedule(self, event: Event, priority: EventPriority = NORMAL, delay: float = 0) -> None:
        """Fire a simpy event after `delay` microseconds, for simpy's own classes."""
        rank = _URGENT_RANK if priority == URGENT else 0
        at_us = self.now_us + int(delay)
        fire: Action = partial(_fire, event)
        heappush(self._heap, (at_us, rank, next(self._counter), fire))

    def step(self) -> None:
        """Fire the next callback.

        Raises:
            EmptySchedule: Nothing is left to fire.
        """
        if not self._heap:
            raise EmptySchedule
        at_us, _, _, action = heappop(self._heap)
        self._now = self.now_us = at_us
        action()

    def run_until(self, end_us: int) -> None:
        """Fire everything due up to and including `end_us`; the clock then stands there."""
        heap = self._heap
        pop = heappop
        fired = 0
        while heap and heap[0][0] <= end_us:
            at_us, _, _, action = pop(heap)
            self._now = self.now_us = at_us
            fired += 1
            action()
        self.fired_count += fired
        self._now = self.now_us = max(self.now_us, end_us)


def _fire(event: Event) -> None:
    """Run a simpy event's callbacks; a failure that nobody handles ends the simulation."""
    callbacks, event.callbacks = event.callbacks, None  # type: ignore[assignment] # simpy's mark
    for callback in callbacks:
        callback(event)
    if not event.ok and not event.defused:
        raise cast("BaseException", event.value)
