"""Requests of share partitions to the share coordinator, and their responses.

Plain data, and the port that carries it. A call passes a callback for its response, which may
arrive before the call returns, or later.

Source: kafka 4.3.1, server-common/.../share/persister/Persister.java, its parameters and results.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from msgspec import Struct

from coordinator_sim.broker.contract import Instants
from coordinator_sim.coordinator.modern.share.persister import (
    DeleteState,
    InitializeState,
    PersisterAnswer,
    answer_alike,
)
from coordinator_sim.kafka.errors import ErrorCode


class SharePartitionKey(NamedTuple):
    """A partition of a topic as one share group sees it."""

    group_id: str
    topic_id: bytes
    partition: int


class StateBatch(Struct, frozen=True, gc=False):
    """Consecutive records with one state.

    Args:
        first_offset: Of the first record.
        last_offset: Of the last record, inclusive.
        delivery_state: 0 available, 2 acknowledged, 4 archived, as on the wire.
        delivery_count: How often they were handed out.
    """

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


class ReadState(Struct, frozen=True, gc=False):
    """Read what is kept of a partition; the leader epoch fences older leaders."""

    key: SharePartitionKey
    leader_epoch: int


class StateRead(Struct, frozen=True, gc=False):
    """What is kept of a partition, or an error.

    Args:
        state_epoch: The group's epoch when the state was initialized.
        start_offset: The first offset that is not done with; -1 where nothing was decided yet.
        batches: The records from there on that are not just available, in ascending order.
        error: NONE, or why it was not read; the rest is then as in a new one.
        message: Words for people beside the error.
    """

    state_epoch: int = 0
    start_offset: int = -1
    batches: tuple[StateBatch, ...] = ()
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class WriteState(Struct, frozen=True, gc=False):
    """Keep these changes of a partition.

    Args:
        key: Which partition.
        state_epoch: As it was read; an older one is fenced.
        leader_epoch: Of the partition's leader, likewise.
        start_offset: The first offset that is not done with; -1 leaves it.
        delivery_complete_count: Records from there on that are acknowledged or archived.
        batches: What changed.
    """

    key: SharePartitionKey
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]


class StateWritten(Struct, frozen=True, gc=False):
    """How a write ended."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class StateSummary(Struct, frozen=True, gc=False):
    """Where a group is in a partition, for its administration, or an error.

    Args:
        state_epoch: As in `StateRead`.
        leader_epoch: Of the leader that wrote last.
        start_offset: As in `StateRead`.
        delivery_complete_count: As in `WriteState`; -1 where it is not known.
        error: NONE, or why it was not read.
        message: Words for people beside the error.
    """

    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = -1
    delivery_complete_count: int = -1
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class Persister(Protocol):
    """The share coordinators of a cluster, whoever leads the state of a partition."""

    def initialize(
        self, request: InitializeState, then: Callable[[PersisterAnswer], None], now: Instants
    ) -> None:
        """Begin to keep the state of partitions, for a group coordinator."""
        ...

    def delete(
        self, request: DeleteState, then: Callable[[PersisterAnswer], None], now: Instants
    ) -> None:
        """Forget the state of partitions, for a group coordinator."""
        ...

    def read(self, request: ReadState, then: Callable[[StateRead], None], now: Instants) -> None:
        """Read the state of a partition, for its leader."""
        ...

    def write(
        self, request: WriteState, then: Callable[[StateWritten], None], now: Instants
    ) -> None:
        """Write changes of the state of a partition, for its leader."""
        ...

    def summary(
        self, request: ReadState, then: Callable[[StateSummary], None], now: Instants
    ) -> None:
        """Read where a group is in a partition, for its administration."""
        ...


class NoOpPersister:
    """Keeps nothing: each leader begins as in a new group, and every call ends well at once.

    Source: kafka 4.4.0, server-common/.../share/persister/NoOpStatePersister.java.
    """

    def initialize(
        self, request: InitializeState, then: Callable[[PersisterAnswer], None], now: Instants
    ) -> None:
        """All partitions are initialized."""
        del now
        then(answer_alike(request))

    def delete(
        self, request: DeleteState, then: Callable[[PersisterAnswer], None], now: Instants
    ) -> None:
        """All partitions are forgotten."""
        del now
        then(answer_alike(request))

    def read(self, request: ReadState, then: Callable[[StateRead], None], now: Instants) -> None:
        """The state of a new group."""
        del request, now
        then(StateRead())

    def write(
        self, request: WriteState, then: Callable[[StateWritten], None], now: Instants
    ) -> None:
        """Drop the changes."""
        del request, now
        then(StateWritten())

    def summary(
        self, request: ReadState, then: Callable[[StateSummary], None], now: Instants
    ) -> None:
        """The summary of a new group."""
        del request, now
        then(StateSummary())
