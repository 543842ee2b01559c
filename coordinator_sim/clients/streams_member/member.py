"""The consumer of a stream thread: an AsyncConsumer that is given tasks instead of partitions.

The stream thread is its application: it runs the callbacks onTasksAssigned, onTasksRevoked and
onAllTasksLost, and reads statuses and offsets in `StreamsRebalanceData`.

DEVIATION: a thread does not unsubscribe: nothing makes a task migrate but its loss.

DEVIATION: a description of the topology is never pushed: without a plugin no broker asks for it.

Source: kafka 4.4, clients/.../consumer/internals/StreamsMembershipManager.java,
StreamsGroupHeartbeatRequestManager.java, StreamsRebalanceListenerInvoker.java.
"""

from collections.abc import Iterable, Mapping
from enum import Enum, unique
from typing import Final, Unpack, cast

from coordinator_sim.clients.async_consumer import AsyncConsumer, states
from coordinator_sim.clients.async_consumer.heartbeats import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.clients.async_consumer.membership import LEAVE_EPOCH, AppEvent
from coordinator_sim.clients.async_consumer.promise import Promise, kept
from coordinator_sim.clients.background_requests import MemberSetup
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.effects import CallbackKind, StreamsTasks
from coordinator_sim.clients.exceptions import KAFKA
from coordinator_sim.clients.network import FOREVER, PendingRequest, RequestKind
from coordinator_sim.clients.streams_member.rebalance_data import SentTasks, StreamsRebalanceData
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import StreamsTaskId, TopicPartition
from coordinator_sim.kafka.states import StreamsStatus
from coordinator_sim.messages import streams_group_heartbeat as messages
from coordinator_sim.messages.requests import Response


@unique
class GroupMembershipOperation(Enum):
    """How a member leaves when it is closed. Source: CloseOptions.GroupMembershipOperation."""

    DEFAULT = "DEFAULT"
    """A static member says that it will come back, a dynamic one leaves."""
    LEAVE_GROUP = "LEAVE_GROUP"
    REMAIN_IN_GROUP = "REMAIN_IN_GROUP"
    """A dynamic member says nothing: its session times out."""


_NOT_READY: Final = (
    StreamsStatus.MISSING_SOURCE_TOPICS,
    StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS,
    StreamsStatus.MISSING_INTERNAL_TOPICS,
    StreamsStatus.ASSIGNMENT_DELAYED,
)
"""Statuses of a group that is not ready (isGroupReady)."""
_DEFAULTS: Final = {
    "enable.auto.commit": "false",
    "auto.offset.reset": "earliest",
    "max.poll.records": "1000",
}
"""Source: kafka 4.4, StreamsConfig.CONSUMER_DEFAULT_OVERRIDES."""


def streams_config(settings: Mapping[str, str]) -> ConsumerConfig:
    """Return the settings of a stream thread's consumer, whose thread commits itself.

    Raises:
        ConfigError: an unknown key, a value of the wrong kind, or one out of bounds.
    """
    return ConsumerConfig.from_settings({**_DEFAULTS, **settings})


