"""A part of a trace's time, and what of the trace lies in it; times in words."""

from bisect import bisect_right
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

_EVER_US: Final = 1 << 63
_YEAR_MS: Final = 86_400_000 * 365


class Window(Struct, frozen=True):
    """The time from `from_us` to just before `until_us`, microseconds of the trace's clock.

    A rebalance lies in the window in which its first line lies, with all that it costs. Its figures
    come from the whole trace, so that the group's state at the start of the window is known, and
    the figures of windows that touch add up. Ends are whole milliseconds.

    Args:
        without: Times within it that do not count, each from its start to just before its end;
            disjoint and in order.
    """

    from_us: int = -_EVER_US
    until_us: int = _EVER_US - 1
    without: tuple[tuple[int, int], ...] = ()

    def holds(self, at_us: int) -> bool:
        """Whether an instant lies in the window."""
        if not self.from_us <= at_us < self.until_us:
            return False
        place = bisect_right(self.without, (at_us, _EVER_US)) - 1
        return place < 0 or at_us >= self.without[place][1]

    def holds_ms(self, at_ms: int) -> bool:
        """Whether an instant in milliseconds lies in the window."""
        return self.holds(at_ms * 1000)

    def but(self, spans: Iterable[tuple[int, int]]) -> "Window":
        """Return the window in which further times do not count, in any order."""
        merged: list[tuple[int, int]] = []
        for from_us, until_us in sorted((*self.without, *spans)):
            if merged and from_us <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(until_us, merged[-1][1])
            else:
                merged.append((from_us, until_us))
        return replace(self, without=tuple(merged))

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
