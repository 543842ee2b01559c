"""Heartbeats of the consumer protocol: when they are sent, and what their answers do.

Source: kafka 4.4, clients/.../consumer/internals/AbstractHeartbeatRequestManager.java and
ConsumerHeartbeatRequestManager.java.
"""

from typing import Final, Unpack

from coordinator_sim.clients.async_consumer.heartbeat_fields import Membership, SentFields
from coordinator_sim.clients.async_consumer.membership import AppEvent
from coordinator_sim.clients.async_consumer.promise import Promise
from coordinator_sim.clients.async_consumer.reconciliation import AsyncReconciliation
from coordinator_sim.clients.async_consumer.request_states import HeartbeatState
from coordinator_sim.clients.async_consumer.states import (
    BEATS_AT_ONCE,
    OUT_OF_GROUP,
    TAKES_ASSIGNMENT,
    MemberState,
)
from coordinator_sim.clients.background_requests import MemberSetup
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.exceptions import RETRIABLE, exception_name
from coordinator_sim.clients.network import FOREVER, RequestKind
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

_FENCES: Final = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)


class AsyncHeartbeats(AsyncReconciliation):
    """Tells the coordinator of the member, and the member of its answers."""

    __slots__ = ("_beat", "_poll_deadline_ms", "_sent_fields")

    def __init__(self, config: ConsumerConfig, **setup: Unpack[MemberSetup]) -> None:
        super().__init__(config, **setup)
        self._beat = HeartbeatState(config, self._jitter, key=self._client_id)
        self._sent_fields = SentFields()
        self._poll_deadline_ms = FOREVER

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
            self._sent_fields.reset()
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
        config = self._config
        request = self._sent_fields.request(
            Membership(
                group_id=self._group_id,
                member_id=self._member_id,
                member_epoch=self._generation_id,
                instance_id=config.group_instance_id,
                rack_id=config.client_rack or None,
                rebalance_timeout_ms=config.rebalance_timeout_ms,
                topics=self._subscription,
                regex=self._regex,
                server_assignor=config.group_remote_assignor,
                assignment=self._current,
                is_joining=self._member_state is MemberState.JOINING,
            )
        )
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

        Source: AbstractHeartbeatRequestManager.maximumTimeToWait,
        CommitRequestManager.maximumTimeToWait.
        """
        config, state = self._config, self._member_state
        knows = self._coordinator_id is not None
        longest_ms = FOREVER
        if config.enable_auto_commit:
            left_ms = self._auto_commit_due_ms - now_ms
            if left_ms <= 0 and self._auto_commit_in_flight:
                left_ms = config.auto_commit_interval_ms
            longest_ms = left_ms if knows else config.retry_backoff_ms
        if state in (MemberState.UNSUBSCRIBED, MemberState.FATAL):
            return longest_ms
        if now_ms >= self._poll_deadline_ms:
            return 0
        if not knows or state in OUT_OF_GROUP:
            return min(longest_ms, config.retry_backoff_ms)
        if state in BEATS_AT_ONCE and not self._beat.is_in_flight:
            return 0
        half_ms = (self._poll_deadline_ms - now_ms) // 2
        return min(longest_ms, half_ms, self._beat.next_in_ms(now_ms))

    def _restart_poll_timer(self, now_ms: int) -> None:
        """Note that the application polls; a member that had left for not polling joins again.

        Source: AbstractHeartbeatRequestManager.resetPollTimer.
        """
        if now_ms >= self._poll_deadline_ms:
            self._maybe_rejoin_stale(now_ms)
        self._poll_deadline_ms = now_ms + self._config.rebalance_timeout_ms

    # Answers.

    def _on_heartbeat(self, response: ConsumerGroupHeartbeatResponse, now_ms: int) -> None:
        """Take an answer (AbstractHeartbeatRequestManager.onResponse)."""
        if response.error_code is ErrorCode.NONE:
            self._beat.take_interval(response.heartbeat_interval_ms, now_ms)
            self._beat.succeeded(now_ms)
            self._heartbeat_accepted(response, now_ms)
        else:
            self._heartbeat_refused(response.error_code, now_ms)

    def _heartbeat_accepted(self, response: ConsumerGroupHeartbeatResponse, now_ms: int) -> None:
        """Adopt epoch and assignment (AbstractMembershipManager.onHeartbeatSuccess)."""
        state = self._member_state
        if state is MemberState.LEAVING:
            return
        has_left = response.member_epoch < 0
        if state is MemberState.UNSUBSCRIBED and has_left and self._left(now_ms):
            return
        if state in OUT_OF_GROUP:
            return
        if has_left:
            self._left(now_ms)
            return
        self._take_epoch(response.member_epoch)
        if response.assignment is not None and state in TAKES_ASSIGNMENT:
            self._take_assignment(
                {
                    each.topic_id: tuple(sorted(each.partitions))
                    for each in response.assignment.topic_partitions
                }
            )

    def _heartbeat_refused(self, error: ErrorCode, now_ms: int) -> None:
        """Handle an error (onErrorResponse, handleSpecificExceptionInResponse)."""
        self._sent_fields.reset()
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
            case ErrorCode.GROUP_ID_NOT_FOUND if self._member_state is MemberState.UNSUBSCRIBED:
                # It never joined, so it has left.
                pass
            case _:
                # GROUP_AUTHORIZATION_FAILED, INVALID_REQUEST, GROUP_MAX_SIZE_REACHED,
                # UNSUPPORTED_ASSIGNOR, INVALID_REGULAR_EXPRESSION, UNSUPPORTED_VERSION,
                # UNRELEASED_INSTANCE_ID, FENCED_INSTANCE_ID, and whatever is not expected.
                self._fail_for_good(exception_name(error), now_ms)
        self._heartbeat_failed(now_ms)

    def _heartbeat_lost(self, error: str, now_ms: int) -> None:
        """Handle a heartbeat that is not answered (AbstractHeartbeatRequestManager.onFailure)."""
        self._beat.failed(now_ms)
        self._sent_fields.reset()
        if error in RETRIABLE:
            self._lost_contact(error)
        else:
            self._fail_for_good(error, now_ms)
        self._heartbeat_failed(now_ms)

    def _heartbeat_failed(self, now_ms: int) -> None:
        """End a leave whose answer is no success (onHeartbeatFailure)."""
        if self._member_state is MemberState.UNSUBSCRIBED:
            self._left(now_ms)
