"""Effects that a client port requests of its driver, and the names of application callbacks.

Every verb of a port returns a tuple of effects, to be carried out in order.
"""

from enum import Enum, unique

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.clients.config import OffsetReset
from coordinator_sim.kafka.resources import ConnectorTaskId, StreamsTaskId, TopicPartition
from coordinator_sim.messages.requests import Request

COORDINATOR_NODE_OFFSET = 2_147_483_647
"""The coordinator connection of broker b is node `2147483647 - b`, apart from its data traffic.

Source: kafka trunk, AbstractCoordinator.FindCoordinatorResponseHandler.onSuccess.
"""


class Connect(Struct, frozen=True, gc=False):
    """Open a connection to the node; answered by `on_connected` or `on_disconnected`."""

    node_id: int


class Disconnect(Struct, frozen=True, gc=False):
    """Close the connection to the node. Requests in flight there are already failed."""

    node_id: int


class Send(Struct, frozen=True, gc=False):
    """Send the request on an open connection; the port itself watches the timeout."""

    node_id: int
    correlation_id: int
    request: Request


@unique
class CallbackKind(Enum):
    """Application callback to run."""

    PARTITIONS_ASSIGNED = "PARTITIONS_ASSIGNED"
    PARTITIONS_REVOKED = "PARTITIONS_REVOKED"
    PARTITIONS_LOST = "PARTITIONS_LOST"
    WORK_ASSIGNED = "WORK_ASSIGNED"
    WORK_REVOKED = "WORK_REVOKED"
    POLL_TIMEOUT = "POLL_TIMEOUT"


class StreamsTasks(Struct, frozen=True, kw_only=True):
    """Tasks of a stream thread, each kind in order.

    Args:
        active: Tasks that process.
        standby: Copies of the state of other threads' tasks.
        warmup: Copies that are to become active.
        is_group_ready: Whether topics and assignment of the group are as they are to be.
    """

    active: tuple[StreamsTaskId, ...] = ()
    standby: tuple[StreamsTaskId, ...] = ()
    warmup: tuple[StreamsTaskId, ...] = ()
    is_group_ready: bool = False

    @property
    def all_tasks(self) -> tuple[StreamsTaskId, ...]:
        """Tasks of every kind."""
        return (*self.active, *self.standby, *self.warmup)

    def with_readiness(self, *, is_ready: bool) -> "StreamsTasks":
        """Return the same tasks of a group that is ready, or is not."""
        return replace(self, is_group_ready=is_ready)

    def deduplicated(self) -> "StreamsTasks":
        """Return each task once: active before standby, standby before warm-up."""
        standby = tuple(each for each in self.standby if each not in self.active)
        taken = (*self.active, *standby)
        warmup = tuple(each for each in self.warmup if each not in taken)
        return replace(self, standby=standby, warmup=warmup)


class RunCallback(Struct, frozen=True, kw_only=True):
    """Run an application callback, then report `callback_completed(token, ...)`.

    The application's thread is busy until then; heartbeats go on. `partitions` for consumers;
    `connectors` and `tasks` for Connect; `streams` for stream threads, whose partitions follow.
    """

    token: int
    kind: CallbackKind
    partitions: tuple[TopicPartition, ...] = ()
    connectors: tuple[str, ...] = ()
    tasks: tuple[ConnectorTaskId, ...] = ()
    streams: StreamsTasks | None = None


class ResetPositions(Struct, frozen=True, kw_only=True):
    """Find where these partitions begin or end; answered by `positions_found`.

    A partition may be asked for again while an answer is missing: after it was given up and
    assigned anew. The driver repeats what fails, as Java's ListOffsets is repeated.
    """

    partitions: tuple[TopicPartition, ...]
    to: OffsetReset


class PollReturned(Struct, frozen=True, gc=False):
    """The application's `poll` call is over; the application may process and poll again.

    Args:
        error: Name of the exception that poll raised, or None. After a fatal one (fencing,
            authorisation) the application normally closes.
    """

    error: str | None = None


class Closed(Struct, frozen=True, gc=False):
    """`close` is over; no further effect follows."""


class CommitCompleted(Struct, frozen=True, kw_only=True):
    """A commit ended: `error` names the exception, None is success."""

    token: int
    error: str | None = None


class AcknowledgementsCompleted(Struct, frozen=True, kw_only=True):
    """Acknowledgements of a share consumer ended: the call of its acknowledgement callback.

    Args:
        partition: The partition.
        types: The type of each acknowledged offset by its number on the wire, ascending; 0 for an
            offset without a record.
        error: Name of the exception; None is success.
    """

    partition: TopicPartition
    types: dict[int, int]
    error: str | None = None


Effect = (
    Connect
    | Disconnect
    | Send
    | RunCallback
    | ResetPositions
    | PollReturned
    | Closed
    | CommitCompleted
    | AcknowledgementsCompleted
)
Effects = tuple[Effect, ...]
