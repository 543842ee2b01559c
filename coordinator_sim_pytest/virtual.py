"""Fixtures in virtual time: a clock that runs asyncio programs, and a Kafka that lives on it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from coordinator_sim.mini_broker.faults import Fault
from coordinator_sim.mini_broker.settings import ClusterSettings
from coordinator_sim.protocol.profiles import Profile
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
    """An event loop in virtual time: the loop factory for pytest-asyncio and anyio."""
    return VirtualLoop()


def cluster_of(profile: Profile, brokers: int, settings: Mapping[str, str]) -> ClusterSettings:
    """A cluster of so many brokers with these settings.

    Raises:
        ConfigError: a setting that there is not, or that cannot be.
    """
    base = ClusterSettings(profile=profile, broker_ids=tuple(range(1, brokers + 1)))
    return with_properties(base, dict(settings))


class VirtualClock:
    """Runs asyncio programs in virtual time, one behind the other on one loop."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner(loop_factory=VirtualLoop)

    @property
    def loop(self) -> VirtualLoop:
        """The loop that it runs them on."""
        loop = self._runner.get_loop()
        assert isinstance(loop, VirtualLoop)  # noqa: S101 - its factory makes no other
        return loop

    @property
    def now_s(self) -> float:
        """Virtual seconds since the beginning."""
        return self.loop.time()

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """The result of `main`."""
        return self._runner.run(main)

    def close(self) -> None:
        """Cancel what still runs, and close the loop."""
        self._runner.close()


class KafkaInVirtualTime:
    """Serves a cluster in virtual time, to a program or on a loop that runs already.

    Args:
        settings: Of the cluster.
        faults: Rules that it begins with.

    Attributes:
        events: What its group coordinators told so far.
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
            main: The program; it is given the cluster.
            topics: Created at the start: name -> partitions.
            loop_factory: Of the loop with its latency and its end; a day at most without.
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
            topics: Created at the start: name -> partitions.
        """
        async with kafka_in_virtual_time(self.settings, topics=topics) as kafka:
            self._began(kafka)
            yield kafka

    def _began(self, kafka: VirtualKafka) -> None:
        self.events = kafka.events
        for fault in self._faults:
            kafka.server.cluster.faults.add(fault)
