"""A Trogdor agent on a clock: its workers, and the work that they do.

The simulator gives it a virtual clock, a daemon a real one; how work is done is theirs too.

Source: kafka trunk, trogdor/.../trogdor/agent/Agent.java, WorkerManager.createWorker.
"""

from collections.abc import Callable, Iterable
from typing import Final, Protocol

from coordinator_sim.clock import Alarmed, Clock
from coordinator_sim.errors import CoordinatorSimError
from coordinator_sim.trogdor.contract import (
    Json,
    Quirks,
    StartWork,
    StopWork,
    WorkEffect,
    WorkerOver,
)
from coordinator_sim.trogdor.specs import TaskSpec
from coordinator_sim.trogdor.states import WorkerState
from coordinator_sim.trogdor.worker_manager import WorkerManager

_US_PER_MS: Final = 1_000


class WorkFailed(CoordinatorSimError):
    """Work that could not be started."""


class Work(Protocol):
    """The work of a worker; it reports to its `Progress` when it has started and ended."""

    def begin(self) -> None:
        """Start, and tell when that is over.

        Raises:
            WorkFailed: it cannot be started.
        """
        ...

    def end(self) -> None:
        """Stop, and tell when that is over."""
        ...


class Progress:
    """Takes what the work of one worker tells.

    Args:
        agent: The agent.
        worker_id: The worker.
    """

    __slots__ = ("_agent", "_has_halted", "worker_id")

    def __init__(self, agent: "Agent", worker_id: int) -> None:
        self._agent = agent
        self._has_halted = False
        self.worker_id = worker_id

    def status(self, value: Json) -> None:
        """The status is another."""
        self._agent.manager.status_changed(self.worker_id, value)

    def started(self, failure: str | None = None) -> None:
        """The start is over; a failure is the exception with its stack."""
        self._agent.started(self.worker_id, failure)

    def halt(self, error: str = "") -> None:
        """The work is over by itself; the error is empty for none. Only the first time counts."""
        if not self._has_halted:
            self._has_halted = True
            self._agent.halted(self.worker_id, error)

    def stopped(self, failure: str | None = "") -> None:
        """The stop is over; a failure is the exception's message, None for one without."""
        self._agent.stopped(self.worker_id, failure)


WorkOf = Callable[[StartWork, Progress], Work]
"""Makes the work of a worker."""
Answered = Callable[[], None]
"""Called when the answer to a request may be sent."""


class Agent(Alarmed):
    """An agent.

    Args:
        clock: The clock of its node.
        work_of: See `WorkOf`.
        quirks: See `Quirks`.

    Attributes:
        over: Called for each worker that is over.
        started_ms: When the agent began.
    """

    __slots__ = ("_answers", "_work_of", "_works", "manager", "over", "started_ms")

    def __init__(self, clock: Clock, work_of: WorkOf, quirks: Quirks = Quirks.KAFKA) -> None:
        super().__init__(clock)
        self.manager = WorkerManager(quirks)
        self.over: Callable[[WorkerOver], None] = lambda _over: None
        self._work_of = work_of
        self._works: dict[int, Work] = {}
        self._answers: dict[int, list[Answered]] = {}
        self.started_ms = self.now_ms

    @property
    def now_ms(self) -> int:
        """The present by the node's clock."""
        return self._clock.now_us // _US_PER_MS

    # -- requests ------------------------------------------------------------------------------

    def create_worker(
        self, worker_id: int, task_id: str, spec: TaskSpec | None, answered: Answered
    ) -> None:
        """Create a worker; the answer comes when its start is over.

        Raises:
            TrogdorRefusal: see `WorkerManager.create_worker`.
        """
        effects = self.manager.create_worker(worker_id, task_id, spec, self.now_ms)
        if any(isinstance(effect, StartWork) for effect in effects):
            self._answers.setdefault(worker_id, []).append(answered)
            self._carry_out(effects)
        else:
            self._carry_out(effects)
            answered()

    def stop_worker(self, worker_id: int, *, must_destroy: bool = False) -> None:
        """Stop a worker; see `WorkerManager.stop_worker`.

        Raises:
            TrogdorRefusal: the agent shuts down.
        """
        self._carry_out(self.manager.stop_worker(worker_id, must_destroy=must_destroy))

    def workers(self) -> dict[int, WorkerState]:
        """The states of all workers.

        Raises:
            TrogdorRefusal: the agent shuts down.
        """
        return self.manager.workers()

    def shut_down(self) -> None:
        """Refuse requests from now on, and stop all work."""
        self._carry_out(self.manager.shut_down())

    # -- work ----------------------------------------------------------------------------------

    def started(self, worker_id: int, failure: str | None) -> None:
        """The start of a worker's work is over."""
        self._carry_out(self.manager.started(worker_id, failure, self.now_ms))
        for answered in self._answers.pop(worker_id, ()):
            answered()

    def halted(self, worker_id: int, error: str) -> None:
        """A worker's work is over by itself."""
        self._carry_out(self.manager.halted(worker_id, error))

    def stopped(self, worker_id: int, failure: str | None) -> None:
        """The stop of a worker's work is over."""
        self._carry_out(self.manager.stopped(worker_id, failure, self.now_ms))

    def _carry_out(self, effects: Iterable[WorkEffect]) -> None:
        for effect in effects:
            match effect:
                case StartWork():
                    self._begin(effect)
                case StopWork(worker_id=worker_id):
                    self._works.pop(worker_id).end()
                case WorkerOver(worker_id=worker_id):
                    # Work whose start has failed is not stopped.
                    self._works.pop(worker_id, None)
                    self.over(effect)
        due_ms = self.manager.next_deadline_ms()
        if due_ms is None:
            self.switch_alarm_off()
        else:
            self.set_alarm(due_ms * _US_PER_MS)

    def _begin(self, start: StartWork) -> None:
        progress = Progress(self, start.worker_id)
        try:
            work = self._works[start.worker_id] = self._work_of(start, progress)
            work.begin()
        except WorkFailed as error:
            self._works.pop(start.worker_id, None)
            progress.started(str(error))

    def _on_alarm(self) -> None:
        self._carry_out(self.manager.expire(self.now_ms))


class NoWork:
    """Does nothing until it is stopped. Source: NoOpTaskWorker."""

    __slots__ = ("_progress",)

    def __init__(self, _start: StartWork, progress: Progress) -> None:
        self._progress = progress

    def begin(self) -> None:
        """Be active."""
        self._progress.status("active")
        self._progress.started()

    def end(self) -> None:
        """Be done."""
        self._progress.status("done")
        self._progress.stopped()
