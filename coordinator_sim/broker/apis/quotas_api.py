"""DescribeClientQuotas and AlterClientQuotas.

Source: kafka trunk, ControllerApis.handleAlterClientQuotas; ClientQuotaControlManager.java;
ClientQuotasImage.describe; QuotaConfig.java.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from coordinator_sim.broker.apis.administration import NO_ERROR, ApiError, told
from coordinator_sim.broker.cluster_parts import ClusterParts
from coordinator_sim.broker.contract import Call, Handlers
from coordinator_sim.broker.metadata.changes import QuotaEntity, QuotaSet
from coordinator_sim.broker.quotas.client_quotas import CLIENT_ID, IP, USER
from coordinator_sim.broker.security.authorizer import Operation
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.orders.iteration_order import java_hash_order
from coordinator_sim.kafka.orders.java_map import sized_capacity
from coordinator_sim.kafka.partitioning import java_string_hash
from coordinator_sim.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
    OpData,
)
from coordinator_sim.messages.alter_client_quotas import EntryData as AlteredEntry
from coordinator_sim.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

_TYPES: Final = (CLIENT_ID, IP, USER)
_LARGEST_INT: Final = (1 << 31) - 1
_LARGEST_LONG: Final = (1 << 63) - 1
_CLIENT_KEYS: Final[dict[str, int | None]] = {
    "producer_byte_rate": _LARGEST_LONG,
    "consumer_byte_rate": _LARGEST_LONG,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
"""Quota keys, each with the largest value of an integer quota; None for a fractional one."""
_IP_KEYS: Final[dict[str, int | None]] = {"connection_creation_rate": _LARGEST_INT}
_FRACTION: Final = 1e-6
_EXACT, _DEFAULT, _SPECIFIED = 0, 1, 2


class _Filter(Struct, frozen=True):
    """A filter of client entities: types with exact names, and types with any name."""

    exact: dict[str, str | None]
    types: tuple[str, ...]
    strict: bool

    def matches(self, entity: QuotaEntity) -> bool:
        parts = dict(entity)
        if self.strict and len(parts) != len(self.exact) + len(self.types):
            return False
        named = all(kind in parts and parts[kind] == name for kind, name in self.exact.items())
        return named and all(kind in parts for kind in self.types)


class QuotasApi:
    """Answers DescribeClientQuotas and AlterClientQuotas.

    Args:
        cluster: The parts of the cluster.
    """

    def __init__(self, cluster: ClusterParts) -> None:
        self._cluster = cluster

    def handlers(self) -> Handlers:
        """Handlers of DescribeClientQuotas and AlterClientQuotas."""
        return {
            ApiKey.DESCRIBE_CLIENT_QUOTAS: self._describe,
            ApiKey.ALTER_CLIENT_QUOTAS: self._alter,
        }

    def _describe(self, call: Call[DescribeClientQuotasRequest]) -> DescribeClientQuotasResponse:
        if not self._cluster.allows_cluster(call, Operation.DESCRIBE_CONFIGS):
            return _undescribed(ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
        wanted = _filter(call.request)
        if isinstance(wanted, ApiError):
            return _undescribed(wanted)
        quotas = self._cluster.image.quotas
        in_order = java_hash_order(quotas, _capacity(len(quotas)), hash_of=_hash_of)
        entries = tuple(_entry(each, quotas[each]) for each in in_order if wanted.matches(each))
        return DescribeClientQuotasResponse(
            error_code=ErrorCode.NONE, error_message="", entries=entries
        )

    def _alter(self, call: Call[AlterClientQuotasRequest]) -> AlterClientQuotasResponse:
        """One answer an entity, in the order of a map; an entity named twice is refused then.

        Source: ClientQuotaControlManager.alterClientQuotas; AlterClientQuotasResponse.
        """
        if not self._cluster.allows_cluster(call, Operation.ALTER_CONFIGS):
            refused = told(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            return AlterClientQuotasResponse(
                entries=tuple(
                    _answered([(e.entity_type, e.entity_name) for e in entry.entity], refused)
                    for entry in call.request.entries
                )
            )
        results: dict[QuotaEntity, ApiError] = {}
        for entry in call.request.entries:
            entity = tuple(sorted(_parts(entry).items()))
            if entity in results:
                results[entity] = _ignored(entry)
            else:
                results[entity] = self._altered(call, entity, entry)
        return AlterClientQuotasResponse(
            entries=tuple(
                _answered(_in_order(dict(entity)).items(), results[entity])
                for entity in java_hash_order(results, hash_of=_hash_of)
            )
        )

    def _altered(
        self, call: Call[AlterClientQuotasRequest], entity: QuotaEntity, entry: AlteredEntry
    ) -> ApiError:
        keys = [operation.key for operation in entry.ops]
        error = _entity_error(entity) or _keys_error(keys, entry)
        if error is not None:
            return error
        known = _IP_KEYS if entity[0][0] == IP else _CLIENT_KEYS
        for operation in entry.ops:
            if not operation.remove:
                error = _value_error(known, operation.key, operation.value)
                if error is not None:
                    return error
        if not call.request.validate_only:
            self._set(entity, entry.ops)
        return NO_ERROR

    def _set(self, entity: QuotaEntity, operations: tuple[OpData, ...]) -> None:
        for operation in operations:
            value = None if operation.remove else operation.value
            current = self._cluster.image.quotas.get(entity, {}).get(operation.key)
            if value != current:
                self._cluster.change(QuotaSet(entity, operation.key, value))


def _entry(entity: QuotaEntity, quotas: dict[str, float]) -> EntryData:
    """Source: ClientQuotasImage.toDescribeEntry."""
    keys = java_hash_order(quotas, _capacity(len(quotas)))
    return EntryData(
        tuple(EntityData(kind, name) for kind, name in _in_order(dict(entity)).items()),
        tuple(ValueData(key, quotas[key]) for key in keys),
    )


def _capacity(size: int) -> int:
    """The number of buckets of a map of the metadata image, which is filled anew at each change.

    UNSPECIFIED: after several removals at once Kafka's table is larger, until the next change.

    Source: ClientQuotasDelta.apply, ClientQuotaDelta.apply: a HashMap with room for as many
    entries as there were before, which then grows.
    """
    return sized_capacity(-(-size * 4 // 3))


def _hash_of(entity: QuotaEntity) -> int:
    """The 32-bit hash of an entity. Source: ClientQuotaEntity.hashCode; AbstractMap.hashCode."""
    parts = (
        java_string_hash(kind) ^ (0 if name is None else java_string_hash(name))
        for kind, name in entity
    )
    return 31 + sum(parts)


def _in_order(parts: dict[str, str | None]) -> dict[str, str | None]:
    """The parts of an entity in the order of Kafka's map."""
    return {kind: parts[kind] for kind in java_hash_order(parts)}


