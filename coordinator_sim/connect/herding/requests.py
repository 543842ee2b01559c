"""Requests to a herder and its answers as plain data, independent of HTTP.

`Herder.submit(request)` answers a `Pending` that always completes with a value: what the request's
docstring names, or a `RequestFailed`. Java runs most requests on the herder's thread, in the order
of their due time. A few requests read the stores or write a record on the caller's thread, and
so work while the herder is stuck in a rebalance (`HerdersRequest`, `CallersRequest`).

Source: kafka trunk, connect/runtime/.../Herder.java, distributed/DistributedHerder.java,
AbstractHerder.java, rest/errors/ConnectExceptionMapper.java.
"""

from collections.abc import Mapping
from enum import Enum, unique
from typing import Final, Protocol

from msgspec import Struct

from coordinator_sim.connect.effects import TargetState
from coordinator_sim.kafka.resources import ConnectorTaskId

# -- failures --------------------------------------------------------------------------------


@unique
class ErrorKind(Enum):
    """Kafka's exceptions that a request can end with, by their simple names."""

    NOT_LEADER = "NotLeaderException"
    NOT_ASSIGNED = "NotAssignedException"
    REBALANCE_NEEDED = "RebalanceNeededException"
    NOT_FOUND = "NotFoundException"
    ALREADY_EXISTS = "AlreadyExistsException"
    BAD_REQUEST = "BadRequestException"
    CONNECT_REST = "ConnectRestException"
    TIMEOUT = "TimeoutException"
    TOO_MANY_TASKS = "TooManyTasksException"
    UNSUPPORTED_OPERATION = "UnsupportedOperationException"
    CONNECT = "ConnectException"

    @property
    def status(self) -> int:
        """The HTTP status that Connect's mapper gives the exception.

        A redirect (`is_redirect`) without a worker to ask, and a needed rebalance, are 409.
        """
        return _STATUSES.get(self, _INTERNAL_SERVER_ERROR)

    @property
    def is_redirect(self) -> bool:
        """Whether another worker has to be asked (RequestTargetException)."""
        return self in (ErrorKind.NOT_LEADER, ErrorKind.NOT_ASSIGNED)


_INTERNAL_SERVER_ERROR: Final = 500
_STATUSES: Final = {
    ErrorKind.NOT_LEADER: 409,
    ErrorKind.NOT_ASSIGNED: 409,
    ErrorKind.REBALANCE_NEEDED: 409,
    ErrorKind.NOT_FOUND: 404,
    ErrorKind.ALREADY_EXISTS: 409,
    ErrorKind.BAD_REQUEST: 400,
}


class RequestFailed(Struct, frozen=True, kw_only=True):
    """A request that was refused or went wrong.

    Args:
        kind: The exception that Kafka throws.
        message: Its text, as the caller reads it.
        forward_url: With a redirect: REST URL of the worker to ask; None when it is not known.
        rest_status: With CONNECT_REST: the HTTP status of the exception.
    """

    kind: ErrorKind
    message: str
    forward_url: str | None = None
    rest_status: int | None = None

    @property
    def status(self) -> int:
        """HTTP status that the caller sees."""
        return self.kind.status if self.rest_status is None else self.rest_status


# -- results ---------------------------------------------------------------------------------


@unique
class ConnectorType(Enum):
    """The direction of a connector, as REST names it."""

    SOURCE = "source"
    SINK = "sink"
    UNKNOWN = "unknown"


class Done(Struct, frozen=True):
    """The request succeeded and has no result."""


class ConnectorInfo(Struct, frozen=True, kw_only=True):
    """A connector's name, type, configuration and tasks."""

    name: str
    config: dict[str, str]
    tasks: tuple[ConnectorTaskId, ...]
    type: ConnectorType


class Created(Struct, frozen=True, kw_only=True):
    """Answer to a written or deleted connector configuration.

    Args:
        created: Whether the connector is new.
        info: The connector; None after a deletion.
    """

    created: bool
    info: ConnectorInfo | None = None


class TaskInfo(Struct, frozen=True):
    """A task and its configuration."""

    task: ConnectorTaskId
    config: dict[str, str]


class WorkState(Struct, frozen=True, kw_only=True):
    """The state of a connector or task, as written by the worker that runs it.

    Args:
        state: RUNNING, PAUSED, STOPPED, FAILED, UNASSIGNED or RESTARTING.
        trace: Reason of a failure; empty otherwise.
        version: Version of the plugin; None when the worker that wrote the state omits it.
    """

    state: str
    worker_id: str
    trace: str = ""
    version: str | None = None


