"""The connectors and tasks that one worker runs: start them, and stop them within timeouts.

The herder decides which work to run.

One connector that runs on a worker: its changes of target state, and its end.

Java's thread waits for the next state; the port needs no thread while nothing changes.

DEVIATION: a connector that is paused is not stopped and begun anew, as Java does; the driver is
told the target state, and holds the connector from its start to its stop. Statuses are Java's.

Source: kafka trunk, connect/runtime/.../runtime/Worker.java;
connect/runtime/.../runtime/WorkerConnector.java.
"""

from collections.abc import Iterable, Sequence
from enum import Enum, unique
from functools import partial
from typing import Final

from coordinator_sim.connect.effects import (
    ChangeTargetState,
    StartConnector,
    StopConnector,
    TargetState,
)
from coordinator_sim.connect.exceptions import ConfigException, ConnectException
from coordinator_sim.connect.herding.refusals import TooManyTasksException
from coordinator_sim.connect.herding.requests import ConnectorPlugins, ConnectorType, PluginFailure
from coordinator_sim.connect.herding.worker_task import TaskSpec, WorkerTask
from coordinator_sim.connect.stores.status_store import Statuses
from coordinator_sim.connect.thread import Blocking, Outbox, Pending, Threads, Wait
from coordinator_sim.kafka.java_numbers import java_int
from coordinator_sim.kafka.resources import ConnectorTaskId


@unique
class State(Enum):
    """Present state of a connector."""

    INIT = "INIT"
    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"
    FAILED = "FAILED"


_STATE_OF = {
    TargetState.STARTED: State.STARTED,
    TargetState.PAUSED: State.PAUSED,
    TargetState.STOPPED: State.STOPPED,
}


class WorkerConnector:
    """The port of WorkerConnector.

    Args:
        connector: Name of the connector.
        config: Configuration it is started with.
        outbox: The worker's outbox.
        threads: The worker's threads.
        listener: Listener of statuses.
    """

    def __init__(
        self,
        connector: str,
        config: dict[str, str],
        *,
        outbox: Outbox,
        threads: Threads,
        listener: Statuses,
    ) -> None:
        self._connector = connector
        self._config = config
        self._outbox = outbox
        self._threads = threads
        self._listener = listener
        self._has_thread = False
        self.is_held = False
        """Whether the driver runs the connector, paused or not."""
        self._target_state: TargetState | None = None
        self._change: Pending[TargetState] = Pending()
        self.state = State.INIT
        self.stopping = False
        self.cancelled: Pending[object] = Pending()
        """Done when the worker no longer waits for the connector's end."""
        self.stopped: Pending[object] = Pending()
        """Done when the connector's thread has ended (shutdownLatch)."""

    @property
    def is_running(self) -> bool:
        """Whether it has started and is neither paused nor stopped nor failed."""
        return self.state is State.STARTED

    # What the worker calls.

    def transition_to(self, target_state: TargetState) -> Pending[TargetState]:
        """Change the target state; done with the state reached, or with an error's text.

        A change that has not begun yet is replaced by the next.
        """
        if self._target_state is not None:
            self._change.complete(
                error=f"Could not begin changing connector state to {self._target_state.value} "
                "before another request to change state was made; the new request (which is to "
                f"change the state to {target_state.value}) has pre-empted this one"
            )
        self._target_state = target_state
        self._change = Pending()
        self._wake()
        return self._change

    def fail(self, trace: str) -> None:
        """Mark the connector FAILED because of its task configurations; the first cause stays."""
        if not self.stopping:
            self._on_failure(trace)

    def shutdown(self) -> None:
        """Ask the connector to end; `stopped` is completed when it has."""
        self.stopping = True
        self._wake()

    def cancel(self) -> None:
        """Stop waiting for the end: the status is UNASSIGNED whatever the connector still does."""
        if not self.cancelled.done:
            self._listener.on_connector_shutdown(self._connector)
        self.cancelled.complete()

    # The connector's thread.

    def _wake(self) -> None:
        if not self._has_thread and not self.stopped.done:
            self._has_thread = True
            self._threads.start(self._run())

    def _run(self) -> Blocking[None]:
        while not self.stopping and (target_state := self._target_state) is not None:
            self._target_state = None
            yield from self._do_transition_to(target_state, self._change)
        if self.stopping:
            yield from self._do_shutdown()
        else:
            self._has_thread = False

    def _do_transition_to(
        self, target_state: TargetState, change: Pending[TargetState]
    ) -> Blocking[None]:
        if self.state is State.FAILED and target_state is not TargetState.STOPPED:
            change.complete(
                error=f"WorkerConnector{{id={self._connector}}} Cannot transition connector to "
                f"{target_state.value} since it has failed"
            )
            return
        if target_state is TargetState.STARTED and not self.is_held:
            trace = yield from self._start()
            if trace is not None:
                self._on_failure(trace)
                change.complete(
                    error=f"Failed to transition connector {self._connector} to state STARTED"
                )
                return
        self._adopt(target_state)
        change.complete(target_state)

    def _start(self) -> Blocking[str | None]:
        """Have the driver run the connector; return the trace of a failure, or None."""
        started = self._outbox.ask(
            lambda token: StartConnector(
                token=token,
                connector=self._connector,
                config=self._config,
                target_state=TargetState.STARTED,
            )
        )
        yield Wait(started)
        self.is_held = started.error is None
        return started.error

    def _adopt(self, target_state: TargetState) -> None:
        """Enter the new state, and notify the listener unless it is the old one."""
        before, self.state = self.state, _STATE_OF[target_state]
        if self.state is before or self.cancelled.done:
            return
        match target_state:
            case TargetState.PAUSED:
                self._listener.on_connector_pause(self._connector)
            case TargetState.STOPPED:
                self._listener.on_connector_stop(self._connector)
            case TargetState.STARTED if before is State.INIT:
                self._listener.on_connector_startup(self._connector)
            case TargetState.STARTED:
                self._listener.on_connector_resume(self._connector)

    def _do_shutdown(self) -> Blocking[None]:
        if self._target_state is not None:
            self._change.complete(
                error=f"Could not begin changing connector state to {self._target_state.value} "
                "as the connector has been scheduled for shutdown"
            )
        if self.is_held:
            ended = self._outbox.ask(partial(StopConnector, connector=self._connector))
            yield Wait(ended, self.cancelled)
        self.state = State.STOPPED
        if not self.cancelled.done:
            self._listener.on_connector_shutdown(self._connector)
        self.stopped.complete()

    def _on_failure(self, trace: str) -> None:
        if self.state is State.FAILED:
            return
        if not self.cancelled.done:
            self._listener.on_connector_failure(self._connector, trace)
        self.state = State.FAILED


