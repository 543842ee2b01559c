"""The group coordinator of one broker: the verbs that its drivers call.

A function of (state, request, now): no clock, no sockets, no threads. Requests are routed to the
offsets partition of their group, checked, and given to the `handlers` of the profile's coordinator;
timers that came due do what they were armed for.

Source: kafka trunk, GroupCoordinatorService.java, CoordinatorTimerImpl.java and
CoordinatorRuntime.withActiveContextOrThrow; kafka 3.9, GroupCoordinator.validateGroupStatus and
DelayedOperation.scala.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from coordinator_sim.clock.clock import WallClock
from coordinator_sim.clock.timer_queue import Timer, TimerKind
from coordinator_sim.coordinator.classic.group import Group
from coordinator_sim.coordinator.classic.join_phase import (
    InitialDelay,
    OwnSession,
    complete_join,
    expire_initial_join,
)
from coordinator_sim.coordinator.classic.membership import (
    expire_own_session,
    expire_pending_sync,
    expire_session,
    handle_heartbeat,
)
from coordinator_sim.coordinator.common.runtime import OpenBatch
from coordinator_sim.coordinator.contract import (
    CoordinatorConfig,
    CoordinatorResult,
    DeletedTopic,
    IdSource,
    PartitionWriter,
    Persister,
    Reply,
    TopicRights,
    TransactionVerifier,
)
from coordinator_sim.coordinator.epoch_members import Fence, MemberTimeout, expire_member
from coordinator_sim.coordinator.epoch_refusals import refused
from coordinator_sim.coordinator.handlers import Handler, handlers_of
from coordinator_sim.coordinator.idle import (
    MemberOf,
    SkippedBeat,
    idle_sessions,
    skip_heartbeats,
)
from coordinator_sim.coordinator.inactive import (
    hears_metadata,
    shut_down,
    start_up,
)
from coordinator_sim.coordinator.inspection import state_of
from coordinator_sim.coordinator.loading import begin_anew, finish_load, replay_batch, unload
from coordinator_sim.coordinator.metrics import CoordinatorMetrics, Gauge, expire_gauge, measured
from coordinator_sim.coordinator.modern.consumer.group import ConsumerGroup
from coordinator_sim.coordinator.modern.consumer.heartbeat import invalid_heartbeat
from coordinator_sim.coordinator.modern.consumer.leaving import fence_consumer_member
from coordinator_sim.coordinator.modern.share.describe import initialized_partitions
from coordinator_sim.coordinator.modern.share.group import ShareGroup
from coordinator_sim.coordinator.modern.share.heartbeat import (
    fence_share_member,
    invalid_share_heartbeat,
)
from coordinator_sim.coordinator.modern.share.initializing import AskToInitialize
from coordinator_sim.coordinator.modern.share.persister import PersisterAnswer
from coordinator_sim.coordinator.offsets.commit_validation import verify
from coordinator_sim.coordinator.offsets.expiry import expire_offsets
from coordinator_sim.coordinator.runtime import (
    ACTIVE,
    NO_EFFECT,
    Effect,
    Parked,
    Partition,
    PartitionState,
    Runtime,
    ScalaRuntime,
    Write,
    partition_error,
)
from coordinator_sim.coordinator.scala.expiry import EXPIRY_KEY, scala_expire
from coordinator_sim.coordinator.scala.transactions import Materialisation, materialise
from coordinator_sim.coordinator.spanning import answer_spanning
from coordinator_sim.coordinator.streams.group import StreamsGroup
from coordinator_sim.coordinator.streams.heartbeat import invalid_streams_heartbeat
from coordinator_sim.coordinator.streams.leaving import expire_initial_delay, fence_streams_member
from coordinator_sim.coordinator.streams.timers import InitialAssignment
from coordinator_sim.coordinator.topics import KnownTopic
from coordinator_sim.coordinator.tracing import trace_request, trace_stale_resignation
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.completion import CompleteTransaction
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.log.format.steps import SLICE
from coordinator_sim.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupResponse
from coordinator_sim.messages.leave_group import LeaveGroupRequest
from coordinator_sim.messages.offset_commit import OffsetCommitRequest
from coordinator_sim.messages.records import LogBatch
from coordinator_sim.messages.requests import GroupRequest, OneGroupRequest, Response
from coordinator_sim.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from coordinator_sim.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from coordinator_sim.messages.sync_group import SyncGroupRequest
from coordinator_sim.messages.txn_offset_commit import TxnOffsetCommitRequest
from coordinator_sim.trace.events import Event

_A_TIMER: Final = 100
"""Cost of firing a timer, as `log.format.steps` counts: 50 us (measured)."""

_FENCES: Final[dict[type, Fence]] = {
    ConsumerGroup: fence_consumer_member,
    ShareGroup: fence_share_member,
    StreamsGroup: fence_streams_member,
}
"""What removes a member whose time is over, by the type of its group."""

_NAMELESS: Final = (
    OffsetCommitRequest,
    ConsumerGroupHeartbeatRequest,
    ShareGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequest,
)
"""Requests that may be of the group without a name, or whose form was checked before."""

_NAMELESS_BUT_JOIN: Final = (*_NAMELESS, SyncGroupRequest, HeartbeatRequest, LeaveGroupRequest)

_REQUEST_ERRORS: Final = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.INVALID_SESSION_TIMEOUT,
)
"""What is told before any partition is looked at; a refused JoinGroup is then told its own id."""


class GroupCoordinator:
    """One broker's group coordinator.

    Args:
        ids: Draws the random part of member ids.
        partition_writer: Writes batches, or refuses them; None takes all.
        verifier: Asked before a TxnOffsetCommit is looked at; None verifies all.
        started: Whether it takes requests at once; otherwise it refuses all until `startup`.
    """

    __slots__ = ("_handlers", "_nameless", "_runtime")

    def __init__(
        self,
        config: CoordinatorConfig,
        profile: Profile,
        *,
        ids: IdSource,
        partition_writer: PartitionWriter | None = None,
        verifier: TransactionVerifier | None = None,
        started: bool = True,
    ) -> None:
        kind = Runtime if profile.has_coordinator_runtime else ScalaRuntime
        self._runtime = kind(config, profile, ids, partition_writer, verifier)
        self._runtime.is_active = started
        self._handlers = handlers_of(profile)
        self._nameless = nameless_requests(profile)

    # -- its life --------------------------------------------------------------------------

    def startup(self, now_ms: int) -> None:
        """Take requests from now on. Nothing happens when it does already, or was shut down.

        Source: GroupCoordinatorService.startup; GroupCoordinator.startup (Scala), which also
        begins to look for what has expired.
        """
        self._runtime.now_ms = now_ms
        if start_up(self._runtime):
            self._handlers.start_jobs(self._runtime)

    def shutdown(self, now_ms: int) -> CoordinatorResult:
        """Refuse every request from now on, for good; no timer fires any more.

        Returns:
            In Java the answers of what was parked, NOT_COORDINATOR. In Scala nobody who waits is
            told anything.

        Source: GroupCoordinatorService.shutdown and CoordinatorRuntime.close; GroupCoordinator
        .shutdown (Scala), which ends the purgatories with what is in them.
        """
        runtime = self._runtime
        runtime.now_ms = now_ms
        shut_down(runtime, self._handlers.takeover)
        return runtime.take()

    # -- requests --------------------------------------------------------------------------

    def handle(
        self, request: GroupRequest, context: RequestContext, now_ms: int
    ) -> CoordinatorResult:
        """Take a request: answer it, park it, or refuse it.

        Args:
            request: Of one group, or an OffsetFetch of several.
            context: Its token names the answer.
            now_ms: Milliseconds on the caller's clock; never decreases between calls.

        Returns:
            The answer may come with a later verb, and answers of other requests may come with this
            one. A parked request that is superseded by another of the same member never gets one.
        """
        runtime = self._runtime
        runtime.now_ms = now_ms
        if type(request) is HeartbeatRequest:
            result = self._heartbeat_at_once(request, context)
            if result is not None:
                return result
        elif runtime.tracing:
            trace_request(runtime, request, context)
        # The requests without a handler are those of several groups.
        handler = self._handlers.of_group.get(type(request))
        if handler is None:
            answer_spanning(runtime, request, context, self._handlers.fetch_group)  # type: ignore[arg-type]
        else:
            self._take(handler, request, context)  # type: ignore[arg-type]
        return runtime.take()

    def _take(self, handler: Handler, request: OneGroupRequest, context: RequestContext) -> None:
        """Check a request of one group, and give it to its handler."""
        runtime = self._runtime
        parked = Parked(request, context)
        invalid = invalid_form(runtime, request, context.api_version)
        if invalid is not None and runtime.profile.consumer_form_first:
            runtime.answer(parked, invalid)
            return
        partition = runtime.partitions.get(runtime.partition_index(request.group_id))
        error = admission_error(runtime, request, context.api_version, partition, self._nameless)
        if partition is None or error is not NO_ERROR:
            self._refuse(parked, request, error)
            return
        if invalid is not None:
            runtime.answer(parked, invalid)
            return
        try:
            outcome = handler(runtime, partition, request, parked)
        except OperationAborted:
            outcome = ErrorCode.UNKNOWN_SERVER_ERROR
        if outcome is None:
            return
        if isinstance(outcome, ErrorCode):
            runtime.refuse(parked, outcome)
        else:
            self._handlers.submit(runtime, partition, parked, outcome)

    def _refuse(self, parked: Parked, request: OneGroupRequest, error: ErrorCode) -> None:
        runtime = self._runtime
        names_member = runtime.profile.refused_join_names_member or error in _REQUEST_ERRORS
        if isinstance(request, JoinGroupRequest) and names_member:
            answer = JoinGroupResponse(
                error_code=error, member_id=request.member_id, protocol_name=None
            )
            runtime.answer(parked, answer)
        else:
            runtime.refuse(parked, error)

    def complete_transaction(
        self, request: CompleteTransaction, context: RequestContext, now_ms: int
    ) -> CoordinatorResult:
        """End a producer's transaction on one offsets partition: write its marker.

        Returns:
            A `TransactionCompleted`, with this or a later verb, once the marker is committed.

        Source: GroupCoordinatorService.completeTransaction.
        """
        runtime = self._runtime
        runtime.now_ms = now_ms
        parked = Parked(request, context)
        partition = runtime.partitions.get(request.partition)
        if not runtime.is_active and runtime.profile.has_coordinator_runtime:
            runtime.refuse(parked, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        elif partition is None or partition.state is not PartitionState.ACTIVE:
            runtime.refuse(parked, partition_error(partition, runtime.profile))
        else:
            self._handlers.complete(runtime, partition, request, parked)
        return runtime.take()

    def use_persister(self, persister: Persister) -> None:
        """Ask this share coordinator from now on; without one calls leave with the results."""
        self._runtime.persister = persister

    def persister_answered(
        self, call_id: int, answer: PersisterAnswer, now_ms: int
    ) -> CoordinatorResult:
        """The share coordinator has done, or refused, what it was asked for.

        Args:
            call_id: Of the call. One that was answered before is passed over.
            answer: What became of it.
            now_ms: Instant of the answer.
        """
        runtime = self._runtime
        runtime.now_ms = now_ms
        runtime.persister_answered(call_id, answer)
        return runtime.take()

    def share_partitions_of(self, group_id: str) -> Mapping[bytes, frozenset[int]] | ErrorCode:
        """The partitions, by topic id, whose state is kept; see `initialized_partitions`."""
        return initialized_partitions(self._runtime, group_id)

    def topics_changed(
        self, changed: Iterable[KnownTopic], removed: Iterable[str], version: int
    ) -> None:
        """The cluster has other topics; `topics_deleted` follows for those that are gone.

        Args:
            changed: Topics that are new or have other partitions.
            removed: Names of topics that are gone.
            version: Of the cluster's metadata, greater than that of the last change.

        Source: GroupMetadataManager.onMetadataUpdate.
        """
        self._runtime.topics.change(changed, removed, version)

    def reconfigure(
        self, config: CoordinatorConfig, groups: Mapping[str, CoordinatorConfig | None]
    ) -> None:
        """Go by other settings from now on, the broker's and some groups'; None: none of its own.

        Timers that run stay as they are. Source: GroupConfigManager.updateGroupConfig.
        """
        self._runtime.configure(config, groups)

    def restrict_topics(self, rights: TopicRights | None) -> None:
        """Let expressions find only what the sender of a heartbeat may describe; None for all."""
        self._runtime.topic_rights = rights

    def topics_deleted(self, topics: Mapping[str, DeletedTopic], now_ms: int) -> CoordinatorResult:
        """Topics are gone: their offsets go too, of whatever group.

        Args:
            topics: By name, in the order of the metadata change.
            now_ms: Instant of the change.
        """
        runtime = self._runtime
        runtime.now_ms = now_ms
        if hears_metadata(runtime):
            self._handlers.delete_topics(runtime, topics)
        begin_anew(runtime, topics)
        return runtime.take()

    def _heartbeat_at_once(
        self, request: HeartbeatRequest, context: RequestContext
    ) -> CoordinatorResult | None:
        """The short way of a classic Heartbeat; None where it may have to wait."""
        runtime = self._runtime
        group = runtime.groups.get(request.group_id)
        if group is None or not request.group_id or not runtime.is_active:
            return None
        partition = runtime.partitions[group.offsets_partition]
        if not partition.is_settled or partition.deferred:
            return None
        answer = handle_heartbeat(runtime, group, request)
        if isinstance(answer, HeartbeatResponse):
            if not runtime.tells_heartbeats:
                return CoordinatorResult((Reply(context.token, answer),))
            runtime.answer(Parked(request, context), answer)
            return runtime.take()
        runtime.refuse(Parked(request, context), answer)
        return runtime.take()

    # -- time ------------------------------------------------------------------------------

    def expire(self, now_ms: int) -> CoordinatorResult:
        """Fire timers that are due, in the order of Kafka's timing wheel; resolve expressions.

        One call does a slice of that, some milliseconds; while more is due, the next deadline is
        not after `now_ms`. A timer that a fired one arms for the same instant fires too. This ends
        because every such chain does: an initial delay of 0 ms is followed by a generation.
        """
        runtime = self._runtime
        runtime.now_ms = now_ms
        fire_due(runtime)
        return runtime.take()

    def next_deadline_ms(self) -> int | None:
        """When `expire` has something to do next; None when nothing is armed."""
        runtime = self._runtime
        return runtime.now_ms if runtime.in_background else runtime.timers.next_deadline_ms()

    def wake_up_ms(self) -> int | None:
        """An instant not after `next_deadline_ms`, and cheaper to ask after every request.

        A driver that arms its alarm with it calls `expire` too early now and then, in vain.
        """
        runtime = self._runtime
        return runtime.now_ms if runtime.in_background else runtime.timers.wake_up_ms()

    def timers(self) -> tuple[Timer, ...]:
        """The armed timers in firing order, for inspection."""
        return tuple(self._runtime.timers)

    def idle_sessions(self) -> dict[MemberOf, int] | None:
        """The deadline of every session; None where anything but heartbeats is under way."""
        return idle_sessions(self._runtime)

    def skip_heartbeats(self, beats: Iterable[SkippedBeat]) -> None:
        """Take the last heartbeats of an idle stretch, in place of all of them."""
        skip_heartbeats(self._runtime, beats)

    # -- the log ---------------------------------------------------------------------------

    def advance_high_watermark(self, partition: int, offset: int, now_ms: int) -> CoordinatorResult:
        """Replication caught up to `offset`: answer, in order, what waited for it.

        Args:
            partition: Of the offsets topic.
            now_ms: Instant of the advance.
            offset: The new high watermark; one below the present is ignored.
        """
        runtime = self._runtime
        runtime.now_ms = now_ms
        part = runtime.partitions.get(partition)
        if part is not None and offset >= part.high_watermark:
            part.high_watermark = min(offset, part.end_offset)
            part.offsets.committed(part.high_watermark)
            # In Scala an append outlives the leadership; its writer then finds its group dead.
            if part.state is PartitionState.ACTIVE or not runtime.profile.has_coordinator_runtime:
                runtime.release(part)
        return runtime.take()

    def set_wall_clock(self, clock: WallClock) -> None:
        """Stamp commits, states and batches with another clock; instants of verbs stay as they are.

        Offsets expire by that clock, while sessions, rebalances and the times between two looks for
        expired offsets last as long as ever.

        Source: kafka trunk, OffsetMetadataManager.commitOffset, cleanupExpiredOffsets,
        ClassicGroup.transitionTo, CoordinatorRuntime.CoordinatorContext.append.
        """
        self._runtime.wall_clock = clock

    def hold_high_watermark(self, hold: bool, partition: int | None = None) -> None:
        """Make appends wait for `advance_high_watermark`, in one partition or in all, or stop that.

        A deposed leader that has not noticed yet commits nothing further.
        """
        if partition is None:
            self._runtime.hold_high_watermark = hold
        elif (part := self._runtime.partitions.get(partition)) is not None:
            part.is_replicated = not hold

    def end_offset(self, partition: int) -> int:
        """The offset of the next record in an offsets partition; 0 if it was never led here."""
        part = self._runtime.partitions.get(partition)
        return 0 if part is None else part.end_offset

    # -- leadership ------------------------------------------------------------------------

    def begin_load(self, partition: int, leader_epoch: int, now_ms: int) -> CoordinatorResult:
        """Begin to lead a partition: requests are told to wait until `finish_load`.

        An epoch not above the one known is ignored. A partition that is active goes on as it is,
        under the new epoch.

        Source: CoordinatorRuntime.scheduleLoadOperation.
        """
        runtime = self._runtime
        runtime.now_ms = now_ms
        if not hears_metadata(runtime):
            return runtime.take()
        runtime.timers.start(now_ms)
        if runtime.is_active:
            self._handlers.start_jobs(runtime)
        part = runtime.shard_of(partition)
        # Java forgets the epoch with the partition, Scala keeps it.
        is_forgotten = part.state is PartitionState.CLOSED and not runtime.profile.epochs_outlive
        if is_forgotten or self._is_newer(part, leader_epoch):
            part.leader_epoch = leader_epoch
            if part.state in {PartitionState.CLOSED, PartitionState.FAILED}:
                part.state = PartitionState.LOADING
                part.load_started_ms = now_ms
                part.loaded_records = 0
                if runtime.tracing:
                    attrs = {"epoch": str(leader_epoch)}
                    runtime.emit(Event.LOAD_START, offsets_partition=partition, attrs=attrs)
        return runtime.take()

    def replay(self, partition: int, batch: LogBatch) -> None:
        """Apply a stored batch of a partition that is loading; batches come in log order."""
        part = self._runtime.partitions.get(partition)
        if part is not None and part.state is PartitionState.LOADING:
            replay_batch(self._runtime, part, batch)

    def finish_load(self, partition: int, error: ErrorCode, now_ms: int) -> CoordinatorResult:
        """The log is replayed, or could not be: with an error the partition stays closed."""
        runtime = self._runtime
        runtime.now_ms = now_ms
        part = runtime.partitions.get(partition)
        if part is not None and part.state is PartitionState.LOADING:
            finish_load(runtime, self._handlers.takeover, part, error)
        return runtime.take()

    def unload(self, partition: int, leader_epoch: int | None, now_ms: int) -> CoordinatorResult:
        """Stop leading a partition: every parked request is told NOT_COORDINATOR.

        Args:
            partition: Of the offsets topic.
            now_ms: Instant of the resignation.
            leader_epoch: The new leader's; one below the epoch known is ignored. None always
                counts.

        Source: CoordinatorRuntime.scheduleUnloadOperation.
        """
        runtime = self._runtime
        runtime.now_ms = now_ms
        if not hears_metadata(runtime):
            return runtime.take()
        part = runtime.shard_of(partition)
        if leader_epoch is None or self._is_newer(part, leader_epoch):
            if runtime.profile.epochs_outlive and leader_epoch is not None:
                part.leader_epoch = leader_epoch
            if part.state is not PartitionState.CLOSED:
                unload(runtime, self._handlers.takeover, part, leader_epoch)
                return runtime.take()
        if runtime.tracing and runtime.profile.epochs_outlive:
            trace_stale_resignation(runtime, part, leader_epoch)
        return runtime.take()

    def _is_newer(self, partition: Partition, leader_epoch: int) -> bool:
        if self._runtime.profile.epochs_outlive:
            return leader_epoch >= partition.leader_epoch
        return leader_epoch > partition.leader_epoch

    # -- inspection ------------------------------------------------------------------------

    def metrics(self) -> CoordinatorMetrics:
        """What the broker's metrics would show now, by Kafka's names in `metrics.KAFKA_NAMES`."""
        return measured(self._runtime)

    def group(self, group_id: str) -> Group | None:
        """The classic group as it is now, for inspection; None when there is none led here."""
        return self._runtime.groups.get(group_id)

    def state_of(self, group_id: str) -> str | None:
        """The state of a group of any type that is led here, by its name in the trace."""
        return state_of(self._runtime, group_id)

    def tell_heartbeats(self, wanted: bool) -> None:
        """Whether results with events tell of heartbeats too, most of which change nothing."""
        self._runtime.tells_heartbeats = wanted and self._runtime.tracing

    def group_ids(self) -> list[str]:
        """The ids of all classic groups led here, for inspection, in order of their creation."""
        return list(self._runtime.groups)


# -- checks before a group is looked at -----------------------------------------------------------


def nameless_requests(profile: Profile) -> tuple[type[OneGroupRequest], ...]:
    """The requests whose group id is not checked here."""
    return _NAMELESS_BUT_JOIN if profile.only_join_checks_group_id else _NAMELESS


def admission_error(
    runtime: Runtime,
    request: OneGroupRequest,
    api_version: int,
    partition: Partition | None,
    nameless: tuple[type[OneGroupRequest], ...],
) -> ErrorCode:
    """Why a request is refused before its group is looked at; NONE if it is not.

    Args:
        runtime: The coordinator.
        request: The request.
        api_version: Of the request.
        partition: The offsets partition of its group; None for one never led.
        nameless: Requests whose group id is not checked.
    """
    profile, is_active = runtime.profile, runtime.is_active
    has_bad_name = not request.group_id and not isinstance(request, nameless)
    if has_bad_name and (is_active or profile.checks_group_id_first):
        return ErrorCode.INVALID_GROUP_ID
    if not is_active:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    own = NO_ERROR
    if type(request) is JoinGroupRequest:
        config, timeout_ms = runtime.config, request.session_timeout_ms
        least_ms, most_ms = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
        if not least_ms <= timeout_ms <= most_ms:
            own = ErrorCode.INVALID_SESSION_TIMEOUT
    elif type(request) is TxnOffsetCommitRequest and profile.has_coordinator_runtime:
        own = verify(runtime.verifier, request, api_version)
    if partition is not None and partition.state is ACTIVE:
        return own
    if own is not NO_ERROR and not profile.ownership_first:
        return own
    return partition_error(partition, profile)


def invalid_form(runtime: Runtime, request: OneGroupRequest, api_version: int) -> Response | None:
    """The refusal of a heartbeat whose own fields are invalid; None for a valid request."""
    if not runtime.is_active:
        return None
    if type(request) is ConsumerGroupHeartbeatRequest:
        fault = invalid_heartbeat(request, api_version, runtime.config)
        return None if fault is None else refused(ConsumerGroupHeartbeatResponse, fault)
    if type(request) is ShareGroupHeartbeatRequest:
        fault = invalid_share_heartbeat(request)
        return None if fault is None else refused(ShareGroupHeartbeatResponse, fault)
    if type(request) is StreamsGroupHeartbeatRequest:
        refusal = invalid_streams_heartbeat(request, runtime.profile)
        return None if refusal is None else refused(StreamsGroupHeartbeatResponse, refusal)
    return None


# -- timers that came due -------------------------------------------------------------------------


def fire_due(runtime: Runtime) -> None:
    """Fire timers that are due; whenever none is, another thread gets its turn; for a slice.

    What is left is due at the next call. Terminates: each turn takes some of the slice.
    """
    left = SLICE
    while True:
        while left > 0 and (timer := runtime.timers.pop_due(runtime.now_ms)) is not None:
            fire(runtime, timer)
            if runtime.scheduled:
                runtime.run_scheduled()
            left -= _A_TIMER
        if not runtime.in_background or left <= 0:
            return
        key, steps = next(iter(runtime.in_background.items()))
        try:
            while left > 0:
                left -= next(steps)
        except StopIteration as done:
            left -= 1
            del runtime.in_background[key]
            runtime.scheduled.append(done.value)
            runtime.run_scheduled()


def fire(runtime: Runtime, timer: Timer) -> None:
    """Do what a timer that came due, and is out of the queue, was armed for."""
    key, data = timer.key, timer.data
    if isinstance(data, Write):
        runtime.expire_write(data)
        return
    if isinstance(data, OpenBatch):
        runtime.end_linger(data)
        return
    if isinstance(data, Partition):
        expire_offsets(runtime, data)
        return
    if isinstance(data, Materialisation):
        materialise(runtime, data)
        return
    if key == EXPIRY_KEY:
        scala_expire(runtime)
        return
    if isinstance(data, Gauge):
        expire_gauge(runtime, data)
        return
    if isinstance(data, AskToInitialize):
        data.ask()
    elif isinstance(data, InitialAssignment):
        expire_initial_delay(runtime, data)
    elif isinstance(data, MemberTimeout):
        expire_member(runtime, data, _FENCES[data.group_type])
    else:
        _fire_of_group(runtime, timer)


def _fire_of_group(runtime: Runtime, timer: Timer) -> None:
    """Do what a timer of a classic group was armed for."""
    key = timer.key
    group = runtime.groups.get(key.group_id)
    if group is not None and runtime.profile.has_coordinator_runtime:
        # A foreign record may have brought a group whose id belongs elsewhere; Java keeps it there.
        index = group.offsets_partition
    else:
        index = runtime.partition_index(key.group_id)
    partition = runtime.partitions[index]
    try:
        effect = _fire_in_group(runtime, timer)
    except OperationAborted:
        return
    # A write without records waits behind others, and its own timeout turns the wheel.
    is_led = partition.state is PartitionState.ACTIVE
    if effect is not NO_EFFECT or (is_led and not partition.is_settled):
        runtime.submit(partition, None, effect)


def _fire_in_group(runtime: Runtime, timer: Timer) -> Effect:
    key, data = timer.key, timer.data
    if isinstance(data, OwnSession):
        return expire_own_session(runtime, data.group, data.member_id)
    if isinstance(data, Group):
        return expire_own_session(runtime, data, key.member_id)
    group = runtime.groups.get(key.group_id)
    if group is None or key.kind is TimerKind.ORPHAN:
        return NO_EFFECT
    match key.kind:
        case TimerKind.SESSION:
            return expire_session(runtime, group, key.member_id)
        case TimerKind.SYNC:
            return expire_pending_sync(runtime, group, data)
        case _:
            if isinstance(data, InitialDelay):
                return expire_initial_join(runtime, group, data)
            return complete_join(runtime, group)
