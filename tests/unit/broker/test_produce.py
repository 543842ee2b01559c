"""Produce without sockets."""

import struct

import pytest

from coordinator_sim.broker.metadata.changes import ConfigsChanged, LeaderElected, TopicCreated
from coordinator_sim.broker.security.authorizer import Acl, AclAuthorizer, Operation, ResourceType
from coordinator_sim.broker.transactions.verification import TransactionalWrite
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.format.compression import Compression
from coordinator_sim.log.memory_store import MemoryStore
from tests.unit.broker.data_world import DataWorld, batch_of, partition_of


@pytest.fixture
def world() -> DataWorld:
    """Two brokers and a topic."""
    return DataWorld()


def test_records_are_appended_and_acknowledged(world: DataWorld) -> None:
    """The answer tells the offset of the first record and the log's start."""
    world.produced(batch_of(b"a", b"b"))
    assert world.produced(batch_of(b"c")) == {
        "index": 0,
        "errorCode": 0,
        "baseOffset": 2,
        "logAppendTimeMs": -1,
        "logStartOffset": 0,
        "recordErrors": [],
        "errorMessage": None,
        "currentLeader": {"leaderId": -1, "leaderEpoch": -1},
    }


def test_version_13_names_the_topic_by_its_id(world: DataWorld) -> None:
    """The answer repeats the id; an id that nobody has is UNKNOWN_TOPIC_ID."""
    _, response = world.produce(batch_of(b"a"), version=13)
    assert response is not None
    assert response["responses"][0]["topicId"] == b"\x07" * 16
    answer = world.produced(batch_of(b"a"), version=13, topic_id=b"\x01" * 16)
    assert answer["errorCode"] == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_broker_that_does_not_lead_names_the_leader_from_version_10_on(world: DataWorld) -> None:
    """NOT_LEADER_OR_FOLLOWER comes with the leader, its epoch and where it is reached."""
    world.elect(2)
    _, response = world.produce(batch_of(b"a"), version=10)
    assert response is not None
    answer = partition_of(response)
    assert answer["errorCode"] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer["currentLeader"] == {"leaderId": 2, "leaderEpoch": 1}
    assert response["nodeEndpoints"] == [{"nodeId": 2, "host": "host", "port": 9092, "rack": None}]
    _, response = world.produce(batch_of(b"a"), version=9)
    assert response is not None
    assert partition_of(response)["errorCode"] == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"topic": "absent"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition": 9}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"acks": 2}, ErrorCode.INVALID_REQUIRED_ACKS),
        ({"topic": "__consumer_offsets"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_what_cannot_be_produced_is_refused(
    world: DataWorld, fields: dict[str, object], error: ErrorCode
) -> None:
    """Unknown topics and partitions, unknown acks and internal topics are refused."""
    world.image.apply(TopicCreated("__consumer_offsets", b"\x02" * 16, ((1,),)))
    answer = world.produced(batch_of(b"a"), **fields)
    assert (answer["errorCode"], answer["baseOffset"], answer["logStartOffset"]) == (error, -1, -1)


@pytest.mark.parametrize(
    ("records", "version", "error"),
    [
        (b"", 9, ErrorCode.INVALID_RECORD),
        (batch_of(b"a") + batch_of(b"b"), 9, ErrorCode.INVALID_RECORD),
        (batch_of(b"a", magic=1), 9, ErrorCode.INVALID_RECORD),
        (batch_of(b"a", compression=Compression.ZSTD), 6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (batch_of(b"a")[:-1] + b"\xff", 9, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_records_that_a_version_does_not_carry_are_refused(
    world: DataWorld, records: bytes, version: int, error: ErrorCode
) -> None:
    """From version 3 on there is exactly one whole batch of magic 2; zstd from version 7 on."""
    assert world.produced(records, version=version)["errorCode"] == error
    assert world.log().end_offset == 0


def test_a_size_that_no_batch_has_refuses_the_whole_request(world: DataWorld) -> None:
    """The answer says what is wrong with the bytes."""
    answer = world.produced(struct.pack(">qib", 0, 3, 0) + b"abcdefgh")
    assert answer["errorCode"] == ErrorCode.CORRUPT_MESSAGE
    assert answer["errorMessage"] == ("Record size 3 is less than the minimum record overhead (14)")


def test_acks_0_is_not_answered_and_an_error_closes_the_connection(world: DataWorld) -> None:
    """A producer that wants no answer learns of an error by the end of its connection."""
    token, response = world.produce(batch_of(b"a"), acks=0)
    assert response is None
    assert world.answers == {token: None}
    token, response = world.produce(batch_of(b"a"), acks=0, topic="absent")
    assert response is None
    assert world.closed == [token]


def test_acks_all_needs_enough_replicas_in_sync(world: DataWorld) -> None:
    """Fewer in sync than min.insync.replicas refuse acks=-1, and no other."""
    world.image.apply(ConfigsChanged(2, "t", {"min.insync.replicas": "2"}))
    assert world.produced(batch_of(b"a"), acks=-1)["errorCode"] == 0
    world.image.apply(LeaderElected("t", 0, 1, 1, isr=(1,)))
    answer = world.produced(batch_of(b"a"), acks=-1)
    assert answer["errorCode"] == ErrorCode.NOT_ENOUGH_REPLICAS
    assert answer["logStartOffset"] == 0
    assert world.produced(batch_of(b"a"), acks=1)["errorCode"] == 0


def test_min_insync_replicas_above_the_replication_factor_asks_for_all(world: DataWorld) -> None:
    """A setting that no partition could meet is cut to its number of replicas."""
    world.image.apply(ConfigsChanged(2, "t", {"min.insync.replicas": "9"}))
    assert world.produced(batch_of(b"a"), acks=-1)["errorCode"] == 0


def test_acks_all_waits_for_a_held_high_watermark(world: DataWorld) -> None:
    """The answer leaves when the high watermark has passed the records."""
    world.log().hold_high_watermark(0)
    token, response = world.produce(batch_of(b"a"), acks=-1)
    assert response is None
    assert not world.answers
    world.log().hold_high_watermark(None)
    world.apis.touched(("t", 0))
    late = world.late(ApiKey.PRODUCE, 12, token)
    assert late is not None
    assert partition_of(late)["baseOffset"] == 0


def test_acks_all_that_waits_too_long_is_request_timed_out(world: DataWorld) -> None:
    """The records stay, and their offset is told."""
    world.log().hold_high_watermark(0)
    token, _ = world.produce(batch_of(b"a"), acks=-1, timeoutMs=500)
    assert world.scheduler.wall_ms == world.now_ms + 500
    world.pass_time(500)
    late = world.late(ApiKey.PRODUCE, 12, token)
    assert late is not None
    assert partition_of(late)["errorCode"] == ErrorCode.REQUEST_TIMED_OUT
    assert partition_of(late)["baseOffset"] == 0
    assert world.log().end_offset == 1
    assert world.scheduler.wall_ms is None


def test_acks_all_that_loses_its_leader_is_told_so(world: DataWorld) -> None:
    """Whoever waits at a broker that leads no more is sent on."""
    world.log().hold_high_watermark(0)
    token, _ = world.produce(batch_of(b"a"), acks=-1)
    world.elect(2)
    late = world.late(ApiKey.PRODUCE, 12, token)
    assert late is not None
    assert partition_of(late)["errorCode"] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition_of(late)["currentLeader"] == {"leaderId": 2, "leaderEpoch": 1}


def test_a_lost_replica_after_the_append_is_told(world: DataWorld) -> None:
    """NOT_ENOUGH_REPLICAS_AFTER_APPEND: the records are there, and not as safe as asked for."""
    world.image.apply(ConfigsChanged(2, "t", {"min.insync.replicas": "2"}))
    world.log().hold_high_watermark(0)
    token, _ = world.produce(batch_of(b"a"), acks=-1)
    world.image.apply(LeaderElected("t", 0, 1, 0, isr=(1,)))
    world.log().hold_high_watermark(None)
    world.apis.touched(("t", 0))
    late = world.late(ApiKey.PRODUCE, 12, token)
    assert late is not None
    assert partition_of(late)["errorCode"] == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_a_topic_that_may_not_be_written_is_refused() -> None:
    """Whoever may only read may not write, whether the topic exists or not."""
    rule = Acl(
        operation=Operation.READ, resource_type=ResourceType.TOPIC, name="t", principal="User:*"
    )
    world = DataWorld(authorizer=AclAuthorizer([rule]))
    for topic in ("t", "absent"):
        answer = world.produced(batch_of(b"a"), topic=topic)
        assert answer["errorCode"] == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_failing_medium_is_a_storage_error() -> None:
    """A batch that could not be written is KAFKA_STORAGE_ERROR, and the controller is told."""

    class Full(MemoryStore):
        def append(self, *_: object) -> int | None:
            raise OSError(28, "No space left on device")

    world = DataWorld(new_store=lambda *_: Full())
    assert world.produced(batch_of(b"a"))["errorCode"] == ErrorCode.KAFKA_STORAGE_ERROR
    assert world.failed == [("t", 0)]


# -- transactions ----------------------------------------------------------------------------


class Gate:
    """Answers what it is told to."""

    def __init__(self, error: ErrorCode) -> None:
        self.error = error
        self.asked: list[TransactionalWrite] = []

    def verify_or_add(self, write: TransactionalWrite) -> ErrorCode:
        """As `TransactionGate.verify_or_add`."""
        self.asked.append(write)
        return self.error


def _transactional(sequence: int = 0) -> bytes:
    return batch_of(
        b"a", producer_id=7, producer_epoch=0, base_sequence=sequence, transactional=True
    )


def test_transactional_records_need_a_transactional_id(world: DataWorld) -> None:
    """Without one nobody could be asked whether they may be written."""
    answer = world.produced(_transactional())
    assert answer["errorCode"] == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_the_coordinator_is_asked_once_per_partition_and_transaction() -> None:
    """The first batch asks; those behind it find the open transaction in the log."""
    gate = Gate(ErrorCode.NONE)
    world = DataWorld(gate=gate)
    assert world.produced(_transactional(), transactionalId="x")["errorCode"] == 0
    assert world.produced(_transactional(1), transactionalId="x")["errorCode"] == 0
    (asked,) = gate.asked
    assert (asked.transactional_id, asked.producer_id, asked.topic, asked.partition) == (
        "x",
        7,
        "t",
        0,
    )


@pytest.mark.parametrize(
    ("error", "version", "told"),
    [
        (ErrorCode.INVALID_TXN_STATE, 11, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.NOT_COORDINATOR, 12, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 12, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ErrorCode.TRANSACTION_ABORTABLE, 12, ErrorCode.TRANSACTION_ABORTABLE),
    ],
)
def test_what_the_coordinator_refuses_is_not_appended(
    error: ErrorCode, version: int, told: ErrorCode
) -> None:
    """Errors that producers do not know are told as one that they retry."""
    world = DataWorld(gate=Gate(error))
    answer = world.produced(_transactional(), transactionalId="x", version=version)
    assert answer["errorCode"] == told
    assert world.log().end_offset == 0
