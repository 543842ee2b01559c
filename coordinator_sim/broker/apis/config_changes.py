"""AlterConfigs and IncrementalAlterConfigs: the change that a resource's entry asks for.

Source: kafka trunk, ConfigAdminManager.preprocess; ConfigurationControlManager
.incrementalAlterConfigResource, legacyAlterConfigResource, validateAlterConfig,
isDisallowedBrokerMinIsrTransition, isDisallowedClusterMinIsrTransition;
QuorumController.ConfigResourceExistenceChecker.
"""

from collections import Counter
from collections.abc import Callable
from enum import IntEnum, unique
from typing import Any, Final, TypeVar

from coordinator_sim.broker.apis.administration import (
    NO_ERROR,
    ApiError,
    duplicates,
)
from coordinator_sim.broker.apis.client_metrics_configs import client_metrics_error
from coordinator_sim.broker.apis.config_validation import broker_error, topic_error
from coordinator_sim.broker.apis.features_api import MIN_ISR
from coordinator_sim.broker.apis.group_configs import group_error
from coordinator_sim.broker.cluster_parts import ClusterParts
from coordinator_sim.broker.configs.setting_types import SettingType
from coordinator_sim.broker.contract import Call
from coordinator_sim.broker.implemented import ELR_VERSION
from coordinator_sim.broker.metadata.changes import ConfigsChanged
from coordinator_sim.broker.metadata.image import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.java_numbers import java_int
from coordinator_sim.messages.alter_configs import AlterableConfig, AlterConfigsResource
from coordinator_sim.messages.incremental_alter_configs import AlterableConfig as ConfigAlteration
from coordinator_sim.messages.incremental_alter_configs import (
    AlterConfigsResource as IncrementalResource,
)

R = TypeVar("R", AlterConfigsResource, IncrementalResource)
"""A resource's entry in a request: the complete settings, or operations on single ones."""

ConfigWrite = Callable[[ClusterParts, R], ConfigsChanged | ApiError]
"""Turns a resource's entry in a request into a change, or an error."""

_LOGGER_RESOURCE: Final = 8
_CLIENT_METRICS_RESOURCE: Final = 16
_LOGGERS: Final = ("root",)
_LEVELS: Final = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")


@unique
class AlterOperation(IntEnum):
    """An operation on one setting. Source: AlterConfigOp.OpType."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def write_error(
    cluster: ClusterParts,
    call: Call[Any],
    resource: AlterConfigsResource | IncrementalResource,
) -> ApiError | None:
    """The broker's verdict before the controller is asked; None to ask the controller."""
    names = [each.name for each in resource.configs]
    if duplicates(names):
        return _invalid_request("Error due to duplicate config keys")
    nulls = [
        each.name for each in resource.configs if each.value is None and not _is_deletion(each)
    ]
    if nulls:
        return _invalid_request(f"Null value not supported for : {', '.join(nulls)}")
    kind = resource.resource_type
    if kind == BROKER_RESOURCE:
        return _broker_write_error(cluster, call, resource)
    if kind == _LOGGER_RESOURCE and isinstance(resource, IncrementalResource):
        return _loggers_error(call, resource)
    if kind not in {TOPIC_RESOURCE, GROUP_RESOURCE, _CLIENT_METRICS_RESOURCE}:
        return _invalid_request(f"Unknown resource type {kind}")
    return None


def _is_deletion(config: AlterableConfig | ConfigAlteration) -> bool:
    return isinstance(config, ConfigAlteration) and config.config_operation == AlterOperation.DELETE


def _loggers_error(call: Call[Any], resource: IncrementalResource) -> ApiError:
    """The error of new logger levels; levels have no effect in the simulator.

    Source: RuntimeLoggerManager.applyChangesForResource.
    """
    name = resource.resource_name
    if name != str(call.broker_id):
        text = f"Unexpected node id. Expected {call.broker_id}, but received {name}"
        return _invalid_request(text)
    for config in resource.configs:
        logger, level = config.name, config.value
        if logger not in _LOGGERS:
            return ApiError(ErrorCode.INVALID_CONFIG, f"Logger {logger} does not exist!")
        if config.config_operation == AlterOperation.SET and level not in _LEVELS:
            text = (
                f"Cannot set the log level of {logger} to {level} as it is not a supported log "
                f"level. Valid log levels are {', '.join(_LEVELS)}"
            )
            return ApiError(ErrorCode.INVALID_CONFIG, text)
    return NO_ERROR


def _broker_write_error(
    cluster: ClusterParts,
    call: Call[Any],
    resource: AlterConfigsResource | IncrementalResource,
) -> ApiError | None:
    name = resource.resource_name
    if name:
        broker_id = java_int(name)
        if broker_id is None:
            return _invalid_request(f"Node id must be an integer, but it is: {name}")
        if broker_id != call.broker_id:
            text = f"Unexpected broker id, expected {call.broker_id}, but received {name}"
            return _invalid_request(text)
    if isinstance(resource, IncrementalResource):
        change = incremental(cluster, resource)
    else:
        change = legacy(cluster, resource)
    return change if isinstance(change, ApiError) else None


