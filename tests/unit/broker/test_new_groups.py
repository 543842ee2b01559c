"""Groups of KIP-848 at brokers that have them switched off; bytes as real brokers answered."""

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.metadata.changes import FeatureSet
from coordinator_sim.broker.settings import ClusterSettings
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import PROFILES
from coordinator_sim_conformance.field_frames import response_frame
from tests.unit.broker.fields_client import FieldsClient

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
