"""The coordinator's view of one node: what its agent should run, compared at each heartbeat.

Nothing is ever sent because it was ordered: an order changes what should run, and the next
heartbeat creates what is missing and stops what is too much.

Source: kafka trunk, trogdor/.../trogdor/coordinator/NodeManager.java.
"""

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Final

from msgspec.structs import replace

from coordinator_sim.trogdor import contract, jackson
from coordinator_sim.trogdor.specs import TaskSpec
from coordinator_sim.trogdor.states import WorkerPhase, WorkerState

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

    __slots__ = (
        "_beat",
        "_due_ms",
        "_is_shut_down",
        "_mailbox",
        "_now_ms",
        "_out",
        "_quirks",
        "_workers",
        "node",
    )

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
