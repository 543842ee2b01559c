"""Requests and responses of Trogdor's REST interface.

Each is read with `jackson.read` and written with `jackson.write`; so are `TaskState` and
`WorkerState`, whose fields depend on the state (`families`). A field that Java leaves null and
fails on later may be None here, so that who handles the request can refuse it as Java does.

Source: kafka trunk, trogdor/.../trogdor/rest/*.java, coordinator/CoordinatorRestResource.java,
agent/AgentRestResource.java.
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec import Struct
from msgspec.structs import force_setattr

from coordinator_sim.trogdor import workload_specs
from coordinator_sim.trogdor.fault_specs import (
    DegradedNetworkFaultSpec,
    FilesUnreadableFaultSpec,
    NetworkPartitionFaultSpec,
    ProcessStopFaultSpec,
)
from coordinator_sim.trogdor.java_numbers import LONG_BITS, Int, whole_number
from coordinator_sim.trogdor.refusals import TrogdorRefusal
from coordinator_sim.trogdor.specs import NoOpTaskSpec, SampleTaskSpec, TaskSpec
from coordinator_sim.trogdor.states import TaskPhase, TaskState, WorkerState

_CLASSES: Final[tuple[type[TaskSpec], ...]] = (
    NoOpTaskSpec,
    SampleTaskSpec,
    NetworkPartitionFaultSpec,
    ProcessStopFaultSpec,
    DegradedNetworkFaultSpec,
    FilesUnreadableFaultSpec,
    workload_specs.ProduceBenchSpec,
    workload_specs.ConsumeBenchSpec,
    workload_specs.ShareConsumeBenchSpec,
    workload_specs.ConfigurableProducerSpec,
    workload_specs.RoundTripWorkloadSpec,
    workload_specs.ConnectionStressSpec,
    workload_specs.SustainedConnectionSpec,
    workload_specs.ExternalCommandSpec,
)

SPEC_CLASSES: Final = MappingProxyType({str(spec.__struct_config__.tag): spec for spec in _CLASSES})
"""Java's class name -> ours, of every spec that Kafka has."""


Query = Mapping[str, Sequence[str]]
"""Parameters of a query: name -> its values, in order, decoded."""

_LONG: Final = re.compile("[+-]?[0-9]+")


class PlainTextRefusal(TrogdorRefusal):
    """A refusal whose answer is the message itself, as plain text, rather than an ErrorResponse."""


class Empty(Struct, frozen=True, kw_only=True):
    """An answer that says nothing but that the request was carried out: `{}`."""


class ErrorResponse(Struct, frozen=True, kw_only=True):
    """A request was refused.

    Args:
        code: HTTP status, once more.
        message: Empty when there is none.
    """

    code: Int = 0
    message: str = ""

    @classmethod
    def of(cls, refusal: TrogdorRefusal) -> "ErrorResponse":
        """The answer to a request that was refused."""
        return cls(code=refusal.code, message=refusal.message)


class CreateTaskRequest(Struct, frozen=True, kw_only=True):
    """POST /coordinator/task/create.

    Args:
        id: None when it is absent, which Kafka fails on (500); empty is refused (400).
        spec: None when it is absent, which Kafka fails on (500).
    """

    id: str | None = None
    spec: TaskSpec | None = None


class StopTaskRequest(Struct, frozen=True, kw_only=True):
    """PUT /coordinator/task/stop.

    Args:
        id: Empty when it is absent.
    """

    id: str = ""


class DestroyTaskRequest(Struct, frozen=True, kw_only=True):
    """DELETE /coordinator/tasks.

    Args:
        id: Empty when it is absent.
    """

    id: str = ""

    @classmethod
    def of_query(cls, query: Query) -> "DestroyTaskRequest":
        """The request that a query says: its first `taskId`."""
        return cls(id=_first(query, "taskId"))


class CoordinatorShutdownRequest(Struct, frozen=True, kw_only=True, rename="camel"):
    """PUT /coordinator/shutdown.

    Args:
        stop_agents: Whether the agents shall stop too.
    """

    stop_agents: bool = False


