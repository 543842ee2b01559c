"""Produce requests that take long, while what they were checked against changes."""

import pytest

from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.changes import TopicCreated, TopicDeleted
from coordinator_sim.broker.transactions.verification import TransactionalWrite
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.format.compression import Compression
from coordinator_sim_conformance.field_frames import Fields
from tests.unit.broker.data_world import TOPIC_ID, DataWorld, batch_of

MANY = 30_000
PRODUCER = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
LARGE = batch_of(*(b"",) * MANY, compression=Compression.GZIP, **PRODUCER)
SMALL = batch_of(b"a", **PRODUCER)
WIDE_ID = b"\x09" * 16


class Gate:
    """Answers as it is told to."""

    def __init__(self) -> None:
        self.error = ErrorCode.NONE

    def verify_or_add(self, _write: TransactionalWrite) -> ErrorCode:
        """As `TransactionGate.verify_or_add`."""
        return self.error


def produce(world: DataWorld, version: int) -> None:
    """Send a large batch to partition 0 of `wide` and a small one to partition 1."""
    world.image.apply(TopicCreated("wide", WIDE_ID, ((1,), (1,))))
    topic = {
        "name": "wide",
        "topicId": WIDE_ID,
        "partitionData": [{"index": 0, "records": LARGE}, {"index": 1, "records": SMALL}],
    }
    request = {"acks": 1, "timeoutMs": 1_000, "transactionalId": "x", "topicData": [topic]}
    _, answer = world.call(ApiKey.PRODUCE, version, request)
    assert answer is None


def errors_of(world: DataWorld, version: int) -> list[int]:
    """Finish the request; what it is told of its partitions."""
    while world.jobs.has_work:
        world.jobs.work(Instants(world.now_ms, world.now_ms))
    (token,) = world.answers
    answer = world.late(ApiKey.PRODUCE, version, token)
    assert answer is not None
    told: list[Fields] = answer["responses"][0]["partitionResponses"]
    return [each["errorCode"] for each in told]


@pytest.mark.parametrize("version", [9, 13])
def test_a_transaction_that_ended_takes_no_record_of_any_partition(version: int) -> None:
    """Also not where only the records of a partition before it took long."""
    gate = Gate()
    world = DataWorld(gate=gate)
    produce(world, version)
    gate.error = ErrorCode.INVALID_TXN_STATE
    assert errors_of(world, version) == [ErrorCode.INVALID_TXN_STATE] * 2
    assert [world.log("wide", each).end_offset for each in (0, 1)] == [0, 0]


def test_a_topic_id_means_no_topic_of_the_same_name_that_came_later() -> None:
    """Records for the old topic do not go into the new one."""
    world = DataWorld()
    produce(world, 13)
    world.image.apply(TopicDeleted("wide"))
    world.image.apply(TopicCreated("wide", TOPIC_ID[::-1][:15] + b"\x01", ((1,), (1,))))
    assert errors_of(world, 13) == [ErrorCode.UNKNOWN_TOPIC_ID] * 2
    assert [world.log("wide", each).end_offset for each in (0, 1)] == [0, 0]
