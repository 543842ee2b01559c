"""A Trogdor coordinator on a clock; whoever owns it carries its calls to the agents.

The simulator gives it a virtual clock and agents beside it, a daemon a real one and HTTP.

It is a task manager, and a node manager for each node. Tasks are created, run at their time,
stopped and forgotten. Nothing is sent because it was ordered: an order changes what a node should
run, and its next heartbeat creates what is missing and stops what is too much.

Source: kafka trunk, trogdor/.../trogdor/coordinator/Coordinator.java;
trogdor/.../trogdor/coordinator/NodeManager.java; trogdor/.../trogdor/coordinator/TaskManager.java.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from msgspec.structs import replace

from coordinator_sim.clock import Alarmed, Clock
from coordinator_sim.trogdor import contract, jackson, states
from coordinator_sim.trogdor.contract import AgentCall, Answer, PutShutdown, Quirks
from coordinator_sim.trogdor.deadlines import Deadlines
from coordinator_sim.trogdor.refusals import TrogdorRefusal
from coordinator_sim.trogdor.specs import TaskSpec
from coordinator_sim.trogdor.states import TaskState, WorkerPhase, WorkerState
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


HEARTBEAT_MS: Final = 1_000
"""Time between two heartbeats; no setting changes it. Source: HEARTBEAT_DELAY_MS."""
GIVE_UP_MS: Final = 10_000
"""With quirks FIXED: how long after a task's end an agent that is not reached is waited for."""

Beat = Generator[contract.AgentCall, contract.Answer, None]
_BUSY: Final = frozenset({WorkerPhase.STARTING, WorkerPhase.RUNNING})
_ENDING: Final = frozenset({WorkerPhase.STOPPING, WorkerPhase.DONE})


@dataclass(slots=True)
class _Worker:
    worker_id: int
    task_id: str
    spec: TaskSpec
    should_run: bool
    state: WorkerState


