"""The two threads of a client port and the loop that runs them; no group logic.

The application's thread is outside any call, running, or blocked (`Wait`). A blocked thread is only
data: what it waits for, until when, and the method to resume with. Answers are handled only while
one of the two threads polls the network, as in Java: an application that processes records during
a rebalance leaves its JoinGroup response unread.

The heartbeat thread checks every `retry.backoff.ms` (`_thread_anchor_ms` is one of these instants)
and whenever it is notified. Checks that would find nothing are skipped: `_heartbeat_wake_ms` is the
next one that matters. While the application looks up the coordinator, or assigns as leader, it
holds the lock that the thread needs (`_is_locked`).

Source: kafka trunk, clients/.../consumer/internals/ConsumerNetworkClient.java, poll;
AbstractCoordinator.HeartbeatThread.run.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from enum import Enum, unique
from typing import Final, TypedDict

from coordinator_sim.clients.backoff import Jitter
from coordinator_sim.clients.cluster_metadata import ClusterMetadata
from coordinator_sim.clients.config import GroupConfig
from coordinator_sim.clients.effects import (
    CallbackKind,
    CommitCompleted,
    Effect,
    Effects,
    PollReturned,
    RunCallback,
)
from coordinator_sim.clients.exceptions import DISCONNECT, ILLEGAL_STATE, WAKEUP
from coordinator_sim.clients.generation import NO_GENERATION, Generation, MemberState
from coordinator_sim.clients.network import (
    FOREVER,
    Future,
    NetworkClient,
    PendingRequest,
    RequestKind,
)
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.resources import ConnectorTaskId, TopicPartition
from coordinator_sim.messages.metadata import MetadataResponse
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node
from coordinator_sim.messages.requests import Request, Response, metadata_request

NOTIFICATION_TOKEN: Final = -1
"""Token of callbacks that no thread waits for; they need no `callback_completed`."""

Continuation = Callable[[int], None]
CallbackContinuation = Callable[[str | None, int], None]


@unique
class Wait(Enum):
    """Reason why the application's thread is blocked."""

    NOTHING = "NOTHING"
    SLEEP = "SLEEP"
    FUTURE = "FUTURE"
    NETWORK = "NETWORK"
    METADATA = "METADATA"
    CALLBACK = "CALLBACK"


POLLING: Final = (Wait.NETWORK, Wait.FUTURE, Wait.METADATA)


@unique
class AppCall(Enum):
    """Call that the application is in."""

    NONE = "NONE"
    POLL = "POLL"
    COMMIT = "COMMIT"
    UNSUBSCRIBE = "UNSUBSCRIBE"
    CLOSE = "CLOSE"
    CLOSED = "CLOSED"


class PortSetup(TypedDict):
    """Arguments of a port besides its configuration; its layers pass them down unchanged."""

    client_id: str
    group_id: str
    bootstrap: tuple[Node, ...]
    jitter: Jitter


