"""The port's connections: open links, requests in flight, timeouts.

Ports Java's NetworkClient as far as a driver can notice: queueing until a connection is open,
request timeouts that close the connection, reconnect backoff, the least loaded node. No group logic
is here. `failed` holds failed requests, in the order they failed.

Source: kafka trunk, clients/.../NetworkClient.java, ClusterConnectionStates.java,
consumer/internals/ConsumerNetworkClient.java.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import Final

from coordinator_sim.clients.backoff import Jitter
from coordinator_sim.clients.config import GroupConfig
from coordinator_sim.clients.effects import Connect, Disconnect, Effect, Send
from coordinator_sim.clients.exceptions import DISCONNECT, TIMEOUT
from coordinator_sim.clients.generation import Generation
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node
from coordinator_sim.messages.requests import Request

FOREVER: Final = 1 << 62
"""A deadline that never comes."""


@dataclass(slots=True)
class Future:
    """The outcome of something the application thread may wait for."""

    done: bool = False
    error: str | None = None
    value: bytes = b""

    def complete(self, value: bytes = b"") -> None:
        """Succeed."""
        self.done = True
        self.value = value

    def fail(self, error: str) -> None:
        """Fail with an exception's name."""
        self.done = True
        self.error = error


@unique
class RequestKind(Enum):
    """Purpose of a request, which selects the handler of its answer."""

    LOOKUP = "LOOKUP"
    METADATA = "METADATA"
    JOIN = "JOIN"
    SYNC = "SYNC"
    HEARTBEAT = "HEARTBEAT"
    LEAVE = "LEAVE"
    COMMIT = "COMMIT"
    OFFSET_FETCH = "OFFSET_FETCH"
    SHARE_FETCH = "SHARE_FETCH"
    SHARE_ACKNOWLEDGE = "SHARE_ACKNOWLEDGE"


class PendingRequest:
    """A request that has no answer yet, queued or in flight."""

    __slots__ = (
        "correlation_id",
        "deadline_ms",
        "future",
        "generation",
        "kind",
        "node_id",
        "request",
        "was_sent",
    )

    def __init__(
        self,
        kind: RequestKind,
        node_id: int,
        request: Request,
        *,
        generation: Generation,
        future: Future,
    ) -> None:
        self.correlation_id = -1
        self.deadline_ms = FOREVER
        self.kind = kind
        self.node_id = node_id
        self.request = request
        self.generation = generation
        self.future = future
        self.was_sent = False


@unique
class _Link(Enum):
    DOWN = "DOWN"
    CONNECTING = "CONNECTING"
    READY = "READY"


_READY: Final = _Link.READY
_CONNECTING_RANK: Final = 1 << 40
"""Ranks behind any number of requests in flight."""
_DOWN_RANK: Final = 1 << 41
"""Ranks behind a connection being opened; the instant of the last attempt is added."""


@dataclass(slots=True)
class _Connection:
    """One connection; `failed` means that it was open or tried, and broke.

    Args:
        last_attempt_ms: Last attempt to connect or last break; 0 for never.
    """

    link: _Link = _Link.DOWN
    failed: bool = False
    failure_count: int = 0
    setup_failure_count: int = 0
    retry_at_ms: int = 0
    last_attempt_ms: int = 0
    setup_deadline_ms: int = FOREVER
    in_flight_count: int = 0
    unsent: deque[PendingRequest] = field(default_factory=deque)


