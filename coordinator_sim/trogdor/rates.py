"""How fast a workload may go, and when it flushes.

Nothing here waits: who asks is told how long to wait, and asks again or goes on then.

Source: kafka trunk, trogdor/.../trogdor/common/WorkerUtils.java, workload/Throttle.java,
workload/*ThroughputGenerator.java, workload/*FlushGenerator.java.
"""

from typing import Final, Protocol

from coordinator_sim.trogdor.generator_specs import (
    ConstantFlushGenerator,
    ConstantThroughputGenerator,
    FlushGenerator,
    GaussianFlushGenerator,
    GaussianThroughputGenerator,
    ThroughputGenerator,
)
from coordinator_sim.trogdor.java_numbers import as_single
from coordinator_sim.trogdor.java_random import JavaRandom, gaussian_size, java_int

THROTTLE_PERIOD_MS: Final = 100
"""Length of a window of the benches' throttles. Source: ProduceBenchWorker.THROTTLE_PERIOD_MS."""


def per_period(per_sec: float, period_ms: int) -> int:
    """The whole number of things that may happen in a period, at least 1.

    QUIRK: with periods of 100 ms every rate below 20 a second is 10 a second.
    Source: WorkerUtils.perSecToPerPeriod, which counts in floats.

    Args:
        per_sec: How many may happen in a second; 0 and less count as few.
        period_ms: Length of the period.
    """
    seconds = as_single(as_single(period_ms) / 1000)
    return java_int(max(1.0, as_single(as_single(per_sec) * seconds)))


class Throttle:
    """At most so many things in each period; periods begin at multiples of their length.

    Args:
        max_per_period: At least 1.
        period_ms: Length of a period.
    """

    def __init__(self, max_per_period: int, period_ms: int) -> None:
        self.max_per_period = max_per_period
        self.period_ms = period_ms
        self.last_time_ms = 0
        """The clock when a period was last looked at; 0 before."""
        self._count = max_per_period
        self._previous_period = -1

    def increment(self, now_ms: int) -> int:
        """Count one thing, or say how long to wait before asking again.

        Returns:
            0 when the thing may happen now and was counted; else the milliseconds to wait.
        """
        if self._count >= self.max_per_period:
            self.last_time_ms = now_ms
            period = now_ms // self.period_ms
            if period <= self._previous_period:
                return (period + 1) * self.period_ms - now_ms
            self._previous_period = period
            self._count = 0
        self._count += 1
        return 0


class Throughput(Protocol):
    """What bounds the rate of a ConfigurableProducer."""

    def throttle(self, now_ms: int) -> int:
        """Count a record, and tell how long to wait before sending it: 0 for not at all.

        The next record is asked for after the wait.
        """


class _Window:
    """Windows of time one after the other, on a grid that begins with the first."""

    def __init__(self, size_ms: int, now_ms: int) -> None:
        self.size_ms = size_ms
        self.ends_ms = now_ms + size_ms

    def go_on(self, now_ms: int) -> None:
        """Go to the window that holds an instant, which is not before the end of this one."""
        self.ends_ms += ((now_ms - self.ends_ms) // self.size_ms + 1) * self.size_ms


class _ConstantThroughput:
    def __init__(self, spec: ConstantThroughputGenerator, now_ms: int) -> None:
        self._most = spec.messages_per_window
        self._window = _Window(spec.window_size_ms, now_ms)
        self._count = 0

    def throttle(self, now_ms: int) -> int:
        if self._most <= 0:
            return 0
        if now_ms >= self._window.ends_ms:
            self._window.go_on(now_ms)
            self._count = 0
        self._count += 1
        return self._window.ends_ms - now_ms if self._count >= self._most else 0


class _GaussianThroughput:
    def __init__(self, spec: GaussianThroughputGenerator, random: JavaRandom, now_ms: int) -> None:
        self._spec = spec
        self._random = random
        self._window = _Window(spec.window_size_ms, now_ms)
        self._count = 0
        self._windows = 1
        self._most = self._drawn()

    def _drawn(self) -> int:
        average = self._spec.messages_per_window_average
        deviation = self._spec.messages_per_window_deviation
        return gaussian_size(self._random, average, deviation, 1)

    def _begin_window(self, now_ms: int) -> None:
        self._count = 0
        self._window.go_on(now_ms)
        if self._windows >= self._spec.windows_until_rate_change:
            self._windows = 0
            self._most = self._drawn()
        self._windows += 1

    def throttle(self, now_ms: int) -> int:
        if now_ms >= self._window.ends_ms:
            self._begin_window(now_ms)
        self._count += 1
        if self._count < self._most:
            return 0
        ends_ms = self._window.ends_ms
        self._begin_window(ends_ms)
        return ends_ms - now_ms


def throughput_of(spec: ThroughputGenerator, *, seed: int, now_ms: int) -> Throughput:
    """What bounds a rate by a spec.

    Args:
        spec: How.
        seed: Of what is drawn; Java takes another one each time.
        now_ms: When the first window begins. In Java that is when the spec is read.

    Raises:
        TypeError: the class of the spec is unknown (a bug here).
    """
    match spec:
        case ConstantThroughputGenerator():
            return _ConstantThroughput(spec, now_ms)
        case GaussianThroughputGenerator():
            return _GaussianThroughput(spec, JavaRandom(seed), now_ms)
    raise TypeError(f"no throughput for {type(spec).__name__}")


class Flushes(Protocol):
    """What decides when a ConfigurableProducer flushes."""

    def increment(self) -> bool:
        """Count a record, and tell whether to flush now."""


class _ConstantFlushes:
    def __init__(self, spec: ConstantFlushGenerator) -> None:
        self._most = spec.messages_per_flush
        self._count = 0

    def increment(self) -> bool:
        self._count += 1
        is_due = self._count >= self._most
        self._count = 0 if is_due else self._count
        return is_due


class _GaussianFlushes:
    def __init__(self, spec: GaussianFlushGenerator, random: JavaRandom) -> None:
        self._spec = spec
        self._random = random
        self._count = 0
        self._most = self._drawn()

    def _drawn(self) -> int:
        average = self._spec.messages_per_flush_average
        return gaussian_size(self._random, average, self._spec.messages_per_flush_deviation, 1)

    def increment(self) -> bool:
        self._count += 1
        if self._count < self._most:
            return False
        self._count = 0
        self._most = self._drawn()
        return True


def flushes_of(spec: FlushGenerator, *, seed: int) -> Flushes:
    """What decides on flushes by a spec.

    Args:
        spec: How.
        seed: Of what is drawn; Java takes another one each time.

    Raises:
        TypeError: the class of the spec is unknown (a bug here).
    """
    match spec:
        case ConstantFlushGenerator():
            return _ConstantFlushes(spec)
        case GaussianFlushGenerator():
            return _GaussianFlushes(spec, JavaRandom(seed))
    raise TypeError(f"no flushes for {type(spec).__name__}")
