"""One task that runs on a worker: its own thread, without the work itself.

The driver does the work: it is told to start and to stop it, and reports its failure. While Java's
thread would work or wait for the resumption, the port needs no thread.

Source: kafka trunk, connect/runtime/.../runtime/WorkerTask.java; ExactlyOnceWorkerSourceTask.java,
prepareToInitializeTask.
"""

from collections.abc import Callable
from enum import Enum, unique
from functools import partial

from msgspec import Struct

from coordinator_sim.connect import effects
from coordinator_sim.connect.exceptions import JavaException, thrown
from coordinator_sim.connect.stores.status_store import Statuses
from coordinator_sim.connect.thread import Blocking, Outbox, Pending, Threads, Wait
from coordinator_sim.kafka.resources import ConnectorTaskId


class ProducerChecks(Struct, frozen=True):
    """Steps of an exactly-once source task around the start of its producer.

    Args:
        before: Fences the producers of older generations.
        transactional_id: The transactional id of the task's producer.
        after: Checks that the task still belongs to this worker.
    """

    before: Callable[[], Blocking[None]]
    transactional_id: str
    after: Callable[[], Blocking[None]]


class TaskSpec(Struct, frozen=True, kw_only=True):
    """A task to be run.

    Args:
        generation: The group's generation when the task was assigned.
        checks: Steps around the producer; None unless it is an exactly-once source task.
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
        target_state: Target state of the task's connector.
        outbox: The worker's outbox.
        threads: The worker's threads.
        listener: Listener of statuses.

    Attributes:
        spec: The task.
        stopping: Whether the task has been asked to end.
        cancelled: Done when the worker no longer waits for the task's end.
        stopped: Done when the task's thread has ended (shutdownLatch).
    """

    def __init__(
        self,
        spec: TaskSpec,
        target_state: effects.TargetState,
        *,
        outbox: Outbox,
        threads: Threads,
        listener: Statuses,
    ) -> None:
        self.spec = spec
        self._target_state = target_state
        self._outbox = outbox
        self._threads = threads
        self._listener = listener
        self._phase = _Phase.STARTING
        self.stopping = False
        self.cancelled: Pending[object] = Pending()
        """Done when the worker no longer waits for the task's end."""
        self.stopped: Pending[object] = Pending()
        """Done when the task's thread has ended (shutdownLatch)."""

    @property
    def is_running(self) -> bool:
        """Whether the work itself has started and not ended, paused or not."""
        return self._phase is _Phase.RUNNING

    def start(self) -> None:
        """Begin the task's thread."""
        self._threads.start(self._run())

    # What the worker calls.

    def stop(self) -> None:
        """Ask the task to end; `stopped` is completed when it has."""
        if self.stopping:
            return
        self.stopping = True
        match self._phase:
            case _Phase.AWAITING_UNPAUSE:
                self._end()
            case _Phase.RUNNING:
                self._threads.start(self._close())
            case _Phase.STARTING | _Phase.ENDED:
                pass  # the task's thread checks `stopping` itself, or has ended

    def cancel(self) -> None:
        """Stop waiting for the task's end; it writes no status from now on."""
        self.cancelled.complete()
        self._outbox.tell(effects.CancelTask(self.spec.task))

    def transition_to(self, target_state: effects.TargetState) -> None:
        """Pause or resume the task; STOPPED ends it. Ignored by a task that is about to end."""
        if self.stopping or self._target_state is effects.TargetState.STOPPED:
            return
        before, self._target_state = self._target_state, target_state
        if target_state is before:
            return
        match self._phase, target_state:
            case _, effects.TargetState.STOPPED:
                self.stop()
            case _Phase.RUNNING, effects.TargetState.PAUSED:
                self._listener.on_task_pause(self.spec.task)
            case _Phase.RUNNING, effects.TargetState.STARTED:
                self._listener.on_task_resume(self.spec.task)
            case _Phase.AWAITING_UNPAUSE, effects.TargetState.STARTED:
                self._phase = _Phase.STARTING
                self._threads.start(self._start_work())
            case _:
                pass

    def fail(self, trace: str) -> None:
        """End the task with a failure: the work has raised an exception."""
        if self._phase is not _Phase.RUNNING or self.stopping:
            return
        self._phase = _Phase.ENDED
        self._on_failure(trace)

    # The task's thread.

    def _run(self) -> Blocking[None]:
        if self.stopping:
            self._end()
        elif self._target_state is effects.TargetState.PAUSED:
            self._listener.on_task_pause(self.spec.task)
            self._phase = _Phase.AWAITING_UNPAUSE
        else:
            yield from self._start_work()

    def _start_work(self) -> Blocking[None]:
        try:
            yield from self._prepare()
            yield from self._ask_to_start()
        except JavaException as failure:
            # A failure during the shutdown is only logged.
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
        if self._target_state is effects.TargetState.PAUSED:
            self._listener.on_task_pause(self.spec.task)

    def _prepare(self) -> Blocking[None]:
        """Run the checks around an exactly-once producer.

        Raises:
            JavaException: the task may not run.
        """
        checks = self.spec.checks
        if checks is None:
            return
        yield from checks.before()
        if self.stopping:
            # A producer started now could fence the producer of a later generation.
            return
        producer = self._outbox.ask(
            partial(effects.InitTransactions, transactional_id=checks.transactional_id)
        )
        yield Wait(producer)
        if producer.error is not None:
            raise thrown(producer.error)
        yield from checks.after()

    def _ask_to_start(self) -> Blocking[None]:
        spec = self.spec
        started = self._outbox.ask(
            lambda token: effects.StartTask(
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
        """Have the driver end the work; a task that was cancelled meanwhile ends without status."""
        ended = self._outbox.ask(partial(effects.StopTask, task=self.spec.task))
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
    """Failure of work that the driver cannot start; the text is the trace itself."""

    def __str__(self) -> str:
        """Return the trace."""
        return self.message
