"""What clients switch on by the newest versions of APIs that have no tests of their own."""

from typing import Any

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from tests.unit.broker.fields_client import FieldsClient

TOPIC = 2
"""The type of a topic among resources."""


@pytest.fixture
def client(cluster: Cluster) -> FieldsClient:
    """A client of a broker with a topic of three partitions."""
    client = FieldsClient(cluster)
    orders = {"name": "orders", "numPartitions": 3, "replicationFactor": 1}
    client.call(ApiKey.CREATE_TOPICS, 7, {"topics": [orders], "timeoutMs": 1000})
    return client


def test_a_topic_is_found_by_its_id(client: FieldsClient) -> None:
    """From Metadata 12 on; ids of no topic come first."""
    topic_id = client.cluster.image.topics["orders"].topic_id
    asked = [{"topicId": each, "name": None} for each in (topic_id, bytes(15) + b"x")]
    unknown, found = client.call(ApiKey.METADATA, 13, {"topics": asked})["topics"]

    assert (found["name"], len(found["partitions"])) == ("orders", 3)
    assert unknown["errorCode"] == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("version", [0, 5, 13])
def test_partitions_are_shown_as_they_are_now(client: FieldsClient, version: int) -> None:
    """Answers follow a broker that is given up and taken back, and new partitions."""

    def shown() -> list[tuple[int, int]]:
        (found,) = client.call(ApiKey.METADATA, version, {"topics": [{"name": "orders"}]})["topics"]
        return [(each["errorCode"], each["leaderId"]) for each in found["partitions"]]

    before = shown()
    client.cluster.fenced[1] = None
    without = shown()
    del client.cluster.fenced[1]
    again = shown()
    orders = {"name": "orders", "count": 4, "assignments": None}
    more = {"topics": [orders], "timeoutMs": 1000}
    client.call(ApiKey.CREATE_PARTITIONS, 3, more)

    assert before == again == [(ErrorCode.NONE, 1)] * 3
    assert without == [(ErrorCode.LEADER_NOT_AVAILABLE, -1)] * 3
    assert shown() == [(ErrorCode.NONE, 1)] * 4


def test_topics_are_described_page_by_page(client: FieldsClient) -> None:
    """The cursor of one page begins the next."""
    asked: dict[str, Any] = {"topics": [{"name": "orders"}], "responsePartitionLimit": 2}
    first = client.call(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, asked)
    rest = client.call(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, {**asked, "cursor": first["nextCursor"]}
    )

    assert first["nextCursor"] == {"topicName": "orders", "partitionIndex": 2}
    assert [each["partitionIndex"] for each in first["topics"][0]["partitions"]] == [0, 1]
    assert [each["partitionIndex"] for each in rest["topics"][0]["partitions"]] == [2]
    assert rest["nextCursor"] is None


def test_a_cluster_shows_its_brokers(client: FieldsClient) -> None:
    """DescribeCluster lists the brokers and says which are fenced."""
    told = client.call(ApiKey.DESCRIBE_CLUSTER, 2, {"includeFencedBrokers": True})

    assert told["clusterId"] == client.cluster.settings.cluster_id
    assert [(each["brokerId"], each["isFenced"]) for each in told["brokers"]] == [(1, False)]


def test_resources_are_listed_by_type(client: FieldsClient) -> None:
    """From version 1 of ListConfigResources on, not only client metrics."""
    told = client.call(ApiKey.LIST_CONFIG_RESOURCES, 1, {"resourceTypes": [TOPIC]})

    names = {each["resourceName"]: each["resourceType"] for each in told["configResources"]}
    assert names["orders"] == TOPIC


def test_settings_are_replaced_as_a_whole(client: FieldsClient) -> None:
    """AlterConfigs takes away what it does not name."""

    def alter(*configs: tuple[str, str]) -> None:
        named = [{"name": name, "value": value} for name, value in configs]
        resource = {"resourceType": TOPIC, "resourceName": "orders", "configs": named}
        answer = client.call(ApiKey.ALTER_CONFIGS, 2, {"resources": [resource]})
        assert answer["responses"][0]["errorCode"] == 0

    alter(("retention.ms", "5000"))
    alter(("retention.bytes", "7"))

    assert client.cluster.image.configs_of(TOPIC, "orders") == {"retention.bytes": "7"}


