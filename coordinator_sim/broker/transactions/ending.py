"""Checks of EndTxn, and the step that ends the transaction; for versions 0 and 2 of transactions.

Version 2 bumps the epoch at every end, so the epoch tells a repeated request from a new one. It
also lets a producer abort a transaction that never began at the coordinator.

Source: kafka 4.3, TransactionCoordinator.endTransaction (with a table in the comment above it)
and endTransactionWithTV1.
"""

from collections.abc import Callable

from msgspec import Struct

from coordinator_sim.broker.transactions.metadata import (
    MAX_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    PREPARED,
    TV_0,
    TransactionMetadata,
    TransactionState,
    TxnTransit,
)
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.errors import ErrorCode


class EndRequest(Struct, frozen=True, kw_only=True):
    """A request to end a transaction.

    Args:
        client_version: Level of `transaction.version` that the sender speaks.
        is_from_client: False for the coordinator itself, which has bumped the epoch already.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    client_version: int = TV_0
    is_from_client: bool = True

    @property
    def state(self) -> TransactionState:
        """The prepared state that the request leads to."""
        if self.committed:
            return TransactionState.PREPARE_COMMIT
        return TransactionState.PREPARE_ABORT


def find_end_with_tv1(
    metadata: TransactionMetadata, request: EndRequest, now_ms: int
) -> TxnTransit | ErrorCode:
    """The step that ends a transaction without a new epoch; NONE if it has ended so already.

    Source: endTransactionWithTV1.
    """
    epoch = metadata.producer_epoch
    if metadata.producer_id != request.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if request.producer_epoch < epoch or (
        request.is_from_client and request.producer_epoch != epoch
    ):
        return ErrorCode.PRODUCER_FENCED
    if metadata.pending not in (None, TransactionState.PREPARE_EPOCH_FENCE):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    state = metadata.state
    if state is TransactionState.ONGOING:
        _take_fence(metadata, request)
        return metadata.prepare_end(
            request.state, TV_0, NO_PRODUCER_ID, now_ms, is_without_partitions=False
        )
    if state is _complete(request):
        return ErrorCode.NONE
    if state is request.state:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return _invalid(metadata)


def find_end_with_tv2(
    metadata: TransactionMetadata,
    request: EndRequest,
    next_producer_id: Callable[[], int],
    now_ms: int,
) -> TxnTransit | ErrorCode:
    """The step that ends a transaction and bumps its epoch; NONE for a repeated request.

    A prepared fence is replaced by this step.

    Source: endTransaction.
    """
    is_fence = metadata.pending is TransactionState.PREPARE_EPOCH_FENCE
    epoch = metadata.producer_epoch
    has_overflown = (
        not is_fence
        and metadata.previous_producer_id == request.producer_id
        and request.producer_epoch == MAX_EPOCH - 1
        and epoch == 0
    )
    is_repeated = has_overflown or (not is_fence and epoch == request.producer_epoch + 1)
    if metadata.pending is not None and not is_fence:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if metadata.producer_id != request.producer_id and not has_overflown:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if not _is_valid_epoch(metadata, request, is_repeated=is_repeated):
        return ErrorCode.PRODUCER_FENCED
    state = metadata.state
    if state in PREPARED:
        is_same = state is request.state
        return ErrorCode.CONCURRENT_TRANSACTIONS if is_same else _invalid(metadata)
    if state is not TransactionState.ONGOING:
        if is_repeated and state is _complete(request):
            return ErrorCode.NONE
        if is_repeated or request.committed:
            return _invalid(metadata)
    next_id = next_producer_id() if metadata.is_epoch_exhausted else NO_PRODUCER_ID
    metadata.pending = None
    return metadata.prepare_end(
        request.state,
        request.client_version,
        next_id,
        now_ms,
        is_without_partitions=state is not TransactionState.ONGOING,
    )


def _is_valid_epoch(
    metadata: TransactionMetadata, request: EndRequest, *, is_repeated: bool
) -> bool:
    """Whether the producer has the epoch that its request needs in this state."""
    is_current = request.producer_epoch == metadata.producer_epoch
    if metadata.pending is TransactionState.PREPARE_EPOCH_FENCE:
        is_new = request.producer_epoch >= metadata.producer_epoch
        return is_new and (is_current or not request.is_from_client)
    if metadata.state in PREPARED:
        return metadata.producer_epoch == request.producer_epoch + 1
    if metadata.state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT):
        return is_repeated or is_current
    return is_current


def _take_fence(metadata: TransactionMetadata, request: EndRequest) -> None:
    """Take the fence's epoch over for the abort of a fenced producer.

    Version 2 does not need this: the end itself bumps the epoch.
    """
    is_fence = metadata.pending is TransactionState.PREPARE_EPOCH_FENCE
    if is_fence and not request.committed:
        metadata.pending = None
        metadata.producer_epoch = request.producer_epoch
        metadata.last_producer_epoch = NO_PRODUCER_EPOCH


def _complete(request: EndRequest) -> TransactionState:
    if request.committed:
        return TransactionState.COMPLETE_COMMIT
    return TransactionState.COMPLETE_ABORT


def _invalid(metadata: TransactionMetadata) -> ErrorCode:
    """INVALID_TXN_STATE; raises for states no id rests in. Source: logInvalidStateTransition..."""
    if metadata.state in (TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE):
        raise InvariantViolation(f"{metadata.transactional_id!r} is {metadata.state.name}")
    return ErrorCode.INVALID_TXN_STATE
