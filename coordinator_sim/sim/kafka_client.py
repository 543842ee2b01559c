"""One Kafka client of a Connect worker at the simulated network: a producer, consumer or admin.

Connections, their backoff and the timeouts of requests are those of Java's NetworkClient. The
cluster's view at the instant of each attempt replaces Java's metadata.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, TypeVar, cast

from msgspec import Struct

from coordinator_sim.clients.config import GroupConfig
from coordinator_sim.clients.effects import Connect, Disconnect, Effect, Send
from coordinator_sim.clients.exceptions import RETRIABLE, exception_name
from coordinator_sim.clients.generation import NO_GENERATION
from coordinator_sim.clients.network import Future, NetworkClient, PendingRequest, RequestKind
from coordinator_sim.clock import Action
from coordinator_sim.connect.exceptions import TimeoutException, thrown
from coordinator_sim.connect.thread import Blocking, Pending, Wait
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.requests import AnyRequest, Request
from coordinator_sim.sim.machine_clock import Reading
from coordinator_sim.sim.network import Connection, ResponseMessage
from coordinator_sim.sim.world import World

R = TypeVar("R", bound=Struct)

Happened = Callable[[Action], None]
"""Runs a network event's action, now or when the process is no longer frozen."""

DEFAULT_API_TIMEOUT_MS: Final = 60_000
"""`default.api.timeout.ms` of consumers and admin clients, `max.block.ms` of producers."""
UNREACHABLE: Final = "unreachable"
"""Outcome of a request that was never sent: no Java exception, its clients just wait."""
_CONFIG: Final = GroupConfig()
_RETRIED: Final = RETRIABLE | {exception_name(ErrorCode.CONCURRENT_TRANSACTIONS)}


class KafkaClient:
    """The connections and requests of one client.

    Args:
        world: Shared parts of the run.
        worker: Name of the worker in the network.
        client_id: Names the client in random choices.
        happened: Takes network events.
        reading: The clock of the process.
    """

    __slots__ = (
        "_connections",
        "_happened",
        "_network",
        "_out",
        "_pendings",
        "_reading",
        "_worker",
        "client_id",
        "world",
    )

    def __init__(
        self,
        world: World,
        worker: str,
        client_id: str,
        happened: Happened,
        reading: Reading,
    ) -> None:
        self.world = world
        self.client_id = client_id
        self._worker = worker
        self._reading = reading
        self._happened = happened
        self._out: list[Effect] = []
        self._network = NetworkClient(
            _CONFIG, client_id=client_id, jitter=world.choices, out=self._out
        )
        self._connections: dict[int, Connection] = {}
        self._pendings: dict[PendingRequest, Pending[object]] = {}

    @property
    def now_ms(self) -> int:
        """The present instant, as the worker's clock shows it."""
        return self._reading.now_ms

    @property
    def deadline_ms(self) -> int:
        """When `expire` is due."""
        return self._network.deadline_ms

    def request(
        self,
        broker_id: int,
        request: AnyRequest,
        timeout_ms: int = _CONFIG.request_timeout_ms,
    ) -> Pending[object]:
        """Ask a broker; the result is its answer, or the failure of the connection."""
        pending = PendingRequest(
            RequestKind.METADATA,
            broker_id,
            cast("Request", request),  # the ports' network carries others as well
            generation=NO_GENERATION,
            future=Future(),
        )
        outcome: Pending[object] = Pending()
        self._pendings[pending] = outcome
        self._network.send(pending, timeout_ms, self.now_ms)
        self._run()
        return outcome

    def abandon(self, outcome: Pending[object]) -> None:
        """Ignore the answer from now on; the broker forgets a fetch at the next request."""
        for pending, other in list(self._pendings.items()):
            if other is outcome:
                del self._pendings[pending]
                self._network.take(pending.correlation_id)

    def any_broker(self) -> int | None:
        """Return the least loaded broker; None while none can be tried."""
        return self._network.least_loaded(self.world.bootstrap(), self.now_ms)

    def backoff_ms(self, attempts: int) -> int:
        """Return how long to wait before the next attempt."""
        return _CONFIG.retry_backoff().backoff_ms(
            attempts, self.world.choices, site="retry-backoff", key=self.client_id
        )

    def expire(self) -> None:
        """Fail overdue requests, and retry connections."""
        self._network.expire(self.now_ms)
        self._run()

    def close(self) -> None:
        """Close all connections; open requests stay unanswered."""
        self._network.close()
        self._out.clear()
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        self._pendings.clear()

    # The client's end of its connections.

    def connected(self, connection: Connection) -> None:
        """Handle the broker's accepting the connection."""
        self._happened(partial(self._on_connected, connection))

    def disconnected(self, connection: Connection) -> None:
        """Handle a connection that is gone, or was refused."""
        self._happened(partial(self._on_disconnected, connection))

    def received(self, connection: Connection, message: ResponseMessage) -> None:  # noqa: ARG002
        """Handle an answer; scenarios are checked so that each is the expected one."""
        self._happened(partial(self._on_response, message))

    def _on_connected(self, connection: Connection) -> None:
        if self._connections.get(connection.broker_id) is connection:
            self._network.on_connected(connection.broker_id)
            self._run()

    def _on_disconnected(self, connection: Connection) -> None:
        if self._connections.get(connection.broker_id) is connection:
            del self._connections[connection.broker_id]
            self._network.on_disconnected(connection.broker_id, self.now_ms)
            self._run()

    def _on_response(self, message: ResponseMessage) -> None:
        correlation_id, response = message
        pending = self._network.take(correlation_id)
        if pending is not None:
            self._pendings.pop(pending).complete(response)

    def _run(self) -> None:
        """Carry out what the connections need, and fail broken requests."""
        for effect in self._out:
            match effect:
                case Connect(node_id=broker_id):
                    connection = self.world.network.connect(self._worker, broker_id, self)
                    connection.api_versions = self.world.producer_versions
                    self._connections[broker_id] = connection
                case Disconnect(node_id=broker_id):
                    dropped = self._connections.pop(broker_id, None)
                    if dropped is not None:
                        dropped.close()
                case Send(node_id=broker_id):
                    self._connections[broker_id].request(effect)
        self._out.clear()
        failed = self._network.failed
        while failed:
            pending, error = failed.popleft()
            self._pendings.pop(pending).complete(error=error if pending.was_sent else UNREACHABLE)


