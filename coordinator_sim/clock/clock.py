"""What a driver needs of time: to read it, and to be called back at an instant.

The pure rooms are told the time and never see this. A simulation implements `Clock` with virtual
microseconds, a server with real ones.
"""

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


class Alarm:
    """One alarm that can be moved and switched off, for the one deadline a core gives out.

    Moving it later costs nothing: the call already asked of the clock stays, and asks again when
    it comes too early. A member's heartbeat, which moves a deadline every few seconds, is then
    free of queue work. The order among alarms of one instant is that of their last asking.

    Args:
        clock: Where to ask for calls.
        action: Called at the alarm's instant, never before it; the alarm is off by then.
    """

    __slots__ = ("_action", "_clock", "asked_us", "at_us")

    def __init__(self, clock: Clock, action: Action) -> None:
        self._clock = clock
        self._action = action
        self.at_us = _NEVER
        """The instant to ring at; far off when switched off."""
        self.asked_us = _NEVER
        """The earliest call that the clock still owes; a hot driver compares before it asks."""

    def set(self, at_us: int) -> None:
        """Ring at this instant instead of any set before; at once if it has passed."""
        self.at_us = at_us
        if at_us < self.asked_us:
            self.ask(at_us)

    def ask(self, at_us: int) -> None:
        """Ask the clock for a call earlier than any it owes: what `set` does when it must."""
        self.asked_us = at_us = max(at_us, self._clock.now_us)
        self._clock.call_at(at_us, self._ring)

    def switch_off(self) -> None:
        """Do not ring until set again."""
        self.at_us = _NEVER

    def _ring(self) -> None:
        now_us = self._clock.now_us
        if now_us < self.asked_us:
            return  # an earlier call took this one's place, and asked again where needed
        self.asked_us = _NEVER
        at_us = self.at_us
        if at_us <= now_us:
            self.at_us = _NEVER
            self._action()
        elif at_us < _NEVER:
            self.ask(at_us)
