"""Real clients and a served cluster in virtual time: an hour takes seconds, and is repeatable.

    async def main(kafka: VirtualKafka) -> int:
        consumer = AIOKafkaConsumer("orders", bootstrap_servers=kafka.bootstrap, group_id="g")
        ...

    run = run_in_virtual_time(main, topics={"orders": 6})

The clients are unmodified and live on one `VirtualLoop` with the cluster, whose two clocks are
both the loop's. Equal seeds and equal `PYTHONHASHSEED` give equal digests of the wire: a client
that iterates sets of strings sends in another order under another hash seed.

Lets aiokafka use a virtual loop's time, seeded randomness and a fixed order, temporarily.

aiokafka's behaviour is not changed: the names `time`, `random` and `uuid` of its modules stand for
other objects meanwhile, and the builder of its batches stamps records without a timestamp (the
compiled one asks the operating system). Only the brokers that it chooses from are put in order:
they are a set of tuples with a None in each, whose hash is an address up to Python 3.11.
"""

import asyncio
import importlib
import importlib.util
import inspect
import random
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from types import ModuleType
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct, structs, to_builtins

from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.settings import ClusterSettings
from coordinator_sim.errors import ConfigError, CoordinatorSimError, MissingDependencyError
from coordinator_sim.server.kafka_server import PLAINTEXT, KafkaServer, Listen
from coordinator_sim.server.virtual_loop import VirtualLoop
from coordinator_sim.server.wire_record import WireFrame, WireRecord
from coordinator_sim.trace.events import TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder

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


START_MS: Final = 1_767_225_600_000
"""Wall time when a run begins: 2026-01-01T00:00:00Z."""

SASL_PLAINTEXT: Final = "SASL_PLAINTEXT"
PORTS: Final = {PLAINTEXT: 9_092, SASL_PLAINTEXT: 9_094}
"""Ports of every broker's listeners; the second exists only with SASL mechanisms."""
_MECHANISMS: Final = "sasl.enabled.mechanisms"

T = TypeVar("T")


class NotAwaited(CoordinatorSimError):
    """A coroutine of a served cluster that was called and never awaited: nothing happened."""


class LoopClock:
    """A clock whose group and wall time are both a virtual loop's."""

    name: Final = "virtual loop"

    def __init__(self, loop: VirtualLoop, start_ms: int) -> None:
        self._loop = loop
        self._start_ms = start_ms

    def now(self) -> Instants:
        """The present."""
        ms = self._start_ms + self._loop.now_us // 1_000
        return Instants(ms, ms)

    def wall_until_group_ms(self, group_ms: int, now: Instants) -> int | None:
        """Milliseconds until an instant; group and wall time are the same."""
        return max(0, group_ms - now.group_ms)


