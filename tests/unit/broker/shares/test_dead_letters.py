"""Dead-letter queues of share groups: retries, lost brokers, rights, and what is copied.

What a real broker does without faults is in `test_share_answers`.
"""

import pytest

from coordinator_sim.broker.metadata.image import NO_LEADER
from coordinator_sim.broker.shares import dead_letter_records
from coordinator_sim.broker.shares.dead_letters import DeadLetterCause, DeadLetters
from coordinator_sim.broker.shares.persister import SharePartitionKey
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.log.format.record_batches import Record, encode_record_batch
from coordinator_sim.log.format.record_batches import batch_of as record_batch_of
from coordinator_sim.log.format.stored_batches import next_batch
from coordinator_sim.log.memory_store import MemoryStore
from coordinator_sim.log.partition_log import PartitionLog
from tests.unit.broker.shares.share_world import (
    AUTHORIZER,
    GROUP,
    GROUP_ACL,
    READ,
    REJECT,
    TOPIC_ACL,
    ShareWorld,
    acquired,
    errors,
    share_world,
)

QUEUE = "dlq.g"
ALTER_CONFIGS = 11
IS_QUEUE = {"errors.deadletterqueue.group.enable": "true"}
LETTERS = DeadLetters(
    SharePartitionKey(GROUP, b"\1" * 16, 3), "lines", 0, 9, 2, DeadLetterCause.CLIENT_REJECT
)


def queue_world(
    brokers: tuple[int, ...] = (1,), leaders: tuple[int, ...] = (1,), **given: str
) -> tuple[ShareWorld, list[str]]:
    """A world whose group has a queue, and the lines of the brokers' log."""
    world = share_world(brokers, **given)
    troubles: list[str] = []
    world.cluster.cluster_events.trouble.append(troubles.append)
    replicas = tuple((leader, *(each for each in brokers if each != leader)) for leader in leaders)
    world.cluster.topics.create(QUEUE, replicas, world.now, dict(IS_QUEUE))
    world.allow(GROUP_ACL, GROUP, READ, ALTER_CONFIGS)
    world.allow(TOPIC_ACL, "lines", READ)
    world.set(errors_deadletterqueue_topic_name=QUEUE)
    world.start()
    return world, troubles


def offsets_told(world: ShareWorld, topic: str = QUEUE, partition: int = 0) -> list[int]:
    """The offsets of the originals, in the order of a queue's records."""
    return [
        int(dict(record.headers)["__dlq.errors.offset"] or b"")
        for record in records(world, topic, partition)
    ]


def records(world: ShareWorld, topic: str = QUEUE, partition: int = 0) -> list[Record]:
    """The records of a queue."""
    log = world.cluster.logs.log_of(topic, partition)
    assert log is not None
    return [record for data in log.chunks() for record in records_in(data)]


def records_in(data: bytes) -> list[Record]:
    """The records of some batches."""
    found: list[Record] = []
    position = 0
    while (batch := next_batch(data, position)) is not None:
        position += batch.size
        found += batch.records()
    return found


def reject(world: ShareWorld, last: int = 4) -> None:
    """Read all five records, and reject the first of them."""
    assert acquired(world.fetch()) == {0: [(0, 4, 1)]}
    assert errors(world.acknowledge(1, (0, last, REJECT))) == [0]


def test_leader_of_the_queue_that_is_lost_is_tried_again() -> None:
    """Another leader is elected meanwhile; the records are archiving until it has them."""
    world, troubles = queue_world(brokers=(1, 2), leaders=(2,))
    world.cluster.operations.stop(2, world.now)

    reject(world)
    world.client.wait(100)
    before = world.fetch(2, maxWaitMs=0)
    world.client.wait(30_000)

    assert acquired(before) == {}
    assert offsets_told(world) == [0, 1, 2, 3, 4]
    assert troubles == []


def test_queue_without_a_leader_is_given_up_after_five_attempts() -> None:
    """Kafka asks for the topic's creation each time, and has the records archived then."""
    world, troubles = queue_world(brokers=(1, 2), leaders=(2,))
    world.cluster.leadership.elect(QUEUE, 0, NO_LEADER, world.now)
    reject(world)
    # Four waits of 2, 4, 8 and 16 seconds, each up to a fifth more or less.
    world.client.wait(23_000)
    early = list(troubles)
    world.client.wait(14_000)

    (line,) = troubles
    assert early == []
    assert line == (
        "share group g: offsets 0 to 4 of lines-0 are archived without their dead-letter queue: "
        "Exhausted max retries to create DLQ topic without success."
    )
    assert acquired(world.fetch(2, maxWaitMs=0)) == {}


def test_broker_that_is_stopped_writes_no_dead_letters() -> None:
    """The next leader finds archiving records in their state, and writes them instead."""
    world, _ = queue_world(brokers=(1, 2), leaders=(2,))
    lead(world, 1)
    world.cluster.operations.pause(2, world.now)
    reject(world)
    world.cluster.operations.stop(1, world.now)
    world.cluster.operations.resume(2, world.now)
    world.client.wait(60_000)
    nothing = records(world)

    other = world.connect(2)
    world.fetch(client=other, maxWaitMs=0)
    other.wait(1_000)

    assert nothing == []
    assert offsets_told(world) == [0, 1, 2, 3, 4]


def lead(world: ShareWorld, broker_id: int) -> None:
    """Let a broker lead the partition that is read, and the state of groups."""
    for topic in ("lines", "__share_group_state", "__consumer_offsets"):
        for number, state in enumerate(world.cluster.image.topics[topic].partitions):
            if state.leader_id != broker_id:
                world.cluster.leadership.elect(topic, number, broker_id, world.now)


