"""What a Connect worker asks of its driver besides group membership: topics, work, HTTP.

Group membership is `clients.effects`. Every struct with a `token` is answered once, by
`answered(token, value, error)`; the docstring says which value. Errors are names of Kafka's
exceptions, such as `TimeoutException`.
"""

from enum import Enum, unique

from msgspec import Struct

from coordinator_sim.clients.effects import Effect
from coordinator_sim.kafka.resources import ConnectorTaskId, TopicPartition

# -- topics ----------------------------------------------------------------------------------


class TopicRecord(Struct, frozen=True, kw_only=True, gc=False):
    """A record of an internal topic, as on disk.

    Args:
        offset: Offset of the record in its partition.
        timestamp_ms: Creation time.
    """

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int = 0


class RecordRun(Struct, frozen=True, kw_only=True, gc=False):
    """Many records that are only counted: reading them costs time, their contents are not kept.

    Args:
        first_offset: Offset of the first record; the others follow without a gap.
        count: Number of records.
        size_bytes: Size of all keys and values together.
    """

    partition: int
    first_offset: int
    count: int
    size_bytes: int


class Fetched(Struct, frozen=True, kw_only=True):
    """What one poll of a log's consumer brought; the driver hands it to `fetched`.

    Args:
        positions: Partition -> the offset to be read next, past holes and markers too.
    """

    topic: str
    records: tuple[TopicRecord | RecordRun, ...]
    positions: dict[int, int]


class DescribeCluster(Struct, frozen=True, gc=False):
    """One round trip of the admin client; the value is the cluster id (str)."""

    token: int


class CreateTopic(Struct, frozen=True, kw_only=True):
    """Create a topic unless it exists; the value is whether it was created (bool)."""

    token: int
    topic: str
    partitions: int
    replication_factor: int
    configs: dict[str, str]


class DescribeTopic(Struct, frozen=True, gc=False):
    """Look up a topic's number of partitions (int); the value is 0 while the topic is unknown."""

    token: int
    topic: str


class DescribeTopicConfig(Struct, frozen=True, gc=False):
    """Look up one setting of a topic (str); the value is empty when it has none of that name."""

    token: int
    topic: str
    name: str


class StartReading(Struct, frozen=True, gc=False):
    """Read all partitions of the topic from the beginning, for ever; `Fetched` arrives.

    Args:
        read_committed: Whether records of open and aborted transactions stay hidden.
    """

    topic: str
    read_committed: bool = False


class ReadToEnd(Struct, frozen=True, gc=False):
    """Mark in the trace that the log has read its topic to the end for the first time."""

    topic: str


class StopReading(Struct, frozen=True, gc=False):
    """Close the topic's consumer."""

    topic: str


class ListEndOffsets(Struct, frozen=True, gc=False):
    """Look up end offsets; the value is dict[int, int]: partition -> end offset.

    Args:
        by_consumer: Whether the topic's consumer asks, instead of the shared admin client.
    """

    token: int
    topic: str
    read_committed: bool = False
    by_consumer: bool = False


class Produce(Struct, frozen=True, kw_only=True):
    """Write one record (partition by the key's murmur2 hash); the value is its offset (int).

    Records of one worker and topic are written in the order asked (one in flight).
    """

    token: int
    topic: str
    key: bytes | None
    value: bytes | None


class InitTransactions(Struct, frozen=True, gc=False):
    """Fence older producers of this transactional id and be its producer; no value."""

    token: int
    transactional_id: str


class ProduceInTransaction(Struct, frozen=True, kw_only=True):
    """Begin, write all the (key, value) pairs, commit; no value.

    Fails with `ProducerFencedException` when another process has taken the transactional id since.
    """

    token: int
    transactional_id: str
    topic: str
    records: tuple[tuple[bytes, bytes | None], ...]


class CloseProducer(Struct, frozen=True, gc=False):
    """Close the producer of a transactional id without waiting for anything."""

    transactional_id: str


class FenceProducers(Struct, frozen=True, gc=False):
    """Fence the producers of these transactional ids (admin client); no value."""

    token: int
    transactional_ids: tuple[str, ...]


# -- groups of sinks -------------------------------------------------------------------------


class ListGroupOffsets(Struct, frozen=True, gc=False):
    """Read the offsets of a sink's consumer group; the value is dict[TopicPartition, int]."""

    token: int
    group_id: str


class AlterGroupOffsets(Struct, frozen=True):
    """Commit offsets for a group without members; no value.

    Fails with `UnknownMemberIdException` when the group has members.
    """

    token: int
    group_id: str
    offsets: dict[TopicPartition, int]


