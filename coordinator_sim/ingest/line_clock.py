"""The times of a log's lines, read in line order: a clock that is set back does not turn it round.

The order of lines is what happened, a time is a measurement of it. Lines that overtake each other
by as little as threads do keep their times here; within a group `trace.history` steadies them.
"""

from typing import Final

from msgspec import Struct

from coordinator_sim.ingest.instants import Instant

OVERTAKEN_US: Final = 50_000
"""Lines of one happening are written within this of each other, in either order (measured)."""
SET_BACK_US: Final = 60_000_000
"""A line this far behind the line above was timed by a clock that was set back in between; one
that is less behind was timed wrongly by itself (measured: 1.4 s)."""


class LineTime(Struct, frozen=True):
    """When a line was written, as well as its log tells.

    Args:
        ts_us: Microseconds since the epoch.
        err_us: Uncertainty, either way.
        is_measured: Whether it is the time that the line says; if not it was timed before the
            line above and has that one's time.
        set_back_us: How far the clock was set back just before this line; 0 for not at all.
    """

    ts_us: int
    err_us: int
    is_measured: bool = True
    set_back_us: int = 0


class LineClock:
    """Follows one writer's clock through one log.

    An hour that the end of summer time repeats is told from its first occurrence by the lines
    before it, where the zone is known. Any other clock that is set back goes on from the line
    above at its own pace, until it has caught up. A single line that is behind takes the time of
    the line above.
    """

    def __init__(self) -> None:
        self._last_us: int | None = None
        self._behind_us = 0

    def read(self, instant: Instant) -> LineTime:
        """The time of the next line, from the instant that is written in it."""
        ts_us = instant.ts_us
        last_us = self._last_us
        if last_us is None:
            self._last_us = ts_us
            return LineTime(ts_us, instant.err_us)
        if instant.repeat_us and last_us - ts_us > SET_BACK_US:
            ts_us += instant.repeat_us
        set_back_us = 0
        if ts_us >= last_us:
            self._behind_us = 0
        elif last_us - ts_us - self._behind_us > SET_BACK_US:
            set_back_us = last_us - ts_us - self._behind_us
            self._behind_us = last_us - ts_us
        ts_us += self._behind_us
        err_us = max(instant.err_us, self._behind_us)
        if set_back_us or last_us - ts_us > OVERTAKEN_US:
            err_us = max(err_us, last_us - ts_us)
            return LineTime(last_us, err_us, is_measured=False, set_back_us=set_back_us)
        self._last_us = max(last_us, ts_us)
        return LineTime(ts_us, err_us)
