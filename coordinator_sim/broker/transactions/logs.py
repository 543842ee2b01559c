"""Markers of transactions in the cluster's partitions.

Markers in `__consumer_offsets` are written by the group coordinator that leads the partition; its
answer may come later.

Source: kafka 4.3, KafkaApis.handleWriteTxnMarkersRequest.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec import Struct

from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.image import NO_LEADER
from coordinator_sim.broker.replicas.replica_manager import ReplicaManager
from coordinator_sim.broker.replicas.state_topic import Touched
from coordinator_sim.broker.transactions.ports import Marker, MarkerDone
from coordinator_sim.kafka.completion import CompleteTransaction, TransactionCompleted
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.log.log_values import Appended
from coordinator_sim.log.partition_log import PartitionLog
from coordinator_sim.messages.records import EndTransactionMarker

_NOT_THERE: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Errors of a group coordinator that mean the partition has another leader."""


CompleteOffsets = Callable[[CompleteTransaction, RequestContext, Instants], bool]
"""Ends a transaction on an offsets partition; False when it has no leader."""


class OffsetsMarker:
    """Waits for a group coordinator's answer, in the place of a client.

    Args:
        place: The offsets partition.
        leader_epoch: Epoch of the leader that was asked.
        told: Called with the result, once.
    """

    def __init__(
        self, place: TopicPartition, leader_epoch: int, told: Callable[[ErrorCode], None]
    ) -> None:
        self.place = place
        self.leader_epoch = leader_epoch
        self._told: Callable[[ErrorCode], None] | None = told

    @property
    def is_open(self) -> bool:
        """Whether the answer has not come yet."""
        return self._told is not None

    def answered(self, response: Struct | None) -> None:
        """Pass the result on; without an answer NOT_LEADER_OR_FOLLOWER, so that it is retried."""
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        if isinstance(response, TransactionCompleted) and response.error_code not in _NOT_THERE:
            error = response.error_code
        self._tell(error)

    def throttled(self, throttle_time_ms: int) -> None:
        """No quota is about a broker's own requests."""

    def closed(self) -> None:
        """Treat a closed connection as NOT_LEADER_OR_FOLLOWER."""
        self._tell(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _tell(self, error: ErrorCode) -> None:
        told, self._told = self._told, None
        if told is not None:
            told(error)


class MarkerDelivery:
    """Writes markers at the leaders of partitions; implements `MarkerWriting`.

    Args:
        logs: The partitions as the brokers host them.
        complete_offsets: Writes the markers in `__consumer_offsets`.
        admit: Registers a request to a group coordinator; returns the token of its answer.
        is_running: Whether a broker can be reached.
        touched: Called after a marker is written.
    """

    def __init__(
        self,
        logs: ReplicaManager,
        complete_offsets: CompleteOffsets,
        *,
        admit: Callable[[OffsetsMarker], int],
        is_running: Callable[[int], bool],
        touched: Touched,
    ) -> None:
        self._image = logs.image
        self._logs = logs
        self._complete_offsets = complete_offsets
        self._admit = admit
        self._is_running = is_running
        self._touched = touched
        self._asked: list[OffsetsMarker] = []

    def leader_of(self, place: TopicPartition) -> int | None:
        """The broker to write to, NO_LEADER or None; see `MarkerWriting.leader_of`."""
        state = self._image.partition(*place)
        if state is None:
            return None
        return state.leader_id if self._is_running(state.leader_id) else NO_LEADER

    def write(
        self, broker_id: int, place: TopicPartition, marker: Marker, now: Instants, done: MarkerDone
    ) -> None:
        """Let a broker write a marker; see `MarkerWriting.write`."""
        if place.topic == OFFSETS_TOPIC:
            self._write_offsets(broker_id, place, marker, now, done)
            return
        log = self._logs.local_log(broker_id, place)
        if isinstance(log, ErrorCode):
            done(place, log, now)
            return
        if not self._logs.has_enough_replicas(place):
            done(place, ErrorCode.NOT_ENOUGH_REPLICAS, now)
            return
        appended = self._logs.attempt(place, partial(_append, log, marker, now.group_ms))
        if isinstance(appended, ErrorCode):
            done(place, appended, now)
            return
        if appended.error is ErrorCode.NONE:
            self._touched(place)
        done(place, appended.error, now)

    def _write_offsets(
        self, broker_id: int, place: TopicPartition, marker: Marker, now: Instants, done: MarkerDone
    ) -> None:
        state = self._image.partition(*place)
        if state is None or state.leader_id != broker_id:
            done(place, ErrorCode.NOT_LEADER_OR_FOLLOWER, now)
            return
        question = OffsetsMarker(place, state.leader_epoch, lambda error: done(place, error, now))
        token = self._admit(question)
        request = CompleteTransaction(
            partition=place.partition,
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            committed=marker.committed,
            coordinator_epoch=marker.coordinator_epoch,
        )
        context = RequestContext(token=token, api_version=0)
        if not self._complete_offsets(request, context, now):
            question.closed()
        elif question.is_open:
            self._asked.append(question)

    def leaders_changed(self) -> None:
        """Give up on leaders that were replaced; see `MarkerWriting.leaders_changed`."""
        asked, self._asked = self._asked, []
        for question in asked:
            state = self._image.partition(*question.place)
            if state is None or state.leader_epoch != question.leader_epoch:
                question.closed()
            elif question.is_open:
                self._asked.append(question)


def _append(log: PartitionLog, marker: Marker, now_ms: int) -> Appended:
    end = EndTransactionMarker(
        committed=marker.committed, coordinator_epoch=marker.coordinator_epoch
    )
    return log.append_marker(
        marker.producer_id,
        marker.producer_epoch,
        end,
        now_ms=now_ms,
        leader_epoch=log.leader_epoch,
        transaction_version=marker.transaction_version,
    )
