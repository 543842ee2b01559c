"""What every handler of a group coordinator works on: settings, groups, partitions, what leaves.

Writes go the way of the profile's coordinator. Java's (`Runtime`) applies records as it appends
them, takes them back when the append is refused, and lets every answer wait for the log position
that the operation saw. Scala's (`ScalaRuntime`) changes its state when the append is through, and
only the operation that appended waits, for its own batch. Here are also the answers to requests
that end with an error.

Source: kafka trunk, coordinator-common/.../runtime/CoordinatorRuntime.java; kafka 3.9,
GroupMetadataManager.appendForGroup on DelayedProduce.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Protocol, cast

from msgspec.structs import replace

from coordinator_sim.coordinator import contract
from coordinator_sim.coordinator.classic.group import Group
from coordinator_sim.coordinator.common.runtime import (
    ACTIVE,
    ADAPTIVE,
    CoordinatorEvent,
    CoordinatorRuntime,
    OpenBatch,
    PartitionState,
)
from coordinator_sim.coordinator.effects import (
    NO_EFFECT,
    Effect,
    InternalTopic,
    Parked,
    Write,
)
from coordinator_sim.coordinator.epoch_tracing import trace_records, trace_undone
from coordinator_sim.coordinator.modern.share.persister import (
    DeleteState,
    InitializeState,
    PersisterAnswer,
    PersisterCall,
)
from coordinator_sim.coordinator.partition import Partition, partition_error
from coordinator_sim.coordinator.topics import KnownTopics
from coordinator_sim.coordinator.tracing import trace_response
from coordinator_sim.kafka.completion import CompleteTransaction, TransactionCompleted
from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.kafka.orders.iteration_order import ConcurrentHashTable
from coordinator_sim.kafka.orders.offset_maps import asked_order
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC, java_string_hash, partition_for
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.log.format.steps import Steps
from coordinator_sim.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from coordinator_sim.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from coordinator_sim.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupResponse
from coordinator_sim.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from coordinator_sim.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from coordinator_sim.messages.records import LogBatch, LogRecord
from coordinator_sim.messages.requests import Response, WaitingRequest
from coordinator_sim.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from coordinator_sim.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from coordinator_sim.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from coordinator_sim.trace.epoch_groups import EpochGroupStory
from coordinator_sim.trace.events import Event, TraceEvent

__all__ = [
    "ACTIVE",
    "NO_EFFECT",
    "Effect",
    "Parked",
    "Partition",
    "PartitionState",
    "Runtime",
    "Write",
    "partition_error",
]


@dataclass(slots=True)
class Counters:
    """Totals since the coordinator was made.

    Attributes:
        offset_commits: By the Java coordinator one for each offset, also of a refused append; by
            the Scala one, one for each request whose append is through.
        offset_expirations: Offsets whose retention was over.
        offset_deletions: Offsets that OffsetDelete removed.
        completed_rebalances: By the Java coordinator, generations that became Stable; by the
            Scala one, assignments that leaders brought.
    """

    offset_commits: int = 0
    offset_expirations: int = 0
    offset_deletions: int = 0
    completed_rebalances: int = 0


class AsksPersister(Protocol):
    """Who asked the share coordinator for something."""

    def answered(self, answer: PersisterAnswer) -> None:
        """Go on with the answer."""


_partition_of: Final = lru_cache(maxsize=65_536)(partition_for)


class Runtime(CoordinatorRuntime[Partition]):
    """The shared workbench of one coordinator's handlers; its writes are the Java coordinator's.

    Attributes:
        is_active: Whether requests are taken.
        is_over: Whether it was shut down.
        tracing: Whether events are wanted; callers ask before building one.
        groups: Every classic group of active partitions; `add_group`, `remove_group` change it.
        counters: Totals that the coordinator's metrics show.
        assignors: Those that compute the targets of groups.
        topic_rights: Which topics a sender may know of; None for all.
        topics: Of the cluster, for groups that are assigned here.
        open_groups: By producer id the groups with offsets in its transaction, by profiles whose
            groups keep them. Source: GroupMetadataManager.openGroupsForProducer.
        in_background: By partition and group the work of another thread; each returns an event.
        stories: Of the traced groups with epochs, by id; see `epoch_tracing`.
        persister: Share coordinator that may answer at once; None for none.
        persister_calls: By id who waits for the answer of the share coordinator.
    """

    __slots__ = (
        "_asked",
        "_batches",
        "_call_seq",
        "_events",
        "_group_configs",
        "_group_order",
        "_replies",
        "assignors",
        "config",
        "counters",
        "groups",
        "hold_high_watermark",
        "ids",
        "in_background",
        "is_active",
        "is_over",
        "open_groups",
        "partition_writer",
        "persister",
        "persister_calls",
        "profile",
        "stories",
        "tells_heartbeats",
        "topic_rights",
        "topics",
        "tracing",
        "verifier",
    )

    def __init__(
        self,
        config: contract.CoordinatorConfig,
        profile: Profile,
        ids: contract.IdSource,
        partition_writer: contract.PartitionWriter | None,
        verifier: contract.TransactionVerifier | None = None,
    ) -> None:
        linger_ms = config.group_coordinator_append_linger_ms
        linger_ms = profile.append_linger_ms if linger_ms is None else linger_ms
        super().__init__(OFFSETS_TOPIC, linger_ms)
        self.config = config
        self._group_configs: dict[str, contract.CoordinatorConfig] = {}
        self.topic_rights: contract.TopicRights | None = None
        self.counters = Counters()
        self.profile = profile
        self.ids = ids
        self.assignors = contract.Assignors()
        self.partition_writer = partition_writer
        self.verifier = verifier
        self.hold_high_watermark = config.hold_high_watermark
        self.is_active = True
        self.is_over = False
        self.tracing = config.trace
        self.tells_heartbeats = self.tracing
        self.groups: dict[str, Group] = {}
        self._group_order = ConcurrentHashTable(java_string_hash)
        self.topics = KnownTopics()
        self.open_groups: dict[int, dict[str, None]] = {}
        self.in_background: dict[tuple[int, str], Steps[CoordinatorEvent]] = {}
        self.stories: dict[str, EpochGroupStory] = {}
        self._call_seq = 0
        self.persister: contract.Persister | None = None
        self._replies: list[contract.Reply] = []
        self._batches: list[LogBatch] = []
        self._events: list[TraceEvent] = []
        self._asked: list[PersisterCall] = []
        self.persister_calls: dict[int, AsksPersister] = {}

    @property
    def write_timeout_ms(self) -> int:
        """The setting `offsets.commit.timeout.ms`."""
        return self.config.offsets_commit_timeout_ms

    # -- settings --------------------------------------------------------------------------

    def configure(
        self,
        config: contract.CoordinatorConfig,
        groups: Mapping[str, contract.CoordinatorConfig | None],
    ) -> None:
        """Go by other settings from now on; timers that run already stay as they are armed."""
        self.config = config
        for group_id, own in groups.items():
            if own is None:
                self._group_configs.pop(group_id, None)
            else:
                self._group_configs[group_id] = own

    def config_of(self, group_id: str) -> contract.CoordinatorConfig:
        """The settings of one group, which may have some of its own."""
        return self._group_configs.get(group_id, self.config)

    # -- groups ----------------------------------------------------------------------------

    def new_shard(self, index: int) -> Partition:
        """A partition without groups."""
        return Partition(index=index, profile=self.profile, present_ms=lambda: self.wall_ms)

    def add_new_group(self, partition: Partition, group: Group) -> None:
        """Add a group for which nothing is appended yet; a refused append takes it away.

        Readers see it once something is committed after it.
        """
        partition.add_group(group)
        partition.uncommitted_groups.append(group.group_id)

    def add_group(self, group: Group) -> None:
        """Make a group of an active partition known. Source: GroupMetadataManager.addGroup."""
        self.groups[group.group_id] = group
        self._group_order.add(group.group_id)

    def remove_group(self, group_id: str) -> None:
        """Forget a group if it is there."""
        if self.groups.pop(group_id, None) is not None:
            self._group_order.discard(group_id)

    def groups_in_cache_order(self) -> list[Group]:
        """Every group in the order of the Scala coordinator's one ConcurrentHashMap.

        Source: GroupMetadataManager.groupMetadataCache.
        """
        return [self.groups[group_id] for group_id in self._group_order]

    def partition_index(self, group_id: str) -> int:
        """The partition of the offsets topic that a group belongs to."""
        return _partition_of(group_id, self.config.offsets_topic_num_partitions)

    # -- what leaves -----------------------------------------------------------------------

    def take(self) -> contract.CoordinatorResult:
        """Everything gathered since the last call, once what is scheduled has run."""
        if self.scheduled:
            self.run_scheduled()
        replies, batches, events, asked = self._replies, self._batches, self._events, self._asked
        if not (replies or batches or events or asked):
            return contract.NOTHING
        result = contract.CoordinatorResult(
            tuple(replies), tuple(batches), tuple(events), tuple(asked)
        )
        asked.clear()
        replies.clear()
        batches.clear()
        events.clear()
        return result

    def reply(self, token: int, response: Response) -> None:
        """Send a response; the caller tells the trace."""
        self._replies.append(contract.Reply(token, response))

    def ask_persister(self, request: InitializeState | DeleteState, asker: AsksPersister) -> None:
        """Ask the share coordinator for something; the answer comes now, or with a later verb."""
        call = PersisterCall(self.new_call_id(), request)
        answer = None if self.persister is None else self.persister.asked(call)
        if answer is None:
            self.persister_calls[call.call_id] = asker
            self._asked.append(call)
        else:
            asker.answered(answer)

    def persister_answered(self, call_id: int, answer: PersisterAnswer) -> None:
        """Go on with an answer that comes by itself, while no event is under way."""
        asker = self.persister_calls.pop(call_id, None)
        if asker is not None:
            self.is_idle = True
            try:
                asker.answered(answer)
            finally:
                self.is_idle = False

    def new_call_id(self) -> int:
        """A number that no call has."""
        self._call_seq += 1
        return self._call_seq

    def answer(
        self,
        parked: Parked,
        response: Response,
        internal_topics: tuple[InternalTopic, ...] = (),
    ) -> None:
        """Answer a request, unless it has been answered before; tell which topics it needs."""
        if parked.is_answered:
            return
        parked.is_answered = True
        if isinstance(response, JoinGroupResponse):
            response = numbered(response, self.profile.join_error_generation)
        self._replies.append(contract.Reply(parked.context.token, response, internal_topics))
        if self.tracing:
            trace_response(self, parked, response)

    def emit(self, event: Event, **columns: Any) -> None:  # noqa: ANN401 - columns differ in type
        """Add an event to the trace; the columns are those of `TraceEvent`."""
        self._events.append(
            TraceEvent(
                event=event,
                ts_us=self.now_ms * 1_000,
                broker_id=self.config.broker_id,
                **columns,
            )
        )

    # -- writes ----------------------------------------------------------------------------

    def submit(self, partition: Partition, parked: Parked | None, effect: Effect) -> None:
        """Append an operation's batch if it has one, and finish the operation when it may be.

        The way of Java's coordinator; `ScalaRuntime` has its own. `effect.apply` is called as soon
        as the log has the batch, `effect.follow` once the write has ended, then the answer leaves.
        A refused append finishes the operation with its error at once.

        Args:
            partition: Where the batch goes.
            parked: Whose request it is; None for the work of a timer, or an answer not waiting.
            effect: What to append, answer and do.

        Source: CoordinatorWriteEvent.run and CoordinatorContext.append.
        """
        if self.tracing and effect.records:
            trace_records(self, partition, effect)
        write = Write(parked, effect, records=effect.records)
        if (self.linger_ms > 0 or self.is_gathering) and self._linger(partition, write):
            return
        if effect.records or effect.marker is not None:
            batch, error = self.append(partition, effect)
            if error is NO_ERROR:
                partition.offsets.appended(
                    batch, partition.high_watermark, offsets_alone=not effect.is_replayed
                )
                partition.uncommitted_groups.clear()
            else:
                partition.refused(batch, offsets_alone=not effect.is_replayed)
                self._undo_groups(partition)
            if self.config.idle_timers:
                self._touch_timeout(effect, error)
            if error is not NO_ERROR:
                self.complete(write, error)
                self.release(partition)
                return
        self.wait(partition, write)

    def _linger(self, partition: Partition, write: Write) -> bool:
        """Put an operation into the partition's open batch; whether that was the place for it.

        An operation without records joins a batch that is open, and none is opened for it. A
        transactional one, and a marker, first append what is open: if that is refused, so are they.

        Source: CoordinatorContext.append and completeTransaction.
        """
        effect = write.effect
        is_alone = effect.marker is not None or (effect.transactional and bool(effect.records))
        if not is_alone:
            is_added = bool(effect.records) or partition.open_batch is not None
            if is_added:
                self.add(partition, write)
            return is_added
        error = self.flush(partition)
        if error is not NO_ERROR:
            self.finish(write, error)
            return True
        if effect.marker is None and self.config.idle_timers:
            # Its own batch has a linger timer too, which ends with the write.
            self.timers.touch(self.now_ms + self.linger_ms)
        return False

    def _touch_timeout(self, effect: Effect, error: ErrorCode) -> None:
        """Turn the wheel by the timeout of a write that is over before it waits for anything.

        A refused one has a timeout too where its batch is appended by an event of its own.

        Source: CoordinatorWriteEvent.run, which arms the timeout unless the write has ended.
        """
        is_alone = effect.transactional or effect.marker is not None
        if error is NO_ERROR or (self.linger_ms == ADAPTIVE and not is_alone):
            self.timers.touch(self.now_ms + self.write_timeout_ms)

    def append_unacknowledged(self, partition: Partition, records: tuple[LogRecord, ...]) -> None:
        """Append records that nobody waits for: no verdict, no high watermark, no timeout.

        Source: kafka 3.9, GroupMetadataManager.cleanupGroupMetadata, which writes tombstones with
        acks 0 straight to the partition's leader log.
        """
        batch = self._batch(partition, Effect(records))
        if self.partition_writer is None or self.partition_writer.takes_unacknowledged(batch):
            self._put(partition, batch)

    def append(self, partition: Partition, effect: Effect) -> tuple[LogBatch, ErrorCode]:
        """Append an operation's batch, and call `effect.apply`; the caller replays or undoes it."""
        batch = self._batch(partition, effect)
        if self.partition_writer is not None:
            error = self.partition_writer.append(batch)
            if error is not NO_ERROR:
                return batch, error
        if not effect.is_empty_batch:
            self._put(partition, batch)
            if effect.apply is not None:
                effect.apply.applied(batch, batch.base_offset)
        return batch, NO_ERROR

    def append_open(self, partition: Partition, batch: OpenBatch) -> ErrorCode:
        """Append the open batch; a refusal is the caller's to undo."""
        times_ms = tuple(batch.times_ms)
        appended = LogBatch(
            partition=partition.index,
            base_offset=partition.end_offset,
            timestamp_ms=times_ms[0],
            records=tuple(batch.records),
            record_times_ms=times_ms if times_ms[-1] != times_ms[0] else (),
        )
        if self.partition_writer is not None:
            error = self.partition_writer.append(appended)
            if error is not NO_ERROR:
                return error
        self._put(partition, appended)
        partition.timeline.settle(partition.end_offset, partition.high_watermark)
        partition.uncommitted_groups.clear()
        return NO_ERROR

    def _batch(self, partition: Partition, effect: Effect) -> LogBatch:
        return LogBatch(
            partition=partition.index,
            base_offset=partition.end_offset,
            timestamp_ms=self.wall_ms,
            records=effect.records,
            producer_id=effect.producer_id,
            producer_epoch=effect.producer_epoch,
            transactional=effect.transactional,
            marker=effect.marker,
        )

    def _put(self, partition: Partition, batch: LogBatch) -> None:
        partition.end_offset = batch.next_offset
        if partition.is_replicated and not self.hold_high_watermark:
            partition.high_watermark = partition.end_offset
        self._batches.append(batch)

    def revert(self, partition: Partition) -> None:
        """Undo what the open batch applied, in the index of all groups too."""
        super().revert(partition)
        self._undo_groups(partition)

    def _undo_groups(self, partition: Partition) -> None:
        """The table went back to the last successful append: so does the index of all groups."""
        groups = partition.classic_groups()
        for group_id in partition.uncommitted_groups:
            if group_id in groups:
                self.groups[group_id] = groups[group_id]
            else:
                self.remove_group(group_id)
        partition.uncommitted_groups.clear()
        for group_id, group in groups.items():
            if group_id not in self.groups:
                self.add_group(group)
        if self.stories:
            trace_undone(self, partition)

    def complete(self, write: Write, error: ErrorCode) -> None:
        """End an operation: its follow-up first, then its answer."""
        effect, parked = write.effect, write.parked
        if effect.follow is not None:
            effect.follow.finish(error)
        if parked is None:
            return
        if error is not NO_ERROR:
            self.refuse(parked, error)
        elif effect.response is not None:
            self.answer(parked, effect.response, effect.internal_topics)

    def refuse(self, parked: Parked, error: ErrorCode) -> None:
        """Answer a request whose operation failed. Source: handleOperationException."""
        if not parked.is_answered:
            self.answer(parked, error_response(parked.request, error, self.profile))


