"""The coordinator's tasks: created, run at their time, stopped, forgotten.

Source: kafka trunk, trogdor/.../trogdor/coordinator/TaskManager.java.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

from msgspec.structs import replace

from coordinator_sim.trogdor import contract, jackson, states
from coordinator_sim.trogdor.deadlines import Deadlines
from coordinator_sim.trogdor.refusals import TrogdorRefusal
from coordinator_sim.trogdor.specs import TaskSpec
from coordinator_sim.trogdor.targets import InvalidSpec, check_spec, target_nodes
from coordinator_sim.trogdor.topology import Topology

_INVALID: Final = 400
_CONFLICT: Final = 409


class Matches(Protocol):
    """Whether a task is wanted; instants are NOT_YET where they have not come."""

    def __call__(
        self, task_id: str, *, started_ms: int, done_ms: int, state: states.TaskPhase
    ) -> bool:
        """Return whether it is."""
        ...


@dataclass(slots=True)
class _Task:
    task_id: str
    original: TaskSpec
    spec: TaskSpec
    state: states.TaskPhase
    started_ms: int = states.NOT_YET
    done_ms: int = states.NOT_YET
    error: str = ""
    cancelled: bool = False
    worker_ids: dict[str, int] = field(default_factory=dict)
    """By node, in the order of the nodes' names."""

    def fail(self, error: str) -> None:
        """Keep the first error."""
        if not self.error:
            self.error = error

    def end(self, now_ms: int) -> None:
        """Be over."""
        self.state = states.TaskPhase.DONE
        self.done_ms = now_ms


