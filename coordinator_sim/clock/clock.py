"""What a driver needs of time: to read it, and to be called back at an instant.

The pure rooms are told the time and never see this. A simulation implements `Clock` with virtual
microseconds, a server with real ones.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, Protocol

Action = Callable[[], None]
"""What a clock calls at the instant asked for."""


class Clock(Protocol):
    """Integer microseconds that never run backwards."""

    @property
    def now_us(self) -> int:
        """The present instant in microseconds."""
        ...

    def call_at(self, at_us: int, action: Action) -> None:
        """Call the action once at the instant, which must not have passed.

        Actions of one instant run in the order they were asked for.
        """
        ...


_NEVER: Final = 1 << 62
"""Later than every instant."""


class Alarmed(ABC):
    """A driver with one alarm, for the one deadline that its core gives out.

    Moving the alarm later costs nothing: the call already asked of the clock stays, and asks again
    when it comes too early. A member's heartbeat, which moves a deadline every few seconds, is
    then free of queue work. The order among alarms of one instant is that of their last asking.
    A base class and not a part, so that an idle driver is one object less in the CPU's cache.

    Args:
        clock: Where to ask for calls.
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
        """Do not ring until set again."""
        self._alarm_at_us = _NEVER

    @abstractmethod
    def _on_alarm(self) -> None:
        """The alarm rings, never before its instant; it is off by now."""

    def _ring(self) -> None:
        now_us = self._clock.now_us
        if now_us < self._alarm_asked_us:
            return  # an earlier call took this one's place, and asked again where needed
        self._alarm_asked_us = _NEVER
        at_us = self._alarm_at_us
        if at_us <= now_us:
            self._alarm_at_us = _NEVER
            self._on_alarm()
        elif at_us < _NEVER:
            self._alarm_asked_us = at_us
            self._clock.call_at(at_us, self._ring)
