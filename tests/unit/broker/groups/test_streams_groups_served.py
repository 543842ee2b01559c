"""Streams groups of a served cluster: what a member, an administrator and a restart see."""

from pathlib import Path

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.groups.internal_topics import TopicErrors
from coordinator_sim.broker.metadata.changes import AclCreated, FeatureSet
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import PROFILES
from coordinator_sim.messages.catalogue import newest_version
from coordinator_sim_conformance.field_frames import Fields
from tests.unit.broker.frames_client import DataClient
from tests.unit.broker.kept_world import KeptWorld

START_MS = 1_000_000
NOW = Instants(START_MS, START_MS)
MEMBER = "member-1"
CHANGELOG, REPARTITION = "g-totals-changelog", "g-words-repartition"
GROUP_RESOURCE = 32
SAFE_DOWNGRADE = 2
TOPIC, GROUP, CLUSTER, LITERAL = 2, 3, 4, 3
DENY, ALLOW = 2, 3
READ, CREATE, DESCRIBE = 3, 5, 8
MISSING_INTERNAL_TOPICS = 3


def cluster_of(brokers: tuple[int, ...] = (1,), profile: str = "4.4", **given: str) -> Cluster:
    """A cluster with an offsets topic of two partitions and a topic `lines` of four."""
    settings = ClusterSettings(
        profile=PROFILES[profile],
        broker_ids=brokers,
        coordinator=coordinator_config(),
        given={name.replace("_", "."): value for name, value in given.items()},
    )
    cluster = Cluster(settings, endpoint=lambda _broker, _name: Endpoint("localhost", 9092))
    prepare(cluster)
    return cluster


def coordinator_config() -> CoordinatorConfig:
    """Answers leave at once, and the first target does not wait."""
    return CoordinatorConfig(
        offsets_topic_num_partitions=2,
        group_coordinator_append_linger_ms=0,
        group_streams_initial_rebalance_delay_ms=0,
    )


def prepare(cluster: Cluster) -> None:
    """The topics that there are."""
    cluster.topics.create_asked_for("__consumer_offsets", NOW)
    cluster.topics.create_spread("lines", 4, NOW)


@pytest.fixture
def served() -> Cluster:
    """A cluster of one broker."""
    return cluster_of()


def topology(source: str = "lines", copies: int = 0) -> Fields:
    """Words are counted: the broker is to create two topics, with so many replicas."""
    changelog = {
        "name": CHANGELOG,
        "partitions": 0,
        "replicationFactor": copies,
        "topicConfigs": [{"key": "cleanup.policy", "value": "compact"}],
    }
    shuffled = {"name": REPARTITION, "partitions": 0, "replicationFactor": 0, "topicConfigs": []}
    rest: Fields = {"sourceTopicRegex": [], "copartitionGroups": []}
    first = {"subtopologyId": "0", "sourceTopics": [source], "stateChangelogTopics": []}
    first |= {"repartitionSinkTopics": [REPARTITION], "repartitionSourceTopics": []}
    second = {"subtopologyId": "1", "sourceTopics": [], "stateChangelogTopics": [changelog]}
    second |= {"repartitionSinkTopics": [], "repartitionSourceTopics": [shuffled]}
    return {"epoch": 0, "subtopologies": [first | rest, second | rest]}


def beat(
    client: DataClient, epoch: int, at_ms: int = START_MS, version: int = 0, **fields: object
) -> Fields:
    """The answer to a heartbeat; one with epoch 0 joins."""
    nothing: list[Fields] = []
    joins: Fields = {
        "rebalanceTimeoutMs": 60_000,
        "topology": topology(),
        "processId": "p",
        "activeTasks": nothing,
        "standbyTasks": nothing,
        "warmupTasks": nothing,
        "clientTags": nothing,
    }
    request = {"groupId": "g", "memberId": MEMBER, "memberEpoch": epoch}
    request |= {"endpointInformationEpoch": 0}
    asked = request | (joins if epoch == 0 else {}) | fields
    return client.call(ApiKey.STREAMS_GROUP_HEARTBEAT, version, asked, at_ms)


