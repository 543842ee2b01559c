"""What a Connect worker asks of topics, on a real broker."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from coordinator_sim.connect import effects
from coordinator_sim.errors import DataError
from coordinator_sim.live.data_plane import DataEffect, DataPlane
from coordinator_sim_conformance.real_kafka.kafka import Broker

pytestmark = pytest.mark.real_kafka

DEADLINE_S = 30
RECORDS = ((b"x", b"1"), (b"y", None))


class Asker:
    """Asks one thing after the other, and keeps what is read."""

    def __init__(self, bootstrap: str) -> None:
        self.loop = asyncio.get_running_loop()
        self.plane = DataPlane(bootstrap, client_id="cc-", listener=self, loop=self.loop)
        self.asked_count = 0
        self.waiting: dict[int, asyncio.Future[object]] = {}
        self.records: dict[str, list[effects.TopicRecord]] = {}
        self.positions: dict[str, dict[int, int]] = {}

    def answered(self, token: int, value: object, error: str | None) -> None:
        """Take an answer, or the name of an error."""
        self.waiting.pop(token).set_result(value if error is None else error)

    def fetched(self, fetched: effects.Fetched) -> None:
        """Keep records and positions."""
        kept = self.records.setdefault(fetched.topic, [])
        kept += [record for record in fetched.records if isinstance(record, effects.TopicRecord)]
        self.positions.setdefault(fetched.topic, {}).update(fetched.positions)

    def failed(self, error: DataError) -> None:
        """No part of the worker reports a failure."""
        raise AssertionError(error)

    async def ask(self, effect_of: Callable[[int], DataEffect]) -> object:
        """The answer to an effect, or the name of an error."""
        self.asked_count += 1
        token = self.asked_count
        self.waiting[token] = self.loop.create_future()
        answer = self.waiting[token]
        self.plane.carry_out(effect_of(token))
        return await asyncio.wait_for(answer, DEADLINE_S)

    async def create(self, topic: str, partitions: int, replication_factor: int = 1) -> object:
        """Create a compacted topic."""
        return await self.ask(
            lambda token: effects.CreateTopic(
                token=token,
                topic=topic,
                partitions=partitions,
                replication_factor=replication_factor,
                configs={"cleanup.policy": "compact"},
            )
        )

    async def transact(self, topic: str) -> object:
        """Write `RECORDS` in a transaction."""
        return await self.ask(
            lambda token: effects.ProduceInTransaction(
                token=token, transactional_id="tx", topic=topic, records=RECORDS
            )
        )

    async def read_until(self, topic: str, positions: dict[int, int]) -> None:
        """Wait until the reader is there."""
        async with asyncio.timeout(DEADLINE_S):
            while self.positions.get(topic) != positions:  # noqa: ASYNC110 - a test may look
                await asyncio.sleep(0.05)


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    """A broker that would create any topic it is asked for."""
    with Broker(tmp_path / "broker") as broker:
        yield broker.bootstrap


async def ask_everything(bootstrap: str) -> None:
    """Topics, a log, transactions, fencing."""
    asker = Asker(bootstrap)
    try:
        await check_topics(asker)
        await check_log(asker)
        await check_transactions(asker)
    finally:
        await asyncio.to_thread(asker.plane.close)


async def check_topics(asker: Asker) -> None:
    """Asking for a topic does not create it; a second creation says that it is there."""
    assert isinstance(await asker.ask(effects.DescribeCluster), str)
    assert await asker.ask(lambda token: effects.DescribeTopic(token, "log")) == 0
    assert await asker.create("log", 1) is True
    assert await asker.create("log", 1) is False
    assert await asker.create("many", 1, 3) == "InvalidReplicationFactorException"
    assert await asker.ask(lambda token: effects.DescribeTopic(token, "log")) == 1


async def check_log(asker: Asker) -> None:
    """Records come back in order, with the offsets that their writer was told."""
    asker.plane.carry_out(effects.StartReading("log", read_committed=True))
    for number, key in enumerate((b"a", b"b")):
        offset = await asker.ask(
            lambda token, key=key: effects.Produce(token=token, topic="log", key=key, value=None)  # type: ignore[misc] # a default
        )
        assert offset == number
    await asker.read_until("log", {0: 2})
    assert [(r.offset, r.key) for r in asker.records["log"]] == [(0, b"a"), (1, b"b")]


async def check_transactions(asker: Asker) -> None:
    """The position goes past a transaction's marker; who is fenced is told so."""
    assert await asker.ask(lambda token: effects.InitTransactions(token, "tx")) is None
    assert await asker.transact("log") is None
    await asker.read_until("log", {0: 5})  # the marker may come after the commit's answer
    ends = await asker.ask(lambda token: effects.ListEndOffsets(token, "log", read_committed=True))
    assert ends == {0: 5}
    assert [(r.key, r.value) for r in asker.records["log"][2:]] == list(RECORDS)
    assert await asker.ask(lambda token: effects.FenceProducers(token, ("tx",))) is None
    assert await asker.transact("log") == "ProducerFencedException"
    asker.plane.carry_out(effects.StopReading("log"))


def test_topics_logs_and_transactions_are_as_a_worker_wants_them(bootstrap: str) -> None:
    """Every effect of the data plane, once."""
    asyncio.run(ask_everything(bootstrap))
