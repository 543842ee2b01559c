"""The markers of ended transactions on their way to the partitions, and what comes after the last.

Source: kafka 4.3, core/.../transaction/TransactionMarkerChannelManager.scala and
TransactionMarkerRequestCompletionHandler.scala.
"""

from typing import Final

from msgspec import Struct

from coordinator_sim.mini_broker.contract import Instants
from coordinator_sim.mini_broker.image import NO_LEADER
from coordinator_sim.mini_broker.transactions.metadata import TxnTransit
from coordinator_sim.mini_broker.transactions.ports import Marker, MarkerWriting
from coordinator_sim.mini_broker.transactions.states import Owned, TransactionStates
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.resources import TopicPartition

RETRY_MS: Final = 20
"""Wall time between two tries. Kafka has none: its sender thread waits for the network instead."""
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
"""A marker that failed so is written again, to whoever leads the partition then."""
_IMPOSSIBLE: Final = frozenset(
    {ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION}
)
"""The partition cannot have records of the transaction either: it counts as done."""


class Completion(Struct, frozen=True):
    """A transaction whose end is decided, and the step that is due after its last marker."""

    owned: Owned
    transit: TxnTransit
    marker: Marker

    @property
    def transactional_id(self) -> str:
        """Whose it is."""
        return self.owned.metadata.transactional_id


class MarkerChannel:
    """The markers that one broker's coordinator has to deliver.

    Args:
        states: Of that broker.
        writing: Reaches the leaders of partitions.
    """

    __slots__ = ("_due_ms", "_log_retries", "_pending", "_queue", "_states", "_writing")

    def __init__(self, states: TransactionStates, writing: MarkerWriting) -> None:
        self._states = states
        self._writing = writing
        self._pending: dict[str, Completion] = {}
        self._queue: list[tuple[Completion, TopicPartition]] = []
        self._log_retries: list[Completion] = []
        self._due_ms: int | None = None

    def send(self, completion: Completion, now: Instants) -> None:
        """Write the markers of a transaction, and complete it after the last."""
        self._pending[completion.transactional_id] = completion
        for place in list(completion.owned.metadata.partitions):
            self._send_one(completion, place, now)
        self._complete_if_done(completion, now)

    def retry(self, now: Instants) -> None:
        """Try again what could not be written: leaders may have come."""
        self._due_ms = None
        log_retries, self._log_retries = self._log_retries, []
        for completion in log_retries:
            self._append(completion, now)
        queue, self._queue = self._queue, []
        for completion, place in queue:
            if self._is_current(completion):
                self._send_one(completion, place, now)

    @property
    def due_ms(self) -> int | None:
        """When `retry` is due by the wall clock; None when there is nothing to try again."""
        return self._due_ms

    @property
    def pending_count(self) -> int:
        """Transactions with a marker still to be written."""
        return len(self._pending)

    def forget(self, partition: int) -> None:
        """The coordinator leads a partition of its log no more; whoever does will send again.

        Source: removeMarkersForTxnTopicPartition.
        """
        for transactional_id in list(self._pending):
            if self._states.partition_for(transactional_id) == partition:
                del self._pending[transactional_id]

    def _send_one(self, completion: Completion, place: TopicPartition, now: Instants) -> None:
        leader_id = self._writing.leader_of(place)
        if leader_id is None:
            # The partition was deleted, and its part of the transaction with it.
            completion.owned.metadata.marker_written(place)
            self._complete_if_done(completion, now)
        elif leader_id == NO_LEADER:
            self._again(completion, place, now)
        else:
            self._writing.write(
                leader_id,
                place,
                completion.marker,
                now,
                lambda where, error, at: self._written(completion, where, error, at),
            )

    def _again(self, completion: Completion, place: TopicPartition, now: Instants) -> None:
        self._queue.append((completion, place))
        self._due_ms = now.wall_ms + RETRY_MS

    def _written(
        self, completion: Completion, place: TopicPartition, error: ErrorCode, now: Instants
    ) -> None:
        """Source: TransactionMarkerRequestCompletionHandler.onComplete."""
        if not self._is_current(completion):
            return
        if error in _RETRIED:
            self._again(completion, place, now)
        elif error is ErrorCode.NONE or error in _IMPOSSIBLE:
            completion.owned.metadata.marker_written(place)
            self._complete_if_done(completion, now)
        else:
            # QUIRK: a fenced coordinator or producer, or an error that Kafka does not expect, ends
            # the sending: the transaction stays prepared until its coordinator moves.
            del self._pending[completion.transactional_id]

    def _is_current(self, completion: Completion) -> bool:
        """Whether the coordinator is still the one that decided."""
        if self._pending.get(completion.transactional_id) is not completion:
            return False
        if completion.owned.is_still(self._states.find(completion.transactional_id)):
            return True
        del self._pending[completion.transactional_id]
        return False

    def _complete_if_done(self, completion: Completion, now: Instants) -> None:
        is_waiting = self._pending.get(completion.transactional_id) is completion
        if is_waiting and not completion.owned.metadata.partitions:
            del self._pending[completion.transactional_id]
            self._append(completion, now)

    def _append(self, completion: Completion, now: Instants) -> None:
        """Source: TransactionMarkerChannelManager.tryAppendToLog."""
        error = self._states.append(
            completion.transactional_id,
            completion.owned.coordinator_epoch,
            completion.transit,
            now.group_ms,
            keep_pending_on=ErrorCode.COORDINATOR_NOT_AVAILABLE,
        )
        if error is ErrorCode.COORDINATOR_NOT_AVAILABLE:
            self._log_retries.append(completion)
            self._due_ms = now.wall_ms + RETRY_MS
