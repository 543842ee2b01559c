"""Records of the config topic as on disk: their keys, and the bytes and fields of their values.

Source: kafka trunk, connect/runtime/.../storage/KafkaConfigBackingStore.java, the key methods,
the schemas, serializeTargetState and parseTaskId.
"""

from base64 import b64encode
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from coordinator_sim.connect.effects import TargetState
from coordinator_sim.connect.stores.json_converter import to_json
from coordinator_sim.kafka.java_numbers import java_int
from coordinator_sim.kafka.orders.iteration_order import java_hash_order
from coordinator_sim.kafka.resources import ConnectorTaskId

TARGET_STATE_PREFIX: Final = "target-state-"
CONNECTOR_PREFIX: Final = "connector-"
TASK_PREFIX: Final = "task-"
COMMIT_TASKS_PREFIX: Final = "commit-"
RESTART_PREFIX: Final = "restart-connector-"
TASK_COUNT_RECORD_PREFIX: Final = "tasks-fencing-"
SESSION_KEY_KEY: Final = "session-key"
LOGGER_CLUSTER_PREFIX: Final = "logger-cluster-"


class SessionKey(Struct, frozen=True):
    """A key for the signatures of requests between workers.

    Args:
        key: The secret.
        algorithm: Algorithm that the key was generated for, such as `HmacSHA256`.
        creation_timestamp_ms: When the key was created.
    """

    key: bytes
    algorithm: str
    creation_timestamp_ms: int


class RestartRequest(Struct, frozen=True):
    """A request to restart a connector, and perhaps its tasks."""

    connector: str
    only_failed: bool = False
    include_tasks: bool = False


# -- keys ------------------------------------------------------------------------------------


def connector_key(connector: str) -> str:
    """The key of a connector's configuration."""
    return f"{CONNECTOR_PREFIX}{connector}"


def target_state_key(connector: str) -> str:
    """The key of a connector's target state."""
    return f"{TARGET_STATE_PREFIX}{connector}"


def task_key(task: ConnectorTaskId) -> str:
    """The key of a task's configuration."""
    return f"{TASK_PREFIX}{task.connector}-{task.task}"


def commit_tasks_key(connector: str) -> str:
    """The key of the record that puts a connector's task configurations into effect."""
    return f"{COMMIT_TASKS_PREFIX}{connector}"


def task_count_record_key(connector: str) -> str:
    """The key of the record that says how many tasks of a connector may have to be fenced."""
    return f"{TASK_COUNT_RECORD_PREFIX}{connector}"


def restart_key(connector: str) -> str:
    """The key of a restart request."""
    return f"{RESTART_PREFIX}{connector}"


def logger_cluster_key(namespace: str) -> str:
    """The key of a logger's level."""
    return f"{LOGGER_CLUSTER_PREFIX}{namespace}"


def task_of_key(key: str) -> ConnectorTaskId | None:
    """Return the task that a key `task-<connector>-<n>` names; None when it names none.

    Source: parseTaskId, where Java's split drops empty parts at the end.
    """
    parts = key.rstrip("-").split("-")
    if len(parts) < 3:  # noqa: PLR2004 - the prefix, at least one part of a name, and the number
        return None
    number = java_int(parts[-1])
    return None if number is None else ConnectorTaskId("-".join(parts[1:-1]), number)


def java_int_value(number: int) -> int:
    """Truncate a long to an int, as Java's cast and `Long.intValue` do."""
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


# -- values ----------------------------------------------------------------------------------


def properties_value(properties: Mapping[str, str | None]) -> bytes:
    """The value of a connector's or a task's configuration, its properties in the order given."""
    return to_json({"properties": properties})


def commit_value(task_count: int) -> bytes:
    """The value that commits that many task configurations."""
    return to_json({"tasks": task_count})


def target_state_value(state: TargetState) -> bytes:
    """Return the value of a target state; workers without STOPPED read PAUSED."""
    old = TargetState.PAUSED if state is TargetState.STOPPED else state
    return to_json({"state": old.value, "state.v2": state.value})


def task_count_record_value(task_count: int) -> bytes:
    """The value of a task count record."""
    return to_json({"task-count": task_count})


def session_key_value(key: SessionKey) -> bytes:
    """The value of a session key."""
    return to_json(
        {
            "key": b64encode(key.key).decode(),
            "algorithm": key.algorithm,
            "creation-timestamp": key.creation_timestamp_ms,
        }
    )


def restart_value(request: RestartRequest) -> bytes:
    """The value of a restart request."""
    return to_json({"include-tasks": request.include_tasks, "only-failed": request.only_failed})


def logger_level_value(level: str) -> bytes:
    """The value of a logger's level."""
    return to_json({"level": level})


def as_hash_map(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties in the order of a Java HashMap that grew to hold them, as for tasks.

    Source: kafka trunk, connect/runtime/.../runtime/Worker.java, connectorTaskConfigs.
    """
    return {name: properties[name] for name in java_hash_order(properties)}
