"""One task that runs on a worker: what its own thread does, besides the work itself.

The work is the driver's: it is told to start and to stop it, and says when it fails. Where Java's
thread would sit in the work or wait for the resumption, no thread is needed here.

Source: kafka trunk, connect/runtime/.../runtime/WorkerTask.java; ExactlyOnceWorkerSourceTask.java,
prepareToInitializeTask.
"""

from collections.abc import Callable
from enum import Enum, unique
from functools import partial
from typing import Protocol

from msgspec import Struct

from coordinator_sim.connect.effects import (
    CancelTask,
    InitTransactions,
    StartTask,
    StopTask,
    TargetState,
)
from coordinator_sim.connect.exceptions import JavaException, thrown
from coordinator_sim.connect.thread import Blocking, Outbox, Pending, Threads, Wait
from coordinator_sim.protocol.resources import ConnectorTaskId


class TaskStatusListener(Protocol):
    """Who hears what becomes of a task."""

    def on_task_startup(self, task: ConnectorTaskId) -> None:
        """It runs."""
        ...

    def on_task_pause(self, task: ConnectorTaskId) -> None:
        """It is paused."""
        ...

    def on_task_resume(self, task: ConnectorTaskId) -> None:
        """It runs again."""
        ...

    def on_task_failure(self, task: ConnectorTaskId, trace: str) -> None:
        """It has failed, and will not run until it is restarted."""
        ...

    def on_task_shutdown(self, task: ConnectorTaskId) -> None:
        """It has ended."""
        ...


class ProducerChecks(Struct, frozen=True):
    """What an exactly-once source task does around the start of its producer.

    Args:
        before: Fences the producers of older generations.
        transactional_id: Of the task's producer.
        after: Makes sure that the task is still to run here.
    """

    before: Callable[[], Blocking[None]]
    transactional_id: str
    after: Callable[[], Blocking[None]]


class TaskSpec(Struct, frozen=True, kw_only=True):
    """A task that is to be run.

    Args:
        generation: Of the group when the task was given.
        checks: None unless it is a source task with exactly-once support.
    """

    task: ConnectorTaskId
    config: dict[str, str]
    connector_config: dict[str, str]
    generation: int
    checks: ProducerChecks | None = None


@unique
class _Phase(Enum):
    STARTING = "STARTING"
    AWAITING_UNPAUSE = "AWAITING_UNPAUSE"
    RUNNING = "RUNNING"
    ENDED = "ENDED"


