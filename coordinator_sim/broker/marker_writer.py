"""WriteTxnMarkers at one broker: writes the ends of transactions to its partitions.

The group coordinator writes markers of the offsets topic; those of other topics go to their logs.
The request is answered when all are written.

Source: kafka trunk, KafkaApis.handleWriteTxnMarkersRequest.
"""

from collections.abc import Callable
from typing import Final, Protocol

from coordinator_sim.broker.authorizer import CLUSTER_NAME, Operation, ResourceType
from coordinator_sim.broker.logs import DataLog
from coordinator_sim.broker.passage import Access
from coordinator_sim.coordinator.contract import CoordinatorResult, Reply
from coordinator_sim.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from coordinator_sim.protocol.completion import CompleteTransaction, TransactionCompleted
from coordinator_sim.protocol.context import RequestContext
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.partitioning import OFFSETS_TOPIC
from coordinator_sim.protocol.records import EndTransactionMarker, LogBatch
from coordinator_sim.protocol.resources import TopicPartition

_NOT_THERE: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Errors that become NOT_LEADER_OR_FOLLOWER for the transaction coordinator."""
_MARKERS_MAGIC: Final = 2

Found = dict[int, dict[TopicPartition, ErrorCode]]


class CompletesTransactions(Protocol):
    """The method of a group coordinator that writes a marker."""

    def complete_transaction(
        self, request: CompleteTransaction, context: RequestContext, now_ms: int
    ) -> CoordinatorResult:
        """End a producer's transaction on one offsets partition."""
        ...


class MarkersUnderWay:
    """One WriteTxnMarkers request and its known results."""

    __slots__ = ("_found", "_missing_count", "token")

    def __init__(self, token: int) -> None:
        self.token = token
        self._found: Found = {}
        self._missing_count = 0

    def expect(self, producer_id: int, place: TopicPartition) -> None:
        """Expect a result."""
        self._found.setdefault(producer_id, {})[place] = ErrorCode.NONE
        self._missing_count += 1

    def found(self, producer_id: int, place: TopicPartition, error: ErrorCode) -> bool:
        """Add a result; return whether it was the last one."""
        self._found[producer_id][place] = error
        self._missing_count -= 1
        return self._missing_count == 0

    def response(self) -> WriteTxnMarkersResponse:
        """All results, by producer and topic."""
        return WriteTxnMarkersResponse(
            markers=tuple(
                WritableTxnMarkerResult(producer_id=producer_id, topics=_by_topic(outcomes))
                for producer_id, outcomes in self._found.items()
            )
        )


def _by_topic(
    outcomes: dict[TopicPartition, ErrorCode],
) -> tuple[WritableTxnMarkerTopicResult, ...]:
    topics: dict[str, list[WritableTxnMarkerPartitionResult]] = {}
    for place, error in outcomes.items():
        topics.setdefault(place.topic, []).append(
            WritableTxnMarkerPartitionResult(place.partition, error)
        )
    return tuple(
        WritableTxnMarkerTopicResult(name, partitions=tuple(found))
        for name, found in topics.items()
    )


