"""What goes into a `GroupCoordinator` and what comes out: the contract its drivers rely on."""

from typing import Protocol

from msgspec import Struct

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.records import LogBatch
from coordinator_sim.messages.requests import Response
from coordinator_sim.messages.txn_offset_commit import TxnOffsetCommitRequest
from coordinator_sim.trace.events import TraceEvent


class Reply(Struct, frozen=True, gc=False):
    """The answer to the request of that token. To be sent now, in the order given."""

    token: int
    response: Response


class CoordinatorResult(Struct, frozen=True, gc=False):
    """Everything one verb caused.

    Args:
        replies: Answers to send now, in this order; a request without one is parked or superseded.
        batches: Appended batches, for a driver that stores them, in log order per partition.
        events: What happened, for the trace, in order. Empty when the trace is off.
    """

    replies: tuple[Reply, ...] = ()
    batches: tuple[LogBatch, ...] = ()
    events: tuple[TraceEvent, ...] = ()


NOTHING = CoordinatorResult()
"""The result of a verb that caused nothing."""


class IdSource(Protocol):
    """Draws the random part of member ids."""

    def new_uuid(self) -> str:
        """A random UUID, version 4, lower case with dashes."""
        ...


class AppendPolicy(Protocol):
    """The one door for append faults."""

    def verdict(self, batch: LogBatch) -> ErrorCode:
        """NONE to let the batch be appended, or the error the append fails with."""
        ...

    def takes_unacknowledged(self, batch: LogBatch) -> bool:
        """Whether a batch is appended of which nobody hears the outcome, as Scala's tombstones."""
        ...


class TransactionVerifier(Protocol):
    """Knows which partitions are part of a producer's transaction."""

    def verdict(self, request: TxnOffsetCommitRequest, api_version: int) -> ErrorCode:
        """NONE if the offsets partition of the group is part of it, else what is wrong.

        The coordinator passes an error on as it does one of an append. What versions above 3 call
        otherwise is the verifier's to say: see `txn_validation.verification_error`.

        Source: ReplicaManager.maybeStartTransactionVerificationForPartition.
        """
        ...


class DeletedTopic(Struct, frozen=True, gc=False):
    """A topic that is gone.

    Args:
        topic_id: 16 bytes, or None if unknown; offsets stored under another id stay.
        partition_count: How many partitions it had, for profiles that delete one by one.
    """

    topic_id: bytes | None = None
    partition_count: int = 0


class CoordinatorConfig(Struct, frozen=True, kw_only=True):
    """The broker settings that a group coordinator reads. Defaults are Kafka 4.4's.

    Field `group_initial_rebalance_delay_ms` is `group.initial.rebalance.delay.ms`, and so on.

    Args:
        group_coordinator_append_linger_ms: How long records wait for others to be appended with; -1
            until nothing else is to be done, None as the profile has it.
        trace: Whether results carry events; off, the core spends nothing on them.
        idle_timers: Whether those of Kafka's timers run that change nothing by themselves: of its
            gauges, and of writes that are committed at once. They turn the timing wheel, which
            shows only in the order of timers due at one millisecond.
        marker_materialisation_ms: How long after its marker a transaction's end is seen, by
            profiles that see it in a step of its own. No setting of Kafka's: its scheduler's lag.
        hold_high_watermark: False: every append is committed at once. True: replies wait for
            `advance_high_watermark`.
    """

    broker_id: int = 0
    offsets_topic_num_partitions: int = 50
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2_147_483_647
    offset_metadata_max_bytes: int = 4_096
    offsets_commit_timeout_ms: int = 5_000
    group_coordinator_append_linger_ms: int | None = None
    offsets_retention_ms: int = 10_080 * 60_000
    offsets_retention_check_interval_ms: int = 600_000
    marker_materialisation_ms: int = 0
    trace: bool = True
    idle_timers: bool = False
    hold_high_watermark: bool = False