class NodeManager:
    """The manager of one node: a thread with a mailbox, which waits for each answer of the agent.

    Args:
        node: Name of the node.
        now_ms: When it begins; its first heartbeat is HEARTBEAT_MS later.
        quirks: Whether workers that an agent lost are waited for, for ever.
    """

    def __init__(
        self, node: str, now_ms: int, quirks: contract.Quirks = contract.Quirks.KAFKA
    ) -> None:
        self.node = node
        self._quirks = quirks
        self._workers: dict[int, _Worker] = {}
        self._mailbox: deque[tuple[int, Callable[[], None]]] = deque()
        self._beat: Beat | None = None
        self._due_ms = now_ms + HEARTBEAT_MS
        self._now_ms = now_ms
        self._out: list[contract.NodeEffect] = []
        self._is_shut_down = False

    # -- verbs ---------------------------------------------------------------------------------

    def ordered(self, order: contract.Order, now_ms: int) -> list[contract.NodeEffect]:
        """Take an order of the task manager, after the heartbeat that is under way."""
        match order:
            case contract.CreateWorker():
                action = partial(self._create, order)
            case contract.DestroyWorker():
                action = partial(self._destroy, order.worker_id)
            case _:
                action = partial(self._stop, order.worker_id)
        self._mailbox.append((now_ms, action))
        return self._go_on(now_ms)

    def answered(self, answer: contract.Answer, now_ms: int) -> list[contract.NodeEffect]:
        """Take the answer to the open call."""
        self._now_ms = now_ms
        self._step(answer)
        return self._go_on(now_ms)

    def expire(self, now_ms: int) -> list[contract.NodeEffect]:
        """Begin the heartbeat if it is due."""
        return self._go_on(now_ms)

    def next_deadline_ms(self) -> int | None:
        """When the next heartbeat is due; None while one is under way, or after the shutdown."""
        return None if self._beat is not None or self._is_shut_down else self._due_ms

    def shut_down(self, *, stop_agent: bool) -> list[contract.AgentCall]:
        """Cancel the calls to the agent; with `stop_agent`, return the call that shuts it down."""
        self._is_shut_down = True
        self._mailbox.clear()
        self._beat = None
        return [contract.PutShutdown()] if stop_agent else []

    # -- the thread ----------------------------------------------------------------------------

    def _go_on(self, now_ms: int) -> list[contract.NodeEffect]:
        """Do what is due, in the order of its time, until an answer is waited for."""
        self._now_ms = now_ms
        while self._beat is None and not self._is_shut_down:
            if self._mailbox and self._mailbox[0][0] <= self._due_ms:
                self._mailbox.popleft()[1]()
            elif self._due_ms <= now_ms:
                # The period counts from the beginning of a heartbeat.
                self._due_ms = now_ms + HEARTBEAT_MS
                self._beat = self._heartbeat()
                self._step(None)
            else:
                break
        out, self._out = self._out, []
        return out

    def _step(self, answer: contract.Answer | None) -> None:
        """Let the heartbeat go on to its next call."""
        beat = self._beat
        if beat is None:
            return
        try:
            call = next(beat) if answer is None else beat.send(answer)
        except StopIteration:
            self._beat = None
        else:
            self._out.append(call)

    def _heartbeat(self) -> Beat:
        answer = yield contract.GetStatus()
        if not isinstance(answer, contract.AgentStatus):
            self._missed()
            return
        for worker in list(self._workers.values()):
            if worker.worker_id not in answer.workers:
                yield from self._missing(worker)
        for worker_id, state in answer.workers.items():
            known = self._workers.get(worker_id)
            if known is None:
                # A worker of nobody is stopped when it is seen for the second time.
                self._workers[worker_id] = _Worker(
                    worker_id, state.task_id, state.spec, should_run=False, state=state
                )
            # Most workers are over, and as they were at the last heartbeat.
            elif not (known.state is state and state.is_done):
                yield from self._present(known, state)

    def _missing(self, worker: _Worker) -> Beat:
        """Create what should run and does not."""
        if worker.should_run:
            answer = yield contract.PostWorker(worker.worker_id, worker.task_id, worker.spec)
            if isinstance(answer, contract.Failed):
                self._refused(worker, answer.error)
        # QUIRK: a worker that should not run, and that the agent does not have, is never over:
        # it was stopped before the agent heard of it, or the agent was started anew since. It is
        # never forgotten either, not even one that nobody asked for.
        elif self._quirks is contract.Quirks.FIXED and worker.state.is_done:
            del self._workers[worker.worker_id]
        elif self._quirks is contract.Quirks.FIXED:
            was_begun = worker.state.state is not WorkerPhase.RECEIVING
            self._over(worker, f"the agent of {self.node} lost the worker" if was_begun else "")

    def _present(self, worker: _Worker, state: WorkerState) -> Beat:
        """Stop what runs and should not; tell what has changed."""
        if not worker.should_run and state.state in _BUSY:
            yield contract.PutStop(worker.worker_id)
        if _is_same(worker.state, state):
            return
        if self._quirks is contract.Quirks.FIXED and worker.state.is_done:
            return
        if state.state in _ENDING:
            worker.should_run = False
        self._tell(worker, state)

    def _refused(self, worker: _Worker, error: str) -> None:
        """Make nothing of an agent that does not create a worker: it is asked again."""
        # QUIRK: an agent that refuses a worker is asked again for ever, also past the task's end.
        if self._is_given_up(worker):
            self._over(worker, f"the agent of {self.node} did not create the worker: {error}")

    def _missed(self) -> None:
        """Make nothing of an agent that was not reached: tasks wait for it."""
        # QUIRK: for ever, also past their end.
        if self._quirks is contract.Quirks.KAFKA:
            return
        for worker in self._workers.values():
            if not worker.state.is_done and self._is_given_up(worker):
                self._over(worker, f"the agent of {self.node} was not reached")

    def _is_given_up(self, worker: _Worker) -> bool:
        """Whether a worker's agent is not waited for any more."""
        is_late = self._now_ms >= worker.spec.end_ms + GIVE_UP_MS
        return is_late and self._quirks is contract.Quirks.FIXED

    def _over(self, worker: _Worker, error: str) -> None:
        """Take a worker as over that its agent will not report."""
        worker.should_run = False
        done = replace(worker.state, state=WorkerPhase.DONE, done_ms=self._now_ms, error=error)
        self._tell(worker, done)

    def _tell(self, worker: _Worker, state: WorkerState) -> None:
        worker.state = state
        self._out.append(contract.WorkerChanged(self.node, worker.worker_id, state))

    # -- orders --------------------------------------------------------------------------------

    def _create(self, order: contract.CreateWorker) -> None:
        if order.worker_id in self._workers:
            return
        state = WorkerState(
            state=WorkerPhase.RECEIVING, task_id=order.task_id, spec=order.spec, status="receiving"
        )
        self._workers[order.worker_id] = _Worker(
            order.worker_id, order.task_id, order.spec, should_run=True, state=state
        )
        self._due_ms = self._now_ms

    def _stop(self, worker_id: int) -> None:
        worker = self._workers.get(worker_id)
        if worker is not None and worker.should_run:
            worker.should_run = False
            self._due_ms = self._now_ms

    def _destroy(self, worker_id: int) -> None:
        # QUIRK: the agent is not told; it hears of it as for a worker of nobody, a beat later.
        if self._workers.pop(worker_id, None) is not None:
            self._due_ms = self._now_ms


