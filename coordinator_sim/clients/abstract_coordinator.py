"""The client side of group membership as a whole: joining, heartbeats, and leaving.

Shared by consumers and Connect workers. `port_core` has threads and network, `heartbeat_thread`
discovery and heartbeats; here are joining (the loop of JoinGroup and SyncGroup, and its retries),
leaving, closing, and the table that maps each answer to its handler.

Source: kafka trunk, clients/.../consumer/internals/AbstractCoordinator.java;
AbstractCoordinator.java, ensureActiveGroup, joinGroupIfNeeded, JoinGroupResponseHandler,
SyncGroupResponseHandler.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Final, Unpack

from coordinator_sim.clients import exceptions
from coordinator_sim.clients.config import GroupConfig
from coordinator_sim.clients.effects import Closed, Effects
from coordinator_sim.clients.exceptions import (
    COORDINATOR_NOT_AVAILABLE,
    ILLEGAL_GENERATION,
    IMMEDIATE_REJOIN,
    KAFKA,
    MEMBER_ID_REQUIRED,
    RETRIABLE,
    UNJOINED_GROUP,
    exception_name,
)
from coordinator_sim.clients.generation import Generation, MemberState
from coordinator_sim.clients.heartbeat_thread import HeartbeatThread
from coordinator_sim.clients.network import FOREVER, Future, PendingRequest, RequestKind
from coordinator_sim.clients.port_core import POLLING, AppCall, PortSetup, Wait
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.context import NO_GENERATION_ID
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.find_coordinator import FindCoordinatorResponse
from coordinator_sim.messages.heartbeat import HeartbeatResponse
from coordinator_sim.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from coordinator_sim.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from coordinator_sim.messages.metadata import MetadataResponse
from coordinator_sim.messages.requests import Response
from coordinator_sim.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

MAX_REASON_LENGTH: Final = 255
"""Length of a reason in JoinGroup and LeaveGroup (JoinGroupRequest.maybeTruncateReason)."""

_FATAL_JOIN_ERRORS: Final = (
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode.INVALID_SESSION_TIMEOUT,
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_MAX_SIZE_REACHED,
    ErrorCode.UNSUPPORTED_VERSION,
)


class AbstractCoordinator(HeartbeatThread):
    """A group member, from UNJOINED to STABLE and back there after every rebalance.

    Subclasses define its protocols and how it uses an assignment.
    """

    __slots__ = (
        "_active_deadline_ms",
        "_active_then",
        "_join_future",
        "_rejoin_needed",
        "_rejoin_reason",
    )

    def __init__(self, config: GroupConfig, **setup: Unpack[PortSetup]) -> None:
        super().__init__(config, **setup)
        self._join_future: Future | None = None
        self._rejoin_needed = True
        self._rejoin_reason = ""
        self._active_deadline_ms = 0
        self._active_then: Callable[[bool, int], None]

    # Rejoin rules.

    def request_rejoin(self, reason: str) -> None:
        """Rejoin at the next poll; `reason` is sent to the coordinator."""
        self._request_rejoin(reason)

    def _request_rejoin(self, reason: str) -> None:
        """Two-argument AbstractCoordinator.requestRejoin, which no subclass overrides."""
        self._rejoin_reason = reason
        self._rejoin_needed = True

    def _rejoin_needed_or_pending(self) -> bool:
        return self._rejoin_needed or self._join_future is not None

    # ensureActiveGroup.

    def _ensure_active_group(
        self, now_ms: int, *, deadline_ms: int, then: Callable[[bool, int], None]
    ) -> None:
        """Join and sync by the deadline, then continue with whether that succeeded.

        If the deadline is now, only answers that have arrived are handled.
        """
        self._active_deadline_ms = deadline_ms
        self._active_then = then
        self._ensure_coordinator_ready(
            now_ms, deadline_ms=deadline_ms, then=self._active_coordinator_ready
        )

    def _active_coordinator_ready(self, ready: bool, now_ms: int) -> None:
        if not ready:
            self._active_end(active=False, now_ms=now_ms)
            return
        self._start_heartbeat_thread()
        self._join_loop(now_ms)

    def _active_end(self, *, active: bool, now_ms: int) -> None:
        self._active_then(active, now_ms)

    def _join_loop(self, now_ms: int) -> None:
        """Run one turn of the loop of joinGroupIfNeeded."""
        if not self._rejoin_needed_or_pending():
            self._active_end(active=True, now_ms=now_ms)
            return
        self._ensure_coordinator_ready(
            now_ms, deadline_ms=self._active_deadline_ms, then=self._join_coordinator_ready
        )

    def _join_coordinator_ready(self, ready: bool, now_ms: int) -> None:
        if not ready:
            self._active_end(active=False, now_ms=now_ms)
        elif self._needs_join_prepare:
            # Cleared before the application's callback, which is not repeated if it raises.
            self._needs_join_prepare = False
            self._on_join_prepare(now_ms)
        else:
            self._await_join(now_ms)

    def _join_prepared(self, *, completed: bool, now_ms: int) -> None:
        """Continue after `_on_join_prepare`; if not completed, call it again before JoinGroup."""
        if completed:
            self._await_join(now_ms)
        else:
            self._needs_join_prepare = True
            self._active_end(active=False, now_ms=now_ms)

    def _await_join(self, now_ms: int) -> None:
        future = self._initiate_join_group(now_ms)
        if future.done:
            self._join_resolved(now_ms)
        elif now_ms >= self._active_deadline_ms:
            self._active_end(active=False, now_ms=now_ms)
        else:
            self._block(Wait.FUTURE, self._active_deadline_ms, self._join_resolved, future)

    def _join_resolved(self, now_ms: int) -> None:
        future = self._join_future
        if future is None or not future.done:
            self._active_end(active=False, now_ms=now_ms)
        elif future.error is not None:
            self._join_failed(future.error, now_ms)
        elif self._generation.is_reset or self._state is not MemberState.STABLE:
            self._reset_state_and_rejoin(
                "rebalance failed since the generation/state was modified by heartbeat thread",
                reset_member_id=True,
            )
            self._join_future = None
            self._join_loop(now_ms)
        else:
            # The future stays until the callbacks have ended: if one raises, the next poll
            # delivers the same bytes again.
            self._on_join_complete(self._generation, future.value, now_ms)

    def _join_completed(self, now_ms: int) -> None:
        """Finish the join after `_on_join_complete`."""
        self._join_future = None
        self._needs_join_prepare = True
        self._join_loop(now_ms)

    def _join_failed(self, error: str, now_ms: int) -> None:
        self._join_future = None
        if error != MEMBER_ID_REQUIRED:
            self._request_rejoin(f"rebalance failed due to {error}")
        if error in IMMEDIATE_REJOIN:
            self._join_loop(now_ms)
        elif error not in RETRIABLE:
            self._end_call(now_ms, error)
        elif now_ms >= self._active_deadline_ms:
            self._active_end(active=False, now_ms=now_ms)
        else:
            until_ms = min(now_ms + self._config.retry_backoff_ms, self._active_deadline_ms)
            self._block(Wait.SLEEP, until_ms, self._join_loop)

    # JoinGroup.

    def _initiate_join_group(self, now_ms: int) -> Future:
        if self._join_future is None:
            self._enter(MemberState.PREPARING_REBALANCE)
            self._join_future = self._send_join_group(now_ms)
        return self._join_future

    def _send_join_group(self, now_ms: int) -> Future:
        node_id = self._coordinator
        if node_id is None:
            return Future(done=True, error=COORDINATOR_NOT_AVAILABLE)
        config = self._config
        request = JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=config.session_timeout_ms,
            rebalance_timeout_ms=config.rebalance_timeout_ms,
            member_id=self._generation.member_id,
            group_instance_id=config.group_instance_id,
            protocol_type=self.protocol_type,
            protocols=self._join_metadata(now_ms),
            reason=self._rejoin_reason[:MAX_REASON_LENGTH],
        )
        return self._request(
            RequestKind.JOIN, node_id, request, now_ms, config.join_request_timeout_ms
        )

    def _on_join_group(
        self, pending: PendingRequest, response: JoinGroupResponse, now_ms: int
    ) -> None:
        """Handle a JoinGroup answer, row by row of JoinGroupResponseHandler.handle."""
        future, error = pending.future, response.error_code
        match error:
            case ErrorCode.NONE:
                self._on_joined(future, response, now_ms)
                return
            case ErrorCode.UNKNOWN_MEMBER_ID:
                if self._generation_unchanged(pending.generation):
                    self._reset_state_and_rejoin(
                        "encountered UNKNOWN_MEMBER_ID from JOIN_GROUP response",
                        reset_member_id=True,
                    )
            case ErrorCode.COORDINATOR_NOT_AVAILABLE | ErrorCode.NOT_COORDINATOR:
                self._mark_coordinator_unknown(now_ms)
            case ErrorCode.MEMBER_ID_REQUIRED:
                self._set_generation(Generation(NO_GENERATION_ID, response.member_id, None))
                self.request_rejoin(
                    f"need to re-join with the given member-id: {response.member_id}"
                )
            case ErrorCode.COORDINATOR_LOAD_IN_PROGRESS | ErrorCode.REBALANCE_IN_PROGRESS:
                pass
            case _ if error not in _FATAL_JOIN_ERRORS:
                future.fail(KAFKA)
                return
        future.fail(exception_name(error))

    def _on_joined(self, future: Future, response: JoinGroupResponse, now_ms: int) -> None:
        if self._is_foreign_protocol_type(response.protocol_type):
            future.fail(exception_name(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        elif self._state is not MemberState.PREPARING_REBALANCE:
            # The member left while its JoinGroup was parked.
            future.fail(UNJOINED_GROUP)
        else:
            self._enter(MemberState.COMPLETING_REBALANCE)
            self._enable_heartbeat_thread(now_ms)
            self._set_generation(
                Generation(response.generation_id, response.member_id, response.protocol_name)
            )
            if response.leader == response.member_id:
                self._on_leader_elected(response, future, now_ms)
            else:
                self._send_sync_group({}, future, now_ms)

    # SyncGroup. Its outcome is the outcome of the join's future.

    def _send_sync_group(
        self, assignments: Mapping[str, bytes], future: Future, now_ms: int
    ) -> None:
        node_id = self._coordinator
        if self._coordinator_unknown(now_ms) or node_id is None:
            future.fail(COORDINATOR_NOT_AVAILABLE)
            return
        generation = self._generation
        request = SyncGroupRequest(
            group_id=self._group_id,
            generation_id=generation.generation_id,
            member_id=generation.member_id,
            group_instance_id=self._config.group_instance_id,
            protocol_type=self.protocol_type,
            protocol_name=generation.protocol_name,
            assignments=tuple(SyncGroupRequestAssignment(m, a) for m, a in assignments.items()),
        )
        pending = PendingRequest(
            RequestKind.SYNC, node_id, request, generation=generation, future=future
        )
        self._net.send(pending, self._config.request_timeout_ms, now_ms)

    def _on_sync_group(
        self, pending: PendingRequest, response: SyncGroupResponse, now_ms: int
    ) -> None:
        """Handle a SyncGroup answer, row by row of SyncGroupResponseHandler.handle."""
        future, error = pending.future, response.error_code
        match error:
            case ErrorCode.NONE:
                self._on_synced(future, response)
                return
            case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.ILLEGAL_GENERATION:
                if self._generation_unchanged(pending.generation):
                    self._reset_state_and_rejoin(
                        f"encountered {error.name} from SYNC_GROUP response",
                        reset_member_id=error is ErrorCode.UNKNOWN_MEMBER_ID,
                    )
            case ErrorCode.COORDINATOR_NOT_AVAILABLE | ErrorCode.NOT_COORDINATOR:
                self._mark_coordinator_unknown(now_ms)
            case (
                ErrorCode.REBALANCE_IN_PROGRESS
                | ErrorCode.FENCED_INSTANCE_ID
                | ErrorCode.GROUP_AUTHORIZATION_FAILED
            ):
                pass
            case _:
                # COORDINATOR_LOAD_IN_PROGRESS too: no conforming broker answers it to a SyncGroup.
                future.fail(KAFKA)
                return
        future.fail(exception_name(error))

    def _on_synced(self, future: Future, response: SyncGroupResponse) -> None:
        generation = self._generation
        if self._is_foreign_protocol_type(response.protocol_type):
            future.fail(exception_name(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        elif generation.is_reset or self._state is not MemberState.COMPLETING_REBALANCE:
            future.fail(ILLEGAL_GENERATION)
        elif response.protocol_name not in (None, generation.protocol_name):
            future.fail(exception_name(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        else:
            self._enter(MemberState.STABLE)
            self._rejoin_reason = ""
            self._rejoin_needed = False
            future.complete(response.assignment)

    def _is_foreign_protocol_type(self, protocol_type: str | None) -> bool:
        return protocol_type is not None and protocol_type != self.protocol_type

    # What the parts above provide.

    @property
    @abstractmethod
    def protocol_type(self) -> str:
        """Protocol type of the group: `consumer` or `connect`."""

    @abstractmethod
    def _join_metadata(self, now_ms: int) -> tuple[JoinGroupRequestProtocol, ...]:
        """Return the protocols to offer, most preferred first."""

    @abstractmethod
    def _on_join_prepare(self, now_ms: int) -> None:
        """Clean up the last generation, then call `_join_prepared` or end the call."""

    @abstractmethod
    def _on_leader_elected(self, response: JoinGroupResponse, future: Future, now_ms: int) -> None:
        """Assign, then `_send_sync_group`; or fail the future, and no SyncGroup is sent."""

    @abstractmethod
    def _on_join_complete(self, generation: Generation, assignment: bytes, now_ms: int) -> None:
        """Adopt the assignment, then call `_join_completed` or end the call."""

    # Leaving.

    def leave_group(self, reason: str, now_ms: int) -> Effects:
        """Leave voluntarily, informing the coordinator if possible, and rejoin at the next poll.

        Source: kafka trunk, AbstractCoordinator.maybeLeaveGroup, which is public.
        """
        self._maybe_leave_group(reason, now_ms)
        return self._settle(now_ms)

    def _maybe_leave_group(self, reason: str, now_ms: int) -> None:
        """Send LeaveGroup for a dynamic member where possible, and reset the member locally.

        The answer to LeaveGroup is ignored. Static members only reset themselves.

        Source: kafka trunk, AbstractCoordinator.maybeLeaveGroup.
        """
        node_id = self._coordinator
        if (
            self._config.group_instance_id is None
            and not self._coordinator_unknown(now_ms)
            and node_id is not None
            and self._state is not MemberState.UNJOINED
            and self._generation.member_id
        ):
            leaver = MemberIdentity(
                member_id=self._generation.member_id, reason=reason[:MAX_REASON_LENGTH]
            )
            request = LeaveGroupRequest(group_id=self._group_id, members=(leaver,))
            self._request(RequestKind.LEAVE, node_id, request, now_ms)
        self._reset_state_and_rejoin(
            "consumer pro-actively leaving the group", reset_member_id=True
        )

    def _on_poll_timeout(self, now_ms: int) -> None:
        self._maybe_leave_group("consumer poll timeout has expired.", now_ms)

    # Closing.

    def close(self, now_ms: int, timeout_ms: int) -> Effects:
        """Leave where the client would, wait for pending requests, and end with `Closed`.

        A call in progress ends first, as if woken up. A callback must have completed.

        Args:
            now_ms: The present instant.
            timeout_ms: How long to wait for answers of the coordinator.

        Raises:
            InvariantViolation: a callback is outstanding, or the port is closed.
        """
        if self._wait is Wait.CALLBACK or self._call is AppCall.CLOSED:
            raise InvariantViolation(f"close while {self._wait.value} and {self._call.value}")
        if self._call is not AppCall.NONE:
            self._end_call(now_ms, exceptions.WAKEUP)
        self._begin_call(AppCall.CLOSE, now_ms + timeout_ms)
        self._begin_close(now_ms)
        return self._settle(now_ms)

    def _begin_close(self, now_ms: int) -> None:
        self._close_membership(now_ms)

    def _close_membership(self, now_ms: int) -> None:
        """Stop heartbeats, call back, send LeaveGroup. Source: AbstractCoordinator.close."""
        self._stop_heartbeat_thread()
        if self._config.leave_group_on_close:
            self._on_leave_prepare(now_ms)
        else:
            self._await_pending_requests(now_ms)

    def _on_leave_prepare(self, now_ms: int) -> None:
        self._leave_prepared(None, now_ms)

    def _leave_prepared(self, error: str | None, now_ms: int) -> None:
        """Send LeaveGroup after the callbacks of leaving; if one raised, do not send it."""
        if error is not None:
            self._end_call(now_ms, error)
            return
        self._maybe_leave_group("the consumer is being closed", now_ms)
        self._await_pending_requests(now_ms)

    def _await_pending_requests(self, now_ms: int) -> None:
        node_id = self._coordinator
        if (
            node_id is not None
            and not self._coordinator_unknown(now_ms)
            and self._net.has_pending(node_id)
            and now_ms < self._call_deadline_ms
        ):
            self._block(Wait.NETWORK, self._call_deadline_ms, self._await_pending_requests)
        else:
            self._end_call(now_ms)

    def _raise_in_poll(self, error: str, now_ms: int) -> None:
        """Let the thread that polls the network meet an exception.

        The application's call ends with it, or else the heartbeat thread. The membership is closed
        in any case: an exception in a wait of `close` ends that wait alone.

        Source: kafka trunk, ConsumerCoordinator.close (its finally), AbstractCoordinator.close;
        HeartbeatThread.run.
        """
        if self._heartbeat_running and self._wait not in POLLING:
            self._fail_heartbeat_thread(error)
        elif self._call is not AppCall.CLOSE:
            self._interrupt(error, now_ms)
        elif self._resume == self._await_pending_requests:
            self._end_call(now_ms)
        else:
            self._is_locked = False
            self._close_membership(now_ms)

    def _finish_close(self, now_ms: int) -> None:  # noqa: ARG002 - PortCore's hook
        self._call = AppCall.CLOSED
        self._stop_heartbeat_thread()
        self._net.close()
        self._inbox.clear()
        self._coordinator = None
        self._heartbeat_wake_ms = FOREVER
        self._out.append(Closed())

    # Answers and failures to their handlers.

    def _dispatch(self, pending: PendingRequest, response: Response, now_ms: int) -> None:
        match pending.kind, response:
            case RequestKind.HEARTBEAT, HeartbeatResponse():
                self._on_heartbeat(pending, response, now_ms)
                return
            case RequestKind.JOIN, JoinGroupResponse():
                self._on_join_group(pending, response, now_ms)
            case RequestKind.SYNC, SyncGroupResponse():
                self._on_sync_group(pending, response, now_ms)
            case RequestKind.LOOKUP, FindCoordinatorResponse():
                self._on_find_coordinator(pending, response, now_ms)
            case RequestKind.METADATA, MetadataResponse():
                self._on_metadata(response, now_ms)
            case RequestKind.LEAVE, LeaveGroupResponse():
                self._on_leave_group(pending, response)
            case _:
                self._on_other_response(pending, response, now_ms)
        self._activity = True

    def _on_leave_group(self, pending: PendingRequest, response: LeaveGroupResponse) -> None:
        if len(response.members) > 1:
            pending.future.fail(exceptions.ILLEGAL_STATE)
            return
        error = response.error_code
        if error is ErrorCode.NONE and response.members:
            error = response.members[0].error_code
        if error is ErrorCode.NONE:
            pending.future.complete()
        else:
            pending.future.fail(exceptions.exception_name(error))

    def _on_other_response(self, pending: PendingRequest, response: Response, now_ms: int) -> None:
        """Handle an answer to a request of a subclass.

        Raises:
            InvariantViolation: the answer is of another API than its request.
        """
        raise InvariantViolation(
            f"{type(response).__name__} answers a {pending.kind.value} request", now_ms
        )

    def _on_failure(self, pending: PendingRequest, error: str, now_ms: int) -> None:
        """Handle a request without an answer; a lost connection makes the coordinator unknown.

        Source: kafka trunk, AbstractCoordinator.CoordinatorResponseHandler.onFailure.
        """
        match pending.kind:
            case RequestKind.METADATA:
                self._metadata.failed(now_ms, self._metadata_backoff_ms)
                if error not in exceptions.RETRIABLE:
                    self._interrupt(error, now_ms)
                return
            case RequestKind.LOOKUP:
                if error not in exceptions.RETRIABLE:
                    self._fatal_lookup_error = error
                pending.future.fail(error)
                return
            case _:
                pass
        if error == exceptions.DISCONNECT and pending.node_id == self._coordinator:
            self._mark_coordinator_unknown(now_ms, disconnected=True)
        if pending.kind is RequestKind.HEARTBEAT:
            if pending is self._beat:
                self._beat_in_flight = False
            self._failed_heartbeat(now_ms)
        else:
            pending.future.fail(error)
