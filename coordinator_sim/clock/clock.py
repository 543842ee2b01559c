"""The time interface of a driver: read the time, and be called back at an instant.

Pure packages are passed the time, and use `WallClock` alone, which is what stamps show. The
simulator implements `Clock` in virtual microseconds, `live/trogdor` in real ones;
`server.timekeeper` has clocks of its own.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, Protocol

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


Action = Callable[[], None]
"""Callback of a clock at the requested instant."""


class Clock(Protocol):
    """A source of integer microseconds that never run backwards."""

    @property
    def now_us(self) -> int:
        """The present instant in microseconds."""
        ...

    def call_at(self, at_us: int, action: Action) -> None:
        """Call the action once at the instant, which must not have passed.

        Actions of one instant run in the order they were requested.
        """
        ...


_NEVER: Final = 1 << 62
"""Later than every instant."""


class Alarmed(ABC):
    """A driver with one alarm, for its core's next deadline.

    Moving the alarm later costs nothing: the pending call of the clock stays, and is requested
    again when it comes too early. A member's heartbeat, which moves a deadline every few seconds,
    needs no queue work then. Alarms of one instant ring in the order of their last request. A base
    class instead of a part, so that an idle driver is one object less in the CPU's cache.

    Args:
        clock: Clock that calls back.
    """

    __slots__ = ("_alarm_asked_us", "_alarm_at_us", "_clock")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._alarm_at_us = _NEVER
        # The earliest call that the clock still owes.
        self._alarm_asked_us = _NEVER

    def set_alarm(self, at_us: int) -> None:
        """Ring at this instant instead of any set before; at once if it has passed."""
        self._alarm_at_us = at_us
        if at_us < self._alarm_asked_us:
            self._alarm_asked_us = at_us = max(at_us, self._clock.now_us)
            self._clock.call_at(at_us, self._ring)

    def switch_alarm_off(self) -> None:
        """Switch the alarm off until it is set again."""
        self._alarm_at_us = _NEVER

    def forget_alarm(self) -> None:
        """Have no alarm; for a driver whose clock has dropped the calls that it asked for."""
        self._alarm_at_us = self._alarm_asked_us = _NEVER

    @abstractmethod
    def _on_alarm(self) -> None:
        """Handle the alarm, never before its instant; it is off by now."""

    def _ring(self) -> None:
        now_us = self._clock.now_us
        if now_us < self._alarm_asked_us:
            return  # an earlier call replaced this one, and asked again where needed
        self._alarm_asked_us = _NEVER
        at_us = self._alarm_at_us
        if at_us <= now_us:
            self._alarm_at_us = _NEVER
            self._on_alarm()
        elif at_us < _NEVER:
            self._alarm_asked_us = at_us
            self._clock.call_at(at_us, self._ring)