def wait(cluster: Cluster, at_ms: int = START_MS) -> None:
    """Let the cluster do what it put off."""
    cluster.expire(Instants(at_ms, at_ms))


def settled(cluster: Cluster, client: DataClient, at_ms: int = START_MS) -> Fields:
    """The answer by which a member that joins gets all tasks."""
    first = beat(client, 0, at_ms)
    wait(cluster, at_ms)
    return beat(client, first["memberEpoch"], at_ms + 5_000)


def statuses(answer: Fields) -> dict[int, str]:
    """What an answer says of the group."""
    return {each["statusCode"]: each["statusDetail"] for each in answer["status"] or ()}


def tasks(answer: Fields, role: str = "activeTasks") -> dict[str, list[int]]:
    """The tasks that a member is told to have."""
    return {each["subtopologyId"]: sorted(each["partitions"]) for each in answer[role]}


def described(client: DataClient, group: str = "g") -> Fields:
    """A group in StreamsGroupDescribe."""
    request = {"groupIds": [group], "includeAuthorizedOperations": True}
    (found,) = client.call(ApiKey.STREAMS_GROUP_DESCRIBE, 0, request)["groups"]
    return dict(found)


def guarded() -> Cluster:
    """A cluster where only what is allowed may be done; everybody may read the group `g`."""
    cluster = cluster_of(
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    )
    allow(cluster, GROUP, "g", READ, DESCRIBE)
    return cluster


def allow(cluster: Cluster, kind: int, name: str, *operations: int, rule: int = ALLOW) -> None:
    """Let everybody do something, or nobody."""
    for operation in operations:
        cluster.change(AclCreated(kind, name, LITERAL, "User:ANONYMOUS", "*", operation, rule))


@pytest.mark.parametrize("profile", ["4.2", "4.3", "4.4"])
def test_a_member_joins_and_is_assigned(profile: str) -> None:
    """The broker creates the topics that the group needs, then assigns all tasks."""
    cluster = cluster_of(profile=profile)
    client = DataClient(cluster)

    first = beat(client, 0)
    wait(cluster)
    second = beat(client, first["memberEpoch"], START_MS + 5_000)

    missing = f"Internal topics are missing: {REPARTITION}, {CHANGELOG}"
    assert statuses(first)[MISSING_INTERNAL_TOPICS] == missing
    assert MISSING_INTERNAL_TOPICS not in statuses(second)
    assert tasks(second) == {"0": [0, 1, 2, 3], "1": [0, 1, 2, 3]}
    assert len(cluster.image.topics[CHANGELOG].partitions) == 4
    assert cluster.configs.topic_value(CHANGELOG, "cleanup.policy") == ["compact"]
    wanted = {"statesFilter": [], "typesFilter": ["Streams"]}
    (group,) = client.call(ApiKey.LIST_GROUPS, 5, wanted)["groups"]
    assert (group["groupId"], group["groupType"]) == ("g", "streams")


def test_a_group_is_described(served: Cluster) -> None:
    """With its topology, its tasks, and the rights of the sender."""
    client = DataClient(served)
    settled(served, client)

    group = described(client)

    assert (group["groupState"], group["errorCode"]) == ("Stable", 0)
    names = [each["subtopologyId"] for each in group["topology"]["subtopologies"]]
    assert names == ["0", "1"]
    (member,) = group["members"]
    assert member["assignment"]["activeTasks"] == member["targetAssignment"]["activeTasks"]
    assert group["authorizedOperations"] > 0


def test_description_of_a_topology_is_not_stored(served: Cluster) -> None:
    """There is no plugin that would; whether that is told is asked from version 1 on."""
    client = DataClient(served)
    settled(served, client)

    def status(name: str, *, is_wanted: bool) -> int:
        request = {"groupIds": [name], "includeTopologyDescription": is_wanted}
        (group,) = client.call(ApiKey.STREAMS_GROUP_DESCRIBE, 1, request)["groups"]
        return int(group["topologyDescriptionStatus"])

    assert [status("g", is_wanted=each) for each in (False, True)] == [0, 1]
    assert status("nobody", is_wanted=True) == 0


