"""UpdateFeatures: levels that move, and those that may not."""

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.metadata.changes import ConfigsChanged, FeatureSet
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import PROFILES
from coordinator_sim_conformance.field_frames import Fields, response_frame
from tests.unit.broker.fields_client import FieldsClient
from tests.unit.broker.frames_client import DataClient

UPGRADE, DOWNGRADE = 1, 2
FEATURE = "transaction.version"
KRAFT = "kraft.version"
ELR = "eligible.leader.replicas.version"
INCREMENTAL, LEGACY = ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.ALTER_CONFIGS
MIN_ISR = "min.insync.replicas"


def update(cluster: Cluster, name: str, level: int, kind: int, *, only: bool = False) -> Fields:
    """The answer to UpdateFeatures 2 for one feature."""
    asked = {"feature": name, "maxVersionLevel": level, "upgradeType": kind}
    request = {"timeoutMs": 1_000, "featureUpdates": [asked], "validateOnly": only}
    return DataClient(cluster).call(ApiKey.UPDATE_FEATURES, 2, request)


def served(profile: str, given: dict[str, str] | None = None) -> Cluster:
    """A broker of that profile."""
    settings = ClusterSettings(profile=PROFILES[profile], given=given or {})
    return Cluster(settings, endpoint=lambda _broker, _name: Endpoint("localhost", 9092))


def levels(cluster: Cluster) -> dict[str, int]:
    """The finalized features that clients see."""
    software = {"clientSoftwareName": "test", "clientSoftwareVersion": "1"}
    answer = DataClient(cluster).call(ApiKey.API_VERSIONS, 4, software)
    return {each["name"]: each["maxVersionLevel"] for each in answer["finalizedFeatures"]}


def test_feature_goes_down_and_up_again(cluster: Cluster) -> None:
    """Clients see the new level in ApiVersions."""
    assert update(cluster, FEATURE, 1, DOWNGRADE)["errorCode"] == 0
    assert levels(cluster)[FEATURE] == 1
    assert update(cluster, FEATURE, 2, UPGRADE)["errorCode"] == 0


@pytest.mark.parametrize(
    ("name", "level", "kind", "text"),
    [
        (ELR, 0, UPGRADE, "Can't downgrade the version of this feature without"),
        ("kraft.version", 1, DOWNGRADE, "Can't downgrade to a newer version."),
        ("nothing", 0, UPGRADE, "Feature nothing not found."),
        (FEATURE, 5, UPGRADE, "Local controller 1 only supports versions 0-2"),
        (FEATURE, -1, UPGRADE, "cannot be less than 0"),
        (FEATURE, 1, UPGRADE, "Can't downgrade the version of this feature without"),
        (FEATURE, 1, 9, "does not support the given upgrade type"),
        ("nothing", 1, UPGRADE, "Local controller 1 does not support this feature."),
        ("metadata.version", 8, DOWNGRADE, "Unsupported metadata.version downgrade"),
    ],
)
def test_refused_level_says_why(
    cluster: Cluster, name: str, level: int, kind: int, text: str
) -> None:
    """The error is the same for all features of a request, and nothing moves."""
    before = dict(cluster.image.features)

    answer = update(cluster, name, level, kind)

    assert answer["errorCode"] == ErrorCode.INVALID_UPDATE_VERSION
    assert text in answer["errorMessage"]
    assert cluster.image.features == before


def test_kraft_version_is_raised_for_good(cluster: Cluster) -> None:
    """A cluster of configured voters begins at level 0."""
    assert levels(cluster).get(KRAFT, 0) == 0
    assert update(cluster, KRAFT, 1, UPGRADE)["errorCode"] == 0
    assert levels(cluster)[KRAFT] == 1

    refused = update(cluster, KRAFT, 0, DOWNGRADE)

    assert refused["errorMessage"].endswith("Can't downgrade the version of this feature.")


def test_kraft_version_is_accepted_and_not_raised_by_4_0() -> None:
    """Its voters cannot change at all."""
    cluster = served("4.0")
    assert update(cluster, KRAFT, 1, UPGRADE)["errorCode"] == 0
    assert KRAFT not in levels(cluster)


