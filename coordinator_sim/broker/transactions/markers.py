"""Sends the markers of ended transactions, and completes each transaction after the last marker.

Source: kafka 4.3, core/.../transaction/TransactionMarkerChannelManager.scala and
TransactionMarkerRequestCompletionHandler.scala.
"""

from typing import Final

from msgspec import Struct

from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.image import NO_LEADER
from coordinator_sim.broker.scheduler import WakeBy
from coordinator_sim.broker.transactions.metadata import TxnTransit
from coordinator_sim.broker.transactions.ports import Marker, MarkerWriting
from coordinator_sim.broker.transactions.states import Owned, TransactionStates
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition

RETRY_MS: Final = 20
"""Wall time between two tries. Kafka has no such delay: its sender thread waits for the network."""
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
_IMPOSSIBLE: Final = frozenset(
    {ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION}
)
"""Errors of partitions that cannot hold transactional records either: they count as done."""


class Completion(Struct, frozen=True):
    """A transaction with a prepared end, and the step to take after its last marker."""

    owned: Owned
    transit: TxnTransit
    marker: Marker

    @property
    def transactional_id(self) -> str:
        """The transactional id of the transaction."""
        return self.owned.metadata.transactional_id


class MarkerChannel:
    """The markers that one broker's coordinator has to deliver.

    Args:
        states: The broker's transactional ids.
        writing: Sends markers to the leaders of partitions.
        wake_by: Arms the alarm for a retry, by the wall clock.

    Attributes:
        due_ms: When `retry` is due by the wall clock; None when there is nothing to retry.
    """

    def __init__(self, states: TransactionStates, writing: MarkerWriting, wake_by: WakeBy) -> None:
        self._states = states
        self._writing = writing
        self._wake_by = wake_by
        self._pending: dict[str, Completion] = {}
        self._queue: list[tuple[Completion, TopicPartition]] = []
        self._log_retries: list[Completion] = []
        self.due_ms: int | None = None

    def send(self, completion: Completion, now: Instants) -> None:
        """Write the markers of a transaction, and complete it after the last one."""
        self._pending[completion.transactional_id] = completion
        for place in list(completion.owned.metadata.partitions):
            self._send_one(completion, place, now)
        self._complete_if_done(completion, now)

    def retry(self, now: Instants) -> None:
        """Send the markers and steps again that could not be written."""
        self.due_ms = None
        log_retries, self._log_retries = self._log_retries, []
        for completion in log_retries:
            self._append(completion, now)
        queue, self._queue = self._queue, []
        for completion, place in queue:
            if self._is_current(completion):
                self._send_one(completion, place, now)

    @property
    def pending_count(self) -> int:
        """Transactions with a marker still to be written."""
        return len(self._pending)

    def forget(self, partition: int) -> None:
        """Drop the markers of a state log partition; its new leader sends them again.

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
        self._retry_later(now)

    def _retry_later(self, now: Instants) -> None:
        self.due_ms = now.wall_ms + RETRY_MS
        self._wake_by(self.due_ms)

    def _written(
        self, completion: Completion, place: TopicPartition, error: ErrorCode, now: Instants
    ) -> None:
        """Handle a result. Source: TransactionMarkerRequestCompletionHandler.onComplete."""
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
        """Whether the coordinator still owns the transaction at the same epoch."""
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
        """Append the completing step. Source: TransactionMarkerChannelManager.tryAppendToLog."""
        error = self._states.append(
            completion.transactional_id,
            completion.owned.coordinator_epoch,
            completion.transit,
            now.group_ms,
            keep_pending_on=ErrorCode.COORDINATOR_NOT_AVAILABLE,
        )
        if error is ErrorCode.COORDINATOR_NOT_AVAILABLE:
            self._log_retries.append(completion)
            self._retry_later(now)
