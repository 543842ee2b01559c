"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources.

Source: kafka trunk, ConfigHelper.scala, ConfigAdminManager.scala (checks of the broker),
ControllerApis (rights), ConfigurationControlManager (the rest), KafkaApis of 4.1
.handleListConfigResources.
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from coordinator_sim.broker.apis.administration import (
    NO_ERROR,
    ApiError,
    duplicates,
    told,
)
from coordinator_sim.broker.apis.config_changes import (
    ConfigWrite,
    R,
    elr_error,
    incremental,
    legacy,
    write_error,
)
from coordinator_sim.broker.apis.config_entries import (
    Entry,
    broker_entries,
    client_metrics_entries,
    group_entries,
    shared_entries,
    topic_entries,
)
from coordinator_sim.broker.cluster_parts import ClusterParts
from coordinator_sim.broker.configs.configs import ConfigSource
from coordinator_sim.broker.contract import Call, Handlers
from coordinator_sim.broker.metadata.image import (
    BROKER_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from coordinator_sim.broker.security.authorizer import Operation, ResourceType
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.java_numbers import java_int
from coordinator_sim.kafka.releases import documentation
from coordinator_sim.kafka.topic_names import complaint
from coordinator_sim.log.format.steps import Steps
from coordinator_sim.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from coordinator_sim.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from coordinator_sim.messages.incremental_alter_configs import (
    AlterConfigsResource as IncrementalResource,
)
from coordinator_sim.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse as IncrementalResourceResponse,
)
from coordinator_sim.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from coordinator_sim.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

BROKER_LOGGER: Final = 8
CLIENT_METRICS: Final = 16
_OF_CLUSTER: Final = (BROKER_RESOURCE, BROKER_LOGGER, CLIENT_METRICS)
_A_RESOURCE: Final = 600
"""Cost of describing the settings of a resource: 0.3 ms (measured); see `log.format.steps`."""
_AN_ALTERATION: Final = 300
_KNOWN: Final = (*_OF_CLUSTER, TOPIC_RESOURCE, GROUP_RESOURCE)
_DOCUMENTED: Final = {
    TOPIC_RESOURCE: "topic",
    BROKER_RESOURCE: "broker",
    CLIENT_METRICS: "client-metrics",
    GROUP_RESOURCE: "group",
}
_TYPED_SINCE: Final = 1
_LOGGERS: Final = {"root": "INFO"}

Entries = list[Entry] | ApiError
AlterCall = Call[AlterConfigsRequest] | Call[IncrementalAlterConfigsRequest]
Resource = DescribeConfigsResource | AlterConfigsResource | IncrementalResource


