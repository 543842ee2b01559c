"""Rules and rights: kept by the three APIs, and asked by all others."""

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim_conformance.field_frames import Fields
from tests.unit.broker.frames_client import DataClient

TOPIC, GROUP = 2, 3
LITERAL, PREFIXED = 3, 4
READ, DESCRIBE = 3, 8
DENY, ALLOW = 2, 3
ALICE, ADMIN = "User:alice", "User:admin"


@pytest.fixture
def guarded() -> Cluster:
    """A cluster with an authorizer, whose administrator may do anything."""
    given = {"authorizer.class.name": "StandardAuthorizer", "super.users": f"{ADMIN};User:other"}
    settings = ClusterSettings(given=given)
    return Cluster(settings, endpoint=lambda _id, _name: Endpoint("h", 1))


def client(cluster: Cluster, principal: str) -> DataClient:
    """A client that is known already."""
    found = DataClient(cluster)
    found.connection.principal = principal
    return found


def rule(name: str, operation: int, permission: int = ALLOW, pattern: int = LITERAL) -> Fields:
    """A rule of alice's about topics."""
    return {
        "resourceType": TOPIC,
        "resourceName": name,
        "resourcePatternType": pattern,
        "principal": ALICE,
        "host": "*",
        "operation": operation,
        "permissionType": permission,
    }


def create(cluster: Cluster, *rules: Fields, principal: str = ADMIN) -> list[int]:
    """Error codes of CreateAcls."""
    request = {"creations": list(rules)}
    answer = client(cluster, principal).call(ApiKey.CREATE_ACLS, 3, request)
    return [result["errorCode"] for result in answer["results"]]


def seen(cluster: Cluster, *names: str, principal: str = ALICE) -> dict[str, int]:
    """The error of each topic in Metadata."""
    request = {"topics": [{"name": name} for name in names], "allowAutoTopicCreation": False}
    answer = client(cluster, principal).call(ApiKey.METADATA, 9, request)
    return {topic["name"]: topic["errorCode"] for topic in answer["topics"]}


def filters(**fields: object) -> Fields:
    """A filter of all rules, but for these fields."""
    anything = {
        "resourceTypeFilter": 1,
        "resourceNameFilter": None,
        "patternTypeFilter": 1,
        "principalFilter": None,
        "hostFilter": None,
        "operation": 1,
        "permissionType": 1,
    }
    return anything | fields


def test_what_nothing_allows_is_refused(guarded: Cluster) -> None:
    """A topic that may not be described is refused whether it exists or not."""
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED

    assert seen(guarded, "orders") == {"orders": refused}
    assert create(guarded, rule("orders", READ)) == [0]
    assert seen(guarded, "orders") == {"orders": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert seen(guarded, "orders", principal=ADMIN)["orders"] != refused


def test_denial_wins_over_permission(guarded: Cluster) -> None:
    """A prefix allows, a name in it denies."""
    create(guarded, rule("team-", READ, pattern=PREFIXED), rule("team-secret", DESCRIBE, DENY))

    assert seen(guarded, "team-a", "team-secret") == {
        "team-a": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "team-secret": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }


def test_deleted_rule_counts_no_more(guarded: Cluster) -> None:
    """What a filter matches is deleted and told."""
    create(guarded, rule("orders", READ))
    request = {"filters": [filters(resourceNameFilter="orders")]}
    answer = client(guarded, ADMIN).call(ApiKey.DELETE_ACLS, 3, request)

    (result,) = answer["filterResults"]
    assert [acl["principal"] for acl in result["matchingAcls"]] == [ALICE]
    assert seen(guarded, "orders") == {"orders": ErrorCode.TOPIC_AUTHORIZATION_FAILED}


def test_filter_by_match_finds_what_counts_for_a_name(guarded: Cluster) -> None:
    """The name itself, its prefixes, and all topics."""
    create(
        guarded,
        rule("orders", READ),
        rule("ord", READ, pattern=PREFIXED),
        rule("*", READ),
        rule("other", READ),
    )
    asked = filters(resourceTypeFilter=TOPIC, resourceNameFilter="orders", patternTypeFilter=2)
    answer = client(guarded, ADMIN).call(ApiKey.DESCRIBE_ACLS, 3, asked)

    assert [each["resourceName"] for each in answer["resources"]] == ["orders", "ord", "*"]


def test_rules_are_for_those_who_may_alter_the_cluster(guarded: Cluster) -> None:
    """Others may neither make rules nor see them."""
    refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    assert create(guarded, rule("orders", READ), principal=ALICE) == [refused]
    answer = client(guarded, ALICE).call(ApiKey.DESCRIBE_ACLS, 3, filters())
    assert answer["errorCode"] == refused


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ([], ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        ([("other", ALLOW, LITERAL)], ErrorCode.NONE),
        (
            [("other", ALLOW, LITERAL), ("other", DENY, LITERAL)],
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ),
        (
            [("other", ALLOW, LITERAL), ("ot", DENY, PREFIXED)],
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ),
        ([("other", ALLOW, PREFIXED), ("other", DENY, LITERAL)], ErrorCode.NONE),
        ([("*", ALLOW, LITERAL), ("other", DENY, PREFIXED)], ErrorCode.NONE),
        ([("a", ALLOW, LITERAL), ("*", DENY, LITERAL)], ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ],
)
def test_producer_id_is_for_who_may_write_to_any_name(
    guarded: Cluster, given: list[tuple[str, int, int]], error: ErrorCode
) -> None:
    """The name need not be that of a topic; denials may leave none."""
    write = 4
    create(guarded, *(rule(name, write, allow, pattern) for name, allow, pattern in given))
    request = {"transactionalId": None, "transactionTimeoutMs": 0}

    answer = client(guarded, ALICE).call(ApiKey.INIT_PRODUCER_ID, 4, request)

    assert answer["errorCode"] == error


def test_without_an_authorizer_there_are_no_rules(cluster: Cluster) -> None:
    """Kafka says that security is off."""
    assert create(cluster, rule("orders", READ)) == [ErrorCode.SECURITY_DISABLED]


def test_rule_that_names_nobody_is_refused(guarded: Cluster) -> None:
    """A principal has a type; a rule of unknown kind ends the connection."""
    nobody = rule("orders", READ) | {"principal": "alice"}
    assert create(guarded, nobody) == [ErrorCode.INVALID_REQUEST]

    asker = client(guarded, ADMIN)
    with pytest.raises(IndexError):
        asker.call(ApiKey.CREATE_ACLS, 3, {"creations": [rule("x", 0)]})
    assert asker.closed is not None
