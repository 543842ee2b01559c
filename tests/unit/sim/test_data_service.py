"""What brokers answer to the clients of a Connect worker, the refusals above all."""

from collections.abc import Callable

import pytest

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.sim.data_messages import (
    CreateTopicRequest,
    CreateTopicResponse,
    DataRequest,
    DescribeTopicRequest,
    DescribeTopicResponse,
    EndTxnRequest,
    EndTxnResponse,
    FetchRequest,
    FetchResponse,
    FindTransactionCoordinatorRequest,
    FindTransactionCoordinatorResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ProduceRequest,
    ProduceResponse,
)
from coordinator_sim.sim.data_service import DataService

MISSING = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
ELSEWHERE = ErrorCode.NOT_LEADER_OR_FOLLOWER


class TwoBrokers:
    """Leaders of topics: partition p is led by broker (p mod 2) + 1."""

    def __init__(self) -> None:
        self.leaders: dict[str, list[int | None]] = {}

    def leader_of(self, topic: str, partition: int) -> int | None:
        """The broker that leads a partition; None without one."""
        return self.leaders[topic][partition]

    def partition_count(self, topic: str) -> int:
        """Number of a topic's partitions."""
        return len(self.leaders.get(topic, ()))

    def living_count(self) -> int:
        """Two."""
        return 2

    def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic."""
        self.leaders[name] = [partition % 2 + 1 for partition in range(partitions)]


class Brokers:
    """Two brokers with a topic of two partitions, the first led by broker 1."""

    def __init__(self) -> None:
        self.topics = TwoBrokers()
        self.service = DataService(self.topics)
        self.service.create_topic("t", 2, {})

    def ask(self, request: DataRequest, broker_id: int = 1) -> object:
        """The answer at a millisecond of no importance."""
        return self.service.handle(broker_id, request, 5)

    def coordinator(self) -> int:
        """The broker that coordinates the transactional id x."""
        found = self.ask(FindTransactionCoordinatorRequest("x"))
        assert isinstance(found, FindTransactionCoordinatorResponse)
        return found.broker_id


def produce(topic: str = "t", partition: int = 0, **fields: object) -> ProduceRequest:
    """One record."""
    return ProduceRequest(topic=topic, partition=partition, records=((b"k", b"v"),), **fields)  # type: ignore[arg-type] # the caller names its fields


def fetch(topic: str = "t", partition: int = 0, offset: int = 0) -> FetchRequest:
    """From an offset on."""
    return FetchRequest(topic=topic, positions={partition: offset})


@pytest.mark.parametrize(
    ("request_of", "response"),
    [
        (produce, ProduceResponse),
        (fetch, FetchResponse),
        (
            lambda topic="t", partition=0: ListOffsetsRequest(topic, (partition,)),
            ListOffsetsResponse,
        ),
    ],
    ids=["produce", "fetch", "list offsets"],
)
def test_only_the_leader_of_what_there_is_answers(
    request_of: Callable[..., DataRequest], response: type
) -> None:
    """No such topic, no such partition, another leader."""
    brokers = Brokers()
    assert brokers.ask(request_of("none")) == response(error_code=MISSING)
    assert brokers.ask(request_of("t", 7)) == response(error_code=MISSING)
    assert brokers.ask(request_of("t", 1)) == response(error_code=ELSEWHERE)


def test_a_fetch_fills_up_to_its_bound_and_waits_at_the_end() -> None:
    """Partitions in the order asked for; the one that has no room left is left out."""
    brokers = Brokers()
    brokers.topics.leaders["t"][1] = 1
    for partition in (0, 1):
        brokers.ask(produce(partition=partition))
    both = FetchRequest(topic="t", positions={1: 0, 0: 0}, max_bytes=1)
    answer = brokers.ask(both)
    assert isinstance(answer, FetchResponse)
    assert [part.partition for part in answer.partitions] == [1]
    assert brokers.ask(fetch(offset=1)) is None


def test_end_offsets_know_of_open_transactions_and_beginnings_do_not() -> None:
    """The last stable offset, for whoever reads committed records."""
    brokers = Brokers()
    coordinator = brokers.coordinator()
    started = brokers.ask(InitProducerIdRequest("x"), coordinator)
    assert started == InitProducerIdResponse(0, 0)
    brokers.ask(produce())
    brokers.ask(produce(transactional_id="x", producer_id=0, producer_epoch=0))
    offsets = [
        brokers.ask(ListOffsetsRequest("t", (0,), earliest, committed))
        for earliest, committed in ((False, False), (False, True), (True, False))
    ]
    assert offsets == [ListOffsetsResponse({0: end}) for end in (2, 1, 0)]
    assert brokers.ask(EndTxnRequest("x", 0, 0), coordinator) == EndTxnResponse()
    assert brokers.ask(ListOffsetsRequest("t", (0,), read_committed=True)) == ListOffsetsResponse(
        {0: 3}
    )


def test_transactions_are_their_coordinators() -> None:
    """Any other broker refuses; a producer that was fenced is told so; without brokers none is."""
    brokers = Brokers()
    coordinator = brokers.coordinator()
    other = 3 - coordinator
    for request, response in (
        (InitProducerIdRequest("x"), InitProducerIdResponse),
        (EndTxnRequest("x", 0, 0), EndTxnResponse),
    ):
        assert brokers.ask(request, other) == response(error_code=ErrorCode.NOT_COORDINATOR)
    for _ in range(2):
        brokers.ask(InitProducerIdRequest("x"), coordinator)
    refused = brokers.ask(produce(transactional_id="x", producer_id=0, producer_epoch=0))
    assert refused == ProduceResponse(error_code=ErrorCode.PRODUCER_FENCED)
    brokers.topics.leaders["__transaction_state"] = [None] * 50
    assert brokers.ask(FindTransactionCoordinatorRequest("x")) == (
        FindTransactionCoordinatorResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    )


def test_a_log_that_knows_a_newer_epoch_refuses_an_older_one() -> None:
    """Also a producer of which the coordinator has not heard again."""
    brokers = Brokers()
    brokers.ask(InitProducerIdRequest("x"), brokers.coordinator())
    log = brokers.service.log_of("t", 0)
    assert log is not None
    log.append_records([(b"k", b"v")], now_ms=0, producer_id=0, producer_epoch=9)
    refused = brokers.ask(produce(transactional_id="x", producer_id=0, producer_epoch=0))
    assert refused == ProduceResponse(error_code=ErrorCode.INVALID_PRODUCER_EPOCH)


def test_topics_are_made_once() -> None:
    """The second creation, by request or not, finds the first; settings are of the first."""
    brokers = Brokers()

    def create(topic: str, replicas: int) -> object:
        return brokers.ask(
            CreateTopicRequest(
                topic=topic,
                partitions=3,
                replication_factor=replicas,
                configs={"cleanup.policy": "compact"},
            )
        )

    assert create("t", 1) == CreateTopicResponse(created=False)
    assert create("u", 3).error_code is ErrorCode.INVALID_REPLICATION_FACTOR  # type: ignore[attr-defined] # of its response
    assert create("u", 2) == CreateTopicResponse(created=True)
    assert not brokers.service.create_topic("u", 1, {})
    answers = [brokers.ask(DescribeTopicRequest(name, "cleanup.policy")) for name in ("u", "none")]
    assert answers == [DescribeTopicResponse(3, "compact"), DescribeTopicResponse(0, "delete")]
