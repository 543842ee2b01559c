"""The states of connectors and tasks that a worker has read, and the writing of its own.

A status takes effect only once it has been read back. A safe write is skipped where another worker
has written a newer status since.

Source: kafka trunk, connect/runtime/.../storage/KafkaStatusBackingStore.java;
runtime/AbstractHerder.java, onStartup to onRestart.
"""

from collections.abc import Callable

from msgspec import Struct

from coordinator_sim.clients.exceptions import RETRIABLE
from coordinator_sim.connect.effects import RecordRun, TopicRecord
from coordinator_sim.connect.stores import status_records
from coordinator_sim.connect.stores.json_converter import JsonValue, from_json
from coordinator_sim.connect.stores.topic_log import InternalTopic, Spawn, TopicLog
from coordinator_sim.connect.thread import Blocking, Outbox, Pending, Wait
from coordinator_sim.errors import DataError
from coordinator_sim.kafka.orders.iteration_order import integer_hash, java_hash_order
from coordinator_sim.kafka.resources import ConnectorTaskId


class _CacheEntry:
    """The last status read of a connector or task, and how often one was written."""

    __slots__ = ("is_deleted", "sequence", "value")

    def __init__(self) -> None:
        self.value: status_records.Status | None = None
        self.sequence = 0
        self.is_deleted = False

    def can_write_safely(self, status: status_records.Status) -> bool:
        """Whether no other worker has written a newer status."""
        value = self.value
        return (
            value is None
            or value.worker_id == status.worker_id
            or value.generation <= status.generation
        )


class _Sent(Struct, frozen=True):
    """A record being written, and whether to retry it if it fails."""

    pending: Pending[object]
    key: str
    value: bytes | None
    is_wanted: Callable[[], bool]