class TasksRequest(Struct, frozen=True, kw_only=True, rename="camel"):
    """GET /coordinator/tasks: which tasks to show.

    Args:
        task_ids: Empty for all.
        first_start_ms: Tasks that started then or later; 0 or less for all.
        last_start_ms: Tasks that started then or earlier; 0 or less for all.
        first_end_ms: Tasks that ended then or later; 0 or less for all.
        last_end_ms: Tasks that ended then or earlier; 0 or less for all.
        state: None for all.
    """

    task_ids: tuple[str, ...] = ()
    first_start_ms: int = 0
    last_start_ms: int = 0
    first_end_ms: int = 0
    last_end_ms: int = 0
    state: TaskPhase | None = None

    def __post_init__(self) -> None:
        for bound in ("first_start_ms", "last_start_ms", "first_end_ms", "last_end_ms"):
            force_setattr(self, bound, max(0, getattr(self, bound)))

    @classmethod
    def of_query(cls, query: Query) -> "TasksRequest":
        """The request that a query says; other parameters are passed over.

        Raises:
            PlainTextRefusal: 400, for an unknown state.
            TrogdorRefusal: 500, for what is no number.
        """
        state = _first(query, "state")
        known = TaskPhase.__members__
        if state and state not in known:
            names = ", ".join(known)
            raise PlainTextRefusal(400, f"State {state} is invalid. Must be one of [{names}]")
        return cls(
            task_ids=tuple(query.get("taskId", ())),
            first_start_ms=_long(query, "firstStartMs"),
            last_start_ms=_long(query, "lastStartMs"),
            first_end_ms=_long(query, "firstEndMs"),
            last_end_ms=_long(query, "lastEndMs"),
            state=known[state] if state else None,
        )

    def matches(self, task_id: str, *, started_ms: int, done_ms: int, state: TaskPhase) -> bool:
        """Whether a task is to be shown.

        Args:
            task_id: Its id.
            started_ms: When it really started; negative when it did not.
            done_ms: When it really ended; negative when it did not.
            state: Its state.
        """
        if self.task_ids and task_id not in self.task_ids:
            return False
        if not _is_within(started_ms, self.first_start_ms, self.last_start_ms):
            return False
        if not _is_within(done_ms, self.first_end_ms, self.last_end_ms):
            return False
        return self.state in (None, state)


def _is_within(at_ms: int, first_ms: int, last_ms: int) -> bool:
    if first_ms > 0 and at_ms < first_ms:
        return False
    return last_ms <= 0 or 0 <= at_ms <= last_ms


class TasksResponse(Struct, frozen=True, kw_only=True):
    """The answer to a TasksRequest.

    Args:
        tasks: Task id -> task. UNSPECIFIED: Java writes them in an order that each process draws
            (Map.copyOf); here the order of insertion stays.
    """

    tasks: Mapping[str, TaskState] = {}


class CoordinatorStatusResponse(Struct, frozen=True, kw_only=True, rename="camel"):
    """GET /coordinator/status.

    Args:
        server_start_ms: When the coordinator started, by its clock.
    """

    server_start_ms: int = 0


class UptimeResponse(Struct, frozen=True, kw_only=True, rename="camel"):
    """GET /coordinator/uptime and GET /agent/uptime.

    Args:
        server_start_ms: When the server started, by its clock.
        now_ms: Its clock.
    """

    server_start_ms: int = 0
    now_ms: int = 0


class CreateWorkerRequest(Struct, frozen=True, kw_only=True, rename="camel"):
    """POST /agent/worker/create.

    Args:
        worker_id: 0 when it is absent.
        task_id: None when it is absent, which Kafka accepts for a new worker.
        spec: None when it is absent, which Kafka fails on (500).
    """

    worker_id: int = 0
    task_id: str | None = None
    spec: TaskSpec | None = None


class StopWorkerRequest(Struct, frozen=True, kw_only=True, rename="camel"):
    """PUT /agent/worker/stop.

    Args:
        worker_id: 0 when it is absent.
    """

    worker_id: int = 0


class DestroyWorkerRequest(Struct, frozen=True, kw_only=True, rename="camel"):
    """DELETE /agent/worker.

    Args:
        worker_id: 0 when it is absent: a worker's id like others.
    """

    worker_id: int = 0

    @classmethod
    def of_query(cls, query: Query) -> "DestroyWorkerRequest":
        """The request that a query says: its first `workerId`.

        Raises:
            TrogdorRefusal: 500, for what is no number.
        """
        return cls(worker_id=_long(query, "workerId"))


class AgentStatusResponse(Struct, frozen=True, kw_only=True, rename="camel"):
    """GET /agent/status.

    Args:
        server_start_ms: When the agent started, by its clock.
        workers: Worker id -> worker, ascending by id.
    """

    server_start_ms: int = 0
    workers: Mapping[int, WorkerState] = {}

    def __post_init__(self) -> None:
        force_setattr(self, "workers", dict(sorted(self.workers.items())))


def _first(query: Query, name: str) -> str:
    values = query.get(name, ())
    return values[0] if values else ""


def _long(query: Query, name: str) -> int:
    """The first value of a parameter as a number; 0 when it is absent or blank.

    Raises:
        TrogdorRefusal: 500, in the words of the server that Trogdor runs on.
    """
    text = _first(query, name)
    if not text.strip():
        return 0
    value = whole_number(text) if _LONG.fullmatch(text) else None
    if value is None or not -(1 << (LONG_BITS - 1)) <= value < 1 << (LONG_BITS - 1):
        raise TrogdorRefusal(500, "HTTP 404 Not Found")
    return value