def test_feature_that_a_release_has_disabled_takes_level_0() -> None:
    """4.1 knows streams groups, but only as unstable."""
    cluster = served("4.1")
    assert update(cluster, "streams.version", 0, DOWNGRADE)["errorCode"] == 0
    assert update(cluster, "streams.version", 1, UPGRADE)["errorCode"] == 95


@pytest.mark.parametrize(
    ("profile", "given", "value"), [("4.4", {}, "1"), ("4.1", {MIN_ISR: "2"}, "2"), ("4.0", {}, "")]
)
def test_eligible_leader_replicas_make_the_least_isr_a_setting_of_the_cluster(
    profile: str, given: dict[str, str], value: str
) -> None:
    """4.0 supports them, and finalizes them only on request."""
    cluster = served(profile, given)
    assert cluster.image.configs_of(4, "").get(MIN_ISR, "") == value
    assert (ELR in levels(cluster)) == bool(value)


@pytest.mark.parametrize(
    ("api", "version", "broker", "change", "text"),
    [
        (INCREMENTAL, 1, "1", {"configOperation": 0, "value": "1"}, "Broker-level"),
        (INCREMENTAL, 1, "1", {"configOperation": 1, "value": None}, "Broker-level"),
        (INCREMENTAL, 1, "", {"configOperation": 1, "value": None}, "Cluster-level"),
        (INCREMENTAL, 1, "", {"configOperation": 0, "value": "1"}, None),
        (LEGACY, 2, "1", {"value": "1"}, "Broker-level"),
        (LEGACY, 2, "", None, "Cluster-level"),
        (LEGACY, 2, "", {"value": "1"}, None),
        (LEGACY, 2, "1", None, None),
    ],
)
def test_least_isr_may_not_go_while_eligible_leader_replicas_are_on(
    cluster: Cluster,
    api: ApiKey,
    version: int,
    broker: str,
    change: dict[str, object] | None,
    text: str | None,
) -> None:
    """Neither to a single broker, nor away."""
    configs = [] if change is None else [{"name": MIN_ISR, **change}]
    resource = {"resourceType": 4, "resourceName": broker, "configs": configs}

    (answer,) = DataClient(cluster).call(api, version, {"resources": [resource]})["responses"]

    assert (answer["errorMessage"] or "").startswith(text or "")
    assert answer["errorCode"] == (0 if text is None else ErrorCode.INVALID_CONFIG)


def test_least_isr_moves_to_the_cluster_when_the_feature_is_turned_on(cluster: Cluster) -> None:
    """A broker's own value is removed."""
    update(cluster, ELR, 0, DOWNGRADE)
    cluster.change(ConfigsChanged(4, "", {MIN_ISR: None}))
    cluster.change(ConfigsChanged(4, "1", {MIN_ISR: "3"}))

    update(cluster, ELR, 1, UPGRADE)

    assert cluster.image.configs_of(4, "") == {MIN_ISR: "1"}
    assert MIN_ISR not in cluster.image.configs_of(4, "1")


def test_trial_moves_nothing(cluster: Cluster) -> None:
    """With validateOnly the answer is that of a success."""
    before = dict(cluster.image.features)

    assert update(cluster, FEATURE, 0, DOWNGRADE, only=True)["errorCode"] == 0
    assert cluster.image.features == before


# -- Groups of KIP-848 at brokers that have them switched off; bytes as real brokers answered --


HEARTBEAT = ApiKey.CONSUMER_GROUP_HEARTBEAT
DESCRIBE = ApiKey.CONSUMER_GROUP_DESCRIBE
CORRELATION_ID = 7
NEWEST = [("3.9", 0), ("4.0", 1), ("4.1", 1), ("4.2", 1), ("4.3", 1), ("4.4", 1)]
"""Versions of both APIs that a broker of a profile offers, whatever its features."""
VERSIONS = [(name, version) for name, newest in NEWEST for version in range(newest + 1)]
REAL_HEARTBEAT = "000000070000000000002300000000000000000000ff00"
"""From a broker of 3.9.2 in default settings, and of 4.4.0 with group.version at 0, alike."""
REAL_DESCRIPTION = (
    "00000007000000000004"
    "00230002670100000000000000000101800000000000230002680100000000000000000101800000000000230002"
    "670100000000000000000101800000000000"
)
"""Likewise, of the groups g, h and g again, with the rights asked for."""


