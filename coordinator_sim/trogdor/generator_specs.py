"""Specs of what workloads draw (payloads, transactions, rates, flushes), and record processors.

What they make is in `payloads` and `rates`; here is only their JSON. A value that Java's
constructor refuses raises `TrogdorRefusal` of 400.

Source: kafka trunk, trogdor/.../trogdor/workload/*Generator.java, RandomComponent.java,
TimestampRecordProcessor.java.
"""

from typing import ClassVar, Final

from msgspec import Struct
from msgspec.structs import force_setattr

from coordinator_sim.trogdor.java_numbers import Int
from coordinator_sim.trogdor.refusals import TrogdorRefusal

TIMESTAMP_BYTES: Final = 8
DEFAULT_WINDOW_MS: Final = 100
ALL_PERCENT: Final = 100
MOST_ZEROS: Final = 1 << 20
"""Bytes of zeros that a spec may ask for without saying them."""


class PayloadGenerator(Struct, frozen=True, kw_only=True, tag_field="type"):
    """What makes the key or the value of a record from its position."""


class ConstantPayloadGenerator(
    PayloadGenerator, frozen=True, kw_only=True, tag="constant", rename="camel"
):
    """The same bytes again and again.

    DEVIATION: Java allocates and shows any number of zeros; here more than MOST_ZEROS are 400.

    Args:
        size: Bytes of a payload.
        value: Repeated to fill the payload; None, which `size` zeros and no bytes become, for
            zeros.
    """

    written_from: ClassVar[dict[str, str]] = {"value": "shown_value"}

    size: Int = 0
    value: bytes | None = None

    def __post_init__(self) -> None:
        if self.value and not (len(self.value) == self.size and self.value.count(0) == self.size):
            return
        if self.size < 0:
            raise TrogdorRefusal(400, f"size {self.size}: a payload has 0 bytes or more")
        if not self.value and self.size > MOST_ZEROS:
            raise _too_many_zeros(self.size)
        force_setattr(self, "value", None)

    @property
    def shown_value(self) -> bytes:
        """The value as a spec shows it: zeros too."""
        return bytes(self.size) if self.value is None else self.value


def _too_many_zeros(size: int) -> TrogdorRefusal:
    return TrogdorRefusal(
        400, f"{size} bytes of zeros: at most {MOST_ZEROS}; give a `value`, which is repeated"
    )


class SequentialPayloadGenerator(
    PayloadGenerator, frozen=True, kw_only=True, tag="sequential", rename="camel"
):
    """The position, little-endian.

    Args:
        size: Bytes of a payload; more than 8 are filled with zeros, fewer drop the high bytes.
        start_offset: Added to the position.
    """

    # QUIRK: a spec says `offset`, and is shown with `startOffset`, which is read too and wins.
    # Source: SequentialPayloadGenerator, whose getter has another name than its parameter.
    also_read: ClassVar[dict[str, str]] = {"offset": "startOffset"}

    size: Int = 0
    start_offset: int = 0


class UniformRandomPayloadGenerator(
    PayloadGenerator, frozen=True, kw_only=True, tag="uniformRandom", rename="camel"
):
    """Random bytes that depend on seed and position, then bytes that depend on the seed alone.

    Args:
        size: Bytes of a payload.
        seed: Of java.util.Random.
        padding: Bytes at the end that all payloads have in common, 0 to `size`.
    """

    size: Int = 0
    seed: int = 0
    padding: Int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.padding <= self.size:
            raise TrogdorRefusal(400, f"padding {self.padding} is not within 0 to {self.size}")


class NullPayloadGenerator(PayloadGenerator, frozen=True, kw_only=True, tag="null"):
    """No payload: a null key or value."""


class RandomComponent(Struct, frozen=True, kw_only=True):
    """One of several generators.

    Args:
        percent: How often it is used, 1 to 100.
        component: None is taken, and fails when it is used.
    """

    percent: Int = 0
    component: PayloadGenerator | None = None