class ScalaRuntime(Runtime):
    """The workbench of the Scala coordinator: memory follows what is committed."""

    __slots__ = ()

    def add_new_group(self, partition: Partition, group: Group) -> None:
        """The group is there for all; a refusal leaves it."""
        partition.put_group(group)

    def submit(self, partition: Partition, parked: Parked | None, effect: Effect) -> None:
        """Append if there is what to append, and wait until that is committed.

        Writes before it that still wait do not hold it up.

        Source: kafka 3.9, GroupMetadataManager.appendForGroup.
        """
        write = Write(parked, effect)
        if effect.records or effect.marker is not None or effect.is_empty_batch:
            _, error = self.append(partition, effect)
            if error is not NO_ERROR:
                self.complete(write, error)
                return
            if partition.high_watermark < partition.end_offset:
                self.defer(partition, write)
                return
        self.complete(write, NO_ERROR)


# -- answers of requests that end with an error ---------------------------------------------------


NOT_LED: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})
"""What the work of a timer is not repeated for. Source: CoordinatorTimerImpl.schedule."""

_METADATA_ERRORS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}

_FETCH_ERRORS: Final = {
    **_METADATA_ERRORS,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.NOT_COORDINATOR,
}

_COMMIT_ERRORS: Final = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}


def numbered(response: JoinGroupResponse, generation_id: int) -> JoinGroupResponse:
    """A JoinGroup's answer; a refusal that names no generation names that one."""
    is_thrown = response.error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    if response.generation_id != -1 or is_thrown:
        return response
    return replace(response, generation_id=generation_id)


