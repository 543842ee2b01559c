"""The admin client of librdkafka at `coordinator-sim serve`."""

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

from coordinator_sim_pytest.server import ServedKafka
from tests.clients.librdkafka import PATIENCE_S, consumer, produce, read

MODERN = [pytest.param(name, marks=pytest.mark.kafka_profile(name)) for name in ("4.4", "3.9")]
EVERY_PROFILE = [*MODERN, pytest.param("0.10.2", marks=pytest.mark.kafka_profile("0.10.2"))]


def done(futures: Mapping[Any, Future[Any]]) -> dict[Any, Any]:
    """What each future has."""
    return {name: future.result(PATIENCE_S) for name, future in futures.items()}


def refused(futures: Iterable[Future[Any]]) -> list[int]:
    """The error of each future."""
    codes = []
    for future in futures:
        with pytest.raises(KafkaException) as error:
            future.result(PATIENCE_S)
        codes.append(error.value.args[0].code())
    return codes


def admin_of(served: ServedKafka, **settings: object) -> AdminClient:
    """An admin client."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return AdminClient({"bootstrap.servers": served.bootstrap, **named})


@pytest.mark.parametrize("profile", EVERY_PROFILE)
def test_topics_are_created_and_deleted(kafka_server: ServedKafka, profile: str) -> None:
    """And refused when they are there, or not there."""
    admin = admin_of(kafka_server)
    topic = NewTopic("t", 3, 1, config={"retention.ms": "60000"})
    done(admin.create_topics([topic], operation_timeout=10))
    assert len(admin.list_topics("t", PATIENCE_S).topics["t"].partitions) == 3
    again = admin.create_topics([topic]).values()
    assert refused(again) == [KafkaError.TOPIC_ALREADY_EXISTS], profile
    done(admin.delete_topics(["t"], operation_timeout=10))
    missing = admin.delete_topics(["t"]).values()
    assert refused(missing) == [KafkaError.UNKNOWN_TOPIC_OR_PART]


@pytest.mark.parametrize("profile", MODERN)
def test_partitions_and_settings_change(kafka_server: ServedKafka, profile: str) -> None:
    """A topic grows, and its settings are read, set one by one, and put back."""
    kafka_server.create_topic("t", 2)
    admin = admin_of(kafka_server)
    done(admin.create_partitions([NewPartitions("t", 5)]))
    assert len(admin.list_topics("t", PATIENCE_S).topics["t"].partitions) == 5, profile
    fewer = admin.create_partitions([NewPartitions("t", 1)]).values()
    assert refused(fewer) == [KafkaError.INVALID_PARTITIONS]
    resource = ConfigResource(ConfigResource.Type.TOPIC, "t")

    def retention() -> tuple[str, bool]:
        ((_, entries),) = done(admin.describe_configs([resource])).items()
        entry = entries["retention.ms"]
        return entry.value, entry.is_default

    assert retention() == ("604800000", True)
    for operation, wanted in (("SET", ("1234", False)), ("DELETE", ("604800000", True))):
        entry = ConfigEntry(
            "retention.ms", "1234", incremental_operation=AlterConfigOpType[operation]
        )
        change = ConfigResource(ConfigResource.Type.TOPIC, "t", incremental_configs=[entry])
        done(admin.incremental_alter_configs([change]))
        assert retention() == wanted


@pytest.mark.parametrize("profile", EVERY_PROFILE)
def test_groups_are_listed_described_and_deleted(kafka_server: ServedKafka, profile: str) -> None:
    """With their members and what these have."""
    kafka_server.create_topic("t", 2)
    produce(kafka_server.bootstrap, "t", [b"1", b"2"])
    each = consumer(kafka_server.bootstrap, "g", client_id="me")
    each.subscribe(["t"])
    read([each], 2)
    each.commit(asynchronous=False)
    admin = admin_of(kafka_server)
    listed = admin.list_consumer_groups().result(PATIENCE_S)
    assert [found.group_id for found in listed.valid] == ["g"]
    assert listed.errors == []
    (group,) = done(admin.describe_consumer_groups(["g"])).values()
    assert group.state == ConsumerGroupState.STABLE, profile
    assert group.partition_assignor == "range"
    (member,) = group.members
    assert member.client_id == "me"
    owned = [place.partition for place in member.assignment.topic_partitions]
    assert owned == [0, 1]
    if profile != "0.10.2":
        assert refused(admin.delete_consumer_groups(["g"]).values()) == [KafkaError.NON_EMPTY_GROUP]
    each.close()
    if profile != "0.10.2":
        done(admin.delete_consumer_groups(["g"]))
        assert admin.list_consumer_groups().result(PATIENCE_S).valid == []


@pytest.mark.parametrize("profile", MODERN)
def test_offsets_of_groups_and_logs(kafka_server: ServedKafka, profile: str) -> None:
    """A group's offsets are listed and altered, a log's ends are listed, its records deleted."""
    kafka_server.create_topic("t")
    produce(kafka_server.bootstrap, "t", [b"%d" % number for number in range(10)])
    admin = admin_of(kafka_server)
    wanted = ConsumerGroupTopicPartitions("g", [TopicPartition("t", 0, 4)])
    done(admin.alter_consumer_group_offsets([wanted]))
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("g")])
    (found,) = done(asked).values()
    assert [(each.topic, each.offset) for each in found.topic_partitions] == [("t", 4)], profile

    def end(spec: OffsetSpec) -> int:
        (answer,) = done(admin.list_offsets({TopicPartition("t", 0): spec})).values()
        return int(answer.offset)

    assert (end(OffsetSpec.earliest()), end(OffsetSpec.latest())) == (0, 10)
    assert end(OffsetSpec.max_timestamp()) in range(10)
    (deleted,) = done(admin.delete_records([TopicPartition("t", 0, 6)])).values()
    assert deleted.low_watermark == 6
    assert end(OffsetSpec.earliest()) == 6


@pytest.mark.parametrize("profile", MODERN)
def test_cluster_and_topics_are_described(kafka_server: ServedKafka, profile: str) -> None:
    """With ids and leaders."""
    kafka_server.create_topic("t", 2)
    admin = admin_of(kafka_server)
    cluster = admin.describe_cluster().result(PATIENCE_S)
    assert [node.id for node in cluster.nodes] == [1]
    (topic,) = done(admin.describe_topics(TopicCollection(["t"]))).values()
    assert topic.name == "t", profile
    assert [each.leader.id for each in topic.partitions] == [1, 1]


@pytest.mark.kafka_settings(
    {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
)
def test_rules_of_access(kafka_server: ServedKafka) -> None:
    """Created, found by a filter, and deleted."""
    admin = admin_of(kafka_server)
    rule = AclBinding(
        ResourceType.TOPIC,
        "t",
        ResourcePatternType.LITERAL,
        "User:me",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    of_topic = AclBindingFilter(
        ResourceType.TOPIC,
        "t",
        ResourcePatternType.ANY,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    done(admin.create_acls([rule]))
    assert admin.describe_acls(of_topic).result(PATIENCE_S) == [rule]
    (deleted,) = done(admin.delete_acls([of_topic])).values()
    assert deleted == [rule]
    assert admin.describe_acls(of_topic).result(PATIENCE_S) == []