def update_description(cluster: Cluster, group: str = "g") -> Fields:
    """The answer to a member that sends the description of its topology."""
    request = {"groupId": group, "memberId": MEMBER}
    request |= {"topologyDescription": {"subtopologies": [], "globalStores": []}}
    api = ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE
    return DataClient(cluster).call(api, 0, request)


def test_topology_description_is_refused_without_a_plugin(served: Cluster) -> None:
    """The answer of a kafka 4.4.0 without a plugin, whatever the group."""
    answer = update_description(served, group="")

    text = "The broker has no streams group topology description plugin configured."
    assert (answer["errorCode"], answer["errorMessage"]) == (ErrorCode.UNSUPPORTED_VERSION, text)


def test_topology_description_needs_the_right_to_read_the_group() -> None:
    """The right is checked before the plugin; the refusal has no words."""
    answer = update_description(guarded(), group="other")

    assert answer["errorCode"] == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert answer["errorMessage"] is None


def test_topology_description_needs_the_feature_before_the_right() -> None:
    """A cluster without streams groups refuses it without words."""
    cluster = guarded()
    cluster.change(FeatureSet("streams.version", 0))

    answer = update_description(cluster, group="other")

    assert (answer["errorCode"], answer["errorMessage"]) == (ErrorCode.UNSUPPORTED_VERSION, None)


def test_a_topic_that_cannot_be_created_is_told_with_a_later_heartbeat(served: Cluster) -> None:
    """Its error is remembered for two heartbeats; then the broker tries again."""
    client = DataClient(served)

    first = beat(client, 0, topology=topology(copies=3))
    wait(served)
    second = beat(client, first["memberEpoch"], START_MS + 5_000)
    served.topics.create_spread(CHANGELOG, 4, NOW)
    third = beat(client, second["memberEpoch"], START_MS + 10_001)

    assert "Creation failed" not in statuses(first)[MISSING_INTERNAL_TOPICS]
    told = statuses(second)[MISSING_INTERNAL_TOPICS]
    assert told == (
        f"Internal topics are missing: {CHANGELOG}; Creation failed: {CHANGELOG} (Unable to "
        "replicate the partition 3 time(s): The target replication factor of 3 cannot be reached "
        "because only 1 broker(s) are registered or some brokers have all their log directories "
        "cordoned.)."
    )
    assert REPARTITION in served.image.topics
    assert MISSING_INTERNAL_TOPICS not in statuses(third)


def test_a_creation_that_failed_is_tried_again_after_two_heartbeats(served: Cluster) -> None:
    """Within that time the topic is not asked for."""
    client = DataClient(served)
    asked: list[int] = []
    creation = served._handlers[ApiKey.CREATE_TOPICS]
    served._handlers[ApiKey.CREATE_TOPICS] = lambda call: (
        asked.append(call.now.group_ms),
        creation(call),
    )[1]

    epoch = beat(client, 0, topology=topology(copies=3))["memberEpoch"]
    wait(served)
    for at_ms in range(START_MS + 1_000, START_MS + 21_000, 1_000):
        epoch = beat(client, epoch, at_ms)["memberEpoch"]
        wait(served, at_ms)

    assert asked == [START_MS, START_MS + 10_000, START_MS + 20_000]


def test_creation_needs_a_right() -> None:
    """CREATE on the cluster, or on each topic; without it the answer says so."""
    cluster = guarded()
    for name in ("lines", CHANGELOG, REPARTITION):
        allow(cluster, TOPIC, name, DESCRIBE)
    allow(cluster, TOPIC, CHANGELOG, CREATE)
    client = DataClient(cluster)

    first = beat(client, 0)
    allow(cluster, TOPIC, REPARTITION, CREATE)
    second = beat(client, first["memberEpoch"], START_MS + 5_000)
    wait(cluster, START_MS + 5_000)

    assert statuses(first)[MISSING_INTERNAL_TOPICS] == (
        f"Internal topics are missing: {REPARTITION}, {CHANGELOG}; Unauthorized to CREATE on "
        f"topics {REPARTITION}."
    )
    assert "Unauthorized" not in statuses(second)[MISSING_INTERNAL_TOPICS]
    assert {CHANGELOG, REPARTITION} <= set(cluster.image.topics)


