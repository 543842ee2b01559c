"""Three unmodified aiokafka consumers through a virtual hour, with ten rebalances and more.

    python -m benchmarks.virtual_hour [--seed N] [--fetch-wait MS] [--until S] [--frames FILE]

Prints one JSON object a run: the digest of the wire, what happened, and the CPU-seconds of this
process from the first callback to the last (imports apart), by `time.process_time`.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from coordinator_sim.broker.settings import ClusterSettings
from coordinator_sim.server.virtual_time import VirtualKafka, VirtualRun, run_in_virtual_time
from coordinator_sim.trace.events import Event

HOUR_S = 3_600
RECORD_EVERY_S = 5
LONG_FETCH_WAIT_MS = 30_000
"""As a user sets it whose topics are quiet; aiokafka's default is 500."""

PLAN = (
    (0, "start", "a"),
    (0, "start", "b"),
    (10, "start", "c"),
    (300, "stop", "b"),
    (420, "start", "b"),
    (720, "pause", "c"),
    (1_100, "resume", "c"),
    (1_500, "stop", "a"),
    (1_560, "start", "a"),
    (1_900, "stop", "b"),
    (1_930, "stop", "c"),
    (2_000, "start", "b"),
    (2_100, "start", "c"),
    (2_500, "stop", "a"),
    (2_700, "start", "a"),
    (3_100, "stop", "c"),
    (3_200, "start", "c"),
)
"""Second, verb, member. A member that pauses does not poll, and leaves after five minutes."""


class Member:
    """An application with one consumer that commits by itself."""

    def __init__(self, name: str, kafka: VirtualKafka, options: dict[str, Any]) -> None:
        self._name = name
        self._kafka = kafka
        self._options = options
        self._running = asyncio.Event()
        self._running.set()
        self._tasks: list[asyncio.Task[None]] = []
        self.consumed: list[tuple[int, int]] = []

    async def start(self) -> None:
        """Be a member of the group."""
        consumer = AIOKafkaConsumer(
            "orders",
            bootstrap_servers=self._kafka.bootstrap,
            group_id="billing",
            client_id=self._name,
            auto_offset_reset="earliest",
            **self._options,
        )
        await consumer.start()
        self._tasks.append(asyncio.create_task(self._consume(consumer)))

    async def stop(self) -> None:
        """Leave it."""
        task = self._tasks.pop()
        task.cancel()
        await asyncio.wait([task])

    async def pause(self) -> None:
        """Do not poll."""
        self._running.clear()

    async def resume(self) -> None:
        """Poll again."""
        self._running.set()

    async def _consume(self, consumer: AIOKafkaConsumer) -> None:
        try:
            async for record in consumer:
                self.consumed.append((record.partition, record.offset))
                await self._running.wait()
        finally:
            await consumer.stop()


async def produce(kafka: VirtualKafka, until_s: int) -> int:
    """A record every few seconds, nearly to the end; how many."""
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap, client_id="shop")
    await producer.start()
    count = until_s // RECORD_EVERY_S - 2
    for number in range(count):
        await producer.send("orders", b"order %d" % number, key=b"customer %d" % (number % 30))
        await asyncio.sleep(RECORD_EVERY_S)
    await producer.stop()
    return count


async def an_hour(kafka: VirtualKafka, options: dict[str, Any], until_s: int) -> dict[str, Any]:
    """The hour, or its beginning; what was produced and consumed."""
    loop = kafka.loop
    members = {name: Member(name, kafka, options) for name in "abc"}
    producing = asyncio.create_task(produce(kafka, until_s))
    for at_s, verb, name in PLAN:
        if at_s < until_s:
            await asyncio.sleep(max(0, at_s - loop.time()))
            await getattr(members[name], verb)()
    await asyncio.sleep(until_s - loop.time())
    for member in members.values():
        await member.stop()
    consumed = [place for member in members.values() for place in member.consumed]
    return {
        "produced": await producing,
        "consumed": len(consumed),
        "consumed once or more": len(set(consumed)),
    }


def run(
    seed: int, fetch_wait_ms: int | None, until_s: int, *, keep_frames: bool = False
) -> VirtualRun[dict[str, Any]]:
    """One run of the hour, or of its beginning."""
    options = {} if fetch_wait_ms is None else {"fetch_max_wait_ms": fetch_wait_ms}
    if fetch_wait_ms is not None:
        # A broker works on one request of a connection at a time, and after a rebalance a fetch
        # may be behind one that nobody waits for any more.
        options["request_timeout_ms"] = 2 * fetch_wait_ms + 10_000

    async def main(kafka: VirtualKafka) -> dict[str, Any]:
        return await an_hour(kafka, options, until_s)

    return run_in_virtual_time(
        main, cluster=ClusterSettings(seed=seed), topics={"orders": 6}, keep_frames=keep_frames
    )


def measured(chosen: argparse.Namespace, fetch_wait_ms: int | None) -> dict[str, Any]:
    """What one run came to."""
    before_s = time.process_time()
    hour = run(chosen.seed, fetch_wait_ms, chosen.until, keep_frames=chosen.frames is not None)
    cpu_s = time.process_time() - before_s
    if chosen.frames is not None:
        chosen.frames.write_bytes(msgspec.msgpack.encode((hour.frames, hour.events)))
    return {
        "digest": hour.digest,
        "frames": hour.frame_count,
        "virtual s": round(hour.lasted_us / 1_000_000, 3),
        "generations": sum(event.event is Event.JOIN_COMPLETE for event in hour.events),
        **hour.result,
        "cpu s": round(cpu_s, 2),
        "cpu us a frame": round(cpu_s * 1_000_000 / hour.frame_count),
    }


def main(arguments: Sequence[str] = ()) -> None:
    """Run it as asked; without arguments, with long fetch waits and with aiokafka's default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fetch-wait", type=int, help="fetch_max_wait_ms; aiokafka's without")
    parser.add_argument("--until", type=int, default=HOUR_S, help="virtual seconds")
    parser.add_argument("--frames", type=Path, help="write frames and group events there")
    chosen = parser.parse_args(arguments)
    for wait_ms in [chosen.fetch_wait] if arguments else [LONG_FETCH_WAIT_MS, None]:
        print(json.dumps({"fetch_max_wait_ms": wait_ms, **measured(chosen, wait_ms)}))


if __name__ == "__main__":
    main(sys.argv[1:])
