"""Two producers of one transactional id, brokers that die and come back, leaders that move.

Whatever happens, a transaction is committed in all its partitions or in none; what was acknowledged
as committed is seen by readers of committed records, and nothing of what was aborted.
"""

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.connection import Connection
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.changes import FeatureSet
from coordinator_sim.broker.operations import BrokerStatus
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.broker.transactions.metadata import PREPARED, TransactionState
from coordinator_sim.broker.transactions.state_records import metadata_from
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from coordinator_sim.log.format.record_batches import Record, RecordBatch, encode_record_batch
from coordinator_sim.log.format.stored_batches import next_batch
from coordinator_sim.log.partition_log import PartitionLog
from coordinator_sim.messages.catalogue import API_NAMES, newest_version
from coordinator_sim.messages.codec.frames import RequestHeader
from coordinator_sim.messages.codec.records import key_bytes
from coordinator_sim.messages.transaction_log_records import TransactionLogKey
from coordinator_sim_conformance.field_frames import Fields, read_response_frame, request_frame
from tests.unit.broker.wake_ups import missed_wake_ups

pytestmark = pytest.mark.property

TOPIC, ID, GROUP = "t", "id", "g"
PLACES = [(TOPIC, 0), (TOPIC, 1), (TRANSACTIONS_TOPIC, 0), (OFFSETS_TOPIC, 0)]
NONE = ErrorCode.NONE


@dataclass
class Transaction:
    """What one producer did between two ends.

    Attributes:
        values: That were acknowledged.
        offset: That was committed with it, if any.
        outcome: True for a commit that was acknowledged, False for an abort, None for neither.
    """

    values: list[bytes] = field(default_factory=list)
    offset: int | None = None
    outcome: bool | None = None
    is_broken: bool = False


@dataclass
class Producer:
    """One process that calls itself `id`."""

    producer_id: int = -1
    epoch: int = -1
    sequences: dict[int, int] = field(default_factory=dict)
    added: set[int] = field(default_factory=set)
    current: Transaction = field(default_factory=Transaction)
    is_open: bool = False
    last_end: Fields | None = None

    def become(self, answer: Fields) -> None:
        """Go on with another identity."""
        if (answer["producerId"], answer["producerEpoch"]) != (self.producer_id, self.epoch):
            self.sequences.clear()
        self.producer_id, self.epoch = answer["producerId"], answer["producerEpoch"]


