"""DescribeTransactions and ListTransactions: one transaction, or all that match a filter.

Source: kafka 4.3, TransactionCoordinator.handleDescribeTransactions,
TransactionStateManager.listTransactionStates.
"""

from collections.abc import Callable

from coordinator_sim.broker.transactions.metadata import (
    STATE_NAMES,
    TransactionMetadata,
    TransactionState,
)
from coordinator_sim.broker.transactions.states import TransactionStates
from coordinator_sim.coordinator.modern.consumer.regex import compiled
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.describe_transactions import TopicData
from coordinator_sim.messages.describe_transactions import TransactionState as DescribedTransaction
from coordinator_sim.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from coordinator_sim.messages.list_transactions import TransactionState as ListedTransaction


def describe_transaction(states: TransactionStates, transactional_id: str) -> DescribedTransaction:
    """One entry of DescribeTransactions, without partitions whose marker is written."""
    if not transactional_id:
        return DescribedTransaction(ErrorCode.INVALID_REQUEST, transactional_id)
    owned = states.find(transactional_id)
    if isinstance(owned, ErrorCode):
        return DescribedTransaction(owned, transactional_id)
    if owned is None or owned.metadata.state is TransactionState.DEAD:
        return DescribedTransaction(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id)
    metadata = owned.metadata
    topics: dict[str, list[int]] = {}
    for place in metadata.partitions:
        topics.setdefault(place.topic, []).append(place.partition)
    return DescribedTransaction(
        error_code=ErrorCode.NONE,
        transactional_id=transactional_id,
        transaction_state=metadata.state.kafka_name,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_start_time_ms=metadata.started_ms,
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        topics=tuple(TopicData(name, tuple(indexes)) for name, indexes in topics.items()),
    )


def list_transactions(
    states: TransactionStates, request: ListTransactionsRequest, now_ms: int
) -> ListTransactionsResponse:
    """The answer of ListTransactions, before authorization."""
    if states.is_loading:
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    names = dict.fromkeys(request.state_filters)
    matches = _filter(request, now_ms)
    if matches is None:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    return ListTransactionsResponse(
        error_code=ErrorCode.NONE,
        unknown_state_filters=tuple(name for name in names if name not in STATE_NAMES),
        transaction_states=tuple(
            ListedTransaction(
                owned.metadata.transactional_id,
                owned.metadata.producer_id,
                owned.metadata.state.kafka_name,
            )
            for owned in states.all()
            if matches(owned.metadata)
        ),
    )


def _filter(
    request: ListTransactionsRequest, now_ms: int
) -> Callable[[TransactionMetadata], bool] | None:
    """Make the filter of a request; None if its pattern is invalid.

    An unknown state name matches no transaction.
    """
    producer_ids = frozenset(request.producer_id_filters)
    wanted = frozenset(STATE_NAMES.get(name) for name in request.state_filters)
    duration_ms = request.duration_filter
    pattern = request.transactional_id_pattern
    found = compiled(pattern) if pattern else None
    if isinstance(found, str):
        return None

    def matches(metadata: TransactionMetadata) -> bool:
        if metadata.state is TransactionState.DEAD:
            return False
        if producer_ids and metadata.producer_id not in producer_ids:
            return False
        if wanted and metadata.state not in wanted:
            return False
        if found is not None and found.fullmatch(metadata.transactional_id) is None:
            return False
        return duration_ms < 0 or now_ms - metadata.started_ms > duration_ms

    return matches
