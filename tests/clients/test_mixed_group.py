"""One group of consumers of four libraries at `coordinator-sim serve`.

None of them waits for another's turn: aiokafka's `getmany` returns only when a rebalance is over,
kafka-python joins one only while it is polled. Taking turns, they could wait for each other.
"""

import asyncio
import importlib
import time
from contextlib import suppress
from itertools import chain
from typing import Any, Self

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.range import RangePartitionAssignor

from coordinator_sim_pytest.server import ServedKafka
from tests.clients.franz import FranzConsumer
from tests.clients.librdkafka import PATIENCE_S, consumer, owned_by, produce

pytestmark = pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")
PARTITIONS = 12
COUNT = 600
QUICK = {
    "heartbeat_interval_ms": 200,
    "session_timeout_ms": 10_000,
    "auto_offset_reset": "earliest",
    "fetch_max_wait_ms": 50,
}


class Members:
    """A consumer of each library; those that block share a thread, aiokafka reads in a task.

    Args:
        served: The cluster.
        protocol: Protocol of librdkafka's consumer; the others are classic ones.
    """

    def __init__(self, served: ServedKafka, protocol: str) -> None:
        kafka = importlib.import_module("kafka")
        assignors = importlib.import_module("kafka.coordinator.assignors.range")
        told = {"partition_assignment_strategy": "range"}
        if protocol == "consumer":
            told = {"group_protocol": protocol}
        self.librdkafka = consumer(served.bootstrap, "g", client_id="librdkafka", **told)
        self.kafka_python = kafka.KafkaConsumer(
            bootstrap_servers=served.bootstrap,
            group_id="g",
            partition_assignment_strategy=[assignors.RangePartitionAssignor],
            **QUICK,
        )
        self.aiokafka = AIOKafkaConsumer(
            "t",
            bootstrap_servers=served.bootstrap,
            group_id="g",
            partition_assignment_strategy=(RangePartitionAssignor,),
            **QUICK,
        )
        self.values: list[bytes] = []

    async def __aenter__(self) -> Self:
        """Join. aiokafka first: it waits for its partitions, and the others join when polled."""
        await self.aiokafka.start()
        self.reading = asyncio.create_task(self._read_aiokafka())
        self.librdkafka.subscribe(["t"])
        self.kafka_python.partitions_for_topic("t")
        self.kafka_python.subscribe(["t"])
        return self

    async def __aexit__(self, *_: object) -> None:
        """Leave the group."""
        self.reading.cancel()
        with suppress(asyncio.CancelledError):
            await self.reading
        await self.aiokafka.stop()
        self.kafka_python.close()
        self.librdkafka.close()

    async def _read_aiokafka(self) -> None:
        while True:
            self._keep(await self.aiokafka.getmany(timeout_ms=20))

    def _poll_the_others(self) -> None:
        for message in self.librdkafka.consume(COUNT, 0.02):
            assert message.error() is None, message.error()
            self.values.append(message.value())
        self._keep(self.kafka_python.poll(20))

    def _keep(self, batches: dict[Any, list[Any]]) -> None:
        self.values += [record.value for record in chain.from_iterable(batches.values())]

    async def poll(self) -> None:
        """Poll those that have to be polled, while aiokafka reads."""
        await asyncio.to_thread(self._poll_the_others)
        if self.reading.done():
            self.reading.result()

    def owned(self) -> list[list[int]]:
        """Partitions of each."""
        others = (self.kafka_python.assignment(), self.aiokafka.assignment())
        return [
            owned_by(self.librdkafka),
            *(sorted(place.partition for place in places) for places in others),
        ]


@pytest.mark.parametrize(
    "profile",
    [
        pytest.param(name, marks=pytest.mark.kafka_profile(name))
        for name in ("4.4", "3.9", "0.10.2")
    ],
)
@pytest.mark.parametrize("also", ["", pytest.param("franz-go", marks=pytest.mark.real_kafka)])
def test_libraries_share_a_topic(kafka_server: ServedKafka, profile: str, also: str) -> None:
    """Every partition has one owner, every member its share, every record one reader."""
    kafka_server.create_topic("t", PARTITIONS)
    capped = {"max_versions": "0.10.2"} if profile == "0.10.2" else {}
    franz = (
        [FranzConsumer(kafka_server.bootstrap, topic="t", group="g", balancer="range", **capped)]
        if also
        else []
    )

    seen = each_reads_its_part(kafka_server, franz, "classic")
    assert seen["protocol_name"] == "range", profile


@pytest.mark.kafka_profile("4.4")
@pytest.mark.kafka_settings({"group.consumer.heartbeat.interval.ms": 200})
@pytest.mark.parametrize("also", ["", pytest.param("franz-go", marks=pytest.mark.real_kafka)])
def test_classic_members_live_in_a_consumer_group(kafka_server: ServedKafka, also: str) -> None:
    """The broker assigns, to the new members and to the classic ones, each in its own protocol."""
    kafka_server.create_topic("t", PARTITIONS)
    told = {"topic": "t", "group": "g", "balancer": "range", "protocol": "consumer"}
    franz = [FranzConsumer(kafka_server.bootstrap, **told)] if also else []
    seen = each_reads_its_part(kafka_server, franz, "consumer")
    assert seen["protocol_name"] == ("range" if also else "uniform")
    sessions = sorted(each["session_timeout_ms"] for each in seen["members"])
    new, classic = [45_000] * (1 + len(franz)), [QUICK["session_timeout_ms"]] * 2
    assert sessions == [*classic, *new]
    assert kafka_server.wait_for_group("g", "Empty", timeout_s=5)["member_count"] == 0


def each_reads_its_part(
    served: ServedKafka, franz: list[FranzConsumer], protocol: str
) -> dict[str, Any]:
    """All members join, share the partitions, read each record once, and leave.

    Returns:
        The group with all its members.
    """
    seen: dict[str, Any] = {}

    async def program() -> None:
        async with Members(served, protocol) as members:
            deadline_s = time.monotonic() + PATIENCE_S
            share = PARTITIONS // (3 + len(franz))

            def owned() -> list[list[int]]:
                return [*members.owned(), *(each.owned for each in franz)]

            def values() -> list[bytes]:
                return members.values + [value for each in franz for value in each.values]

            while [len(each) for each in owned()] != [share] * (3 + len(franz)):
                assert time.monotonic() < deadline_s, owned()
                await members.poll()
            assert sorted(chain.from_iterable(owned())) == list(range(PARTITIONS))
            numbers = [b"%d" % number for number in range(COUNT)]
            await asyncio.to_thread(produce, served.bootstrap, "t", numbers)
            while len(values()) < COUNT:
                assert time.monotonic() < deadline_s, len(values())
                await members.poll()
            await members.poll()
            assert sorted(values(), key=int) == numbers
            seen.update(served.group("g"))

    try:
        asyncio.run(program())
    finally:
        for each in franz:
            each.close()
    return seen
