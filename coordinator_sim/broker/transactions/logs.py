"""The transaction state log in the cluster's partitions, and markers in all other partitions.

Markers in `__consumer_offsets` are written by the group coordinator that leads the partition; its
answer may come later.

Source: kafka 4.3, TransactionStateManager.loadTransactionMetadata and appendTransactionToLog;
KafkaApis.handleWriteTxnMarkersRequest.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, Protocol, TypeVar

from msgspec import Struct

from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.image import NO_LEADER, MetadataImage
from coordinator_sim.broker.transactions.ports import LogEntry, Marker, MarkerDone
from coordinator_sim.kafka.completion import CompleteTransaction, TransactionCompleted
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from coordinator_sim.kafka.records import EndTransactionMarker
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.log.format.record_batches import batch_of, encode_record_batch
from coordinator_sim.log.format.record_bytes import Record
from coordinator_sim.log.format.stored_batches import next_batch
from coordinator_sim.log.log_values import Appended
from coordinator_sim.log.partition_log import PartitionLog

T = TypeVar("T")
_NOT_THERE: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Errors of a group coordinator that mean the partition has another leader."""


class HostedLogs(Protocol):
    """The partitions of a cluster as its brokers host them."""

    def local_log(self, broker_id: int, place: tuple[str, int]) -> PartitionLog | ErrorCode:
        """The log of a partition that a broker leads, or the error."""
        ...

    def attempt(self, place: tuple[str, int], act: Callable[[], T]) -> T | ErrorCode:
        """Call an operation of the log; KAFKA_STORAGE_ERROR when the disk fails."""
        ...

    def has_enough_replicas(self, place: tuple[str, int]) -> bool:
        """Whether the ISR is large enough for a write with acks=-1."""
        ...


Touched = Callable[[tuple[str, int]], None]
"""Called when a partition has more to read."""


class StateTopic:
    """The topic `__transaction_state`; implements `StateLog`.

    Args:
        image: The metadata, which names the leaders.
        logs: The logs of the partitions.
        touched: Called after appends.
        append_failure: Injected error of every append, for tests; normally NONE.
    """

    __slots__ = ("_append_failure", "_image", "_logs", "_touched")

    def __init__(
        self,
        image: MetadataImage,
        logs: HostedLogs,
        *,
        touched: Touched,
        append_failure: Callable[[], ErrorCode],
    ) -> None:
        self._image = image
        self._logs = logs
        self._touched = touched
        self._append_failure = append_failure

    def append(
        self, partition: int, leader_epoch: int, entries: Sequence[LogEntry], now_ms: int
    ) -> ErrorCode:
        """Append a batch; see `StateLog.append`."""
        failure = self._append_failure()
        if failure is not ErrorCode.NONE:
            return failure
        place = TopicPartition(TRANSACTIONS_TOPIC, partition)
        state = self._image.partition(*place)
        if state is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if state.leader_epoch != leader_epoch:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        log = self._logs.local_log(state.leader_id, place)
        if isinstance(log, ErrorCode):
            return log
        if not self._logs.has_enough_replicas(place):
            return ErrorCode.NOT_ENOUGH_REPLICAS
        data = _batch_bytes(entries, now_ms)
        appended = self._logs.attempt(
            place, partial(log.append, data, now_ms=now_ms, leader_epoch=leader_epoch)
        )
        if isinstance(appended, ErrorCode):
            return appended
        self._touched(place)
        return appended.error

    def entries(self, partition: int) -> Iterator[LogEntry]:
        """Read a partition's records from the oldest on; see `StateLog.entries`."""
        place = TopicPartition(TRANSACTIONS_TOPIC, partition)
        state = self._image.partition(*place)
        log = None if state is None else self._logs.local_log(state.leader_id, place)
        if log is None or isinstance(log, ErrorCode):
            return
        chunks = log.chunks()
        while True:
            chunk = self._logs.attempt(place, partial(next, chunks, b""))
            if isinstance(chunk, ErrorCode) or not chunk:
                return
            yield from _entries_of(chunk)


def _batch_bytes(entries: Sequence[LogEntry], now_ms: int) -> bytes:
    records = tuple(
        Record(offset=offset, timestamp_ms=now_ms, key=key, value=value)
        for offset, (key, value) in enumerate(entries)
    )
    return encode_record_batch(batch_of(records))


def _entries_of(chunk: bytes) -> Iterator[LogEntry]:
    position = 0
    while (batch := next_batch(chunk, position)) is not None:
        position += batch.size
        if not batch.control:
            for record in batch.streamed():
                if record is not None and record.key is not None:
                    yield record.key, record.value


class CompletesOffsets(Protocol):
    """The operation of the group coordinators that writes a marker."""

    def complete_transaction(
        self, request: CompleteTransaction, context: RequestContext, now: Instants
    ) -> bool:
        """End a transaction on an offsets partition; False when it has no leader."""
        ...


class OffsetsMarker:
    """Waits for a group coordinator's answer, in the place of a client.

    Args:
        place: The offsets partition.
        leader_epoch: Epoch of the leader that was asked.
        told: Called with the result, once.
    """

    __slots__ = ("_told", "leader_epoch", "place")

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
        image: The metadata, which names the leaders.
        logs: The logs of the cluster.
        offsets: Writes the markers in `__consumer_offsets`.
        admit: Registers a request to a group coordinator; returns the token of its answer.
        is_running: Whether a broker can be reached.
        touched: Called after a marker is written.
    """

    __slots__ = ("_admit", "_asked", "_image", "_is_running", "_logs", "_offsets", "_touched")

    def __init__(
        self,
        image: MetadataImage,
        logs: HostedLogs,
        offsets: CompletesOffsets,
        *,
        admit: Callable[[OffsetsMarker], int],
        is_running: Callable[[int], bool],
        touched: Touched,
    ) -> None:
        self._image = image
        self._logs = logs
        self._offsets = offsets
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
        if not self._offsets.complete_transaction(request, context, now):
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
