"""One connector that runs on a worker: its changes of target state, and its end.

Java's thread waits for the next state; the port needs no thread while nothing changes.

DEVIATION: a connector that is paused is not stopped and begun anew, as Java does; the driver is
told the target state, and holds the connector from its start to its stop. Statuses are Java's.

Source: kafka trunk, connect/runtime/.../runtime/WorkerConnector.java.
"""

from enum import Enum, unique
from functools import partial
from typing import Protocol

from coordinator_sim.connect.effects import StartConnector, StopConnector, TargetState
from coordinator_sim.connect.thread import Blocking, Outbox, Pending, Threads, Wait


class ConnectorStatusListener(Protocol):
    """Listener of a connector's states."""

    def on_connector_startup(self, connector: str) -> None:
        """The connector has started."""
        ...

    def on_connector_pause(self, connector: str) -> None:
        """The connector is paused."""
        ...

    def on_connector_stop(self, connector: str) -> None:
        """The connector has stopped, because its target state is STOPPED."""
        ...

    def on_connector_resume(self, connector: str) -> None:
        """The connector runs again after a pause or stop."""
        ...

    def on_connector_failure(self, connector: str, trace: str) -> None:
        """The connector has failed."""
        ...

    def on_connector_shutdown(self, connector: str) -> None:
        """The connector has ended on this worker."""
        ...


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

    __slots__ = (
        "_change",
        "_config",
        "_connector",
        "_has_thread",
        "_listener",
        "_outbox",
        "_target_state",
        "_threads",
        "cancelled",
        "is_held",
        "state",
        "stopped",
        "stopping",
    )

    def __init__(
        self,
        connector: str,
        config: dict[str, str],
        *,
        outbox: Outbox,
        threads: Threads,
        listener: ConnectorStatusListener,
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
