"""What the three machines of Trogdor ask of their drivers, and what drivers answer.

A verb takes the present of its own node's clock and returns what is to be done, in order. No
machine reads a clock, sleeps, or speaks to a network.
"""

from enum import Enum, unique
from typing import Any

from msgspec import Struct

from coordinator_sim.trogdor.specs import TaskSpec
from coordinator_sim.trogdor.states import WorkerState


@unique
class Quirks(Enum):
    """Whether tasks may hang for ever where Kafka's do.

    KAFKA keeps the six liveness holes of Kafka's Trogdor; FIXED closes them. Each is marked QUIRK
    where it is.
    """

    KAFKA = "kafka"
    FIXED = "fixed"


# -- TaskManager: orders to the node managers ------------------------------------------------------


class CreateWorker(Struct, frozen=True, gc=False):
    """Have a worker run on a node."""

    node: str
    worker_id: int
    task_id: str
    spec: TaskSpec


class StopWorker(Struct, frozen=True, gc=False):
    """Stop a worker of a node."""

    node: str
    worker_id: int


class DestroyWorker(Struct, frozen=True, gc=False):
    """Forget a worker of a node."""

    node: str
    worker_id: int


Order = CreateWorker | StopWorker | DestroyWorker
"""What a task manager tells the manager of a node."""


# -- NodeManager: calls of the agent ---------------------------------------------------------------


class GetStatus(Struct, frozen=True, gc=False):
    """Ask the agent for its workers; the answer is an `AgentStatus`."""


class PostWorker(Struct, frozen=True, gc=False):
    """Ask the agent to create a worker."""

    worker_id: int
    task_id: str
    spec: TaskSpec


class PutStop(Struct, frozen=True, gc=False):
    """Ask the agent to stop a worker."""

    worker_id: int


class PutShutdown(Struct, frozen=True, gc=False):
    """Ask the agent to shut down; nobody waits for the answer."""


AgentCall = GetStatus | PostWorker | PutStop | PutShutdown
"""One HTTP call; a node manager has one open at a time, and does nothing else meanwhile."""


class AgentStatus(Struct, frozen=True):
    """The workers of an agent, by id."""

    workers: dict[int, WorkerState]


class Called(Struct, frozen=True, gc=False):
    """The agent has done what it was asked."""


class Failed(Struct, frozen=True, gc=False):
    """The call failed, in whatever way."""

    error: str


Answer = AgentStatus | Called | Failed


class WorkerChanged(Struct, frozen=True, gc=False):
    """Tell the task manager the state of a worker."""

    node: str
    worker_id: int
    state: WorkerState


NodeEffect = AgentCall | WorkerChanged


# -- WorkerManager: work on the agent --------------------------------------------------------------


class StartWork(Struct, frozen=True, gc=False):
    """Start the work of a worker, then tell how that ended; the request waits for it."""

    worker_id: int
    task_id: str
    spec: TaskSpec


class StopWork(Struct, frozen=True, gc=False):
    """Stop the work of a worker, however long that takes, then tell how that ended."""

    worker_id: int


class WorkerOver(Struct, frozen=True, gc=False):
    """A worker is DONE; the error is empty for none."""

    worker_id: int
    error: str


WorkEffect = StartWork | StopWork | WorkerOver

Json = Any
"""Any JSON value."""
