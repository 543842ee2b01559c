"""Assigns times to a log's lines in line order, also where the clock was set back.

The order of lines is the order of events, and times are measurements. Small inversions between
threads' lines keep their times here; within a group `trace.history` steadies them.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from coordinator_sim.logtext.reading.instants import Instant

Int64s = NDArray[np.int64]
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


class LineTimes(Struct, frozen=True):
    """Times of lines in a row, each as in `LineTime`.

    Args:
        set_backs: How far the clock was set back, by the place of the line below, in microseconds.
    """

    ts_us: Int64s
    err_us: Int64s
    is_measured: NDArray[np.bool_]
    set_backs: dict[int, int]


@dataclass(slots=True)
class LineClock:
    """Follows one writer's clock through one log.

    The lines before an hour that the end of summer time repeats tell it from its first occurrence,
    where the zone is known. Any other clock that is set back continues from the line above at its
    own pace, until it has caught up. A single line that is behind takes the time of the line above.
    """

    _last_us: int | None = None
    _behind_us: int = 0

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

    def read_all(self, ts_us: Int64s, repeats_us: Int64s, *, err_us: int) -> LineTimes:
        """Return the times of the next lines, from those written in them.

        Args:
            ts_us: Times as written, one at least.
            repeats_us: Time to add to each if the clocks had already gone back.
            err_us: Uncertainty of each.
        """
        last_us = int(ts_us[0]) if self._last_us is None else self._last_us
        reached_us = np.maximum.accumulate(np.concatenate([[last_us], ts_us]))
        if not self._behind_us and (reached_us[:-1] - ts_us).max() <= OVERTAKEN_US:
            self._last_us = int(reached_us[-1])
            errors = np.full(len(ts_us), err_us, np.int64)
            return LineTimes(ts_us, errors, np.ones(len(ts_us), np.bool_), {})
        times = [
            self.read(Instant(ts, err_us, zoned=False, repeat_us=repeat))
            for ts, repeat in zip(ts_us.tolist(), repeats_us.tolist(), strict=True)
        ]
        return LineTimes(
            np.array([time.ts_us for time in times], np.int64),
            np.array([time.err_us for time in times], np.int64),
            np.array([time.is_measured for time in times], np.bool_),
            {place: time.set_back_us for place, time in enumerate(times) if time.set_back_us},
        )
