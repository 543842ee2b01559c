"""DescribeTransactions and ListTransactions: one transaction, or all that match a filter.

Source: kafka 4.3, TransactionCoordinator.handleDescribeTransactions,
TransactionStateManager.listTransactionStates.
"""

import re
from collections.abc import Callable
from typing import Final

from coordinator_sim.broker.transactions.metadata import (
    STATE_NAMES,
    TransactionMetadata,
    TransactionState,
)
from coordinator_sim.broker.transactions.states import TransactionStates
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.describe_transactions import TopicData
from coordinator_sim.messages.describe_transactions import TransactionState as DescribedTransaction
from coordinator_sim.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from coordinator_sim.messages.list_transactions import TransactionState as ListedTransaction

_PLAIN: Final = re.compile(r"\\.|\[\^?\]?[^\]]*\]|\(\?:")
"""Parts of a pattern in which special characters have no special meaning."""
_REPETITIONS: Final = frozenset("*+{")
_MAX_REPETITIONS: Final = 2


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
    try:
        matches = _filter(request, now_ms)
    except (re.error, RecursionError, OverflowError):
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


def _filter(request: ListTransactionsRequest, now_ms: int) -> Callable[[TransactionMetadata], bool]:
    """Make the filter of a request. An unknown state name matches no transaction.

    Raises:
        re.error, RecursionError, OverflowError: the pattern is invalid; see `_compiled`.
    """
    producer_ids = frozenset(request.producer_id_filters)
    wanted = frozenset(STATE_NAMES.get(name) for name in request.state_filters)
    duration_ms = request.duration_filter
    pattern = request.transactional_id_pattern
    compiled = _compiled(pattern) if pattern else None

    def matches(metadata: TransactionMetadata) -> bool:
        if metadata.state is TransactionState.DEAD:
            return False
        if producer_ids and metadata.producer_id not in producer_ids:
            return False
        if wanted and metadata.state not in wanted:
            return False
        if compiled is not None and compiled.fullmatch(metadata.transactional_id) is None:
            return False
        return duration_ms < 0 or now_ms - metadata.started_ms > duration_ms

    return matches


def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of transactional ids.

    DEVIATION: patterns are Python's, where Kafka's are RE2's. Some Python patterns could keep a
    broker busy for ever, so patterns are refused that repeat a group with a choice or a
    repetition in it, or that have more than two repetitions without a bound.

    Raises:
        re.error, RecursionError, OverflowError: the pattern does not parse, or is refused.
    """
    repeats = 0
    groups = [False]
    plain = _PLAIN.sub(lambda found: "(" if found[0] == "(?:" else "x", pattern)
    for index, sign in enumerate(plain):
        if sign == "(":
            groups.append(False)
        elif sign == ")" and len(groups) > 1:
            is_loaded = groups.pop()
            groups[-1] |= is_loaded
            if is_loaded and plain[index + 1 : index + 2] in _REPETITIONS:
                raise re.error("a repeated group must be simple", pattern)
        elif sign == "|" or sign in _REPETITIONS:
            groups[-1] = True
            repeats += sign != "|"
    if repeats > _MAX_REPETITIONS:
        raise re.error(f"more than {_MAX_REPETITIONS} repetitions", pattern)
    return re.compile(pattern)
