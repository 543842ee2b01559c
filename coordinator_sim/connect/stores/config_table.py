"""State built from the records of the config topic: connectors, tasks, target states, keys.

Tasks wait for a commit that names all of them. A commit that lacks some, because the log was
compacted in between, leaves the connector inconsistent until the next complete one.

Source: kafka trunk, connect/runtime/.../storage/KafkaConfigBackingStore.java, ConsumeCallback and
the methods named process*.
"""

from base64 import b64decode
from binascii import Error as Base64Error
from typing import Final, Protocol

from coordinator_sim.connect.effects import RecordRun, TargetState, TopicRecord
from coordinator_sim.connect.exceptions import ClientException, ConnectException
from coordinator_sim.connect.stores import config_records
from coordinator_sim.connect.stores.config_state import ClusterConfigState
from coordinator_sim.connect.stores.json_converter import JsonValue, from_json
from coordinator_sim.errors import DataError
from coordinator_sim.kafka.orders.iteration_order import (
    MIN_TABLE_CAPACITY,
    connector_task_hash,
    java_hash_order,
    java_table_capacity,
)
from coordinator_sim.kafka.resources import ConnectorTaskId

_TASK_COUNT: Final = "task-count"


class ConfigListener(Protocol):
    """Listener of the records read once the store has started.

    Source: kafka trunk, connect/runtime/.../storage/ConfigBackingStore.java, UpdateListener.
    """

    def on_connector_config_remove(self, connector: str) -> None:
        """A connector was deleted."""
        ...

    def on_connector_config_update(self, connector: str) -> None:
        """A connector was created or configured anew."""
        ...

    def on_task_config_update(self, tasks: tuple[ConnectorTaskId, ...]) -> None:
        """Tasks were committed; `tasks` have new configurations, none if it is incomplete."""
        ...

    def on_connector_target_state_change(self, connector: str) -> None:
        """A configured connector has a new target state."""
        ...

    def on_session_key_update(self, key: config_records.SessionKey) -> None:
        """A new key for signatures was read."""
        ...

    def on_restart_request(self, request: config_records.RestartRequest) -> None:
        """A connector is to be restarted."""
        ...

    def on_logging_level_update(self, namespace: str, level: str) -> None:
        """Loggers of all workers get another level."""
        ...


