"""A Trogdor coordinator as one machine: its task manager, and a manager for each node.

Source: kafka trunk, trogdor/.../trogdor/coordinator/Coordinator.java.
"""

from collections.abc import Iterable
from functools import partial

from coordinator_sim.trogdor import contract
from coordinator_sim.trogdor.deadlines import Deadlines
from coordinator_sim.trogdor.node_manager import NodeManager
from coordinator_sim.trogdor.specs import TaskSpec
from coordinator_sim.trogdor.states import TaskState
from coordinator_sim.trogdor.task_manager import Matches, TaskManager
from coordinator_sim.trogdor.topology import Topology

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