CONNECTOR_GRACEFUL_SHUTDOWN_TIMEOUT_MS: Final = 5_000
"""Worker.CONNECTOR_GRACEFUL_SHUTDOWN_TIMEOUT_MS."""
DEFAULT_TASKS_MAX: Final = 1
"""ConnectorConfig.TASKS_MAX_DEFAULT."""


class RunningWork:
    """The part of Java's Worker that runs connectors and tasks.

    Args:
        outbox: The worker's outbox.
        threads: The worker's threads.
        plugins: The connector classes installed on this worker.
        listener: Listener of statuses.
        task_shutdown_graceful_timeout_ms: Time limit for all tasks of one call to stop.
    """

    def __init__(
        self,
        outbox: Outbox,
        threads: Threads,
        *,
        plugins: ConnectorPlugins,
        listener: Statuses,
        task_shutdown_graceful_timeout_ms: int,
    ) -> None:
        self._outbox = outbox
        self._threads = threads
        self._plugins = plugins
        self._listener = listener
        self._graceful_timeout_ms = task_shutdown_graceful_timeout_ms
        self.connectors: dict[str, WorkerConnector] = {}
        self.tasks: dict[ConnectorTaskId, WorkerTask] = {}

    # Starting.

    def start_connector(
        self, connector: str, config: dict[str, str], target_state: TargetState
    ) -> Pending[TargetState]:
        """Run a connector; done with the state reached, or with an error's text."""
        if connector in self.connectors:
            return _failed(f"Connector with name {connector} already exists")
        failure = self._plugins.start_failure(config)
        if failure is not None:
            self._listener.on_connector_failure(connector, failure.trace)
            return _failed(failure.trace)
        running = WorkerConnector(
            connector,
            config,
            outbox=self._outbox,
            threads=self._threads,
            listener=self._listener,
        )
        self.connectors[connector] = running
        return running.transition_to(target_state)

    def start_task(self, spec: TaskSpec, target_state: TargetState, *, task_count: int) -> bool:
        """Run a task; return whether it could be instantiated. If not, its status says why.

        Args:
            spec: The task to run.
            target_state: Target state of the task's connector.
            task_count: Number of tasks of the connector.

        Raises:
            ConnectException: the task runs on this worker already.
        """
        if spec.task in self.tasks:
            raise ConnectException(
                f"Task already exists in this worker: {spec.task.connector}-{spec.task.task}"
            )
        failure = self._plugins.start_failure(spec.connector_config)
        trace = failure.trace if failure is not None else None
        if trace is None:
            try:
                check_tasks_max(spec.task.connector, task_count, spec.connector_config)
            except TooManyTasksException as excess:
                trace = str(excess)
        if trace is not None:
            self._listener.on_task_failure(spec.task, trace)
            return False
        task = WorkerTask(
            spec,
            target_state,
            outbox=self._outbox,
            threads=self._threads,
            listener=self._listener,
        )
        self.tasks[spec.task] = task
        task.start()
        return True

    # What runs.

    def is_running(self, connector: str) -> bool:
        """Whether the connector runs on this worker."""
        running = self.connectors.get(connector)
        return running is not None and running.is_running

    def connector_task_configs(
        self, connector: str, config: dict[str, str]
    ) -> list[dict[str, str]]:
        """Return the task configurations that a connector generates.

        Raises:
            TooManyTasksException: more than `tasks.max`; the connector becomes FAILED.
            ConnectException: the connector raises.
            ConfigException: `tasks.max` is no number, or a provider cannot read a path.
        """
        transformed = self._plugins.transformed(config)
        configs = self._plugins.task_configs(config, tasks_max(transformed))
        if isinstance(configs, PluginFailure):
            raise ConnectException(configs.trace)
        try:
            check_tasks_max(connector, len(configs), transformed)
        except TooManyTasksException as excess:
            self.connectors[connector].fail(str(excess))
            raise
        named: tuple[str, ...] = ("topics", "topics.regex")
        topics = {name: config[name] for name in named if name in config}
        return [{**each, **topics} for each in configs]

    def set_target_state(
        self, connector: str, target_state: TargetState
    ) -> Pending[TargetState] | None:
        """Pause, resume or stop this worker's part of a connector.

        Returns:
            Done when the connector itself has changed; None when it does not run on this worker.
        """
        running = self.connectors.get(connector)
        tasks = [task for task_id, task in self.tasks.items() if task_id.connector == connector]
        is_held = running is not None and running.is_held
        if is_held or any(task.is_running for task in tasks):
            self._outbox.tell(ChangeTargetState(connector, target_state))
        change = None if running is None else running.transition_to(target_state)
        for task in tasks:
            task.transition_to(target_state)
        return change

    def connector_type(self, config: dict[str, str] | None) -> ConnectorType:
        """Source or sink; UNKNOWN without a configuration or for a class that is not installed."""
        return ConnectorType.UNKNOWN if config is None else self._plugins.connector_type(config)

    def connector_failed(self, connector: str, trace: str) -> None:
        """Report a connector's error, which Java only writes as a status (ConnectorContext)."""
        if connector in self.connectors:
            self._listener.on_connector_failure(connector, trace)

    def task_failed(self, task: ConnectorTaskId, trace: str) -> None:
        """End a task whose work has raised an exception."""
        running = self.tasks.get(task)
        if running is not None:
            running.fail(trace)

    # Stopping.

    def stop_and_await_connector(self, connector: str) -> Blocking[None]:
        """Stop a connector, and wait at most the graceful timeout."""
        yield from self.stop_and_await_connectors((connector,))

    def stop_and_await_connectors(self, connectors: Iterable[str] | None = None) -> Blocking[None]:
        """Stop connectors, all by default; they share one graceful timeout."""
        names = tuple(self.connectors if connectors is None else connectors)
        for name in names:
            running = self.connectors.get(name)
            if running is not None:
                running.shutdown()
        deadline_ms = self._outbox.now_ms + CONNECTOR_GRACEFUL_SHUTDOWN_TIMEOUT_MS
        for name in names:
            ending = self.connectors.pop(name, None)
            if ending is None:
                continue
            yield Wait(ending.stopped, until_ms=deadline_ms)
            if not ending.stopped.done:
                ending.cancel()

    def stop_and_await_task(self, task: ConnectorTaskId) -> Blocking[None]:
        """Stop a task, and wait at most the graceful timeout."""
        yield from self.stop_and_await_tasks((task,))

    def stop_and_await_tasks(
        self, tasks: Sequence[ConnectorTaskId] | None = None
    ) -> Blocking[None]:
        """Stop tasks, all by default; they share one graceful timeout."""
        ids = tuple(self.tasks if tasks is None else tasks)
        for task_id in ids:
            running = self.tasks.get(task_id)
            if running is not None:
                running.stop()
        deadline_ms = self._outbox.now_ms + self._graceful_timeout_ms
        for task_id in ids:
            ending = self.tasks.pop(task_id, None)
            if ending is None:
                continue
            yield Wait(ending.stopped, until_ms=deadline_ms)
            if not ending.stopped.done:
                ending.cancel()


def tasks_max(config: dict[str, str]) -> int:
    """Return the largest number of tasks a connector may have.

    Raises:
        ConfigException: the setting is not a number.
    """
    text = config.get("tasks.max", str(DEFAULT_TASKS_MAX))
    allowed = java_int(text.strip())
    if allowed is None:
        raise ConfigException(
            f"Invalid value {text} for configuration tasks.max: Not a number of type INT"
        )
    return allowed


def check_tasks_max(connector: str, count: int, config: dict[str, str]) -> None:
    """Refuse more tasks than `tasks.max`, unless `tasks.max.enforce` is false.

    Raises:
        TooManyTasksException: there are too many.
    """
    allowed = tasks_max(config)
    if count > allowed and config.get("tasks.max.enforce", "true").lower() == "true":
        raise TooManyTasksException(
            f"The connector {connector} has generated {count} tasks, which is greater than "
            f"{allowed}, the maximum number of tasks it is configured to create."
        )


def _failed(error: str) -> Pending[TargetState]:
    pending: Pending[TargetState] = Pending()
    pending.complete(error=error)
    return pending
