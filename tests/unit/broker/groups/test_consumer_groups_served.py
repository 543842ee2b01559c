"""Consumer groups of a served cluster: what a member, an administrator and a restart see."""

from pathlib import Path

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.changes import AclCreated
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import PROFILES
from coordinator_sim.server.control.views import group_count, group_summaries, group_view
from coordinator_sim_conformance.field_frames import Fields
from tests.unit.broker.frames_client import DataClient
from tests.unit.broker.kept_world import KeptWorld

NOW = Instants(1_000_000, 1_000_000)
HEARTBEAT = ApiKey.CONSUMER_GROUP_HEARTBEAT
MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"
OTHER = "AAAAAAAAAAAAAAAAAAAAAg"
GROUP_RESOURCE, BROKER_RESOURCE = 32, 4
UPGRADE, SAFE_DOWNGRADE = 1, 2
TOPIC, GROUP, LITERAL, DESCRIBE, READ, ALLOW = 2, 3, 3, 8, 3, 3


def cluster_of(brokers: tuple[int, ...] = (1,), profile: str = "4.4", **given: str) -> Cluster:
    """A cluster with an offsets topic of two partitions and a topic `t` of four."""
    settings = ClusterSettings(
        profile=PROFILES[profile],
        broker_ids=brokers,
        coordinator=CoordinatorConfig(
            offsets_topic_num_partitions=2, group_coordinator_append_linger_ms=0
        ),
        given={name.replace("_", "."): value for name, value in given.items()},
    )
    cluster = Cluster(settings, endpoint=lambda _broker, _name: Endpoint("localhost", 9092))
    cluster.topics.create_asked_for("__consumer_offsets", NOW)
    cluster.topics.create_spread("t", 4, NOW)
    return cluster


@pytest.fixture
def served() -> Cluster:
    """A cluster of one broker."""
    return cluster_of()


def joined(client: DataClient, **fields: object) -> int:
    """The epoch that a member joins at."""
    return int(beat(client, 0, **fields)["memberEpoch"])


def beat(client: DataClient, epoch: int, at_ms: int = NOW.group_ms, **fields: object) -> Fields:
    """The answer to a heartbeat; one with epoch 0 joins, by the topic `t` if nothing is said."""
    joins: dict[str, object] = {}
    if epoch == 0:
        joins = {"rebalanceTimeoutMs": 60_000, "topicPartitions": []}
        if "subscribedTopicRegex" not in fields:
            joins["subscribedTopicNames"] = ["t"]
    request = {"groupId": "g", "memberId": MEMBER, "memberEpoch": epoch} | joins | fields
    return client.call(HEARTBEAT, 1, request, at_ms)


def owned(answer: Fields) -> list[int]:
    """The partitions that a member is told to have."""
    topics = answer["assignment"]["topicPartitions"]
    return sorted(number for topic in topics for number in topic["partitions"])


def described(client: DataClient, group: str = "g") -> Fields:
    """A group in ConsumerGroupDescribe 1."""
    request = {"groupIds": [group], "includeAuthorizedOperations": True}
    answer = client.call(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, request)
    (found,) = answer["groups"]
    return dict(found)


def set_feature(client: DataClient, level: int, kind: int) -> int:
    """The error of UpdateFeatures for `group.version`."""
    asked = {"feature": "group.version", "maxVersionLevel": level, "upgradeType": kind}
    request = {"timeoutMs": 1_000, "featureUpdates": [asked], "validateOnly": False}
    return int(client.call(ApiKey.UPDATE_FEATURES, 2, request)["errorCode"])


def set_config(client: DataClient, kind: int, name: str, **values: str | None) -> Fields:
    """The answer of IncrementalAlterConfigs for one resource; None deletes."""
    configs = [
        {"name": key.replace("_", "."), "configOperation": int(value is None), "value": value}
        for key, value in values.items()
    ]
    resource = {"resourceType": kind, "resourceName": name, "configs": configs}
    request = {"resources": [resource], "validateOnly": False}
    answer = client.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
    return dict(answer["responses"][0])


