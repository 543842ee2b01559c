"""JSON values of Connect's REST answers, with fields in Java's order.

Source: kafka trunk, connect/runtime/.../rest/entities/.
"""

from collections.abc import Mapping

from coordinator_sim.connect.herding import requests
from coordinator_sim.connect.plugins.registry import Plugin
from coordinator_sim.connect.rest.http import INTERNAL_SERVER_ERROR, RestError
from coordinator_sim.connect.settings.validation import ConfigInfos
from coordinator_sim.kafka.resources import ConnectorTaskId


def connector_info(info: requests.ConnectorInfo) -> dict[str, object]:
    """Return a connector with its configuration. Source: ConnectorInfo."""
    return {
        "name": info.name,
        "config": info.config,
        "tasks": [_task_id(task) for task in info.tasks],
        "type": info.type.value,
    }


def connector_info_from(value: object) -> requests.ConnectorInfo:
    """Parse a connector in the answer of another worker.

    Raises:
        RestError: the answer is no connector.
    """
    try:
        match value:
            case {"name": str(name), "config": dict(config), "tasks": list(tasks), **rest}:
                return requests.ConnectorInfo(
                    name=name,
                    config={str(key): str(each) for key, each in config.items()},
                    tasks=tuple(
                        ConnectorTaskId(str(task["connector"]), int(task["task"])) for task in tasks
                    ),
                    type=requests.ConnectorType(rest.get("type", "unknown")),
                )
    except (KeyError, TypeError, ValueError) as error:
        raise RestError(
            INTERNAL_SERVER_ERROR, f"Error trying to forward REST request: {error}"
        ) from error
    raise RestError(INTERNAL_SERVER_ERROR, "Error trying to forward REST request: no connector")


def connector_state(info: requests.ConnectorStateInfo) -> dict[str, object]:
    """Return the states of a connector and its tasks. Source: ConnectorStateInfo."""
    return {
        "name": info.name,
        "connector": _work_state(info.connector),
        "tasks": [task_state(task) for task in info.tasks],
        "type": info.type.value,
    }


def task_state(state: requests.TaskState) -> dict[str, object]:
    """Return the state of one task."""
    return {"id": state.task, **_work_state(state)}


def _work_state(state: requests.WorkState) -> dict[str, object]:
    shown: dict[str, object] = {
        "state": state.state,
        "worker_id": state.worker_id,
        "version": state.version,
    }
    if state.trace:
        shown["trace"] = state.trace
    return shown


def task_infos(tasks: tuple[requests.TaskInfo, ...]) -> list[object]:
    """Return the tasks of a connector with their settings. Source: TaskInfo."""
    return [{"id": _task_id(each.task), "config": each.config} for each in tasks]


def tasks_config(tasks: tuple[requests.TaskInfo, ...]) -> dict[str, object]:
    """Return task settings as one map. Source of the keys: ConnectorTaskId.toString, by Jackson."""
    return {f"{each.task.connector}-{each.task.task}": each.config for each in tasks}


def active_topics(topics: requests.ActiveTopics) -> dict[str, object]:
    """Return the topics that a connector has used. Source: ActiveTopicsInfo."""
    return {topics.connector: {"topics": list(topics.topics)}}


def connector_offsets(offsets: requests.ConnectorOffsets) -> dict[str, object]:
    """Return all offsets of a connector. Source: ConnectorOffsets."""
    return {
        "offsets": [
            {"partition": each.partition, "offset": each.offset} for each in offsets.offsets
        ]
    }


def connector_offsets_from(value: object) -> tuple[requests.ConnectorOffset, ...]:
    """Parse the offsets in the body of a request; empty when there are none.

    Raises:
        RestError: the body is malformed.
    """
    match value:
        case {"offsets": None}:
            return ()
        case {"offsets": list(offsets)}:
            return tuple(_offset_from(each) for each in offsets)
        case {**rest} if not rest:
            return ()
    raise RestError(INTERNAL_SERVER_ERROR, "Cannot deserialize offsets: another shape is needed")


def _offset_from(value: object) -> requests.ConnectorOffset:
    match value:
        case {"partition": dict(partition), "offset": dict() | None as offset}:
            return requests.ConnectorOffset(partition, offset)
    raise RestError(
        INTERNAL_SERVER_ERROR, "Cannot deserialize offsets: each needs partition and offset"
    )


def plugin_info(plugin: Plugin) -> dict[str, object]:
    """Return a plugin as the list of plugins shows it. Source: PluginInfo."""
    shown: dict[str, object] = {"class": plugin.class_name, "type": plugin.type.value}
    if plugin.version != "undefined":
        shown["version"] = plugin.version
    return shown


def config_infos(infos: ConfigInfos) -> dict[str, object]:
    """Return the result of a validation. Source: ConfigInfos."""
    return {
        "name": infos.name,
        "error_count": infos.error_count,
        "groups": list(infos.groups),
        "configs": [
            {"definition": config.definition, "value": config.value} for config in infos.configs
        ],
    }


def logger_level(level: str, last_modified_ms: int | None) -> Mapping[str, object]:
    """Return a logger's level. Source: LoggerLevel."""
    return {"level": level, "last_modified": last_modified_ms}


def _task_id(task: ConnectorTaskId) -> dict[str, object]:
    return {"connector": task.connector, "task": task.task}
