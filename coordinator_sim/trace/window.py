"""A part of a trace's time, and what of the trace lies in it; times in words."""

from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

_EVER_US: Final = 1 << 63
_YEAR_MS: Final = 86_400_000 * 365


class Window(Struct, frozen=True):
    """The time from `from_us` to just before `until_us`, microseconds of the trace's clock.

    A rebalance lies in the window in which its first line lies, with all that it costs. Its figures
    come from the whole trace, so that the group's state at the start of the window is known, and
    the figures of windows that touch add up. Ends are whole milliseconds.

    Args:
        without: Times within it that do not count, each from its start to just before its end.
    """

    from_us: int = -_EVER_US
    until_us: int = _EVER_US - 1
    without: tuple[tuple[int, int], ...] = ()

    def holds(self, at_us: int) -> bool:
        """Whether an instant lies in the window."""
        if not self.from_us <= at_us < self.until_us:
            return False
        return not any(from_us <= at_us < until_us for from_us, until_us in self.without)

    def holds_ms(self, at_ms: int) -> bool:
        """Whether an instant in milliseconds lies in the window."""
        return self.holds(at_ms * 1000)

    def nearest_us(self, at_us: int) -> int:
        """Return an instant, or the end of the window that is nearest to it."""
        return min(max(at_us, self.from_us), self.until_us)


ALWAYS: Final = Window()
"""The whole trace."""


def clock(at_ms: int) -> str:
    """A time: of a simulation as seconds since its start, of a log as date and time in UTC."""
    if at_ms < _YEAR_MS:
        return f"{at_ms / 1000:.3f} s"
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