class ConfigTable:
    """The state that a worker builds from the config topic.

    Attributes:
        listener: Listener of records once `is_started`.
    """

    def __init__(self) -> None:
        self.listener: ConfigListener | None = None
        self.is_started = False
        self._offset = -1
        self._session_key: config_records.SessionKey | None = None
        self._connectors: dict[str, dict[str, str]] = {}
        # Table size of Java's map of them, which never shrinks.
        self._capacity = MIN_TABLE_CAPACITY
        self._target_states: dict[str, TargetState] = {}
        self._task_counts: dict[str, int] = {}
        self._task_configs: dict[ConnectorTaskId, dict[str, str]] = {}
        self._deferred: dict[str, dict[ConnectorTaskId, dict[str, str]]] = {}
        self._inconsistent: dict[str, None] = {}
        self._task_count_records: dict[str, int] = {}
        self._generations: dict[str, int] = {}
        self._applied: dict[str, dict[str, str]] = {}
        self._pending_fencing: dict[str, None] = {}

    def snapshot(self) -> ClusterConfigState:
        """Return the state read so far."""
        return ClusterConfigState(
            offset=self._offset,
            session_key=self._session_key,
            task_counts=dict(self._task_counts),
            connector_configs={
                name: self._connectors[name]
                for name in java_hash_order(self._connectors, self._capacity)
            },
            target_states=dict(self._target_states),
            task_configs=dict(self._task_configs),
            task_count_records=dict(self._task_count_records),
            task_config_generations=dict(self._generations),
            applied_connector_configs=dict(self._applied),
            connectors_pending_fencing=tuple(self._pending_fencing),
            inconsistent_connectors=tuple(self._inconsistent),
        )

    def contains(self, connector: str) -> bool:
        """Whether the connector is configured."""
        return connector in self._connectors

    def read(self, record: TopicRecord | RecordRun) -> None:
        """Take a record.

        A value that is no JSON leaves the offset as it is; an unknown key does not.

        Raises:
            ConnectException: a number of tasks is no number. The poll then drops the records not
            yet handed over.
            ClientException: the record has no key, as Java's NullPointerException.
        """
        if isinstance(record, RecordRun):
            self._offset = record.first_offset + record.count
            return
        try:
            value = from_json(record.value)
        except DataError:
            return
        self._offset = record.offset + 1
        if record.key is None:
            raise ClientException("NullPointerException")
        self._process(record.key.decode(errors="replace"), value)

    def _process(self, key: str, value: JsonValue) -> None:
        """Process a record by the first key prefix that fits, in Java's order."""
        if key.startswith(config_records.TARGET_STATE_PREFIX):
            self._process_target_state(key.removeprefix(config_records.TARGET_STATE_PREFIX), value)
        elif key.startswith(config_records.CONNECTOR_PREFIX):
            self._process_connector_config(key.removeprefix(config_records.CONNECTOR_PREFIX), value)
        elif key.startswith(config_records.TASK_PREFIX):
            self._process_task_config(config_records.task_of_key(key), value)
        elif key.startswith(config_records.COMMIT_TASKS_PREFIX):
            self._process_tasks_commit(key.removeprefix(config_records.COMMIT_TASKS_PREFIX), value)
        elif key.startswith(config_records.RESTART_PREFIX):
            self._process_restart_request(key.removeprefix(config_records.RESTART_PREFIX), value)
        elif key.startswith(config_records.TASK_COUNT_RECORD_PREFIX):
            self._process_task_count(
                key.removeprefix(config_records.TASK_COUNT_RECORD_PREFIX), value
            )
        elif key == config_records.SESSION_KEY_KEY:
            self._process_session_key(value)
        elif key.startswith(config_records.LOGGER_CLUSTER_PREFIX):
            self._process_logger_level(
                key.removeprefix(config_records.LOGGER_CLUSTER_PREFIX), value
            )

    @property
    def _hearer(self) -> ConfigListener | None:
        return self.listener if self.is_started else None

    def _process_target_state(self, connector: str, value: JsonValue) -> None:
        if value is None:
            self._target_states.pop(connector, None)
            # Compaction may leave the tombstone alone: a connector without a state is started.
            if connector in self._connectors:
                self._target_states[connector] = TargetState.STARTED
            return
        state = _target_state(value)
        if state is None:
            return
        is_changed = self._target_states.get(connector) is not state
        self._target_states[connector] = state
        hearer = self._hearer
        if hearer is not None and is_changed and connector in self._connectors:
            hearer.on_connector_target_state_change(connector)

    def _process_connector_config(self, connector: str, value: JsonValue) -> None:
        hearer = self._hearer
        if value is None:
            self._remove_connector(connector)
            if hearer is not None:
                hearer.on_connector_config_remove(connector)
            return
        properties = _properties(value)
        if properties is None:
            return
        self._connectors[connector] = properties
        self._capacity = max(self._capacity, java_table_capacity(len(self._connectors)))
        self._target_states.setdefault(connector, TargetState.STARTED)
        if hearer is not None:
            hearer.on_connector_config_update(connector)

    def _process_task_config(self, task: ConnectorTaskId | None, value: JsonValue) -> None:
        properties = _properties(value)
        if task is not None and properties is not None:
            self._deferred.setdefault(task.connector, {})[task] = properties

    def _process_tasks_commit(self, connector: str, value: JsonValue) -> None:
        config = self._connectors.get(connector)
        if config is None:
            # The connector was deleted, and compaction took other records: the commit is useless.
            self._remove_connector(connector)
            return
        if not isinstance(value, dict):
            return
        deferred = self._deferred.get(connector)
        count = _int_value(value.get("tasks"))
        updated: tuple[ConnectorTaskId, ...] = ()
        if not _is_complete(deferred or {}, connector, count):
            self._inconsistent[connector] = None
        else:
            if deferred is not None:
                self._task_configs.update(deferred)
                updated = tuple(java_hash_order(deferred, hash_of=connector_task_hash))
                self._generations[connector] = self._generations.get(connector, -1) + 1
            self._inconsistent.pop(connector, None)
            self._applied[connector] = config
        if deferred is not None:
            deferred.clear()
        # Also when inconsistent: the next complete commit repairs it; until then this count holds.
        self._task_counts[connector] = count
        self._pending_fencing[connector] = None
        hearer = self._hearer
        if hearer is not None:
            hearer.on_task_config_update(updated)

    def _process_restart_request(self, connector: str, value: JsonValue) -> None:
        hearer = self._hearer
        if hearer is None or not isinstance(value, dict):
            return
        only_failed, include_tasks = value.get("only-failed"), value.get("include-tasks")
        hearer.on_restart_request(
            config_records.RestartRequest(
                connector,
                only_failed=only_failed if isinstance(only_failed, bool) else False,
                include_tasks=include_tasks if isinstance(include_tasks, bool) else False,
            )
        )

    def _process_task_count(self, connector: str, value: JsonValue) -> None:
        if isinstance(value, dict):
            self._task_count_records[connector] = _int_value(value.get(_TASK_COUNT))
            self._pending_fencing.pop(connector, None)

    def _process_session_key(self, value: JsonValue) -> None:
        key = _session_key(value)
        if key is None:
            return
        self._session_key = key
        hearer = self._hearer
        if hearer is not None:
            hearer.on_session_key_update(key)

    def _process_logger_level(self, namespace: str, value: JsonValue) -> None:
        level = value.get("level") if isinstance(value, dict) else None
        hearer = self._hearer
        if hearer is not None and isinstance(level, str):
            hearer.on_logging_level_update(namespace, level)

    def _remove_connector(self, connector: str) -> None:
        self._connectors.pop(connector, None)
        self._task_counts.pop(connector, None)
        for task in [task for task in self._task_configs if task.connector == connector]:
            del self._task_configs[task]
        self._deferred.pop(connector, None)
        self._applied.pop(connector, None)


