"""Assigns times to a log's lines in line order, also where the clock was set back.

The order of lines is the order of events, and times are measurements. Small inversions between
threads' lines keep their times here; within a group `trace.history` steadies them.
"""

from typing import Final

from msgspec import Struct

from coordinator_sim.logtext.reading.instants import Instant

OVERTAKEN_US: Final = 50_000
"""Largest time between lines of one event, in either order (measured)."""
SET_BACK_US: Final = 60_000_000
"""A line this far behind the line above means that the clock was set back in between; a line that
is less behind has a wrong time itself (measured: 1.4 s).
"""


class LineTime(Struct, frozen=True):
    """Time of a line, as exactly as its log tells.

    Args:
        ts_us: Microseconds since the epoch.
        err_us: Uncertainty, either way.
        is_measured: Whether the line has its own time; otherwise that was before the line above,
            and the line gets that line's time.
        set_back_us: How far the clock was set back just before this line; 0 for not at all.
    """

    ts_us: int
    err_us: int
    is_measured: bool = True
    set_back_us: int = 0


class LineClock:
    """Follows one writer's clock through one log.

    The lines before an hour that the end of summer time repeats tell it from its first occurrence,
    where the zone is known. Any other clock that is set back continues from the line above at its
    own pace, until it has caught up. A single line that is behind takes the time of the line above.
    """

    def __init__(self) -> None:
        self._last_us: int | None = None
        self._behind_us = 0

    def read(self, instant: Instant) -> LineTime:
        """Return the time of the next line, from the instant written in it."""
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