class MarkerWriter:
    """Writes markers at one broker.

    Args:
        coordinator: Writes the markers of the offsets topic.
        log_of: Finds the log of a partition of any other topic; None if it does not exist.
        access: Authorizes requests.
        message_format: Magic of the logs; below 2 there are no transactions.
    """

    __slots__ = ("_access", "_asked", "_coordinator", "_log_of", "_magic", "_next_token")

    def __init__(
        self,
        coordinator: CompletesTransactions,
        log_of: Callable[[TopicPartition], DataLog | None],
        access: Access,
        *,
        message_format: int = _MARKERS_MAGIC,
    ) -> None:
        self._coordinator = coordinator
        self._log_of = log_of
        self._access = access
        self._magic = message_format
        # Tokens of requests to the coordinator are negative, unlike those of client requests.
        self._next_token = -1
        self._asked: dict[int, tuple[MarkersUnderWay, int, TopicPartition]] = {}

    def handle(
        self, request: WriteTxnMarkersRequest, context: RequestContext, now_ms: int
    ) -> CoordinatorResult:
        """Write the markers; later results of the coordinator must go through `pass_on`."""
        if not self._may_write(context):
            error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            return _all_refused(request, context.token, error)
        under_way = MarkersUnderWay(context.token)
        wanted = [
            (marker, TopicPartition(topic.name, index))
            for marker in request.markers
            for topic in marker.topics
            for index in topic.partition_indexes
        ]
        for marker, place in wanted:
            under_way.expect(marker.producer_id, place)
        if not wanted:
            return CoordinatorResult((Reply(context.token, under_way.response()),))
        results = [
            self._write(under_way, marker, place, context, now_ms) for marker, place in wanted
        ]
        return CoordinatorResult(
            tuple(reply for result in results for reply in result.replies),
            tuple(batch for result in results for batch in result.batches),
            tuple(event for result in results for event in result.events),
        )

    def pass_on(self, result: CoordinatorResult) -> CoordinatorResult:
        """Take marker results out of a coordinator's result, and add complete answers."""
        if not self._asked or not result.replies:
            return result
        replies: list[Reply] = []
        for reply in result.replies:
            asked = self._asked.pop(reply.token, None)
            if asked is None or not isinstance(reply.response, TransactionCompleted):
                replies.append(reply)
                continue
            under_way, producer_id, place = asked
            error = reply.response.error_code
            told = ErrorCode.NOT_LEADER_OR_FOLLOWER if error in _NOT_THERE else error
            if under_way.found(producer_id, place, told):
                replies.append(Reply(under_way.token, under_way.response()))
        return CoordinatorResult(tuple(replies), result.batches, result.events)

    def _may_write(self, context: RequestContext) -> bool:
        """Whether the sender has ALTER or CLUSTER_ACTION on the cluster."""
        return any(
            self._access.allows(context, operation, ResourceType.CLUSTER, CLUSTER_NAME)
            for operation in (Operation.ALTER, Operation.CLUSTER_ACTION)
        )

    def _write(
        self,
        under_way: MarkersUnderWay,
        marker: WritableTxnMarker,
        place: TopicPartition,
        context: RequestContext,
        now_ms: int,
    ) -> CoordinatorResult:
        if place.topic == OFFSETS_TOPIC and self._magic >= _MARKERS_MAGIC:
            return self._ask_coordinator(under_way, marker, place, context, now_ms)
        log = self._log_of(place)
        if log is None and place.topic != OFFSETS_TOPIC:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif log is None or self._magic < _MARKERS_MAGIC:
            error = ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
        else:
            error = log.append_marker(_batch(marker, place, log.end_offset, now_ms))
        is_last = under_way.found(marker.producer_id, place, error)
        replies = (Reply(under_way.token, under_way.response()),) if is_last else ()
        return CoordinatorResult(replies)

    def _ask_coordinator(
        self,
        under_way: MarkersUnderWay,
        marker: WritableTxnMarker,
        place: TopicPartition,
        context: RequestContext,
        now_ms: int,
    ) -> CoordinatorResult:
        token = self._next_token
        self._next_token -= 1
        self._asked[token] = (under_way, marker.producer_id, place)
        request = CompleteTransaction(
            partition=place.partition,
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            committed=marker.transaction_result,
            coordinator_epoch=marker.coordinator_epoch,
        )
        inner = RequestContext(token=token, api_version=context.api_version)
        return self.pass_on(self._coordinator.complete_transaction(request, inner, now_ms))


def _batch(
    marker: WritableTxnMarker, place: TopicPartition, end_offset: int, now_ms: int
) -> LogBatch:
    return LogBatch(
        partition=place.partition,
        base_offset=end_offset,
        timestamp_ms=now_ms,
        records=(),
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transactional=True,
        marker=EndTransactionMarker(
            committed=marker.transaction_result, coordinator_epoch=marker.coordinator_epoch
        ),
    )


def _all_refused(
    request: WriteTxnMarkersRequest, token: int, error: ErrorCode
) -> CoordinatorResult:
    """The same error for every partition. Source: WriteTxnMarkersRequest.getErrorResponse."""
    markers = tuple(
        WritableTxnMarkerResult(
            producer_id=marker.producer_id,
            topics=tuple(
                WritableTxnMarkerTopicResult(
                    topic.name,
                    tuple(
                        WritableTxnMarkerPartitionResult(index, error)
                        for index in topic.partition_indexes
                    ),
                )
                for topic in marker.topics
            ),
        )
        for marker in request.markers
    )
    return CoordinatorResult((Reply(token, WriteTxnMarkersResponse(markers=markers)),))
