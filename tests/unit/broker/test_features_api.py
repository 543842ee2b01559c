"""UpdateFeatures: levels that move, and those that may not."""

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim_conformance.field_frames import Fields
from tests.unit.broker.data_client import DataClient

UPGRADE, DOWNGRADE = 1, 2
FEATURE = "transaction.version"


def update(cluster: Cluster, name: str, level: int, kind: int, *, only: bool = False) -> Fields:
    """The answer to UpdateFeatures 2 for one feature."""
    asked = {"feature": name, "maxVersionLevel": level, "upgradeType": kind}
    request = {"timeoutMs": 1_000, "featureUpdates": [asked], "validateOnly": only}
    return DataClient(cluster).call(ApiKey.UPDATE_FEATURES, 2, request)


def test_feature_goes_down_and_up_again(cluster: Cluster) -> None:
    """Clients see the new level in ApiVersions."""
    assert update(cluster, FEATURE, 1, DOWNGRADE)["errorCode"] == 0
    software = {"clientSoftwareName": "test", "clientSoftwareVersion": "1"}
    told = DataClient(cluster).call(ApiKey.API_VERSIONS, 4, software)["finalizedFeatures"]

    assert {each["name"]: each["maxVersionLevel"] for each in told}[FEATURE] == 1
    assert update(cluster, FEATURE, 2, UPGRADE)["errorCode"] == 0


@pytest.mark.parametrize(
    ("name", "level", "kind", "text"),
    [
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


def test_trial_moves_nothing(cluster: Cluster) -> None:
    """With validateOnly the answer is that of a success."""
    before = dict(cluster.image.features)

    assert update(cluster, FEATURE, 0, DOWNGRADE, only=True)["errorCode"] == 0
    assert cluster.image.features == before
