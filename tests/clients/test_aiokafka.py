"""aiokafka at `coordinator-sim serve`: groups, commits, transactions, seeks."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import chain
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import ProducerFenced

from coordinator_sim_pytest.server import ServedKafka

PATIENCE_S = 60
PARTITIONS = 4
MODERN = [pytest.param(name, marks=pytest.mark.kafka_profile(name)) for name in ("4.4", "3.9")]


def run(program: Awaitable[None]) -> None:
    """Run a program, for so long at most."""

    async def bounded() -> None:
        await asyncio.wait_for(program, PATIENCE_S)

    asyncio.run(bounded())


async def consumer(served: ServedKafka, group: str | None = "g", **settings: Any) -> Any:  # noqa: ANN401 - of any type
    """A started consumer that hears of a rebalance within 200 ms."""
    made = AIOKafkaConsumer(
        *settings.pop("topics", ["t"]),
        bootstrap_servers=served.bootstrap,
        group_id=group,
        heartbeat_interval_ms=200,
        session_timeout_ms=10_000,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        fetch_max_wait_ms=50,
        **settings,
    )
    await made.start()
    return made


async def produce(served: ServedKafka, first: int, count: int, **settings: Any) -> None:  # noqa: ANN401 - of any type
    """Produce numbers, one partition after the other."""
    async with AIOKafkaProducer(
        bootstrap_servers=served.bootstrap, linger_ms=2, **settings
    ) as producer:
        sent = [
            await producer.send("t", b"%d" % number, partition=number % PARTITIONS)
            for number in range(first, first + count)
        ]
        await asyncio.gather(*sent)


async def poll_until(consumers: Sequence[Any], is_done: Callable[[list[int]], bool]) -> list[int]:
    """Poll in turns; numbers seen."""
    seen: list[int] = []
    deadline_s = time.monotonic() + PATIENCE_S
    while not is_done(seen):
        assert time.monotonic() < deadline_s, (len(seen), [c.assignment() for c in consumers])
        for each in consumers:
            batches = (await each.getmany(timeout_ms=20)).values()
            seen += [int(record.value) for record in chain.from_iterable(batches)]
    return seen


def owns_all(consumers: Sequence[Any]) -> bool:
    """Whether every partition has one owner and every consumer one."""
    owned = [sorted(place.partition for place in each.assignment()) for each in consumers]
    return all(owned) and sorted(chain.from_iterable(owned)) == list(range(PARTITIONS))


@pytest.mark.parametrize("profile", MODERN)
@pytest.mark.parametrize(
    "assignor", [RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor]
)
def test_members_come_and_go_and_each_record_is_read_once(
    kafka_server: ServedKafka, profile: str, assignor: type[AbstractPartitionAssignor]
) -> None:
    """Three rebalances, with records and commits between them."""
    kafka_server.create_topic("t", PARTITIONS)

    async def program() -> None:
        settings = {"partition_assignment_strategy": (assignor,)}
        first = await consumer(kafka_server, **settings)
        await poll_until([first], lambda _: owns_all([first]))
        second = await consumer(kafka_server, **settings)
        await poll_until([first, second], lambda _: owns_all([first, second]))
        await produce(kafka_server, 0, 200)
        seen = await poll_until([first, second], lambda seen: len(seen) >= 200)
        await asyncio.gather(first.commit(), second.commit())
        await first.stop()
        await poll_until([second], lambda _: owns_all([second]))
        await produce(kafka_server, 200, 200)
        seen += await poll_until([second], lambda seen: len(seen) >= 200)
        assert sorted(seen) == list(range(400)), profile
        await second.commit()
        assert await second.committed(TopicPartition("t", 3)) == 100
        await second.stop()

    run(program())
    kafka_server.wait_for_group("g", "Empty")


@pytest.mark.parametrize("profile", MODERN)
def test_position_moves_as_told(kafka_server: ServedKafka, profile: str) -> None:
    """Seek, ends of logs, offsets by time, and commits with words beside them."""
    kafka_server.create_topic("t", PARTITIONS)
    place = TopicPartition("t", 1)

    async def program() -> None:
        await produce(kafka_server, 0, 100 * PARTITIONS)
        each = await consumer(kafka_server, topics=[])
        each.assign([place])
        each.seek(place, 90)
        wanted = [number * PARTITIONS + 1 for number in range(90, 100)]
        assert await poll_until([each], lambda seen: len(seen) >= 10) == wanted
        await each.seek_to_beginning(place)
        assert await each.position(place) == 0
        assert await each.beginning_offsets([place]) == {place: 0}
        assert await each.end_offsets([place]) == {place: 100}
        found = await each.offsets_for_times({place: 1_000})
        assert found[place].offset == 0, profile
        await each.commit({place: (42, "so far")})
        assert await each.committed(place) == 42
        await each.stop()

    run(program())


@pytest.mark.parametrize("profile", MODERN)
def test_static_member_that_restarts_disturbs_nobody(
    kafka_server: ServedKafka, profile: str
) -> None:
    """The member has the same partitions, in the same generation."""
    kafka_server.create_topic("t", PARTITIONS)

    async def program() -> None:
        first = await consumer(kafka_server, group_instance_id="a")
        second = await consumer(kafka_server, group_instance_id="b")
        await poll_until([first, second], lambda _: owns_all([first, second]))
        before = kafka_server.wait_for_group("g", "Stable", members=2)
        owned = first.assignment()
        await first.stop()
        again = await consumer(kafka_server, group_instance_id="a")
        await poll_until([again, second], lambda _: owns_all([again, second]))
        after = kafka_server.wait_for_group("g", "Stable", members=2)
        assert again.assignment() == owned, profile
        assert after["generation"] == before["generation"]
        await asyncio.gather(again.stop(), second.stop())

    run(program())


@pytest.mark.parametrize("profile", MODERN)
def test_committed_records_alone_are_read(kafka_server: ServedKafka, profile: str) -> None:
    """Transactions with records and offsets, one of them aborted, and a fenced producer."""
    kafka_server.create_topic("t", PARTITIONS)
    place = TopicPartition("t", 0)

    async def transactional() -> Any:  # noqa: ANN401 - without types
        made = AIOKafkaProducer(bootstrap_servers=kafka_server.bootstrap, transactional_id="x")
        await made.start()
        return made

    async def transact(producer: Any, number: int, end: str) -> None:  # noqa: ANN401 - without types
        await producer.begin_transaction()
        await producer.send_and_wait("t", b"%d" % number, partition=0)
        await producer.send_offsets_to_transaction({place: number}, "g")
        await getattr(producer, end)()

    async def program() -> None:
        producer = await transactional()
        for number, end in ((1, "commit_transaction"), (2, "abort_transaction")):
            await transact(producer, number, end)
        later = await transactional()
        await transact(later, 3, "commit_transaction")
        with pytest.raises(ProducerFenced):
            await transact(producer, 4, "commit_transaction")
        each = await consumer(kafka_server, topics=[], isolation_level="read_committed")
        each.assign([place])
        assert await each.committed(place) == 3, profile
        each.seek(place, 0)
        assert await poll_until([each], lambda seen: len(seen) >= 2) == [1, 3]
        assert await each.getmany(timeout_ms=200) == {}
        for client in (each, later, producer):
            await client.stop()

    run(program())


@pytest.mark.kafka_faults(
    {"match": {"api": "Produce", "nth": 1}, "phase": "after", "action": {"do": "close"}}
)
def test_idempotent_records_are_there_once(kafka_server: ServedKafka) -> None:
    """Although the first answer is lost, and the producer sends its batches again."""
    kafka_server.create_topic("t", PARTITIONS)

    async def program() -> None:
        await produce(kafka_server, 0, 400, enable_idempotence=True)
        each = await consumer(kafka_server)
        seen = await poll_until([each], lambda seen: len(seen) >= 400)
        assert sorted(seen) == list(range(400))
        await each.stop()

    run(program())
    (fault,) = kafka_server.control.get("/v1/faults")
    assert fault["hits"] == 1