class StreamsMember(AsyncConsumer):
    """The port of a member of a streams group.

    A callback's `streams` has its tasks: those revoked, or all that the thread is to have.

    Args:
        config: Timeouts and switches, see `streams_config`.
        rebalance_data: Shared with the stream thread.
        setup: See `MemberSetup`; `topics` are those of the rebalance data.

    Attributes:
        leaves_by: How the member leaves when it is closed; to be set before.
        paused: Partitions that are not fetched (KafkaConsumer.pause).
    """

    __slots__ = ("_sent_ms", "_sent_tasks", "leaves_by", "paused", "rebalance_data")

    def __init__(
        self,
        config: ConsumerConfig,
        *,
        rebalance_data: StreamsRebalanceData,
        **setup: Unpack[MemberSetup],
    ) -> None:
        super().__init__(config, **setup)
        self.rebalance_data = rebalance_data
        self.leaves_by = GroupMembershipOperation.DEFAULT
        self.paused: dict[TopicPartition, None] = {}
        self._sent_ms = 0
        self._sent_tasks = SentTasks()

    @property
    def fetchable(self) -> dict[TopicPartition, int]:
        """Positions of the partitions to fetch from: not of paused ones."""
        found = super().fetchable
        if not self.paused:
            return found
        return {each: offset for each, offset in found.items() if each not in self.paused}

    # Heartbeats.

    def _poll_heartbeat(self, now_ms: int) -> int:
        """Send a heartbeat if one is due; none to leave for whoever remains in the group."""
        is_leaving = self._member_state is states.MemberState.LEAVING
        if is_leaving and self._coordinator_id is not None and self._leaves_silently:
            self._heartbeat_skipped(now_ms)
            return FOREVER
        return super()._poll_heartbeat(now_ms)

    def _send_heartbeat(self, now_ms: int, kind: RequestKind) -> None:
        self._sent_ms = now_ms
        super()._send_heartbeat(now_ms, kind)

    def _heartbeat_request(self) -> HeartbeatRequest:
        identity = messages.StreamsGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            member_epoch=self._generation_id,
            instance_id=self._config.group_instance_id,
            rebalance_timeout_ms=self._config.rebalance_timeout_ms,
        )
        is_joining = self._member_state is states.MemberState.JOINING
        return self._sent_tasks.request(
            self.rebalance_data, identity, self._sent_ms, is_joining=is_joining
        )

    def _reset_sent_fields(self) -> None:
        self._sent_tasks.reset()

    def _dispatch(self, pending: PendingRequest, response: Response, now_ms: int) -> None:
        if isinstance(response, messages.StreamsGroupHeartbeatResponse):
            if pending.kind is RequestKind.HEARTBEAT:
                self._on_heartbeat(response, now_ms)
        else:
            super()._dispatch(pending, response, now_ms)

    def _heartbeat_accepted(self, response: HeartbeatResponse, now_ms: int) -> None:
        """Adopt epoch, settings, statuses and tasks (onSuccessResponse, onHeartbeatSuccess)."""
        response = cast("messages.StreamsGroupHeartbeatResponse", response)
        data = self.rebalance_data
        self._sent_tasks.endpoint_epoch = response.endpoint_information_epoch
        if response.member_epoch >= 0:
            data.heartbeat_interval_ms = response.heartbeat_interval_ms
            data.task_offset_interval_ms = response.task_offset_interval_ms
            data.acceptable_recovery_lag = response.acceptable_recovery_lag
        if response.partitions_by_user_endpoint is not None:
            data.endpoints = response.partitions_by_user_endpoint
        if response.status is not None:
            data.statuses = response.status
        if self._is_accepted_as_member(response.member_epoch, now_ms):
            self._take_tasks(response, now_ms)

    def _take_tasks(self, response: messages.StreamsGroupHeartbeatResponse, now_ms: int) -> None:
        """Adopt a target, or that the group has become ready for it, or no longer is."""
        statuses = response.status or ()
        is_ready = not any(each.status_code in _NOT_READY for each in statuses)
        if response.active_tasks is None:
            target = self._target.tasks
            if is_ready != target.is_group_ready:
                self._take_assignment({}, target.with_readiness(is_ready=is_ready))
            return
        tasks = StreamsTasks(
            active=_task_ids(response.active_tasks),
            standby=_task_ids(response.standby_tasks or ()),
            warmup=_task_ids(response.warmup_tasks or ()),
            is_group_ready=is_ready,
        )
        known = self.rebalance_data.subtopologies
        if any(each.subtopology not in known for each in tasks.all_tasks):
            self._fail_for_good(KAFKA, now_ms)
            return
        self._take_assignment({}, tasks)

    def _ends_leave(self, error: ErrorCode) -> bool:
        """Return False: no error ends the leave of a streams member."""
        del error
        return False

    # Reconciliation.

    def _maybe_reconcile(self, now_ms: int, *, may_commit: bool) -> None:
        """Give up, take over, acknowledge; on the network thread alone (maybeReconcile)."""
        is_reconciling = self._member_state is states.MemberState.RECONCILING
        is_done = not is_reconciling or self._current == self._target
        if may_commit or is_done or self._is_reconciling:
            return
        self._is_reconciling, self._rejoined_meanwhile = True, False
        target, owned = self._target, self._current.tasks.active
        wanted = dict.fromkeys(target.tasks.active)

        def revoked(error: str | None, at_ms: int) -> None:
            if error is not None:
                self._end_reconciliation()
            elif not self._maybe_abort():
                self._assign_tasks(target.tasks, owned).then(assigned, at_ms)

        def assigned(error: str | None, at_ms: int) -> None:
            del at_ms
            if error is not None:
                self._end_reconciliation()
            elif self._is_reconciling and not self._maybe_abort():
                self._current = target
                self._transition(states.MemberState.ACKNOWLEDGING)
                self._end_reconciliation()

        self._revoke_tasks(task for task in owned if task not in wanted).then(revoked, now_ms)

    def _revoke_tasks(self, tasks: Iterable[StreamsTaskId]) -> Promise:
        """Have the thread close active tasks; none at all is done at once (revokeActiveTasks)."""
        given_up = tuple(tasks)
        if not given_up:
            return kept()
        partitions = self.rebalance_data.partitions_of(given_up)
        self._mark_pending_revocation(partitions)
        outcome, kind = Promise(), CallbackKind.PARTITIONS_REVOKED
        streams = StreamsTasks(active=given_up)
        self._app_events.append(AppEvent(outcome, None, kind, partitions, streams=streams))
        return outcome

    def _assign_tasks(self, tasks: StreamsTasks, owned: Iterable[StreamsTaskId]) -> Promise:
        """Have the thread take over a whole assignment (assignTasks).

        A task that is active and a copy at once is active, one that is both kinds of copy is a
        standby task (DefaultStreamsRebalanceListener.deduplicateTasks).
        """
        assigned = self.rebalance_data.partitions_of(tasks.active)
        before = dict.fromkeys(self.rebalance_data.partitions_of(owned))
        added = tuple(each for each in assigned if each not in before)
        outcome = Promise()

        def taken_over(error: str | None, now_ms: int) -> None:
            del now_ms
            if error is None:
                self.rebalance_data.reconciled = tasks.deduplicated()
                for partition in assigned:
                    self._awaits_callback.pop(partition, None)

        outcome.then(taken_over, 0)
        event = AppEvent(outcome, partitions=added, assignment=assigned, streams=tasks)
        self._app_events.append(event)
        return outcome

    # Losing and leaving.

    def _call_back(
        self, kind: CallbackKind, partitions: Iterable[TopicPartition], now_ms: int
    ) -> Promise:
        """Have the thread close all tasks as lost (requestOnAllTasksLostCallbackInvocation)."""
        del now_ms
        outcome = self._forgetting_tasks(Promise())
        lost = tuple(sorted(partitions))
        self._app_events.append(AppEvent(outcome, None, kind, lost, streams=StreamsTasks()))
        return outcome

    def _forgetting_tasks(self, outcome: Promise) -> Promise:
        """Forget the tasks when the thread has closed them (onAllTasksLost)."""

        def closed(error: str | None, now_ms: int) -> None:
            del now_ms
            if error is None:
                self.rebalance_data.reconciled = StreamsTasks()

        outcome.then(closed, 0)
        return outcome

    @property
    def _leaves_silently(self) -> bool:
        """Whether no heartbeat says that it leaves (shouldSkipLeaveHeartbeat)."""
        is_dynamic = self._config.group_instance_id is None
        return is_dynamic and self.leaves_by is GroupMembershipOperation.REMAIN_IN_GROUP

    def _is_leaving(self) -> bool:
        return super()._is_leaving() and not self._leaves_silently

    def _begin_to_leave(self, *, is_poll_overdue: bool) -> None:
        super()._begin_to_leave(is_poll_overdue=is_poll_overdue)
        is_final = self.leaves_by is GroupMembershipOperation.LEAVE_GROUP
        if is_final and self._member_state is states.MemberState.LEAVING:
            self._take_epoch(LEAVE_EPOCH)

    def _fail_for_good(self, error: str, now_ms: int) -> None:
        """Tell the thread of an error that ends the membership (transitionToFatal).

        QUIRK: a leave that is answered so does not end: closing waits for its timeout.
        """
        if self._member_state is states.MemberState.UNSUBSCRIBED:
            self._app_events.append(AppEvent(Promise(), error))
            self._transition(states.MemberState.FATAL)
            self._note_epoch(None)
            return
        super()._fail_for_good(error, now_ms)

    def _close_committed(self, error: str | None, now_ms: int) -> None:
        """Run the callback even without a task (runRebalanceCallbacksOnClose)."""
        del error, now_ms
        self._refuses_commits = self._stops_lookups = True
        data, is_member = self.rebalance_data, self._generation_id > 0
        if is_member:
            tasks = StreamsTasks(active=data.reconciled.active)
            partitions, kind = data.partitions_of(tasks.active), CallbackKind.PARTITIONS_REVOKED
        else:
            tasks = StreamsTasks()
            partitions, kind = self.owned_partitions, CallbackKind.PARTITIONS_LOST
        self._run_callback(kind, partitions, self._close_leave, tasks)


def _task_ids(
    listed: Iterable[messages.StreamsGroupHeartbeatResponseTaskIds],
) -> tuple[StreamsTaskId, ...]:
    found = (StreamsTaskId(each.subtopology_id, n) for each in listed for n in each.partitions)
    return tuple(sorted(found))