def metadata_append_error(error: ErrorCode, profile: Profile) -> ErrorCode:
    """The error that a member receives when storing its group failed.

    Source: GroupMetadataManager.appendGroupMetadataErrorToResponseError.
    """
    if error is ErrorCode.REQUEST_TIMED_OUT:
        if profile.append_timeout_is_not_available:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return ErrorCode.REBALANCE_IN_PROGRESS
    if (
        error is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        and profile.under_replicated_append_is_not_available
    ):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return _METADATA_ERRORS.get(error, error)


def dead_error(profile: Profile) -> ErrorCode:
    """The error code of a response to a request for a Dead group."""
    if profile.dead_group_is_unknown:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.COORDINATOR_NOT_AVAILABLE


def operation_error(error: ErrorCode, profile: Profile) -> ErrorCode:
    """The error a client receives when the operation failed. Source: handleOperationException."""
    if error is ErrorCode.NETWORK_EXCEPTION:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return metadata_append_error(error, profile)


def fetch_error(error: ErrorCode) -> ErrorCode:
    """The error of a require-stable OffsetFetch. Source: handleOffsetFetchException."""
    return _FETCH_ERRORS.get(error, error)


def same_outcomes(
    topics: tuple[OffsetCommitRequestTopic, ...], error: ErrorCode
) -> tuple[OffsetCommitResponseTopic, ...]:
    """The same outcome for every partition of a commit, which has no error of its own."""
    return tuple(
        OffsetCommitResponseTopic(
            topic.name,
            partitions=tuple(
                OffsetCommitResponsePartition(p.partition_index, error) for p in topic.partitions
            ),
            topic_id=topic.topic_id,
        )
        for topic in topics
    )


