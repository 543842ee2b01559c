"""Listeners of brokers that were stopped."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from coordinator_sim.broker.operations import BrokerStatus
from coordinator_sim.broker.settings import ClusterSettings
from coordinator_sim.errors import ConfigError
from coordinator_sim.server.kafka_server import KafkaServer, Listen
from coordinator_sim.server.timekeeper import WallClock

LIMIT_S = 10
LISTENS = [Listen(broker_id=each, host="127.0.0.1", port=0) for each in (1, 2)]


def play(story: Callable[[KafkaServer, int], Awaitable[None]]) -> None:
    """Serve two brokers, stop the second one, and play a story at its port."""

    async def played() -> None:
        clock = WallClock(asyncio.get_running_loop().time)
        server = KafkaServer(ClusterSettings(broker_ids=(1, 2)), clock)
        await server.start(LISTENS)
        try:
            async with asyncio.timeout(LIMIT_S):
                await server.stop_broker(2)
                await story(server, server.port_of(LISTENS[1]))
        finally:
            await server.stop()

    asyncio.run(played())


def test_reset_brings_stopped_brokers_back() -> None:
    """A new cluster's brokers all run, and can be reached where they were."""

    async def story(server: KafkaServer, port: int) -> None:
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        await server.reset()
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        assert server.cluster.operations.status(2) is BrokerStatus.RUNNING

    play(story)


def test_broker_whose_port_is_taken_stays_stopped() -> None:
    """The broker can be resumed when the port is free again."""

    async def story(server: KafkaServer, port: int) -> None:
        other = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", port)
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port}"):
            await server.resume_broker(2)
        assert server.cluster.operations.status(2) is BrokerStatus.STOPPED
        other.close()
        await other.wait_closed()
        await server.resume_broker(2)
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()

    play(story)
