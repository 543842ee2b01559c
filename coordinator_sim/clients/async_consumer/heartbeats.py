"""Heartbeats of members with epochs: when they are sent, and what their answers do.

Reconciliation: from the partitions that a member has to those that it is to have.

Commit, give up, take over, acknowledge: one reconciliation at a time. Topics whose names are not
known yet are left out, and the rest is acknowledged without them.

Source: kafka 4.4, clients/.../consumer/internals/AbstractHeartbeatRequestManager.java;
AbstractMembershipManager.java, maybeReconcile and what it calls.
"""

from abc import abstractmethod
from typing import Final, NamedTuple, Unpack

from coordinator_sim.clients.async_consumer.membership import AppEvent, AsyncMembership
from coordinator_sim.clients.async_consumer.promise import Promise, kept
from coordinator_sim.clients.async_consumer.request_states import HeartbeatState
from coordinator_sim.clients.async_consumer.states import (
    BEATS_AT_ONCE,
    NO_EPOCH,
    NO_TASKS,
    OUT_OF_GROUP,
    TAKES_ASSIGNMENT,
    LocalAssignment,
    MemberState,
    PartitionsById,
)
from coordinator_sim.clients.background_requests import MemberSetup
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.effects import CallbackKind, StreamsTasks
from coordinator_sim.clients.exceptions import KAFKA, RETRIABLE, exception_name
from coordinator_sim.clients.network import FOREVER, RequestKind
from coordinator_sim.clients.port_core import AppCall
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from coordinator_sim.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from coordinator_sim.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

HeartbeatRequest = (
    ConsumerGroupHeartbeatRequest | ShareGroupHeartbeatRequest | StreamsGroupHeartbeatRequest
)
HeartbeatResponse = (
    ConsumerGroupHeartbeatResponse | ShareGroupHeartbeatResponse | StreamsGroupHeartbeatResponse
)


class Step(NamedTuple):
    """A reconciliation under way.

    Args:
        resolved: The part of the target whose topics have names.
        assigned: The same by name, sorted.
        added: Those of them that the member has not, sorted.
        revoked: Partitions that it has and is to give up, sorted.
    """

    resolved: LocalAssignment
    assigned: tuple[TopicPartition, ...]
    added: tuple[TopicPartition, ...]
    revoked: tuple[TopicPartition, ...]


_FENCES: Final = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)