def test_brokers_need_no_rights_to_write_dead_letters() -> None:
    """An authorizer that gives clients no right on the queue does not stop them."""
    world, _ = queue_world(authorizer_class_name=AUTHORIZER)
    reject(world, last=1)
    world.client.wait(1_000)

    assert offsets_told(world) == [0, 1]


@pytest.mark.parametrize("name", ["", "org.apache.kafka.server.share.dlq.NoOpShareGroupDLQManager"])
def test_without_a_manager_dead_letters_are_dropped(name: str) -> None:
    """The records are archived at once, and the log has no line of it."""
    world, troubles = queue_world(group_share_dlq_manager_class_name=name)

    reject(world)
    world.client.wait(1_000)

    assert (records(world), troubles) == ([], [])
    assert world.offsets()["topics"][0]["partitions"][0]["lag"] == 0


def test_queue_that_is_no_more_when_records_are_archiving_gets_none() -> None:
    """A group without settings has no queue; what was given up is archived."""
    world, troubles = queue_world(brokers=(1, 2), leaders=(2,))
    world.cluster.operations.pause(2, world.now)
    reject(world)
    configs = [{"name": "errors.deadletterqueue.topic.name", "configOperation": 1, "value": None}]
    resource = {"resourceType": 32, "resourceName": GROUP, "configs": configs}
    fields = {"resources": [resource], "validateOnly": False}
    world.client.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, fields)
    world.client.wait(30_000)

    (line,) = troubles
    assert line.endswith("Configured DLQ topic name in share group: g is empty.")
    assert records(world) == []


def test_many_letters_are_written_one_at_a_time() -> None:
    """A client may reject thousands at once; between two of them others are answered."""
    world, _ = queue_world()
    assert acquired(world.fetch()) == {0: [(0, 4, 1)]}
    world.acknowledge(1, *((offset, offset, REJECT) for offset in (0, 2, 4)))

    world.cluster.expire(world.now)
    first = offsets_told(world)
    world.client.wait(10)

    assert (first, offsets_told(world)) == ([0], [0, 2, 4])


def test_records_of_another_topic_with_the_same_name_are_not_copied() -> None:
    """The topic is deleted and created again before its dead letters are written."""
    world, _ = queue_world()
    world.set(
        errors_deadletterqueue_topic_name=QUEUE, errors_deadletterqueue_copy_record_enable="true"
    )
    reject(world)
    world.cluster.topics.delete("lines", world.now)
    world.cluster.topics.create_spread("lines", 1, world.now)
    world.produce(5)
    world.client.wait(1_000)

    assert [record.value for record in records(world)] == [None] * 5


def log_of(*batches: bytes) -> PartitionLog:
    """A log with some batches."""
    log = PartitionLog("lines", 0, MemoryStore())
    for batch in batches:
        log.append(batch, now_ms=0, leader_epoch=0)
    return log


def batch(*sizes: int, compression: int = 0) -> bytes:
    """A batch of records with values of so many bytes."""
    made = tuple(
        Record(offset=index, timestamp_ms=0, key=None, value=b"x" * size)
        for index, size in enumerate(sizes)
    )
    return encode_record_batch(record_batch_of(made, compression=compression))


def test_originals_are_read_up_to_the_limit_of_all_together() -> None:
    """What is left is for the next read; a record that is too large itself is passed over."""
    log = log_of(batch(10, 10), batch(500, 10, 60))

    first = dead_letter_records.OriginalsReader(0, 4, 100).read(log)
    second = dead_letter_records.OriginalsReader(first.last_offset + 1, 4, 100).read(log)

    assert (sorted(first.records), first.last_offset) == ([0, 1, 3], 3)
    assert (sorted(second.records), second.last_offset) == ([4], 4)


def test_compressed_batch_that_is_too_large_is_passed_over_as_a_whole() -> None:
    """Records of others are copied all the same."""
    log = log_of(batch(10), batch(100, 1, compression=1), batch(10))

    found = dead_letter_records.OriginalsReader(0, 3, 100).read(log)

    assert (sorted(found.records), found.last_offset) == ([0, 3], 3)


def test_originals_that_are_deleted_are_not_copied() -> None:
    """The log begins later: reading ends, and all are told of without a copy."""
    log = log_of(batch(1, 1, 1))
    log.delete_before(2)

    assert dead_letter_records.OriginalsReader(0, 2, 100).read(
        log
    ) == dead_letter_records.Originals({}, 2)


def test_batch_of_the_queue_ends_before_its_limit() -> None:
    """At least one record is in it; the rest is for the next batch."""
    none = dead_letter_records.Originals({}, 9)
    _, all_of_them = dead_letter_records.dead_letter_batch(LETTERS, 0, none, 5, 1 << 20)
    data, last = dead_letter_records.dead_letter_batch(LETTERS, 0, none, 5, 600)
    _, only_one = dead_letter_records.dead_letter_batch(LETTERS, 4, none, 5, 10)

    told = records_in(data)
    assert (all_of_them, last, only_one) == (9, 2, 4)
    assert len(data) <= 600
    assert told[2].headers == (
        ("__dlq.errors.topic", b"lines"),
        ("__dlq.errors.partition", b"3"),
        ("__dlq.errors.offset", b"2"),
        ("__dlq.errors.group", b"g"),
        ("__dlq.errors.delivery.count", b"2"),
        ("__dlq.errors.message", b"Offset rejected by client."),
    )
