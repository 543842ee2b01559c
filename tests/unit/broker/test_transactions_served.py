"""Transactions of a whole served cluster: rights, brokers that go, a process that is killed."""

from pathlib import Path

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.security.authorizer import Acl, AclAuthorizer, Operation, ResourceType
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim_conformance.field_frames import Fields
from tests.unit.broker.fields_client import FieldsClient
from tests.unit.broker.kept_world import NOW, KeptWorld

FORBIDDEN = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
INTERNAL = ("__transaction_state", "__consumer_offsets")


def served(*acls: Acl, **given: str) -> FieldsClient:
    """One broker with topic `t`, these rules if there are any, with these settings."""
    settings = ClusterSettings(
        given={name.replace("_", "."): value for name, value in given.items()},
        transaction_partitions=1,
        coordinator=CoordinatorConfig(offsets_topic_num_partitions=1),
        num_partitions=2,
    )
    cluster = Cluster(
        settings,
        endpoint=lambda _broker, _name: Endpoint("localhost", 9092),
        authorizer=AclAuthorizer(acls) if acls else None,
    )
    client = FieldsClient(cluster)
    for name in (*INTERNAL, "t"):
        cluster.topics.create_asked_for(name, Instants(client.now_ms, client.now_ms))
    return client


def rule(operation: Operation, kind: ResourceType, name: str) -> Acl:
    """Everybody may do that."""
    return Acl(operation=operation, resource_type=kind, name=name, principal="User:*")


def init(transactional_id: str | None) -> Fields:
    """The fields of InitProducerId."""
    return {"transactionalId": transactional_id, "transactionTimeoutMs": 60_000}


def end(producer: Fields, *, committed: bool = True) -> Fields:
    """The fields of EndTxn."""
    return {
        "transactionalId": "id",
        "producerId": producer["producerId"],
        "producerEpoch": producer["producerEpoch"],
        "committed": committed,
    }


def add(producer: Fields, name: str = "t") -> Fields:
    """The fields of AddPartitionsToTxn."""
    return {
        "v3AndBelowTransactionalId": "id",
        "v3AndBelowProducerId": producer["producerId"],
        "v3AndBelowProducerEpoch": producer["producerEpoch"],
        "v3AndBelowTopics": [{"name": name, "partitions": [0]}],
    }


def added(answer: Fields) -> ErrorCode:
    """The outcome of the one partition."""
    (topic,) = answer["resultsByTopicV3AndBelow"]
    return ErrorCode(topic["resultsByPartition"][0]["partitionErrorCode"])


def test_unstable_versions_have_two_phase_commit() -> None:
    """A producer may have a transaction without a timeout where the broker permits it."""
    asked = {**init("id"), "transactionTimeoutMs": -1, "enable2Pc": True}
    for enabled, error in (("true", ErrorCode.NONE), ("false", FORBIDDEN)):
        two_phase = {"transaction_two_phase_commit_enable": enabled}
        client = served(unstable_api_versions_enable="true", **two_phase)
        answer = client.call(ApiKey.INIT_PRODUCER_ID, 6, asked)

        assert answer["errorCode"] == error
        assert answer["ongoingTxnProducerId"] == -1


# -- rights ----------------------------------------------------------------------------------


def test_a_transactional_id_must_be_writable() -> None:
    """In every API that changes one; each answers in its own shape."""
    client = served(rule(Operation.READ, ResourceType.GROUP, "g"))
    nobody = {"producerId": 0, "producerEpoch": 0}
    begun = client.call(ApiKey.INIT_PRODUCER_ID, 4, init("id"))
    assert (begun["errorCode"], begun["producerId"]) == (FORBIDDEN, -1)
    assert added(client.call(ApiKey.ADD_PARTITIONS_TO_TXN, 3, add(nobody))) is FORBIDDEN
    offsets = {"transactionalId": "id", "groupId": "g", **nobody}
    assert client.call(ApiKey.ADD_OFFSETS_TO_TXN, 3, offsets)["errorCode"] == FORBIDDEN
    ended = client.call(ApiKey.END_TXN, 5, end(nobody))
    assert (ended["errorCode"], ended["producerId"]) == (FORBIDDEN, -1)


def test_an_idempotent_producer_needs_a_topic_to_write_to() -> None:
    """Or the right to be idempotent, which old clusters gave."""
    asked = init(None)
    refused = served(rule(Operation.READ, ResourceType.TOPIC, "t"))
    error = refused.call(ApiKey.INIT_PRODUCER_ID, 4, asked)["errorCode"]
    assert error == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    for acl in (
        rule(Operation.WRITE, ResourceType.TOPIC, "t"),
        rule(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, "kafka-cluster"),
    ):
        assert served(acl).call(ApiKey.INIT_PRODUCER_ID, 4, asked)["errorCode"] == 0


