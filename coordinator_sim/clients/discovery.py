"""Finding the group's coordinator, and losing it.

Source: kafka trunk, AbstractCoordinator.java, ensureCoordinatorReady, lookupCoordinator,
FindCoordinatorResponseHandler, markCoordinatorUnknown.
"""

from collections.abc import Callable

from coordinator_sim.clients.backoff import Jitter
from coordinator_sim.clients.config import GroupConfig
from coordinator_sim.clients.effects import COORDINATOR_NODE_OFFSET
from coordinator_sim.clients.exceptions import (
    ILLEGAL_STATE,
    NO_AVAILABLE_BROKERS,
    RETRIABLE,
    exception_name,
)
from coordinator_sim.clients.network import FOREVER, Future, PendingRequest, RequestKind
from coordinator_sim.clients.port_core import PortCore, Wait
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node

ReadyContinuation = Callable[[bool, int], None]


class Discovery(PortCore):
    """Finds the coordinator, and keeps its connection."""

    __slots__ = (
        "_coordinator",
        "_fatal_lookup_error",
        "_lookup",
        "_ready_attempts",
        "_ready_deadline_ms",
        "_ready_then",
        "_session_deadline_ms",
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
        super().__init__(
            config, client_id=client_id, group_id=group_id, bootstrap=bootstrap, jitter=jitter
        )
        self._coordinator: int | None = None
        self._lookup: Future | None = None
        self._fatal_lookup_error: str | None = None
        self._ready_deadline_ms = 0
        self._ready_attempts = 0
        self._ready_then: ReadyContinuation
        self._session_deadline_ms = FOREVER

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
        self._on_coordinator_found(now_ms)
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

    def _on_coordinator_found(self, now_ms: int) -> None:
        """Re-arm the heartbeat thread; called when the coordinator became known."""
