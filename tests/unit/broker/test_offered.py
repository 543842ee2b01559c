"""What is offered is answered, and has a row and a test in the table of what is implemented."""

import re
from pathlib import Path
from typing import Any, Final

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.implemented import IMPLEMENTED, IMPLEMENTED_FEATURES
from coordinator_sim.broker.offered import offered, offered_features
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.api_versions import recorded_versions
from coordinator_sim.kafka.profiles import PROFILES
from coordinator_sim.messages.catalogue import newest_version
from coordinator_sim.messages.codec.frames import RequestHeader
from coordinator_sim_conformance.field_frames import read_response_frame, request_frame
from tests.unit.broker.frames_client import FramesClient

REPO: Final = Path(__file__).resolve().parents[3]
NOW: Final = Instants(1_000_000, 1_000_000)
FIELDS: Final[dict[ApiKey, dict[str, Any]]] = {
    ApiKey.PRODUCE: {"acks": 1},
    ApiKey.API_VERSIONS: {"clientSoftwareName": "test", "clientSoftwareVersion": "1"},
    ApiKey.DESCRIBE_ACLS: {"resourceTypeFilter": 1, "operation": 1, "permissionType": 1},
}
"""What must be said so that there is an answer; all else is at its default."""


def served(profile: str) -> Cluster:
    """A broker of that profile."""
    settings = ClusterSettings(profile=PROFILES[profile])
    return Cluster(settings, endpoint=lambda _broker, _name: Endpoint("localhost", 9092))


@pytest.mark.parametrize("profile", PROFILES)
def test_every_offered_version_is_answered(profile: str) -> None:
    """An empty request of each version of each API gets an answer that the version can say."""
    cluster = served(profile)
    for api, (oldest, newest) in cluster.versions.ranges.items():
        for version in range(oldest, newest + 1):
            client = FramesClient(cluster)
            header = RequestHeader(
                api_key=api, api_version=version, correlation_id=7, client_id="test"
            )
            frame = request_frame(header, FIELDS.get(api, {}))
            client.connection.received(frame, NOW)
            cluster.go_on(NOW)

            assert client.closed is None, (api.name, version)
            assert len(client.frames) == 1, (api.name, version)
            assert read_response_frame(api, version, client.frames[0])[0] == 7


@pytest.mark.parametrize("profile", PROFILES)
def test_nothing_is_offered_that_a_broker_of_the_profile_does_not(profile: str) -> None:
    """The ranges lie within those that were recorded from a real one."""
    recorded = recorded_versions(PROFILES[profile]).ranges
    for api, (oldest, newest) in served(profile).versions.ranges.items():
        assert recorded[api][0] == oldest
        assert oldest <= newest <= recorded[api][1]


def test_an_api_is_offered_up_to_what_is_implemented() -> None:
    """And not at all without a row."""
    ranges = offered(PROFILES["4.4"], [ApiKey.FETCH, ApiKey.CREATE_DELEGATION_TOKEN])

    assert ranges == {ApiKey.FETCH: (4, min(18, IMPLEMENTED[ApiKey.FETCH].newest))}


@pytest.mark.parametrize("api", IMPLEMENTED, ids=lambda api: str(api.name))
def test_every_promise_names_a_version_of_the_codec_and_a_test_that_exists(api: ApiKey) -> None:
    """The test is a function of that name in that file."""
    row = IMPLEMENTED[api]
    assert 0 <= row.newest <= newest_version(api)
    assert row.brings
    path, name = row.test.split("::")
    assert re.search(rf"^(async )?def {name}\(", (REPO / path).read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_cap_below_kafkas_newest_has_a_reason(profile: str) -> None:
    """Where a broker of the profile offers more, the row says why this one does not."""
    recorded = recorded_versions(PROFILES[profile]).ranges
    for api, row in IMPLEMENTED.items():
        if api in recorded and recorded[api][1] > row.newest:
            assert row.cap, api.name


def test_features_are_those_of_a_default_cluster_as_far_as_implemented() -> None:
    """`group.version` is among them, and on."""
    features = offered_features(PROFILES["4.4"])

    assert tuple(features.supported) == IMPLEMENTED_FEATURES
    assert features.finalized["transaction.version"] == 2
    assert "kraft.version" not in features.finalized
    assert features.finalized["group.version"] == 1
    assert offered_features(PROFILES["2.8"]).supported == {}
