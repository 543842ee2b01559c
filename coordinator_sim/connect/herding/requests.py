"""What is asked of a herder, and what it answers; plain data, HTTP is made of it elsewhere.

`Herder.submit(request)` answers a `Pending` that always completes with a value: what the request's
docstring names, or a `RequestFailed`. Java runs most requests on the herder's thread, in the order
of their due time; a few read the stores or write a record on the caller's thread, and work while
the herder is stuck in a rebalance (`HerdersRequest`, `CallersRequest`).

Source: kafka trunk, connect/runtime/.../Herder.java, distributed/DistributedHerder.java,
AbstractHerder.java, rest/errors/ConnectExceptionMapper.java.
"""

from collections.abc import Mapping
from enum import Enum, unique
from typing import Final, Protocol

from msgspec import Struct

from coordinator_sim.connect.effects import TargetState
from coordinator_sim.protocol.resources import ConnectorTaskId

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

        The redirects (`is_redirect`) and a needed rebalance are 409 when nobody can be asked.
        """
        return _STATUSES.get(self, _INTERNAL_SERVER_ERROR)

    @property
    def is_redirect(self) -> bool:
        """Whether another worker is to be asked (RequestTargetException)."""
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
        kind: Which exception Kafka throws.
        message: Its message, as the caller reads it.
        forward_url: With a redirect: the REST URL of who can do it; None when nobody is known.
        rest_status: With CONNECT_REST: the HTTP status that it carries.
    """

    kind: ErrorKind
    message: str
    forward_url: str | None = None
    rest_status: int | None = None

    @property
    def status(self) -> int:
        """The HTTP status the caller sees."""
        return self.kind.status if self.rest_status is None else self.rest_status


# -- results ---------------------------------------------------------------------------------


@unique
class ConnectorType(Enum):
    """The direction of a connector, as REST names it."""

    SOURCE = "source"
    SINK = "sink"
    UNKNOWN = "unknown"


class Done(Struct, frozen=True):
    """It is done, and there is nothing to say about it."""


class ConnectorInfo(Struct, frozen=True, kw_only=True):
    """A connector as it is configured."""

    name: str
    config: dict[str, str]
    tasks: tuple[ConnectorTaskId, ...]
    type: ConnectorType


class Created(Struct, frozen=True, kw_only=True):
    """A connector's configuration was written.

    Args:
        created: Whether the connector is new.
        info: None after a deletion.
    """

    created: bool
    info: ConnectorInfo | None = None


class TaskInfo(Struct, frozen=True):
    """A task as it is configured."""

    task: ConnectorTaskId
    config: dict[str, str]


class WorkState(Struct, frozen=True, kw_only=True):
    """The state of a connector or task, as its worker has written it.

    Args:
        state: RUNNING, PAUSED, STOPPED, FAILED, UNASSIGNED or RESTARTING.
        trace: Why it failed; empty otherwise.
        version: Of the plugin; None where the worker that wrote it does not tell.
    """

    state: str
    worker_id: str
    trace: str = ""
    version: str | None = None


class TaskState(WorkState, frozen=True, kw_only=True):
    """The state of one task, named by its number."""

    task: int


class ConnectorStateInfo(Struct, frozen=True, kw_only=True):
    """The state of a connector and of its tasks, these by number."""

    name: str
    connector: WorkState
    tasks: tuple[TaskState, ...]
    type: ConnectorType


class ActiveTopics(Struct, frozen=True):
    """The topics a connector has used since it was created or reset."""

    connector: str
    topics: tuple[str, ...]


class ConnectorOffset(Struct, frozen=True):
    """One source partition, or consumed topic partition, and its offset; None clears it."""

    partition: dict[str, object]
    offset: dict[str, object] | None


class ConnectorOffsets(Struct, frozen=True):
    """All offsets of a connector."""

    offsets: tuple[ConnectorOffset, ...]


class Message(Struct, frozen=True):
    """A sentence that says what was done."""

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
"""What the `Pending` of a request completes with."""


# -- requests --------------------------------------------------------------------------------


class InternalRequestSignature(Protocol):
    """The signature that came with a request of another worker."""

    @property
    def key_algorithm(self) -> str:
        """The algorithm of its MAC, such as HmacSHA256."""
        ...

    def is_valid(self, key: bytes) -> bool:
        """Whether the MAC of the body under this session key is the one that was sent."""
        ...


class PutConnectorConfig(Struct, frozen=True, kw_only=True):
    """Create or reconfigure a connector, after validation; `Created`. Leader only.

    Args:
        allow_replace: False to fail with ALREADY_EXISTS where the connector exists.
        target_state: Of a new connector; None leaves it as it is, STARTED for a new one.
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
    """The names of the connectors, by the herder's thread; tuple[str, ...]."""