def test_rights_and_names_are_checked_in_order() -> None:
    """READ on the group, then names, then DESCRIBE on topics."""
    cluster = guarded()
    client = DataClient(cluster)

    no_group = beat(client, 0, groupId="h", topology=topology("__consumer_offsets"))
    prohibited = beat(client, 0, topology=topology("__consumer_offsets"))
    invalid = beat(client, 0, topology=topology("a b"))
    hidden = beat(client, 0)
    allow(cluster, TOPIC, "lines", DESCRIBE)
    half = beat(client, 0)

    assert no_group["errorCode"] == ErrorCode.GROUP_AUTHORIZATION_FAILED
    wrong = ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert (prohibited["errorCode"], invalid["errorCode"]) == (wrong, wrong)
    assert prohibited["errorMessage"] == (
        "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is prohibited."
    )
    assert invalid["errorMessage"] == "Topic names a b are not valid topic names."
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert (hidden["errorCode"], half["errorCode"]) == (refused, refused)


def test_a_description_hides_topics() -> None:
    """Who may not know of a topic of the group is told that, and nothing else of the group."""
    cluster = guarded()
    allow(cluster, CLUSTER, "kafka-cluster", CREATE)
    for name in ("lines", CHANGELOG, REPARTITION):
        allow(cluster, TOPIC, name, DESCRIBE)
    client = DataClient(cluster)
    settled(cluster, client)

    seen = described(client)
    other = described(client, "h")
    allow(cluster, TOPIC, CHANGELOG, DESCRIBE, rule=DENY)
    hidden = described(client)

    assert (seen["errorCode"], len(seen["members"])) == (0, 1)
    assert other["errorCode"] == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert hidden["errorCode"] == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert (hidden["members"], hidden["topology"]) == ([], None)


def test_the_feature_turns_the_groups_off_and_on(served: Cluster) -> None:
    """A member is told UNSUPPORTED_VERSION while it is off, and goes on afterwards."""
    client = DataClient(served)
    epoch = settled(served, client)["memberEpoch"]

    def set_level(level: int, kind: int) -> int:
        asked = {"feature": "streams.version", "maxVersionLevel": level, "upgradeType": kind}
        request = {"timeoutMs": 1_000, "featureUpdates": [asked], "validateOnly": False}
        return int(client.call(ApiKey.UPDATE_FEATURES, 2, request)["errorCode"])

    assert set_level(0, SAFE_DOWNGRADE) == 0
    off = beat(client, epoch, START_MS + 6_000)
    hidden = described(client)
    assert set_level(1, 1) == 0
    on = beat(client, epoch, START_MS + 7_000)

    unsupported = ErrorCode.UNSUPPORTED_VERSION
    assert (off["errorCode"], off["errorMessage"]) == (unsupported, None)
    assert (hidden["errorCode"], hidden["groupId"]) == (unsupported, "g")
    assert (on["errorCode"], on["memberEpoch"]) == (0, epoch)


@pytest.mark.parametrize("profile", ["4.0", "4.1"])
def test_older_releases_have_none(profile: str) -> None:
    """Their brokers offer neither the API nor the feature."""
    cluster = cluster_of(profile=profile)

    assert ApiKey.STREAMS_GROUP_HEARTBEAT not in cluster.versions.ranges
    assert "streams.version" not in cluster.image.features


def test_brokers_may_leave_the_protocol_out() -> None:
    """`group.coordinator.rebalance.protocols` names what brokers accept."""
    cluster = cluster_of(group_coordinator_rebalance_protocols="classic,consumer")

    assert beat(DataClient(cluster), 0)["errorCode"] == ErrorCode.UNSUPPORTED_VERSION


