"""The wall clock of a machine beside its monotonic one: what stamps show, while timers run on."""

from typing import Final

from msgspec import Struct

_MILLION: Final = 1_000_000


class WallClock(Struct, frozen=True):
    """A wall clock that was set once, and may run too fast or too slow since.

    Args:
        skew_ms: How far it was ahead of the monotonic clock when it was set; negative for behind.
        drift_ppm: Parts per million by which it runs fast since; negative for slow.
        set_at_ms: When it was set, on the monotonic clock.
    """

    skew_ms: int = 0
    drift_ppm: int = 0
    set_at_ms: int = 0

    def shown_ms(self, now_ms: int) -> int:
        """Return what it shows at an instant of the monotonic clock."""
        return now_ms + self.skew_ms + (now_ms - self.set_at_ms) * self.drift_ppm // _MILLION


TRUE: Final = WallClock()
"""A clock that shows the same as the monotonic one."""
