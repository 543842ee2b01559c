"""Unmodified aiokafka clients and a served cluster on one virtual loop."""

import asyncio
import inspect
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from coordinator_sim.broker.security.plain import PlainUsers
from coordinator_sim.broker.settings import ClusterSettings
from coordinator_sim.errors import ConfigError
from coordinator_sim.server import virtual_time
from coordinator_sim.server.kafka_server import KafkaServer
from coordinator_sim.server.virtual_loop import VirtualDeadlock, VirtualLoop

pytest.importorskip("aiokafka")

ROOT = Path(__file__).resolve().parents[3]


async def partitions_an_hour_later(kafka: virtual_time.VirtualKafka) -> int:
    """What an admin client hears after an idle hour."""
    from aiokafka.admin import AIOKafkaAdminClient

    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    await admin.start()
    await asyncio.sleep(3_600)
    (topic,) = await admin.describe_topics(["orders"])
    await admin.close()
    return len(topic["partitions"])


def an_hour(seed: int = 0) -> virtual_time.VirtualRun[int]:
    """One run of it, on three brokers."""
    cluster = ClusterSettings(broker_ids=(1, 2, 3))
    return virtual_time.run_in_virtual_time(
        partitions_an_hour_later, cluster=cluster, topics={"orders": 4}, seed=seed
    )


def test_a_client_sees_an_hour_pass() -> None:
    """The client refreshes its metadata meanwhile, as it would."""
    run = an_hour()
    assert run.result == 4
    assert run.lasted_us > 3_600_000_000
    assert run.frame_count > 20


def test_equal_seeds_give_equal_digests() -> None:
    """The seed decides member ids, topic ids, and the client's shuffles."""
    assert an_hour(1).digest == an_hour(1).digest != an_hour(2).digest


def test_a_program_that_waits_for_ever_is_stopped() -> None:
    """A served cluster alone keeps no time going."""

    async def main(_kafka: virtual_time.VirtualKafka) -> None:
        await asyncio.Event().wait()

    with pytest.raises(VirtualDeadlock, match="for ever"):
        virtual_time.run_in_virtual_time(main)


def test_a_program_that_idle_clients_keep_going_is_stopped_too() -> None:
    """The program waits for a record that nobody sends."""
    from aiokafka import AIOKafkaConsumer

    async def main(kafka: virtual_time.VirtualKafka) -> None:
        async with AIOKafkaConsumer("orders", bootstrap_servers=kafka.bootstrap) as consumer:
            await consumer.getone()

    loop_factory = partial(VirtualLoop, limit_s=100)
    with pytest.raises(VirtualDeadlock, match=r"did not end in 100 virtual seconds.*getone"):
        virtual_time.run_in_virtual_time(main, topics={"orders": 1}, loop_factory=loop_factory)


def test_a_real_loop_is_refused() -> None:
    """With the way out."""

    async def main() -> None:
        async with virtual_time.kafka_in_virtual_time():
            pass

    with pytest.raises(ConfigError, match="loop_factory=VirtualLoop"):
        asyncio.run(main())


SASL = ClusterSettings(
    users=PlainUsers({"alice": "secret"}), given={"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256"}
)


def consumed_by(mechanism: str) -> virtual_time.VirtualRun[bytes]:
    """A record that a consumer reads which has said who it is."""
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async def main(kafka: virtual_time.VirtualKafka) -> bytes:
        who = {
            "bootstrap_servers": kafka.sasl_bootstrap,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": mechanism,
            "sasl_plain_username": "alice",
            "sasl_plain_password": "secret",
        }
        consumer = AIOKafkaConsumer("orders", group_id="g", auto_offset_reset="earliest", **who)
        async with AIOKafkaProducer(**who) as producer, consumer:
            await producer.send_and_wait("orders", b"first")
            record = await consumer.getone()
        value: bytes = record.value
        return value

    return virtual_time.run_in_virtual_time(main, cluster=SASL, topics={"orders": 1})


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_client_that_says_who_it_is(mechanism: str) -> None:
    """Steps of SASL, nonces included, are repeatable too, and so in one process."""
    run = consumed_by(mechanism)
    assert run.result == b"first"
    assert run.digest == consumed_by(mechanism).digest