class RandomComponentPayloadGenerator(
    PayloadGenerator, frozen=True, kw_only=True, tag="randomComponent"
):
    """One of several generators, drawn for each position.

    Args:
        seed: Of java.util.Random.
        components: At least one; their percents sum to 100.
    """

    seed: int = 0
    components: tuple[RandomComponent, ...] = ()

    def __post_init__(self) -> None:
        percents = [component.percent for component in self.components]
        if any(percent < 1 for percent in percents):
            raise TrogdorRefusal(400, f"percents {percents}: each must be 1 or more")
        if sum(percents) != ALL_PERCENT:
            raise TrogdorRefusal(400, f"percents {percents} must sum to {ALL_PERCENT}")
        if (zeros := _zeros(self)) > MOST_ZEROS:
            raise _too_many_zeros(zeros)


def _zeros(generator: PayloadGenerator | None) -> int:
    """How many zeros the text of a generator has, which its JSON need not have had."""
    if isinstance(generator, ConstantPayloadGenerator) and generator.value is None:
        return generator.size
    if isinstance(generator, RandomComponentPayloadGenerator):
        return sum(_zeros(each.component) for each in generator.components)
    return 0


def _has_room_for_timestamp(size: int) -> None:
    if size < TIMESTAMP_BYTES:
        raise TrogdorRefusal(400, f"size {size}: at least {TIMESTAMP_BYTES}, for the timestamp")


class TimestampRandomPayloadGenerator(
    PayloadGenerator, frozen=True, kw_only=True, tag="timestampRandom"
):
    """The time in milliseconds, little-endian, then random bytes.

    Args:
        size: Bytes of a payload, at least 8.
        seed: Of java.util.Random.
    """

    size: Int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        _has_room_for_timestamp(self.size)


class TimestampConstantPayloadGenerator(
    PayloadGenerator, frozen=True, kw_only=True, tag="timestampConstant"
):
    """The time in milliseconds, little-endian, then zeros.

    Args:
        size: Bytes of a payload, at least 8.
    """

    size: Int = 0

    def __post_init__(self) -> None:
        _has_room_for_timestamp(self.size)


class GaussianTimestampPayloadGenerator(
    PayloadGenerator, frozen=True, kw_only=True, rename="camel"
):
    """What both gaussian generators have.

    Args:
        message_size_average: Bytes of a payload; never fewer than 8.
        message_size_deviation: Standard deviation of the bytes.
        messages_until_size_change: Payloads of one size.
        seed: Of java.util.Random.
    """

    message_size_average: Int = 0
    message_size_deviation: float = 0.0
    messages_until_size_change: Int = 0
    seed: int = 0


class GaussianTimestampRandomPayloadGenerator(
    GaussianTimestampPayloadGenerator, frozen=True, kw_only=True, tag="gaussianTimestampRandom"
):
    """The time, then random bytes; sizes are normally distributed."""


class GaussianTimestampConstantPayloadGenerator(
    GaussianTimestampPayloadGenerator, frozen=True, kw_only=True, tag="gaussianTimestampConstant"
):
    """The time, then zeros; sizes are normally distributed."""


class TransactionGenerator(Struct, frozen=True, kw_only=True, tag_field="type", rename="camel"):
    """When a producer begins and commits its transactions."""


class UniformTransactionsGenerator(TransactionGenerator, frozen=True, kw_only=True, tag="uniform"):
    """Transactions of equal size.

    Args:
        messages_per_transaction: At least 1.
    """

    messages_per_transaction: Int = 0

    def __post_init__(self) -> None:
        if self.messages_per_transaction < 1:
            raise TrogdorRefusal(
                400, f"messagesPerTransaction {self.messages_per_transaction}: at least 1"
            )