class TaskManager:
    """The tasks of one coordinator.

    Args:
        topology: The nodes.
        first_worker_id: Id of the first worker; a coordinator that was started anew takes another
            range than the one before it.
    """

    __slots__ = ("_managed", "_next_worker_id", "_starts", "_tasks", "_topology", "_workers")

    def __init__(self, topology: Topology, *, first_worker_id: int = 0) -> None:
        self._topology = topology
        self._managed = frozenset(node.name for node in topology.managed())
        self._next_worker_id = first_worker_id
        self._tasks: dict[str, _Task] = {}
        self._workers: dict[int, states.WorkerState] = {}
        self._starts = Deadlines[str]()

    # -- requests ------------------------------------------------------------------------------

    def create_task(self, task_id: str, spec: TaskSpec, now_ms: int) -> None:
        """Create a task; `expire` runs it when its start has come.

        The same request again changes nothing, also when the task is over. Compared is what was
        asked for, not the effective spec, whose start is not in the past.

        Raises:
            TrogdorRefusal: 400 without an id, 409 when the id has another spec.
        """
        if not task_id:
            raise TrogdorRefusal(_INVALID, "Invalid empty ID in createTask request.")
        known = self._tasks.get(task_id)
        if known is not None:
            if not jackson.is_same(known.original, spec):
                raise TrogdorRefusal(
                    _CONFLICT,
                    f"Task ID {task_id} already exists, and has a different spec "
                    f"{jackson.text(known.original)}",
                )
            return
        effective = replace(spec, start_ms=max(now_ms, spec.start_ms))
        task = self._tasks[task_id] = _Task(task_id, spec, effective, states.TaskPhase.PENDING)
        try:
            check_spec(effective)
        except InvalidSpec as error:
            task.fail(f"Failed to create TaskController: {error}")
            task.end(now_ms)
        else:
            self._starts.set(task_id, effective.start_ms)

    def stop_task(self, task_id: str, now_ms: int) -> list[contract.Order]:
        """Stop a task; nothing happens where there is none, or it is stopping, or over.

        Raises:
            TrogdorRefusal: 400 without an id.
        """
        if not task_id:
            raise TrogdorRefusal(_INVALID, "Invalid empty ID in stopTask request.")
        task = self._tasks.get(task_id)
        if task is None or task.state in {states.TaskPhase.STOPPING, states.TaskPhase.DONE}:
            return []
        task.cancelled = True
        active = self._active(task)
        if not active:
            self._starts.discard(task_id)
            task.end(now_ms)
            return []
        task.state = states.TaskPhase.STOPPING
        return _stops(active)

    def destroy_task(self, task_id: str) -> list[contract.Order]:
        """Forget a task and its workers; nothing happens where there is none.

        Raises:
            TrogdorRefusal: 400 without an id.
        """
        if not task_id:
            raise TrogdorRefusal(_INVALID, "Invalid empty ID in destroyTask request.")
        task = self._tasks.pop(task_id, None)
        if task is None:
            return []
        self._starts.discard(task_id)
        for worker_id in task.worker_ids.values():
            del self._workers[worker_id]
        return [
            contract.DestroyWorker(node, worker_id) for node, worker_id in task.worker_ids.items()
        ]

    def task(self, task_id: str) -> states.TaskState | None:
        """The state of a task; None without it."""
        task = self._tasks.get(task_id)
        return None if task is None else self._shown(task)

    def tasks(self, matches: Matches | None = None) -> dict[str, states.TaskState]:
        """The states of tasks, in the order of their ids.

        Args:
            matches: See `Matches`; None for all.
        """
        return {
            task_id: self._shown(task)
            for task_id, task in sorted(self._tasks.items())
            if matches is None
            or matches(task_id, started_ms=task.started_ms, done_ms=task.done_ms, state=task.state)
        }

    # -- time ----------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        """When the next task starts; None without one."""
        return self._starts.next_ms()

    def expire(self, now_ms: int) -> list[contract.Order]:
        """Run the tasks whose start has come."""
        orders: list[contract.Order] = []
        while (task_id := self._starts.pop_due(now_ms)) is not None:
            orders += self._run(self._tasks[task_id], now_ms)
        return orders

    def _run(self, task: _Task, now_ms: int) -> list[contract.Order]:
        if task.state is not states.TaskPhase.PENDING:
            return []
        try:
            nodes = self._nodes_of(task.spec)
        except InvalidSpec as error:
            task.fail(f"Unable to find nodes for task: {error}")
            task.end(now_ms)
            return []
        task.started_ms = now_ms
        task.state = states.TaskPhase.RUNNING
        orders: list[contract.Order] = []
        for node in nodes:
            worker_id = self._next_worker_id
            self._next_worker_id += 1
            task.worker_ids[node] = worker_id
            self._workers[worker_id] = states.WorkerState(
                state=states.WorkerPhase.RECEIVING,
                task_id=task.task_id,
                spec=task.spec,
                status="receiving",
            )
            orders.append(contract.CreateWorker(node, worker_id, task.task_id, task.spec))
        return orders

    def _nodes_of(self, spec: TaskSpec) -> list[str]:
        """The nodes of a task, all of them managed, in the order of their names.

        Raises:
            InvalidSpec: one of them is not, or there is none.
        """
        wanted = target_nodes(spec, self._topology)
        if unknown := sorted(wanted - self._managed):
            raise InvalidSpec(f"Unknown node names: {', '.join(unknown)}")
        if not wanted:
            raise InvalidSpec("No node names specified.")
        return sorted(wanted)

    # -- what node managers tell ---------------------------------------------------------------

    def worker_changed(
        self, node: str, worker_id: int, state: states.WorkerState, now_ms: int
    ) -> list[contract.Order]:
        """Take in the state of a worker; a worker of no task is stopped."""
        before = self._workers.get(worker_id)
        task = None if before is None else self._tasks.get(before.task_id)
        if before is None or task is None:
            return [contract.StopWorker(node, worker_id)]
        self._workers[worker_id] = state
        if before.is_done or not state.is_done:
            return []
        task.fail(state.error)
        active = self._active(task)
        if not active:
            task.end(now_ms)
        elif task.state is states.TaskPhase.RUNNING and task.error:
            task.state = states.TaskPhase.STOPPING
            return _stops(active)
        return []

    # -- inside --------------------------------------------------------------------------------

    def _active(self, task: _Task) -> list[tuple[str, int]]:
        """Node and id of the workers that are not over."""
        return [each for each in task.worker_ids.items() if not self._workers[each[1]].is_done]

    def _shown(self, task: _Task) -> states.TaskState:
        if task.state is states.TaskPhase.PENDING:
            return states.TaskState(state=task.state, spec=task.spec)
        return states.TaskState(
            state=task.state,
            spec=task.spec,
            started_ms=task.started_ms,
            done_ms=task.done_ms,
            error=task.error,
            cancelled=task.cancelled,
            status=self._status(task),
        )

    def _status(self, task: _Task) -> contract.Json:
        """The status of the only worker, or of each by its node."""
        found = {node: self._workers[each].status for node, each in task.worker_ids.items()}
        return next(iter(found.values())) if len(found) == 1 else found


def _stops(active: Iterable[tuple[str, int]]) -> list[contract.Order]:
    return [contract.StopWorker(node, worker_id) for node, worker_id in active]