def test_members_of_a_broker_that_is_gone_find_the_next() -> None:
    """A broker is killed; its clients see resets, and the group goes on at its successor."""
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async def main(kafka: virtual_time.VirtualKafka) -> list[bytes]:
        consumer = AIOKafkaConsumer(
            "orders",
            bootstrap_servers=kafka.bootstrap,
            group_id="g",
            auto_offset_reset="earliest",
            metadata_max_age_ms=5_000,
        )
        async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap) as producer, consumer:
            await producer.send_and_wait("orders", b"first")
            found = [(await consumer.getone()).value]
            topics = kafka.server.cluster.image.topics
            leader_id = topics["orders"].partitions[0].leader_id
            await kafka.server.stop_broker(leader_id)
            await asyncio.sleep(60)
            await producer.send_and_wait("orders", b"second")
            found.append((await consumer.getone()).value)
        return found

    cluster = ClusterSettings(broker_ids=(1, 2, 3), default_replication_factor=3)
    run = virtual_time.run_in_virtual_time(main, cluster=cluster, topics={"orders": 1})
    assert run.result == [b"first", b"second"]


COROUTINES = {
    name: function
    for name, function in inspect.getmembers(KafkaServer, inspect.iscoroutinefunction)
    if not name.startswith("_")
}


@pytest.mark.parametrize("name", COROUTINES)
def test_coroutine_that_is_not_awaited_fails_the_run(name: str) -> None:
    """A broker that should have been stopped and lives would make any test pass."""
    wanted = inspect.signature(COROUTINES[name]).parameters.values()
    words = [1 for each in wanted if each.default is inspect.Parameter.empty]

    async def main(kafka: virtual_time.VirtualKafka) -> None:
        getattr(kafka.server, name)(*words[1:])

    with pytest.raises(virtual_time.NotAwaited, match=rf"write `await kafka.server.{name}\(...\)`"):
        virtual_time.run_in_virtual_time(main)


def test_coroutine_that_is_awaited_or_a_task_is_no_failure() -> None:
    """Whoever awaits them: the program, a task, or the server itself."""

    async def main(kafka: virtual_time.VirtualKafka) -> None:
        await asyncio.create_task(kafka.server.stop_broker(1))
        await kafka.server.resume_broker(1)

    virtual_time.run_in_virtual_time(main)


def test_group_has_its_coordinator_and_an_unknown_one_is_refused() -> None:
    """As `kafka_server.group` has it."""

    async def main(kafka: virtual_time.VirtualKafka) -> dict[str, object]:
        from aiokafka import AIOKafkaConsumer

        with pytest.raises(ConfigError, match="no coordinator has a group 'g'"):
            kafka.group("g")
        async with AIOKafkaConsumer("t", bootstrap_servers=kafka.bootstrap, group_id="g"):
            await asyncio.sleep(10)
            return kafka.group("g")

    group = virtual_time.run_in_virtual_time(main, topics={"t": 1}).result
    assert (group["coordinator_id"], group["state"], group["member_count"]) == (1, "Stable", 1)


def test_transactions_copy_every_record_once_and_repeatably() -> None:
    """Five members, three brokers of which one dies, coordinators that move; in two processes."""
    command = [sys.executable, "-m", "tests.unit.server.exactly_once"]
    environment = {**os.environ, "PYTHONHASHSEED": "3", "PYTHONPATH": str(ROOT)}
    one, other = (
        subprocess.run(command, capture_output=True, check=True, cwd=ROOT, env=environment).stdout
        for _ in range(2)
    )
    assert json.loads(one)["copied"] == list(range(300))
    assert one == other
