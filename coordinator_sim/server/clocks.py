"""What time it is for a served cluster: the wall's, and the groups'."""

import time
from collections.abc import Callable

from coordinator_sim.mini_broker.contract import Instants


class WallClock:
    """Both clocks are the wall's: since 1970, but never going back.

    Args:
        monotonic: Seconds that only grow, such as an event loop's `time`.
    """

    __slots__ = ("_monotonic", "_origin_ms")

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._origin_ms = int((time.time() - monotonic()) * 1000)

    def now(self) -> Instants:
        """The present."""
        ms = self._origin_ms + int(self._monotonic() * 1000)
        return Instants(ms, ms)

    def wall_until_group_ms(self, group_ms: int, now: Instants) -> int | None:
        """How many wall milliseconds until groups have that time; None if it does not come."""
        return max(0, group_ms - now.group_ms)
