"""The clock of one machine of the simulated world, which may be wrong: steps, and drifts.

A port is told one present. What that is depends on the client: Java's reads the wall clock, also
for its timers; librdkafka and franz-go read the monotonic clock, which no step moves. Both clocks
of a machine drift alike, as they count the same oscillator.

Source: kafka trunk, SystemTime.milliseconds (System.currentTimeMillis), Timer.update; librdkafka,
rdtime.h, rd_clock (CLOCK_MONOTONIC); Go, package time, "Monotonic Clocks".
"""

from typing import Final

from coordinator_sim.clock import Action
from coordinator_sim.sim.environment import Environment

_US_PER_MS: Final = 1_000
_MILLION: Final = 1_000_000


class Reading:
    """A clock of a machine as one process reads it; never runs backwards.

    Where the clock steps back, the reading stands still until the clock has caught up. Java's
    timers do so: `Timer.update` takes the later one of the present and what it knew. A process that
    starts after the step knows nothing else.

    DEVIATION: NetworkClient computes with `time.milliseconds()` itself, so that a request sent
    after a step back times out `request.timeout.ms` later; here it is that much after the catch-up.

    Args:
        machine: Whose clock it is.
        is_monotonic: Whether this is the clock that never steps.

    Attributes:
        is_true: Whether the clock was never set: it shows the true time.
    """

    __slots__ = ("_floor_us", "_is_monotonic", "_machine", "is_true")

    def __init__(self, machine: "MachineClock", *, is_monotonic: bool) -> None:
        self._machine = machine
        self._is_monotonic = is_monotonic
        self._floor_us = 0
        self.is_true = machine.is_true

    @property
    def now_us(self) -> int:
        """The present on this clock."""
        return max(self._floor_us, self._machine.shown_us(is_monotonic=self._is_monotonic))

    @property
    def now_ms(self) -> int:
        """The present on this clock in whole milliseconds."""
        return self.now_us // _US_PER_MS

    def true_us(self, at_ms: int) -> int:
        """Return the first true instant at which the clock shows `at_ms`; 0 where it has."""
        at_us = at_ms * _US_PER_MS
        if at_us <= self._floor_us:
            return 0
        return self._machine.true_us(at_us, is_monotonic=self._is_monotonic)

    def hold(self) -> None:
        """Show nothing earlier than now, whatever becomes of the clock."""
        self._floor_us = self.now_us
        self.is_true = False


class MachineClock:
    """Both clocks of a machine.

    Args:
        environment: The true time.

    Attributes:
        is_true: Whether the clocks were never set.
    """

    __slots__ = ("_environment", "_rate", "_readings", "_set_at_us", "_set_to_us", "is_true")

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._readings: dict[Reading, Action] = {}
        self._set_at_us = 0
        self._set_to_us = {False: 0, True: 0}
        self._rate = _MILLION
        self.is_true = True

    def read_by(self, changed: Action, *, is_monotonic: bool = False) -> Reading:
        """Return a new process's reading.

        Args:
            changed: Called whenever the clock is set: alarms ring at other instants then.
            is_monotonic: Whether the process reads the clock that never steps.
        """
        reading = Reading(self, is_monotonic=is_monotonic)
        self._readings[reading] = changed
        return reading

    def forget(self, reading: Reading) -> None:
        """Forget the reading of a process that has ended."""
        self._readings.pop(reading, None)

    def set(self, *, skew_ms: int, drift_ppm: int) -> None:
        """Step the wall clock to the true time and a skew; from now on both clocks drift.

        Args:
            skew_ms: Ahead of the true time; negative for behind.
            drift_ppm: Parts per million by which the clocks are fast; negative for slow.
        """
        for reading in self._readings:
            reading.hold()
        now_us = self._environment.now_us
        monotonic_us = self.shown_us(is_monotonic=True)
        self._set_to_us = {False: now_us + skew_ms * _US_PER_MS, True: monotonic_us}
        self._set_at_us = now_us
        self._rate = _MILLION + drift_ppm
        self.is_true = False
        for changed in list(self._readings.values()):
            changed()

    def shown_us(self, *, is_monotonic: bool) -> int:
        """What one of the clocks shows now."""
        passed_us = self._environment.now_us - self._set_at_us
        return self._set_to_us[is_monotonic] + passed_us * self._rate // _MILLION

    def true_us(self, at_us: int, *, is_monotonic: bool) -> int:
        """Return the first true instant since the last setting at which a clock shows `at_us`."""
        missing_us = at_us - self._set_to_us[is_monotonic]
        return self._set_at_us + max(0, -(-missing_us * _MILLION // self._rate))