class ConfigsApi:
    """Answers the four APIs of settings.

    Args:
        cluster: The parts of the cluster.
    """

    def __init__(self, cluster: ClusterParts) -> None:
        self._cluster = cluster

    def handlers(self) -> Handlers:
        """Handlers of the four APIs of settings."""
        return {
            ApiKey.DESCRIBE_CONFIGS: self._cluster.jobs.handler(self._descriptions),
            ApiKey.ALTER_CONFIGS: self._cluster.jobs.handler(self._alterations),
            ApiKey.INCREMENTAL_ALTER_CONFIGS: self._cluster.jobs.handler(self._increments),
            ApiKey.LIST_CONFIG_RESOURCES: self._list,
        }

    # -- DescribeConfigs -------------------------------------------------------------------

    def _descriptions(
        self, call: Call[DescribeConfigsRequest]
    ) -> Steps[DescribeConfigsResponse | None]:
        """Describe the named resources; those that are not authorized come last."""
        resources = call.request.resources
        if any(each.resource_type not in _KNOWN for each in resources):
            error = told(ErrorCode.INVALID_REQUEST)
            return DescribeConfigsResponse(
                results=tuple(_described(call, each, error) for each in resources)
            )
        allowed: list[DescribeConfigsResult] = []
        refused: list[DescribeConfigsResult] = []
        for resource in resources:
            refusal = self._refusal(call, resource, Operation.DESCRIBE_CONFIGS)
            yield _A_RESOURCE
            if refusal is None:
                allowed.append(_described(call, resource, self._documented(call, resource)))
            else:
                refused.append(_described(call, resource, told(refusal)))
        return DescribeConfigsResponse(results=(*allowed, *refused))

    def _refusal(
        self, call: Call[Any], resource: Resource, operation: Operation
    ) -> ErrorCode | None:
        """The error when the sender may not do the operation on a resource, else None."""
        kind, name = resource.resource_type, resource.resource_name
        access, context = self._cluster.access, call.context
        if kind == TOPIC_RESOURCE:
            allowed = access.allows(context, operation, ResourceType.TOPIC, name)
            return None if allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if kind == GROUP_RESOURCE:
            allowed = access.allows(context, operation, ResourceType.GROUP, name)
            return None if allowed else ErrorCode.GROUP_AUTHORIZATION_FAILED
        allowed = self._cluster.allows_cluster(call, operation)
        return None if allowed else ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    def _documented(
        self, call: Call[DescribeConfigsRequest], resource: DescribeConfigsResource
    ) -> Entries:
        """The settings of a resource, with their documentation if the request asks for it."""
        found = self._entries(call, resource)
        kind = _DOCUMENTED.get(resource.resource_type)
        if kind is None or isinstance(found, ApiError) or not call.request.include_documentation:
            return found
        texts = documentation(self._cluster.settings.profile.name, kind)
        return [
            replace(each, documentation=texts.get(each.name))
            if each.documentation is None
            else each
            for each in found
        ]

    def _entries(
        self, call: Call[DescribeConfigsRequest], resource: DescribeConfigsResource
    ) -> Entries:
        describe: dict[int, Callable[[Call[DescribeConfigsRequest], str], Entries]] = {
            TOPIC_RESOURCE: self._topic,
            BROKER_RESOURCE: self._broker,
            BROKER_LOGGER: self._loggers,
            CLIENT_METRICS: self._client_metrics,
            GROUP_RESOURCE: self._group,
        }
        return describe[resource.resource_type](call, resource.resource_name)

    def _topic(self, call: Call[DescribeConfigsRequest], name: str) -> Entries:
        text = complaint(name)
        if text is not None:
            return ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, text)
        if name not in self._cluster.image.topics:
            return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
        own = self._cluster.image.configs_of(TOPIC_RESOURCE, name)
        return topic_entries(self._cluster.configs, call.broker_id, name, own)

    def _broker(self, call: Call[DescribeConfigsRequest], name: str) -> Entries:
        if not name:
            return shared_entries(self._cluster.configs)
        error = _other_broker(call, name, "expected {} or empty string, but received {}")
        return error or broker_entries(self._cluster.configs, call.broker_id)

    def _loggers(self, call: Call[DescribeConfigsRequest], name: str) -> Entries:
        if not name:
            return ApiError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
        error = _other_broker(call, name, "expected {} but received {}")
        return error or _logger_entries()

    def _client_metrics(self, _call: Call[DescribeConfigsRequest], name: str) -> Entries:
        if not name:
            text = "Client metrics subscription name must not be empty"
            return ApiError(ErrorCode.INVALID_REQUEST, text)
        own = self._cluster.image.configs_of(CLIENT_METRICS, name)
        return client_metrics_entries(self._cluster.configs, own)

    def _group(self, call: Call[DescribeConfigsRequest], name: str) -> Entries:
        if not name:
            return ApiError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        own = self._cluster.image.configs_of(GROUP_RESOURCE, name)
        return group_entries(self._cluster.configs, call.broker_id, name, own)

    # -- AlterConfigs, IncrementalAlterConfigs ---------------------------------------------

    def _alterations(self, call: Call[AlterConfigsRequest]) -> Steps[AlterConfigsResponse | None]:
        errors = yield from self._altered(call, call.request.resources, legacy)
        return AlterConfigsResponse(
            responses=tuple(
                AlterConfigsResourceResponse(
                    error_code=error.code,
                    error_message=error.message,
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                )
                for each, error in zip(call.request.resources, errors, strict=True)
            )
        )

    def _increments(
        self, call: Call[IncrementalAlterConfigsRequest]
    ) -> Steps[IncrementalAlterConfigsResponse | None]:
        errors = yield from self._altered(call, call.request.resources, incremental)
        return IncrementalAlterConfigsResponse(
            responses=tuple(
                IncrementalResourceResponse(
                    error_code=error.code,
                    error_message=error.message,
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                )
                for each, error in zip(call.request.resources, errors, strict=True)
            )
        )

    def _altered(
        self, call: AlterCall, resources: tuple[R, ...], write: ConfigWrite[R]
    ) -> Steps[list[ApiError]]:
        keys = [f"{each.resource_type}/{each.resource_name}" for each in resources]
        twice = duplicates(keys)
        once = ApiError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        errors = []
        for key, each in zip(keys, resources, strict=True):
            yield _AN_ALTERATION
            errors.append(once if key in twice else self._altered_one(call, each, write))
        return errors

    def _altered_one(self, call: AlterCall, resource: R, write: ConfigWrite[R]) -> ApiError:
        error = write_error(self._cluster, call, resource)
        if error is not None and (error.is_failure or resource.resource_type == BROKER_LOGGER):
            return error
        refusal = self._refusal(call, resource, Operation.ALTER_CONFIGS)
        if refusal is not None:
            return told(refusal)
        error = elr_error(self._cluster, resource)
        if error.is_failure:
            return error
        change = write(self._cluster, resource)
        if isinstance(change, ApiError):
            return change
        if change.values and not call.request.validate_only:
            self._cluster.change(change)
        return NO_ERROR

    # -- ListConfigResources ---------------------------------------------------------------

    def _list(self, call: Call[ListConfigResourcesRequest]) -> ListConfigResourcesResponse:
        if not self._cluster.allows_cluster(call, Operation.DESCRIBE_CONFIGS):
            return ListConfigResourcesResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        kinds = [CLIENT_METRICS]
        if call.context.api_version >= _TYPED_SINCE:
            kinds = list(dict.fromkeys(call.request.resource_types)) or list(_KNOWN)
        if any(kind not in _KNOWN for kind in kinds):
            return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        return ListConfigResourcesResponse(
            config_resources=tuple(
                ConfigResource(name, kind) for kind in kinds for name in self._names(kind)
            )
        )

    def _names(self, kind: int) -> list[str]:
        if kind == TOPIC_RESOURCE:
            return list(self._cluster.image.topics)
        if kind in {BROKER_RESOURCE, BROKER_LOGGER}:
            return [str(each) for each in self._cluster.settings.broker_ids]
        return [name for of, name in self._cluster.image.configs if of == kind]