def outcomes_by_topic(
    outcomes: Iterable[tuple[TopicPartition, ErrorCode]],
) -> tuple[OffsetCommitResponseTopic, ...]:
    """Outcomes of partitions, gathered by topic in the order in which the topics come up."""
    topics: dict[str, list[OffsetCommitResponsePartition]] = {}
    for place, error in outcomes:
        topics.setdefault(place.topic, []).append(
            OffsetCommitResponsePartition(place.partition, error)
        )
    return tuple(
        OffsetCommitResponseTopic(name, partitions=tuple(found)) for name, found in topics.items()
    )


def commit_error(error: ErrorCode) -> ErrorCode:
    """The error that a client of the Scala coordinator receives when storing offsets failed.

    Source: kafka 3.9, GroupMetadataManager.maybeConvertOffsetCommitError.
    """
    return _COMMIT_ERRORS.get(error, error)


def _refused_commit(
    topics: tuple[OffsetCommitRequestTopic, ...],
    error: ErrorCode,
    profile: Profile,
    *,
    transactional: bool = False,
) -> tuple[OffsetCommitResponseTopic, ...]:
    if profile.has_coordinator_runtime:
        return same_outcomes(topics, operation_error(error, profile))
    places = tuple(
        TopicPartition(topic.name, p.partition_index) for topic in topics for p in topic.partitions
    )
    code = commit_error(error)
    ordered = asked_order(profile.offset_maps, places, transactional=transactional)
    return outcomes_by_topic((place, code) for place in ordered)


