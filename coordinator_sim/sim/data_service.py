"""The data plane of all brokers of a cluster: topics, logs, offsets, transactional producers.

A fetch that finds nothing is not answered: the driver retries it after an append.

Source: kafka trunk, KafkaApis.scala (handleProduceRequest, handleFetchRequest, handleListOffset,
handleCreateTopics), TransactionCoordinator.scala (handleInitProducerId, endTransaction).
"""

from collections.abc import Callable
from typing import Final, Protocol, cast

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import TRANSACTIONS_TOPIC, partition_for
from coordinator_sim.kafka.records import EndTransactionMarker, LogBatch
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.write_txn_markers import WritableTxnMarker
from coordinator_sim.sim.data_messages import (
    CreateTopicRequest,
    CreateTopicResponse,
    DataRequest,
    DataResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeTopicRequest,
    DescribeTopicResponse,
    EndTxnRequest,
    EndTxnResponse,
    FetchedPartition,
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
from coordinator_sim.sim.record_log import RecordLog
from coordinator_sim.sim.transactions import TransactionCoordinator

CLUSTER_ID: Final = "4L6g3nShT-eMCtK--X86sw"
"""The id of every simulated cluster."""
_TRANSACTION_PARTITIONS: Final = 50
"""`transaction.state.log.num.partitions`."""
DEFAULT_CLEANUP_POLICY: Final = "delete"
"""Default `cleanup.policy` of a topic."""


class Topics(Protocol):
    """The topics of a cluster."""

    def leader_of(self, topic: str, partition: int) -> int | None:
        """The broker that leads a partition; None without one."""
        ...

    def partition_count(self, topic: str) -> int:
        """Number of a topic's partitions; 0 for an unknown topic."""
        ...

    def living_count(self) -> int:
        """Number of living brokers."""
        ...

    def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic."""
        ...


class DataService:
    """Answers the clients of a Connect worker at any broker of the cluster.

    Args:
        topics: The cluster's topics and leaders.

    Attributes:
        touched: Partitions with more to read since the driver last emptied this list.
    """

    __slots__ = ("_configs", "_handlers", "_logs", "_topics", "_transactions", "touched")

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._logs: dict[TopicPartition, RecordLog] = {}
        self._transactions = TransactionCoordinator(0)
        self._configs: dict[str, dict[str, str]] = {}
        self.touched: list[TopicPartition] = []
        self._handlers: dict[type, Callable[[int, DataRequest, int], DataResponse | None]] = {
            DescribeClusterRequest: lambda _broker, _request, _now: DescribeClusterResponse(
                CLUSTER_ID
            ),
            CreateTopicRequest: _typed(self._create_topic),
            DescribeTopicRequest: _typed(self._describe_topic),
            ListOffsetsRequest: _typed(self._list_offsets),
            ProduceRequest: _typed(self._produce),
            FetchRequest: _typed(self._fetch),
            FindTransactionCoordinatorRequest: _typed(self._find_coordinator),
            InitProducerIdRequest: _typed(self._init_producer_id),
            EndTxnRequest: _typed(self._end_txn),
        }

    def handle(self, broker_id: int, request: DataRequest, now_ms: int) -> DataResponse | None:
        """The answer of a living broker; None for a fetch that finds nothing yet."""
        return self._handlers[type(request)](broker_id, request, now_ms)

    def create_topic(self, name: str, partitions: int, configs: dict[str, str]) -> bool:
        """Create a topic that keeps its records; return False if it exists already."""
        if self._topics.partition_count(name):
            return False
        self._topics.create_topic(name, partitions)
        for partition in range(partitions):
            self._logs[TopicPartition(name, partition)] = RecordLog(partition)
        self._configs[name] = dict(configs)
        return True

    def compact(self, topic: str) -> int:
        """Run the log cleaner once over a topic; return the number of removed records."""
        logs = (
            self.log_of(topic, partition)
            for partition in range(self._topics.partition_count(topic))
        )
        return sum(log.compact() for log in logs if log is not None)

    def log_of(self, topic: str, partition: int) -> RecordLog | None:
        """The log of a partition; None if its records are not kept."""
        return self._logs.get(TopicPartition(topic, partition))

    # -- topics ----------------------------------------------------------------------------

    def _create_topic(
        self, _broker_id: int, request: CreateTopicRequest, _now_ms: int
    ) -> CreateTopicResponse:
        if self._topics.partition_count(request.topic):
            return CreateTopicResponse(created=False)
        if request.replication_factor > self._topics.living_count():
            return CreateTopicResponse(error_code=ErrorCode.INVALID_REPLICATION_FACTOR)
        self.create_topic(request.topic, request.partitions, request.configs)
        return CreateTopicResponse(created=True)

    def _describe_topic(
        self, _broker_id: int, request: DescribeTopicRequest, _now_ms: int
    ) -> DescribeTopicResponse:
        value = self._configs.get(request.topic, {}).get(request.setting, "")
        if request.setting == "cleanup.policy" and not value:
            value = DEFAULT_CLEANUP_POLICY
        return DescribeTopicResponse(self._topics.partition_count(request.topic), value)

    def _led(self, broker_id: int, topic: str, partition: int) -> tuple[ErrorCode, RecordLog]:
        """A partition's log if this broker leads it, else an error with an empty log."""
        log = self.log_of(topic, partition)
        if log is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, RecordLog(partition)
        if self._topics.leader_of(topic, partition) != broker_id:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER, RecordLog(partition)
        return ErrorCode.NONE, log

    # -- logs ------------------------------------------------------------------------------

    def _list_offsets(
        self, broker_id: int, request: ListOffsetsRequest, _now_ms: int
    ) -> ListOffsetsResponse:
        offsets: dict[int, int] = {}
        for partition in request.partitions:
            error, log = self._led(broker_id, request.topic, partition)
            if error is not ErrorCode.NONE:
                return ListOffsetsResponse(error_code=error)
            end = log.last_stable_offset() if request.read_committed else log.end_offset
            offsets[partition] = 0 if request.earliest else end
        return ListOffsetsResponse(offsets)

    def _produce(self, broker_id: int, request: ProduceRequest, now_ms: int) -> ProduceResponse:
        error, log = self._led(broker_id, request.topic, request.partition)
        place = TopicPartition(request.topic, request.partition)
        if error is ErrorCode.NONE and request.transactional_id is not None:
            # With version 2 of transactions, Produce adds the partition itself.
            error = self._transactions.add_partition(
                request.transactional_id, request.producer_id, request.producer_epoch, place
            )
        if error is not ErrorCode.NONE:
            return ProduceResponse(error_code=error)
        error, base_offset = log.append_records(
            request.records,
            now_ms=now_ms,
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch,
        )
        if error is ErrorCode.NONE:
            self.touched.append(place)
        return ProduceResponse(base_offset, error)

    def _fetch(self, broker_id: int, request: FetchRequest, _now_ms: int) -> FetchResponse | None:
        found: list[FetchedPartition] = []
        left_bytes = request.max_bytes
        for partition, offset in request.positions.items():
            error, log = self._led(broker_id, request.topic, partition)
            if error is not ErrorCode.NONE:
                return FetchResponse(error_code=error)
            if left_bytes <= 0:
                break
            part = log.read(
                offset,
                max_bytes=min(left_bytes, request.partition_max_bytes),
                read_committed=request.read_committed,
            )
            if part is not None:
                found.append(part)
                left_bytes -= part.size_bytes
        return FetchResponse(tuple(found)) if found else None

    # -- transactions ----------------------------------------------------------------------

    def _find_coordinator(
        self, _broker_id: int, request: FindTransactionCoordinatorRequest, _now_ms: int
    ) -> FindTransactionCoordinatorResponse:
        coordinator = self._coordinator_of(request.transactional_id)
        if coordinator is None:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
            return FindTransactionCoordinatorResponse(error_code=error)
        return FindTransactionCoordinatorResponse(coordinator)

    def _coordinator_of(self, transactional_id: str) -> int | None:
        if not self._topics.partition_count(TRANSACTIONS_TOPIC):
            self._topics.create_topic(TRANSACTIONS_TOPIC, _TRANSACTION_PARTITIONS)
        partition = partition_for(transactional_id, _TRANSACTION_PARTITIONS)
        return self._topics.leader_of(TRANSACTIONS_TOPIC, partition)

    def _init_producer_id(
        self, broker_id: int, request: InitProducerIdRequest, now_ms: int
    ) -> InitProducerIdResponse:
        transactional_id = request.transactional_id
        if self._coordinator_of(transactional_id) != broker_id:
            return InitProducerIdResponse(error_code=ErrorCode.NOT_COORDINATOR)
        transactions = self._transactions
        marker = transactions.fence_ongoing(transactional_id)
        if marker is not None:
            self._write_markers(transactional_id, marker, now_ms)
            return InitProducerIdResponse(error_code=ErrorCode.CONCURRENT_TRANSACTIONS)
        error, producer_id, epoch = transactions.init_producer_id(transactional_id)
        return InitProducerIdResponse(producer_id, epoch, error)

    def _end_txn(self, broker_id: int, request: EndTxnRequest, now_ms: int) -> EndTxnResponse:
        transactional_id = request.transactional_id
        if self._coordinator_of(transactional_id) != broker_id:
            return EndTxnResponse(ErrorCode.NOT_COORDINATOR)
        error, marker = self._transactions.end(
            transactional_id,
            request.producer_id,
            request.producer_epoch,
            committed=request.committed,
        )
        if marker is not None:
            self._write_markers(transactional_id, marker, now_ms)
        return EndTxnResponse(error)

    def _write_markers(self, transactional_id: str, marker: WritableTxnMarker, now_ms: int) -> None:
        """Write the markers of a transaction to the logs of its partitions.

        DEVIATION: a transaction ends in all its logs at once, whoever leads them; Kafka's
        coordinator sends the markers to the leaders, and a read_committed reader waits as long as
        that takes.
        """
        outcomes: dict[TopicPartition, ErrorCode] = {}
        for topic in marker.topics:
            for partition in topic.partition_indexes:
                log = self.log_of(topic.name, partition)
                place = TopicPartition(topic.name, partition)
                outcomes[place] = ErrorCode.NONE
                if log is not None:
                    log.append_marker(_batch(marker, partition, log.end_offset, now_ms))
                    self.touched.append(place)
        self._transactions.markers_written(transactional_id, outcomes)


def _typed(
    handler: Callable[..., DataResponse | None],
) -> Callable[[int, DataRequest, int], DataResponse | None]:
    """Drop the request type from a handler's type; the table looks handlers up by type."""
    return cast("Callable[[int, DataRequest, int], DataResponse | None]", handler)


def _batch(marker: WritableTxnMarker, partition: int, base_offset: int, now_ms: int) -> LogBatch:
    return LogBatch(
        partition=partition,
        base_offset=base_offset,
        timestamp_ms=now_ms,
        records=(),
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transactional=True,
        control=True,
        marker=EndTransactionMarker(
            committed=marker.transaction_result, coordinator_epoch=marker.coordinator_epoch
        ),
    )
