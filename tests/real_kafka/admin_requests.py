"""Requests of administration that a broker and a served cluster are both asked, in this order."""

from collections.abc import Iterable
from typing import Final

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.schema import ZERO_UUID
from coordinator_sim_conformance.field_frames import Fields

Asked = tuple[ApiKey, int, Fields]
"""API, version, fields."""

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
UNKNOWN_ID: Final = b"1" * 16
ANONYMOUS: Final = "User:ANONYMOUS"


def create(*topics: Fields, version: int = 7, only: bool = False) -> Asked:
    """CreateTopics."""
    fields = {"topics": list(topics), "timeoutMs": 30_000, "validateOnly": only}
    return ApiKey.CREATE_TOPICS, version, fields


def new(
    name: str,
    partitions: int = 1,
    factor: int = 1,
    assignments: Iterable[tuple[int, list[int]]] = (),
    **configs: str | None,
) -> Fields:
    """A topic to create; settings with underscores for dots."""
    return {
        "name": name,
        "numPartitions": partitions,
        "replicationFactor": factor,
        "assignments": [{"partitionIndex": p, "brokerIds": ids} for p, ids in assignments],
        "configs": [{"name": k.replace("_", "."), "value": v} for k, v in configs.items()],
    }


def told(*assignments: tuple[int, list[int]]) -> Asked:
    """A topic whose replicas the client chose."""
    return create(new("told", -1, -1, assignments))


def grow(name: str, count: int, *replicas: list[int], only: bool = False) -> Asked:
    """CreatePartitions."""
    assignments = [{"brokerIds": ids} for ids in replicas] or None
    topic = {"name": name, "count": count, "assignments": assignments}
    fields = {"topics": [topic], "timeoutMs": 1_000, "validateOnly": only}
    return ApiKey.CREATE_PARTITIONS, 3, fields


def delete(*topics: tuple[str | None, bytes]) -> Asked:
    """DeleteTopics 6."""
    named = [{"name": name, "topicId": topic_id} for name, topic_id in topics]
    return ApiKey.DELETE_TOPICS, 6, {"topics": named, "timeoutMs": 5_000}


def delete_named(*names: str, version: int = 5) -> Asked:
    """DeleteTopics of before ids."""
    return ApiKey.DELETE_TOPICS, version, {"topicNames": list(names), "timeoutMs": 5_000}


def elect(kind: int, topic: str, *partitions: int) -> Asked:
    """ElectLeaders."""
    asked = [{"topic": topic, "partitions": list(partitions)}]
    fields = {"electionType": kind, "topicPartitions": asked, "timeoutMs": 5_000}
    return ApiKey.ELECT_LEADERS, 2, fields


def move(topic: str, **replicas: list[int] | None) -> Asked:
    """AlterPartitionReassignments; keywords are p0, p1, ..."""
    partitions = [
        {"partitionIndex": int(name[1:]), "replicas": ids} for name, ids in replicas.items()
    ]
    fields = {"timeoutMs": 5_000, "topics": [{"name": topic, "partitions": partitions}]}
    return ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, fields


def metadata(*names: str, version: int = 12, **fields: object) -> Asked:
    """Metadata by name."""
    topics = [{"name": name, "topicId": ZERO_UUID} for name in names]
    return ApiKey.METADATA, version, {"topics": topics, **fields}


def pages(*names: str, limit: int = 2_000, cursor: tuple[str, int] | None = None) -> Asked:
    """DescribeTopicPartitions."""
    at = None if cursor is None else {"topicName": cursor[0], "partitionIndex": cursor[1]}
    topics = [{"name": name} for name in names]
    fields = {"topics": topics, "responsePartitionLimit": limit, "cursor": at}
    return ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, fields


def show(kind: int, name: str, *keys: str, version: int = 4, synonyms: bool = True) -> Asked:
    """DescribeConfigs."""
    resource = {"resourceType": kind, "resourceName": name, "configurationKeys": list(keys) or None}
    fields = {"resources": [resource], "includeSynonyms": synonyms, "includeDocumentation": False}
    return ApiKey.DESCRIBE_CONFIGS, version, fields


