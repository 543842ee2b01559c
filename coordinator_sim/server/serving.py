"""A served cluster from start to stop: what `coordinator-sim serve` runs."""

import asyncio
import signal
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from coordinator_sim.mini_broker.settings import ClusterSettings
from coordinator_sim.server.clocks import WallClock
from coordinator_sim.server.kafka_server import KafkaServer, Listen

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 9092


class ServeOptions(Struct, frozen=True, kw_only=True):
    """What to serve and where.

    Args:
        cluster: The cluster as it starts.
        host: To bind.
        port: Of broker 1; the others follow. 0 lets each have a free one.
        topics: Created at the start: name -> partitions.
    """

    cluster: ClusterSettings = ClusterSettings()
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    topics: dict[str, int] = {}


async def serve(options: ServeOptions, ready: Callable[[KafkaServer], None]) -> None:
    """Serve until SIGTERM or SIGINT.

    Args:
        options: What and where.
        ready: Hears when every listener is open.

    Raises:
        OSError: an address cannot be bound.
    """
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    clock = WallClock(loop.time)
    server = KafkaServer(options.cluster, clock)
    for name, partitions in options.topics.items():
        server.cluster.topics.create_spread(name, partitions, clock.now())
    await server.start(
        [
            Listen(
                broker_id=broker_id,
                host=options.host,
                port=options.port + place if options.port else 0,
            )
            for place, broker_id in enumerate(options.cluster.broker_ids)
        ]
    )
    try:
        ready(server)
        await stopped.wait()
    finally:
        await server.stop()


def run(options: ServeOptions, ready: Callable[[KafkaServer], None]) -> None:
    """As `serve`, on an event loop of its own: uvloop's where it is installed."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(serve(options, ready))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
