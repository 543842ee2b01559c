"""How Kafka measures the use of a quota: a rate over sliding windows, and a bucket of tokens.

Neither reads a clock. Instants are milliseconds on one clock and never decrease.

Source: kafka 4.3, clients: SampledStat, Rate, WindowedSum, TokenBucket; server-common: QuotaUtils.
"""

from math import floor, isfinite
from typing import Final

from msgspec import Struct

LARGEST_LONG: Final = (1 << 63) - 1
"""The bound of a client without a quota. Source: ClientQuotaManager.quotaLimit."""
_INT_SPAN: Final = 1 << 32
_MS_PER_SECOND: Final = 1000.0


class Windows(Struct, frozen=True, gc=False):
    """The windows over which a rate is measured, and which a bucket holds tokens for.

    Args:
        count: `quota.window.num`, of controller mutations `controller.quota.window.num`.
        window_ms: `quota.window.size.seconds`, `controller.quota.window.size.seconds`.
        keeps_overlapping: See `Profile.keeps_overlapping_samples`.
    """

    count: int = 11
    window_ms: int = 1000
    keeps_overlapping: bool = True


class _Sample:
    """What was recorded from one instant on, for a window.

    Source: SampledStat.Sample.
    """

    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.value = 0.0


class Rate:
    """A sum over windows, per second.

    Args:
        windows: The windows.
    """

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Add to the newest window, or to a new one when that is over.

        Source: SampledStat.record, advance.
        """
        windows, samples = self._windows, self._samples
        if not samples:
            samples.append(_Sample(now_ms))
        sample = samples[self._current]
        if now_ms - sample.start_ms >= windows.window_ms:
            self._current = (self._current + 1) % (windows.count + windows.keeps_overlapping)
            if self._current >= len(samples):
                samples.append(_Sample(now_ms))
            else:
                samples[self._current].reset(now_ms)
            sample = samples[self._current]
        sample.value += value
        if windows.keeps_overlapping:
            sample.last_ms = now_ms

    def per_second(self, now_ms: int) -> float:
        """The rate over the windows that count. Source: Rate.measure."""
        span_ms = self.span_ms(now_ms)
        total = 0.0
        for each in self._samples:  # As Java adds; `sum` compensates for rounding.
            total += each.value
        return total / (span_ms / _MS_PER_SECOND)

    def span_ms(self, now_ms: int) -> int:
        """The time that the rate is measured over: at least all windows but one.

        Source: Rate.windowSize; SampledStat.purgeObsoleteSamples, oldest.
        """
        windows, samples = self._windows, self._samples
        for each in samples:
            if now_ms - each.last_ms >= windows.count * windows.window_ms:
                each.reset(now_ms)
        elapsed_ms = now_ms - min((each.start_ms for each in samples), default=now_ms)
        missing = windows.count - 1 - elapsed_ms // windows.window_ms
        return max(elapsed_ms + max(missing, 0) * windows.window_ms, 1)

    def throttle_time_ms(self, bound: float, now_ms: int, most_ms: int = LARGEST_LONG) -> int:
        """How long nothing may be recorded until the rate is down to the bound; 0 when it is.

        QUIRK: Java cuts the time to 32 bits, so that it may be negative, or too short, where it
        is above 24 days.

        Args:
            bound: The quota, per second.
            now_ms: The present.
            most_ms: The longest throttle time.

        Source: Sensor.checkQuotas; QuotaUtils.throttleTime, boundedThrottleTime;
        ClientQuotaManager.recordAndGetThrottleTimeMs.
        """
        excess = self.per_second(now_ms) - bound
        if excess <= 0:
            return 0
        return as_int(min(_rounded(excess / bound * self.span_ms(now_ms)), most_ms))


class TokenBucket:
    """Tokens that come at the rate of a quota, and gather for as long as all windows last.

    The bucket is full at first: Kafka's bucket was empty in 1970.

    Args:
        windows: The windows.
    """

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._tokens = 0.0
        self._updated_ms: int | None = None

    def record(self, value: float, bound: float, now_ms: int) -> None:
        """Take tokens out, also more than there are. Source: TokenBucket.record."""
        self._tokens = self.tokens(bound, now_ms) - value

    def tokens(self, bound: float, now_ms: int) -> float:
        """The tokens in the bucket; negative where too many were taken.

        Source: TokenBucket.measure, refill, burst.
        """
        windows = self._windows
        burst = windows.count * (windows.window_ms / _MS_PER_SECOND) * bound
        if self._updated_ms is None:
            self._tokens = burst
        else:
            refill = bound * ((now_ms - self._updated_ms) / _MS_PER_SECOND)
            self._tokens = min(burst, self._tokens + refill)
        self._updated_ms = now_ms
        return self._tokens

    def throttle_time_ms(self, bound: float, now_ms: int) -> int:
        """How long it takes until no token is missing; 0 when none is.

        Source: Sensor.checkQuotas; ControllerMutationQuotaManager.throttleTimeMs.
        """
        tokens = self.tokens(bound, now_ms)
        return _rounded(-tokens / bound * _MS_PER_SECOND) if tokens < 0 else 0


def _rounded(value: float) -> int:
    """The nearest long, halves upwards; 0 for NaN. Source: java.lang.Math.round."""
    if isfinite(value):
        return min(floor(value + 0.5), LARGEST_LONG)
    return LARGEST_LONG if value > 0 else 0


def as_int(value: int) -> int:
    """The lowest 32 bits of a long, signed, as Java's cast takes them."""
    return (value + _INT_SPAN // 2) % _INT_SPAN - _INT_SPAN // 2