class PortCore(ABC):
    """State shared by all parts of a port, and the verbs that a driver calls."""

    __slots__ = (
        "_activity",
        "_call",
        "_call_deadline_ms",
        "_call_token",
        "_callback_then",
        "_client_id",
        "_config",
        "_deadline_ms",
        "_generation",
        "_group_id",
        "_heartbeat_due_ms",
        "_heartbeat_running",
        "_heartbeat_wake_ms",
        "_inbox",
        "_interruption",
        "_is_electing",
        "_is_locked",
        "_jitter",
        "_metadata",
        "_net",
        "_next_token",
        "_other_deadline_ms",
        "_out",
        "_outer_call",
        "_outstanding_token",
        "_resume",
        "_state",
        "_thread_anchor_ms",
        "_wait",
        "_wait_future",
        "_wait_until_ms",
        "_wait_version",
    )

    def __init__(
        self,
        config: GroupConfig,
        *,
        client_id: str,
        group_id: str,
        bootstrap: tuple[Node, ...],
        jitter: Jitter,
    ) -> None:
        self._config = config
        self._client_id = client_id
        self._group_id = group_id
        self._jitter = jitter
        self._out: list[Effect] = []
        self._net = NetworkClient(config, client_id=client_id, jitter=jitter, out=self._out)
        self._metadata = ClusterMetadata(bootstrap, config.metadata_max_age_ms)
        self._state = MemberState.UNJOINED
        self._generation = NO_GENERATION
        self._heartbeat_running = False
        self._heartbeat_wake_ms = FOREVER
        self._heartbeat_due_ms = FOREVER
        self._thread_anchor_ms = 0
        self._is_locked = False
        self._call = AppCall.NONE
        self._call_deadline_ms = 0
        self._call_token = 0
        self._outer_call: tuple[AppCall, int] | None = None
        self._next_token = 1
        self._outstanding_token = 0
        self._callback_then: CallbackContinuation | None = None
        self._wait = Wait.NOTHING
        self._wait_until_ms = FOREVER
        self._wait_future: Future | None = None
        self._wait_version = 0
        self._resume: Continuation | None = None
        self._is_electing = False
        self._activity = False
        self._interruption: str | None = None
        # None for an answer that was not the expected one.
        self._inbox: deque[tuple[PendingRequest, Response] | None] = deque()
        self._deadline_ms = FOREVER
        self._other_deadline_ms = FOREVER

    # What the driver sees.

    @property
    def state(self) -> MemberState:
        """State of the member in its join."""
        return self._state

    @property
    def generation_id(self) -> int:
        """Generation the member believes to be in; -1 for none."""
        return self._generation.generation_id

    @property
    def is_in_call(self) -> bool:
        """Whether the application is inside a call (callbacks included)."""
        return self._call not in (AppCall.NONE, AppCall.CLOSED)

    @property
    def awaits_records(self) -> bool:
        """Whether records that arrive now would end the application's poll."""
        return self._call is AppCall.POLL and self._wait is Wait.NETWORK

    def next_deadline_ms(self) -> int | None:
        """The one alarm to arm; None when only an event from outside can matter."""
        return self._deadline_ms if self._deadline_ms < FOREVER else None

    def on_connected(self, node_id: int, now_ms: int) -> Effects:
        """Send what waited for this connection."""
        self._net.on_connected(node_id)
        self._activity = True
        return self._settle(now_ms)

    def on_disconnected(self, node_id: int, now_ms: int, error: str | None = None) -> Effects:
        """Fail the requests of this connection.

        Args:
            node_id: Id of the connection's node.
            now_ms: The present instant.
            error: Name of the Java client's exception where retrying would not help, such as
                `SaslAuthenticationException`; None for a connection that is merely lost.
        """
        self._net.on_disconnected(node_id, now_ms, error or DISCONNECT)
        # The broker may have left the cluster.
        self._metadata.request_update()
        self._activity = True
        return self._settle(now_ms)

    def on_response(self, correlation_id: int, response: Response, now_ms: int) -> Effects:
        """Handle an answer, or keep it until a thread polls; unknown ids are ignored."""
        pending = self._net.take(correlation_id)
        if pending is None:
            return ()
        if self._inbox or not self._is_polled(now_ms):
            self._inbox.append((pending, response))
        else:
            self._dispatch(pending, response, now_ms)
        return self._settle(now_ms)

    def topic_unknown(self, now_ms: int) -> Effects:
        """Ask for metadata, as a fetch was answered with UNKNOWN_TOPIC_OR_PARTITION.

        Source: kafka 4.4, FetchCollector.handleInitializeErrors.
        """
        self._metadata.request_update()
        self._activity = True
        return self._settle(now_ms)

    def on_unexpected_response(self, node_id: int, now_ms: int) -> Effects:
        """Handle an answer that is not the one to the oldest request of its connection.

        That request is lost, and the thread that polls the network next gets an
        IllegalStateException. The connection stays: where a request was lost, the answer to it is
        unexpected too.

        Source: kafka trunk, NetworkClient.handleCompletedReceives, parseResponse;
        InFlightRequests.requestQueue; AbstractResponse.parseResponse.
        """
        self._net.lose_next(node_id)
        self._inbox.append(None)
        return self._settle(now_ms)

    def callback_completed(self, token: int, outcome: str | None, now_ms: int) -> Effects:
        """Continue after an application callback.

        Raises:
            InvariantViolation: no callback with this token is outstanding.
        """
        if token == NOTIFICATION_TOKEN:
            return ()
        then = self._callback_then
        if then is None or token != self._outstanding_token:
            raise InvariantViolation(f"callback {token} is not outstanding")
        self._callback_then = None
        self._wait = Wait.NOTHING
        then(outcome, now_ms)
        return self._settle(now_ms)

    def wakeup(self, now_ms: int) -> Effects:
        """End the present call with WakeupException, or the next one at its start.

        A callback in progress is not interrupted; the call ends after it.
        """
        self._interrupt(WAKEUP, now_ms)
        return self._settle(now_ms)

    def _interrupt(self, error: str, now_ms: int) -> None:
        """End the present wait for the network with an exception, or the next one."""
        if self._wait in POLLING and not self._is_electing and self._call is not AppCall.CLOSE:
            self._end_call(now_ms, error)
        else:
            self._interruption = error

    # Blocking and calls.

    def _begin_call(self, call: AppCall, deadline_ms: int) -> None:
        if self._wait is Wait.CALLBACK and self._outer_call is None:
            # A callback may call the client again: the call around it goes on afterwards.
            self._outer_call = (self._call, self._call_deadline_ms)
        elif self._call is not AppCall.NONE:
            raise InvariantViolation(f"{call.value} during {self._call.value}: one call at a time")
        self._call = call
        self._call_deadline_ms = deadline_ms

    def _end_call(self, now_ms: int, error: str | None = None) -> None:
        call = self._call
        self._is_locked = False
        self._wait = Wait.NOTHING
        self._resume = None
        if call is AppCall.CLOSE:
            self._finish_close(now_ms)
            return
        self._call = AppCall.NONE
        if self._outer_call is not None:
            self._call, self._call_deadline_ms = self._outer_call
            self._outer_call = None
            self._wait = Wait.CALLBACK
        if call is AppCall.COMMIT:
            self._out.append(CommitCompleted(token=self._call_token, error=error))
        else:
            self._out.append(PollReturned(error))

    def _block(
        self, wait: Wait, until_ms: int, resume: Continuation, future: Future | None = None
    ) -> None:
        self._wait = wait
        self._wait_until_ms = until_ms
        self._wait_future = future
        self._resume = resume
        self._activity = False
        if self._interruption is not None and wait in POLLING and self._call is not AppCall.CLOSE:
            self._wait = Wait.SLEEP
            self._wait_until_ms = 0
            self._resume = self._raise_interruption

    def _raise_interruption(self, now_ms: int) -> None:
        error, self._interruption = self._interruption, None
        self._end_call(now_ms, error)

    def _block_for_metadata(self, until_ms: int, resume: Continuation) -> None:
        self._wait_version = self._metadata.request_update()
        self._block(Wait.METADATA, until_ms, resume)

    def _run_callback(
        self,
        kind: CallbackKind,
        then: CallbackContinuation,
        *,
        partitions: tuple[TopicPartition, ...] = (),
        connectors: tuple[str, ...] = (),
        tasks: tuple[ConnectorTaskId, ...] = (),
    ) -> None:
        token = self._next_token
        self._next_token += 1
        self._outstanding_token = token
        self._callback_then = then
        self._wait = Wait.CALLBACK
        self._resume = None
        self._out.append(
            RunCallback(
                token=token, kind=kind, partitions=partitions, connectors=connectors, tasks=tasks
            )
        )

    def _is_app_ready(self, now_ms: int) -> bool:
        match self._wait:
            case Wait.NOTHING | Wait.CALLBACK:
                return False
            case Wait.FUTURE:
                done = self._wait_future is not None and self._wait_future.done
            case Wait.NETWORK:
                done = self._activity
            case Wait.METADATA:
                done = self._metadata.version > self._wait_version
            case _:
                done = False  # a sleep ends by its deadline alone
        return done or now_ms >= self._wait_until_ms

    def _is_polled(self, now_ms: int) -> bool:
        """Whether one of the two threads polls the network at this instant."""
        return self._wait in POLLING or self._does_thread_look(now_ms)

    def _does_thread_look(self, now_ms: int) -> bool:
        if not self._heartbeat_running or self._is_locked:
            return False
        if now_ms >= self._heartbeat_wake_ms:
            return True
        # An application that waits for records runs its loop then, and notifies the thread.
        return self._wait is Wait.NETWORK and now_ms >= self._heartbeat_due_ms

    def _look_at_ms(self, at_ms: int) -> int:
        """Return the heartbeat thread's first check at this instant or later."""
        pause_ms = max(self._config.retry_backoff_ms, 1)
        anchor_ms = self._thread_anchor_ms
        return anchor_ms + -(-(at_ms - anchor_ms) // pause_ms) * pause_ms

    def _wake_thread_for_network(self, now_ms: int) -> None:
        """Delay network events to the thread's next check while only the heartbeat thread polls."""
        due_ms = min(self._net.deadline_ms, self._metadata.due_ms)
        if self._inbox or self._net.failed:
            due_ms = now_ms + 1
        if due_ms < self._heartbeat_wake_ms:
            look_ms = self._look_at_ms(max(due_ms, now_ms + 1))
            self._heartbeat_wake_ms = min(self._heartbeat_wake_ms, look_ms)

    # The loop.

    def _settle(self, now_ms: int) -> Effects:
        """Run both threads until neither can continue; return the requested effects."""
        while True:
            looks = self._does_thread_look(now_ms)
            if looks or self._wait in POLLING:
                self._poll_network(now_ms)
            if looks and self._heartbeat_running:
                self._run_heartbeat_thread(now_ms)
            resume = self._resume
            if resume is None or not self._is_app_ready(now_ms):
                if self._net.failed and self._is_polled(now_ms):
                    continue
                break
            self._wait = Wait.NOTHING
            self._is_locked = False
            resume(now_ms)
        if self._heartbeat_running and self._wait not in POLLING:
            self._wake_thread_for_network(now_ms)
        self._arm()
        out = self._out
        if not out:
            return ()
        effects = tuple(out)
        out.clear()
        return effects

    def _poll_network(self, now_ms: int) -> None:
        net = self._net
        if now_ms >= net.deadline_ms:
            net.expire(now_ms)
        while self._inbox:
            answer = self._inbox.popleft()
            if answer is None:
                self._raise_in_poll(ILLEGAL_STATE, now_ms)
                return
            self._dispatch(*answer, now_ms)
        while net.failed:
            self._activity = True
            self._on_failure(*net.failed.popleft(), now_ms)
        if now_ms >= self._metadata.due_ms:
            self._send_metadata(now_ms)

    def _arm(self) -> None:
        """Cache the next deadline, and separately the part not set by heartbeats or requests."""
        running, wait = self._heartbeat_running, self._wait
        other_ms = FOREVER
        if wait is not Wait.NOTHING and wait is not Wait.CALLBACK:
            other_ms = self._wait_until_ms
        if wait in POLLING:
            other_ms = min(other_ms, self._metadata.due_ms)
            deadline_ms = min(other_ms, self._net.deadline_ms)
        else:
            deadline_ms = other_ms
        self._other_deadline_ms = other_ms
        if running and not self._is_locked:
            deadline_ms = min(deadline_ms, self._heartbeat_wake_ms)
            if wait is Wait.NETWORK:
                deadline_ms = min(deadline_ms, self._heartbeat_due_ms)
        self._deadline_ms = deadline_ms

    def _request(
        self, kind: RequestKind, node_id: int, request: Request, now_ms: int, timeout_ms: int = -1
    ) -> Future:
        """Send a request under the present generation; return the future of its outcome."""
        future = Future()
        pending = PendingRequest(
            kind,
            node_id,
            request,
            generation=self._generation,
            future=future,
        )
        self._net.send(
            pending, self._config.request_timeout_ms if timeout_ms < 0 else timeout_ms, now_ms
        )
        return future

    # Metadata.

    def _send_metadata(self, now_ms: int) -> None:
        metadata = self._metadata
        node_id = self._net.least_loaded(metadata.nodes, now_ms)
        if node_id is None:
            metadata.postpone(max(self._net.next_retry_at_ms(), now_ms + 1))
            return
        metadata.sent()
        request = metadata_request(metadata.wanted_topics)
        self._request(RequestKind.METADATA, node_id, request, now_ms)

    def _on_metadata(self, response: MetadataResponse, now_ms: int) -> None:
        self._metadata.update(response, now_ms, self._metadata_backoff_ms)

    def _metadata_backoff_ms(self, attempts: int) -> int:
        return self._config.retry_backoff().backoff_ms(
            attempts, self._jitter, site="metadata-backoff", key=self._client_id
        )

    # What the parts above provide.

    @abstractmethod
    def _dispatch(self, pending: PendingRequest, response: Response, now_ms: int) -> None: ...

    @abstractmethod
    def _on_failure(self, pending: PendingRequest, error: str, now_ms: int) -> None: ...

    @abstractmethod
    def _run_heartbeat_thread(self, now_ms: int) -> None: ...

    @abstractmethod
    def _raise_in_poll(self, error: str, now_ms: int) -> None: ...

    @abstractmethod
    def _finish_close(self, now_ms: int) -> None: ...

    def _generation_unchanged(self, sent: Generation) -> bool:
        return self._generation == sent
