"""Share groups of a served cluster: what a member, an administrator and a restart see."""

from pathlib import Path

import pytest

from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.settings import ClusterSettings
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import PROFILES
from coordinator_sim.messages.catalogue import SHARE_GROUP_APIS
from coordinator_sim_conformance.field_frames import Fields
from tests.unit.broker.kept_world import KeptWorld
from tests.unit.broker.shares.share_world import (
    AUTHORIZER,
    DELETE,
    DESCRIBE,
    GROUP,
    GROUP_ACL,
    MEMBER,
    READ,
    TOPIC_ACL,
    ShareWorld,
    acquired,
    share_world,
)

SAFE_DOWNGRADE = 2


def described(world: ShareWorld, *names: str, wants_operations: bool = False) -> list[Fields]:
    """Groups in ShareGroupDescribe."""
    fields = {"groupIds": list(names), "includeAuthorizedOperations": wants_operations}
    return list(world.client.call(ApiKey.SHARE_GROUP_DESCRIBE, 1, fields)["groups"])


def listed(world: ShareWorld, *types: str) -> list[tuple[str, str, str]]:
    """Groups in ListGroups: name, type and state."""
    fields = {"statesFilter": [], "typesFilter": list(types)}
    groups = world.client.call(ApiKey.LIST_GROUPS, 5, fields)["groups"]
    return [(each["groupId"], each["groupType"], each["groupState"]) for each in groups]


def altered(world: ShareWorld, topics: dict[str, list[int]]) -> Fields:
    """The answer to AlterShareGroupOffsets."""
    asked = [
        {
            "topicName": name,
            "partitions": [{"partitionIndex": each, "startOffset": 3} for each in partitions],
        }
        for name, partitions in topics.items()
    ]
    fields = {"groupId": GROUP, "topics": asked}
    return world.client.call(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, fields)


def deleted(world: ShareWorld, *topics: str) -> Fields:
    """The answer to DeleteShareGroupOffsets."""
    fields = {"groupId": GROUP, "topics": [{"topicName": name} for name in topics]}
    return world.client.call(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, fields)


@pytest.mark.parametrize("profile", ["4.2", "4.3", "4.4"])
def test_a_member_joins_and_is_assigned(profile: str) -> None:
    """When the share coordinator keeps the state of what it is to read."""
    world = share_world(profile=profile, partitions=3)
    world.set(share_auto_offset_reset="earliest")

    answer = world.settle()

    (topic,) = answer["assignment"]["topicPartitions"]
    assert (topic["topicId"], sorted(topic["partitions"])) == (world.topic_id, [0, 1, 2])
    assert listed(world) == listed(world, "Share") == [(GROUP, "share", "Stable")]
    assert listed(world, "Consumer") == []
    assert acquired(world.fetch())[0] == [(0, 4, 1)]


def test_members_share_partitions() -> None:
    """Each partition is with both of them."""
    world = share_world()
    world.settle()
    other = world.settle("other")

    (topic,) = other["assignment"]["topicPartitions"]
    assert topic["partitions"] == [0]
    (group,) = described(world, GROUP)
    assert [len(each["assignment"]["topicPartitions"]) for each in group["members"]] == [1, 1]


def test_a_group_is_described() -> None:
    """With members, epochs, and the rights of the sender where that is asked for."""
    world = share_world()
    world.settle()

    (group,) = described(world, GROUP)
    (with_rights,) = described(world, GROUP, wants_operations=True)
    (unknown,) = described(world, "nothing")

    assert (group["groupState"], group["assignorName"]) == ("Stable", "simple")
    assert [each["memberId"] for each in group["members"]] == [MEMBER]
    assert group["authorizedOperations"] < 0 < with_rights["authorizedOperations"]
    assert unknown["errorCode"] == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_member_that_leaves_leaves_an_empty_group() -> None:
    """Which may be deleted, and all that is kept of it with it."""
    world = share_world()
    world.settle()
    full = world.client.call(ApiKey.DELETE_GROUPS, 2, {"groupsNames": [GROUP]})
    world.beat(-1)
    empty = listed(world)
    world.client.call(ApiKey.DELETE_GROUPS, 2, {"groupsNames": [GROUP]})

    assert full["results"][0]["errorCode"] == ErrorCode.NON_EMPTY_GROUP
    assert empty == [(GROUP, "share", "Empty")]
    assert listed(world) == []
    assert world.offsets()["topics"] == []