def _other_broker(call: Call[DescribeConfigsRequest], name: str, wanted: str) -> ApiError | None:
    """The error of a resource name that is not the id of the broker asked, else None."""
    broker_id = java_int(name)
    if broker_id is None:
        text = f"Broker id must be an integer, but it is: {name}"
        return ApiError(ErrorCode.INVALID_REQUEST, text)
    if broker_id == call.broker_id:
        return None
    text = f"Unexpected broker id, {wanted.format(call.broker_id, name)}"
    return ApiError(ErrorCode.INVALID_REQUEST, text)


def _logger_entries() -> list[Entry]:
    source = int(ConfigSource.DYNAMIC_BROKER_LOGGER)
    return [Entry(name=name, value=level, config_source=source) for name, level in _LOGGERS.items()]


def _described(
    call: Call[DescribeConfigsRequest], resource: DescribeConfigsResource, found: Entries
) -> DescribeConfigsResult:
    """The result of a resource, with the keys and synonyms that the request asks for."""
    if isinstance(found, ApiError):
        return DescribeConfigsResult(
            error_code=found.code,
            error_message=found.message,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
    keys = resource.configuration_keys
    if keys:
        found = [entry for entry in found if entry.name in keys]
    if not call.request.include_synonyms:
        found = [replace(entry, synonyms=()) for entry in found]
    return DescribeConfigsResult(
        error_code=ErrorCode.NONE,
        error_message="",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=tuple(found),
    )
