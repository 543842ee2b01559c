"""What a driver needs of time: to read it, and to be called back at an instant.

The pure rooms are told the time and never see this. A simulation implements `Clock` with virtual
microseconds, a server with real ones.
"""

from collections.abc import Callable
from typing import Protocol

Action = Callable[[], None]
"""What a clock calls at the instant asked for."""


class Clock(Protocol):
    """Integer microseconds that never run backwards."""

    @property
    def now_us(self) -> int:
        """The present instant in microseconds."""
        ...

    def call_at(self, at_us: int, action: Action) -> None:
        """Call the action once at the instant, or as soon as possible when it has passed.

        Actions of one instant run in the order they were asked for.
        """
        ...


class Alarm:
    """One alarm that can be moved and switched off, for the one deadline a core gives out.

    Moving it later costs nothing: the call already asked of the clock stays, and asks again when
    it comes too early. A member's heartbeat, which moves a deadline every few seconds, is then
    free of queue work. The order among deadlines of one instant is that of their last asking.

    Args:
        clock: Where to ask for calls.
        action: Called at the alarm's instant, never before it; the alarm is off by then.
    """

    __slots__ = ("_action", "_asked_us", "_clock", "at_us")

    def __init__(self, clock: Clock, action: Action) -> None:
        self._clock = clock
        self._action = action
        self._asked_us: int | None = None
        self.at_us: int | None = None
        """The instant it rings, in microseconds; None when off."""

    def set(self, at_us: int | None) -> None:
        """Ring at this instant instead; None switches off."""
        self.at_us = at_us
        if at_us is None:
            return
        asked_us = self._asked_us
        if asked_us is None or at_us < asked_us:
            self._asked_us = at_us
            self._clock.call_at(at_us, self._ring)

    def _ring(self) -> None:
        now_us = self._clock.now_us
        asked_us = self._asked_us
        if asked_us is None or now_us < asked_us:
            return  # asked for before an earlier call took its place, which then asked again
        self._asked_us = None
        at_us = self.at_us
        if at_us is None:
            return
        if at_us > now_us:
            self._asked_us = at_us
            self._clock.call_at(at_us, self._ring)
            return
        self.at_us = None
        self._action()
