"""A Trogdor agent on a clock: its workers, and the work that they do.

The simulator gives it a virtual clock, a daemon a real one; how work is done is theirs too.

The agent's workers: created, run until their end, stopped, forgotten.

Source: kafka trunk, trogdor/.../trogdor/agent/Agent.java, WorkerManager.createWorker;
trogdor/.../trogdor/agent/WorkerManager.java.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto, unique
from typing import Final, Protocol

from coordinator_sim.clock import Alarmed, Clock
from coordinator_sim.errors import CoordinatorSimError
from coordinator_sim.trogdor import jackson
from coordinator_sim.trogdor.contract import (
    Json,
    Quirks,
    StartWork,
    StopWork,
    WorkEffect,
    WorkerOver,
)
from coordinator_sim.trogdor.deadlines import Deadlines
from coordinator_sim.trogdor.refusals import TrogdorRefusal
from coordinator_sim.trogdor.specs import TaskSpec
from coordinator_sim.trogdor.states import NOT_YET, WorkerPhase, WorkerState
from coordinator_sim.trogdor.targets import InvalidSpec, check_spec

_CONFLICT: Final = 409
_FAILED: Final = 500


@unique
class _Phase(Enum):
    STARTING = auto()
    CANCELLING = auto()
    """Stopped, or halted by its work, while it starts."""
    RUNNING = auto()
    STOPPING = auto()
    DONE = auto()

    # Python's Enum hashes the name; no order depends on the hash of a phase.
    __hash__ = object.__hash__


_SHOWN: Final = {
    _Phase.STARTING: WorkerPhase.STARTING,
    _Phase.CANCELLING: WorkerPhase.STOPPING,
    _Phase.RUNNING: WorkerPhase.RUNNING,
    _Phase.STOPPING: WorkerPhase.STOPPING,
    _Phase.DONE: WorkerPhase.DONE,
}


@dataclass(slots=True)
class _Worker:
    worker_id: int
    task_id: str
    spec: TaskSpec
    started_ms: int
    phase: _Phase = _Phase.STARTING
    done_ms: int = NOT_YET
    status: Json = None
    error: str = ""
    must_destroy: bool = False
    last_shown: tuple[_Phase, Json, str, WorkerState] | None = None
    """What `shown` gave last, and for which phase, status and error."""

    def fail(self, error: str) -> None:
        """Keep the first error."""
        if not self.error:
            self.error = error

    def shown(self) -> WorkerState:
        """The state that the agent reports."""
        last = self.last_shown
        # Told at each heartbeat until the agent ends; whoever changes a status gives another value.
        if last is not None and (
            last[0] is self.phase and last[1] is self.status and last[2] is self.error
        ):
            return last[3]
        is_starting = self.phase is _Phase.STARTING
        state = WorkerState(
            state=_SHOWN[self.phase],
            task_id=self.task_id,
            spec=self.spec,
            started_ms=NOT_YET if is_starting else self.started_ms,
            done_ms=self.done_ms,
            status="starting" if is_starting else self.status,
            error=self.error if self.phase is _Phase.DONE else "",
        )
        self.last_shown = (self.phase, self.status, self.error, state)
        return state


class WorkerManager:
    """The workers of one agent.

    Args:
        quirks: Whether a worker whose stop fails without a message is stopping for ever.

    Attributes:
        is_shut_down: Whether it refuses every request.
    """

    def __init__(self, quirks: Quirks = Quirks.KAFKA) -> None:
        self._quirks = quirks
        self._workers: dict[int, _Worker] = {}
        self._ends = Deadlines[int]()
        self.is_shut_down = False

    # -- requests ------------------------------------------------------------------------------

    def create_worker(
        self, worker_id: int, task_id: str, spec: TaskSpec | None, now_ms: int
    ) -> list[WorkEffect]:
        """Create and start a worker; repeating the same request changes nothing.

        The end of a task is an instant of the coordinator's clock: an agent whose clock is ahead
        finds it over.

        Raises:
            TrogdorRefusal: 409 when the id has another task or spec, 500 when the agent shuts down,
                or a new worker has no spec or one that makes no work.
        """
        self._require_open()
        known = self._workers.get(worker_id)
        if known is not None:
            for differs, what in (
                (known.task_id != task_id, "ID"),
                (spec is None or not jackson.is_same(known.spec, spec), "spec"),
            ):
                if differs:
                    message = f"There is already a worker ID {worker_id} with a different task "
                    raise TrogdorRefusal(_CONFLICT, f"{message}{what}.")
            return []
        if spec is None:
            raise TrogdorRefusal(_FAILED, "the request has no spec")
        try:
            check_spec(spec)
        except InvalidSpec as error:
            raise TrogdorRefusal(_FAILED, str(error)) from error
        worker = self._workers[worker_id] = _Worker(worker_id, task_id, spec, now_ms)
        if spec.end_ms <= now_ms:
            worker.fail("worker expired")
            return [self._done(worker, now_ms)]
        return [StartWork(worker_id, task_id, spec)]

    def stop_worker(self, worker_id: int, *, must_destroy: bool = False) -> list[WorkEffect]:
        """Stop a worker, and forget it when it is over if wanted.

        Raises:
            TrogdorRefusal: 500 when the agent shuts down.
        """
        self._require_open()
        return self._stop(worker_id, must_destroy=must_destroy)

    def workers(self) -> dict[int, WorkerState]:
        """The states of all workers, in the order of their ids.

        Raises:
            TrogdorRefusal: 500 when the agent shuts down.
        """
        self._require_open()
        return {each: self._workers[each].shown() for each in sorted(self._workers)}

    def shut_down(self) -> list[WorkEffect]:
        """Refuse every request from now on, and destroy all workers, which undoes faults."""
        self.is_shut_down = True
        effects: list[WorkEffect] = []
        for worker_id in list(self._workers):
            effects += self._stop(worker_id, must_destroy=True)
        return effects

    @property
    def is_quiet(self) -> bool:
        """Whether every worker is over."""
        return all(worker.phase is _Phase.DONE for worker in self._workers.values())

    # -- what the work tells -------------------------------------------------------------------

    def status_changed(self, worker_id: int, status: Json) -> None:
        """Keep the status of a worker."""
        worker = self._workers.get(worker_id)
        if worker is not None:
            worker.status = status

    def halted(self, worker_id: int, error: str) -> list[WorkEffect]:
        """The work is over, by itself.

        Args:
            worker_id: Whose.
            error: Empty for none; kept also by a worker that is over already.
        """
        worker = self._workers.get(worker_id)
        if worker is None:
            return []
        worker.fail(error)
        if worker.phase is _Phase.STARTING:
            worker.phase = _Phase.CANCELLING
        elif worker.phase is _Phase.RUNNING:
            return [self._stopping(worker)]
        return []

    def started(self, worker_id: int, failure: str | None, now_ms: int) -> list[WorkEffect]:
        """The start of the work is over.

        Args:
            worker_id: Whose.
            failure: None if it succeeded; otherwise the exception with its stack.
            now_ms: The present.
        """
        worker = self._workers[worker_id]
        if failure is not None:
            worker.fail(f"worker.start() exception: {failure}")
            if worker.phase is _Phase.STARTING:
                # The work is not stopped: it has not begun.
                return [self._done(worker, now_ms)]
        if worker.phase is _Phase.CANCELLING:
            return [self._stopping(worker)]
        if worker.phase is _Phase.STARTING:
            worker.phase = _Phase.RUNNING
            self._ends.set(worker_id, worker.spec.end_ms)
        return []

    def stopped(
        self, worker_id: int, failure: str | None, now_ms: int, *, kind: str = "Exception"
    ) -> list[WorkEffect]:
        """The stop of the work is over.

        Args:
            worker_id: Whose.
            failure: Empty if it succeeded; the exception's message; None for one without.
            now_ms: The present.
            kind: The exception's name, for a failure without a message.
        """
        worker = self._workers[worker_id]
        if failure is None and not worker.error:
            # QUIRK: the failure has no message to look at, so that the worker stays as it is.
            if self._quirks is Quirks.KAFKA:
                return []
            failure = f"{kind} without a message in stop()"
        worker.fail(failure or "")
        over = self._done(worker, now_ms)
        if worker.must_destroy:
            del self._workers[worker_id]
        return [over]

    # -- time ----------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        """When the next worker ends; None without one."""
        return self._ends.next_ms()

    def expire(self, now_ms: int) -> list[WorkEffect]:
        """Stop the workers whose end has come; that is a success."""
        effects: list[WorkEffect] = []
        while (worker_id := self._ends.pop_due(now_ms)) is not None:
            effects.append(self._stopping(self._workers[worker_id]))
        return effects

    # -- inside --------------------------------------------------------------------------------

    def _require_open(self) -> None:
        if self.is_shut_down:
            raise TrogdorRefusal(_FAILED, "WorkerManager is shut down.")

    def _stop(self, worker_id: int, *, must_destroy: bool) -> list[WorkEffect]:
        worker = self._workers.get(worker_id)
        if worker is None:
            return []
        worker.must_destroy = worker.must_destroy or must_destroy
        if worker.phase is _Phase.STARTING:
            worker.phase = _Phase.CANCELLING
        elif worker.phase is _Phase.RUNNING:
            return [self._stopping(worker)]
        elif worker.phase is _Phase.DONE and worker.must_destroy:
            del self._workers[worker_id]
        return []

    def _stopping(self, worker: _Worker) -> StopWork:
        worker.phase = _Phase.STOPPING
        self._ends.discard(worker.worker_id)
        return StopWork(worker.worker_id)

    def _done(self, worker: _Worker, now_ms: int) -> WorkerOver:
        worker.phase = _Phase.DONE
        worker.done_ms = now_ms
        return WorkerOver(worker.worker_id, worker.error)


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