class TimeIntervalTransactionsGenerator(
    TransactionGenerator, frozen=True, kw_only=True, tag="interval"
):
    """Transactions of equal length in time.

    Args:
        transaction_interval_ms: At least 1.
    """

    transaction_interval_ms: Int = 0

    def __post_init__(self) -> None:
        if self.transaction_interval_ms < 1:
            raise TrogdorRefusal(
                400, f"transactionIntervalMs {self.transaction_interval_ms}: at least 1"
            )


class ThroughputGenerator(Struct, frozen=True, kw_only=True, tag_field="type", rename="camel"):
    """How many records a ConfigurableProducer sends in a window of time."""


class ConstantThroughputGenerator(ThroughputGenerator, frozen=True, kw_only=True, tag="constant"):
    """The same rate always.

    Args:
        messages_per_window: 0 or less for no bound.
        window_size_ms: 100 when it is 0 or less.
    """

    messages_per_window: Int = 0
    window_size_ms: int = DEFAULT_WINDOW_MS

    def __post_init__(self) -> None:
        if self.window_size_ms <= 0:
            force_setattr(self, "window_size_ms", DEFAULT_WINDOW_MS)


class GaussianThroughputGenerator(ThroughputGenerator, frozen=True, kw_only=True, tag="gaussian"):
    """A rate that is drawn anew every few windows.

    Args:
        messages_per_window_average: Mean of the rate; the rate is never below 1.
        messages_per_window_deviation: Standard deviation of the rate.
        windows_until_rate_change: Windows of one rate.
        window_size_ms: 100 when it is 0 or less.
    """

    messages_per_window_average: Int = 0
    messages_per_window_deviation: float = 0.0
    windows_until_rate_change: Int = 0
    window_size_ms: int = DEFAULT_WINDOW_MS

    def __post_init__(self) -> None:
        if self.window_size_ms <= 0:
            force_setattr(self, "window_size_ms", DEFAULT_WINDOW_MS)


class FlushGenerator(Struct, frozen=True, kw_only=True, tag_field="type", rename="camel"):
    """When a ConfigurableProducer flushes."""


class ConstantFlushGenerator(FlushGenerator, frozen=True, kw_only=True, tag="constant"):
    """A flush after so many records.

    Args:
        messages_per_flush: 1 or less for a flush after each record.
    """

    messages_per_flush: Int = 0


class GaussianFlushGenerator(FlushGenerator, frozen=True, kw_only=True, tag="gaussian"):
    """A flush after a number of records that is drawn anew after each flush.

    Args:
        messages_per_flush_average: Mean of the number; the number is never below 1.
        messages_per_flush_deviation: Standard deviation of the number.
    """

    messages_per_flush_average: Int = 0
    messages_per_flush_deviation: float = 0.0


class RecordProcessor(Struct, frozen=True, kw_only=True, tag_field="type", rename="camel"):
    """What a ConsumeBench does with the records it reads."""


class TimestampRecordProcessor(RecordProcessor, frozen=True, kw_only=True, tag="timestamp"):
    """A histogram of latencies, from the timestamps that payloads begin with.

    Args:
        histogram_max_ms: Longest latency that is told apart.
        histogram_min_ms: Shortest latency that is told apart.
        histogram_step_ms: Width of a bucket; 0 is refused.
    """

    histogram_max_ms: Int = 0
    histogram_min_ms: Int = 0
    histogram_step_ms: Int = 0

    def __post_init__(self) -> None:
        if self.histogram_step_ms == 0:
            raise TrogdorRefusal(400, "histogramStepMs 0: a bucket has a width")
        if self.bucket_count < 0:
            raise TrogdorRefusal(400, f"{self.bucket_count} buckets of latencies: 0 or more")

    @property
    def bucket_count(self) -> int:
        """How many buckets the histogram has: the whole steps between its ends."""
        span, step = self.histogram_max_ms - self.histogram_min_ms, self.histogram_step_ms
        return abs(span) // abs(step) * (1 if (span < 0) == (step < 0) else -1)
