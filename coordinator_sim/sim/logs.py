"""The logs of partitions as far as groups need them: ends, producers, open transactions.

Coordinators keep the records of the offsets topic; of other topics only offsets are kept, for lag.
This module checks producer epochs for both.

Source: kafka trunk, storage/.../log/ProducerAppendInfo.java and UnifiedLog.java.
"""

from dataclasses import dataclass
from typing import Final

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.records import LogBatch

NO_PRODUCER: Final = -1


@dataclass(slots=True)
class ProducerState:
    """State of one producer in a log.

    Args:
        epoch: The newest epoch.
        coordinator_epoch: Coordinator epoch of the newest marker; -1 before the first.
        first_offset: First offset of the open transaction; None without one.
    """

    epoch: int
    coordinator_epoch: int = -1
    first_offset: int | None = None


class Producers:
    """The producers that wrote to one partition."""

    __slots__ = ("_states",)

    def __init__(self) -> None:
        self._states: dict[int, ProducerState] = {}

    def take(self, batch: LogBatch) -> ErrorCode:
        """Take a batch, or return the error that refuses it.

        Sequence numbers are not checked, as in all writes of coordinators.

        Source: ProducerAppendInfo.checkProducerEpoch and checkCoordinatorEpoch.
        """
        if batch.producer_id == NO_PRODUCER:
            return ErrorCode.NONE
        state = self._states.get(batch.producer_id)
        if state is None:
            state = self._states[batch.producer_id] = ProducerState(batch.producer_epoch)
        if batch.producer_epoch < state.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        marker = batch.marker
        if marker is not None and marker.coordinator_epoch < state.coordinator_epoch:
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        state.epoch = batch.producer_epoch
        if marker is not None:
            state.coordinator_epoch = marker.coordinator_epoch
            state.first_offset = None
        elif batch.transactional and state.first_offset is None:
            state.first_offset = batch.base_offset
        return ErrorCode.NONE

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether the producer with this epoch has an open transaction."""
        state = self._states.get(producer_id)
        return (
            state is not None
            and state.epoch == producer_epoch
            and bool(state.first_offset is not None)
        )

    def first_open_offset(self) -> int | None:
        """First offset of the oldest open transaction; None when none is open."""
        return min(
            (
                state.first_offset
                for state in self._states.values()
                if state.first_offset is not None
            ),
            default=None,
        )


class DataLog:
    """One partition of an ordinary topic: its end offset and open transactions.

    Attributes:
        end_offset: Offset of the next record.
    """

    __slots__ = ("_partition", "end_offset", "producers")

    def __init__(self, partition: int) -> None:
        self._partition = partition
        self.producers = Producers()
        self.end_offset = 0

    def append(
        self,
        record_count: int,
        *,
        producer_id: int = NO_PRODUCER,
        producer_epoch: int = -1,
        transactional: bool = False,
    ) -> ErrorCode:
        """Append a number of records; return NONE or the error."""
        batch = LogBatch(
            partition=self._partition,
            base_offset=self.end_offset,
            timestamp_ms=0,
            records=(),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transactional=transactional,
        )
        return self._take(batch, record_count)

    def append_marker(self, marker: LogBatch) -> ErrorCode:
        """Append the end of a transaction; return NONE or the error."""
        return self._take(marker, 1)

    def last_stable_offset(self) -> int:
        """The end for readers of committed records, below every open transaction."""
        first = self.producers.first_open_offset()
        return self.end_offset if first is None else first

    def _take(self, batch: LogBatch, record_count: int) -> ErrorCode:
        error = self.producers.take(batch)
        if error is ErrorCode.NONE:
            self.end_offset += record_count
        return error


class OffsetsLogs:
    """Append policy of the offsets topic, which checks producer epochs.

    All brokers of a cluster share one, like the log itself.
    """

    __slots__ = ("_partitions",)

    def __init__(self) -> None:
        self._partitions: dict[int, Producers] = {}

    def producers(self, partition: int) -> Producers:
        """The producers of one offsets partition."""
        found = self._partitions.get(partition)
        if found is None:
            found = self._partitions[partition] = Producers()
        return found

    def verdict(self, batch: LogBatch) -> ErrorCode:
        """Take a batch, or return the error that refuses it; see `AppendPolicy.verdict`."""
        return self.producers(batch.partition).take(batch)

    def takes_unacknowledged(self, batch: LogBatch) -> bool:  # noqa: ARG002 - any batch is taken
        """Return True: such batches have no producer."""
        return True
