"""A Trogdor coordinator on a clock; whoever owns it carries its calls to the agents.

The simulator gives it a virtual clock and agents beside it, a daemon a real one and HTTP.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from coordinator_sim.clock import Alarmed, Clock
from coordinator_sim.trogdor.contract import AgentCall, Answer, PutShutdown, Quirks
from coordinator_sim.trogdor.coordinator import Calls, Coordinator
from coordinator_sim.trogdor.specs import TaskSpec
from coordinator_sim.trogdor.topology import Topology

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

    __slots__ = ("_call_agent", "_calls", "_is_calling", "_is_shut_down", "machine")

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
