"""What a handler hands over: a request that waits, what shall be appended, and what follows it.

Plain data; what becomes of it is the business of `runtime`.

Source: kafka trunk, coordinator-common/.../runtime/CoordinatorResult.java and CoordinatorRuntime's
CoordinatorWriteEvent.
"""

from typing import Final, Protocol

from msgspec import Struct

from coordinator_sim.coordinator.common.runtime import WriteEvent
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.records import (
    NO_PRODUCER_ID,
    EndTransactionMarker,
    LogBatch,
    LogRecord,
)
from coordinator_sim.messages.requests import Response, WaitingRequest
from coordinator_sim.trace.epoch_groups import NOTHING_BESIDE, Beside


class Parked(Struct, eq=False, gc=False):
    """A request that is not answered yet. It is answered once; later answers are dropped."""

    request: WaitingRequest
    context: RequestContext
    is_answered: bool = False


class Follow(Protocol):
    """What a write does once it is committed, or has failed."""

    def finish(self, error: ErrorCode) -> None:
        """Go on with NONE, or undo because of the error of the append."""
        ...


class Apply(Protocol):
    """What a write does as soon as the log has taken its batch, committed or not."""

    def applied(self, batch: LogBatch, written: int) -> None:
        """Change the state in memory by what was appended, or lies in an open batch.

        Args:
            batch: The operation's records, with their offsets.
            written: The end of the log before the batch that they are part of.
        """
        ...


class InternalTopic(Struct, frozen=True):
    """A topic that a streams group needs, for the driver to create.

    Args:
        name: Its name.
        partition_count: How many partitions it shall have.
        replication_factor: Likewise; 0 for the cluster's default.
        configs: Its settings, as names and values.
    """

    name: str
    partition_count: int
    replication_factor: int = 0
    configs: tuple[tuple[str, str], ...] = ()


class Effect(Struct, frozen=True):
    """What a handler wants: a batch to append, an answer, and what to do after the append.

    Args:
        records: Of the batch; without records and marker nothing is appended.
        response: Sent when the write is through; None when the request is parked in its group or
            was answered already.
        follow: Told once how the write ended, before the answer leaves.
        apply: Told at once that the log took the batch; not called when the append is refused.
        producer_id: Of a transaction; -1 for plain records.
        transactional: Whether the batch counts only once a COMMIT marker of its producer follows.
        marker: Makes the batch a control batch, which has no other records.
        is_empty_batch: An append of nothing, which may fail and waits all the same.
        is_replayed: Whether records that are no offsets change their groups; False where the
            handler has put another group in their place itself.
            Source: CoordinatorResult.replayRecords.
        beside: What the trace of a consumer group is told beside the records.
        internal_topics: Topics that the group needs; told with the answer.
    """

    records: tuple[LogRecord, ...] = ()
    response: Response | None = None
    follow: Follow | None = None
    apply: Apply | None = None
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = -1
    transactional: bool = False
    marker: EndTransactionMarker | None = None
    is_empty_batch: bool = False
    is_replayed: bool = True
    beside: Beside = NOTHING_BESIDE
    internal_topics: tuple[InternalTopic, ...] = ()


NO_EFFECT: Final = Effect()
"""Nothing to append and nothing to say."""


class Write(WriteEvent, eq=False):
    """An operation on a partition's groups, which may wait for a log position.

    Args:
        parked: Whose request it is; None for the work of a timer.
    """

    parked: Parked | None
    effect: Effect