class NetworkClient:
    """Connections and requests of one client."""

    __slots__ = (
        "_client_id",
        "_config",
        "_connections",
        "_in_flight",
        "_jitter",
        "_next_correlation_id",
        "_out",
        "_quiet",
        "deadline_ms",
        "failed",
    )

    def __init__(
        self, config: GroupConfig, *, client_id: str, jitter: Jitter, out: list[Effect]
    ) -> None:
        self._config = config
        self._client_id = client_id
        self._jitter = jitter
        self._out = out
        self._connections: dict[int, _Connection] = {}
        self._in_flight: dict[int, PendingRequest] = {}
        self._next_correlation_id = 0
        self._quiet = True
        self.deadline_ms = FOREVER
        self.failed: deque[tuple[PendingRequest, str]] = deque()

    def send(self, pending: PendingRequest, timeout_ms: int, now_ms: int) -> None:
        """Send at once if the node is connected; else connect first."""
        pending.correlation_id = self._next_correlation_id
        self._next_correlation_id += 1
        pending.deadline_ms = deadline_ms = now_ms + timeout_ms
        connection = self._connection(pending.node_id)
        if connection.link is _Link.READY:
            self._transmit(connection, pending)
            self.deadline_ms = min(self.deadline_ms, deadline_ms)
            return
        connection.unsent.append(pending)
        self.try_connect(pending.node_id, now_ms)
        self._refresh_deadline()

    def take(self, correlation_id: int) -> PendingRequest | None:
        """Remove and return the request that an answer belongs to; None when given up before."""
        pending = self._in_flight.pop(correlation_id, None)
        if pending is not None:
            self._connections[pending.node_id].in_flight_count -= 1
            if self._quiet and not self._in_flight:
                self.deadline_ms = FOREVER
            elif pending.deadline_ms <= self.deadline_ms:
                self._refresh_deadline()
        return pending

    def lose_next(self, node_id: int) -> None:
        """Take the oldest request in flight to a node off, for an answer that is not its own.

        The request is neither answered nor failed, and does not time out any more.

        Source: kafka trunk, InFlightRequests.completeNext, NetworkClient.handleCompletedReceives.
        """
        for pending in self._in_flight.values():
            if pending.node_id == node_id:
                self.take(pending.correlation_id)
                return

    def send_again(self, pending: PendingRequest, deadline_ms: int) -> Send | None:
        """Send a request that is out of flight once more; None unless its node is connected.

        The caller emits the effect. Used for heartbeats, which are many and all alike.
        """
        connection = self._connections[pending.node_id]
        if connection.link is not _READY:
            return None
        correlation_id = self._next_correlation_id
        self._next_correlation_id = correlation_id + 1
        pending.correlation_id = correlation_id
        pending.deadline_ms = deadline_ms
        connection.in_flight_count += 1
        self._in_flight[correlation_id] = pending
        if deadline_ms < self.deadline_ms:  # noqa: PLR1730 - min() costs a call on the hot path
            self.deadline_ms = deadline_ms
        return Send(pending.node_id, correlation_id, pending.request)

    def skip(self, count: int) -> None:
        """Number the next request as if so many more had been sent and answered."""
        self._next_correlation_id += count

    def try_connect(self, node_id: int, now_ms: int) -> None:
        """Open a connection unless there is one, or the reconnect backoff forbids it."""
        connection = self._connection(node_id)
        if connection.link is not _Link.DOWN or now_ms < connection.retry_at_ms:
            return
        connection.link = _Link.CONNECTING
        connection.last_attempt_ms = now_ms
        connection.setup_deadline_ms = now_ms + self._setup_timeout_ms(connection)
        self._out.append(Connect(node_id))
        self._refresh_deadline()

    def on_connected(self, node_id: int) -> None:
        """Send requests that waited for the connection."""
        connection = self._connection(node_id)
        if connection.link is not _Link.CONNECTING:
            return
        connection.link = _Link.READY
        connection.failed = False
        connection.failure_count = connection.setup_failure_count = 0
        connection.setup_deadline_ms = FOREVER
        while connection.unsent:
            self._transmit(connection, connection.unsent.popleft())
        self._refresh_deadline()

    def on_disconnected(self, node_id: int, now_ms: int, error: str = DISCONNECT) -> None:
        """Fail every request of the node and start its reconnect backoff."""
        connection = self._connection(node_id)
        if connection.link is _Link.DOWN:
            return
        if connection.link is _Link.CONNECTING:
            connection.setup_failure_count += 1
        self._break(node_id, connection, now_ms, error)

    def disconnect(self, node_id: int, now_ms: int) -> None:
        """Close the connection; every request of the node fails with a disconnect."""
        connection = self._connection(node_id)
        if connection.link is not _Link.DOWN:
            self._out.append(Disconnect(node_id))
            self._break(node_id, connection, now_ms)
        else:
            self._fail_requests(node_id, connection, DISCONNECT)
            self._refresh_deadline()

    def expire(self, now_ms: int) -> None:
        """Close connections with overdue requests or set-up, and retry those that may."""
        overdue = [p.node_id for p in self._in_flight.values() if p.deadline_ms <= now_ms]
        for node_id in dict.fromkeys(overdue):
            self.disconnect(node_id, now_ms)
        for node_id, connection in self._connections.items():
            if connection.setup_deadline_ms <= now_ms:
                connection.setup_failure_count += 1
                self.disconnect(node_id, now_ms)
            self._expire_unsent(connection, now_ms)
            if connection.unsent:
                self.try_connect(node_id, now_ms)
        self._refresh_deadline()

    def is_ready(self, node_id: int) -> bool:
        """Whether the connection to the node is open."""
        connection = self._connections.get(node_id)
        return connection is not None and connection.link is _READY

    def retry_at_ms(self, node_id: int) -> int:
        """Return when a closed connection may be tried; FOREVER while it is open or opening."""
        connection = self._connection(node_id)
        return connection.retry_at_ms if connection.link is _Link.DOWN else FOREVER

    def is_unavailable(self, node_id: int, now_ms: int) -> bool:
        """Whether the connection broke and may not be retried yet.

        Source: kafka trunk, NetworkClientUtils.isUnavailable.
        """
        connection = self._connections.get(node_id)
        return (
            connection is not None
            and connection.failed
            and connection.link is _Link.DOWN
            and now_ms < connection.retry_at_ms
        )

    def has_pending(self, node_id: int) -> bool:
        """Whether a request to the node is queued or in flight."""
        connection = self._connections.get(node_id)
        return connection is not None and bool(connection.in_flight_count or connection.unsent)

    def has_in_flight(self, node_id: int) -> bool:
        """Whether a request to the node is in flight."""
        connection = self._connections.get(node_id)
        return connection is not None and connection.in_flight_count > 0

    def is_idle(self) -> bool:
        """Whether no request is in flight."""
        return not self._in_flight

    def is_any_ready(self) -> bool:
        """Whether a connection is open."""
        return any(each.link is _READY for each in self._connections.values())

    def least_loaded(self, nodes: tuple[Node, ...], now_ms: int) -> int | None:
        """Return the node for a request that any node may answer.

        Among connected nodes, the first with the fewest requests in flight, counted from a random
        offset; else the last that is being connected; else the first of those tried longest ago.
        None when no node is connected or may be tried now.

        Source: kafka trunk, NetworkClient.leastLoadedNode.
        """
        if not nodes:
            return None
        offset = self._jitter.draw("least-loaded-node", self._client_id, len(nodes))
        best: int | None = None
        best_rank = FOREVER
        for index in range(len(nodes)):
            node_id = nodes[(offset + index) % len(nodes)].node_id
            rank = self._rank(node_id, now_ms)
            if rank < best_rank or rank == best_rank == _CONNECTING_RANK:
                best, best_rank = node_id, rank
        return best

    def next_retry_at_ms(self) -> int:
        """Return the first instant at which some broken connection may be tried again."""
        waiting = [c.retry_at_ms for c in self._connections.values() if c.link is _Link.DOWN]
        return min(waiting, default=FOREVER)

    def close(self) -> None:
        """Close every open connection; requests in flight will not be answered."""
        for node_id, connection in self._connections.items():
            if connection.link is not _Link.DOWN:
                self._out.append(Disconnect(node_id))
                connection.link = _Link.DOWN
            connection.unsent.clear()
            connection.in_flight_count = 0
        self._in_flight.clear()
        self.failed.clear()
        self.deadline_ms = FOREVER

    def _rank(self, node_id: int, now_ms: int) -> int:
        connection = self._connections.get(node_id)
        if connection is None:
            return _DOWN_RANK
        if connection.link is _Link.READY:
            return connection.in_flight_count
        if connection.link is _Link.CONNECTING:
            return _CONNECTING_RANK
        may_try = now_ms >= connection.retry_at_ms
        return _DOWN_RANK + connection.last_attempt_ms if may_try else FOREVER

    def _connection(self, node_id: int) -> _Connection:
        connection = self._connections.get(node_id)
        if connection is None:
            connection = self._connections[node_id] = _Connection()
        return connection

    def _transmit(self, connection: _Connection, pending: PendingRequest) -> None:
        pending.was_sent = True
        connection.in_flight_count += 1
        self._in_flight[pending.correlation_id] = pending
        self._out.append(Send(pending.node_id, pending.correlation_id, pending.request))

    def _break(
        self, node_id: int, connection: _Connection, now_ms: int, error: str = DISCONNECT
    ) -> None:
        connection.link = _Link.DOWN
        connection.last_attempt_ms = now_ms
        connection.failed = True
        connection.setup_deadline_ms = FOREVER
        connection.retry_at_ms = now_ms + self._config.reconnect_backoff().backoff_ms(
            connection.failure_count, self._jitter, site="reconnect-backoff", key=self._client_id
        )
        connection.failure_count += 1
        self._fail_requests(node_id, connection, error)
        self._refresh_deadline()

    def _fail_requests(self, node_id: int, connection: _Connection, error: str) -> None:
        lost = [p for p in self._in_flight.values() if p.node_id == node_id]
        for pending in lost:
            del self._in_flight[pending.correlation_id]
        connection.in_flight_count = 0
        self.failed.extend((pending, error) for pending in (*lost, *connection.unsent))
        connection.unsent.clear()

    def _expire_unsent(self, connection: _Connection, now_ms: int) -> None:
        overdue = [pending for pending in connection.unsent if pending.deadline_ms <= now_ms]
        for pending in overdue:
            connection.unsent.remove(pending)
            self.failed.append((pending, TIMEOUT))

    def _setup_timeout_ms(self, connection: _Connection) -> int:
        config = self._config
        return min(
            config.socket_connection_setup_timeout_ms << min(connection.setup_failure_count, 20),
            config.socket_connection_setup_timeout_max_ms,
        )

    def _refresh_deadline(self) -> None:
        """Find the earliest deadline; quiet means that only requests in flight have one."""
        deadline_ms = FOREVER
        quiet = True
        for pending in self._in_flight.values():
            deadline_ms = min(deadline_ms, pending.deadline_ms)
        for connection in self._connections.values():
            deadline_ms = min(deadline_ms, connection.setup_deadline_ms)
            if connection.setup_deadline_ms < FOREVER or connection.unsent:
                quiet = False
            if connection.unsent:
                deadline_ms = min(deadline_ms, connection.unsent[0].deadline_ms)
                if connection.link is _Link.DOWN:
                    deadline_ms = min(deadline_ms, connection.retry_at_ms)
        self._quiet = quiet
        self.deadline_ms = deadline_ms
