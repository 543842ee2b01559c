"""Five aiokafka members copy records in transactions while brokers fall and coordinators move.

`python -m tests.unit.server.exactly_once` prints what came of it as JSON: in virtual time, five
minutes and then two of calm.
"""

import asyncio
import json
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from coordinator_sim.broker.settings import ClusterSettings
from coordinator_sim.server.virtual_time import VirtualKafka, VirtualRun, run_in_virtual_time
from coordinator_sim_pytest.stories import invariants_hold, no_double_ownership

GROUP = "copiers"
SOURCE, COPY = "source", "copy"
MEMBERS = 5
RECORDS = 300
TOPICS = {SOURCE: 8, COPY: 4}
THREE_BROKERS = ClusterSettings(broker_ids=(1, 2, 3), default_replication_factor=3)


async def copy(bootstrap: str, name: str) -> None:
    """One process: reads, writes and commits in one transaction, until it is cancelled."""
    consumer = AIOKafkaConsumer(
        SOURCE,
        bootstrap_servers=bootstrap,
        group_id=GROUP,
        client_id=name,
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=5_000,
    )
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)
    async with consumer, producer:
        while True:
            batches = await consumer.getmany(timeout_ms=2_000)
            if not batches:
                continue
            async with producer.transaction():
                for records in batches.values():
                    for record in records:
                        await producer.send(COPY, record.value)
                ends = {place: records[-1].offset + 1 for place, records in batches.items()}
                await producer.send_offsets_to_transaction(ends, GROUP)


async def copied(bootstrap: str) -> list[int]:
    """What there is to read of the copy."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed")
    found: list[int] = []
    async with consumer:
        consumer.assign([TopicPartition(COPY, index) for index in range(TOPICS[COPY])])
        await consumer.seek_to_beginning()
        while batches := await consumer.getmany(timeout_ms=5_000):
            found += [int(record.value) for each in batches.values() for record in each]
    return found


async def story(kafka: VirtualKafka) -> list[int]:
    """A record a second; the coordinator moves every minute, broker 2 is dead for one."""
    members = [asyncio.create_task(copy(kafka.bootstrap, f"m{n}")) for n in range(MEMBERS)]
    operations = kafka.server.cluster.operations
    async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap) as producer:
        for number in range(RECORDS):
            await producer.send_and_wait(SOURCE, b"%d" % number)
            await asyncio.sleep(1)
            if number % 60 == 30:
                operations.move_coordinator(GROUP, None, kafka.server.now())
            if number == 100:
                await kafka.server.stop_broker(2)
            if number == 160:
                await kafka.server.resume_broker(2)
    await asyncio.sleep(120)
    for member in members:
        member.cancel()
    await asyncio.gather(*members, return_exceptions=True)
    return await copied(kafka.bootstrap)


def run() -> VirtualRun[list[int]]:
    """One run of it."""
    return run_in_virtual_time(story, cluster=THREE_BROKERS, topics=TOPICS)


def main() -> None:
    """Print the digest, and what was copied."""
    done = run()
    invariants_hold(done.events)
    no_double_ownership(done.events)
    sys.stdout.write(json.dumps({"digest": done.digest, "copied": sorted(done.result)}))


if __name__ == "__main__":
    main()