def test_settings_of_a_group_count_with_the_next_heartbeat(served: Cluster) -> None:
    """Its interval, its copies of tasks, and its session."""
    client = DataClient(served)
    before = settled(served, client)
    other = "member-2"
    second = beat(client, 0, START_MS + 6_500, memberId=other, processId="q")

    configs = [
        {"name": f"streams.{name}", "configOperation": 0, "value": value}
        for name, value in (
            ("heartbeat.interval.ms", "7000"),
            ("num.standby.replicas", "1"),
            ("session.timeout.ms", "50000"),
        )
    ]
    resource = {"resourceType": GROUP_RESOURCE, "resourceName": "g", "configs": configs}
    asked = {"resources": [resource], "validateOnly": False}
    answer = client.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, asked)
    after = beat(client, before["memberEpoch"], START_MS + 9_000)

    assert answer["responses"][0]["errorCode"] == 0
    assert before["heartbeatIntervalMs"] == second["heartbeatIntervalMs"] == 5_000
    assert after["heartbeatIntervalMs"] == 7_000
    (target,) = (
        each["targetAssignment"]
        for each in described(client)["members"]
        if each["memberId"] == MEMBER
    )
    assert [each["subtopologyId"] for each in target["standbyTasks"]] == ["1"]
    ends = START_MS + 9_000 + 50_000
    wait(served, ends - 1)
    assert len(described(client)["members"]) == 1
    wait(served, ends)
    assert described(client)["members"] == []


def test_a_group_outlives_the_process(tmp_path: Path) -> None:
    """Records, internal topics and the level of the feature are kept on disk."""
    world = KeptWorld(tmp_path, settings=ClusterSettings(coordinator=coordinator_config()))
    prepare(world.cluster)
    epoch = settled(world.cluster, DataClient(world.cluster))["memberEpoch"]

    world.leave()
    client = DataClient(world.cluster)
    kept = beat(client, epoch, START_MS + 6_000)

    assert (kept["errorCode"], kept["memberEpoch"]) == (0, epoch)
    assert {CHANGELOG, REPARTITION} <= set(world.cluster.image.topics)
    assert described(client)["members"][0]["memberId"] == MEMBER


def test_members_leave_and_the_group_is_deleted(served: Cluster) -> None:
    """While it has members it cannot be; commits are fenced by the member's epoch."""
    client = DataClient(served)
    epoch = settled(served, client)["memberEpoch"]
    version = newest_version(ApiKey.DELETE_GROUPS)

    def deleted() -> int:
        answer = client.call(ApiKey.DELETE_GROUPS, version, {"groupsNames": ["g"]})
        return int(answer["results"][0]["errorCode"])

    full = deleted()
    committed = {"partitionIndex": 0, "committedOffset": 7, "committedLeaderEpoch": -1}
    committed |= {"committedMetadata": ""}
    commit = {"groupId": "g", "memberId": MEMBER, "generationIdOrMemberEpoch": epoch - 1}
    commit |= {"groupInstanceId": None, "topics": [{"name": "lines", "partitions": [committed]}]}
    stale = client.call(ApiKey.OFFSET_COMMIT, 9, commit)["topics"][0]["partitions"][0]
    gone = beat(client, -1, START_MS + 6_000)

    assert full == ErrorCode.NON_EMPTY_GROUP
    assert stale["errorCode"] == ErrorCode.STALE_MEMBER_EPOCH
    assert (gone["errorCode"], gone["memberEpoch"]) == (0, -1)
    assert deleted() == 0
    assert described(client)["errorCode"] == ErrorCode.GROUP_ID_NOT_FOUND


def test_errors_are_remembered_for_a_while_and_up_to_a_number() -> None:
    """The first to expire goes where there are too many; a newer error counts."""
    errors = TopicErrors(capacity=2)
    for name, ttl_ms in (("a", 10), ("b", 30), ("c", 20)):
        errors.put(name, f"no {name}", 100, ttl_ms)
    errors.put("b", "still no b", 105, 30)

    assert errors.of(["c", "b", "a"], 105) == {"c": "no c", "b": "still no b"}
    assert errors.of(["c", "b"], 120) == {"b": "still no b"}
    assert errors.of(["c", "b"], 135) == {}
