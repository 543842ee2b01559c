"""A bomb on one socket: clients on the others are answered while it is looked at."""

import asyncio

from coordinator_sim.broker.settings import ClusterSettings
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.log.format.compression import Compression
from coordinator_sim.messages.codec.frames import RequestHeader
from coordinator_sim.server.kafka_server import KafkaServer, Listen
from coordinator_sim.server.timekeeper import WallClock
from coordinator_sim_conformance.field_frames import request_frame
from tests.unit.log.test_large_batches import NO_KEY, batch
from tests.unit.server.kafka_client import KafkaClient

MANY = 100_000
LIMIT_S = 60
BEATS = 5


def test_heartbeats_are_answered_before_a_bomb_that_came_first() -> None:
    """The order of the answers says so; and the server stops at once with a bomb in its hands."""

    async def main() -> list[str]:
        server = KafkaServer(ClusterSettings(), WallClock(asyncio.get_running_loop().time))
        begun, is_begun = server.cluster.jobs.begun, asyncio.Event()
        assert begun is not None

        def begin() -> None:
            begun()
            is_begun.set()

        server.cluster.jobs.begun = begin
        await server.start([Listen(broker_id=1, host="127.0.0.1", port=0)])
        server.cluster.topics.create_spread("t", 1, server.now())
        host, _, port = server.bootstrap().rpartition(":")
        member = await KafkaClient.connect(server.bootstrap())
        member_id = await member.join("g")
        reader, writer = await asyncio.open_connection(host, int(port))
        order: list[str] = []

        async def produce() -> None:
            records = batch(NO_KEY * MANY, MANY, Compression.ZSTD)
            topics = [{"name": "t", "partitionData": [{"index": 0, "records": records}]}]
            header = RequestHeader(api_key=ApiKey.PRODUCE, api_version=9, correlation_id=0)
            fields = {"transactionalId": None, "acks": 1, "timeoutMs": 1, "topicData": topics}
            frame = request_frame(header, fields)
            writer.write(len(frame).to_bytes(4, "big") + frame)
            length = await reader.readexactly(4)
            await reader.readexactly(int.from_bytes(length, "big"))
            order.append("bomb")

        try:
            bomb = asyncio.create_task(produce())
            await is_begun.wait()
            for _ in range(BEATS):
                await member.beat("g", member_id)
                order.append("beat")
            await bomb
            is_begun.clear()
            bomb = asyncio.create_task(produce())
            await is_begun.wait()
            bomb.cancel()
        finally:
            writer.close()
            await member.close()
            await server.stop()
        return order

    async def bounded() -> list[str]:
        async with asyncio.timeout(LIMIT_S):
            return await main()

    assert asyncio.run(bounded()) == ["beat"] * BEATS + ["bomb"]
