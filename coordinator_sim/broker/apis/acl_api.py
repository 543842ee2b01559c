"""DescribeAcls, CreateAcls, DeleteAcls.

Source: kafka trunk, AclApis.scala; AclControlManager.java; clients/.../common/resource
/ResourcePatternFilter.java, acl/AccessControlEntryFilter.java, requests/{Describe,Create,
Delete}AclsRequest.java (which requests fail to parse).
"""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from coordinator_sim.broker.apis.administration import NO_ERROR, ApiError, told
from coordinator_sim.broker.cluster_parts import ClusterParts
from coordinator_sim.broker.contract import Call, Handlers
from coordinator_sim.broker.metadata.changes import AclCreated, AclDeleted
from coordinator_sim.broker.security.authorizer import CLUSTER_NAME, WILDCARD, Operation
from coordinator_sim.broker.security.image_authorizer import PREFIXED, RESOURCE_TYPES
from coordinator_sim.errors import DataError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.format.steps import Steps
from coordinator_sim.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from coordinator_sim.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from coordinator_sim.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

_RULES_AT_ONCE: Final = 1_000
_A_RULE: Final = 2
_A_CHANGE: Final = 20
"""Costs of comparing a rule with a filter, and of a metadata change; see `log.format.steps`."""
_ANY: Final = 1
_MATCH: Final = 2
_CLUSTER: Final = 4
_UNKNOWN: Final = 0
_OPERATIONS: Final = range(2, 16)
_PATTERNS: Final = range(1, 5)
_PERMISSIONS: Final = range(1, 4)
_NO_AUTHORIZER: Final = ApiError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
_UNGUARDED: Final = ApiError(
    ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker"
)
_DONE: Final = ApiError(ErrorCode.NONE, "")
_REFUSED: Final = told(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


class _AclFilter(Struct, frozen=True):
    """A filter that selects ACL rules; None and ANY match everything."""

    resource_type: int
    name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission_type: int

    def error(self) -> ApiError:
        """The error of a deletion by this filter. Source: AclControlManager.validateFilter."""
        is_known = self.resource_type in (_ANY, *RESOURCE_TYPES) and self.pattern_type in _PATTERNS
        if not is_known:
            return ApiError(ErrorCode.INVALID_REQUEST, "Unknown patternFilter.")
        if self.operation in (_ANY, *_OPERATIONS) and self.permission_type in _PERMISSIONS:
            return NO_ERROR
        return ApiError(ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")

    def matches(self, acl: AclCreated) -> bool:
        """Whether the filter selects a rule."""
        entry = (
            self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (_ANY, acl.operation)
            and self.permission_type in (_ANY, acl.permission_type)
        )
        return entry and self._matches_resource(acl)

    def _matches_resource(self, acl: AclCreated) -> bool:
        if self.resource_type not in (_ANY, acl.resource_type):
            return False
        if self.pattern_type not in (_ANY, _MATCH, acl.pattern_type):
            return False
        if self.name is None or self.name == acl.resource_name:
            return self.name is None or self.pattern_type != _MATCH or self._covers(acl)
        return self.pattern_type == _MATCH and self._covers(acl)

    def _covers(self, acl: AclCreated) -> bool:
        """Whether the rule applies to the filter's name: equal, prefix or wildcard."""
        name = self.name or ""
        if acl.pattern_type == PREFIXED:
            return name.startswith(acl.resource_name)
        return acl.resource_name in (name, WILDCARD)


class _RulesByName:
    """All rules, indexed by name: a filter that names a resource searches only that name's rules.

    A filter without a name, or with a MATCH pattern, searches all rules. Kafka searches all rules
    for every filter (AclControlManager.deleteAclsForFilter).

    Args:
        acls: The rules, in order of creation.
    """

    __slots__ = ("_all", "_known", "_named")

    def __init__(self, acls: Iterable[AclCreated]) -> None:
        self._all = tuple(acls)
        self._known: dict[_AclFilter, list[AclCreated]] = {}
        self._named: dict[str, list[AclCreated]] = {}
        for acl in self._all:
            self._named.setdefault(acl.resource_name, []).append(acl)

    def matching(self, wanted: _AclFilter) -> Steps[list[AclCreated]]:
        """The rules that a filter selects, in order of creation."""
        if wanted not in self._known:
            asked: Sequence[AclCreated] = self._all
            if wanted.name is not None and wanted.pattern_type != _MATCH:
                asked = self._named.get(wanted.name, ())
            found: list[AclCreated] = []
            for start in range(0, len(asked), _RULES_AT_ONCE):
                some = asked[start : start + _RULES_AT_ONCE]
                found += [acl for acl in some if wanted.matches(acl)]
                yield len(some) * _A_RULE
            self._known[wanted] = found
        return self._known[wanted]


class AclApi:
    """Answers DescribeAcls, CreateAcls and DeleteAcls.

    Args:
        cluster: The parts of the cluster.
    """

    def __init__(self, cluster: ClusterParts) -> None:
        self._cluster = cluster

    def handlers(self) -> Handlers:
        """Handlers of the three ACL APIs."""
        return {
            ApiKey.DESCRIBE_ACLS: self._describe,
            ApiKey.CREATE_ACLS: self._create,
            ApiKey.DELETE_ACLS: self._cluster.jobs.handler(self._deletion),
        }

    def _describe(self, call: Call[DescribeAclsRequest]) -> DescribeAclsResponse:
        wanted = _filter(call.request)
        if not self._cluster.allows_cluster(call, Operation.DESCRIBE):
            return _described(_REFUSED)
        if self._cluster.access.is_open:
            return _described(_UNGUARDED)
        resources: dict[tuple[int, str, int], list[AclDescription]] = {}
        for acl in self._cluster.image.acls:
            if wanted.matches(acl):
                place = (acl.resource_type, acl.resource_name, acl.pattern_type)
                resources.setdefault(place, []).append(_entry(acl))
        found = (
            DescribeAclsResource(
                resource_type=kind, resource_name=name, pattern_type=pattern, acls=tuple(acls)
            )
            for (kind, name, pattern), acls in resources.items()
        )
        return _described(_DONE, tuple(found))

    def _create(self, call: Call[CreateAclsRequest]) -> CreateAclsResponse:
        asked = [_rule(each) for each in call.request.creations]
        refused: ApiError | None = None
        if not self._cluster.allows_cluster(call, Operation.ALTER):
            refused = ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        elif self._cluster.access.is_open:
            refused = _NO_AUTHORIZER
        elif any(_is_vague(acl) for acl in asked):
            refused = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        outcomes = (refused or self._created(acl) for acl in asked)
        return CreateAclsResponse(
            results=tuple(AclCreationResult(each.code, each.message) for each in outcomes)
        )

    def _created(self, acl: AclCreated) -> ApiError:
        text = _rule_complaint(acl)
        if text is not None:
            return ApiError(ErrorCode.INVALID_REQUEST, text)
        if acl not in self._cluster.image.acls:
            self._cluster.change(acl)
        return _DONE

    def _deletion(self, call: Call[DeleteAclsRequest]) -> Steps[DeleteAclsResponse | None]:
        filters = [_filter(each) for each in call.request.filters]
        refused: ApiError | None = None
        if not self._cluster.allows_cluster(call, Operation.ALTER):
            refused = ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        elif self._cluster.access.is_open:
            refused = _NO_AUTHORIZER
        if refused is not None:
            result = DeleteAclsFilterResult(refused.code, refused.message)
            return DeleteAclsResponse(filter_results=(result,) * len(filters))
        # All filters see the same rules, so two filters may select the same rule.
        errors = [each.error() for each in filters]
        rules = _RulesByName(self._cluster.image.acls)
        deleted: dict[AclCreated, DeleteAclsMatchingAcl] = {}
        results: list[DeleteAclsFilterResult] = []
        for each, error in zip(filters, errors, strict=True):
            found = [] if error.is_failure else (yield from rules.matching(each))
            yield len(found) + 1
            for acl in found:
                if acl not in deleted:
                    deleted[acl] = DeleteAclsMatchingAcl(
                        error_code=ErrorCode.NONE,
                        error_message=None,
                        resource_type=acl.resource_type,
                        resource_name=acl.resource_name,
                        pattern_type=acl.pattern_type,
                        principal=acl.principal,
                        host=acl.host,
                        operation=acl.operation,
                        permission_type=acl.permission_type,
                    )
            selected = tuple(map(deleted.__getitem__, found))
            results.append(DeleteAclsFilterResult(error.code, error.message, selected))
        # Another request may have deleted some of them meanwhile.
        for acl in deleted:
            if acl in self._cluster.image.acls:
                self._cluster.change(AclDeleted(acl))
                yield _A_CHANGE
        return DeleteAclsResponse(filter_results=tuple(results))


def _described(
    error: ApiError, resources: tuple[DescribeAclsResource, ...] = ()
) -> DescribeAclsResponse:
    return DescribeAclsResponse(
        error_code=error.code, error_message=error.message, resources=resources
    )


def _entry(acl: AclCreated) -> AclDescription:
    return AclDescription(
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )


def _filter(asked: DescribeAclsRequest | DeleteAclsFilter) -> _AclFilter:
    """The filter of a request.

    Raises:
        DataError: a field of the filter holds the number UNKNOWN.
    """
    found = _AclFilter(
        resource_type=asked.resource_type_filter,
        name=asked.resource_name_filter,
        pattern_type=asked.pattern_type_filter,
        principal=asked.principal_filter,
        host=asked.host_filter,
        operation=asked.operation,
        permission_type=asked.permission_type,
    )
    numbers = (
        found.resource_type,
        found.pattern_type,
        found.operation,
        found.permission_type,
    )
    if _UNKNOWN in numbers:
        raise DataError("a filter of ACLs with unknown elements")
    return found


def _rule(asked: AclCreation) -> AclCreated:
    """The rule of an entry of CreateAcls.

    Raises:
        DataError: a field of the entry holds the number UNKNOWN.
    """
    acl = AclCreated(
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
        pattern_type=asked.resource_pattern_type,
        principal=asked.principal,
        host=asked.host,
        operation=asked.operation,
        permission_type=asked.permission_type,
    )
    if _UNKNOWN in (acl.resource_type, acl.pattern_type, acl.operation, acl.permission_type):
        raise DataError("a rule with unknown elements")
    return acl


def _is_vague(acl: AclCreated) -> bool:
    """Whether a rule has ANY or MATCH somewhere, as only filters may; it cannot be created.

    Source: ResourcePattern.java, AccessControlEntry.java (their constructors throw).
    """
    kinds = (acl.resource_type, acl.operation, acl.permission_type)
    return _ANY in kinds or acl.pattern_type in {_ANY, _MATCH}


def _rule_complaint(acl: AclCreated) -> str | None:
    """What is wrong with a rule, in Kafka's words; None when nothing is."""
    if acl.resource_type == _CLUSTER and acl.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not acl.resource_name:
        return "Invalid empty resource name"
    for name, number, known in (
        ("resourceType", acl.resource_type, RESOURCE_TYPES),
        ("patternType", acl.pattern_type, _PATTERNS),
        ("operation", acl.operation, _OPERATIONS),
        ("permissionType", acl.permission_type, _PERMISSIONS),
    ):
        if number not in known:
            return f"Invalid {name} UNKNOWN"
    if ":" not in acl.principal:
        return (
            f"Could not parse principal from `{acl.principal}` (no colon is present separating "
            "the principal type from the principal name)"
        )
    return None
