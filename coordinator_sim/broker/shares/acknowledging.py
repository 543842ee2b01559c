"""A member says what it did with records, or is gone and gives them up.

Each step is a transition under way until the share coordinator has written it.

Source: kafka 4.3.1, core/.../share/SharePartition.java, acknowledge and releaseAcquiredRecords.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from coordinator_sim.broker.shares.acquiring import Locking
from coordinator_sim.broker.shares.dead_letters import Change, DeadLetterCause
from coordinator_sim.broker.shares.in_flight_batch import InFlightBatch
from coordinator_sim.broker.shares.in_flight_records import InFlightRecords
from coordinator_sim.broker.shares.in_flight_state import (
    NO_MEMBER,
    DeliveryLimit,
    InFlightState,
    RecordState,
)
from coordinator_sim.broker.shares.persister import StateBatch
from coordinator_sim.broker.shares.share_values import (
    Acknowledgement,
    ShareSettings,
)
from coordinator_sim.coordinator.epoch_refusals import Refusal
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.share_types import AcknowledgeType

_STATE_OF: Final[Mapping[int, RecordState]] = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
}
_TYPES: Final = frozenset(AcknowledgeType)
_RUN: Final = re.compile(b"|".join(re.escape(bytes((one,))) + b"+" for one in AcknowledgeType))
"""Types in a row that are the same."""


class Acknowledging:
    """One call of `SharePartition.acknowledge` or `release_acquired_records`.

    Args:
        records: Changed by it.
        settings: The group's.
        limit: How often a record is handed out, and what it becomes then.
        locking: Names the member, and locks what it renews.
    """

    __slots__ = ("_limit", "_locking", "_records", "_settings", "changes")

    def __init__(
        self,
        records: InFlightRecords,
        settings: ShareSettings,
        limit: DeliveryLimit,
        locking: Locking,
    ) -> None:
        self._records = records
        self._settings = settings
        self._limit = limit
        self._locking = locking
        self.changes: list[Change] = []
        """The transitions that were started, in order."""

    def acknowledge(self, batches: Iterable[Acknowledgement]) -> Refusal | None:
        """Start the transitions of acknowledgements; the first wrong one ends it.

        Source: SharePartition.acknowledge.

        Raises:
            OperationAborted: Kafka throws; the transitions so far stay under way for good.
        """
        for batch in batches:
            if not _TYPES.issuperset(set(batch.acknowledge_types)):
                types = ", ".join(str(one) for one in batch.acknowledge_types)
                return Refusal(ErrorCode.INVALID_REQUEST, f"Invalid acknowledge type: [{types}]")
            if batch.last_offset < self._records.start_offset:
                continue
            found = self._cached_batches(batch)
            if isinstance(found, Refusal):
                return found
            refusal = self._acknowledge(batch, found)
            if refusal is not None:
                return refusal
        return None

    def _cached_batches(self, batch: Acknowledgement) -> Sequence[InFlightBatch] | Refusal:
        """The cached batches with acknowledged records.

        Source: SharePartition.fetchSubMapForAcknowledgementBatch.
        """
        cache = self._records.batches
        start_offset = self._records.start_offset
        floor = cache.floor(batch.first_offset)
        if floor is None:
            if not batch.first_offset < start_offset <= batch.last_offset:
                return _invalid_state(
                    "Batch record not found. The request batch offsets are not found in the cache."
                )
            floor = cache.floor(start_offset)
            if floor is None:
                raise OperationAborted("no batch at the start offset")
        if batch.last_offset < floor.first_offset:
            raise OperationAborted("inconsistent range")
        found = cache.beginning_in(floor.first_offset, batch.last_offset)
        if found[-1].last_offset < batch.first_offset:
            return Refusal(
                ErrorCode.INVALID_REQUEST,
                "Batch record not found. The first offset in request is past acquired records.",
            )
        if found[-1].last_offset < batch.last_offset:
            return Refusal(
                ErrorCode.INVALID_REQUEST,
                "Batch record not found. The last offset in request is past acquired records.",
            )
        return found

    def _acknowledge(
        self, batch: Acknowledgement, cached: Iterable[InFlightBatch]
    ) -> Refusal | None:
        """Acknowledge records of cached batches. Source: SharePartition.acknowledgeBatchRecords."""
        start_offset = self._records.start_offset
        for in_flight in cached:
            if in_flight.last_offset < start_offset:
                continue
            if not in_flight.is_split:
                refusal = self._whole_refusal(in_flight.state)
                if refusal is not None:
                    return refusal
            if (
                not in_flight.is_split
                and len(batch.acknowledge_types) <= 1
                and in_flight.is_within(batch.first_offset, batch.last_offset)
                and not in_flight.is_split_by(start_offset)
            ):
                kind = _type_of(batch, batch.first_offset)
                offsets = (in_flight.first_offset, in_flight.last_offset)
                refusal = self._apply(kind, in_flight.state, offsets)
            else:
                refusal = self._acknowledge_offsets(batch, in_flight)
            if refusal is not None:
                return refusal
        return None

    # What has a member is acquired, and not in transition: Kafka's further checks cannot fail.

    def _whole_refusal(self, state: InFlightState) -> Refusal | None:
        """Why a batch with one state is not acknowledged by the member.

        Source: SharePartition.validateAcknowledgementBatchMemberId.
        """
        if state.member_id == NO_MEMBER:
            return _invalid_state(
                "The batch cannot be acknowledged. The batch is not in the acquired state."
            )
        if state.member_id != self._locking.member_id:
            return _invalid_state("Member is not the owner of batch record")
        return None

    def _acknowledge_offsets(
        self, batch: Acknowledgement, in_flight: InFlightBatch
    ) -> Refusal | None:
        """Acknowledge part of a batch, a run of records of equal state at a time.

        Source: SharePartition.acknowledgePerOffsetBatchRecords.
        """
        in_flight.split()
        first_offset = max(batch.first_offset, self._records.start_offset, in_flight.first_offset)
        last_offset = min(batch.last_offset, in_flight.last_offset)
        if first_offset > last_offset:
            return None
        in_flight.cut(_bounds_of_types(batch, first_offset, last_offset))
        singly = self._limit.has_queue
        for first, last, state in in_flight.runs_in(first_offset, last_offset, singly=singly):
            if not state.is_acquired:
                return _invalid_state(
                    "The offset cannot be acknowledged. The offset is not acquired."
                )
            if state.member_id != self._locking.member_id:
                return _invalid_state("Member is not the owner of offset")
            refusal = self._apply(_type_of(batch, first), state, (first, last), in_flight)
            if refusal is not None:
                return refusal
        return None

    def _apply(
        self,
        kind: int,
        state: InFlightState,
        offsets: tuple[int, int],
        holder: InFlightBatch | None = None,
    ) -> Refusal | None:
        """Do with records what their type says.

        Args:
            kind: Their type.
            state: Their state.
            offsets: Of the first and the last one.
            holder: Their batch, where it is split.

        Source: SharePartition.acknowledgeCompleteBatch; kafka 4.4.0, recordStateWithDlq.
        """
        if kind == AcknowledgeType.RENEW:
            return self._renew(state, offsets, holder)
        is_rejected = kind == AcknowledgeType.REJECT
        to = self._limit.at_limit if is_rejected else _STATE_OF[kind]
        self._start(to, state, offsets, holder)
        return None

    def _renew(
        self, state: InFlightState, offsets: tuple[int, int], holder: InFlightBatch | None
    ) -> Refusal | None:
        """Begin the member's time anew. Nothing is written."""
        if not self._settings.is_renew_acknowledge_enabled:
            return _invalid_state("Renewing acquisition locks is not enabled for the group.")
        state.clear_lock()
        lock = self._locking.lock
        state.set_lock(
            lock(*offsets) if holder is None else self._locking.lock_each(holder, *offsets)
        )
        return None

    def _start(
        self,
        to: RecordState,
        state: InFlightState,
        offsets: tuple[int, int],
        holder: InFlightBatch | None,
    ) -> None:
        """Start a transition; where it ends in a terminal state, that is counted already."""
        state.start_transition(to, self._limit)
        first_offset, last_offset = offsets
        cause = None
        if to is RecordState.ARCHIVING:
            cause = DeadLetterCause.CLIENT_REJECT
        elif state.state is RecordState.ARCHIVING:
            cause = DeadLetterCause.DELIVERY_COUNT_EXCEEDED
        batch = StateBatch(first_offset, last_offset, state.state, state.delivery_count)
        self.changes.append(Change(state, batch, cause, holder))
        if state.state.is_terminal:
            self._records.delivery_complete_count += self._records.count_from_start(
                first_offset, last_offset
            )

    def release(self) -> None:
        """Start to give up all that the member has; behind the start offset it is archived.

        Source: SharePartition.releaseAcquiredRecords.
        """
        start_offset = self._records.start_offset
        for batch in self._records.batches:
            if not batch.is_split and not self._has(batch.state):
                continue
            if batch.is_split_by(start_offset):
                batch.split()
                batch.cut((start_offset,))
            for first, last, state, holder in self._runs_of(batch):
                if self._has(state):
                    is_behind = last < start_offset
                    to = RecordState.ARCHIVED if is_behind else RecordState.AVAILABLE
                    self._start(to, state, (first, last), holder)

    def _runs_of(
        self, batch: InFlightBatch
    ) -> Iterator[tuple[int, int, InFlightState, InFlightBatch | None]]:
        if not batch.is_split:
            yield batch.first_offset, batch.last_offset, batch.state, None
            return
        singly = self._limit.has_queue
        for run in batch.runs_in(batch.first_offset, batch.last_offset, singly=singly):
            yield *run, batch

    def _has(self, state: InFlightState) -> bool:
        return state.is_acquired and state.member_id == self._locking.member_id


def _bounds_of_types(batch: Acknowledgement, first_offset: int, last_offset: int) -> list[int]:
    """Where records of a range have another type than those before them; its first one, too."""
    types = bytes(batch.acknowledge_types)
    if len(types) <= 1:
        return [first_offset]
    start = first_offset - batch.first_offset
    runs = _RUN.finditer(types, start, last_offset - batch.first_offset + 1)
    # Records behind the last type have none.
    return [batch.first_offset + run.start() for run in runs] + [batch.first_offset + len(types)]


def _type_of(batch: Acknowledgement, offset: int) -> int:
    types = batch.acknowledge_types
    if not types:
        raise OperationAborted("no acknowledge type")
    if len(types) == 1:
        return types[0]
    index = offset - batch.first_offset
    if index >= len(types):
        raise OperationAborted("no acknowledge type for the offset", offset)
    return types[index]


def _invalid_state(text: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_RECORD_STATE, text)