def alter(kind: int, name: str, *configs: tuple[str, int, str | None], only: bool = False) -> Asked:
    """IncrementalAlterConfigs."""
    entries = [{"name": k, "configOperation": o, "value": v} for k, o, v in configs]
    resource = {"resourceType": kind, "resourceName": name, "configs": entries}
    fields = {"resources": [resource], "validateOnly": only}
    return ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, fields


def replace(kind: int, name: str, **configs: str | None) -> Asked:
    """AlterConfigs; settings with underscores for dots."""
    entries = [{"name": k.replace("_", "."), "value": v} for k, v in configs.items()]
    resource = {"resourceType": kind, "resourceName": name, "configs": entries}
    return ApiKey.ALTER_CONFIGS, 2, {"resources": [resource], "validateOnly": False}


def resources(*kinds: int) -> Asked:
    """ListConfigResources."""
    return ApiKey.LIST_CONFIG_RESOURCES, 1, {"resourceTypes": list(kinds)}


def quota(entity: dict[str, str | None], *ops: tuple[str, float | None]) -> Asked:
    """AlterClientQuotas; a dash is an underscore in `entity`."""
    parts = [{"entityType": k.replace("_", "-"), "entityName": v} for k, v in entity.items()]
    changes = [{"key": k, "value": v or 0.0, "remove": v is None} for k, v in ops]
    entry = {"entity": parts, "ops": changes}
    return ApiKey.ALTER_CLIENT_QUOTAS, 1, {"entries": [entry], "validateOnly": False}


def quotas(*components: tuple[str, int, str | None], strict: bool = False) -> Asked:
    """DescribeClientQuotas."""
    asked = [{"entityType": k, "matchType": m, "match": v} for k, m, v in components]
    return ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, {"components": asked, "strict": strict}


_RULE: Final = ("principal", "host", "operation", "permissionType")


def rule(
    kind: int, name: str, pattern: int, who: str, *, does: int = 3, permission: int = 3
) -> Fields:
    """An entry of CreateAcls, for all hosts."""
    return {
        "resourceType": kind,
        "resourceName": name,
        "resourcePatternType": pattern,
        **dict(zip(_RULE, (who, "*", does, permission), strict=True)),
    }


def allow(*rules: Fields) -> Asked:
    """CreateAcls."""
    return ApiKey.CREATE_ACLS, 3, {"creations": list(rules)}


def filtered(**fields: object) -> Fields:
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


def rules(**fields: object) -> Asked:
    """DescribeAcls."""
    return ApiKey.DESCRIBE_ACLS, 3, filtered(**fields)


def drop(*filters: Fields) -> Asked:
    """DeleteAcls."""
    return ApiKey.DELETE_ACLS, 3, {"filters": list(filters)}


def scram(
    *, gone: Iterable[tuple[str, int]] = (), put: Iterable[tuple[str, int, int]] = ()
) -> Asked:
    """AlterUserScramCredentials."""
    fields = {
        "deletions": [{"name": name, "mechanism": number} for name, number in gone],
        "upsertions": [
            {
                "name": name,
                "mechanism": number,
                "iterations": iterations,
                "salt": b"salt",
                "saltedPassword": b"pw" * 16,
            }
            for name, number, iterations in put
        ],
    }
    return ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, fields


def scram_users(*names: str) -> Asked:
    """DescribeUserScramCredentials; of all without names."""
    users = [{"name": name} for name in names] or None
    return ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, {"users": users}


def described(*, endpoint: int = 1, operations: bool = False) -> Asked:
    """DescribeCluster."""
    fields = {"endpointType": endpoint, "includeClusterAuthorizedOperations": operations}
    return ApiKey.DESCRIBE_CLUSTER, 1, fields


def feature(name: str, level: int, kind: int = 1, *, version: int = 2, only: bool = False) -> Asked:
    """UpdateFeatures; kind 1 goes up, 2 down."""
    asked = {"feature": name, "maxVersionLevel": level, "upgradeType": kind}
    fields = {"timeoutMs": 5_000, "featureUpdates": [asked], "validateOnly": only}
    return ApiKey.UPDATE_FEATURES, version, fields