class AsyncHeartbeats(AsyncMembership):
    """Sends heartbeats, takes assignments from their answers, and works towards them."""

    __slots__ = (
        "_beat",
        "_has_left",
        "_ids_version",
        "_names_by_id",
        "_poll_deadline_ms",
    )

    def __init__(self, config: ConsumerConfig, **setup: Unpack[MemberSetup]) -> None:
        super().__init__(config, **setup)
        self._names_by_id: dict[bytes, str] = {}
        self._ids_version = -1
        self._beat = HeartbeatState(config, self._jitter, key=self._client_id)
        self._has_left = False
        self._poll_deadline_ms = FOREVER

    def _take_assignment(self, partitions: PartitionsById, tasks: StreamsTasks = NO_TASKS) -> None:
        """Adopt a target, to be reconciled later (processAssignmentReceived)."""
        target = self._target.changed_to(partitions, tasks)
        if target is not None:
            self._target = target
        if self._current != self._target:
            self._transition(MemberState.RECONCILING)
        elif self._member_state in (MemberState.RECONCILING, MemberState.JOINING):
            self._transition(MemberState.STABLE)

    def _maybe_reconcile(self, now_ms: int, *, may_commit: bool) -> None:
        """Begin to reconcile, where there is something to do (maybeReconcile).

        Args:
            now_ms: The present instant.
            may_commit: Whether the application polls right now. Without it nothing is given up, and
                nothing is committed: the application may be about to return records.
        """
        if self._member_state is not MemberState.RECONCILING:
            return
        if self._current == self._target or self._is_reconciling:
            return
        step = self._next_step()
        is_known = step.resolved.partitions == self._current.partitions
        if self._current.epoch != NO_EPOCH and is_known:
            if self._current.epoch != step.resolved.epoch:
                self._current = step.resolved
                self._transition(MemberState.ACKNOWLEDGING)
            return
        if not may_commit and (self._config.enable_auto_commit or step.revoked):
            return
        self._is_reconciling, self._rejoined_meanwhile = True, False
        self._mark_pending_revocation(step.revoked)
        deadline_ms = now_ms + self._config.rebalance_timeout_ms

        def committed(error: str | None, at_ms: int) -> None:
            # A commit that failed does not keep the member from going on.
            del error
            if not self._maybe_abort():
                self._revoke_and_assign(step, at_ms)

        self._commit_before_rebalance(deadline_ms, now_ms).then(committed, now_ms)

    def _next_step(self) -> Step:
        resolved: PartitionsById = {}
        assigned: list[TopicPartition] = []
        for topic_id, partitions in self._target.partitions.items():
            name = self._name_of(topic_id)
            if name is None:
                # Source: findResolvableAssignmentAndTriggerMetadataUpdate.
                self._metadata.request_update(has_reason=True)
            else:
                resolved[topic_id] = partitions
                assigned += (TopicPartition(name, number) for number in partitions)
        wanted = dict.fromkeys(assigned)
        return Step(
            resolved=LocalAssignment(self._target.epoch, resolved),
            assigned=tuple(sorted(assigned)),
            added=tuple(sorted(tp for tp in assigned if tp not in self._assigned)),
            revoked=tuple(sorted(tp for tp in self._assigned if tp not in wanted)),
        )

    def _name_of(self, topic_id: bytes) -> str | None:
        """Return a topic's name from the metadata, or as it was known (findTopicName...)."""
        metadata = self._metadata
        if metadata.version != self._ids_version:
            self._ids_version = metadata.version
            self._names_by_id = {t.topic_id: name for name, t in metadata.topics.items()}
        name = self._names_by_id.get(topic_id)
        if name is None:
            return self._topic_names.get(topic_id)
        self._topic_names[topic_id] = name
        return name

    def _maybe_abort(self) -> bool:
        """Whether the reconciliation is of no use any more; it ends then (maybeAbort...)."""
        is_over = self._member_state is not MemberState.RECONCILING or self._rejoined_meanwhile
        if is_over:
            self._end_reconciliation()
        return is_over

    def _end_reconciliation(self) -> None:
        self._is_reconciling = self._rejoined_meanwhile = False

    def _revoke_and_assign(self, step: Step, now_ms: int) -> None:
        """Give up, take over, acknowledge; a failed callback leaves the member RECONCILING.

        Source: revokeAndAssign.
        """

        def revoked(error: str | None, at_ms: int) -> None:
            if error is not None:
                self._end_reconciliation()
            elif not self._maybe_abort():
                self._assign_partitions(step).then(assigned, at_ms)

        def assigned(error: str | None, at_ms: int) -> None:
            if error is not None:
                self._end_reconciliation()
                return
            if self._is_reconciling and not self._maybe_abort():
                self._current = step.resolved
                self._restart_auto_commit(at_ms)
                self._transition(MemberState.ACKNOWLEDGING)
                self._end_reconciliation()

        outcome = self._revoke(step.revoked, now_ms) if step.revoked else kept()
        outcome.then(revoked, now_ms)

    def _revoke(self, revoked: tuple[TopicPartition, ...], now_ms: int) -> Promise:
        """Have the application give partitions up (revokePartitions)."""
        owned = [tp for tp in revoked if tp in self._assigned]
        self._mark_pending_revocation(owned)
        if self._member_state is MemberState.FATAL:
            outcome = Promise()
            outcome.complete(now_ms, KAFKA)
            return outcome
        return self._call_back(CallbackKind.PARTITIONS_REVOKED, owned, now_ms)

    def _assign_partitions(self, step: Step) -> Promise:
        """Own the new set; names of topics without a partition are forgotten (assignPartitions)."""
        outcome = self._assign(step)
        self._topic_names = {
            topic_id: name
            for topic_id, name in self._topic_names.items()
            if topic_id in step.resolved.partitions
        }
        return outcome

    # Sending.

    def _poll_heartbeat(self, now_ms: int) -> int:
        """Send a heartbeat if one is due; return how long there is nothing to do.

        Source: AbstractHeartbeatRequestManager.poll.
        """
        beat = self._beat
        if self._coordinator_id is None or self._member_state in OUT_OF_GROUP:
            self._heartbeat_skipped(now_ms)
            self._tell_fatal_lookup()
            return FOREVER
        if now_ms >= self._poll_deadline_ms and not self._is_leaving():
            self._begin_to_leave(is_poll_overdue=True)
            self._send_heartbeat(now_ms, RequestKind.LEAVE)
            beat.reset()
            self._reset_sent_fields()
            return beat.interval_ms
        state = self._member_state
        beats_at_once = state in BEATS_AT_ONCE and not beat.is_in_flight
        if not (state is MemberState.LEAVING or beats_at_once or beat.may_send(now_ms)):
            return beat.next_in_ms(now_ms)
        self._send_heartbeat(now_ms, RequestKind.HEARTBEAT)
        return beat.interval_ms

    def _send_heartbeat(self, now_ms: int, kind: RequestKind) -> None:
        """Send a heartbeat; one of kind LEAVE leaves without hearing the answer.

        Source: AbstractHeartbeatRequestManager.makeHeartbeatRequest.
        """
        request = self._heartbeat_request()
        self._request(kind, self._coordinator_node_id, request, now_ms)
        self._beat.sent()
        self._heartbeat_generated(now_ms)
        self._beat.restart(now_ms)

    def _heartbeat_generated(self, now_ms: int) -> None:
        """Take the state that follows a heartbeat on its way (onHeartbeatRequestGenerated)."""
        if self._member_state is MemberState.ACKNOWLEDGING:
            is_done = self._current == self._target
            self._transition(MemberState.STABLE if is_done else MemberState.RECONCILING)
        elif self._member_state is MemberState.LEAVING:
            if self._is_poll_overdue:
                self._become_stale(now_ms)
            else:
                self._transition(MemberState.UNSUBSCRIBED)

    def _heartbeat_skipped(self, now_ms: int) -> None:
        """Count a leave that cannot be sent as done (onHeartbeatRequestSkipped)."""
        if self._member_state is MemberState.LEAVING:
            self._transition(MemberState.UNSUBSCRIBED)
            self._left(now_ms)

    def _tell_fatal_lookup(self) -> None:
        error, self._fatal_lookup_error = self._fatal_lookup_error, None
        if error is not None:
            self._app_events.append(AppEvent(Promise(), error))

    def _longest_wait_ms(self, now_ms: int) -> int:
        """Return how long the application may wait for records before it looks around.

        Source: AbstractHeartbeatRequestManager.maximumTimeToWait.
        """
        state = self._member_state
        if state in (MemberState.UNSUBSCRIBED, MemberState.FATAL):
            return FOREVER
        if now_ms >= self._poll_deadline_ms:
            return 0
        if self._coordinator_id is None or state in OUT_OF_GROUP:
            return self._config.retry_backoff_ms
        if state in BEATS_AT_ONCE and not self._beat.is_in_flight:
            return 0
        half_ms = (self._poll_deadline_ms - now_ms) // 2
        return min(half_ms, self._beat.next_in_ms(now_ms))

    def _restart_poll_timer(self, now_ms: int) -> None:
        """Note that the application polls; a member that had left for not polling joins again.

        Source: AbstractHeartbeatRequestManager.resetPollTimer.
        """
        if now_ms >= self._poll_deadline_ms:
            self._maybe_rejoin_stale(now_ms)
        self._poll_deadline_ms = now_ms + self._config.rebalance_timeout_ms

    # Answers.

    def _on_heartbeat(self, response: HeartbeatResponse, now_ms: int) -> None:
        """Take an answer (AbstractHeartbeatRequestManager.onResponse)."""
        if response.error_code is ErrorCode.NONE:
            self._beat.take_interval(response.heartbeat_interval_ms, now_ms)
            self._beat.succeeded(now_ms)
            self._heartbeat_accepted(response, now_ms)
        else:
            self._heartbeat_refused(response.error_code, now_ms)

    def _heartbeat_accepted(self, response: HeartbeatResponse, now_ms: int) -> None:
        """Adopt epoch and assignment (AbstractMembershipManager.onHeartbeatSuccess)."""
        if not self._is_accepted_as_member(response.member_epoch, now_ms):
            return
        if isinstance(response, StreamsGroupHeartbeatResponse) or response.assignment is None:
            return
        if self._member_state in TAKES_ASSIGNMENT:
            self._take_assignment(
                {
                    each.topic_id: tuple(sorted(each.partitions))
                    for each in response.assignment.topic_partitions
                }
            )

    def _is_accepted_as_member(self, epoch: int, now_ms: int) -> bool:
        """Adopt the epoch of an answer, or end the leave; whether it was taken as a member's."""
        state = self._member_state
        if state is MemberState.LEAVING:
            return False
        has_left = epoch < 0
        if state is MemberState.UNSUBSCRIBED and has_left and self._left(now_ms):
            return False
        if state in OUT_OF_GROUP:
            return False
        if has_left:
            self._left(now_ms)
            return False
        self._take_epoch(epoch)
        return True

    def _heartbeat_refused(self, error: ErrorCode, now_ms: int) -> None:
        """Handle an error (onErrorResponse, handleSpecificExceptionInResponse)."""
        self._reset_sent_fields()
        self._beat.failed(now_ms)
        match error:
            case ErrorCode.NOT_COORDINATOR | ErrorCode.COORDINATOR_NOT_AVAILABLE:
                self._coordinator_id = None
                self._beat.reset()
            case ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                pass
            case ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                self._app_events.append(AppEvent(Promise(), exception_name(error)))
            case fenced if fenced in _FENCES:
                self._fence(now_ms)
                self._beat.reset()
            case _ if self._ends_leave(error):
                pass
            case _:
                # GROUP_AUTHORIZATION_FAILED, INVALID_REQUEST, GROUP_MAX_SIZE_REACHED,
                # UNSUPPORTED_ASSIGNOR, INVALID_REGULAR_EXPRESSION, UNSUPPORTED_VERSION,
                # UNRELEASED_INSTANCE_ID, FENCED_INSTANCE_ID, and whatever is not expected.
                self._fail_for_good(exception_name(error), now_ms)
        self._heartbeat_failed(now_ms)

    def _ends_leave(self, error: ErrorCode) -> bool:
        """Whether an error says that a member that has left never joined."""
        is_out = self._member_state is MemberState.UNSUBSCRIBED
        return is_out and error is ErrorCode.GROUP_ID_NOT_FOUND

    def _heartbeat_lost(self, error: str, now_ms: int) -> None:
        """Handle a heartbeat that is not answered (AbstractHeartbeatRequestManager.onFailure)."""
        self._beat.failed(now_ms)
        self._reset_sent_fields()
        if error in RETRIABLE:
            self._lost_contact(error)
        else:
            self._fail_for_good(error, now_ms)
        self._heartbeat_failed(now_ms)

    def _heartbeat_failed(self, now_ms: int) -> None:
        """End a leave whose answer is no success (onHeartbeatFailure)."""
        if self._member_state is MemberState.UNSUBSCRIBED:
            self._left(now_ms)

    # Closing.

    def _close_leave(self, now_ms: int) -> None:
        self._leave_group(now_ms, runs_callbacks=False).then(self._close_left, now_ms)

    def _close_left(self, error: str | None, now_ms: int) -> None:
        del error, now_ms
        self._has_left = True

    def _maybe_end_call(self, now_ms: int) -> None:
        is_overdue = self._call is AppCall.CLOSE and now_ms >= self._call_deadline_ms
        knows = self._coordinator_id is not None
        if is_overdue and knows and self._callback is None and self._is_leaving():
            # Who could not leave in time says so once more. Source: pollOnClose.
            self._send_heartbeat(now_ms, RequestKind.LEAVE)
        if self._has_left:
            self._finish_close()
        else:
            super()._maybe_end_call(now_ms)

    # What differs from one type of group to another.

    @abstractmethod
    def _heartbeat_request(self) -> HeartbeatRequest:
        """Return the next heartbeat, and remember what it tells (buildHeartbeatRequest)."""

    @abstractmethod
    def _reset_sent_fields(self) -> None:
        """Tell everything with the next heartbeat (resetHeartbeatState)."""

    @abstractmethod
    def _assign(self, step: Step) -> Promise:
        """Take over the partitions of a reconciliation (signalPartitionsAssigned)."""

    def _commit_before_rebalance(self, deadline_ms: int, now_ms: int) -> Promise:
        """Commit what the application has consumed, if it commits (signalReconciliationStarted)."""
        del deadline_ms, now_ms
        return kept()

    def _restart_auto_commit(self, now_ms: int) -> None:
        """Begin the interval of commits anew (signalReconciliationCompleting)."""