@pytest.mark.parametrize("profile", ["4.0", "4.1", "4.2", "4.3", "4.4"])
def test_a_member_joins_and_is_assigned(profile: str) -> None:
    """A new cluster of each release has `group.version` at 1; the broker computes assignments."""
    client = DataClient(cluster_of(profile=profile))

    answer = beat(client, 0)

    assert answer["errorCode"] == 0
    assert owned(answer) == [0, 1, 2, 3]
    wanted = {"statesFilter": ["Stable"], "typesFilter": ["Consumer"]}
    (group,) = client.call(ApiKey.LIST_GROUPS, 5, wanted)["groups"]
    assert (group["groupId"], group["groupType"]) == ("g", "consumer")


def test_a_group_is_described(served: Cluster) -> None:
    """With epochs, the assignment by names, and the rights of the sender."""
    client = DataClient(served)
    epoch = joined(client)

    group = described(client)

    told = (group["groupState"], group["groupEpoch"], group["assignorName"])
    assert told == ("Stable", epoch, "uniform")
    (member,) = group["members"]
    assert member["assignment"] == member["targetAssignment"]
    assert [each["topicName"] for each in member["assignment"]["topicPartitions"]] == ["t"]
    assert group["authorizedOperations"] > 0


def test_an_operator_sees_a_group(served: Cluster) -> None:
    """With its epoch, its members and what they have, as the control surface shows groups."""
    client = DataClient(served)
    epoch = joined(client)

    (summary,) = group_summaries(served)
    view = group_view(served, "g")

    assert (summary.group_id, summary.state, summary.generation) == ("g", "Stable", epoch)
    assert view is not None
    (member,) = view.members
    assert (member.subscription, member.assignment) == (("t",), ("t-0", "t-1", "t-2", "t-3"))
    assert member.session_ends_ms == NOW.group_ms + 45_000
    assert (group_count(served), group_view(served, "h")) == (1, None)


def test_new_partitions_are_assigned_with_the_next_heartbeat(served: Cluster) -> None:
    """The coordinator hears of topics that grow, and of those that go."""
    client = DataClient(served)
    epoch = joined(client)

    served.topics.add_partitions("t", ((1,), (1,)), NOW)
    grown = beat(client, epoch, NOW.group_ms + 1_001)
    served.topics.delete("t", NOW)
    gone = beat(client, epoch + 1, NOW.group_ms + 3_000, topicPartitions=[])

    assert (grown["memberEpoch"], owned(grown)) == (epoch + 1, [0, 1, 2, 3, 4, 5])
    assert (gone["memberEpoch"], owned(gone)) == (epoch + 2, [])


def test_a_group_outlives_its_broker() -> None:
    """Another broker loads it from the offsets topic, and knows the topics."""
    cluster = cluster_of((1, 2))
    leader = cluster.image.partition("__consumer_offsets", 1)
    assert leader is not None
    first = leader.leader_id
    epoch = joined(DataClient(cluster, first))

    cluster.operations.move_coordinator("g", 3 - first, NOW)

    assert beat(DataClient(cluster, first), epoch)["errorCode"] == ErrorCode.NOT_COORDINATOR
    other = DataClient(cluster, 3 - first)
    assert beat(other, epoch)["memberEpoch"] == epoch
    assert described(other)["members"][0]["memberId"] == MEMBER


def test_a_group_outlives_the_process(tmp_path: Path) -> None:
    """Records and the level of the feature are kept on disk."""
    settings = ClusterSettings(coordinator=CoordinatorConfig(offsets_topic_num_partitions=2))
    world = KeptWorld(tmp_path, settings=settings)
    world.cluster.topics.create_asked_for("__consumer_offsets", NOW)
    world.cluster.topics.create_spread("t", 4, NOW)
    epoch = joined(DataClient(world.cluster))

    world.leave()
    kept = described(DataClient(world.cluster))
    off = set_feature(DataClient(world.cluster), 0, SAFE_DOWNGRADE)
    world.leave()

    assert (kept["groupEpoch"], kept["members"][0]["memberEpoch"]) == (epoch, epoch)
    assert off == 0
    assert world.cluster.image.features["group.version"] == 0
    assert described(DataClient(world.cluster))["errorCode"] == ErrorCode.UNSUPPORTED_VERSION


def test_the_feature_turns_the_groups_off_and_on(served: Cluster) -> None:
    """A member is told UNSUPPORTED_VERSION while it is off, and goes on afterwards."""
    client = DataClient(served)
    epoch = joined(client)

    assert set_feature(client, 0, SAFE_DOWNGRADE) == 0
    assert beat(client, epoch)["errorCode"] == ErrorCode.UNSUPPORTED_VERSION
    assert described(client)["errorCode"] == ErrorCode.UNSUPPORTED_VERSION
    assert set_feature(client, 1, UPGRADE) == 0
    assert beat(client, epoch)["errorCode"] == 0