def test_partitions_and_groups_need_rights_of_their_own() -> None:
    """WRITE to the topic, READ of the group."""
    client = served(rule(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "id"))
    producer = client.call(ApiKey.INIT_PRODUCER_ID, 4, init("id"))
    refused = client.call(ApiKey.ADD_PARTITIONS_TO_TXN, 3, add(producer))
    assert added(refused) is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    identity = {name: producer[name] for name in ("producerId", "producerEpoch")}
    offsets = {"transactionalId": "id", "groupId": "g", **identity}
    error = client.call(ApiKey.ADD_OFFSETS_TO_TXN, 3, offsets)["errorCode"]
    assert error == ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_only_brokers_send_markers_and_batches() -> None:
    """CLUSTER_ACTION is asked for."""
    client = served(rule(Operation.WRITE, ResourceType.TOPIC, "t"))
    marker = {
        "producerId": 5,
        "producerEpoch": 0,
        "transactionResult": True,
        "topics": [{"name": "t", "partitionIndexes": [0]}],
        "coordinatorEpoch": 0,
    }
    (answer,) = client.call(ApiKey.WRITE_TXN_MARKERS, 1, {"markers": [marker]})["markers"]
    error = answer["topics"][0]["partitions"][0]["errorCode"]
    assert (answer["producerId"], error) == (5, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    batch = client.call(ApiKey.ADD_PARTITIONS_TO_TXN, 5, {"transactions": []})
    assert batch["errorCode"] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_what_may_not_be_described_is_not_listed() -> None:
    """DescribeTransactions says so, ListTransactions leaves it out; topics are left out too."""
    client = served(
        rule(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "id"),
        rule(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "other"),
        rule(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "none"),
        rule(Operation.WRITE, ResourceType.TOPIC, "t"),
    )
    producer = client.call(ApiKey.INIT_PRODUCER_ID, 4, init("id"))
    client.call(ApiKey.ADD_PARTITIONS_TO_TXN, 3, add(producer))
    found = client.call(
        ApiKey.DESCRIBE_TRANSACTIONS, 0, {"transactionalIds": ["id", "none", "hidden"]}
    )["transactionStates"]
    assert [each["errorCode"] for each in found] == [
        0,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        FORBIDDEN,
    ]
    assert found[0]["topics"] == [{"topic": "t", "partitions": [0]}]
    listed = client.call(ApiKey.LIST_TRANSACTIONS, 0, {"stateFilters": [], "producerIdFilters": []})
    assert [each["transactionalId"] for each in listed["transactionStates"]] == ["id"]


# -- brokers and processes -------------------------------------------------------------------


def test_a_topic_that_is_missing_has_no_coordinator() -> None:
    """NOT_COORDINATOR, until somebody asks for a coordinator and the state topic is made."""
    cluster = Cluster(
        ClusterSettings(), endpoint=lambda _broker, _name: Endpoint("localhost", 9092)
    )
    client = FieldsClient(cluster)
    error = client.call(ApiKey.INIT_PRODUCER_ID, 4, init("id"))["errorCode"]
    assert error == ErrorCode.NOT_COORDINATOR
    client.call(ApiKey.FIND_COORDINATOR, 2, {"key": "id", "keyType": 1})
    assert client.call(ApiKey.INIT_PRODUCER_ID, 4, init("id"))["errorCode"] == 0


@pytest.mark.parametrize("ends", ["kill", "leave"])
def test_transactions_outlive_a_process(tmp_path: Path, ends: str) -> None:
    """An open one goes on with its producer; ids that were given are not given again."""
    world = KeptWorld(tmp_path)
    for name in INTERNAL:
        world.cluster.topics.create_asked_for(name, NOW)
    assert world.create("t") is ErrorCode.NONE
    idle = world.call(ApiKey.INIT_PRODUCER_ID, 4, init(None))
    producer = world.call(ApiKey.INIT_PRODUCER_ID, 4, init("id"))
    assert added(world.call(ApiKey.ADD_PARTITIONS_TO_TXN, 3, add(producer))) is ErrorCode.NONE
    getattr(world, ends)()
    asked = {"transactionalIds": ["id"]}
    (found,) = world.call(ApiKey.DESCRIBE_TRANSACTIONS, 0, asked)["transactionStates"]
    assert (found["transactionState"], found["producerId"]) == ("Ongoing", producer["producerId"])
    assert found["topics"] == [{"topic": "t", "partitions": [0]}]
    ended = world.call(ApiKey.END_TXN, 5, end(producer))
    assert (ended["errorCode"], ended["producerEpoch"]) == (0, producer["producerEpoch"] + 1)
    (found,) = world.call(ApiKey.DESCRIBE_TRANSACTIONS, 0, asked)["transactionStates"]
    assert found["transactionState"] == "CompleteCommit"
    later = world.call(ApiKey.INIT_PRODUCER_ID, 4, init(None))
    assert later["producerId"] not in {idle["producerId"], producer["producerId"]}