def _is_same(first: WorkerState, second: WorkerState) -> bool:
    """Whether Java takes two states for equal: their JSON is. Python thinks the same of 1 and true.

    Source: kafka trunk, trogdor/.../trogdor/rest/Message.java.
    """
    if first is second:
        return True
    return first == second and jackson.text(first) == jackson.text(second)


Calls = list[tuple[str, contract.AgentCall]]
"""Calls to make now, each of the agent of a node; `answered` takes each answer."""


class Coordinator:
    """A coordinator.

    Args:
        topology: The nodes.
        now_ms: When it begins.
        first_worker_id: See `TaskManager`.
        quirks: See `Quirks`.

    Attributes:
        started_ms: When it began.
    """

    def __init__(
        self,
        topology: Topology,
        now_ms: int,
        *,
        first_worker_id: int = 0,
        quirks: contract.Quirks = contract.Quirks.KAFKA,
    ) -> None:
        self.started_ms = now_ms
        self._tasks = TaskManager(topology, first_worker_id=first_worker_id)
        self._nodes = {
            node.name: NodeManager(node.name, now_ms, quirks) for node in topology.managed()
        }
        self._beats = Deadlines[str]()
        for name in self._nodes:
            self._await_beat(name)

    # -- requests ------------------------------------------------------------------------------

    def create_task(self, task_id: str, spec: TaskSpec, now_ms: int) -> Calls:
        """Create a task; see `TaskManager.create_task`. One whose start has come runs at once."""
        self._tasks.create_task(task_id, spec, now_ms)
        return self._carry_out(self._tasks.expire(now_ms), now_ms)

    def stop_task(self, task_id: str, now_ms: int) -> Calls:
        """Stop a task; see `TaskManager.stop_task`."""
        return self._carry_out(self._tasks.stop_task(task_id, now_ms), now_ms)

    def destroy_task(self, task_id: str, now_ms: int) -> Calls:
        """Forget a task; see `TaskManager.destroy_task`."""
        return self._carry_out(self._tasks.destroy_task(task_id), now_ms)

    def task(self, task_id: str) -> TaskState | None:
        """The state of a task; None without it."""
        return self._tasks.task(task_id)

    def tasks(self, matches: Matches | None = None) -> dict[str, TaskState]:
        """The states of tasks; see `TaskManager.tasks`."""
        return self._tasks.tasks(matches)

    def shut_down(self, *, stop_agents: bool) -> Calls:
        """Stop coordinating; agents keep running their workers unless they are shut down, too."""
        calls: Calls = []
        for name, node in self._nodes.items():
            calls += [(name, call) for call in node.shut_down(stop_agent=stop_agents)]
            self._await_beat(name)
        return calls

    # -- agents and time -----------------------------------------------------------------------

    def answered(self, node: str, answer: contract.Answer, now_ms: int) -> Calls:
        """Take the answer of a node's agent to the open call."""
        return self._of_node(node, self._nodes[node].answered(answer, now_ms), now_ms)

    def next_deadline_ms(self) -> int | None:
        """When `expire` has something to do; None for never."""
        found = (self._tasks.next_deadline_ms(), self._beats.next_ms())
        return min((each for each in found if each is not None), default=None)

    def expire(self, now_ms: int) -> Calls:
        """Run the tasks and begin the heartbeats that are due."""
        calls = self._carry_out(self._tasks.expire(now_ms), now_ms)
        due = iter(partial(self._beats.pop_due, now_ms), None)
        for name in sorted(due):
            calls += self._of_node(name, self._nodes[name].expire(now_ms), now_ms)
        return calls

    # -- inside --------------------------------------------------------------------------------

    def _await_beat(self, node: str) -> None:
        """Look when a node's next heartbeat is due, which each of its verbs may change."""
        due_ms = self._nodes[node].next_deadline_ms()
        if due_ms is None:
            self._beats.discard(node)
        else:
            self._beats.set(node, due_ms)

    def _of_node(self, node: str, effects: Iterable[contract.NodeEffect], now_ms: int) -> Calls:
        """Pass on what a node's manager wants: calls to the driver, states to the task manager."""
        self._await_beat(node)
        calls: Calls = []
        for effect in effects:
            if isinstance(effect, contract.WorkerChanged):
                told = self._tasks.worker_changed(node, effect.worker_id, effect.state, now_ms)
                calls += self._carry_out(told, now_ms)
            else:
                calls.append((node, effect))
        return calls

    def _carry_out(self, orders: Iterable[contract.Order], now_ms: int) -> Calls:
        """Pass on the orders of the task manager to the managers of nodes."""
        calls: Calls = []
        for order in orders:
            node = self._nodes[order.node]
            calls += self._of_node(order.node, node.ordered(order, now_ms), now_ms)
        return calls


