"""Fixtures in virtual time: a clock that runs asyncio programs, and a Kafka on it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from coordinator_sim.broker.faults.faults import Fault
from coordinator_sim.broker.settings import ClusterSettings
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.server.properties import with_properties
from coordinator_sim.server.virtual_loop import VirtualLoop
from coordinator_sim.server.virtual_time import (
    VirtualKafka,
    VirtualRun,
    a_day_at_most,
    kafka_in_virtual_time,
    run_in_virtual_time,
)
from coordinator_sim.trace.events import TraceEvent

T = TypeVar("T")


def virtual_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop in virtual time: the loop factory for pytest-asyncio and anyio."""
    return VirtualLoop()


def cluster_of(profile: Profile, brokers: int, settings: Mapping[str, str]) -> ClusterSettings:
    """Return a cluster of so many brokers with these settings.

    Raises:
        ConfigError: a setting is unknown or invalid.
    """
    base = ClusterSettings(profile=profile, broker_ids=tuple(range(1, brokers + 1)))
    return with_properties(base, dict(settings))


class VirtualClock:
    """Runs asyncio programs in virtual time, one after the other on one loop."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner(loop_factory=VirtualLoop)

    @property
    def loop(self) -> VirtualLoop:
        """Loop that runs the programs."""
        loop = self._runner.get_loop()
        assert isinstance(loop, VirtualLoop)  # noqa: S101 - its factory makes no other
        return loop

    @property
    def now_s(self) -> float:
        """Virtual seconds since the beginning."""
        return self.loop.time()

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run `main` and return its result."""
        return self._runner.run(main)

    def close(self) -> None:
        """Cancel running tasks, and close the loop."""
        self._runner.close()


class KafkaInVirtualTime:
    """Serves a cluster in virtual time, to a program or on a loop that runs already.

    Args:
        settings: Settings of the cluster.
        faults: Initial fault rules.

    Attributes:
        events: Events of its group coordinators so far.
    """

    def __init__(self, settings: ClusterSettings, faults: Sequence[Fault] = ()) -> None:
        self.settings = settings
        self.events: Sequence[TraceEvent] = ()
        self._faults = faults

    def run(
        self,
        main: Callable[[VirtualKafka], Awaitable[T]],
        *,
        topics: Mapping[str, int] | None = None,
        loop_factory: Callable[[], VirtualLoop] = a_day_at_most,
    ) -> VirtualRun[T]:
        """Run a program of unmodified asyncio clients with the cluster; the test is not async.

        Args:
            main: The program, called with the cluster.
            topics: Topics created at the start: name -> partitions.
            loop_factory: Factory of the loop, which sets latency and end; by default a day at most.
        """

        async def noted(kafka: VirtualKafka) -> T:
            self._began(kafka)
            return await main(kafka)

        return run_in_virtual_time(
            noted,
            cluster=self.settings,
            topics=topics,
            loop_factory=loop_factory,
        )

    @asynccontextmanager
    async def serving(self, topics: Mapping[str, int] | None = None) -> AsyncIterator[VirtualKafka]:
        """Serve the cluster on the running loop, which must be a `virtual_loop`.

        Args:
            topics: Topics created at the start: name -> partitions.
        """
        async with kafka_in_virtual_time(self.settings, topics=topics) as kafka:
            self._began(kafka)
            yield kafka

    def _began(self, kafka: VirtualKafka) -> None:
        self.events = kafka.events
        for fault in self._faults:
            kafka.server.cluster.add_fault(fault, kafka.server.now())
