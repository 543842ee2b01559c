"""UpdateFeatures: levels that move, and those that may not."""

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.metadata.changes import ConfigsChanged
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import PROFILES
from coordinator_sim_conformance.field_frames import Fields
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
