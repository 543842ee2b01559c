"""A proxy in a process of its own, and real clients behind it that join, bounce and commit."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

TOPIC: Final = "t"
PARTITIONS: Final = 6


class Proxied:
    """A running proxy; what it says when it ends."""

    def __init__(self, process: "subprocess.Popen[str]", address: str) -> None:
        self._process = process
        self.address = address

    def ended(self) -> tuple[int, list[dict[str, Any]], dict[str, int]]:
        """End it as Ctrl-C does: exit code, flags, counts."""
        self._process.send_signal(signal.SIGINT)
        out, _ = self._process.communicate(timeout=60)
        *flags, counts = [json.loads(line) for line in out.splitlines()]
        return self._process.returncode, flags, counts


@contextmanager
def proxied(upstream: str, *options: str) -> Iterator[Proxied]:
    """Run a proxy before a cluster, all of whose clients pass it."""
    words = ["--listen", "127.0.0.1:0", "--upstream", upstream, "--json", "--all-clients-pass"]
    command = [sys.executable, "-m", "coordinator_sim_conformance", "proxy", *words, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Proxied(process, json.loads(process.stdout.readline())["listening"])
        finally:
            process.kill()


async def consumed(
    address: str, group: str, name: str, seconds: float, instance: str | None
) -> None:
    """A consumer of aiokafka that reads, commits and leaves."""
    from aiokafka import AIOKafkaConsumer

    consumer = AIOKafkaConsumer(
        TOPIC,
        bootstrap_servers=address,
        group_id=group,
        client_id=name,
        group_instance_id=instance,
        heartbeat_interval_ms=200,
        session_timeout_ms=10_000,
        auto_offset_reset="earliest",
        auto_commit_interval_ms=200,
    )
    await consumer.start()
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        await consumer.getmany(timeout_ms=200)
    await consumer.stop()


async def with_aiokafka(address: str, seconds: float = 3) -> None:
    """A topic, records without acknowledgement, and members that come, go and come back."""
    from aiokafka import AIOKafkaProducer
    from aiokafka.admin import AIOKafkaAdminClient, NewTopic

    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    await admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])
    await admin.close()
    for acks in (0, 1):
        producer = AIOKafkaProducer(bootstrap_servers=address, acks=acks)
        await producer.start()
        for index in range(60):
            await producer.send(TOPIC, b"x", partition=index % PARTITIONS)
        await producer.flush()
        await producer.stop()
    for names in (("a", "b", "static"), ("c", "static")):
        members = [
            consumed(address, "g", name, seconds, "i" if name == "static" else None)
            for name in names
        ]
        await asyncio.gather(*members)


def with_librdkafka(address: str, seconds: float = 6) -> None:
    """Two consumers of one group, the second of which leaves and comes back."""
    from confluent_kafka import Consumer

    def joined(name: str) -> Consumer:
        settings = {
            "bootstrap.servers": address,
            "group.id": "rd",
            "client.id": name,
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 200,
            "session.timeout.ms": 10_000,
            "auto.commit.interval.ms": 200,
        }
        consumer = Consumer(settings)
        consumer.subscribe([TOPIC])
        return consumer

    first, second = joined("first"), joined("second")
    end_s = time.monotonic() + seconds
    left_s = time.monotonic() + seconds / 2
    while time.monotonic() < end_s:
        first.poll(0.1)
        second.poll(0.1)
        if time.monotonic() > left_s:
            left_s = end_s
            second.close()
            second = joined("second again")
    first.close()
    second.close()


def logged(path: Path) -> list[dict[str, Any]]:
    """The lines of a proxy's log."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