TOPICS: Final[tuple[Asked, ...]] = (
    create(new("a", 3)),
    create(new("a", 3)),
    create(new("a"), only=True),
    create(new("b")),
    create(new("c", -1, -1)),
    create(new("")),
    create(new(".")),
    create(new("a b")),
    create(new("x" * 250)),
    create(new("d", 0)),
    create(new("d", -2)),
    create(new("d", 1, 0)),
    create(new("d", 1, -2)),
    create(new("d", 1, 3)),
    create(new("d", 1, 1, [(0, [1])])),
    create(new("d", 1, -1, [(0, [1])])),
    told((0, [7])),
    told((0, [1, 1])),
    told((0, [])),
    told((1, [1])),
    told((0, [1]), (0, [1])),
    told((0, [1]), (1, [1])),
    create(new("twice"), new("twice")),
    create(new("e_f")),
    create(new("e.f")),
    create(new("__cluster_metadata")),
    create(new("g", foo="1")),
    create(new("g", retention_ms=None)),
    create(new("g", retention_ms="abc")),
    create(new("g", retention_ms="-5")),
    create(new("g", cleanup_policy="foo")),
    create(new("g2", cleanup_policy="")),
    create(new("g3", leader_replication_throttled_replicas="0:1, 1:1")),
    create(new("g1", cleanup_policy="compact,compact")),
    create(new("g", cleanup_policy="compact,,delete")),
    create(new("g", min_cleanable_dirty_ratio="1.5")),
    create(new("g", min_cleanable_dirty_ratio="x")),
    create(new("g", preallocate="yes")),
    create(new("g", compression_gzip_level="0")),
    create(new("g", compression_type="zip")),
    create(new("g", segment_bytes="5")),
    create(new("g", segment_bytes="99999999999")),
    create(new("g", max_message_bytes="-1")),
    create(new("g", min_compaction_lag_ms="10", max_compaction_lag_ms="5")),
    create(new("g", remote_storage_enable="true")),
    create(new("g", leader_replication_throttled_replicas="x")),
    create(new("g", message_timestamp_type="x")),
    create(new("h", 2, 1, (), retention_ms=" 5000 ", cleanup_policy="compact")),
    create(new("i", 2), only=True),
    create(new("j"), version=2),
    create(new("j"), version=4),
    create(new("j"), version=5),
    grow("a", 3),
    grow("a", 2),
    grow("a", 5, only=True),
    grow("a", 4),
    grow("nothing", 4),
    grow("a", 6, [1]),
    grow("a", 5, [9]),
    grow("a", 5, [1]),
    grow("a", -1),
    delete(("b", ZERO_UUID)),
    delete(("b", ZERO_UUID)),
    delete((None, UNKNOWN_ID)),
    delete((None, ZERO_UUID)),
    delete(("x", UNKNOWN_ID)),
    delete(("c", ZERO_UUID), ("c", ZERO_UUID)),
    delete_named("c", "nothing"),
    delete_named("nothing", version=1),
    elect(0, "a", 0, 99),
    elect(0, "nothing", 0),
    elect(1, "a", 0),
    elect(7, "a", 0),
    move("a", p0=[1], p1=None, p77=[1], p2=[9], p3=[]),
    move("nothing", p0=[1]),
    (ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, {"timeoutMs": 5_000, "topics": None}),
)
"""Behind these there is `a` with five partitions."""