_US_PER_MS: Final = 1_000

Respond = Callable[[Answer], None]
"""Takes the answer to a call, once."""
CallAgent = Callable[[str, AgentCall, Respond], None]
"""Makes a call of the agent of a node."""


class CoordinatorDriver(Alarmed):
    """A coordinator.

    Args:
        clock: The clock of its node.
        topology: The nodes.
        call_agent: See `CallAgent`.
        first_worker_id: See `TaskManager`.
        quirks: See `Quirks`.

    Attributes:
        machine: The coordinator itself, for questions.
    """

    def __init__(
        self,
        clock: Clock,
        topology: Topology,
        call_agent: CallAgent,
        *,
        first_worker_id: int = 0,
        quirks: Quirks = Quirks.KAFKA,
    ) -> None:
        super().__init__(clock)
        self._call_agent = call_agent
        self._calls = deque[tuple[str, AgentCall]]()
        self._is_calling = False
        self._is_shut_down = False
        self.machine = Coordinator(
            topology, self.now_ms, first_worker_id=first_worker_id, quirks=quirks
        )
        self._carry_out([])

    @property
    def now_ms(self) -> int:
        """The present by the node's clock."""
        return self._clock.now_us // _US_PER_MS

    def create_task(self, task_id: str, spec: TaskSpec) -> None:
        """Create a task; see `TaskManager.create_task`."""
        self._carry_out(self.machine.create_task(task_id, spec, self.now_ms))

    def stop_task(self, task_id: str) -> None:
        """Stop a task; see `TaskManager.stop_task`."""
        self._carry_out(self.machine.stop_task(task_id, self.now_ms))

    def destroy_task(self, task_id: str) -> None:
        """Forget a task; see `TaskManager.destroy_task`."""
        self._carry_out(self.machine.destroy_task(task_id, self.now_ms))

    def shut_down(self, *, stop_agents: bool) -> None:
        """Do nothing any more; see `Coordinator.shut_down`."""
        self._is_shut_down = True
        self._carry_out(self.machine.shut_down(stop_agents=stop_agents))

    def _carry_out(self, calls: Calls) -> None:
        """Make calls, and look when the next deadline is."""
        self._calls += calls
        # An agent may answer before its call returns. What follows then waits in the queue: a
        # heartbeat that has to create many workers would exhaust the stack.
        if self._is_calling:
            return
        self._is_calling = True
        try:
            while self._calls:
                self._call(*self._calls.popleft())
        finally:
            self._is_calling = False
        due_ms = None if self._is_shut_down else self.machine.next_deadline_ms()
        if due_ms is None:
            self.switch_alarm_off()
        else:
            self.set_alarm(due_ms * _US_PER_MS)

    def _call(self, node: str, call: AgentCall) -> None:
        respond = _ignored if isinstance(call, PutShutdown) else partial(self._answered, node)
        self._call_agent(node, call, respond)

    def _answered(self, node: str, answer: Answer) -> None:
        if not self._is_shut_down:
            self._carry_out(self.machine.answered(node, answer, self.now_ms))

    def _on_alarm(self) -> None:
        self._carry_out(self.machine.expire(self.now_ms))


def _ignored(_answer: Answer) -> None:
    """Ignore the answer: nobody waits for it."""