class VirtualKafka:
    """A served cluster on a virtual loop.

    Attributes:
        loop: The loop, with the time and the network.
        server: The cluster and its listeners.
        wire: Record of the frames.
        events: Events of the group coordinators so far.
    """

    def __init__(
        self, loop: VirtualLoop, server: KafkaServer, wire: WireRecord, events: list[TraceEvent]
    ) -> None:
        self.loop = loop
        self.server = server
        self.wire = wire
        self.events = events

    @property
    def bootstrap(self) -> str:
        """Host and port of every broker, for a client."""
        return self.server.bootstrap(PLAINTEXT)

    @property
    def sasl_bootstrap(self) -> str:
        """Host and port of every broker's SASL listener; empty without SASL mechanisms."""
        return self.server.bootstrap(SASL_PLAINTEXT)

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic that does not exist yet."""
        self.server.cluster.topics.create_spread(name, partitions, self.server.now())

    def group(self, group_id: str) -> dict[str, Any]:
        """Return a group with its members and offsets; its coordinator is `coordinator_id`.

        Raises:
            ConfigError: no coordinator has such a group.
        """
        from coordinator_sim.server.control.views import group_view

        found = group_view(self.server.cluster, group_id)
        if found is None:
            raise ConfigError(f"no coordinator has a group {group_id!r}")
        view: dict[str, Any] = to_builtins(found)
        return view


class VirtualRun(Struct, Generic[T], frozen=True, kw_only=True):
    """A run that ended.

    Args:
        result: What `main` returned.
        digest: SHA-256 over all frames, their instants and connections.
        frame_count: Number of requests and responses.
        events: Events of the group coordinators.
        frames: All frames, if they were kept.
        lasted_us: Duration in virtual microseconds.
    """

    result: T
    digest: str
    frame_count: int
    events: tuple[TraceEvent, ...]
    frames: tuple[WireFrame, ...]
    lasted_us: int


@asynccontextmanager
async def kafka_in_virtual_time(
    cluster: ClusterSettings | None = None,
    *,
    topics: Mapping[str, int] | None = None,
    keep_frames: bool = False,
) -> AsyncIterator[VirtualKafka]:
    """Serve a cluster on the running loop, and let aiokafka use the loop's time.

    Args:
        cluster: Settings of the cluster; its seed is also the clients'.
        topics: Topics created at the start: name -> partitions.
        keep_frames: Whether `wire` keeps the frames, beside their digest.

    Raises:
        ConfigError: the running loop is not a `VirtualLoop`.
        NotAwaited: a coroutine of `server` was never awaited.
    """
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualLoop):
        raise ConfigError(
            f"the running loop is a {type(loop).__name__}: run this with "
            "asyncio.Runner(loop_factory=VirtualLoop)"
        )
    settings = ClusterSettings() if cluster is None else cluster
    wire = WireRecord(keep=keep_frames)
    loop.tap = wire
    recorder = MemoryRecorder()

    def take(_broker_id: int, events: tuple[TraceEvent, ...]) -> None:
        for event in events:
            recorder.record(event)

    server = KafkaServer(settings, LoopClock(loop, START_MS), trace=take, draw_bytes=None)
    kafka = VirtualKafka(loop, server, wire, recorder.events)
    for name, partitions in (topics or {}).items():
        kafka.create_topic(name, partitions)
    with ExitStack() as stack:
        if importlib.util.find_spec("aiokafka") is not None:
            seed = settings.seed
            stack.enter_context(aiokafka_in_virtual_time(loop, epoch_ms=START_MS, seed=seed))
        await server.start(
            [
                Listen(broker_id=broker_id, host=f"kafka-{broker_id}", port=port, name=name)
                for broker_id in settings.broker_ids
                for name, port in PORTS.items()
                if name == PLAINTEXT or _MECHANISMS in settings.given
            ]
        )
        calls = _noted_calls(server)
        try:
            yield kafka
            _check_awaited(calls)
        finally:
            await server.stop()


def _noted_calls(server: KafkaServer) -> list[tuple[str, Coroutine[Any, Any, Any]]]:
    """Note from now on what the server's coroutine functions return, with their names."""
    calls: list[tuple[str, Coroutine[Any, Any, Any]]] = []

    def noting(
        name: str, function: Callable[..., Coroutine[Any, Any, Any]]
    ) -> Callable[..., Coroutine[Any, Any, Any]]:
        def noted(*args: object, **options: object) -> Coroutine[Any, Any, Any]:
            calls.append((name, function(*args, **options)))
            return calls[-1][1]

        return noted

    for name, function in inspect.getmembers(server, inspect.iscoroutinefunction):
        if not name.startswith("_"):
            setattr(server, name, noting(name, function))
    return calls


def _check_awaited(calls: list[tuple[str, Coroutine[Any, Any, Any]]]) -> None:
    """Check that every noted coroutine has begun.

    Raises:
        NotAwaited: one has not.
    """
    created = [each for each in calls if inspect.getcoroutinestate(each[1]) == "CORO_CREATED"]
    for _, coroutine in created:
        coroutine.close()
    if created:
        name = created[0][0]
        raise NotAwaited(f"server.{name} did nothing: write `await kafka.server.{name}(...)`")


def a_day_at_most() -> VirtualLoop:
    """A loop for programs that end within a virtual day; idle clients would go on for ever."""
    return VirtualLoop(limit_s=86_400)


def run_in_virtual_time(
    main: Callable[[VirtualKafka], Awaitable[T]],
    *,
    cluster: ClusterSettings | None = None,
    topics: Mapping[str, int] | None = None,
    seed: int | None = None,
    loop_factory: Callable[[], VirtualLoop] = a_day_at_most,
    keep_frames: bool = False,
) -> VirtualRun[T]:
    """Run a program of unmodified asyncio clients with a cluster, in virtual time.

    Args:
        main: The program; called with the cluster.
        cluster: Settings of the cluster.
        topics: Topics created at the start: name -> partitions.
        seed: Seed of the cluster and the clients; None for the one in `cluster`.
        loop_factory: Makes the loop, with latency and limit; by default a limit of a day.
        keep_frames: Whether the run has its frames, beside their digest.
    """
    settings = ClusterSettings() if cluster is None else cluster
    if seed is not None:
        settings = structs.replace(settings, seed=seed)

    async def run() -> VirtualRun[T]:
        async with kafka_in_virtual_time(settings, topics=topics, keep_frames=keep_frames) as kafka:
            result = await main(kafka)
        return VirtualRun(
            result=result,
            digest=kafka.wire.digest,
            frame_count=kafka.wire.frame_count,
            events=tuple(kafka.events),
            frames=tuple(kafka.wire.frames),
            lasted_us=kafka.loop.now_us,
        )

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(run())