class GetConnectorInfo(Struct, frozen=True):
    """`ConnectorInfo` of one connector."""

    connector: str


class GetConnectorConfig(Struct, frozen=True):
    """The configuration of one connector; dict[str, str]."""

    connector: str


class GetTaskConfigs(Struct, frozen=True):
    """The tasks of a connector with their configurations; tuple[TaskInfo, ...]."""

    connector: str


class PutTaskConfigs(Struct, frozen=True, kw_only=True):
    """Write the tasks of a connector, as a worker asks that runs the connector; `Done`.

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
    """Restart a connector, not its tasks; `Done`. Its owner does it."""

    connector: str


class RestartTask(Struct, frozen=True):
    """Restart one task; `Done`. Its owner does it."""

    task: ConnectorTaskId


class RestartConnectorAndTasks(Struct, frozen=True, kw_only=True):
    """Have a connector and its tasks restarted by their owners; `ConnectorStateInfo`.

    The leader writes the request to the config topic and answers with the states to come.

    Args:
        only_failed: Leave alone what has not failed.
        include_tasks: The tasks too.
    """

    connector: str
    only_failed: bool = False
    include_tasks: bool = False

    @property
    def impact(self) -> tuple[bool, bool]:
        """What of two requests for one connector is done: the one with the higher impact.

        Source: kafka trunk, RestartRequest.compareTo.
        """
        return (not self.only_failed, self.include_tasks)


class GetOffsets(Struct, frozen=True):
    """`ConnectorOffsets` of a connector."""

    connector: str


class AlterOffsets(Struct, frozen=True, kw_only=True):
    """Write offsets of a stopped connector; `Message`. Leader only."""

    connector: str
    offsets: tuple[ConnectorOffset, ...]


class ResetOffsets(Struct, frozen=True):
    """Forget all offsets of a stopped connector; `Message`. Leader only."""

    connector: str


class CheckHealth(Struct, frozen=True):
    """`Done` as soon as the herder's thread comes round to it."""


class PauseConnector(Struct, frozen=True):
    """Give the connector the target state PAUSED; `Done`. Any worker writes it."""

    connector: str


class ResumeConnector(Struct, frozen=True):
    """Give the connector the target state STARTED; `Done`. Any worker writes it."""

    connector: str


class ListConnectors(Struct, frozen=True):
    """The names of the connectors in this worker's view of the config topic; tuple[str, ...]."""


class ReadConnectorInfo(Struct, frozen=True):
    """`ConnectorInfo` in this worker's view of the config topic, as `?expand=info` shows it."""

    connector: str


class GetConnectorStatus(Struct, frozen=True):
    """`ConnectorStateInfo` in this worker's view of the status topic."""

    connector: str


class GetTaskStatus(Struct, frozen=True):
    """`TaskState` in this worker's view of the status topic."""

    task: ConnectorTaskId


class GetActiveTopics(Struct, frozen=True):
    """`ActiveTopics` of a connector in this worker's view of the status topic."""

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
"""What waits for the herder's thread."""

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
"""What does not wait for the herder's thread."""

Request = HerdersRequest | CallersRequest
"""Everything that may be asked of a herder."""


# -- what a herder wants of plugins ----------------------------------------------------------


class PluginFailure(Struct, frozen=True):
    """A plugin is missing, or has raised; `trace` is what a FAILED status shows of it."""

    trace: str


class ConnectorPlugins(Protocol):
    """The connector classes installed on a worker."""

    def connector_type(self, config: Mapping[str, str]) -> ConnectorType:
        """Whether `connector.class` is a source or a sink; UNKNOWN when it is not installed."""
        ...

    def version(self, config: Mapping[str, str]) -> str | None:
        """The version of the connector's class; None when it is not installed."""
        ...

    def start_failure(self, config: Mapping[str, str]) -> PluginFailure | None:
        """Why the connector's class cannot be instantiated; None when it can."""
        ...

    def validation_errors(self, config: Mapping[str, str]) -> tuple[str, ...] | PluginFailure:
        """What is wrong with a connector's configuration; empty when it may be written."""
        ...

    def alter_offsets(
        self, config: Mapping[str, str], offsets: tuple[ConnectorOffset, ...]
    ) -> bool | PluginFailure:
        """`SourceConnector.alterOffsets`: whether the class vouches for the new offsets itself."""
        ...

    def task_configs(
        self, config: Mapping[str, str], max_tasks: int
    ) -> list[dict[str, str]] | PluginFailure:
        """`Connector.taskConfigs(maxTasks)` of the running connector, with `task.class` added."""
        ...