class TaskState(WorkState, frozen=True, kw_only=True):
    """The state of one task, named by its number."""

    task: int


class ConnectorStateInfo(Struct, frozen=True, kw_only=True):
    """The state of a connector and of its tasks, ordered by task number."""

    name: str
    connector: WorkState
    tasks: tuple[TaskState, ...]
    type: ConnectorType


class ActiveTopics(Struct, frozen=True):
    """The topics a connector has used since it was created or reset."""

    connector: str
    topics: tuple[str, ...]


class ConnectorOffset(Struct, frozen=True):
    """One source partition, or consumed topic partition, with its offset; None resets it."""

    partition: dict[str, object]
    offset: dict[str, object] | None


class ConnectorOffsets(Struct, frozen=True):
    """All offsets of a connector."""

    offsets: tuple[ConnectorOffset, ...]


class Message(Struct, frozen=True):
    """A sentence that tells the caller what was done."""

    message: str


Result = (
    Done
    | ConnectorInfo
    | Created
    | WorkState
    | ConnectorStateInfo
    | ActiveTopics
    | ConnectorOffsets
    | Message
    | tuple[str, ...]
    | tuple[TaskInfo, ...]
    | dict[str, str]
)
Outcome = Result | RequestFailed
"""Value that the `Pending` of a request completes with."""


# -- requests --------------------------------------------------------------------------------


class InternalRequestSignature(Protocol):
    """The signature that came with a request of another worker."""

    @property
    def key_algorithm(self) -> str:
        """Algorithm of the signature's MAC, such as HmacSHA256."""
        ...

    def is_valid(self, key: bytes) -> bool:
        """Whether the signature's MAC matches the body under this session key."""
        ...


class PutConnectorConfig(Struct, frozen=True, kw_only=True):
    """Create or reconfigure a connector, after validation; `Created`. Leader only.

    Args:
        allow_replace: False to fail with ALREADY_EXISTS where the connector exists.
        target_state: Initial target state; None keeps the present one, STARTED for a new connector.
    """

    connector: str
    config: dict[str, str]
    allow_replace: bool = True
    target_state: TargetState | None = None


class PatchConnectorConfig(Struct, frozen=True, kw_only=True):
    """Change some keys of a connector's configuration, None removes one; `Created`."""

    connector: str
    patch: dict[str, str | None]


class DeleteConnector(Struct, frozen=True):
    """Delete a connector; `Created` without info. Leader only."""

    connector: str


class GetConnectors(Struct, frozen=True):
    """Ask the herder's thread for the names of the connectors; tuple[str, ...]."""


class GetConnectorInfo(Struct, frozen=True):
    """Ask for the `ConnectorInfo` of one connector."""

    connector: str


class GetConnectorConfig(Struct, frozen=True):
    """Ask for the configuration of one connector; dict[str, str]."""

    connector: str


class GetTaskConfigs(Struct, frozen=True):
    """Ask for the tasks of a connector with their configurations; tuple[TaskInfo, ...]."""

    connector: str


class PutTaskConfigs(Struct, frozen=True, kw_only=True):
    """Write a connector's task configurations, sent by the worker that runs it; `Done`.

    Leader only.

    Args:
        signature: None when the request carried none.
    """

    connector: str
    configs: tuple[dict[str, str], ...]
    signature: InternalRequestSignature | None


class FenceZombies(Struct, frozen=True, kw_only=True):
    """Fence the old generations of a source connector's tasks; `Done`. Leader only.

    Args:
        signature: None when the request carried none.
    """

    connector: str
    signature: InternalRequestSignature | None


class StopConnectorRequest(Struct, frozen=True):
    """Give the connector the target state STOPPED and no tasks; `Done`. Leader only."""

    connector: str


class RestartConnector(Struct, frozen=True):
    """Restart a connector, not its tasks; `Done`. Only the owner does it."""

    connector: str


class RestartTask(Struct, frozen=True):
    """Restart one task; `Done`. Only the owner does it."""

    task: ConnectorTaskId


class RestartConnectorAndTasks(Struct, frozen=True, kw_only=True):
    """Have a connector and its tasks restarted by their owners; `ConnectorStateInfo`.

    The leader writes the request to the config topic and answers with the expected states.

    Args:
        only_failed: Whether to restart only what has failed.
        include_tasks: Whether to restart the tasks too.
    """

    connector: str
    only_failed: bool = False
    include_tasks: bool = False

    @property
    def impact(self) -> tuple[bool, bool]:
        """Rank of the request: of two for one connector, the one with the higher impact is done.

        Source: kafka trunk, RestartRequest.compareTo.
        """
        return (not self.only_failed, self.include_tasks)


