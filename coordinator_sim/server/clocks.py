"""The clocks of a served cluster: group time and wall time, and the wall time of group deadlines.

A driver arms one alarm, for `wall_until_group_ms` of its next group deadline. `timekeeper` moves
virtual clocks.
"""

import time
from collections.abc import Callable
from fractions import Fraction
from typing import Final, Protocol

from coordinator_sim.broker.contract import Instants
from coordinator_sim.errors import ConfigError

SHORTEST_SESSION_WALL_MS: Final = 2_000
"""Shortest session on the wall clock that a healthy client can safely keep."""

SLOWEST: Final = 0.001
"""Smallest factor of a scaled clock: a session of 45 s lasts half a day."""

FASTEST: Final = 1_000_000
"""Largest factor of a scaled clock.

The longest session that brokers grant by default, 30 minutes, lasts about 2 ms on it: two ticks of
the alarm. On a faster clock no member could keep any session.
"""

LATEST_MS: Final = 32_503_680_000_000
"""Latest group time that a clock can be moved to: the beginning of the year 3000."""

END_MS: Final = 253_402_300_799_999
"""The last instant of group time, at which it stops: calendars end with the year 9999."""

WallMs = Callable[[], int]
"""Milliseconds since 1970, never going back."""


class Clock(Protocol):
    """Both clocks of a served cluster."""

    @property
    def name(self) -> str:
        """Name of the clock on the command line: `wall`, `scaled 10`, `virtual`."""
        ...

    def now(self) -> Instants:
        """The present on both clocks."""
        ...

    def wall_until_group_ms(self, group_ms: int, now: Instants) -> int | None:
        """Wall milliseconds until group time reaches an instant; None if it never does."""
        ...


class MovableClock(Clock, Protocol):
    """A clock that can take over from another one."""

    def move_to(self, group_ms: int) -> None:
        """Move group time to an instant, or leave it if it is later already."""
        ...


def steady_wall(monotonic: Callable[[], float] = time.monotonic) -> WallMs:
    """A wall clock that ignores adjustments of the machine's clock.

    Args:
        monotonic: Seconds that only grow, such as an event loop's `time`.
    """
    origin_ms = int((time.time() - monotonic()) * 1000)
    return lambda: origin_ms + int(monotonic() * 1000)


class WallClock:
    """Both clocks are the wall clock: since 1970, but never going back.

    Group time stays ahead of wall time if another clock had moved it ahead before.

    Args:
        monotonic: Seconds that only grow, such as an event loop's `time`.
    """

    __slots__ = ("_ahead_ms", "_wall")

    name: Final = "wall"

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._wall = steady_wall(monotonic)
        self._ahead_ms = 0

    def now(self) -> Instants:
        """The present."""
        ms = self._wall()
        return Instants(ms + self._ahead_ms, ms)

    def move_to(self, group_ms: int) -> None:
        """Move group time to an instant, or leave it if it is later already."""
        self._ahead_ms = max(self._ahead_ms, group_ms - self._wall())

    def wall_until_group_ms(self, group_ms: int, now: Instants) -> int | None:
        """Wall milliseconds until group time reaches an instant."""
        return max(0, group_ms - now.group_ms)


class ScaledClock:
    """Group time runs `factor` times as fast as the wall's, from the same instant on.

    Group time stops at `END_MS`.

    Args:
        factor: From `SLOWEST` to `FASTEST`; below 1 is slow motion.

    Raises:
        ConfigError: the factor is out of these bounds.
    """

    __slots__ = ("_group_start_ms", "_ratio", "_start_ms", "_wall", "factor")

    def __init__(self, wall: WallMs, factor: float) -> None:
        if not SLOWEST <= factor <= FASTEST:
            raise ConfigError(f"a clock scaled by {factor:g}: wants {SLOWEST} to {FASTEST}")
        self._wall = wall
        self._start_ms = self._group_start_ms = wall()
        self.factor = factor
        self._ratio = Fraction(str(factor)).as_integer_ratio()

    @property
    def name(self) -> str:
        """Name of the clock on the command line."""
        return f"scaled {self.factor:.15g}"

    def now(self) -> Instants:
        """The present on both clocks."""
        wall_ms = self._wall()
        times, over = self._ratio
        passed_ms = (wall_ms - self._start_ms) * times // over
        return Instants(min(self._group_start_ms + passed_ms, END_MS), wall_ms)

    def move_to(self, group_ms: int) -> None:
        """Move group time to an instant, or leave it if it is later already."""
        self._group_start_ms += max(0, group_ms - self.now().group_ms)

    def wall_until_group_ms(self, group_ms: int, now: Instants) -> int | None:
        """Wall milliseconds, rounded up, until an instant; None after the end of group time."""
        if group_ms > END_MS:
            return None
        times, over = self._ratio
        passed_ms = -((self._group_start_ms - group_ms) * over // times)
        return max(0, self._start_ms + passed_ms - now.wall_ms)

    def session_warning(self, group_id: str, session_timeout_ms: int) -> str | None:
        """The warning about a session that is too short on the wall clock; None if it is not.

        Args:
            group_id: Group id, for the text.
            session_timeout_ms: Session timeout of a JoinGroup, in group time.
        """
        if session_timeout_ms >= SHORTEST_SESSION_WALL_MS * self.factor:
            return None
        return (
            f"group {group_id}: a session of {session_timeout_ms} ms lasts "
            f"{session_timeout_ms / self.factor:.0f} ms on a clock scaled by {self.factor:g}; the "
            f"largest safe factor is {session_timeout_ms / SHORTEST_SESSION_WALL_MS:g}"
        )


class VirtualClock:
    """Group time stands still until it is moved.

    Args:
        auto: Whether it jumps to the next deadline by itself when nothing else happens.
    """

    __slots__ = ("_group_ms", "_wall", "auto")

    def __init__(self, wall: WallMs, *, auto: bool = False) -> None:
        self._wall = wall
        self._group_ms = wall()
        self.auto = auto

    @property
    def name(self) -> str:
        """Name of the clock on the command line."""
        return "virtual auto" if self.auto else "virtual"

    def now(self) -> Instants:
        """The present on both clocks."""
        return Instants(self._group_ms, self._wall())

    def wall_until_group_ms(self, group_ms: int, now: Instants) -> int | None:
        """Return 0 if group time has reached an instant already, else None."""
        return 0 if group_ms <= now.group_ms else None

    def move_to(self, group_ms: int) -> None:
        """Move group time to an instant, or leave it if it is later already."""
        self._group_ms = max(self._group_ms, group_ms)


def parse_clock(text: str, monotonic: Callable[[], float] = time.monotonic) -> MovableClock:
    """The clock that a text asks for: `wall`, `scaled 10`, `virtual`, `virtual auto`.

    Raises:
        ConfigError: the text is none of these.
    """
    match text.replace(":", " ").split():
        case ["wall"]:
            return WallClock(monotonic)
        case ["scaled", factor]:
            return ScaledClock(steady_wall(monotonic), _number(factor))
        case ["virtual"]:
            return VirtualClock(steady_wall(monotonic))
        case ["virtual", "auto"]:
            return VirtualClock(steady_wall(monotonic), auto=True)
        case _:
            raise ConfigError(f"clock {text!r}: wants wall, 'scaled F', virtual or 'virtual auto'")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(
            f"a clock scaled by {text!r}: wants a number from {SLOWEST} to {FASTEST}"
        ) from None