class StatusStore:
    """The port of KafkaStatusBackingStore.

    Args:
        outbox: The worker's outbox.
        spawn: Begins a thread of the worker.
        topic: The status topic.
        with_version: Whether statuses carry the plugin's version, as from 4.0 on.
    """

    def __init__(
        self, outbox: Outbox, spawn: Spawn, *, topic: InternalTopic, with_version: bool = True
    ) -> None:
        self._log = TopicLog(outbox, spawn, topic=topic, consumed=self._read)
        self._spawn = spawn
        self._with_version = with_version
        self._connectors: dict[str, _CacheEntry] = {}
        self._tasks: dict[str, dict[int, _CacheEntry]] = {}
        self._topics: dict[str, dict[str, status_records.TopicStatus]] = {}
        self._generation = 0
        self._sent: list[_Sent] = []
        self._changed: Pending[object] = Pending()
        self._stopped = False

    @property
    def log(self) -> TopicLog:
        """The status topic; the worker hands it what is fetched."""
        return self._log

    def start(self) -> Blocking[None]:
        """Read the topic to its end, then once more in the background.

        Raises:
            JavaException: see `TopicLog.start`.
        """
        yield from self._log.start()
        self._spawn(self._retry())
        yield from self._log.read_to_end()

    def stop(self) -> Blocking[None]:
        """End the reader and the retries."""
        self._stopped = True
        self._changed.complete()
        yield from self._log.stop()

    # -- writing ---------------------------------------------------------------------------

    def put(self, status: status_records.Status) -> None:
        """Write a status unconditionally. Returns before it is written."""
        self._send(status, safe=False)

    def put_safe(self, status: status_records.Status) -> None:
        """Write a status unless another worker has written one of a later generation."""
        self._send(status, safe=True)

    def put_topic(self, status: status_records.TopicStatus) -> None:
        """Write that a connector uses a topic."""
        self._produce(
            status_records.topic_status_key(status.topic, status.connector),
            status_records.topic_status_value(status),
            _always,
        )

    def delete_topic(self, connector: str, topic: str) -> None:
        """Write a tombstone: a connector no longer uses a topic."""
        self._produce(status_records.topic_status_key(topic, connector), None, _always)

    def flush(self) -> Blocking[None]:
        """Wait until everything put so far is written or has failed."""
        yield from self._log.flush()

    def _send(self, status: status_records.Status, *, safe: bool) -> None:
        self._generation = status.generation
        entry = self._get_or_add(status.subject)
        if safe and not entry.can_write_safely(status):
            return
        entry.sequence += 1
        sequence = entry.sequence

        def is_wanted() -> bool:
            if entry.is_deleted or status.generation != self._generation:
                return False
            return not safe or (entry.can_write_safely(status) and entry.sequence == sequence)

        value = status_records.status_value(status, with_version=self._with_version)
        self._produce(status_records.status_key(status.subject), value, is_wanted)

    def _produce(self, key: str, value: bytes | None, is_wanted: Callable[[], bool]) -> None:
        pending = self._log.send(key.encode(), value)
        self._sent.append(_Sent(pending, key, value, is_wanted))
        self._changed.complete()

    def _retry(self) -> Blocking[None]:
        """Retry failed writes; the store's producer does not retry."""
        while not self._stopped:
            done = [sent for sent in self._sent if sent.pending.done]
            if not done:
                self._changed = Pending()
                yield Wait(self._changed, *(sent.pending for sent in self._sent))
                continue
            self._sent = [sent for sent in self._sent if not sent.pending.done]
            for sent in done:
                if sent.pending.error in RETRIABLE and sent.is_wanted():
                    self._produce(sent.key, sent.value, sent.is_wanted)

    # -- what has been read ----------------------------------------------------------------

    def get(self, subject: status_records.Subject) -> status_records.Status | None:
        """Return the status last read of a connector or task."""
        if isinstance(subject, ConnectorTaskId):
            entry = self._tasks.get(subject.connector, {}).get(subject.task)
        else:
            entry = self._connectors.get(subject)
        return None if entry is None else entry.value

    def get_all(self, connector: str) -> tuple[status_records.Status, ...]:
        """Return the statuses of a connector's tasks, in the order of Java's map of numbers."""
        # UNSPECIFIED: 4.3.1 returns a copy whose order differs from JVM to JVM.
        row = self._tasks.get(connector, {})
        found = (row[task].value for task in java_hash_order(row, hash_of=integer_hash))
        return tuple(status for status in found if status is not None)

    def connectors(self) -> tuple[str, ...]:
        """Return connectors with a status read or written here, in the order of Java's map."""
        return tuple(java_hash_order(self._connectors))

    def get_topic(self, connector: str, topic: str) -> status_records.TopicStatus | None:
        """Return the record read of a connector's use of a topic."""
        return self._topics.get(connector, {}).get(topic)

    def get_all_topics(self, connector: str) -> tuple[status_records.TopicStatus, ...]:
        """Return the topics that a connector uses, in the order of Java's map."""
        used = self._topics.get(connector, {})
        return tuple(used[topic] for topic in java_hash_order(used))

    def _get_or_add(self, subject: status_records.Subject) -> _CacheEntry:
        if isinstance(subject, ConnectorTaskId):
            row = self._tasks.setdefault(subject.connector, {})
            return row.setdefault(subject.task, _CacheEntry())
        return self._connectors.setdefault(subject, _CacheEntry())

    # -- reading ---------------------------------------------------------------------------

    def _read(self, record: TopicRecord | RecordRun) -> None:
        if isinstance(record, RecordRun):
            return
        key = (record.key or b"").decode(errors="replace")
        if key.startswith(status_records.CONNECTOR_STATUS_PREFIX):
            self._read_connector(key, record.value)
        elif key.startswith(status_records.TASK_STATUS_PREFIX):
            self._read_task(key, record.value)
        elif key.startswith(status_records.TOPIC_STATUS_PREFIX):
            self._read_topic(key, record.value)

    def _read_connector(self, key: str, value: bytes | None) -> None:
        connector = key.removeprefix(status_records.CONNECTOR_STATUS_PREFIX)
        if not connector:
            return
        if value is None:
            self._remove_connector(connector)
            return
        status = status_records.parse_status(connector, _parsed(value))
        if status is not None:
            self._get_or_add(connector).value = status

    def _remove_connector(self, connector: str) -> None:
        removed = [*self._tasks.pop(connector, {}).values()]
        entry = self._connectors.pop(connector, None)
        for each in removed if entry is None else (entry, *removed):
            each.is_deleted = True

    def _read_task(self, key: str, value: bytes | None) -> None:
        task = status_records.task_of_status_key(key)
        if task is None:
            return
        if value is None:
            entry = self._tasks.get(task.connector, {}).pop(task.task, None)
            if entry is not None:
                entry.is_deleted = True
            return
        status = status_records.parse_status(task, _parsed(value))
        if status is None:
            return
        entry = self._get_or_add(task)
        known = entry.value
        is_stale = (
            status.state is status_records.State.UNASSIGNED
            and known is not None
            and known.state is status_records.State.RUNNING
            and known.generation >= status.generation
        )
        if not is_stale:
            entry.value = status

    def _read_topic(self, key: str, value: bytes | None) -> None:
        names = status_records.topic_of_status_key(key)
        if names is None:
            return
        topic, connector = names
        if value is None:
            self._topics.get(connector, {}).pop(topic, None)
            return
        status = status_records.parse_topic_status(_parsed(value))
        if status is not None:
            self._topics.setdefault(connector, {})[topic] = status


