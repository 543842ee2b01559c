"""Authorization by the ACL rules in the metadata, as Kafka's StandardAuthorizer does it.

Source: kafka trunk, metadata/.../authorizer/StandardAuthorizer.java, StandardAuthorizerData.java.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from coordinator_sim.broker.metadata.changes import AclCreated
from coordinator_sim.broker.metadata.image import MetadataImage
from coordinator_sim.broker.security.authorizer import (
    WILDCARD,
    Acl,
    AclAuthorizer,
    Operation,
    ResourceType,
)

RESOURCE_TYPES: Final = {
    2: ResourceType.TOPIC,
    3: ResourceType.GROUP,
    4: ResourceType.CLUSTER,
    5: ResourceType.TRANSACTIONAL_ID,
    6: ResourceType.DELEGATION_TOKEN,
    7: ResourceType.USER,
}
"""Resource types by Kafka's number. Source: ResourceType.java."""
_ANY_NAME: Final = "hardcode"
"""The resource name that Kafka tries first in authorizeByResourceType."""
_ANYBODY: Final = "User:*"
_MOST_DECISIONS: Final = 10_000
"""Size of the cache of decisions, which is dropped when the rules change."""
LITERAL: Final = 3
PREFIXED: Final = 4
DENY: Final = 2
ALLOW: Final = 3


class ImageAuthorizer:
    """Decides by the current rules of the metadata.

    Args:
        image: The metadata with the rules.
        super_users: `super.users`.
        allow_if_no_acl: `allow.everyone.if.no.acl.found`.
    """

    def __init__(
        self,
        image: MetadataImage,
        *,
        super_users: Iterable[str] = (),
        allow_if_no_acl: bool = False,
    ) -> None:
        self._image = image
        self._super_users = frozenset(super_users)
        self._allow_if_no_acl = allow_if_no_acl
        self._version = -1
        self._named: dict[tuple[ResourceType, str], list[Acl]] = {}
        self._prefixed: dict[tuple[ResourceType, str], list[Acl]] = {}
        self._prefix_lengths: tuple[int, ...] = ()
        self._decided: dict[tuple[Operation, ResourceType, str, str, str], bool] = {}

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
        if self._version != self._image.acl_version:
            self._read()
        asked = (operation, resource_type, name, principal, host)
        decision = self._decided.get(asked)
        if decision is None:
            about = self._rules_about(resource_type, name)
            rules = AclAuthorizer(about, allow_if_no_acl=self._allow_if_no_acl)
            decision = rules.is_allowed(
                operation, resource_type, name, principal=principal, host=host
            )
            if len(self._decided) >= _MOST_DECISIONS:
                self._decided.clear()
            self._decided[asked] = decision
        return decision

    def _rules_about(self, resource_type: ResourceType, name: str) -> Iterator[Acl]:
        """The rules about a name: those of the name, of the wildcard, and of its prefixes."""
        yield from self._named.get((resource_type, name), ())
        if name != WILDCARD:
            yield from self._named.get((resource_type, WILDCARD), ())
        for length in self._prefix_lengths:
            if length > len(name):
                break
            yield from self._prefixed.get((resource_type, name[:length]), ())

    def is_allowed_somewhere(
        self, operation: Operation, resource_type: ResourceType, *, principal: str, host: str
    ) -> bool:
        """Whether a principal may do an operation on any resource of a type.

        Source: Authorizer.authorizeByResourceType.
        """
        at_a_name = self.is_allowed(
            operation, resource_type, _ANY_NAME, principal=principal, host=host
        )
        if at_a_name:
            return True
        spoken = [
            acl
            for acl in map(_acl, self._image.acls)
            if acl.resource_type is resource_type
            and acl.principal in {principal, _ANYBODY}
            and acl.host in {host, WILDCARD}
            and acl.operation in {operation, Operation.ALL}
        ]
        denied = [acl for acl in spoken if not acl.allows]
        if any(acl.name == WILDCARD and not acl.is_prefix for acl in denied):
            return False
        return any(acl.allows and _is_left(acl, denied) for acl in spoken)

    def _read(self) -> None:
        """Index the rules by resource type and name."""
        self._version = self._image.acl_version
        self._named.clear()
        self._prefixed.clear()
        self._decided.clear()
        for rule in self._image.acls:
            acl = _acl(rule)
            if acl.is_prefix:
                self._prefixed.setdefault((acl.resource_type, acl.name), []).append(acl)
            else:
                self._named.setdefault((acl.resource_type, acl.name), []).append(acl)
        self._prefix_lengths = tuple(sorted({len(name) for _, name in self._prefixed}))


def _is_left(allowed: Acl, denied: list[Acl]) -> bool:
    """Whether DENY rules leave something of an ALLOW rule."""
    if allowed.name == WILDCARD and not allowed.is_prefix:
        return True
    covered = any(acl.is_prefix and allowed.name.startswith(acl.name) for acl in denied)
    same = any(
        not acl.is_prefix and not allowed.is_prefix and acl.name == allowed.name for acl in denied
    )
    return not covered and not same


def _acl(rule: AclCreated) -> Acl:
    return Acl(
        operation=Operation(rule.operation),
        resource_type=RESOURCE_TYPES[rule.resource_type],
        name=rule.resource_name,
        principal=rule.principal,
        host=rule.host,
        is_prefix=rule.pattern_type == PREFIXED,
        allows=rule.permission_type == ALLOW,
    )
