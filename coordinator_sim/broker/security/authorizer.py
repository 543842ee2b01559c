"""Authorization: the interface that a broker asks before it handles a request, and ACL rules.

This module knows no requests: the API modules choose operation and resource.

Source: kafka trunk, server-common Authorizer.java; metadata/.../authorizer/StandardAuthorizerData
.java (findAclRule, checkSection, findResult); server AclEntry.java.
"""

from collections.abc import Iterable
from enum import Enum, IntEnum, unique
from typing import Final, Protocol, runtime_checkable

from msgspec import Struct

WILDCARD: Final = "*"
"""Resource name or host that matches any; the principal is `User:*`."""
CLUSTER_NAME: Final = "kafka-cluster"
"""The one name of a resource of type cluster."""
_ANYBODY: Final = "User:*"


@unique
class Operation(IntEnum):
    """An operation on a resource, by Kafka's number. Source: AclOperation.java."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


OLD_GROUP_OPERATIONS: Final = (Operation.READ, Operation.DESCRIBE, Operation.DELETE)
"""What may be done to a group that has no settings of its own."""
GROUP_OPERATIONS: Final = (
    *OLD_GROUP_OPERATIONS,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
"""What may be done to a group."""


@unique
class ResourceType(Enum):
    """Type of a protected resource."""

    TOPIC = "topic"
    GROUP = "group"
    CLUSTER = "cluster"
    TRANSACTIONAL_ID = "transactional-id"
    DELEGATION_TOKEN = "delegation-token"  # noqa: S105 - the name of a type
    USER = "user"


class Authorizer(Protocol):
    """Decides on single operations. Without an authorizer everything is allowed."""

    def is_allowed(
        self,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        *,
        principal: str,
        host: str,
    ) -> bool:
        """Whether a principal may do an operation on a resource from a host.

        Args:
            operation: The operation; never `ALL`.
            resource_type: Type of the resource.
            name: Name of the resource; `CLUSTER_NAME` for the cluster.
            principal: Type and name, for example `User:alice`.
            host: An address without the slash that Java prints before it.
        """
        ...


@runtime_checkable
class KnowsItsRules(Protocol):
    """An authorizer that can tell whether its rules allow an operation on any resource."""

    def is_allowed_somewhere(
        self, operation: Operation, resource_type: ResourceType, *, principal: str, host: str
    ) -> bool:
        """Whether the principal may do the operation on some resource of the type."""
        ...


class Acl(Struct, frozen=True, kw_only=True):
    """One ACL rule.

    Args:
        operation: The operation; `ALL` for every one.
        name: Name of the resource. A literal `*` matches all.
        is_prefix: Whether `name` is a prefix of the matched names.
        principal: Principal, for example `User:alice`; `User:*` for everybody.
        host: An address, or `*`.
        allows: True for ALLOW, False for DENY.
    """

    operation: Operation
    resource_type: ResourceType
    name: str
    principal: str
    host: str = WILDCARD
    is_prefix: bool = False
    allows: bool = True

    def covers(self, resource_type: ResourceType, name: str) -> bool:
        """Whether the rule is about this resource. Source: checkSection."""
        if resource_type is not self.resource_type:
            return False
        if self.is_prefix:
            return name.startswith(self.name)
        return self.name in (name, WILDCARD)

    def matches(self, operation: Operation, principal: str, host: str) -> bool:
        """Whether the rule applies to an operation of a principal. Source: findResult.

        ALLOW of most operations implies DESCRIBE; DENY does not.
        """
        if self.principal not in (principal, _ANYBODY) or self.host not in (host, WILDCARD):
            return False
        if self.operation is Operation.ALL or self.operation is operation:
            return True
        implied = _IMPLIED.get(operation, frozenset[Operation]())
        return self.allows and self.operation in implied


_IMPLIED: Final = {
    Operation.DESCRIBE: frozenset(
        {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    ),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
}
"""For each operation, those that imply it."""


class AclAuthorizer:
    """Decides by a list of rules: DENY wins over ALLOW, and without ALLOW nothing is allowed.

    Args:
        acls: Rules in any order.
        super_users: Principals that may do anything.
        allow_if_no_acl: `allow.everyone.if.no.acl.found`: the answer for a resource without any
            rule.
    """

    def __init__(
        self,
        acls: Iterable[Acl],
        *,
        super_users: Iterable[str] = (),
        allow_if_no_acl: bool = False,
    ) -> None:
        self._acls = tuple(acls)
        self._super_users = frozenset(super_users)
        self._allow_if_no_acl = allow_if_no_acl

    def is_allowed(
        self,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        *,
        principal: str,
        host: str,
    ) -> bool:
        """Whether a principal may do an operation on a resource; see `Authorizer.is_allowed`."""
        if principal in self._super_users:
            return True
        about = [acl for acl in self._acls if acl.covers(resource_type, name)]
        if not about:
            return self._allow_if_no_acl
        said = [acl.allows for acl in about if acl.matches(operation, principal, host)]
        return bool(said) and all(said)


def operation_bits(operations: Iterable[Operation]) -> int:
    """Operations as a bit field, each at its number. Source: Utils.to32BitField."""
    bits = 0
    for operation in operations:
        bits |= 1 << operation
    return bits