def test_the_brokers_settings_turn_the_groups_off() -> None:
    """As `group.coordinator.rebalance.protocols` without `consumer` at a real 4.4.0."""
    client = DataClient(cluster_of(group_coordinator_rebalance_protocols="classic"))

    assert beat(client, 0)["errorCode"] == ErrorCode.UNSUPPORTED_VERSION


def test_a_group_has_settings_of_its_own(served: Cluster) -> None:
    """They count from the next heartbeat on; without them the brokers' count again."""
    client = DataClient(served)
    other = {"groupId": "h", "memberId": OTHER}

    told = set_config(client, GROUP_RESOURCE, "g", consumer_heartbeat_interval_ms="7000")
    own, usual = beat(client, 0), beat(client, 0, **other)
    set_config(client, GROUP_RESOURCE, "g", consumer_heartbeat_interval_ms=None)

    assert told["errorCode"] == 0
    answers = (own, usual, beat(client, own["memberEpoch"]))
    assert [each["heartbeatIntervalMs"] for each in answers] == [7_000, 5_000, 5_000]


def test_a_groups_session_ends_by_its_own_setting(served: Cluster) -> None:
    """A member of another group lives on by the brokers'."""
    client = DataClient(served)
    other = {"groupId": "h", "memberId": OTHER}
    set_config(client, GROUP_RESOURCE, "g", consumer_session_timeout_ms="60000")
    epoch, others = joined(client), joined(client, **other)

    later = NOW.group_ms + 50_000
    served.expire(Instants(later, later))

    assert beat(client, epoch, later)["errorCode"] == 0
    assert beat(client, others, later, **other)["errorCode"] == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_assignment_interval_moves_while_the_broker_runs(served: Cluster) -> None:
    """A dynamic setting of brokers, from 4.3 on: the next target waits as long as it says now."""
    client = DataClient(served)
    set_config(client, BROKER_RESOURCE, "", group_consumer_assignment_interval_ms="10000")
    epoch = joined(client)
    served.topics.add_partitions("t", ((1,),), NOW)

    early = beat(client, epoch, NOW.group_ms + 9_999)
    due = beat(client, epoch, NOW.group_ms + 10_000)

    assert (early["assignment"], owned(due)) == (None, [0, 1, 2, 3, 4])


def test_an_expression_finds_what_its_member_may_describe() -> None:
    """Topics that it may not know of are left out, without an error."""
    cluster = cluster_of(authorizer_class_name="StandardAuthorizer", super_users="User:admin")
    for kind, name, operation in ((GROUP, "g", READ), (TOPIC, "t", DESCRIBE)):
        cluster.change(AclCreated(kind, name, LITERAL, "User:alice", "*", operation, ALLOW))
    cluster.topics.create_spread("tu", 1, NOW)
    alice, admin = DataClient(cluster), DataClient(cluster, number=8)
    alice.connection.principal, admin.connection.principal = "User:alice", "User:admin"

    epoch = joined(alice, subscribedTopicRegex="t.*")
    found = beat(alice, epoch, NOW.group_ms + 1_001)
    other = {"groupId": "h", "memberId": OTHER}
    epoch = joined(admin, subscribedTopicRegex="t.*", **other)
    all_of_them = beat(admin, epoch, NOW.group_ms + 1_001, **other)

    assert len(found["assignment"]["topicPartitions"]) == 1
    assert len(all_of_them["assignment"]["topicPartitions"]) == 2


def test_members_of_a_group_with_unknown_topics_are_not_shown() -> None:
    """Who may describe a group but not its topics is told so."""
    cluster = cluster_of(authorizer_class_name="StandardAuthorizer", super_users="User:admin")
    cluster.change(AclCreated(GROUP, "g", LITERAL, "User:alice", "*", DESCRIBE, ALLOW))
    alice, admin = DataClient(cluster), DataClient(cluster, number=8)
    alice.connection.principal, admin.connection.principal = "User:alice", "User:admin"
    beat(admin, 0)

    group = described(alice)

    assert (group["errorCode"], group["members"]) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])
    assert described(admin)["errorCode"] == 0