def elr_error(
    cluster: ClusterParts, resource: AlterConfigsResource | IncrementalResource
) -> ApiError:
    """The error of a change of `min.insync.replicas` that eligible leader replicas forbid."""
    kind, name = resource.resource_type, resource.resource_name
    if kind != BROKER_RESOURCE or not cluster.image.features.get(ELR_VERSION):
        return NO_ERROR
    changes = [each for each in resource.configs if each.name == MIN_ISR]
    if name and changes:
        text = f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled."
        return ApiError(ErrorCode.INVALID_CONFIG, text)
    is_replaced = isinstance(resource, AlterConfigsResource) and not changes
    if is_replaced and MIN_ISR not in cluster.image.configs_of(kind, name):
        return NO_ERROR
    if is_replaced or any(_is_deletion(each) for each in changes):
        text = f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled."
        return ApiError(ErrorCode.INVALID_CONFIG, text)
    return NO_ERROR


def legacy(cluster: ClusterParts, resource: AlterConfigsResource) -> ConfigsChanged | ApiError:
    """Replace all settings of a resource by the named ones."""
    kind, name = resource.resource_type, resource.resource_name
    current = cluster.image.configs_of(kind, name)
    wanted = {each.name: each.value for each in resource.configs if each.value is not None}
    error = _error(cluster, kind, name, wanted)
    if error.is_failure:
        return error
    values: dict[str, str | None] = {
        each: value for each, value in wanted.items() if current.get(each) != value
    }
    values.update({each: None for each in current if each not in wanted})
    return ConfigsChanged(kind, name, values)


def incremental(cluster: ClusterParts, resource: IncrementalResource) -> ConfigsChanged | ApiError:
    """Set, delete, append to or subtract from each named setting."""
    kind, name = resource.resource_type, resource.resource_name
    current = cluster.image.configs_of(kind, name)
    values: dict[str, str | None] = {}
    for config in resource.configs:
        new = _new_value(cluster, kind, config, current.get(config.name))
        if isinstance(new, ApiError):
            return new
        if new != current.get(config.name):
            values[config.name] = new
    after = {**current, **values}
    error = _error(cluster, kind, name, {k: v for k, v in after.items() if v is not None})
    return error if error.is_failure else ConfigsChanged(kind, name, values)


def _new_value(
    cluster: ClusterParts, kind: int, config: ConfigAlteration, current: str | None
) -> str | ApiError | None:
    operation, key, value = config.config_operation, config.name, config.value
    if operation == AlterOperation.SET:
        return str(value)
    if operation == AlterOperation.DELETE:
        return None
    if operation not in {AlterOperation.APPEND, AlterOperation.SUBTRACT}:
        if kind == BROKER_RESOURCE:
            return _invalid_request(f"Unknown operations type {operation}")
        return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    known = {TOPIC_RESOURCE: cluster.configs.topic, GROUP_RESOURCE: cluster.configs.group}
    setting = known.get(kind, cluster.configs.broker).get(key)
    if setting is None or setting.type is not SettingType.LIST:
        what = AlterOperation(operation).name
        text = f"Can't {what} to key {key} because its type is not LIST."
        return ApiError(ErrorCode.INVALID_CONFIG, text)
    parts = [each for each in (current or setting.default or "").split(",") if each]
    change = _appended if operation == AlterOperation.APPEND else _subtracted
    return ",".join(change(parts, (value or "").split(",")))


def _appended(parts: list[str], more: list[str]) -> list[str]:
    """The entries of a list, followed by the new entries that it lacks."""
    present = frozenset(parts)
    return parts + [each for each in dict.fromkeys(more) if each not in present]


def _subtracted(parts: list[str], fewer: list[str]) -> list[str]:
    """The list without as many of the first equal entries as each name is given."""
    left = Counter(fewer)
    kept = []
    for part in parts:
        if left[part]:
            left[part] -= 1
        else:
            kept.append(part)
    return kept


def _error(cluster: ClusterParts, kind: int, name: str, values: dict[str, str]) -> ApiError:
    """The error of the complete new settings of a resource, or of the resource itself."""
    if kind == TOPIC_RESOURCE:
        error = topic_error(cluster.configs, name, values)
        if not error.is_failure and name not in cluster.image.topics:
            text = f"The topic '{name}' does not exist."
            return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        return error
    if kind == GROUP_RESOURCE:
        return group_error(cluster.settings.profile, cluster.configs, name, values)
    if kind == BROKER_RESOURCE:
        return broker_error(cluster.configs, values, one_broker=bool(name))
    return client_metrics_error(name, values)


def _invalid_request(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)