class GetOffsets(Struct, frozen=True):
    """Ask for the `ConnectorOffsets` of a connector."""

    connector: str


class AlterOffsets(Struct, frozen=True, kw_only=True):
    """Write offsets of a stopped connector; `Message`. Leader only."""

    connector: str
    offsets: tuple[ConnectorOffset, ...]


class ResetOffsets(Struct, frozen=True):
    """Forget all offsets of a stopped connector; `Message`. Leader only."""

    connector: str


class CheckHealth(Struct, frozen=True):
    """Check the herder's thread: `Done` as soon as it processes this request."""


class PauseConnector(Struct, frozen=True):
    """Give the connector the target state PAUSED; `Done`. Any worker writes it."""

    connector: str


class ResumeConnector(Struct, frozen=True):
    """Give the connector the target state STARTED; `Done`. Any worker writes it."""

    connector: str


class ListConnectors(Struct, frozen=True):
    """Read the connectors' names from this worker's view of the config topic; tuple[str, ...]."""


class ReadConnectorInfo(Struct, frozen=True):
    """Read `ConnectorInfo` from this worker's view of the config topic, for `?expand=info`."""

    connector: str


class GetConnectorStatus(Struct, frozen=True):
    """Read `ConnectorStateInfo` from this worker's view of the status topic."""

    connector: str


class GetTaskStatus(Struct, frozen=True):
    """Read `TaskState` from this worker's view of the status topic."""

    task: ConnectorTaskId


class GetActiveTopics(Struct, frozen=True):
    """Read the `ActiveTopics` of a connector from this worker's view of the status topic."""

    connector: str


class ResetActiveTopics(Struct, frozen=True):
    """Forget the active topics of a connector; `Done`. Any worker writes the tombstones."""

    connector: str


class SetClusterLoggerLevel(Struct, frozen=True, kw_only=True):
    """Have every worker log a namespace at this level; `Done`. Any worker writes it."""

    namespace: str
    level: str


HerdersRequest = (
    PutConnectorConfig
    | PatchConnectorConfig
    | DeleteConnector
    | GetConnectors
    | GetConnectorInfo
    | GetConnectorConfig
    | GetTaskConfigs
    | PutTaskConfigs
    | FenceZombies
    | StopConnectorRequest
    | RestartConnector
    | RestartTask
    | RestartConnectorAndTasks
    | GetOffsets
    | AlterOffsets
    | ResetOffsets
    | CheckHealth
)
"""Requests that wait for the herder's thread."""

CallersRequest = (
    PauseConnector
    | ResumeConnector
    | ListConnectors
    | ReadConnectorInfo
    | GetConnectorStatus
    | GetTaskStatus
    | GetActiveTopics
    | ResetActiveTopics
    | SetClusterLoggerLevel
)
"""Requests that do not wait for the herder's thread."""

Request = HerdersRequest | CallersRequest
"""Every request to a herder."""


# -- what a herder needs from plugins --------------------------------------------------------


class PluginFailure(Struct, frozen=True):
    """A plugin that is missing or has raised; `trace` is shown in a FAILED status."""

    trace: str


class ConnectorPlugins(Protocol):
    """The connector classes installed on a worker."""

    def connector_type(self, config: Mapping[str, str]) -> ConnectorType:
        """Whether `connector.class` is a source or a sink; UNKNOWN when it is not installed."""
        ...

    def version(self, config: Mapping[str, str]) -> str | None:
        """Version of the connector's class; None when it is not installed."""
        ...

    def start_failure(self, config: Mapping[str, str]) -> PluginFailure | None:
        """Reason why the connector's class cannot be instantiated; None when it can."""
        ...

    def validation_errors(self, config: Mapping[str, str]) -> tuple[str, ...] | PluginFailure:
        """Errors in a connector's configuration; empty when it may be written."""
        ...

    def alter_offsets(
        self, config: Mapping[str, str], offsets: tuple[ConnectorOffset, ...]
    ) -> bool | PluginFailure:
        """Run `SourceConnector.alterOffsets`: whether the class vouches for the new offsets."""
        ...

    def transformed(self, config: Mapping[str, str]) -> dict[str, str]:
        """Return the configuration with the values of providers that it refers to."""
        ...

    def task_configs(
        self, config: Mapping[str, str], max_tasks: int
    ) -> list[dict[str, str]] | PluginFailure:
        """Run `Connector.taskConfigs(maxTasks)` of a running connector; `task.class` is added."""
        ...