def _target_state(value: JsonValue) -> TargetState | None:
    """Return a record's target state: `state.v2`, or `state` where that is absent or no string."""
    if not isinstance(value, dict):
        return None
    name = value.get("state.v2")
    if not isinstance(name, str):
        name = value.get("state")
    return TargetState[name] if isinstance(name, str) and name in TargetState.__members__ else None


def _properties(value: JsonValue) -> dict[str, str] | None:
    """Return the properties of a configuration; None when the value holds none."""
    properties = value.get("properties") if isinstance(value, dict) else None
    if not isinstance(properties, dict):
        return None
    # DEVIATION: a value that is no string is absent; Java keeps it, and fails where it is used.
    return {name: text for name, text in properties.items() if isinstance(text, str)}


def _session_key(value: JsonValue) -> config_records.SessionKey | None:
    if not isinstance(value, dict):
        return None
    key, algorithm = value.get("key"), value.get("algorithm")
    created_ms = value.get("creation-timestamp")
    if not isinstance(key, str) or not isinstance(algorithm, str) or type(created_ms) is not int:
        return None
    try:
        return config_records.SessionKey(b64decode(key, validate=True), algorithm, created_ms)
    except Base64Error as error:
        raise ClientException("IllegalArgumentException", str(error)) from error


def _int_value(value: JsonValue) -> int:
    if type(value) is not int:
        raise ConnectException("Expected integer value to be either Integer or Long")
    return config_records.java_int_value(value)


def _is_complete(
    configs: dict[ConnectorTaskId, dict[str, str]], connector: str, count: int
) -> bool:
    """Whether tasks 0 to count - 1 are all present; more of them do no harm.

    Source: completeTaskIdSet.
    """
    return all(ConnectorTaskId(connector, number) in configs for number in range(count))
