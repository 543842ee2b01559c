"""What is known of a task and of a worker: one value each, as REST shows it.

Source: kafka trunk, trogdor/.../trogdor/rest: TaskState, WorkerState and their subclasses.
"""

from enum import Enum, unique
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.trogdor.specs import TaskSpec

NOT_YET: Final = -1
"""Instant of what has not happened."""


@unique
class TaskPhase(Enum):
    """The states of a task, by Kafka's names. DONE is final."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    DONE = "DONE"


@unique
class WorkerPhase(Enum):
    """The states of a worker, by Kafka's names; an agent never reports RECEIVING."""

    RECEIVING = "RECEIVING"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    DONE = "DONE"

    # Python's Enum hashes the name; no order depends on the hash of a phase.
    __hash__ = object.__hash__


class TaskState(Struct, frozen=True, kw_only=True):
    """A task.

    Args:
        spec: Effective spec: its start is not before the task's creation.
        started_ms: When its workers were created, by the coordinator's clock; NOT_YET before.
        done_ms: When it was over; NOT_YET before.
        error: Of a task that is over; empty for none.
        cancelled: Whether a request stopped it.
        status: A worker's status; of several workers an object of node names; any JSON value.
    """

    state: TaskPhase
    spec: TaskSpec
    started_ms: int = NOT_YET
    done_ms: int = NOT_YET
    error: str = ""
    cancelled: bool = False
    status: Any = None


class WorkerState(Struct, frozen=True, kw_only=True):
    """A worker.

    Args:
        started_ms: When the agent was asked to create it, by the agent's clock; NOT_YET before.
        done_ms: When it was over, by the agent's clock; NOT_YET before.
        status: Any JSON value.
        error: Empty for none.
    """

    state: WorkerPhase
    task_id: str
    spec: TaskSpec
    started_ms: int = NOT_YET
    done_ms: int = NOT_YET
    status: Any = None
    error: str = ""

    @property
    def is_done(self) -> bool:
        """Whether the worker is over."""
        return self.state is WorkerPhase.DONE