CLUSTER: Final[tuple[Asked, ...]] = (
    *(metadata("a", version=version) for version in (0, 1, 4, 5, 7, 9, 12, 13)),
    metadata("auto", version=9),
    metadata("auto2", version=4, allowAutoTopicCreation=False),
    metadata("a b", version=9),
    metadata("a b", version=9, allowAutoTopicCreation=False),
    metadata(""),
    metadata("a", "a"),
    metadata("nothing", includeTopicAuthorizedOperations=True, allowAutoTopicCreation=False),
    metadata("a", version=10, includeClusterAuthorizedOperations=True),
    metadata("a", includeTopicAuthorizedOperations=True),
    metadata(),
    (ApiKey.METADATA, 12, {"topics": [{"name": None, "topicId": UNKNOWN_ID}]}),
    (ApiKey.METADATA, 10, {"topics": [{"name": "a", "topicId": UNKNOWN_ID}]}),
    described(operations=True),
    described(endpoint=2),
    described(endpoint=9),
    feature("transaction.version", 1, 2),
    feature("transaction.version", 1),
    feature("transaction.version", 2),
    feature("transaction.version", 5),
    feature("transaction.version", -1),
    feature("transaction.version", 1),
    feature("transaction.version", 1, 9),
    feature("transaction.version", 0, 3),
    feature("transaction.version", 1, 2),
    feature("transaction.version", 1, only=True),
    feature("transaction.version", 2, version=1),
    feature("transaction.version", 5, version=1),
    feature("nothing", 1),
    feature("metadata.version", 99),
    feature("metadata.version", 7, 2),
    pages("a", limit=2),
    pages("a", limit=2, cursor=("a", 2)),
    pages("a", "nothing", limit=3),
    pages("a", "nothing", "a b"),
    pages("a", cursor=("b", 2)),
    pages("a", cursor=("a", -2)),
    quota({"user": "al"}, ("producer_byte_rate", 100.0)),
    quota({"user": "al", "client_id": "c"}, ("request_percentage", 10.5)),
    quota({"user": None}, ("consumer_byte_rate", 100.0)),
    quotas(),
    quotas(("user", 0, "al")),
    quotas(("user", 0, "al"), strict=True),
    quotas(("user", 1, None)),
    quotas(("user", 2, None)),
    quotas(("user", 0, None)),
    quotas(("user", 1, "x")),
    quotas(("foo", 0, "x")),
    quotas(("user", 5, None)),
    quotas(("", 0, "x")),
    quotas(("user", 0, "a"), ("user", 0, "b")),
    quotas(("user", 0, "a"), ("ip", 0, "b")),
    quota({"user": "al"}, ("foo", 100.0)),
    quota({"user": "al"}, ("producer_byte_rate", -1.0)),
    quota({"user": "al"}, ("producer_byte_rate", 1.5)),
    quota({"ip": "1.2.3.4"}, ("connection_creation_rate", 10.0)),
    quota({"ip": "1.2.3.4"}, ("connection_creation_rate", 1e10)),
    quota({"ip": "1.2.3.4", "user": "a"}, ("connection_creation_rate", 10.0)),
    quota({}, ("connection_creation_rate", 10.0)),
    quota({"foo": "a"}, ("connection_creation_rate", 10.0)),
    quota({"user": "al"}, ("producer_byte_rate", None)),
    quotas(),
)

