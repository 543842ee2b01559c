"""Records that no member could use: a queue takes them before they are archived, from 4.4 on.

A record on its way there is archiving; when the queue has it, or has failed, it is archived.

Source: kafka 4.4.0, server/.../share/dlq/ShareGroupDLQManager; KIP-1191.
"""

from collections.abc import Callable, Iterable
from enum import Enum, unique
from typing import NamedTuple, Protocol

from msgspec import Struct

from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.shares.in_flight_batch import InFlightBatch
from coordinator_sim.broker.shares.in_flight_state import InFlightState
from coordinator_sim.broker.shares.persister import SharePartitionKey, StateBatch


@unique
class DeadLetterCause(Enum):
    """Why a record is given up, in the words of the queue. Source: ShareGroupDLQManager."""

    CLIENT_REJECT = "Offset rejected by client."
    DELIVERY_COUNT_EXCEEDED = "Offset delivery count exceeded the threshold."


class Change(NamedTuple):
    """Records that are given up by their member, for good or not yet.

    Args:
        state: Their state.
        batch: What is written of it.
        cause: Why they are dead letters, where they are.
        holder: Their batch, where it is split; they may get states of their own meanwhile.
    """

    state: InFlightState
    batch: StateBatch
    cause: DeadLetterCause | None = None
    holder: InFlightBatch | None = None

    def parts(self) -> Iterable[tuple[int, int, InFlightState]]:
        """The records in runs with one state each: first offset, last offset, state."""
        first_offset, last_offset = self.batch.first_offset, self.batch.last_offset
        if self.holder is None:
            return ((first_offset, last_offset, self.state),)
        return self.holder.runs_in(first_offset, last_offset)


class DeadLetters(Struct, frozen=True, gc=False):
    """Consecutive records for the queue.

    Args:
        key: The share partition.
        topic: Name of its topic.
        first_offset: Of the first record.
        last_offset: Of the last record, inclusive.
        delivery_count: How often they were handed out.
        cause: Why they are given up.
    """

    key: SharePartitionKey
    topic: str
    first_offset: int
    last_offset: int
    delivery_count: int
    cause: DeadLetterCause


class DeadLetterQueue(Protocol):
    """Where a group's dead letters go. Source: ShareGroupDLQManager."""

    def is_enabled(self, group_id: str) -> bool:
        """Whether the group has a queue. Source: SharePartition.isDLQEnabledForGroup."""
        ...

    def enqueue(
        self, letters: DeadLetters, then: Callable[[Instants], None], now: Instants
    ) -> None:
        """Take records; `then` is called when that has ended, well or not, at once or later."""
        ...

    def stop(self) -> None:
        """Write nothing any more: the broker's process has ended."""
        ...
