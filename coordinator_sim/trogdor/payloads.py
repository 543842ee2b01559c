"""Keys and values of records, as the specs of generators describe them.

Source: kafka trunk, trogdor/.../trogdor/workload/*PayloadGenerator.java, PayloadIterator.java.
"""

from bisect import bisect_right
from itertools import accumulate
from typing import Final, Protocol

from coordinator_sim.trogdor import generator_specs
from coordinator_sim.trogdor.java_numbers import as_long
from coordinator_sim.trogdor.java_random import JavaRandom, gaussian_size
from coordinator_sim.trogdor.refusals import TrogdorRefusal

LONG_BYTES: Final = 8
MOST_BYTES: Final = 1 << 27
"""Bytes of a payload, or of one of each component together.

DEVIATION: Kafka's worker makes larger ones, which no producer can send.
"""
_NO_GENERATOR: Final = "no generator: keyGenerator, valueGenerator or a component is absent"


class Payloads(Protocol):
    """What makes payloads."""

    def payload(self, position: int, now_ms: int) -> bytes | None:
        """The payload of a position; None for a null key or value.

        Args:
            position: From 0; the same position gives the same bytes but for a timestamp.
            now_ms: The clock, for payloads that begin with it.
        """


def _little_endian(value: int) -> bytes:
    return as_long(value).to_bytes(LONG_BYTES, "little", signed=True)


class _Constant:
    def __init__(self, spec: generator_specs.ConstantPayloadGenerator) -> None:
        value = spec.value or b"\0"
        self._bytes = (value * (spec.size // len(value) + 1))[: max(spec.size, 0)]

    def payload(self, position: int, now_ms: int) -> bytes:
        del position, now_ms
        return self._bytes


class _Sequential:
    def __init__(self, spec: generator_specs.SequentialPayloadGenerator) -> None:
        self._spec = spec

    def payload(self, position: int, now_ms: int) -> bytes:
        del now_ms
        size = self._spec.size
        return _little_endian(position + self._spec.start_offset)[:size].ljust(size, b"\0")


class _UniformRandom:
    def __init__(self, spec: generator_specs.UniformRandomPayloadGenerator) -> None:
        self._seed = spec.seed
        self._random = JavaRandom(spec.seed)
        self._padding = self._random.next_bytes(spec.padding)
        self._random_count = spec.size - spec.padding

    def payload(self, position: int, now_ms: int) -> bytes:
        del now_ms
        self._random.set_seed(self._seed + position)
        return self._random.next_bytes(self._random_count) + self._padding


class _Null:
    def payload(self, position: int, now_ms: int) -> None:
        del position, now_ms


class _RandomComponent:
    def __init__(self, spec: generator_specs.RandomComponentPayloadGenerator) -> None:
        self._seed = spec.seed
        self._random = JavaRandom(spec.seed)
        self._sources = [payloads_of(component.component) for component in spec.components]
        self._reached = list(accumulate(component.percent for component in spec.components))

    def payload(self, position: int, now_ms: int) -> bytes | None:
        self._random.set_seed(self._seed + position)
        drawn = self._random.next_int(generator_specs.ALL_PERCENT)
        return self._sources[bisect_right(self._reached, drawn)].payload(position, now_ms)


class _TimestampRandom:
    def __init__(self, spec: generator_specs.TimestampRandomPayloadGenerator) -> None:
        self._spec = spec
        self._random = JavaRandom(spec.seed)

    def payload(self, position: int, now_ms: int) -> bytes:
        self._random.set_seed(self._spec.seed + position)
        return _little_endian(now_ms) + self._random.next_bytes(
            self._spec.size - generator_specs.TIMESTAMP_BYTES
        )


class _TimestampConstant:
    def __init__(self, spec: generator_specs.TimestampConstantPayloadGenerator) -> None:
        self._zeros = bytes(spec.size - generator_specs.TIMESTAMP_BYTES)

    def payload(self, position: int, now_ms: int) -> bytes:
        del position
        return _little_endian(now_ms) + self._zeros


class _GaussianTimestamp:
    """Payloads of one size until the size changes; so the order of calls matters."""

    def __init__(self, spec: generator_specs.GaussianTimestampPayloadGenerator) -> None:
        self._spec = spec
        self._random = JavaRandom(spec.seed)
        self._is_random = isinstance(spec, generator_specs.GaussianTimestampRandomPayloadGenerator)
        self._size = 0
        self._of_this_size = 0

    def payload(self, position: int, now_ms: int) -> bytes:
        spec = self._spec
        self._random.set_seed(spec.seed + position)
        if self._size == 0 or self._of_this_size >= spec.messages_until_size_change:
            self._of_this_size = 0
            self._size = gaussian_size(
                self._random,
                spec.message_size_average,
                spec.message_size_deviation,
                generator_specs.TIMESTAMP_BYTES,
            )
        if self._size > MOST_BYTES:
            raise TrogdorRefusal(500, _too_large(self._size))
        self._of_this_size += 1
        filled = self._random.next_bytes(self._size) if self._is_random else bytes(self._size)
        return _little_endian(now_ms) + filled[generator_specs.TIMESTAMP_BYTES :]


class _Refused:
    def __init__(self, reason: str) -> None:
        self._reason = reason

    def payload(self, position: int, now_ms: int) -> bytes:
        del position, now_ms
        raise TrogdorRefusal(500, self._reason)


def _too_large(size: int) -> str:
    return f"payloads of {size} bytes; the most are {MOST_BYTES}"


def _size_of(spec: generator_specs.PayloadGenerator | None) -> int:
    """Bytes of a payload, or of one of each component together."""
    if isinstance(spec, generator_specs.RandomComponentPayloadGenerator):
        return sum(_size_of(each.component) for each in spec.components)
    return max(0, getattr(spec, "size", 0))


def payloads_of(spec: generator_specs.PayloadGenerator | None) -> Payloads:  # noqa: PLR0911 (one for each class)
    """What makes the payloads of a spec; for none, or too large ones, what fails when used."""
    if (size := _size_of(spec)) > MOST_BYTES:
        return _Refused(_too_large(size))
    match spec:
        case generator_specs.ConstantPayloadGenerator():
            return _Constant(spec)
        case generator_specs.SequentialPayloadGenerator():
            return _Sequential(spec)
        case generator_specs.UniformRandomPayloadGenerator():
            return _UniformRandom(spec)
        case generator_specs.NullPayloadGenerator():
            return _Null()
        case generator_specs.RandomComponentPayloadGenerator():
            return _RandomComponent(spec)
        case generator_specs.TimestampRandomPayloadGenerator():
            return _TimestampRandom(spec)
        case generator_specs.TimestampConstantPayloadGenerator():
            return _TimestampConstant(spec)
        case generator_specs.GaussianTimestampPayloadGenerator():
            return _GaussianTimestamp(spec)
    return _Refused(_NO_GENERATOR)


class PayloadIterator:
    """Payloads one after the other.

    Args:
        spec: What they are.
    """

    def __init__(self, spec: generator_specs.PayloadGenerator | None) -> None:
        self._source = payloads_of(spec)
        self.position = 0

    def next(self, now_ms: int) -> bytes | None:
        """The payload of the position, which goes on by one."""
        self.position += 1
        return self._source.payload(self.position - 1, now_ms)

    def seek(self, position: int) -> None:
        """Go to a position."""
        self.position = position