def test_offsets_are_altered_topic_by_topic() -> None:
    """Partitions that there are not are refused, and topics, which come first."""
    world = share_world()

    answer = altered(world, {"lines": [0, 7], "nothing": [0], "none": []})

    told = {
        topic["topicName"]: [each["errorCode"] for each in topic["partitions"]]
        for topic in answer["responses"]
    }
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answer["errorCode"] == 0
    assert list(told.items()) == [("nothing", [unknown]), ("lines", [0, unknown])]
    assert acquired(world.fetch()) == {0: [(3, 4, 1)]}


def test_negative_partition_refuses_an_alteration_as_a_whole() -> None:
    """The persister's own words, and no topic."""
    answer = altered(share_world(), {"lines": [0, -1]})

    assert (answer["errorCode"], answer["responses"]) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])
    words = "Initialize share group parameters has invalid partitionId - "
    assert answer["errorMessage"].startswith(words)
    assert answer["errorMessage"].endswith(" -1")


@pytest.mark.parametrize(
    ("partitions", "indexes", "error"),
    [([], [], -1), ([0, 0], [0], 0), ([1, 0, 1], [0, 1], 0), ([0, -1], [], -1)],
)
def test_partition_that_is_named_twice_is_described_once(
    partitions: list[int], indexes: list[int], error: int
) -> None:
    """In the order of Java's maps; none, and one below 0, are an error of the group."""
    group = share_world().offsets(topics=[{"topicName": "lines", "partitions": partitions}])

    assert group["errorCode"] == error
    found = [each["partitionIndex"] for topic in group["topics"] for each in topic["partitions"]]
    assert found == indexes


def test_offsets_are_deleted_topic_by_topic() -> None:
    """Of an empty group; what is read afterwards begins anew."""
    world = share_world()
    altered(world, {"lines": [0]})

    answer = deleted(world, "lines", "nothing")

    told = {each["topicName"]: each["errorCode"] for each in answer["responses"]}
    assert told == {"lines": 0, "nothing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert world.offsets()["topics"] == []


def test_offsets_of_a_group_with_members_stay() -> None:
    """Neither altered nor deleted."""
    world = share_world()
    world.settle()
    not_empty = ErrorCode.NON_EMPTY_GROUP

    assert altered(world, {"lines": [0]})["errorCode"] == not_empty
    assert deleted(world, "lines")["errorCode"] == not_empty


def test_rights_are_asked_of_group_and_topics() -> None:
    """READ to join and alter, DELETE to delete, DESCRIBE to describe; each topic by itself."""
    world = share_world(authorizer_class_name=AUTHORIZER)
    denied = ErrorCode.GROUP_AUTHORIZATION_FAILED
    refused = [
        world.beat()["errorCode"],
        altered(world, {"lines": [0]})["errorCode"],
        deleted(world, "lines")["errorCode"],
        described(world, GROUP)[0]["errorCode"],
    ]
    world.allow(GROUP_ACL, GROUP, READ, DELETE, DESCRIBE)
    hidden = [
        world.beat()["errorCode"],
        altered(world, {"lines": [0]})["responses"][0]["partitions"][0]["errorCode"],
    ]
    world.allow(TOPIC_ACL, "lines", READ)
    readable = altered(world, {"lines": [0], "other": [0]})["responses"]
    world.cluster.image.acls.clear()
    world.allow(GROUP_ACL, GROUP, READ, DELETE)
    lost = deleted(world, "lines")["responses"]

    no_topic = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert refused == [denied] * 4
    assert hidden == [no_topic, no_topic]
    assert [each["partitions"][0]["errorCode"] for each in readable] == [no_topic, 0]
    assert [each["errorCode"] for each in lost] == [no_topic]


def test_a_description_hides_topics() -> None:
    """Who may not know of a topic of the group is told that, and nothing else of the group."""
    world = share_world(authorizer_class_name=AUTHORIZER)
    world.allow(GROUP_ACL, GROUP, READ, DESCRIBE)
    world.allow(TOPIC_ACL, "lines", DESCRIBE)
    world.settle()
    (seen,) = described(world, GROUP)
    world.cluster.image.acls.clear()
    world.allow(GROUP_ACL, GROUP, DESCRIBE)
    (hidden,) = described(world, GROUP)

    assert (seen["errorCode"], len(seen["members"])) == (0, 1)
    assert (hidden["errorCode"], hidden["members"]) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])