def _always() -> bool:
    return True


def _parsed(value: bytes) -> JsonValue:
    """Parse a value; None where it is no JSON: neither is a status."""
    try:
        return from_json(value)
    except DataError:
        return None


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
        self._store.put(self._status(connector, status_records.State.RUNNING))

    def on_connector_pause(self, connector: str) -> None:
        """Write PAUSED for a connector."""
        self._store.put(self._status(connector, status_records.State.PAUSED))

    def on_connector_stop(self, connector: str) -> None:
        """Write STOPPED for a connector that has reached this target state."""
        self._store.put(self._status(connector, status_records.State.STOPPED))

    def on_connector_resume(self, connector: str) -> None:
        """Write RUNNING for a resumed connector."""
        self._store.put(self._status(connector, status_records.State.RUNNING))

    def on_connector_failure(self, connector: str, trace: str) -> None:
        """Write FAILED for a connector, with the trace."""
        self._store.put_safe(self._status(connector, status_records.State.FAILED, trace))

    def on_connector_shutdown(self, connector: str) -> None:
        """Write UNASSIGNED for a connector that has ended on this worker."""
        self._store.put_safe(self._status(connector, status_records.State.UNASSIGNED))

    def on_connector_restart(self, connector: str) -> None:
        """Write RESTARTING for a connector that has ended and is about to start again."""
        self._store.put(self._status(connector, status_records.State.RESTARTING))

    def on_connector_deletion(self, connector: str) -> None:
        """Delete the statuses of a removed connector and of its tasks."""
        for status in self._store.get_all(connector):
            self._store.put(self._status(status.subject, status_records.State.DESTROYED))
        self._store.put(self._status(connector, status_records.State.DESTROYED))

    # Tasks.

    def on_task_startup(self, task: ConnectorTaskId) -> None:
        """Write RUNNING for a started task."""
        self._store.put(self._status(task, status_records.State.RUNNING))

    def on_task_pause(self, task: ConnectorTaskId) -> None:
        """Write PAUSED for a task."""
        self._store.put(self._status(task, status_records.State.PAUSED))

    def on_task_resume(self, task: ConnectorTaskId) -> None:
        """Write RUNNING for a resumed task."""
        self._store.put(self._status(task, status_records.State.RUNNING))

    def on_task_failure(self, task: ConnectorTaskId, trace: str) -> None:
        """Write FAILED for a task, with the trace."""
        self._store.put_safe(self._status(task, status_records.State.FAILED, trace))

    def on_task_shutdown(self, task: ConnectorTaskId) -> None:
        """Write UNASSIGNED for a task that has ended on this worker."""
        self._store.put_safe(self._status(task, status_records.State.UNASSIGNED))

    def on_task_restart(self, task: ConnectorTaskId) -> None:
        """Write RESTARTING for a task that has ended and is about to start again."""
        self._store.put(self._status(task, status_records.State.RESTARTING))

    def on_task_deletion(self, task: ConnectorTaskId) -> None:
        """Delete the status of a removed task."""
        self._store.put(self._status(task, status_records.State.DESTROYED))

    def _status(
        self, subject: status_records.Subject, state: status_records.State, trace: str | None = None
    ) -> status_records.Status:
        connector = subject if isinstance(subject, str) else subject.connector
        return status_records.Status(
            subject=subject,
            state=state,
            worker_id=self._worker_id,
            generation=self._generation(),
            trace=trace,
            version=self._version_of(connector),
        )