class WorkerTask:
    """The port of WorkerTask.

    Args:
        spec: The task.
        target_state: Of its connector.
        outbox: Of the worker.
        threads: Of the worker.
        listener: Of statuses.

    Attributes:
        spec: The task.
        stopping: Whether it is to end.
        cancelled: Done when nobody waits for the task's end any more.
        stopped: Done when the task's thread is over (shutdownLatch).
    """

    __slots__ = (
        "_listener",
        "_outbox",
        "_phase",
        "_target_state",
        "_threads",
        "cancelled",
        "spec",
        "stopped",
        "stopping",
    )

    def __init__(
        self,
        spec: TaskSpec,
        target_state: TargetState,
        *,
        outbox: Outbox,
        threads: Threads,
        listener: TaskStatusListener,
    ) -> None:
        self.spec = spec
        self._target_state = target_state
        self._outbox = outbox
        self._threads = threads
        self._listener = listener
        self._phase = _Phase.STARTING
        self.stopping = False
        self.cancelled: Pending[object] = Pending()
        """Done when nobody waits for the task's end any more."""
        self.stopped: Pending[object] = Pending()
        """Done when the task's thread is over (shutdownLatch)."""

    @property
    def is_running(self) -> bool:
        """Whether the work itself has started and not ended, paused or not."""
        return self._phase is _Phase.RUNNING

    def start(self) -> None:
        """Begin the task's thread."""
        self._threads.start(self._run())

    # What the worker calls.

    def stop(self) -> None:
        """Ask the task to end; `stopped` says when it has."""
        if self.stopping:
            return
        self.stopping = True
        match self._phase:
            case _Phase.AWAITING_UNPAUSE:
                self._end()
            case _Phase.RUNNING:
                self._threads.start(self._close())
            case _Phase.STARTING | _Phase.ENDED:
                pass  # its thread looks at `stopping` itself, or is over

    def cancel(self) -> None:
        """Give up waiting; whatever becomes of the task, no status tells of it."""
        self.cancelled.complete()
        self._outbox.tell(CancelTask(self.spec.task))

    def transition_to(self, target_state: TargetState) -> None:
        """Pause or resume. A task that is about to end ignores it; STOPPED ends it."""
        if self.stopping or self._target_state is TargetState.STOPPED:
            return
        before, self._target_state = self._target_state, target_state
        if target_state is before:
            return
        match self._phase, target_state:
            case _, TargetState.STOPPED:
                self.stop()
            case _Phase.RUNNING, TargetState.PAUSED:
                self._listener.on_task_pause(self.spec.task)
            case _Phase.RUNNING, TargetState.STARTED:
                self._listener.on_task_resume(self.spec.task)
            case _Phase.AWAITING_UNPAUSE, TargetState.STARTED:
                self._phase = _Phase.STARTING
                self._threads.start(self._start_work())
            case _:
                pass

    def fail(self, trace: str) -> None:
        """The work has raised an exception."""
        if self._phase is not _Phase.RUNNING or self.stopping:
            return
        self._phase = _Phase.ENDED
        self._on_failure(trace)

    # The task's thread.

    def _run(self) -> Blocking[None]:
        if self.stopping:
            self._end()
        elif self._target_state is TargetState.PAUSED:
            self._listener.on_task_pause(self.spec.task)
            self._phase = _Phase.AWAITING_UNPAUSE
        else:
            yield from self._start_work()

    def _start_work(self) -> Blocking[None]:
        try:
            yield from self._prepare()
            yield from self._ask_to_start()
        except JavaException as failure:
            # A failure while it is being shut down is only logged.
            self._phase = _Phase.ENDED
            if self.stopping:
                self._end()
            else:
                self._on_failure(str(failure))
            return
        if not self.cancelled.done:
            self._listener.on_task_startup(self.spec.task)
        if self.stopping:
            yield from self._close()
            return
        self._phase = _Phase.RUNNING
        if self._target_state is TargetState.PAUSED:
            self._listener.on_task_pause(self.spec.task)

    def _prepare(self) -> Blocking[None]:
        """The checks around an exactly-once producer.

        Raises:
            JavaException: the task may not run.
        """
        checks = self.spec.checks
        if checks is None:
            return
        yield from checks.before()
        if self.stopping:
            # A producer begun now could fence that of a later generation.
            return
        producer = self._outbox.ask(
            partial(InitTransactions, transactional_id=checks.transactional_id)
        )
        yield Wait(producer)
        if producer.error is not None:
            raise thrown(producer.error)
        yield from checks.after()

    def _ask_to_start(self) -> Blocking[None]:
        spec = self.spec
        started = self._outbox.ask(
            lambda token: StartTask(
                token=token,
                task=spec.task,
                config=spec.config,
                connector_config=spec.connector_config,
                target_state=self._target_state,
                generation=spec.generation,
            )
        )
        yield Wait(started)
        if started.error is not None:
            raise WorkFailed(started.error)

    def _close(self) -> Blocking[None]:
        """Have the work end; a task that was cancelled meanwhile ends unheard."""
        ended = self._outbox.ask(partial(StopTask, task=self.spec.task))
        yield Wait(ended, self.cancelled)
        self._end()

    def _end(self) -> None:
        self._phase = _Phase.ENDED
        if not self.cancelled.done:
            self._listener.on_task_shutdown(self.spec.task)
        self.stopped.complete()

    def _on_failure(self, trace: str) -> None:
        if not self.cancelled.done:
            self._listener.on_task_failure(self.spec.task, trace)
        self.stopped.complete()


class WorkFailed(JavaException):
    """What the driver says of work that it cannot start; the text is a trace as it is."""

    def __str__(self) -> str:
        """The trace."""
        return self.message
