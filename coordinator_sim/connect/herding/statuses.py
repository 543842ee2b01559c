"""Statuses of connectors and tasks that a worker writes to the status topic.

Source: kafka trunk, connect/runtime/.../runtime/AbstractHerder.java, onStartup to onRestart.
"""

from collections.abc import Callable

from coordinator_sim.connect.stores.status_records import State, Status, Subject
from coordinator_sim.connect.stores.status_store import StatusStore
from coordinator_sim.kafka.resources import ConnectorTaskId


class Statuses:
    """The status listener of one worker.

    Starting, pausing and restarting is always written; ends and failures only unless another worker
    has written a status of a later generation.

    Args:
        store: Store on the status topic.
        worker_id: Host and port of the worker's advertised URL.
        generation: Returns the group's generation as the herder knows it.
        version_of: Returns the version of a connector's class; None when it is not known.
    """

    __slots__ = ("_generation", "_store", "_version_of", "_worker_id")

    def __init__(
        self,
        store: StatusStore,
        worker_id: str,
        generation: Callable[[], int],
        version_of: Callable[[str], str | None],
    ) -> None:
        self._store = store
        self._worker_id = worker_id
        self._generation = generation
        self._version_of = version_of

    # Connectors.

    def on_connector_startup(self, connector: str) -> None:
        """Write RUNNING for a started connector."""
        self._store.put(self._status(connector, State.RUNNING))

    def on_connector_pause(self, connector: str) -> None:
        """Write PAUSED for a connector."""
        self._store.put(self._status(connector, State.PAUSED))

    def on_connector_stop(self, connector: str) -> None:
        """Write STOPPED for a connector that has reached this target state."""
        self._store.put(self._status(connector, State.STOPPED))

    def on_connector_resume(self, connector: str) -> None:
        """Write RUNNING for a resumed connector."""
        self._store.put(self._status(connector, State.RUNNING))

    def on_connector_failure(self, connector: str, trace: str) -> None:
        """Write FAILED for a connector, with the trace."""
        self._store.put_safe(self._status(connector, State.FAILED, trace))

    def on_connector_shutdown(self, connector: str) -> None:
        """Write UNASSIGNED for a connector that has ended on this worker."""
        self._store.put_safe(self._status(connector, State.UNASSIGNED))

    def on_connector_restart(self, connector: str) -> None:
        """Write RESTARTING for a connector that has ended and is about to start again."""
        self._store.put(self._status(connector, State.RESTARTING))

    def on_connector_deletion(self, connector: str) -> None:
        """Delete the statuses of a removed connector and of its tasks."""
        for status in self._store.get_all(connector):
            self._store.put(self._status(status.subject, State.DESTROYED))
        self._store.put(self._status(connector, State.DESTROYED))

    # Tasks.

    def on_task_startup(self, task: ConnectorTaskId) -> None:
        """Write RUNNING for a started task."""
        self._store.put(self._status(task, State.RUNNING))

    def on_task_pause(self, task: ConnectorTaskId) -> None:
        """Write PAUSED for a task."""
        self._store.put(self._status(task, State.PAUSED))

    def on_task_resume(self, task: ConnectorTaskId) -> None:
        """Write RUNNING for a resumed task."""
        self._store.put(self._status(task, State.RUNNING))

    def on_task_failure(self, task: ConnectorTaskId, trace: str) -> None:
        """Write FAILED for a task, with the trace."""
        self._store.put_safe(self._status(task, State.FAILED, trace))

    def on_task_shutdown(self, task: ConnectorTaskId) -> None:
        """Write UNASSIGNED for a task that has ended on this worker."""
        self._store.put_safe(self._status(task, State.UNASSIGNED))

    def on_task_restart(self, task: ConnectorTaskId) -> None:
        """Write RESTARTING for a task that has ended and is about to start again."""
        self._store.put(self._status(task, State.RESTARTING))

    def on_task_deletion(self, task: ConnectorTaskId) -> None:
        """Delete the status of a removed task."""
        self._store.put(self._status(task, State.DESTROYED))

    def _status(self, subject: Subject, state: State, trace: str | None = None) -> Status:
        connector = subject if isinstance(subject, str) else subject.connector
        return Status(
            subject=subject,
            state=state,
            worker_id=self._worker_id,
            generation=self._generation(),
            trace=trace,
            version=self._version_of(connector),
        )