CONFIGS: Final[tuple[Asked, ...]] = (
    show(TOPIC, "g1", "cleanup.policy"),
    show(TOPIC, "g2", "cleanup.policy"),
    show(TOPIC, "g3", "leader.replication.throttled.replicas"),
    show(TOPIC, "a"),
    show(TOPIC, "a", synonyms=False),
    show(TOPIC, "a", "retention.ms", "foo"),
    show(TOPIC, "a", version=1),
    show(TOPIC, "nothing"),
    show(TOPIC, "a b"),
    show(TOPIC, ""),
    show(BROKER, "1", "log.retention.hours", "log.retention.ms", "num.io.threads"),
    show(BROKER, "2"),
    show(BROKER, "x"),
    show(LOGGER, ""),
    show(LOGGER, "2"),
    show(METRICS, ""),
    show(METRICS, "m"),
    show(GROUP, ""),
    show(GROUP, "g"),
    show(3, "x"),
    alter(TOPIC, "a", ("retention.ms", SET, "1000")),
    show(TOPIC, "a", "retention.ms"),
    alter(TOPIC, "a", ("cleanup.policy", APPEND, "compact")),
    show(TOPIC, "a", "cleanup.policy"),
    alter(TOPIC, "a", ("cleanup.policy", SUBTRACT, "delete")),
    show(TOPIC, "a", "cleanup.policy"),
    alter(TOPIC, "a", ("retention.ms", APPEND, "5")),
    alter(TOPIC, "a", ("retention.ms", DELETE, None)),
    alter(TOPIC, "a", ("foo", SET, "5")),
    alter(TOPIC, "a", ("foo", DELETE, None)),
    alter(TOPIC, "a", ("retention.ms", SET, None)),
    alter(TOPIC, "a", ("retention.ms", 7, "1")),
    alter(TOPIC, "a", ("retention.ms", SET, "1"), ("retention.ms", SET, "2")),
    alter(TOPIC, "nothing", ("retention.ms", SET, "1")),
    alter(TOPIC, "nothing", ("foo", SET, "1")),
    alter(TOPIC, "a b", ("retention.ms", SET, "1")),
    alter(TOPIC, "", ("retention.ms", SET, "1")),
    alter(3, "x", ("retention.ms", SET, "1")),
    alter(TOPIC, "a", ("retention.ms", SET, "77"), only=True),
    show(TOPIC, "a", "retention.ms"),
    alter(BROKER, "1", ("log.retention.ms", SET, "100000")),
    alter(BROKER, "", ("log.retention.ms", SET, "200000")),
    show(BROKER, "1", "log.retention.ms", "log.retention.hours"),
    show(TOPIC, "a", "retention.ms"),
    alter(BROKER, "2", ("log.retention.ms", SET, "1")),
    alter(BROKER, "x", ("log.retention.ms", SET, "1")),
    alter(BROKER, "1", ("node.id", SET, "1")),
    alter(BROKER, "1", ("node.id", 9, "1")),
    alter(BROKER, "1", ("log.retention.ms", SET, "abc")),
    alter(BROKER, "1", ("foo.bar", SET, "abc")),
    show(BROKER, "1", "foo.bar"),
    alter(BROKER, "", ("ssl.keystore.location", SET, "abc")),
    alter(BROKER, "", ("listener.name.x.ssl.keystore.location", SET, "abc")),
    alter(BROKER, "", ("max.connections.per.ip", SET, "5000")),
    alter(BROKER, "1", ("log.retention.ms", DELETE, None), ("foo.bar", DELETE, None)),
    alter(BROKER, "", ("log.retention.ms", DELETE, None)),
    replace(TOPIC, "a", retention_ms="123"),
    replace(TOPIC, "a", segment_ms="123456"),
    show(TOPIC, "a", "retention.ms", "segment.ms", "flush.ms"),
    replace(TOPIC, "a", foo="1"),
    replace(TOPIC, "a", retention_ms=None),
    replace(TOPIC, "nothing", retention_ms="1"),
    replace(LOGGER, "1", x="INFO"),
    replace(TOPIC, "a"),
    replace(BROKER, "1", node_id="3"),
    alter(GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")),
    show(GROUP, "g"),
    alter(GROUP, "g", ("consumer.session.timeout.ms", SET, "5")),
    alter(GROUP, "g", ("consumer.session.timeout.ms", SET, "5000000")),
    alter(GROUP, "g", ("foo", SET, "5")),
    alter(GROUP, "", ("consumer.session.timeout.ms", SET, "50000")),
    alter(GROUP, "g", ("share.auto.offset.reset", SET, "foo")),
    alter(GROUP, "g", ("consumer.heartbeat.interval.ms", SET, "60000")),
    alter(METRICS, "m", ("interval.ms", SET, "5000")),
    alter(METRICS, "m", ("foo", SET, "5")),
    alter(METRICS, "", ("interval.ms", SET, "5000")),
    alter(METRICS, "m", ("interval.ms", SET, "5")),
    alter(METRICS, "m", ("match", SET, "x")),
    show(METRICS, "m"),
    alter(LOGGER, "1", ("nologger", SET, "INFO")),
    alter(LOGGER, "1", ("root", SET, "INFO")),
    alter(LOGGER, "1", ("root", SET, "FOO")),
    alter(LOGGER, "2", ("root", SET, "INFO")),
    resources(BROKER, METRICS, GROUP),
    resources(LOGGER),
    resources(3),
)

RULES: Final[tuple[Asked, ...]] = (
    allow(rule(TOPIC, "t", 3, "User:a")),
    allow(rule(TOPIC, "t", 3, "User:a")),
    allow(rule(TOPIC, "tt", 4, "User:a", does=4), rule(3, "g", 3, "User:*", does=2)),
    allow(rule(TOPIC, "*", 3, "User:b", does=8, permission=2)),
    allow(rule(4, "foo", 3, "User:a")),
    allow(rule(4, "kafka-cluster", 3, "User:a", does=8)),
    allow(rule(TOPIC, "", 3, "User:a")),
    allow(rule(1, "t", 3, "User:a")),
    allow(rule(TOPIC, "t", 1, "User:a")),
    allow(rule(TOPIC, "t", 2, "User:a")),
    allow(rule(TOPIC, "t", 3, "User:a", does=1)),
    allow(rule(TOPIC, "t", 3, "User:a", permission=1)),
    allow(rule(0, "t", 3, "User:a")),
    allow(rule(9, "t", 3, "User:a")),
    allow(rule(TOPIC, "z", 9, "User:a")),
    allow(rule(TOPIC, "z", 3, "User:a", does=99)),
    allow(rule(TOPIC, "z", 3, "User:a", permission=9)),
    allow(rule(TOPIC, "z", 3, "User:a"), rule(1, "z", 3, "User:a")),
    allow(rule(TOPIC, "t", 3, "nobody")),
    allow(rule(7, "u", 3, "User:a", does=13)),
    rules(),
    rules(resourceTypeFilter=2, resourceNameFilter="t", patternTypeFilter=3),
    rules(resourceTypeFilter=2, resourceNameFilter="tt1", patternTypeFilter=2),
    rules(resourceTypeFilter=2, resourceNameFilter="*", patternTypeFilter=2),
    rules(patternTypeFilter=4),
    rules(principalFilter="User:a"),
    rules(hostFilter="1.2.3.4"),
    rules(operation=8, permissionType=2),
    rules(resourceTypeFilter=0),
    rules(resourceTypeFilter=9),
    rules(operation=0),
    rules(permissionType=0),
    drop(filtered(resourceTypeFilter=9)),
    drop(filtered(resourceTypeFilter=2, operation=99)),
    drop(filtered(resourceTypeFilter=0)),
    drop(
        filtered(resourceTypeFilter=2, resourceNameFilter="t", patternTypeFilter=3),
        filtered(resourceTypeFilter=3),
    ),
    drop(filtered()),
    rules(),
    scram(put=[("al", 1, 4_096)]),
    scram(put=[("al", 2, 8_192), ("bo", 1, 4_096)]),
    scram(put=[("al", 1, 100)]),
    scram(put=[("al", 1, 100_000)]),
    scram(put=[("", 1, 4_096)]),
    scram(put=[("al", 7, 4_096)]),
    scram(put=[("al", 1, 4_096), ("al", 2, 4_096)]),
    scram(gone=[("al", 1)], put=[("al", 2, 4_096)]),
    scram(gone=[("nobody", 1)]),
    scram(gone=[("bo", 2)]),
    scram(gone=[("bo", 1), ("bo", 1)]),
    scram_users(),
    scram_users("al"),
    scram_users("al", "al", "nobody"),
    scram(gone=[("al", 1), ("bo", 1)]),
    scram(gone=[("al", 2)]),
    scram_users(),
    (ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"}),
    (ApiKey.SASL_AUTHENTICATE, 2, {"authBytes": b""}),
)
"""Asked by somebody who may do anything."""

DENIED: Final[tuple[Asked, ...]] = (
    create(new("secret", 2), new("pub"), new("half")),
    allow(
        rule(TOPIC, "secret", 3, "User:bob"),
        rule(TOPIC, "half", 3, ANONYMOUS, does=8),
        rule(TOPIC, "new", 4, "User:bob"),
        rule(3, "secret", 3, "User:bob"),
        rule(5, "secret", 3, "User:bob", does=4),
    ),
    allow(
        rule(4, "kafka-cluster", 3, ANONYMOUS, does=9),
        rule(4, "kafka-cluster", 3, ANONYMOUS, does=7),
    ),
    metadata("secret", "pub", "half"),
    (ApiKey.METADATA, 12, {"topics": None}),
    metadata("new1", version=9),
    metadata("half", includeTopicAuthorizedOperations=True),
    metadata("pub", version=10, includeClusterAuthorizedOperations=True),
    create(new("new2")),
    create(new("pub2")),
    delete(("secret", ZERO_UUID), ("half", ZERO_UUID)),
    grow("secret", 3),
    grow("half", 3),
    show(TOPIC, "secret"),
    show(TOPIC, "half"),
    show(BROKER, "1"),
    show(GROUP, "secret"),
    alter(TOPIC, "secret", ("retention.ms", SET, "1000")),
    alter(TOPIC, "half", ("retention.ms", SET, "1000")),
    alter(BROKER, "1", ("log.retention.ms", SET, "1000")),
    alter(GROUP, "secret", ("consumer.session.timeout.ms", SET, "50000")),
    replace(TOPIC, "secret", retention_ms="5"),
    elect(0, "pub", 0),
    rules(),
    quota({"user": "x"}, ("producer_byte_rate", 1.0)),
    quotas(),
    scram_users(),
    resources(METRICS),
    described(operations=True),
    pages("secret", "half", "nothing"),
    pages(),
    (ApiKey.FIND_COORDINATOR, 4, {"keyType": 0, "coordinatorKeys": ["secret"]}),
    (ApiKey.FIND_COORDINATOR, 2, {"keyType": 1, "key": "secret"}),
    (ApiKey.DELETE_GROUPS, 2, {"groupsNames": ["secret"]}),
    (ApiKey.DESCRIBE_GROUPS, 5, {"groups": ["secret"], "includeAuthorizedOperations": True}),
)
"""Asked by ANONYMOUS, who may do what no rule is about."""


def feature(name: str, level: int, kind: int = 1, *, only: bool = False, version: int = 2) -> Asked:
    """UpdateFeatures: kind 1 upgrades, 2 downgrades safely, 3 unsafely."""
    update = {"feature": f"{name}.version", "maxVersionLevel": level, "upgradeType": kind}
    fields = {"timeoutMs": 20_000, "featureUpdates": [update], "validateOnly": only}
    return ApiKey.UPDATE_FEATURES, version, fields


def init(transactional_id: str | None, timeout_ms: int = 60_000, **fields: bool | int) -> Asked:
    """InitProducerId 6."""
    asked = {"transactionalId": transactional_id, "transactionTimeoutMs": timeout_ms, **fields}
    return ApiKey.INIT_PRODUCER_ID, 6, asked


ELR: Final = "eligible.leader.replicas"
MIN_ISR: Final = "min.insync.replicas"
FEATURES: Final[tuple[Asked, ...]] = (
    *(feature("kraft", 0, kind) for kind in (1, 2, 3)),
    feature("kraft", 2),
    feature("kraft", 1, 2),
    feature("kraft", 1, only=True),
    feature("kraft", 1),
    *(feature("kraft", level, kind) for level in (1, 0) for kind in (1, 2, 3)),
    show(BROKER, ""),
    show(BROKER, "1", MIN_ISR),
    alter(BROKER, "", (MIN_ISR, DELETE, None)),
    alter(BROKER, "1", (MIN_ISR, SET, "1")),
    alter(BROKER, "1", (MIN_ISR, DELETE, None)),
    alter(BROKER, "", (MIN_ISR, SET, "1")),
    replace(BROKER, ""),
    replace(BROKER, "1", min_insync_replicas="1"),
    replace(BROKER, "", log_segment_bytes="1048576000"),
    feature(ELR, 0),
    feature(ELR, 0, 2),
    alter(BROKER, "1", (MIN_ISR, SET, "1")),
    alter(BROKER, "", (MIN_ISR, DELETE, None)),
    show(BROKER, "1", MIN_ISR),
    feature(ELR, 1, only=True),
    feature(ELR, 1),
    show(BROKER, "1", MIN_ISR),
    show(BROKER, ""),
    feature(ELR, 2),
    feature(ELR, 1, version=1),
    *(feature(name, 0, 2) for name in ("transaction", "group", "share", "streams", "nothing")),
    feature("nothing", 1),
    feature("metadata", 99),
    feature("metadata", 6, 3),
)
"""Features that a cluster of 4.1 or later has, and the setting that one of them protects."""

TWO_PHASE: Final[tuple[Asked, ...]] = (
    (ApiKey.FIND_COORDINATOR, 6, {"keyType": 1, "coordinatorKeys": ["a"]}),
    (ApiKey.DESCRIBE_TRANSACTIONS, 0, {"transactionalIds": ["a"]}),
    init(None),
    init(None, enable2Pc=True),
    init(None, keepPreparedTxn=True),
    init("", enable2Pc=True),
    init("a"),
    init("a", enable2Pc=True),
    init("a", keepPreparedTxn=True),
    init("a", enable2Pc=True, keepPreparedTxn=True),
    init("a", -1),
    init("b", -1, enable2Pc=True),
    init("b", 99_999_999),
    init("b", 99_999_999, enable2Pc=True),
    init("b", 0, keepPreparedTxn=True),
    (ApiKey.DESCRIBE_TRANSACTIONS, 0, {"transactionalIds": ["a", "b"]}),
    init("b", producerId=5),
    init("b", producerId=77, producerEpoch=3, enable2Pc=True),
)
"""Producers with two-phase commit, which only unstable versions have."""