def test_a_quota_is_found_by_its_user(client: FieldsClient) -> None:
    """A floating point number, though one of whole bytes."""
    entity = [{"entityType": "user", "entityName": "alice"}]
    ops = [{"key": "producer_byte_rate", "value": 1024.0, "remove": False}]
    client.call(ApiKey.ALTER_CLIENT_QUOTAS, 1, {"entries": [{"entity": entity, "ops": ops}]})
    wanted = {"components": [{"entityType": "user", "matchType": 0, "match": "alice"}]}
    told = client.call(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, wanted)

    assert told["entries"] == [
        {"entity": entity, "values": [{"key": "producer_byte_rate", "value": 1024.0}]}
    ]


def test_the_last_name_of_a_quotas_type_counts(client: FieldsClient) -> None:
    """Kafka reads the parts of an entity into a map, the default user's null name too."""
    entity = [{"entityType": "user", "entityName": name} for name in ("alice", None)]
    ops = [{"key": "producer_byte_rate", "value": 1024.0, "remove": False}]
    asked = {"entries": [{"entity": entity, "ops": ops}]}
    (answer,) = client.call(ApiKey.ALTER_CLIENT_QUOTAS, 1, asked)["entries"]

    assert (answer["errorCode"], answer["entity"]) == (ErrorCode.NONE, entity[1:])
    assert list(client.cluster.image.quotas) == [(("user", None),)]


def test_a_leader_that_is_preferred_needs_no_election(client: FieldsClient) -> None:
    """ElectLeaders answers ELECTION_NOT_NEEDED for each partition led by its preferred replica."""
    asked = {"topicPartitions": [{"topic": "orders", "partitions": [0]}], "timeoutMs": 1000}
    told = client.call(ApiKey.ELECT_LEADERS, 2, asked)

    (result,) = told["replicaElectionResults"]
    assert result["partitionResult"][0]["errorCode"] == ErrorCode.ELECTION_NOT_NEEDED


def test_replicas_that_there_are_not_take_no_partition(client: FieldsClient) -> None:
    """A reassignment is refused partition by partition; none is under way afterwards."""
    partition = {"partitionIndex": 0, "replicas": [7]}
    asked = {"topics": [{"name": "orders", "partitions": [partition]}], "timeoutMs": 1000}
    told = client.call(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, asked)
    listed = client.call(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, {"timeoutMs": 1000})

    (topic,) = told["responses"]
    assert topic["partitions"][0]["errorCode"] == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert listed["topics"] == []


def test_a_user_is_described_without_its_secret(client: FieldsClient) -> None:
    """Mechanism and iterations are told, salt and password are not."""
    upsertion = {
        "name": "alice",
        "mechanism": 1,
        "iterations": 4096,
        "salt": b"salt",
        "saltedPassword": bytes(32),
    }
    client.call(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, {"upsertions": [upsertion]})
    told = client.call(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, {"users": None})

    (user,) = told["results"]
    assert user["user"] == "alice"
    assert user["credentialInfos"] == [{"mechanism": 1, "iterations": 4096}]


def test_leavers_are_answered_one_by_one(client: FieldsClient) -> None:
    """From version 3 of LeaveGroup on; version 5 takes a reason from each."""
    members = [{"memberId": "nobody", "reason": "gone"}, {"memberId": "noone"}]
    told = client.call(ApiKey.LEAVE_GROUP, 5, {"groupId": "g", "members": members})

    errors = {each["memberId"]: each["errorCode"] for each in told["members"]}
    assert errors == dict.fromkeys(("nobody", "noone"), ErrorCode.UNKNOWN_MEMBER_ID)
