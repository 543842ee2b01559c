"""What ends a connection at the socket: silence, too many of them, a request that is too long."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from coordinator_sim.broker.metadata.changes import QuotaSet
from coordinator_sim.broker.settings import ClusterSettings
from coordinator_sim.errors import ConfigError
from coordinator_sim.server.kafka_server import KafkaServer, Listen
from coordinator_sim.server.timekeeper import WallClock

LIMIT_S = 10
API_VERSIONS = b"\x00\x12\x00\x00\x00\x00\x00\x01\xff\xff"
Story = Callable[[KafkaServer, int], Awaitable[None]]


def play(story: Story, **given: str) -> None:
    """Serve with these settings, dots as underscores, and play a story at the port."""
    named = {name.replace("_", "."): value for name, value in given.items()}

    async def played() -> None:
        clock = WallClock(asyncio.get_running_loop().time)
        server = KafkaServer(ClusterSettings(given=named), clock)
        listen = Listen(broker_id=1, host="127.0.0.1", port=0)
        await server.start([listen])
        try:
            async with asyncio.timeout(LIMIT_S):
                await story(server, server.port_of(listen))
        finally:
            await server.stop()

    asyncio.run(played())


async def connect(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection."""
    return await asyncio.open_connection("127.0.0.1", port)


async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Whether ApiVersions is answered."""
    writer.write(len(API_VERSIONS).to_bytes(4, "big") + API_VERSIONS)
    return bool(await reader.read(4))


def test_silent_connection_is_closed() -> None:
    """The connection said something once; then the server ends it."""

    async def story(_server: KafkaServer, port: int) -> None:
        reader, writer = await connect(port)
        assert await speak(reader, writer)
        while await reader.read(1 << 16):
            pass
        writer.close()

    play(story, connections_max_idle_ms="200")


def test_one_connection_too_many_is_closed_and_others_stay() -> None:
    """When one of them ends another may come."""

    async def story(_server: KafkaServer, port: int) -> None:
        first = await connect(port)
        assert await speak(*first)
        second = await connect(port)
        assert not await second[0].read(1)
        second[1].close()
        first[1].close()
        third = await connect(port)
        while not await speak(*third):
            third[1].close()
            third = await connect(port)
        third[1].close()

    play(story, max_connections_per_ip="1")


def test_connection_over_the_quota_of_its_address_hears_nothing_and_is_closed() -> None:
    """One a second: ten windows hold ten connections; the eleventh is left alone for a while."""

    async def story(server: KafkaServer, port: int) -> None:
        every_address = (("ip", None),)
        server.cluster.change(QuotaSet(every_address, "connection_creation_rate", 1.0))
        welcome = [await connect(port) for _ in range(10)]
        refused = await connect(port)
        assert not await speak(*refused)
        for each in welcome:
            assert await speak(*each)
        for _, writer in (*welcome, refused):
            writer.close()

    play(story)


def test_request_that_is_too_long_ends_its_connection() -> None:
    """A request beyond socket.request.max.bytes ends its connection; only its length is read."""

    async def story(_server: KafkaServer, port: int) -> None:
        reader, writer = await connect(port)
        writer.write((1_001).to_bytes(4, "big"))
        assert not await reader.read(1)
        writer.close()

    play(story, socket_request_max_bytes="1000")


def test_listener_without_a_certificate_is_refused() -> None:
    """TLS needs one."""

    async def story() -> None:
        server = KafkaServer(ClusterSettings(), WallClock(asyncio.get_running_loop().time))
        with pytest.raises(ConfigError, match="needs a certificate"):
            await server.start([Listen(broker_id=1, host="127.0.0.1", port=0, name="SSL")])
        await server.stop()

    asyncio.run(story())
