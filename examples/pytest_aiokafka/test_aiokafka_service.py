"""Tests of a service on aiokafka, in virtual time: an hour of it in a second, and repeatable.

Run them: pytest examples/pytest_aiokafka
"""

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from coordinator_sim.server.virtual_time import VirtualKafka
from coordinator_sim_pytest import converged_within, no_commit_lost, no_double_ownership
from coordinator_sim_pytest.virtual import KafkaInVirtualTime

TOPIC = "orders"


async def service(bootstrap: str, name: str, handled: list[bytes]) -> None:
    """One process of the service: a member of the group `billing`, until it is cancelled."""
    consumer = AIOKafkaConsumer(
        TOPIC,
        bootstrap_servers=bootstrap,
        client_id=name,
        group_id="billing",
        auto_offset_reset="earliest",
        fetch_max_wait_ms=10_000,
    )
    await consumer.start()
    try:
        async for order in consumer:
            handled.append(order.value)  # noqa: PERF401 - a cancellation keeps them
    finally:
        await consumer.stop()


async def produce(bootstrap: str, count: int, every_s: float) -> None:
    """Orders come in."""
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number in range(count):
            await producer.send_and_wait(TOPIC, b"%d" % number)
            await asyncio.sleep(every_s)


async def bounced(kafka: VirtualKafka) -> list[bytes]:
    """Three processes, each restarted once in a quarter of an hour, while orders come in."""
    handled: list[bytes] = []

    def started(name: str) -> asyncio.Task[None]:
        return asyncio.create_task(service(kafka.bootstrap, name, handled))

    processes = {name: started(name) for name in ("a", "b", "c")}
    producing = asyncio.create_task(produce(kafka.bootstrap, count=180, every_s=5))
    for name, process in processes.items():
        await asyncio.sleep(240)
        process.cancel()
        await asyncio.wait([process])
        await asyncio.sleep(20)
        processes[name] = started(name)
    await producing
    await asyncio.sleep(60)
    for process in processes.values():
        process.cancel()
    await asyncio.wait(processes.values())
    return handled


def test_a_rolling_bounce_handles_every_order_once(virtual_kafka: KafkaInVirtualTime) -> None:
    """Each restart is two rebalances; nobody handles an order twice, and none is left out."""
    run = virtual_kafka.run(bounced, topics={TOPIC: 6})
    assert sorted(map(int, run.result)) == list(range(180))
    no_double_ownership(run, judged=6)
    no_commit_lost(run)
    converged_within(run, 10_000)


@pytest.mark.kafka_faults(
    {"match": {"api": "Heartbeat", "client_id": "b"}, "action": {"do": "drop"}, "times": 3}
)
def test_a_member_whose_heartbeats_get_lost(virtual_kafka: KafkaInVirtualTime) -> None:
    """It comes back, and every order is handled all the same, some of them perhaps twice."""
    run = virtual_kafka.run(bounced, topics={TOPIC: 6})
    assert {int(order) for order in run.result} == set(range(180))
    no_double_ownership(run)