def ask(
    client: KafkaClient,
    broker_of: Callable[[], int | None],
    request: AnyRequest,
    kind: type[R],
    *,
    errors_of: Callable[[R], Iterable[ErrorCode]],
    deadline_ms: int,
) -> Blocking[R]:
    """Ask until an answer has no retriable error.

    Args:
        client: The client that asks.
        broker_of: Looks up the broker before each attempt; None while there is none.
        request: The request to send.
        kind: Type of the answer.
        errors_of: Gives the error codes of an answer; the first that is not NONE counts.
        deadline_ms: When to give up.

    Raises:
        TimeoutException: the deadline has come.
        ClientException: an error that is not retriable.
    """
    attempts = 0
    while True:
        broker_id = broker_of()
        if broker_id is not None:
            pending = client.request(broker_id, request)
            yield Wait(pending, until_ms=deadline_ms)
            if pending.done and pending.error is None:
                response = pending.result()
                if not isinstance(response, kind):
                    raise InvariantViolation(f"{response} answers {request}")
                error = next((e for e in errors_of(response) if e is not ErrorCode.NONE), None)
                if error is None:
                    return response
                name = exception_name(error)
                if name not in _RETRIED:
                    raise thrown(name)
        now_ms = client.now_ms
        if now_ms >= deadline_ms:
            raise TimeoutException
        yield Wait(until_ms=min(deadline_ms, now_ms + client.backoff_ms(attempts)))
        attempts += 1


def leader_of(client: KafkaClient, topic: str, partition: int) -> int | None:
    """Return the broker that leads a partition now; None without one."""
    return client.world.leader_of(topic, partition)


def partition_count(client: KafkaClient, topic: str) -> int:
    """Return the number of a topic's partitions; 0 for an unknown topic."""
    return client.world.partition_count(topic)
