"""Lets aiokafka use a virtual loop's time, seeded randomness and a fixed order, temporarily.

aiokafka's behaviour is not changed: the names `time`, `random` and `uuid` of its modules stand for
other objects meanwhile, and the builder of its batches stamps records without a timestamp (the
compiled one asks the operating system). Only the brokers that it chooses from are put in order:
they are a set of tuples with a None in each, whose hash is an address up to Python 3.11.
"""

import importlib
import random
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final

from coordinator_sim.errors import MissingDependencyError
from coordinator_sim.server.virtual_loop import VirtualLoop

TIME_READERS: Final = (
    "client",
    "cluster",
    "conn",
    "consumer.fetcher",
    "consumer.group_coordinator",
    "consumer.subscription_state",
    "producer.message_accumulator",
    "record.default_records",
    "record.legacy_records",
)
"""Modules of aiokafka that read the clock through the name `time`."""

CHANCE_TAKERS: Final = ("client", "conn", "consumer.fetcher", "partitioner")
"""Modules of aiokafka that draw through the name `random`."""

UUID_MAKERS: Final = ("conn",)
"""Modules of aiokafka that make nonces through the name `uuid`."""

_ACCUMULATOR: Final = "producer.message_accumulator"
_BUILDER: Final = "DefaultRecordBatchBuilder"
_BROKERS: Final = "brokers"
_SEQUENCE: Final = "_PRODUCER_CLIENT_ID_SEQUENCE"
"""Name of the counter of producers without a client id."""


class _VirtualTime:
    """Stands for the module `time`."""

    def __init__(self, loop: VirtualLoop, epoch_ms: int) -> None:
        self._loop = loop
        self._epoch_us = epoch_ms * 1_000

    def monotonic(self) -> float:
        return self._loop.time()

    def time(self) -> float:
        return (self._epoch_us + self._loop.now_us) / 1_000_000


class _SeededUuids:
    """Stands for the module `uuid`."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def uuid4(self) -> uuid.UUID:
        return uuid.UUID(int=self._chance.getrandbits(128), version=4)


@contextmanager
def aiokafka_in_virtual_time(loop: VirtualLoop, *, epoch_ms: int, seed: int) -> Iterator[None]:
    """Let aiokafka take its clocks, randomness and record timestamps from a virtual loop.

    Args:
        loop: The loop of the clients.
        epoch_ms: Wall time at the loop's time 0.
        seed: Seed of the randomness.

    Raises:
        MissingDependencyError: aiokafka is not installed.
    """
    clock = _VirtualTime(loop, epoch_ms)
    chance = random.Random(seed)  # noqa: S311 - a simulation's chance, and no secret
    accumulator = _module(_ACCUMULATOR)
    producers = _module("producer.producer").AIOKafkaProducer
    metadata = _module("cluster").ClusterMetadata
    changes: list[tuple[Any, str, Any]] = [
        *((_module(name), "time", clock) for name in TIME_READERS),
        *((_module(name), "random", chance) for name in CHANCE_TAKERS),
        *((_module(name), "uuid", _SeededUuids(chance)) for name in UUID_MAKERS),
        (producers, _SEQUENCE, 0),
        (metadata, _BROKERS, _in_order(getattr(metadata, _BROKERS))),
        (accumulator, _BUILDER, _stamping(getattr(accumulator, _BUILDER), clock)),
    ]
    before = [(place, name, getattr(place, name)) for place, name, _ in changes]
    try:
        for place, name, value in changes:
            setattr(place, name, value)
        yield
    finally:
        for place, name, value in before:
            setattr(place, name, value)


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(f"aiokafka.{name}")
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "clients in virtual time are aiokafka's: pip install aiokafka"
        ) from error


def _in_order(brokers: Callable[[Any], set[Any]]) -> Callable[[Any], list[Any]]:
    """Wrap the method, so that its order is the same in every process."""
    return lambda cluster: sorted(brokers(cluster), key=str)


def _stamping(builder: type[Any], clock: _VirtualTime) -> type[Any]:
    """A subclass of the batch builder that stamps records without a timestamp."""

    class StampingBuilder(builder):  # type: ignore[misc]  # compiled or not, as installed
        """Batch builder that gives records without a timestamp the virtual time."""

        def append(self, offset: int, timestamp: int | None, **record: Any) -> Any:  # noqa: ANN401 - passed on
            """Add a record to the batch."""
            if timestamp is None:
                timestamp = int(clock.time() * 1_000)
            return super().append(offset, timestamp, **record)

    return StampingBuilder
