"""The state of one transactional id, and the steps that change it.

A step is prepared, which blocks other steps, written to the log as a `TxnTransit`, and completed.

Source: kafka 4.3, transaction-coordinator TransactionMetadata.java, TransactionState.java and
TxnTransitMetadata.java. 3.9's Scala code agrees with it for version 0 of transactions.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum, unique
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_TIMESTAMP: Final = -1
MAX_EPOCH: Final = 32_767
"""`Short.MaxValue`: kept free, so that an epoch is always left to fence a producer."""
MAX_TIMEOUT_MS: Final = 2_147_483_647
"""The timeout of a transaction with two-phase commit, which never times out."""
TV_0: Final = 0
TV_2: Final = 2


def supports_epoch_bump(transaction_version: int) -> bool:
    """Whether every end of a transaction bumps the epoch. Source: TransactionVersion.java."""
    return transaction_version >= TV_2


@unique
class TransactionState(IntEnum):
    """State of a transactional id, by its number in the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def kafka_name(self) -> str:
        """Kafka's name of the state in DescribeTransactions, for example `PrepareCommit`."""
        return "".join(word.capitalize() for word in self.name.split("_"))


STATE_NAMES: Final = {state.kafka_name: state for state in TransactionState}
"""Every state by Kafka's name."""
_OVER: Final = frozenset(
    {
        TransactionState.EMPTY,
        TransactionState.COMPLETE_COMMIT,
        TransactionState.COMPLETE_ABORT,
    }
)
PREPARED: Final = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
"""States in which markers are being written."""
_COMPLETE: Final = frozenset({TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
_VALID_PREVIOUS: Final[dict[TransactionState, frozenset[TransactionState]]] = {
    TransactionState.EMPTY: _OVER,
    TransactionState.ONGOING: _OVER | {TransactionState.ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
    TransactionState.PREPARE_ABORT: _OVER | {TransactionState.ONGOING},
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
    TransactionState.DEAD: _OVER,
    TransactionState.PREPARE_EPOCH_FENCE: frozenset({TransactionState.ONGOING}),
}
"""The valid previous states of each state. Source: TransactionState.validPreviousStates."""


class TxnTransit(Struct, frozen=True, kw_only=True):
    """The state of a transactional id after a step.

    Args:
        partitions: Partitions of the transaction, in the order in which they were added.
        client_version: Level of `transaction.version` that the client used.
    """

    state: TransactionState
    producer_id: int
    previous_producer_id: int
    next_producer_id: int
    producer_epoch: int
    last_producer_epoch: int
    timeout_ms: int
    partitions: tuple[TopicPartition, ...]
    started_ms: int
    updated_ms: int
    client_version: int


@dataclass(slots=True)
class TransactionMetadata:
    """A coordinator's state of one transactional id.

    Attributes:
        previous_producer_id: Producer id before the current one, whose epochs were exhausted.
        next_producer_id: Producer id told to the producer for after the end, once epochs run out.
        last_producer_epoch: Previous epoch, which a repeated request may name; not in the log.
        partitions: Partitions of the transaction without a marker yet, in order.
        started_ms: When the first partition was added; -1 without a transaction.
        updated_ms: Time of the latest step, for expiry.
        pending: State of the prepared step; no other step may be prepared meanwhile.
        has_failed_epoch_fence: Whether a fence could not be written; the next keeps the epoch.
    """

    transactional_id: str
    producer_id: int
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    timeout_ms: int = 0
    state: TransactionState = TransactionState.EMPTY
    partitions: dict[TopicPartition, None] = field(default_factory=dict)
    started_ms: int = NO_TIMESTAMP
    updated_ms: int = 0
    client_version: int = TV_0
    pending: TransactionState | None = None
    has_failed_epoch_fence: bool = False

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether the producer id has no epoch left."""
        return is_epoch_exhausted(self.producer_epoch)

    @property
    def may_expire(self) -> bool:
        """Whether no transaction is open. Source: TransactionState.isExpirationAllowed."""
        return self.state in _OVER

    # -- preparing ----------------------------------------------------------------------------

    def prepare_fence(self) -> TxnTransit:
        """Prepare to fence the producer of an open transaction, which is then aborted."""
        is_kept = self.has_failed_epoch_fence or self.producer_epoch == MAX_EPOCH
        bumped = self.producer_epoch if is_kept else self.producer_epoch + 1
        now = self._current(TransactionState.PREPARE_EPOCH_FENCE)
        return self._prepare(replace(now, producer_epoch=bumped))

    def prepare_increment(
        self, timeout_ms: int, expected_epoch: int | None, now_ms: int
    ) -> TxnTransit | ErrorCode:
        """Prepare a producer's next epoch, or the epoch that it was given already.

        Args:
            timeout_ms: Timeout of the producer's transactions.
            expected_epoch: Epoch that the producer says it has; None if it gives none.
            now_ms: The present.
        """
        if self.is_epoch_exhausted:
            raise InvariantViolation(f"{self.transactional_id!r} has no epoch left")
        bumped = self.producer_epoch + 1
        if expected_epoch is None:
            epochs = (bumped, NO_PRODUCER_EPOCH)
        elif self.producer_epoch in (expected_epoch, NO_PRODUCER_EPOCH):
            epochs = (bumped, self.producer_epoch)
        elif expected_epoch == self.last_producer_epoch:
            epochs = (self.producer_epoch, self.last_producer_epoch)
        else:
            return ErrorCode.PRODUCER_FENCED
        return self._prepare(
            replace(
                self._empty(timeout_ms, now_ms),
                producer_epoch=epochs[0],
                last_producer_epoch=epochs[1],
            )
        )

    def prepare_rotation(
        self, producer_id: int, timeout_ms: int, now_ms: int, *, record_last_epoch: bool
    ) -> TxnTransit:
        """Prepare another producer id, as the epochs of the old one are exhausted."""
        last_epoch = self.producer_epoch if record_last_epoch else NO_PRODUCER_EPOCH
        return self._prepare(
            replace(
                self._empty(timeout_ms, now_ms),
                producer_id=producer_id,
                producer_epoch=0,
                last_producer_epoch=last_epoch,
            )
        )

    def prepare_add(
        self, added: Iterable[TopicPartition], now_ms: int, client_version: int
    ) -> TxnTransit:
        """Prepare to add partitions; this begins a transaction if none is open."""
        started_ms = now_ms if self.state in _OVER else self.started_ms
        return self._prepare(
            replace(
                self._current(TransactionState.ONGOING),
                partitions=tuple(dict.fromkeys((*self.partitions, *added))),
                started_ms=started_ms,
                updated_ms=now_ms,
                client_version=client_version,
            )
        )

    def prepare_end(
        self,
        state: TransactionState,
        client_version: int,
        next_producer_id: int,
        now_ms: int,
        *,
        is_without_partitions: bool,
    ) -> TxnTransit:
        """Prepare to commit or abort; once written, the outcome is final.

        Args:
            state: `PREPARE_COMMIT` or `PREPARE_ABORT`.
            client_version: From 2 on the epoch is bumped.
            next_producer_id: Producer id of later transactions; -1 to keep the current one.
            now_ms: The present.
            is_without_partitions: Whether the client aborts a transaction that never began here.
        """
        epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
        if supports_epoch_bump(client_version):
            last_epoch = epoch
            is_kept = epoch == MAX_EPOCH and state is TransactionState.PREPARE_ABORT
            epoch = epoch if is_kept else epoch + 1
        return self._prepare(
            replace(
                self._current(state),
                producer_epoch=epoch,
                last_producer_epoch=last_epoch,
                next_producer_id=next_producer_id,
                started_ms=now_ms if is_without_partitions else self.started_ms,
                updated_ms=now_ms,
                client_version=client_version,
            )
        )

    def prepare_complete(self, now_ms: int) -> TxnTransit:
        """Prepare the state after all markers are written."""
        self.has_failed_epoch_fence = False
        is_commit = self.state is TransactionState.PREPARE_COMMIT
        state = TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT
        transit = replace(
            self._current(state),
            next_producer_id=NO_PRODUCER_ID,
            partitions=(),
            updated_ms=now_ms,
        )
        if supports_epoch_bump(self.client_version) and self.next_producer_id != NO_PRODUCER_ID:
            transit = replace(transit, producer_id=self.next_producer_id, producer_epoch=0)
        return self._prepare(transit)

    def prepare_dead(self) -> TxnTransit:
        """Prepare to remove the id; its tombstone is being written."""
        return self._prepare(replace(self._current(TransactionState.DEAD), partitions=()))

    def _current(self, state: TransactionState) -> TxnTransit:
        return TxnTransit(
            state=state,
            producer_id=self.producer_id,
            previous_producer_id=self.producer_id,
            next_producer_id=self.next_producer_id,
            producer_epoch=self.producer_epoch,
            last_producer_epoch=self.last_producer_epoch,
            timeout_ms=self.timeout_ms,
            partitions=tuple(self.partitions),
            started_ms=self.started_ms,
            updated_ms=self.updated_ms,
            client_version=self.client_version,
        )

    def _empty(self, timeout_ms: int, now_ms: int) -> TxnTransit:
        return replace(
            self._current(TransactionState.EMPTY),
            timeout_ms=timeout_ms,
            partitions=(),
            started_ms=NO_TIMESTAMP,
            updated_ms=now_ms,
        )

    def _prepare(self, transit: TxnTransit) -> TxnTransit:
        """Check and prepare a step. Source: TransactionMetadata.prepareTransitionTo."""
        is_valid = self.state in _VALID_PREVIOUS[transit.state]
        has_epoch = transit.producer_epoch >= 0 or transit.state is TransactionState.DEAD
        if self.pending is not None or transit.producer_id < 0 or not has_epoch or not is_valid:
            raise self._impossible(transit)
        self.pending = transit.state
        return transit

    # -- completing ---------------------------------------------------------------------------

    def complete(self, transit: TxnTransit) -> None:
        """Apply a prepared step that is in the log now.

        Raises:
            InvariantViolation: another step was prepared, or the step does not fit this state.

        Source: TransactionMetadata.completeTransitionTo.
        """
        is_prepared = self.pending is transit.state
        if not is_prepared or not _CHECKS[transit.state](self, transit):
            raise self._impossible(transit)
        self.producer_id = transit.producer_id
        self.previous_producer_id = transit.previous_producer_id
        self.next_producer_id = transit.next_producer_id
        self.producer_epoch = transit.producer_epoch
        self.last_producer_epoch = transit.last_producer_epoch
        self.timeout_ms = transit.timeout_ms
        self.partitions = dict.fromkeys(transit.partitions)
        self.started_ms = transit.started_ms
        self.updated_ms = transit.updated_ms
        self.client_version = transit.client_version
        self.state = transit.state
        self.pending = None

    def marker_written(self, place: TopicPartition) -> None:
        """Remove a partition that has its marker."""
        if self.state not in PREPARED:
            raise InvariantViolation(f"{self.transactional_id!r} has no end to be written")
        self.partitions.pop(place, None)

    def has_valid_epoch(self, transit: TxnTransit) -> bool:
        """Whether a step fits id and epoch. Source: TransactionMetadata.validProducerEpoch."""
        if supports_epoch_bump(transit.client_version):
            if transit.state in _COMPLETE and transit.producer_epoch == 0:
                is_same_epoch = transit.last_producer_epoch == self.last_producer_epoch
                return is_same_epoch and transit.previous_producer_id == self.producer_id
            if transit.state in PREPARED:
                is_same_epoch = transit.last_producer_epoch == self.producer_epoch
                return is_same_epoch and transit.producer_id == self.producer_id
        is_same_epoch = transit.producer_epoch == self.producer_epoch
        return is_same_epoch and transit.producer_id == self.producer_id

    def _impossible(self, transit: TxnTransit) -> InvariantViolation:
        return InvariantViolation(
            f"{self.transactional_id!r} cannot go from {self.state.name} (pending {self.pending}) "
            f"to {transit}"
        )


def is_epoch_exhausted(producer_epoch: int) -> bool:
    """Whether an epoch is the last one that a producer can get."""
    return producer_epoch >= MAX_EPOCH - 1


def _may_be_empty(metadata: TransactionMetadata, transit: TxnTransit) -> bool:
    is_bumped = transit.producer_epoch in (metadata.producer_epoch, metadata.producer_epoch + 1)
    is_rotated = transit.producer_epoch == 0 and transit.producer_id != metadata.producer_id
    is_cleared = not transit.partitions and transit.started_ms == NO_TIMESTAMP
    return (is_bumped or is_rotated) and is_cleared


def _may_be_ongoing(metadata: TransactionMetadata, transit: TxnTransit) -> bool:
    has_all = all(place in transit.partitions for place in metadata.partitions)
    is_same_timeout = metadata.timeout_ms == transit.timeout_ms
    return metadata.has_valid_epoch(transit) and has_all and is_same_timeout


def _may_be_prepared(metadata: TransactionMetadata, transit: TxnTransit) -> bool:
    is_empty_abort = (
        transit.state is TransactionState.PREPARE_ABORT
        and supports_epoch_bump(transit.client_version)
        and metadata.state in _OVER
    )
    return (
        metadata.has_valid_epoch(transit)
        and tuple(metadata.partitions) == transit.partitions
        and metadata.timeout_ms == transit.timeout_ms
        and (metadata.started_ms == transit.started_ms or is_empty_abort)
    )


def _may_be_complete(metadata: TransactionMetadata, transit: TxnTransit) -> bool:
    is_same_timeout = metadata.timeout_ms == transit.timeout_ms
    is_started = transit.started_ms != NO_TIMESTAMP
    return metadata.has_valid_epoch(transit) and is_same_timeout and is_started


def _never(_metadata: TransactionMetadata, _transit: TxnTransit) -> bool:
    """Return False: a fence becomes an abort before it is written, and a dead id is removed."""
    return False


_CHECKS: Final = {
    TransactionState.EMPTY: _may_be_empty,
    TransactionState.ONGOING: _may_be_ongoing,
    TransactionState.PREPARE_COMMIT: _may_be_prepared,
    TransactionState.PREPARE_ABORT: _may_be_prepared,
    TransactionState.COMPLETE_COMMIT: _may_be_complete,
    TransactionState.COMPLETE_ABORT: _may_be_complete,
    TransactionState.DEAD: _never,
    TransactionState.PREPARE_EPOCH_FENCE: _never,
}
