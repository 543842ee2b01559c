"""Scales of charts: round steps, the time axis, and places on it as percentages."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil, floor, log10
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_S: Final = 86_400
_TIME_STEPS: Final = (
    *(1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200),
    *(days * _DAY_S for days in (1, 2, 5, 10, 30, 60, 100, 200, 365)),
)
"""Steps of a calendar axis in seconds."""
_CLOCK_UP_TO_S: Final = 2 * _DAY_S
"""Longest span of a calendar axis whose ticks show the time of day."""
TICKS: Final = 7
"""Number of ticks aimed at."""


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """A time axis in seconds: since the start of each run, or since 1970.

    Args:
        from_s: Left end.
        to_s: Right end, beyond `from_s`.
        is_calendar: Whether its ticks are dates (UTC).
    """

    from_s: float
    to_s: float
    is_calendar: bool

    @property
    def title(self) -> str:
        """What the numbers at its ticks mean."""
        if not self.is_calendar:
            return "seconds since the start of the run"
        if not self._has_clock:
            return "time (UTC)"
        days = (f"{_EPOCH + timedelta(seconds=at):%Y-%m-%d}" for at in (self.from_s, self.to_s))
        return f"time (UTC), {' to '.join(dict.fromkeys(days))}"

    @property
    def _has_clock(self) -> bool:
        """Whether its ticks are times of day."""
        return self.is_calendar and self.to_s - self.from_s <= _CLOCK_UP_TO_S

    def percent(self, seconds: float) -> float:
        """Return the place of an instant, in percent of the width, within 0 and 100."""
        place = 100 * (seconds - self.from_s) / (self.to_s - self.from_s)
        return min(100.0, max(0.0, place))

    def ticks(self) -> list[tuple[float, str]]:
        """Return the ticks: place in percent and text."""
        if not self.is_calendar:
            return [
                (self.percent(at), format_number(at))
                for at in round_values(self.from_s, self.to_s, TICKS)
            ]
        span_s = self.to_s - self.from_s
        step = next((step for step in _TIME_STEPS if span_s / step <= TICKS), span_s / TICKS)
        first, last = ceil(self.from_s / step), floor(self.to_s / step)
        instants = [number * step for number in range(first, last + 1)]
        form = "%H:%M:%S" if self._has_clock else "%Y-%m-%d"
        return [(self.percent(at), f"{_EPOCH + timedelta(seconds=at):{form}}") for at in instants]


def round_values(low: float, high: float, count: int) -> Sequence[float]:
    """Return about so many round values between two, both included where they are round."""
    if high <= low:
        return [low]
    raw = (high - low) / count
    power = 10.0 ** floor(log10(raw))
    step = next(each * power for each in (1, 2, 5, 10) if each * power >= raw)
    return [number * step for number in range(ceil(low / step), floor(high / step) + 1)]


def format_number(value: float) -> str:
    """Format a number of an axis: thousands separated, decimals only where there are some."""
    text = f"{value:,.3f}"
    return text.rstrip("0").rstrip(".")
