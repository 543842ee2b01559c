"""What goes into a `GroupCoordinator` and what comes out: the contract its drivers rely on."""

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from msgspec import Struct, field

from coordinator_sim.assignors.server import (
    ServerAssignor,
    ServerRangeAssignor,
    ServerUniformAssignor,
)
from coordinator_sim.assignors.share_contract import Target as ShareTarget
from coordinator_sim.assignors.share_simple import assign_simple
from coordinator_sim.assignors.streams_sticky import AssignedTasks, assign_tasks
from coordinator_sim.coordinator.effects import InternalTopic
from coordinator_sim.coordinator.modern.share.persister import PersisterAnswer, PersisterCall
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.migration_policy import MigrationPolicy
from coordinator_sim.messages.records import LogBatch
from coordinator_sim.messages.requests import Response
from coordinator_sim.messages.txn_offset_commit import TxnOffsetCommitRequest
from coordinator_sim.trace.events import TraceEvent


class Reply(Struct, frozen=True, gc=False):
    """The answer to the request of that token. To be sent now, in the order given.

    Args:
        token: Of the request.
        response: The answer.
        internal_topics: Topics that a streams group needs, for the driver to create.
    """

    token: int
    response: Response
    internal_topics: tuple[InternalTopic, ...] = ()


class CoordinatorResult(Struct, frozen=True, gc=False):
    """Everything one verb caused. Kafka's class of this name is `effects.Effect` here.

    Args:
        replies: Answers to send now, in this order; a request without one is parked or superseded.
        batches: Appended batches, in log order per partition, for a driver that stores them. Those
            of a served cluster are in its log by then.
        events: What happened, for the trace, in order. Empty when the trace is off.
        persister_calls: What the share coordinator is asked for and did not answer at once, in
            order; each is answered once, by `GroupCoordinator.persister_answered`.
    """

    replies: tuple[Reply, ...] = ()
    batches: tuple[LogBatch, ...] = ()
    events: tuple[TraceEvent, ...] = ()
    persister_calls: tuple[PersisterCall, ...] = ()


NOTHING = CoordinatorResult()
"""The result of a verb that caused nothing."""


class IdSource(Protocol):
    """Draws the random part of member ids."""

    def new_uuid(self) -> str:
        """A random UUID, version 4, lower case with dashes."""
        ...


class PartitionWriter(Protocol):
    """Writes batches to the log of their partition; a fault of an append comes from here alone.

    Source: coordinator-common/.../runtime/PartitionWriter.java.
    """

    def append(self, batch: LogBatch) -> ErrorCode:
        """Write a batch; return NONE, or the error that the append fails with.

        In a served cluster the batch is in the log then (`OffsetsTopic.append`). A driver that
        stores the batches of a `CoordinatorResult` only decides here.
        """
        ...

    def takes_unacknowledged(self, batch: LogBatch) -> bool:
        """Append a batch whose outcome no request awaits, as Scala's tombstones; False if lost."""
        ...


class TransactionVerifier(Protocol):
    """Knows which partitions are part of a producer's transaction."""

    def verdict(self, request: TxnOffsetCommitRequest, api_version: int) -> ErrorCode:
        """NONE if the offsets partition of the group is part of it, else what is wrong.

        The coordinator passes an error on as it does one of an append. What versions above 3 call
        otherwise is the verifier's to say: see `commit_validation.verification_error`.

        Source: ReplicaManager.maybeStartTransactionVerificationForPartition.
        """
        ...


class TopicRights(Protocol):
    """Knows which topics the sender of a request may know of."""

    def __call__(self, context: RequestContext, topic: str, /) -> bool:
        """Whether the sender of a request may describe a topic."""
        ...


class Persister(Protocol):
    """A share coordinator, as far as a group coordinator reaches it without waiting."""

    def asked(self, call: PersisterCall) -> PersisterAnswer | None:
        """The answer to a call; None where the driver will bring it."""
        ...


KAFKA_ASSIGNORS: Final[Mapping[str, ServerAssignor]] = {
    assignor.name: assignor
    for assignor in (ServerUniformAssignor(yields_extra=True), ServerRangeAssignor())
}
"""The assignors of consumer groups that Kafka's brokers bring along, by their names."""


class Assignors(Struct, frozen=True):
    """The server-side assignors of a coordinator, by default Kafka's.

    Args:
        consumer: Those of consumer groups, by their names.
        share: That of share groups; see `assign_simple`.
        streams: That of streams groups; see `assign_tasks`.
    """

    consumer: Mapping[str, ServerAssignor] = field(default_factory=lambda: KAFKA_ASSIGNORS)
    share: Callable[..., Mapping[str, ShareTarget]] = assign_simple
    streams: Callable[..., Mapping[str, AssignedTasks]] = assign_tasks


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
        group_consumer_assignors: Names of the server-side assignors that a member may ask for; the
            first is used where nobody asks.
        group_consumer_migration_policy: Which way groups with members may change their type.
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
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_heartbeat_interval_ms: int = 5_000
    group_consumer_max_size: int = 2_147_483_647
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    group_consumer_assignment_interval_ms: int = 1_000
    group_consumer_regex_refresh_interval_ms: int = 600_000
    group_consumer_migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    group_share_session_timeout_ms: int = 45_000
    group_share_heartbeat_interval_ms: int = 5_000
    group_share_max_size: int = 200
    group_share_assignment_interval_ms: int = 1_000
    group_share_initialize_retry_interval_ms: int = 30_000
    group_streams_session_timeout_ms: int = 45_000
    group_streams_heartbeat_interval_ms: int = 5_000
    group_streams_max_size: int = 2_147_483_647
    group_streams_num_standby_replicas: int = 0
    group_streams_num_warmup_replicas: int = 2
    group_streams_initial_rebalance_delay_ms: int = 3_000
    group_streams_assignment_interval_ms: int = 1_000
    group_streams_task_offset_interval_ms: int = 60_000
    group_streams_acceptable_recovery_lag: int = 10_000
    group_streams_rack_aware_assignment_tags: tuple[str, ...] = ()
    marker_materialisation_ms: int = 0
    trace: bool = True
    idle_timers: bool = False
    hold_high_watermark: bool = False