def test_the_feature_turns_the_groups_off_and_on() -> None:
    """Sessions are gone afterwards; the group is there as before."""
    world = share_world()
    epoch = world.settle()["memberEpoch"]
    world.fetch(maxWaitMs=0)

    def set_level(level: int, kind: int) -> int:
        asked = {"feature": "share.version", "maxVersionLevel": level, "upgradeType": kind}
        request = {"timeoutMs": 1_000, "featureUpdates": [asked], "validateOnly": False}
        return int(world.client.call(ApiKey.UPDATE_FEATURES, 2, request)["errorCode"])

    assert set_level(0, SAFE_DOWNGRADE) == 0
    off = [world.beat(epoch), world.fetch(1), altered(world, {"lines": [0]}), deleted(world, "a")]
    assert set_level(2, 1) == 0

    assert {each["errorCode"] for each in off} == {ErrorCode.UNSUPPORTED_VERSION}
    assert world.fetch(1)["errorCode"] == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert world.beat(epoch)["errorCode"] == 0


@pytest.mark.parametrize("profile", ["4.0", "4.1", "3.9"])
def test_older_releases_have_none(profile: str) -> None:
    """Their brokers offer neither the APIs nor the feature."""
    world = share_world(profile=profile)

    assert not set(SHARE_GROUP_APIS) & set(world.cluster.versions.ranges)
    assert "share.version" not in world.cluster.image.features


def test_brokers_need_not_name_the_protocol() -> None:
    """`group.coordinator.rebalance.protocols` does not count for share groups."""
    world = share_world(group_coordinator_rebalance_protocols="classic,consumer")

    assert world.beat()["errorCode"] == 0


def test_a_new_cluster_may_have_them_off() -> None:
    """As by `kafka-storage format --feature share.version=0`; there is no level 2 in 4.3."""
    levels = {"share.version": 0}
    world = share_world(features=levels)

    assert world.beat()["errorCode"] == ErrorCode.UNSUPPORTED_VERSION
    with pytest.raises(ConfigError, match=r"share\.version=2: must be from 0 to 1"):
        share_world(profile="4.3", features={"share.version": 2})


def test_groups_and_what_they_have_read_outlive_the_process(tmp_path: Path) -> None:
    """The next process goes on at the first record that is not done with."""
    settings = ClusterSettings(
        profile=PROFILES["4.4"],
        coordinator=CoordinatorConfig(offsets_topic_num_partitions=1),
        share_state_partitions=1,
        share_state_min_isr=1,
    )
    kept = KeptWorld(tmp_path, settings=settings)
    world = ShareWorld(kept.cluster)
    world.start()
    world.fetch()
    world.acknowledge(1, (0, 2, 1))
    before = world.offsets()
    kept.leave()
    after = ShareWorld(kept.cluster, partitions=0)
    after.cluster.expire(Instants(after.clients.now_ms, after.clients.now_ms))

    assert listed(after) == [(GROUP, "share", "Empty")]
    assert after.offsets() == before
    assert acquired(after.fetch()) == {0: [(3, 4, 1)]}