def _undescribed(error: ApiError) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(
        error_code=error.code, error_message=error.message, entries=None
    )


def _answered(
    parts: Iterable[tuple[str, str | None]], error: ApiError
) -> AlterClientQuotasResponseEntryData:
    return AlterClientQuotasResponseEntryData(
        error_code=error.code,
        error_message=error.message,
        entity=tuple(AlterClientQuotasResponseEntityData(kind, name) for kind, name in parts),
    )


def _parts(entry: AlteredEntry) -> dict[str, str | None]:
    """The entity of a change, by type; of a type named twice the last name counts.

    Source: AlterClientQuotasRequest.entries, which fills a map.
    """
    return _in_order({part.entity_type: part.entity_name for part in entry.entity})


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)


def _entity_error(entity: QuotaEntity) -> ApiError | None:
    if not entity:
        return _invalid("Invalid empty client quota entity")
    for kind, name in entity:
        if kind not in _TYPES:
            return _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            return _invalid(f"Empty {kind} not supported")
    kinds = [kind for kind, _ in entity]
    if IP in kinds and len(kinds) > 1:
        text = (
            "Invalid quota entity combination, IP entity shouldnot be combined with User or "
            "ClientId"
        )
        return _invalid(text)
    return None


def _keys_error(keys: list[str], entry: AlteredEntry) -> ApiError | None:
    return None if len(dict.fromkeys(keys)) == len(keys) else _ignored(entry)


def _ignored(entry: AlteredEntry) -> ApiError:
    parts = ", ".join(f"{kind}={name}" for kind, name in _parts(entry).items())
    return _invalid(f"Ignoring duplicate entity ClientQuotaEntity(entries={{{parts}}})")


def _value_error(known: dict[str, int | None], key: str, value: float) -> ApiError | None:
    if key not in known:
        return _invalid(f"Invalid configuration key {key}")
    if value <= 0:
        return _invalid(f"Quota {key} must be greater than 0")
    largest = known[key]
    if largest is None:
        return None
    if value > largest:
        kind = "an INT" if largest == _LARGEST_INT else "a LONG"
        return _invalid(f"Proposed value for {key} is too large for {kind}.")
    if value % 1 > _FRACTION:
        return _invalid(f"{key} cannot be a fractional value.")
    return None


def _filter(request: DescribeClientQuotasRequest) -> _Filter | ApiError:
    """The filter of a request, or its error. Source: ClientQuotasImage.describe."""
    exact: dict[str, str | None] = {}
    types: list[str] = []
    for component in request.components:
        kind, match_type, match = component.entity_type, component.match_type, component.match
        error = _component_error(kind, match_type, match, seen=[*exact, *types])
        if error is not None:
            return error
        if match_type == _SPECIFIED:
            types.append(kind)
        else:
            exact[kind] = match
    kinds = [*exact, *types]
    if IP in kinds and len(kinds) > 1:
        text = (
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )
        return _invalid(text)
    return _Filter(exact, tuple(types), request.strict)


def _component_error(
    kind: str, match_type: int, match: str | None, *, seen: list[str]
) -> ApiError | None:
    if not kind:
        return _invalid("Invalid empty entity type.")
    if kind in seen:
        return _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
    if kind not in _TYPES:
        text = f"Unsupported entity type {kind}"
        return ApiError(ErrorCode.UNSUPPORTED_VERSION, text)
    if match_type == _EXACT and match is None:
        return _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
    if match_type in {_DEFAULT, _SPECIFIED} and match is not None:
        name = "DEFAULT" if match_type == _DEFAULT else "SPECIFIED"
        return _invalid(f"Request specified MATCH_TYPE_{name}, but also specified a match string.")
    if match_type not in {_EXACT, _DEFAULT, _SPECIFIED}:
        return _invalid(f"Unknown match type {match_type}")
    return None
