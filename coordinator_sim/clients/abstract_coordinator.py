"""The client side of group membership as a whole: joining, heartbeats, and leaving.

Shared by consumers and Connect workers. The parts are `port_core` (threads and network),
`discovery`, `heartbeat_thread` and `join_group`; this module has leaving, closing, and the table
that maps each answer to its handler.

Source: kafka trunk, clients/.../consumer/internals/AbstractCoordinator.java.
"""

from coordinator_sim.clients import exceptions
from coordinator_sim.clients.effects import Closed, Effects
from coordinator_sim.clients.generation import MemberState
from coordinator_sim.clients.join_group import MAX_REASON_LENGTH, JoinGroup
from coordinator_sim.clients.network import FOREVER, PendingRequest, RequestKind
from coordinator_sim.clients.port_core import POLLING, AppCall, Wait
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.find_coordinator import FindCoordinatorResponse
from coordinator_sim.messages.heartbeat import HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupResponse
from coordinator_sim.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from coordinator_sim.messages.metadata import MetadataResponse
from coordinator_sim.messages.requests import Response
from coordinator_sim.messages.sync_group import SyncGroupResponse


class AbstractCoordinator(JoinGroup):
    """A group member; subclasses define its protocols and how it uses an assignment."""

    __slots__ = ()

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
