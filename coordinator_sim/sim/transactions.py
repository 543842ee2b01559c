"""The transaction coordinator as far as offsets need it: producers, partitions and ends.

Producers and their transactions are kept in memory; the coordinator's own log is not modelled.
Ending a transaction yields the markers to write; their outcomes come back by `markers_written`.

Source: kafka trunk, core/.../transaction/TransactionCoordinator.scala (initProducerId,
handleAddPartitionsToTransaction, handleVerifyPartitionsInTransaction, endTransaction) and
TransactionMarkerRequestCompletionHandler.scala.
"""

from dataclasses import dataclass, field
from enum import Enum, unique
from typing import Final

from coordinator_sim.coordinator.txn_validation import verification_error
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC, partition_for
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.txn_offset_commit import TxnOffsetCommitRequest
from coordinator_sim.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic
from coordinator_sim.sim.logs import OffsetsLogs

_ADDS_PARTITION: Final = 5
_RETRIED: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Errors after which a marker is sent again, to the partition's leader at that time."""


@unique
class TransactionState(Enum):
    """The state of a transactional id, by Kafka's name."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"


_PREPARED: Final = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})


@dataclass(slots=True)
class Transaction:
    """State of one transactional id.

    Args:
        partitions: Partitions of the transaction, in the order in which they were added.
    """

    producer_id: int
    producer_epoch: int = 0
    state: TransactionState = TransactionState.EMPTY
    partitions: dict[TopicPartition, None] = field(default_factory=dict)


class TransactionCoordinator:
    """Every transactional id of a cluster.

    Args:
        offsets_partitions: `offsets.topic.num.partitions`.
    """

    __slots__ = ("_next_producer_id", "_offsets_partitions", "_transactions")

    def __init__(self, offsets_partitions: int) -> None:
        self._offsets_partitions = offsets_partitions
        self._transactions: dict[str, Transaction] = {}
        self._next_producer_id = 0

    def init_producer_id(self, transactional_id: str) -> tuple[ErrorCode, int, int]:
        """Give a producer its id and a new epoch, which fences its predecessors.

        Returns:
            An error with id and epoch -1, or NONE with producer id and epoch. While a transaction
            is not complete, the error is CONCURRENT_TRANSACTIONS; the caller aborts an open one
            first, see `fence_ongoing`.
        """
        known = self._transactions.get(transactional_id)
        if known is None:
            known = self._transactions[transactional_id] = Transaction(self._next_producer_id)
            self._next_producer_id += 1
            return ErrorCode.NONE, known.producer_id, known.producer_epoch
        if known.state in _PREPARED or known.state is TransactionState.ONGOING:
            return ErrorCode.CONCURRENT_TRANSACTIONS, -1, -1
        known.producer_epoch += 1
        known.state = TransactionState.EMPTY
        return ErrorCode.NONE, known.producer_id, known.producer_epoch

    def fence_ongoing(self, transactional_id: str) -> WritableTxnMarker | None:
        """Fence the producer of an open transaction and abort it; return the marker to write.

        Source: TransactionCoordinator.handleInitProducerId, where a transaction is ongoing.
        """
        transaction = self._transactions.get(transactional_id)
        if transaction is None or transaction.state is not TransactionState.ONGOING:
            return None
        transaction.producer_epoch += 1
        _, marker = self.end(
            transactional_id, transaction.producer_id, transaction.producer_epoch, committed=False
        )
        return marker

    def add_offsets(
        self, transactional_id: str, producer_id: int, producer_epoch: int, group_id: str
    ) -> ErrorCode:
        """Add the offsets partition of a group to a transaction."""
        place = self.offsets_place(group_id)
        return self.add_partition(transactional_id, producer_id, producer_epoch, place)

    def add_partition(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        place: TopicPartition,
    ) -> ErrorCode:
        """Add a partition to a transaction, which begins if none is open."""
        error, transaction = self._find(transactional_id, producer_id, producer_epoch)
        if transaction is None:
            return error
        if transaction.state is not TransactionState.ONGOING:
            transaction.partitions.clear()
        transaction.state = TransactionState.ONGOING
        transaction.partitions[place] = None
        return ErrorCode.NONE

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        place: TopicPartition,
    ) -> ErrorCode:
        """Return NONE if a partition is part of the producer's transaction.

        The error of other partitions is INVALID_TXN_STATE here; API versions may name it otherwise.
        """
        error, transaction = self._find(transactional_id, producer_id, producer_epoch)
        if transaction is None:
            return error
        is_part = place in transaction.partitions
        return ErrorCode.NONE if is_part else ErrorCode.INVALID_TXN_STATE

    def end(
        self, transactional_id: str, producer_id: int, producer_epoch: int, *, committed: bool
    ) -> tuple[ErrorCode, WritableTxnMarker | None]:
        """Commit or abort; return an error, or NONE with the marker to write, if any.

        A request repeated after the end of its transaction gets NONE without a marker.
        """
        transaction = self._transactions.get(transactional_id)
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST, None
        if transaction is None or transaction.producer_id != producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING, None
        if transaction.producer_epoch != producer_epoch:
            return ErrorCode.PRODUCER_FENCED, None
        complete, prepare = _ENDS[committed]
        if transaction.state is complete:
            return ErrorCode.NONE, None
        if transaction.state is prepare:
            return ErrorCode.CONCURRENT_TRANSACTIONS, None
        if transaction.state is not TransactionState.ONGOING:
            return ErrorCode.INVALID_TXN_STATE, None
        transaction.state = prepare
        if not transaction.partitions:
            transaction.state = complete
            return ErrorCode.NONE, None
        return ErrorCode.NONE, self._marker(transaction)

    def markers_written(
        self, transactional_id: str, outcomes: dict[TopicPartition, ErrorCode]
    ) -> WritableTxnMarker | None:
        """Take the results of markers; return the marker to write again, None when all are done."""
        transaction = self._transactions[transactional_id]
        if transaction.state not in _PREPARED:
            return None
        for place, error in outcomes.items():
            if error not in _RETRIED:
                transaction.partitions.pop(place, None)
        if transaction.partitions:
            return self._marker(transaction)
        is_commit = transaction.state is TransactionState.PREPARE_COMMIT
        transaction.state = _ENDS[is_commit][0]
        return None

    def offsets_place(self, group_id: str) -> TopicPartition:
        """The offsets partition of a group."""
        return TopicPartition(OFFSETS_TOPIC, partition_for(group_id, self._offsets_partitions))

    def state_of(self, transactional_id: str) -> TransactionState | None:
        """The state of a transactional id; None for an unknown one."""
        transaction = self._transactions.get(transactional_id)
        return None if transaction is None else transaction.state

    def _find(
        self, transactional_id: str, producer_id: int, producer_epoch: int
    ) -> tuple[ErrorCode, Transaction | None]:
        """The transaction that a producer may change now, or the error."""
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST, None
        transaction = self._transactions.get(transactional_id)
        if transaction is None or transaction.producer_id != producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING, None
        if transaction.producer_epoch != producer_epoch:
            return ErrorCode.PRODUCER_FENCED, None
        if transaction.state in _PREPARED:
            return ErrorCode.CONCURRENT_TRANSACTIONS, None
        return ErrorCode.NONE, transaction

    def _marker(self, transaction: Transaction) -> WritableTxnMarker:
        """The marker for the partitions that still need one."""
        topics: dict[str, list[int]] = {}
        for place in transaction.partitions:
            topics.setdefault(place.topic, []).append(place.partition)
        return WritableTxnMarker(
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            transaction_result=transaction.state is TransactionState.PREPARE_COMMIT,
            topics=tuple(
                WritableTxnMarkerTopic(name, tuple(indexes)) for name, indexes in topics.items()
            ),
        )


_ENDS: Final = {
    True: (TransactionState.COMPLETE_COMMIT, TransactionState.PREPARE_COMMIT),
    False: (TransactionState.COMPLETE_ABORT, TransactionState.PREPARE_ABORT),
}
"""For commit and abort: the final state, and the prepared one."""


class ProducerVerifier:
    """Tells a group coordinator whether its partition is part of a producer's transaction.

    If the log has the transaction open, the coordinator is not asked. From version 5 of
    TxnOffsetCommit on, the partition is added instead of verified.

    Source: ReplicaManager.maybeSendPartitionsToTransactionCoordinator; AddPartitionsToTxnManager.
    """

    __slots__ = ("_logs", "_transactions")

    def __init__(self, transactions: TransactionCoordinator, logs: OffsetsLogs) -> None:
        self._transactions = transactions
        self._logs = logs

    def verdict(self, request: TxnOffsetCommitRequest, api_version: int) -> ErrorCode:
        """Whether the request's offsets may be committed; see `TransactionVerifier.verdict`."""
        place = self._transactions.offsets_place(request.group_id)
        producer_id, epoch = request.producer_id, request.producer_epoch
        if self._logs.producers(place.partition).has_open_transaction(producer_id, epoch):
            return ErrorCode.NONE
        ask = (
            self._transactions.add_partition
            if api_version >= _ADDS_PARTITION
            else self._transactions.verify
        )
        error = ask(request.transactional_id, producer_id, epoch, place)
        if error is ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        return verification_error(error, api_version)
