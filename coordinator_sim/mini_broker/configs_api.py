"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources.

Source: kafka trunk, ConfigHelper.scala, ConfigAdminManager.scala (the broker's checks),
ControllerApis (rights), ConfigurationControlManager (the rest), KafkaApis of 4.1
.handleListConfigResources.
"""

from collections.abc import Callable
from typing import Final

from coordinator_sim.broker.authorizer import Operation, ResourceType
from coordinator_sim.mini_broker.administration import (
    NO_ERROR,
    Administration,
    ApiError,
    duplicates,
    told,
)
from coordinator_sim.mini_broker.config_changes import ConfigWrite, incremental, legacy, write_error
from coordinator_sim.mini_broker.config_entries import (
    broker_entries,
    client_metrics_entries,
    group_entries,
    shared_entries,
    topic_entries,
)
from coordinator_sim.mini_broker.configs import ConfigSource
from coordinator_sim.mini_broker.contract import Call, Handlers
from coordinator_sim.mini_broker.image import (
    BROKER_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.java_numbers import java_int
from coordinator_sim.protocol.topic_names import complaint
from coordinator_sim.wire.schema import Data

BROKER_LOGGER: Final = 8
CLIENT_METRICS: Final = 16
_OF_CLUSTER: Final = (BROKER_RESOURCE, BROKER_LOGGER, CLIENT_METRICS)
_KNOWN: Final = (*_OF_CLUSTER, TOPIC_RESOURCE, GROUP_RESOURCE)
_TYPED_SINCE: Final = 1
_LOGGERS: Final = {"root": "INFO"}

Entries = list[Data] | ApiError


class ConfigsApi:
    """Shows and changes settings.

    Args:
        admin: The cluster.
    """

    __slots__ = ("_admin",)

    def __init__(self, admin: Administration) -> None:
        self._admin = admin

    def handlers(self) -> Handlers:
        """Of the four APIs."""
        return {
            ApiKey.DESCRIBE_CONFIGS: self._describe,
            ApiKey.ALTER_CONFIGS: self._alter,
            ApiKey.INCREMENTAL_ALTER_CONFIGS: self._alter_incrementally,
            ApiKey.LIST_CONFIG_RESOURCES: self._list,
        }

    # -- DescribeConfigs -------------------------------------------------------------------

    def _describe(self, call: Call) -> Data:
        """Those that may be seen come before the refused ones."""
        resources: list[Data] = call.request["resources"]
        if any(each["resourceType"] not in _KNOWN for each in resources):
            error = told(ErrorCode.INVALID_REQUEST)
            return {"results": [_described(each, error) for each in resources]}
        allowed: list[Data] = []
        refused: list[Data] = []
        for resource in resources:
            refusal = self._refusal(call, resource, Operation.DESCRIBE_CONFIGS)
            if refusal is None:
                allowed.append(_described(resource, self._entries(call, resource), call.request))
            else:
                refused.append(_described(resource, told(refusal)))
        return {"results": allowed + refused}

    def _refusal(self, call: Call, resource: Data, operation: Operation) -> ErrorCode | None:
        """The error when the sender may not do that to a resource."""
        kind, name = resource["resourceType"], resource["resourceName"]
        access, context = self._admin.access, call.context
        if kind == TOPIC_RESOURCE:
            allowed = access.allows(context, operation, ResourceType.TOPIC, name)
            return None if allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if kind == GROUP_RESOURCE:
            allowed = access.allows(context, operation, ResourceType.GROUP, name)
            return None if allowed else ErrorCode.GROUP_AUTHORIZATION_FAILED
        allowed = self._admin.allows_cluster(call, operation)
        return None if allowed else ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    def _entries(self, call: Call, resource: Data) -> Entries:
        describe: dict[int, Callable[[Call, str], Entries]] = {
            TOPIC_RESOURCE: self._topic,
            BROKER_RESOURCE: self._broker,
            BROKER_LOGGER: self._loggers,
            CLIENT_METRICS: self._client_metrics,
            GROUP_RESOURCE: self._group,
        }
        return describe[resource["resourceType"]](call, resource["resourceName"])

    def _topic(self, call: Call, name: str) -> Entries:
        text = complaint(name)
        if text is not None:
            return ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, text)
        if name not in self._admin.image.topics:
            return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
        own = self._admin.image.configs_of(TOPIC_RESOURCE, name)
        return topic_entries(self._admin.configs, call.broker_id, name, own)

    def _broker(self, call: Call, name: str) -> Entries:
        if not name:
            return shared_entries(self._admin.configs)
        error = _other_broker(call, name, "expected {} or empty string, but received {}")
        return error or broker_entries(self._admin.configs, call.broker_id)

    def _loggers(self, call: Call, name: str) -> Entries:
        if not name:
            return ApiError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
        error = _other_broker(call, name, "expected {} but received {}")
        return error or _logger_entries()

    def _client_metrics(self, _call: Call, name: str) -> Entries:
        if not name:
            text = "Client metrics subscription name must not be empty"
            return ApiError(ErrorCode.INVALID_REQUEST, text)
        return client_metrics_entries(self._admin.image.configs_of(CLIENT_METRICS, name))

    def _group(self, _call: Call, name: str) -> Entries:
        if not name:
            return ApiError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        own = self._admin.image.configs_of(GROUP_RESOURCE, name)
        return group_entries(self._admin.configs, name, own)

    # -- AlterConfigs, IncrementalAlterConfigs ---------------------------------------------

    def _alter(self, call: Call) -> Data:
        return self._altered(call, legacy)

    def _alter_incrementally(self, call: Call) -> Data:
        return self._altered(call, incremental)

    def _altered(self, call: Call, write: ConfigWrite) -> Data:
        resources: list[Data] = call.request["resources"]
        keys = [f"{each['resourceType']}/{each['resourceName']}" for each in resources]
        twice = duplicates(keys)
        once = ApiError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        responses = [
            _response(each, once if key in twice else self._altered_one(call, each, write))
            for key, each in zip(keys, resources, strict=True)
        ]
        return {"responses": responses}

    def _altered_one(self, call: Call, resource: Data, write: ConfigWrite) -> ApiError:
        error = write_error(self._admin, call, resource)
        if error is not None and (error.is_failure or resource["resourceType"] == BROKER_LOGGER):
            return error
        refusal = self._refusal(call, resource, Operation.ALTER_CONFIGS)
        if refusal is not None:
            return told(refusal)
        change = write(self._admin, resource)
        if isinstance(change, ApiError):
            return change
        if change.values and not call.request["validateOnly"]:
            self._admin.change(change)
        return NO_ERROR

    # -- ListConfigResources ---------------------------------------------------------------

    def _list(self, call: Call) -> Data:
        if not self._admin.allows_cluster(call, Operation.DESCRIBE_CONFIGS):
            return {"errorCode": int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)}
        kinds = [CLIENT_METRICS]
        if call.context.api_version >= _TYPED_SINCE:
            kinds = list(dict.fromkeys(call.request["resourceTypes"])) or list(_KNOWN)
        if any(kind not in _KNOWN for kind in kinds):
            return {"errorCode": int(ErrorCode.UNSUPPORTED_VERSION)}
        found = [
            {"resourceName": name, "resourceType": kind}
            for kind in kinds
            for name in self._names(kind)
        ]
        return {"configResources": found}

    def _names(self, kind: int) -> list[str]:
        if kind == TOPIC_RESOURCE:
            return list(self._admin.image.topics)
        if kind in {BROKER_RESOURCE, BROKER_LOGGER}:
            return [str(each) for each in self._admin.settings.broker_ids]
        return [name for of, name in self._admin.image.configs if of == kind]


def _other_broker(call: Call, name: str, wanted: str) -> ApiError | None:
    """What is wrong with the name of a broker that is not the one asked."""
    broker_id = java_int(name)
    if broker_id is None:
        text = f"Broker id must be an integer, but it is: {name}"
        return ApiError(ErrorCode.INVALID_REQUEST, text)
    if broker_id == call.broker_id:
        return None
    text = f"Unexpected broker id, {wanted.format(call.broker_id, name)}"
    return ApiError(ErrorCode.INVALID_REQUEST, text)


def _logger_entries() -> list[Data]:
    source = int(ConfigSource.DYNAMIC_BROKER_LOGGER)
    return [
        {"name": name, "value": level, "configSource": source, "readOnly": False, "synonyms": []}
        for name, level in _LOGGERS.items()
    ]


def _described(resource: Data, found: Entries, request: Data | None = None) -> Data:
    """A resource's result, with the keys and the synonyms that were asked for."""
    place = {
        "resourceType": resource["resourceType"],
        "resourceName": resource["resourceName"],
    }
    if isinstance(found, ApiError):
        return {**found.fields(), **place, "configs": []}
    keys = resource["configurationKeys"]
    if keys:
        found = [entry for entry in found if entry["name"] in keys]
    if request is None or not request.get("includeSynonyms", False):
        found = [{**entry, "synonyms": []} for entry in found]
    return {"errorCode": 0, "errorMessage": "", **place, "configs": found}


def _response(resource: Data, error: ApiError) -> Data:
    return {
        **error.fields(),
        "resourceType": resource["resourceType"],
        "resourceName": resource["resourceName"],
    }
