"""Who may do what: the question a broker asks before it works on a request, and an answer to it.

Nothing here knows requests: which question goes with which is in the modules of the APIs.

Source: kafka trunk, server-common Authorizer.java; metadata/.../authorizer/StandardAuthorizerData
.java (findAclRule, checkSection, findResult); server AclEntry.java.
"""

from collections.abc import Iterable
from enum import Enum, IntEnum, unique
from typing import Final, Protocol, runtime_checkable

from msgspec import Struct

WILDCARD: Final = "*"
"""As a resource name, a host: any. As a principal: `User:*`."""
CLUSTER_NAME: Final = "kafka-cluster"
"""The one name of a resource of type cluster."""
_ANYBODY: Final = "User:*"


@unique
class Operation(IntEnum):
    """What is done to a resource, by Kafka's number. Source: AclOperation.java."""

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


@unique
class ResourceType(Enum):
    """What kind of thing is protected."""

    TOPIC = "topic"
    GROUP = "group"
    CLUSTER = "cluster"
    TRANSACTIONAL_ID = "transactional-id"
    DELEGATION_TOKEN = "delegation-token"  # noqa: S105 - the name of a type
    USER = "user"


class Authorizer(Protocol):
    """Decides on single actions. Without one everything is allowed."""

    def is_allowed(
        self,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        *,
        principal: str,
        host: str,
    ) -> bool:
        """Whether a principal may do that from a host.

        Args:
            operation: Never `ALL`.
            resource_type: Of what it is done to.
            name: Of what it is done to; `CLUSTER_NAME` for the cluster.
            principal: Type and name, as `User:alice`.
            host: An address without the slash that Java prints before it.
        """
        ...


@runtime_checkable
class KnowsItsRules(Protocol):
    """An authorizer that can say whether its rules leave any name for a deed."""

    def is_allowed_somewhere(
        self, operation: Operation, resource_type: ResourceType, *, principal: str, host: str
    ) -> bool:
        """Whether there could be a resource of that type that the principal may do that to."""
        ...


class Acl(Struct, frozen=True, kw_only=True):
    """One rule of a list.

    Args:
        operation: What it is about; `ALL` for everything.
        name: Of the resource. A literal `*` stands for all of them.
        is_prefix: Whether `name` is the beginning of the names meant.
        principal: As `User:alice`; `User:*` for everybody.
        host: An address, or `*`.
        allows: False to forbid.
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
        """Whether the rule speaks of that deed of that principal. Source: findResult.

        To be allowed nearly anything is to be allowed to look; to be forbidden it is not.
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
"""For each operation, those whose permission includes it."""


class AclAuthorizer:
    """Decides by a list of rules: what is forbidden stays so, what nothing allows is forbidden.

    Args:
        acls: In any order.
        super_users: Principals that may do anything.
        allow_if_no_acl: `allow.everyone.if.no.acl.found`: the answer for a resource that no rule is
            about.
    """

    __slots__ = ("_acls", "_allow_if_no_acl", "_super_users")

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
        """As `Authorizer.is_allowed`."""
        if principal in self._super_users:
            return True
        about = [acl for acl in self._acls if acl.covers(resource_type, name)]
        if not about:
            return self._allow_if_no_acl
        said = [acl.allows for acl in about if acl.matches(operation, principal, host)]
        return bool(said) and all(said)


def operation_bits(operations: Iterable[Operation]) -> int:
    """Operations as a field of bits, each at its number. Source: Utils.to32BitField."""
    bits = 0
    for operation in operations:
        bits |= 1 << operation
    return bits
