"""The clocks of a served cluster, and the one alarm that fires the deadlines of both.

A driver calls `settled` after everything that may have armed a deadline.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Final, Protocol

from coordinator_sim.broker.contract import Instants
from coordinator_sim.errors import ConfigError, described

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


AUTO_QUIET_MS: Final = 50
"""Wall time without a request after which an automatic clock jumps."""
_LOOK_S: Final = 0.001
"""Interval of checks while a virtual clock waits for clients."""
_PAUSE_S: Final = 0.25
"""Pause after a deadline that failed."""
FARTHEST_MS: Final = 315_576_000_000
"""A clock is moved on by at most ten years at a time: whatever expires has expired by then."""
_SLICE_S: Final = 0.02
"""A clock is moved on for so long at a time; then the event loop does what else it has to do."""
_LONGEST_QUIET_S: Final = 1.0
"""Clients that send requests without a pause hold a clock back for at most so long."""
_LOG: Final = logging.getLogger(__name__)


class Timed(Protocol):
    """What has deadlines: a served cluster."""

    def expire(self, now: Instants) -> None:
        """Do what is due."""
        ...

    def next_group_deadline_ms(self) -> int | None:
        """When `expire` is due by the group clock, or earlier; None if nothing is armed."""
        ...

    def exact_group_deadline_ms(self) -> int | None:
        """When `expire` is due by the group clock, exactly."""
        ...

    def next_wall_deadline_ms(self) -> int | None:
        """When `expire` is due by the wall clock, or earlier; None if nothing is armed."""
        ...


class Awaited(Protocol):
    """A condition that ends the move of a virtual clock."""

    def is_met(self) -> bool:
        """Whether the condition holds now."""
        ...

    def told(self) -> int:
        """A number that changes whenever clients may have been told something."""
        ...


class Advance:
    """The way of a virtual clock to an instant, as far as it has come.

    Attributes:
        is_called_off: Whether the clock is to stay where it is.
    """

    def __init__(self, from_ms: int, target_ms: int) -> None:
        self.from_ms = from_ms
        self.target_ms = target_ms
        self.is_called_off = False


class Timekeeper:
    """Fires the deadlines of a cluster; runs on the event loop it is first used on.

    Args:
        quiet_ms: Wall time without a request after which an automatic clock jumps to the next
            deadline.

    Attributes:
        clock: Tells the time.
        under_way: The advance of the clock that is under way; None where none is.
    """

    def __init__(self, cluster: Timed, clock: Clock, quiet_ms: int = AUTO_QUIET_MS) -> None:
        self.clock = clock
        self._cluster = cluster
        self._quiet_ms = quiet_ms
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at: float | None = None
        self._jump: asyncio.TimerHandle | None = None
        self._armed_for: tuple[int | None, int | None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._paused_until = 0.0
        self._quiet_since = 0.0
        self._failure: str | None = None
        self.under_way: Advance | None = None

    def settled(self) -> None:
        """Arm the alarm if a request or another verb has armed an earlier deadline."""
        if isinstance(self.clock, VirtualClock):
            self._await_quiet(self.clock, self._running_loop())
        cluster = self._cluster
        due = (cluster.next_group_deadline_ms(), cluster.next_wall_deadline_ms())
        if due != self._armed_for:
            self._armed_for = due
            self._arm(self._running_loop())

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        """The loop of the first use; asking asyncio for it costs a system call each time."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        """Arm the alarm for the next deadline, unless an earlier alarm is armed.

        An alarm for a postponed deadline fires, finds nothing due and is re-armed.
        """
        delay_ms = self._delay_ms(self.clock.now())
        if delay_ms is None:
            return
        at = max(loop.time() + delay_ms / 1000, self._paused_until)
        if self._alarm_at is not None and self._alarm_at <= at:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = at
        self._alarm = loop.call_at(at, self._ring)

    def stop(self) -> None:
        """Fire nothing more, and cancel an advance."""
        self.call_off()
        for handle in (self._alarm, self._jump):
            if handle is not None:
                handle.cancel()
        self._alarm = self._alarm_at = self._jump = None

    def serve(self, cluster: Timed) -> None:
        """Fire the deadlines of another cluster from now on."""
        self.stop()
        self._cluster = cluster
        self._settle_now()

    def set_clock(self, clock: MovableClock) -> None:
        """Go on with another clock, from the group time that it is: that never goes back.

        Raises:
            ConfigError: an advance of the present clock is under way.
        """
        self._refuse_second()
        clock.move_to(self.clock.now().group_ms)
        self.stop()
        self.clock = clock
        self._settle_now()

    def trouble(self) -> str | None:
        """Why deadlines are not met: the clock or they cannot be read, or the latest failed."""
        try:
            self._delay_ms(self.clock.now())
        except Exception as error:  # noqa: BLE001 - whatever it is, who asks is to hear of it
            return described(error)
        return self._failure

    def call_off(self) -> bool:
        """Let the clock stay where it is on its way; whether an advance is under way."""
        if self.under_way is None:
            return False
        self.under_way.is_called_off = True
        return True

    async def advance(self, ms: int) -> bool:
        """Move a virtual clock on, through every deadline on the way, as `run_until`.

        Args:
            ms: From 0 to `FARTHEST_MS`.
        """
        return await self.run_until(self.clock.now().group_ms + ms)

    async def run_until(self, group_ms: int) -> bool:
        """Move a virtual clock to that instant, through every deadline on the way.

        In slices: requests are answered between two of them, at the group time of then.

        Returns:
            Whether the clock is there; False if it was called off on its way.

        Raises:
            ConfigError: the clock is not virtual, or an advance is under way already, or it would
                go back, or more than ten years on, or past the year 2999.
        """
        clock = self._movable()
        now_ms = clock.now().group_ms
        _check_target(now_ms, group_ms)
        advance = self.under_way = Advance(now_ms, group_ms)
        deadlines = self._meet_until(clock, group_ms)
        try:
            while not advance.is_called_off:
                if _is_done_in(_SLICE_S, deadlines):
                    return True
                await asyncio.sleep(0)
        finally:
            self.under_way = None
            self._settle_now()
        return False

    async def run_until_met(self, awaited: Awaited, within_ms: int) -> bool:
        """Move a virtual clock from deadline to deadline until a condition holds.

        The clock stands still while clients react: at the start, and when a deadline may have told
        them something, it waits until no request came for the quiet time of an automatic clock,
        for a second at most.

        Args:
            awaited: Asked at the start, after every deadline, and while clients react.
            within_ms: Group time after which the clock stops, from 0 to `FARTHEST_MS`.

        Returns:
            Whether the condition holds or the clock is at its bound; False if it was called off.

        Raises:
            ConfigError: as `run_until`.
        """
        clock = self._movable()
        now_ms = clock.now().group_ms
        _check_target(now_ms, now_ms + within_ms)
        advance = self.under_way = Advance(now_ms, now_ms + within_ms)
        deadlines = self._meet_until(clock, advance.target_ms)
        is_at_bound = False
        try:
            await self._let_clients_react(advance, awaited)
            while not (is_at_bound or advance.is_called_off or awaited.is_met()):
                told = awaited.told()
                is_at_bound = _is_done_in(_SLICE_S, deadlines, partial(_is_enough, awaited, told))
                if awaited.told() == told:
                    await asyncio.sleep(0)
                else:
                    await self._let_clients_react(advance, awaited)
        finally:
            self.under_way = None
            self._settle_now()
        return not advance.is_called_off

    async def _let_clients_react(self, advance: Advance, awaited: Awaited) -> None:
        """Return when no request came for the quiet time, or the move is over."""
        loop = self._running_loop()
        self._quiet_since = loop.time()
        latest = self._quiet_since + _LONGEST_QUIET_S
        while loop.time() < min(self._quiet_since + self._quiet_ms / 1000, latest):
            if advance.is_called_off or awaited.is_met():
                return
            await asyncio.sleep(_LOOK_S)

    def step(self) -> bool:
        """Move a virtual clock to the next deadline; whether there was one before the year 3000.

        Raises:
            ConfigError: the clock is not virtual, or an advance is under way.
        """
        clock = self._movable()
        due_ms = self._cluster.exact_group_deadline_ms()
        if due_ms is None or due_ms > LATEST_MS:
            return False
        for _ in self._meet_until(clock, max(due_ms, clock.now().group_ms)):
            pass
        self._settle_now()
        return True

    def _movable(self) -> VirtualClock:
        if not isinstance(self.clock, VirtualClock):
            raise ConfigError(f"the clock is {self.clock.name}: only a virtual one can be moved")
        self._refuse_second()
        return self.clock

    def _refuse_second(self) -> None:
        advance = self.under_way
        if advance is not None:
            raise ConfigError(
                f"an advance from {advance.from_ms} to {advance.target_ms} is under way, at "
                f"{self.clock.now().group_ms}: wait for its end, or call it off by ctl clock stop"
            )

    def _meet_until(self, clock: VirtualClock, group_ms: int) -> Iterator[None]:
        """Meet one deadline after the other until that instant, and move the clock there."""
        while (due_ms := self._cluster.next_group_deadline_ms()) is not None and due_ms <= group_ms:
            clock.move_to(due_ms)
            self._cluster.expire(clock.now())
            yield
        clock.move_to(group_ms)

    def _settle_now(self) -> None:
        """Arm the alarm though no deadline is earlier: time has moved, or the alarm has fired."""
        self._armed_for = None
        self.settled()

    def _delay_ms(self, now: Instants) -> int | None:
        group_ms = self._cluster.next_group_deadline_ms()
        wall_ms = self._cluster.next_wall_deadline_ms()
        until_group_ms = until_wall_ms = None
        if group_ms is not None:
            until_group_ms = self.clock.wall_until_group_ms(group_ms, now)
        if wall_ms is not None:
            until_wall_ms = max(0, wall_ms - now.wall_ms)
        found = (each for each in (until_group_ms, until_wall_ms) if each is not None)
        return min(found, default=None)

    def _ring(self) -> None:
        self._alarm = self._alarm_at = None
        try:
            self._cluster.expire(self.clock.now())
            self._failure = None
        except Exception as error:  # noqa: BLE001 - later deadlines are to be met all the same
            self._pause(error)
        self._settle_now()

    def _pause(self, error: Exception) -> None:
        """Report a deadline that failed, and fire deadlines again after a pause."""
        _LOG.error("%s", error)
        self._failure = described(error)
        self._paused_until = self._running_loop().time() + _PAUSE_S

    def _await_quiet(self, clock: VirtualClock, loop: asyncio.AbstractEventLoop) -> None:
        self._quiet_since = loop.time()
        if clock.auto and self._jump is None:
            self._jump = loop.call_later(self._quiet_ms / 1000, self._jump_when_quiet)

    def _jump_when_quiet(self) -> None:
        loop = self._running_loop()
        left = self._quiet_since + self._quiet_ms / 1000 - loop.time()
        if left > 0:
            self._jump = loop.call_later(left, self._jump_when_quiet)
            return
        self._jump = None
        if self.under_way is not None:
            self._jump = loop.call_later(self._quiet_ms / 1000, self._jump_when_quiet)
            return
        try:
            self.step()
            self._failure = None
        except Exception as error:  # noqa: BLE001 - as in `_ring`
            self._pause(error)
            self._jump = loop.call_later(_PAUSE_S, self._jump_when_quiet)


def _check_target(now_ms: int, group_ms: int) -> None:
    """Refuse an instant that a clock cannot be moved to.

    Raises:
        ConfigError: it is past, or too far on.
    """
    if group_ms < now_ms:
        raise ConfigError(f"group time is {now_ms}: it cannot go back to {group_ms}")
    if group_ms - now_ms > FARTHEST_MS:
        raise ConfigError(
            f"group time is {now_ms}: it moves on by at most {FARTHEST_MS} ms, ten years, at a time"
        )
    if group_ms > LATEST_MS:
        raise ConfigError(
            f"group time cannot be moved to {group_ms}: {LATEST_MS}, the year 3000, is the latest"
        )


def _is_enough(awaited: Awaited, told: int) -> bool:
    """Whether a clock has to stand still: its condition holds, or clients have to react."""
    return awaited.is_met() or awaited.told() != told


def _is_done_in(
    seconds: float, work: Iterator[None], is_enough: Callable[[], bool] = lambda: False
) -> bool:
    """Work for so long or until it is enough, a piece at least; whether the work is done."""
    until_s = time.monotonic() + seconds
    return all(time.monotonic() < until_s and not is_enough() for _ in work)