class Answers:
    """Takes the answers of one connection."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def write(self, data: bytes) -> None:
        """An answer has come."""
        self.frames.append(data[4:])

    def close(self, reason: str) -> None:
        """No connection is ended here."""
        raise AssertionError(reason)


class Transactions(RuleBasedStateMachine):
    """Three brokers that all have everything, and two producers."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 1_700_000_000_000
        self.count = 0
        self.done: list[Transaction] = []
        self.producers = [Producer(), Producer()]
        coordinator = CoordinatorConfig(offsets_topic_num_partitions=1)
        settings = ClusterSettings(
            broker_ids=(1, 2, 3),
            coordinator=coordinator,
            transaction_partitions=1,
            num_partitions=2,
            default_replication_factor=3,
        )
        self.cluster = Cluster(settings, endpoint=lambda *_: Endpoint("localhost", 9092))
        self.cluster.versions.ranges = {api: (0, newest_version(api)) for api in API_NAMES}
        for name in (TOPIC, TRANSACTIONS_TOPIC, OFFSETS_TOPIC):
            self.cluster.topics.create_asked_for(name, self.now)

    @initialize(level=st.sampled_from([0, 2]))
    def choose(self, level: int) -> None:
        """The finalized version of transactions; clients speak it."""
        self.bumps = level > 0
        self.cluster.change(FeatureSet("transaction.version", level))

    @invariant()
    def wake_in_time(self) -> None:
        """No sweep and no retry of a marker is missed."""
        assert missed_wake_ups(self.cluster) == []

    @property
    def now(self) -> Instants:
        """The present."""
        return Instants(self.now_ms, self.now_ms)

    # -- talking ---------------------------------------------------------------------------

    def ask(self, place: tuple[str, int], api: ApiKey, version: int, **fields: object) -> Fields:
        """The answer of a partition's leader; empty when it cannot be reached."""
        state = self.cluster.image.partition(*place)
        leader_id = -1 if state is None else state.leader_id
        is_up = leader_id > 0 and self.cluster.operations.status(leader_id) is BrokerStatus.RUNNING
        if not is_up:
            return {}
        answers = Answers()
        self.count += 1
        connection = Connection(
            self.cluster,
            leader_id,
            number=self.count,
            listener="PLAINTEXT",
            client_host="/127.0.0.1",
            output=answers,
        )
        header = RequestHeader(api_key=api, api_version=version, correlation_id=1, client_id="p")
        connection.received(request_frame(header, fields), self.now)
        for _ in range(10):
            if answers.frames:
                return read_response_frame(api, version, answers.frames[0])[1]
            self.pass_time(20)
        return {}

    def pass_time(self, duration_ms: int) -> None:
        """Let time pass, and what is due happen in its order."""
        end_ms = self.now_ms + duration_ms
        for _ in range(1_000):
            found = (self.cluster.next_group_deadline_ms(), self.cluster.next_wall_deadline_ms())
            due_ms = min((each for each in found if each is not None), default=end_ms)
            if due_ms >= end_ms:
                break
            self.now_ms = max(due_ms, self.now_ms + 1)
            self.cluster.expire(self.now)
        self.now_ms = max(end_ms, self.now_ms)
        self.cluster.expire(self.now)

    # -- producers -------------------------------------------------------------------------

    @rule(who=st.integers(0, 1), goes_on=st.booleans())
    def init(self, who: int, *, goes_on: bool) -> None:
        """A producer begins, or goes on after an error; what it had open is over somehow."""
        producer = self.producers[who]
        known = goes_on and producer.producer_id >= 0
        answer = self.ask(
            (TRANSACTIONS_TOPIC, 0),
            ApiKey.INIT_PRODUCER_ID,
            4,
            transactionalId=ID,
            transactionTimeoutMs=60_000,
            producerId=producer.producer_id if known else -1,
            producerEpoch=producer.epoch if known else -1,
        )
        self.close(producer)
        if answer.get("errorCode") == NONE:
            producer.become(answer)
        else:
            self.producers[who] = Producer()

    def close(self, producer: Producer) -> None:
        """What a producer did is a transaction of its own."""
        if producer.current.values or producer.current.offset is not None:
            self.done.append(producer.current)
        producer.current = Transaction()
        producer.added.clear()
        producer.is_open = False
        producer.last_end = None

    @rule(who=st.integers(0, 1), partition=st.integers(0, 1))
    def write(self, who: int, partition: int) -> None:
        """A record of a transaction; the first of a partition adds it."""
        producer = self.producers[who]
        if producer.producer_id < 0 or producer.current.is_broken:
            return
        producer.is_open = True
        producer.last_end = None
        if not self.bumps and not self.add(producer, partition):
            return
        self.count += 1
        value = b"%d" % self.count
        sequence = producer.sequences.get(partition, 0)
        answer = self.ask(
            (TOPIC, partition),
            ApiKey.PRODUCE,
            12 if self.bumps else 11,
            transactionalId=ID,
            acks=-1,
            timeoutMs=1_000,
            topicData=[
                {
                    "name": TOPIC,
                    "partitionData": [
                        {"index": partition, "records": self.batch(producer, sequence, value)}
                    ],
                }
            ],
        )
        error = None
        if answer:
            error = answer["responses"][0]["partitionResponses"][0]["errorCode"]
        if error == NONE:
            producer.current.values.append(value)
            producer.sequences[partition] = sequence + 1
        else:
            producer.current.is_broken = True

    def add(self, producer: Producer, partition: int) -> bool:
        """AddPartitionsToTxn, once for each partition."""
        if partition in producer.added:
            return True
        answer = self.ask(
            (TRANSACTIONS_TOPIC, 0),
            ApiKey.ADD_PARTITIONS_TO_TXN,
            3,
            v3AndBelowTransactionalId=ID,
            v3AndBelowProducerId=producer.producer_id,
            v3AndBelowProducerEpoch=producer.epoch,
            v3AndBelowTopics=[{"name": TOPIC, "partitions": [partition]}],
        )
        error = None
        if answer:
            (result,) = answer["resultsByTopicV3AndBelow"]
            error = result["resultsByPartition"][0]["partitionErrorCode"]
        if error == NONE:
            producer.added.add(partition)
        else:
            producer.current.is_broken = True
        return error == NONE

    @rule(who=st.integers(0, 1))
    def commit_offset(self, who: int) -> None:
        """An offset in a transaction."""
        producer = self.producers[who]
        if producer.producer_id < 0 or producer.current.is_broken:
            return
        producer.is_open = True
        producer.last_end = None
        identity = {"producerId": producer.producer_id, "producerEpoch": producer.epoch}
        if not self.bumps:
            answer = self.ask(
                (TRANSACTIONS_TOPIC, 0),
                ApiKey.ADD_OFFSETS_TO_TXN,
                3,
                transactionalId=ID,
                groupId=GROUP,
                **identity,
            )
            if answer.get("errorCode") != NONE:
                producer.current.is_broken = True
                return
        self.count += 1
        offset = self.count
        partition = {"partitionIndex": 0, "committedOffset": offset, "committedMetadata": ""}
        answer = self.ask(
            (OFFSETS_TOPIC, 0),
            ApiKey.TXN_OFFSET_COMMIT,
            5 if self.bumps else 4,
            transactionalId=ID,
            groupId=GROUP,
            topics=[{"name": TOPIC, "partitions": [partition]}],
            **identity,
        )
        if answer and answer["topics"][0]["partitions"][0]["errorCode"] == NONE:
            producer.current.offset = offset
        else:
            producer.current.is_broken = True

    @rule(
        who=st.integers(0, 1),
        partitions=st.lists(st.integers(0, 1), max_size=3),
        with_offset=st.booleans(),
        ends=st.sampled_from([True, True, False, None]),
    )
    def transact(
        self, who: int, partitions: list[int], *, with_offset: bool, ends: bool | None
    ) -> None:
        """A producer as it is most of the time."""
        if self.producers[who].producer_id < 0:
            self.init(who, goes_on=False)
            self.pass_time(100)
            self.init(who, goes_on=False)
        for partition in partitions:
            self.write(who, partition)
        if with_offset:
            self.commit_offset(who)
        if ends is not None:
            self.end(who, committed=ends)

    @rule(who=st.integers(0, 1), partition=st.integers(0, 1), committed=st.booleans())
    def recover(self, who: int, partition: int, *, committed: bool) -> None:
        """All is well for a while, and a producer has its way."""
        self.cluster.hosted.append_failure = NONE
        for broker_id in (1, 2, 3):
            self.resume(broker_id)
        self.pass_time(2_000)
        self.transact(who, [partition, 1 - partition], with_offset=True, ends=committed)

    @rule(who=st.integers(0, 1), committed=st.booleans())
    def end(self, who: int, *, committed: bool) -> None:
        """Commit or abort; what is broken can only be aborted."""
        producer = self.producers[who]
        if producer.producer_id < 0 or not producer.is_open:
            return
        asked = {
            "transactionalId": ID,
            "producerId": producer.producer_id,
            "producerEpoch": producer.epoch,
            "committed": committed and not producer.current.is_broken,
        }
        if producer.last_end is not None:
            asked = producer.last_end
        answer = self.ask((TRANSACTIONS_TOPIC, 0), ApiKey.END_TXN, 5 if self.bumps else 4, **asked)
        error = answer.get("errorCode")
        if error == NONE:
            producer.current.outcome = asked["committed"]
            self.close(producer)
            if self.bumps:
                producer.become(answer)
        elif error is None or error == ErrorCode.CONCURRENT_TRANSACTIONS:
            # Nobody knows: the same may be asked again.
            producer.last_end = asked
        else:
            self.close(producer)
            producer.producer_id = -1

    # -- the cluster -----------------------------------------------------------------------

    @rule(broker_id=st.integers(1, 3))
    def stop(self, broker_id: int) -> None:
        """A broker dies; its successors come after a second."""
        operations = self.cluster.operations
        running = [each for each in (1, 2, 3) if operations.status(each) is BrokerStatus.RUNNING]
        if broker_id in running and len(running) > 1:
            operations.stop(broker_id, self.now)

    @rule(broker_id=st.integers(1, 3))
    def resume(self, broker_id: int) -> None:
        """The broker comes back and knows nothing."""
        operations = self.cluster.operations
        if operations.status(broker_id) is BrokerStatus.STOPPED:
            operations.resume(broker_id, self.now)

    @rule(place=st.sampled_from(PLACES), leader_id=st.integers(1, 3))
    def elect(self, place: tuple[str, int], leader_id: int) -> None:
        """Another leader."""
        if self.cluster.operations.status(leader_id) is BrokerStatus.RUNNING:
            self.cluster.leadership.elect(*place, leader_id, self.now)

    @rule(duration_ms=st.sampled_from([1, 30, 1_500, 12_000, 70_000]))
    def wait(self, duration_ms: int) -> None:
        """Time passes: elections, markers, timeouts."""
        self.pass_time(duration_ms)

    @rule()
    @precondition(lambda self: self.cluster.hosted.append_failure is NONE)
    def fail_appends(self) -> None:
        """No coordinator can write."""
        self.cluster.hosted.append_failure = ErrorCode.NOT_ENOUGH_REPLICAS

    @rule()
    @precondition(lambda self: self.cluster.hosted.append_failure is not NONE)
    def heal_appends(self) -> None:
        """Appends succeed again."""
        self.cluster.hosted.append_failure = NONE

    # -- what must hold --------------------------------------------------------------------

    def teardown(self) -> None:
        """Let everything come to its end, and look."""
        self.cluster.hosted.append_failure = NONE
        for broker_id in (1, 2, 3):
            self.resume(broker_id)
        self.pass_time(120_000)
        for producer in self.producers:
            self.close(producer)
        assert self.state() not in {*PREPARED, TransactionState.ONGOING}
        seen = {value for partition in (0, 1) for value in committed(self.log(partition))}
        for transaction in self.done:
            found = [value in seen for value in transaction.values]
            if transaction.outcome is None:
                assert all(found) or not any(found), transaction
            else:
                assert all(each == transaction.outcome for each in found), transaction
        self.check_offset()

    def check_offset(self) -> None:
        """The committed offset is that of a transaction that was not aborted."""
        answer = self.ask(
            (OFFSETS_TOPIC, 0),
            ApiKey.OFFSET_FETCH,
            7,
            groupId=GROUP,
            topics=[{"name": TOPIC, "partitionIndexes": [0]}],
            requireStable=True,
        )
        (partition,) = answer["topics"][0]["partitions"]
        assert partition["errorCode"] == NONE, "no transaction is open"
        offset = partition["committedOffset"]
        kept = [each.offset for each in self.done if each.outcome and each.offset is not None]
        unknown = {each.offset for each in self.done if each.outcome is None}
        assert offset in {kept[-1] if kept else -1, *unknown}

    def state(self) -> TransactionState | None:
        """The newest state of the id in the log."""
        found = None
        for chunk in self.log(0, TRANSACTIONS_TOPIC).chunks():
            position = 0
            while (stored := next_batch(chunk, position)) is not None:
                position += stored.size
                for record in stored.records():
                    assert record.key is not None
                    assert record.value is not None
                    assert record.key == key_bytes(TransactionLogKey(ID))
                    metadata = metadata_from(ID, record.value)
                    found = None if metadata is None else metadata.state
        return found

    def batch(self, producer: Producer, sequence: int, value: bytes) -> bytes:
        """One record as a transactional producer sends it."""
        return encode_record_batch(
            RecordBatch(
                base_offset=0,
                last_offset=0,
                records=(Record(offset=0, timestamp_ms=self.now_ms, key=None, value=value),),
                base_timestamp_ms=self.now_ms,
                max_timestamp_ms=self.now_ms,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                base_sequence=sequence,
                transactional=True,
            )
        )

    def log(self, partition: int, topic: str = TOPIC) -> PartitionLog:
        """The log of a partition."""
        log = self.cluster.logs.log_of(topic, partition)
        assert log is not None
        return log


def committed(log: PartitionLog) -> list[bytes]:
    """What a reader of committed records sees. Source: CompletedFetch.nextFetchedRecord."""
    assert log.last_stable_offset == log.end_offset, "a transaction is open"
    found = log.read(log.log_start_offset, max_bytes=1 << 30, read_committed=True)
    waiting = sorted(found.aborted or (), key=lambda each: each.first_offset)
    aborting: set[int] = set()
    values = []
    position = 0
    while (stored := next_batch(found.records, position)) is not None:
        position += stored.size
        while waiting and waiting[0].first_offset <= stored.last_offset:
            aborting.add(waiting.pop(0).producer_id)
        if stored.control:
            aborting.discard(stored.producer_id)
        elif stored.producer_id not in aborting:
            values += [record.value for record in stored.records() if record.value is not None]
    return values


TestTransactions = Transactions.TestCase
TestTransactions.settings = settings(stateful_step_count=40, deadline=None)
