"""The wall clock of an asyncio loop, for drivers that arm alarms."""

import asyncio
import time
from typing import Final

from coordinator_sim.clock import Action

_US_PER_S: Final = 1_000_000


class LoopClock:
    """Microseconds since 1970 that never run backwards: the wall's at first, then the loop's.

    Args:
        loop: The loop that calls back.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._origin_us = time.time_ns() // 1_000 - int(loop.time() * _US_PER_S)

    @property
    def now_us(self) -> int:
        """The present."""
        return self._origin_us + int(self._loop.time() * _US_PER_S)

    def call_at(self, at_us: int, action: Action) -> None:
        """Call the action at the instant; never before it."""
        wait_us = at_us - self.now_us
        if wait_us <= 0:
            self._loop.call_soon(action)
        else:
            # A loop may call a little too early.
            self._loop.call_later(wait_us / _US_PER_S, self.call_at, at_us, action)
