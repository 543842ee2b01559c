"""Records of the status topic as on disk: their keys, and the bytes and fields of their values.

Source: kafka trunk, connect/runtime/.../storage/KafkaStatusBackingStore.java; the field `version`
is newer: a worker of 4.3.1 writes it, one of 3.9 does not.
"""

from enum import Enum, unique
from typing import Final

from msgspec import Struct

from coordinator_sim.connect.stores.config_records import java_int_value
from coordinator_sim.connect.stores.json_converter import JsonValue, to_json
from coordinator_sim.kafka.java_numbers import java_int
from coordinator_sim.kafka.resources import ConnectorTaskId

TASK_STATUS_PREFIX: Final = "status-task-"
CONNECTOR_STATUS_PREFIX: Final = "status-connector-"
TOPIC_STATUS_PREFIX: Final = "status-topic-"
TOPIC_STATUS_SEPARATOR: Final = ":connector-"


@unique
class State(Enum):
    """State of a connector or task.

    Source: kafka trunk, connect/runtime/.../runtime/AbstractStatus.java.
    """

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    DESTROYED = "DESTROYED"
    RESTARTING = "RESTARTING"
    STOPPED = "STOPPED"


Subject = str | ConnectorTaskId
"""Subject of a status: a connector by its name, or a task."""


class Status(Struct, frozen=True, kw_only=True):
    """A connector's or task's status as a worker writes it.

    Args:
        worker_id: Host and port of the worker's advertised URL.
        generation: The group's generation when the worker wrote the status.
        trace: Trace of the failure when FAILED.
        version: Version of the plugin; None when the worker does not know it.
    """

    subject: Subject
    state: State
    worker_id: str
    generation: int
    trace: str | None = None
    version: str | None = None


class TopicStatus(Struct, frozen=True, kw_only=True):
    """A topic that a connector used, and the task that was the first to do so.

    Args:
        discover_timestamp_ms: When the use was first noticed.
    """

    topic: str
    connector: str
    task: int
    discover_timestamp_ms: int


# -- keys ------------------------------------------------------------------------------------


def status_key(subject: Subject) -> str:
    """The key of a connector's or a task's status."""
    if isinstance(subject, ConnectorTaskId):
        return f"{TASK_STATUS_PREFIX}{subject.connector}-{subject.task}"
    return f"{CONNECTOR_STATUS_PREFIX}{subject}"


def topic_status_key(topic: str, connector: str) -> str:
    """Return the key of the record that a connector uses a topic."""
    return f"{TOPIC_STATUS_PREFIX}{topic}{TOPIC_STATUS_SEPARATOR}{connector}"


def task_of_status_key(key: str) -> ConnectorTaskId | None:
    """Return the task that a key names, read from the right; None when it names none.

    Source: parseConnectorTaskId, where Java's split drops empty parts at the end.
    """
    parts = key.rstrip("-").split("-")
    if len(parts) < 4:  # noqa: PLR2004 - two of the prefix, one of a name, and the number
        return None
    number = java_int(parts[-1])
    return None if number is None else ConnectorTaskId("-".join(parts[2:-1]), number)


def topic_of_status_key(key: str) -> tuple[str, str] | None:
    """Return the topic and the connector that a key names; None when one of them is missing.

    Source: readTopicStatus.
    """
    start, colon = len(TOPIC_STATUS_PREFIX), key.find(":")
    topic = key[start:colon] if start <= colon else ""
    connector = key[colon + len(TOPIC_STATUS_SEPARATOR) :]
    return (topic, connector) if topic and connector else None


# -- values ----------------------------------------------------------------------------------


def status_value(status: Status, *, with_version: bool = True) -> bytes | None:
    """Return the value of a status; a tombstone for DESTROYED.

    Args:
        status: The status to write.
        with_version: Whether the worker's release writes the plugin's version.
    """
    if status.state is State.DESTROYED:
        return None
    fields: dict[str, object] = {
        "state": status.state.value,
        "trace": status.trace,
        "worker_id": status.worker_id,
        "generation": status.generation,
    }
    if with_version:
        fields["version"] = status.version
    return to_json(fields)


def topic_status_value(status: TopicStatus) -> bytes:
    """The value of the record that a connector uses a topic."""
    fields = {
        "name": status.topic,
        "connector": status.connector,
        "task": status.task,
        "discoverTimestamp": status.discover_timestamp_ms,
    }
    return to_json({"topic": fields})


def parse_status(subject: Subject, value: JsonValue) -> Status | None:
    """Parse the status in a value; None when a field has the wrong type."""
    if not isinstance(value, dict):
        return None
    state, trace = value.get("state"), value.get("trace")
    worker_id, generation = value.get("worker_id"), value.get("generation")
    version = value.get("version")
    if not isinstance(state, str) or state not in State.__members__:
        return None
    # DEVIATION: a status without a worker is none; Java keeps it, and fails where it is compared.
    if not isinstance(worker_id, str) or type(generation) is not int:
        return None
    if not isinstance(trace, str | None) or not isinstance(version, str | None):
        return None
    return Status(
        subject=subject,
        state=State[state],
        worker_id=worker_id,
        generation=java_int_value(generation),
        trace=trace,
        version=version,
    )


def parse_topic_status(value: JsonValue) -> TopicStatus | None:
    """Parse the topic status in a value; None when a field has the wrong type."""
    fields = value.get("topic") if isinstance(value, dict) else None
    if not isinstance(fields, dict):
        return None
    name, connector = fields.get("name"), fields.get("connector")
    task, discovered = fields.get("task"), fields.get("discoverTimestamp")
    if not isinstance(name, str) or not isinstance(connector, str):
        return None
    if type(task) is not int or type(discovered) is not int:
        return None
    return TopicStatus(
        topic=name, connector=connector, task=java_int_value(task), discover_timestamp_ms=discovered
    )