def _altered(error: ErrorCode) -> Response:
    return AlterShareGroupOffsetsResponse(error_code=error, error_message=error_message(error))


def _deleted(error: ErrorCode) -> Response:
    return DeleteShareGroupOffsetsResponse(error_code=error, error_message=error_message(error))


_ALONE: Final[dict[type, Callable[[ErrorCode], Response]]] = {
    OffsetDeleteRequest: lambda error: OffsetDeleteResponse(error_code=error),
    ConsumerGroupHeartbeatRequest: lambda error: ConsumerGroupHeartbeatResponse(error_code=error),
    ShareGroupHeartbeatRequest: lambda error: ShareGroupHeartbeatResponse(error_code=error),
    StreamsGroupHeartbeatRequest: lambda error: StreamsGroupHeartbeatResponse(error_code=error),
    AlterShareGroupOffsetsRequest: _altered,
    DeleteShareGroupOffsetsRequest: _deleted,
}
"""Answers that have nothing but the error, some with its text."""


def error_response(request: WaitingRequest, error: ErrorCode, profile: Profile) -> Response:
    """The answer of an operation that failed with that error.

    Source: GroupCoordinatorService.joinGroup, syncGroup, heartbeat, leaveGroup and commitOffsets.
    """
    if isinstance(request, CompleteTransaction):
        return TransactionCompleted(error_code=error)
    code = operation_error(error, profile)
    alone = _ALONE.get(type(request))
    if alone is not None:
        return alone(code)
    match request:
        case JoinGroupRequest():
            return JoinGroupResponse(error_code=code, protocol_name=None)
        case SyncGroupRequest():
            if profile.sync_loading_is_rebalance and code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                code = ErrorCode.REBALANCE_IN_PROGRESS
            return SyncGroupResponse(error_code=code)
        case HeartbeatRequest():
            # The offsets topic is being loaded; the member is told that all is well.
            if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                code = ErrorCode.NONE
            return HeartbeatResponse(error_code=code)
        case LeaveGroupRequest():
            return _leave_error(request, code)
        case TxnOffsetCommitRequest():
            topics = _refused_commit(request.topics, error, profile, transactional=True)
            return TxnOffsetCommitResponse(topics=topics)
        case _:
            # The other types are in `_ALONE`.
            commit = cast("OffsetCommitRequest", request)
            return OffsetCommitResponse(topics=_refused_commit(commit.topics, error, profile))


def _leave_error(request: LeaveGroupRequest, error: ErrorCode) -> LeaveGroupResponse:
    """An unknown group is told entry by entry, anything else at the top."""
    if error is not ErrorCode.UNKNOWN_MEMBER_ID:
        return LeaveGroupResponse(error_code=error)
    return LeaveGroupResponse(
        members=tuple(
            MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=error,
            )
            for member in request.members
        )
    )
