"""An access control list decides as Kafka's StandardAuthorizer does."""

import pytest

from coordinator_sim.broker.security.authorizer import (
    Acl,
    AclAuthorizer,
    Operation,
    ResourceType,
    operation_bits,
)

ALICE = "User:alice"
HOST = "10.0.0.1"


def rule(
    operation: Operation = Operation.READ,
    name: str = "g",
    *,
    principal: str = ALICE,
    host: str = "*",
    is_prefix: bool = False,
    allows: bool = True,
) -> Acl:
    """A rule about groups."""
    return Acl(
        operation=operation,
        resource_type=ResourceType.GROUP,
        name=name,
        principal=principal,
        host=host,
        is_prefix=is_prefix,
        allows=allows,
    )


def asked(
    authorizer: AclAuthorizer,
    operation: Operation = Operation.READ,
    name: str = "g",
    *,
    principal: str = ALICE,
    host: str = HOST,
) -> bool:
    """The answer about a group."""
    return authorizer.is_allowed(
        operation, ResourceType.GROUP, name, principal=principal, host=host
    )


def test_what_nobody_allows_is_forbidden() -> None:
    """Without a rule the answer is no, or what is set for resources without rules."""
    assert not asked(AclAuthorizer(()))
    assert asked(AclAuthorizer((), allow_if_no_acl=True))


def test_rules_about_others_close_the_resource() -> None:
    """allow.everyone.if.no.acl.found covers only resources that no rule names at all."""
    authorizer = AclAuthorizer((rule(principal="User:bob"),), allow_if_no_acl=True)
    assert not asked(authorizer)
    assert asked(authorizer, name="other")


@pytest.mark.parametrize(
    ("acl", "name", "allowed"),
    [
        (rule(name="g"), "g", True),
        (rule(name="g"), "g2", False),
        (rule(name="g", is_prefix=True), "g2", True),
        (rule(name="g2", is_prefix=True), "g", False),
        (rule(name="*"), "anything", True),
        (rule(name="*", is_prefix=True), "anything", False),
        (rule(principal="User:*"), "g", True),
        (rule(principal="User:bob"), "g", False),
        (rule(host=HOST), "g", True),
        (rule(host="10.0.0.2"), "g", False),
        (rule(Operation.ALL), "g", True),
        (rule(Operation.DELETE), "g", False),
    ],
)
def test_what_a_rule_is_about(acl: Acl, name: str, *, allowed: bool) -> None:
    """Names are literal, prefixes or the wildcard; principals and hosts exact or anybody."""
    assert asked(AclAuthorizer((acl,)), name=name) is allowed


def test_forbidden_wins() -> None:
    """One rule that forbids outweighs any number that allow, whatever their patterns."""
    allow, deny = rule(Operation.ALL), rule(name="*", allows=False)
    assert asked(AclAuthorizer((allow,)))
    assert not asked(AclAuthorizer((allow, deny)))
    assert not asked(AclAuthorizer((deny, allow)))


def test_rule_for_another_type() -> None:
    """A rule about a topic says nothing about a group of its name."""
    acl = Acl(operation=Operation.ALL, resource_type=ResourceType.TOPIC, name="g", principal=ALICE)
    assert not asked(AclAuthorizer((acl,)))


@pytest.mark.parametrize(
    "operation", [Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER]
)
def test_permission_implies_describe(operation: Operation) -> None:
    """Who may do anything to a resource may look at it; who may not do it may still look."""
    assert asked(AclAuthorizer((rule(operation),)), Operation.DESCRIBE)
    deny = AclAuthorizer((rule(Operation.DESCRIBE), rule(operation, allows=False)))
    assert asked(deny, Operation.DESCRIBE)


def test_permission_implies_describe_configs() -> None:
    """Who may change configurations may see them; READ does not help there."""
    wanted = Operation.DESCRIBE_CONFIGS
    assert asked(AclAuthorizer((rule(Operation.ALTER_CONFIGS),)), wanted)
    assert not asked(AclAuthorizer((rule(Operation.READ),)), wanted)


def test_super_user_may_do_anything() -> None:
    """No rule holds a super user."""
    authorizer = AclAuthorizer((rule(Operation.ALL, allows=False),), super_users=(ALICE,))
    assert asked(authorizer)


def test_operations_as_bits() -> None:
    """Each operation is the bit of its number."""
    assert operation_bits((Operation.READ, Operation.DESCRIBE)) == 0b1_0000_1000