class DeleteGroupOffsets(Struct, frozen=True):
    """Delete single offsets of a group; no value.

    Fails with `GroupSubscribedToTopicException` when members of the group consume the topics.
    """

    token: int
    group_id: str
    partitions: tuple[TopicPartition, ...]


class DeleteGroup(Struct, frozen=True, gc=False):
    """Delete a group with its offsets; no value.

    Fails with `GroupIdNotFoundException` when the group does not exist and with
    `GroupNotEmptyException` when it has members.
    """

    token: int
    group_id: str


# -- work ------------------------------------------------------------------------------------


@unique
class TargetState(Enum):
    """Target state of a connector."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


class StartConnector(Struct, frozen=True, kw_only=True):
    """Run a connector; no value. An error is the trace of its FAILED status."""

    token: int
    connector: str
    config: dict[str, str]
    target_state: TargetState


class StartTask(Struct, frozen=True, kw_only=True):
    """Run a task; no value. An error is the trace of its FAILED status.

    Args:
        generation: The group's generation when the task was assigned.
    """

    token: int
    task: ConnectorTaskId
    config: dict[str, str]
    connector_config: dict[str, str]
    target_state: TargetState
    generation: int


class StopConnector(Struct, frozen=True, gc=False):
    """Stop a connector; no value. The worker stops waiting after the graceful timeout."""

    token: int
    connector: str


class StopTask(Struct, frozen=True, gc=False):
    """Stop a task; no value. After the graceful timeout it is cancelled (`CancelTask`)."""

    token: int
    task: ConnectorTaskId


class CancelTask(Struct, frozen=True, gc=False):
    """Abandon a task that did not stop in time: whatever it still does is ignored."""

    task: ConnectorTaskId


class ChangeTargetState(Struct, frozen=True, gc=False):
    """Pause, resume or stop the connector and those of its tasks that run on this worker."""

    connector: str
    target_state: TargetState


# -- HTTP ------------------------------------------------------------------------------------


class HttpRequest(Struct, frozen=True, kw_only=True):
    """A request of Connect's REST API.

    Args:
        target: Path and query, such as `/connectors?expand=status`.
        headers: Headers by lower-case name.
        scheme: `http` or `https`, of the listener that it came to.
        is_admin: Whether it came to one of `admin.listeners`.
    """

    method: str
    target: str
    headers: dict[str, str] = {}
    body: bytes = b""
    scheme: str = "http"
    is_admin: bool = False


class HttpResponse(Struct, frozen=True, kw_only=True):
    """Answer to a request of Connect's REST API."""

    status: int
    headers: dict[str, str] = {}
    body: bytes = b""


class Listen(Struct, frozen=True, gc=False):
    """Accept HTTP requests from now on, until the process ends or sends `StopListening`.

    Args:
        url: URL advertised to the other workers, ending with a slash.
    """

    url: str


class StopListening(Struct, frozen=True, gc=False):
    """Accept no more HTTP requests; those accepted are still answered."""


class CallHttp(Struct, frozen=True, kw_only=True):
    """Send a request to another worker; the value is an HttpResponse.

    Args:
        url: `http://host:port`, without the path.
    """

    token: int
    url: str
    request: HttpRequest


class AnswerHttp(Struct, frozen=True, kw_only=True):
    """Answer the request that the driver passed in under this exchange number."""

    exchange: int
    response: HttpResponse


class Ready(Struct, frozen=True, gc=False):
    """Report that start-up is over: the herder's thread has ended its first tick."""


class Died(Struct, frozen=True, gc=False):
    """Report that the process ends by itself with exit code 1; `reason` names the exception."""

    reason: str


WorkerEffect = (
    Effect
    | DescribeCluster
    | CreateTopic
    | DescribeTopic
    | DescribeTopicConfig
    | StartReading
    | ReadToEnd
    | StopReading
    | ListEndOffsets
    | Produce
    | InitTransactions
    | ProduceInTransaction
    | CloseProducer
    | FenceProducers
    | ListGroupOffsets
    | AlterGroupOffsets
    | DeleteGroupOffsets
    | DeleteGroup
    | StartConnector
    | StartTask
    | StopConnector
    | StopTask
    | CancelTask
    | ChangeTargetState
    | Listen
    | StopListening
    | CallHttp
    | AnswerHttp
    | Ready
    | Died
)
"""Every effect that a Connect worker requests of its driver."""
