"""The heartbeat thread as a state machine: three timers, and which is due first.

The timers are checked every `retry.backoff.ms`, see `port_core`; a heartbeat that is due while
the application waits for records is sent at once.

Finding the group's coordinator, and losing it.

Source: kafka trunk, AbstractCoordinator.HeartbeatThread, HeartbeatResponseHandler; Heartbeat.java;
AbstractCoordinator.java, ensureCoordinatorReady, lookupCoordinator, FindCoordinatorResponseHandler,
markCoordinatorUnknown.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Final, Unpack

from coordinator_sim.clients.config import GroupConfig
from coordinator_sim.clients.effects import COORDINATOR_NODE_OFFSET, Effects
from coordinator_sim.clients.exceptions import (
    ILLEGAL_STATE,
    NO_AVAILABLE_BROKERS,
    RETRIABLE,
    exception_name,
)
from coordinator_sim.clients.generation import NO_GENERATION, Generation, MemberState
from coordinator_sim.clients.network import FOREVER, Future, PendingRequest, RequestKind
from coordinator_sim.clients.port_core import PortCore, PortSetup, Wait
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.requests import Response

ReadyContinuation = Callable[[bool, int], None]


_HEARTBEATING: Final = (MemberState.COMPLETING_REBALANCE, MemberState.STABLE)
_NONE: Final = ErrorCode.NONE
_NETWORK: Final = Wait.NETWORK
_IGNORED_FUTURE: Final = Future()
"""Shared future of all heartbeats: no code waits for them."""


class HeartbeatThread(PortCore):
    """Finds the coordinator, keeps the session alive, and leaves if polls stop."""

    __slots__ = (
        "_beat",
        "_beat_in_flight",
        "_coordinator",
        "_fatal_lookup_error",
        "_heartbeat_attempts",
        "_heartbeat_enabled",
        "_heartbeat_failure",
        "_heartbeat_started",
        "_is_off_grid",
        "_lookup",
        "_needs_join_prepare",
        "_poll_deadline_ms",
        "_ready_attempts",
        "_ready_deadline_ms",
        "_ready_then",
        "_session_deadline_ms",
    )

    def __init__(self, config: GroupConfig, **setup: Unpack[PortSetup]) -> None:
        super().__init__(config, **setup)
        self._coordinator: int | None = None
        self._lookup: Future | None = None
        self._fatal_lookup_error: str | None = None
        self._ready_deadline_ms = 0
        self._ready_attempts = 0
        self._ready_then: ReadyContinuation
        self._session_deadline_ms = FOREVER
        self._heartbeat_started = False
        self._heartbeat_enabled = False
        self._heartbeat_failure: str | None = None
        self._heartbeat_attempts = 0
        self._is_off_grid = bool(config.heartbeat_interval_ms % max(config.retry_backoff_ms, 1))
        self._poll_deadline_ms = FOREVER
        self._beat: PendingRequest | None = None
        self._beat_in_flight = False
        self._needs_join_prepare = True

    @property
    def coordinator_node(self) -> int | None:
        """Broker that coordinates the group, as far as the member knows; None when unknown."""
        return None if self._coordinator is None else COORDINATOR_NODE_OFFSET - self._coordinator

    def _coordinator_unknown(self, now_ms: int) -> bool:
        """Whether no coordinator is known; a broken connection makes it unknown.

        Source: kafka trunk, AbstractCoordinator.checkAndGetCoordinator.
        """
        node_id = self._coordinator
        if node_id is None:
            return True
        if self._net.is_unavailable(node_id, now_ms):
            self._mark_coordinator_unknown(now_ms, disconnected=True)
            return True
        return False

    def _mark_coordinator_unknown(self, now_ms: int, *, disconnected: bool = False) -> None:
        """Forget the coordinator; unless already disconnected, fail its requests in flight."""
        node_id = self._coordinator
        if node_id is None:
            return
        self._coordinator = None
        self._activity = True
        # The heartbeat thread notices at its next look; an application that polls looks first.
        self._heartbeat_wake_ms = min(self._heartbeat_wake_ms, self._look_at_ms(now_ms + 1))
        if not disconnected:
            self._net.disconnect(node_id, now_ms)

    def _lookup_coordinator(self, now_ms: int) -> Future:
        """Return the lookup in flight, or a new one; a failed future without a broker to ask."""
        if self._lookup is not None:
            return self._lookup
        node_id = self._net.least_loaded(self._metadata.nodes, now_ms)
        if node_id is None:
            return Future(done=True, error=NO_AVAILABLE_BROKERS)
        request = FindCoordinatorRequest(coordinator_keys=(self._group_id,))
        self._lookup = self._request(RequestKind.LOOKUP, node_id, request, now_ms)
        return self._lookup

    def _on_find_coordinator(
        self, pending: PendingRequest, response: FindCoordinatorResponse, now_ms: int
    ) -> None:
        if len(response.coordinators) != 1:
            pending.future.fail(ILLEGAL_STATE)
            return
        answer = response.coordinators[0]
        if answer.error_code is not ErrorCode.NONE:
            pending.future.fail(exception_name(answer.error_code))
            return
        self._coordinator = COORDINATOR_NODE_OFFSET - answer.node_id
        self._net.try_connect(self._coordinator, now_ms)
        # A long outage must not count as silence of the new coordinator.
        self._session_deadline_ms = now_ms + self._config.session_timeout_ms
        self._schedule_heartbeat_thread()
        pending.future.complete()

    # ensureCoordinatorReady: one round is lookup, wait, and on failure backoff and metadata.

    def _ensure_coordinator_ready(
        self, now_ms: int, *, deadline_ms: int, then: ReadyContinuation
    ) -> None:
        """Find the coordinator by the deadline, then continue with whether it is known."""
        if not self._coordinator_unknown(now_ms):
            then(True, now_ms)  # noqa: FBT003 - the continuation's one argument is the answer
            return
        self._ready_deadline_ms = deadline_ms
        self._ready_attempts = 0
        self._ready_then = then
        self._ready_round(now_ms)

    def _ready_round(self, now_ms: int) -> None:
        fatal, self._fatal_lookup_error = self._fatal_lookup_error, None
        if fatal is not None:
            self._on_fatal_lookup(fatal, now_ms)
            return
        future = self._lookup_coordinator(now_ms)
        self._wait_future = future
        if future.done:
            self._ready_resolved(now_ms)
        else:
            self._block(Wait.FUTURE, self._ready_deadline_ms, self._ready_resolved, future)
            self._is_locked = True

    def _ready_resolved(self, now_ms: int) -> None:
        future = self._wait_future
        if future is None or not future.done:
            self._ready_end(now_ms)
        elif future.error is None:
            self._ready_found(now_ms)
        elif future.error in RETRIABLE:
            self._ready_sleep(now_ms, self._ready_await_metadata)
        else:
            self._lookup = None
            # QUIRK: where the request itself failed, the error is also kept, as if the
            # heartbeat thread had met it: the next lookup throws it once more.
            self._on_fatal_lookup(future.error, now_ms)

    def _on_fatal_lookup(self, error: str, now_ms: int) -> None:
        self._end_call(now_ms, error)

    def _ready_found(self, now_ms: int) -> None:
        node_id = self._coordinator
        if node_id is not None and self._net.is_unavailable(node_id, now_ms):
            self._mark_coordinator_unknown(now_ms)
            self._ready_sleep(now_ms, self._ready_next)
        else:
            self._ready_next(now_ms)

    def _ready_sleep(self, now_ms: int, resume: Callable[[int], None]) -> None:
        backoff_ms = self._config.retry_backoff().backoff_ms(
            self._ready_attempts, self._jitter, site="lookup-backoff", key=self._client_id
        )
        self._ready_attempts += 1
        self._block(Wait.SLEEP, min(now_ms + backoff_ms, self._ready_deadline_ms), resume)
        self._is_locked = True

    def _ready_await_metadata(self, now_ms: int) -> None:  # noqa: ARG002 - a continuation
        self._block_for_metadata(self._ready_deadline_ms, self._ready_next)
        self._is_locked = True

    def _ready_next(self, now_ms: int) -> None:
        self._lookup = None
        if self._coordinator_unknown(now_ms) and now_ms < self._ready_deadline_ms:
            self._ready_round(now_ms)
        else:
            self._ready_end(now_ms)

    def _ready_end(self, now_ms: int) -> None:
        self._ready_then(not self._coordinator_unknown(now_ms), now_ms)

    # State and generation change only here, so that the thread's view stays true.

    def _enter(self, state: MemberState) -> None:
        self._state = state
        self._refresh_heartbeat_running()

    def _set_generation(self, generation: Generation) -> None:
        self._generation = generation
        self._beat = None

    def _reset_state_and_rejoin(self, reason: str, *, reset_member_id: bool) -> None:
        """Reset the membership; the member id may be kept because it may still be valid.

        Source: kafka trunk, AbstractCoordinator.resetStateAndRejoin.
        """
        self._enter(MemberState.UNJOINED)
        member_id = NO_GENERATION.member_id if reset_member_id else self._generation.member_id
        self._set_generation(NO_GENERATION._replace(member_id=member_id))
        self.request_rejoin(reason)
        self._needs_join_prepare = True
        self._activity = True

    # The hot path: a heartbeat and its answer while nothing else is due. Both verbs do exactly
    # what the general loop would do, without running it.

    def expire(self, now_ms: int) -> Effects:
        """Fire what is due: request timeouts, the heartbeat thread, then the blocked call."""
        if now_ms < self._deadline_ms:
            return ()
        beat, net = self._beat, self._net
        if (
            beat is None
            or self._beat_in_flight
            or now_ms < self._heartbeat_due_ms
            or now_ms >= self._other_deadline_ms
            or now_ms >= self._session_deadline_ms
            or now_ms >= self._poll_deadline_ms
            or now_ms >= net.deadline_ms
            or not self._heartbeat_running
            or beat.node_id != self._coordinator
        ):
            return self._settle(now_ms)
        send = net.send_again(beat, now_ms + self._config.request_timeout_ms)
        if send is None:
            return self._settle(now_ms)
        self._beat_in_flight = True
        self._thread_anchor_ms = now_ms
        self._heartbeat_due_ms = now_ms + self._config.heartbeat_interval_ms
        self._arm_after_beat(now_ms)
        return (send,)

    def on_response(self, correlation_id: int, response: Response, now_ms: int) -> Effects:
        """Handle an answer, or keep it until a thread polls; unknown ids are ignored."""
        beat = self._beat
        if (
            beat is None
            or beat.correlation_id != correlation_id
            or type(response) is not HeartbeatResponse
            or response.error_code is not _NONE
            or not self._heartbeat_running
            or self._inbox
        ):
            return super().on_response(correlation_id, response, now_ms)
        if self._net.take(correlation_id) is not None:
            self._beat_in_flight = False
            self._heartbeat_attempts = 0
            self._session_deadline_ms = now_ms + self._config.session_timeout_ms
            self._arm_after_beat(now_ms)
        return ()

    def _arm_after_beat(self, now_ms: int) -> None:
        if self._wait is _NETWORK:
            # Java's application thread runs its loop and resets the poll timer.
            self._poll_deadline_ms = now_ms + self._config.rebalance_timeout_ms
        wake_ms = self._heartbeat_due_ms
        if (
            self._session_deadline_ms < wake_ms
            or self._poll_deadline_ms < wake_ms
            or self._is_off_grid
            or self._is_locked
        ):
            self._schedule_heartbeat_thread()
            self._arm()
            return
        self._heartbeat_wake_ms = wake_ms
        if self._other_deadline_ms < wake_ms:  # noqa: PLR1730 - min() costs a call on the hot path
            wake_ms = self._other_deadline_ms
        net_ms = self._net.deadline_ms
        self._deadline_ms = net_ms if net_ms < wake_ms else wake_ms  # noqa: FURB136 - as above

    # The thread.

    def _start_heartbeat_thread(self) -> None:
        if not self._heartbeat_started:
            self._heartbeat_started = True
            self._heartbeat_enabled = False
            self._heartbeat_failure = None

    def _enable_heartbeat_thread(self, now_ms: int) -> None:
        """Start heartbeats with all three timers at their full length."""
        if not self._heartbeat_started:
            return
        config = self._config
        self._heartbeat_enabled = True
        self._thread_anchor_ms = now_ms
        self._heartbeat_due_ms = now_ms + config.heartbeat_interval_ms
        self._session_deadline_ms = now_ms + config.session_timeout_ms
        self._poll_deadline_ms = now_ms + config.rebalance_timeout_ms
        self._refresh_heartbeat_running()
        self._schedule_heartbeat_thread()

    def _stop_heartbeat_thread(self) -> None:
        self._heartbeat_started = False
        self._heartbeat_enabled = False
        self._refresh_heartbeat_running()

    def _refresh_heartbeat_running(self) -> None:
        joined = self._state in _HEARTBEATING
        if self._heartbeat_running and not joined:
            self._heartbeat_enabled = False
        self._heartbeat_running = (
            self._heartbeat_enabled and joined and self._heartbeat_failure is None
        )

    def _schedule_heartbeat_thread(self) -> None:
        """Compute the thread's first check that finds an expired timer."""
        self._heartbeat_wake_ms = self._look_at_ms(
            min(self._heartbeat_due_ms, self._session_deadline_ms, self._poll_deadline_ms)
        )

    def _run_heartbeat_thread(self, now_ms: int) -> None:
        """Run one turn, in the order of HeartbeatThread.run."""
        self._thread_anchor_ms = now_ms
        if not self._coordinator_unknown(now_ms) and now_ms >= self._session_deadline_ms:
            # The coordinator may be down: look it up again. The member neither leaves nor rejoins.
            self._mark_coordinator_unknown(now_ms)
        node_id = self._coordinator
        if node_id is None:
            if self._lookup is not None:
                self._lookup = None
            else:
                # DEVIATION: a lookup that the heartbeat thread starts while the application is
                # idle goes out at once; Java's goes out at the thread's next look.
                self._lookup_coordinator(now_ms)
            self._heartbeat_wake_ms = self._look_at_ms(now_ms + 1)
        elif now_ms >= self._poll_deadline_ms:
            self._on_poll_timeout(now_ms)
        elif now_ms >= self._heartbeat_due_ms:
            self._send_heartbeat(node_id, now_ms)
            if self._wait is Wait.NETWORK:
                self._poll_deadline_ms = now_ms + self._config.rebalance_timeout_ms
            self._schedule_heartbeat_thread()
        else:
            self._schedule_heartbeat_thread()

    def _send_heartbeat(self, node_id: int, now_ms: int) -> None:
        self._heartbeat_due_ms = now_ms + self._config.heartbeat_interval_ms
        beat = self._beat
        if beat is None or self._beat_in_flight or beat.node_id != node_id:
            beat = self._beat = self._new_beat(node_id)
        self._beat_in_flight = True
        self._net.send(beat, self._config.request_timeout_ms, now_ms)

    def _fail_heartbeat_thread(self, error: str) -> None:
        """End the thread; the application's next poll gets the exception.

        Source: kafka trunk, AbstractCoordinator.HeartbeatThread.run, pollHeartbeat.
        """
        self._heartbeat_failure = error
        self._refresh_heartbeat_running()

    def _new_beat(self, node_id: int) -> PendingRequest:
        """Return a heartbeat of this generation, reused for each turn that finds it answered."""
        request = HeartbeatRequest(
            group_id=self._group_id,
            generation_id=self._generation.generation_id,
            member_id=self._generation.member_id,
            group_instance_id=self._config.group_instance_id,
        )
        return PendingRequest(
            RequestKind.HEARTBEAT,
            node_id,
            request,
            generation=self._generation,
            future=_IGNORED_FUTURE,
        )

    def _poll_heartbeat(self, now_ms: int) -> str | None:
        """Record that the application is alive; return the thread's failure, if it has one.

        Source: kafka trunk, AbstractCoordinator.pollHeartbeat.
        """
        if not self._heartbeat_started:
            return None
        failure = self._heartbeat_failure
        if failure is not None:
            self._stop_heartbeat_thread()
            return failure
        self._poll_deadline_ms = now_ms + self._config.rebalance_timeout_ms
        if self._heartbeat_running and self._coordinator is not None:
            self._schedule_heartbeat_thread()
            if now_ms >= self._heartbeat_due_ms:
                self._heartbeat_wake_ms = now_ms  # notified
        return None

    # Answers.

    def _on_heartbeat(
        self, pending: PendingRequest, response: HeartbeatResponse, now_ms: int
    ) -> None:
        """Handle a heartbeat's answer, row by row of HeartbeatResponseHandler.handle."""
        if pending is self._beat:
            self._beat_in_flight = False
        error = response.error_code
        match error:
            case ErrorCode.NONE:
                self._received_heartbeat(now_ms)
            case ErrorCode.COORDINATOR_NOT_AVAILABLE | ErrorCode.NOT_COORDINATOR:
                self._mark_coordinator_unknown(now_ms)
                self._failed_heartbeat(now_ms)
            case ErrorCode.REBALANCE_IN_PROGRESS:
                if self._state is MemberState.STABLE:
                    self.request_rejoin("group is already rebalancing")
                    self._activity = True
                self._received_heartbeat(now_ms)
            case (
                ErrorCode.ILLEGAL_GENERATION
                | ErrorCode.UNKNOWN_MEMBER_ID
                | ErrorCode.FENCED_INSTANCE_ID
            ):
                self._on_heartbeat_refused(pending, error, now_ms)
            case _:
                self._failed_heartbeat(now_ms)

    def _on_heartbeat_refused(self, pending: PendingRequest, error: ErrorCode, now_ms: int) -> None:
        if not self._generation_unchanged(pending.generation):
            self._received_heartbeat(now_ms)
            return
        self._reset_state_and_rejoin(
            f"encountered {error.name} from HEARTBEAT response",
            reset_member_id=error is not ErrorCode.ILLEGAL_GENERATION,
        )
        if error is ErrorCode.FENCED_INSTANCE_ID:
            self._fail_heartbeat_thread(exception_name(error))
        else:
            self._failed_heartbeat(now_ms)

    def _received_heartbeat(self, now_ms: int) -> None:
        """Restart the session timeout; the heartbeat interval still counts from the send."""
        self._heartbeat_attempts = 0
        self._session_deadline_ms = now_ms + self._config.session_timeout_ms
        self._schedule_heartbeat_thread()

    def _failed_heartbeat(self, now_ms: int) -> None:
        self._heartbeat_due_ms = now_ms + self._config.retry_backoff().backoff_ms(
            self._heartbeat_attempts, self._jitter, site="heartbeat-backoff", key=self._client_id
        )
        self._heartbeat_attempts += 1
        # The thread is notified: it checks now, and from now on at other instants.
        self._thread_anchor_ms = now_ms
        if self._coordinator is None:
            self._heartbeat_wake_ms = now_ms
        else:
            self._schedule_heartbeat_thread()

    # What the parts above provide.

    @abstractmethod
    def request_rejoin(self, reason: str) -> None:
        """Rejoin at the next poll; `reason` is sent to the coordinator."""

    @abstractmethod
    def _on_poll_timeout(self, now_ms: int) -> None: ...