def client_of(profile: str) -> FieldsClient:
    """A client of a cluster of that profile, whose `group.version` is at 0 where it has one."""
    cluster = Cluster(
        ClusterSettings(profile=PROFILES[profile]), endpoint=lambda _broker, _listener: None
    )
    switch_off(cluster)
    return FieldsClient(cluster)


def switch_off(cluster: Cluster) -> None:
    """Let a cluster go on without consumer groups."""
    if "group.version" in cluster.image.features:
        cluster.change(FeatureSet("group.version", 0))


def frame(client: FieldsClient, api: ApiKey, version: int, request: dict[str, object]) -> str:
    """The bytes of an answer."""
    answer = client.call(api, version, request)
    return response_frame(api, version, CORRELATION_ID, answer).hex()


@pytest.mark.parametrize(("profile", "version"), VERSIONS)
def test_heartbeat_says_that_such_groups_are_off(profile: str, version: int) -> None:
    """In the answer's body, byte by byte as a real broker."""
    client = client_of(profile)
    joining = {
        "groupId": "g",
        "memberId": "",
        "memberEpoch": 0,
        "rebalanceTimeoutMs": 1_000,
        "subscribedTopicNames": ["t"],
        "topicPartitions": [],
    }
    assert frame(client, HEARTBEAT, version, joining) == REAL_HEARTBEAT
    assert client.cluster.groups.living[1].coordinator.group("g") is None


@pytest.mark.parametrize(("profile", "version"), VERSIONS)
def test_each_described_group_is_told_so(profile: str, version: int) -> None:
    """A group a time, in the order of the request; of no groups there is nothing to tell."""
    client = client_of(profile)
    asked = {"groupIds": ["g", "h", "g"], "includeAuthorizedOperations": True}
    assert frame(client, DESCRIBE, version, asked) == REAL_DESCRIPTION
    told = client.call(DESCRIBE, version, {"groupIds": [], "includeAuthorizedOperations": False})
    assert told["groups"] == []


@pytest.mark.parametrize(("profile", "newest"), NEWEST)
def test_both_are_offered_as_a_broker_of_the_profile_does(profile: str, newest: int) -> None:
    """The feature that would switch such groups on is at level 0 all the same."""
    told = client_of(profile).call(ApiKey.API_VERSIONS, 3, VERSIONS_REQUEST)
    spans = {each["apiKey"]: (each["minVersion"], each["maxVersion"]) for each in told["apiKeys"]}
    assert (spans[HEARTBEAT], spans[DESCRIBE]) == ((0, newest), (0, newest))
    assert "group.version" not in [each["name"] for each in told["finalizedFeatures"]]


VERSIONS_REQUEST = {"clientSoftwareName": "test", "clientSoftwareVersion": "1"}


@pytest.mark.parametrize("profile", ["0.10.2", "2.8"])
def test_older_brokers_know_neither(profile: str) -> None:
    """A client is told so by the versions."""
    ranges = client_of(profile).cluster.versions.ranges
    assert HEARTBEAT not in ranges
    assert DESCRIBE not in ranges


def test_feature_comes_before_rights() -> None:
    """Who may see no group is told that such groups are off, as everybody is."""
    settings = ClusterSettings(
        given={
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:admin",
        }
    )
    client = FieldsClient(Cluster(settings, endpoint=lambda _broker, _listener: None))
    switch_off(client.cluster)
    asked = {"groupIds": ["g"], "includeAuthorizedOperations": False}
    (group,) = client.call(DESCRIBE, 1, asked)["groups"]
    assert group["errorCode"] == ErrorCode.UNSUPPORTED_VERSION
    beat = {"groupId": "g", "memberId": "m", "memberEpoch": 0}
    assert client.call(HEARTBEAT, 1, beat)["errorCode"] == ErrorCode.UNSUPPORTED_VERSION
