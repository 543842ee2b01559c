"""What a client is told of versions and features."""

from typing import Any

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.changes import FeatureSet
from coordinator_sim.broker.settings import DEFAULT_CLUSTER_ID, ClusterSettings, Endpoint
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import PROFILES
from coordinator_sim.messages.codec.frames import RequestHeader
from coordinator_sim_conformance.field_frames import read_response_frame, request_frame
from tests.unit.broker.frames_client import FramesClient

SOFTWARE = {"clientSoftwareName": "test", "clientSoftwareVersion": "1"}
NOW = Instants(1_000_000, 1_000_000)


def served(profile: str = "4.4", given: dict[str, str] | None = None) -> Cluster:
    """A broker of that profile."""
    settings = ClusterSettings(profile=PROFILES[profile], given=given or {})
    return Cluster(settings, endpoint=lambda _broker, _name: Endpoint("localhost", 9092))


def asked(cluster: Cluster, version: int, layout: int | None = None, **fields: Any) -> Any:  # noqa: ANN401 - fields by Kafka's names
    """The answer to a request of that version, in that layout."""
    client = FramesClient(cluster)
    header = RequestHeader(
        api_key=ApiKey.API_VERSIONS, api_version=version, correlation_id=7, client_id="test"
    )
    known = min(version, 5)
    frame = request_frame(
        RequestHeader(
            api_key=header.api_key, api_version=known, correlation_id=7, client_id="test"
        ),
        {**SOFTWARE, **fields},
    )
    client.connection.received(frame[:2] + version.to_bytes(2, "big") + frame[4:], NOW)
    assert client.closed is None
    answered = version if layout is None else layout
    return read_response_frame(ApiKey.API_VERSIONS, answered, client.frames[0])[1]


def levels(answer: Any) -> dict[str, int]:  # noqa: ANN401 - an answer by Kafka's names
    """The finalized features of an answer."""
    return {each["name"]: each["maxVersionLevel"] for each in answer["finalizedFeatures"]}


def test_features_are_told_from_version_3_on() -> None:
    """ApiVersions has features from version 3 on; those with level 0 follow in version 4."""
    cluster = served()
    supported = {
        version: [each["name"] for each in asked(cluster, version)["supportedFeatures"]]
        for version in (3, 4, 5)
    }

    assert supported[3] == ["metadata.version"]
    every = ["group.version", "kraft.version", "metadata.version", "share.version"]
    every += ["streams.version", "transaction.version", "eligible.leader.replicas.version"]
    assert supported[4] == supported[5] == every
    assert levels(asked(cluster, 3))["transaction.version"] == 2


@pytest.mark.parametrize(
    ("profile", "changed", "names"),
    [
        ("4.4", {}, "group streams transaction eligible.leader.replicas share metadata"),
        (
            "4.3",
            {"kraft": 1},
            "group kraft share metadata streams transaction eligible.leader.replicas",
        ),
        (
            "4.4",
            {"kraft": 1, "eligible.leader.replicas": 0},
            "group streams transaction kraft share metadata",
        ),
        ("4.1", {}, "group transaction eligible.leader.replicas metadata"),
        ("4.0", {}, "group transaction metadata"),
        ("4.0", {"group": 0, "transaction": 0}, "metadata"),
    ],
)
def test_finalized_features_come_in_the_order_of_kafkas_map(
    profile: str, changed: dict[str, int], names: str
) -> None:
    """The orders are those that brokers of these releases answered in."""
    cluster = served(profile)
    for name, level in changed.items():
        cluster.change(FeatureSet(f"{name}.version", level))

    assert list(levels(asked(cluster, 4))) == [f"{name}.version" for name in names.split()]


def test_unstable_versions_are_offered_where_they_are_enabled() -> None:
    """APIs and features have a setting each; 4.1 has more unstable versions than later releases."""
    apis, features = "unstable.api.versions.enable", "unstable.feature.versions.enable"
    newest = {
        (profile, name): asked(served(profile, {name: "true"}), 4)
        for profile, name in (("4.4", apis), ("4.4", features), ("4.1", apis), ("4.0", features))
    }
    usual = asked(served("4.4"), 4)

    def range_of(answer: Any, api: ApiKey) -> int:  # noqa: ANN401 - an answer by Kafka's names
        return {each["apiKey"]: each["maxVersion"] for each in answer["apiKeys"]}[api]

    assert [range_of(each, ApiKey.INIT_PRODUCER_ID) for each in (usual, *newest.values())] == [
        5, 6, 5, 6, 5,
    ]  # fmt: skip
    assert range_of(newest["4.1", apis], ApiKey.OFFSET_COMMIT) == 10
    assert levels(newest["4.4", apis]) == levels(usual)
    assert levels(newest["4.4", features]) == {**levels(usual), "metadata.version": 34}
    assert levels(newest["4.0", features])["eligible.leader.replicas.version"] == 1


def test_a_changed_feature_is_told_to_the_next_client() -> None:
    """With a later epoch; one at level 0 is not finalized. The ranges stay as they are."""
    cluster = served()
    before = asked(cluster, 4)
    cluster.change(FeatureSet("transaction.version", 0))
    after = asked(cluster, 4)

    assert "transaction.version" not in levels(after)
    assert after["finalizedFeaturesEpoch"] > before["finalizedFeaturesEpoch"]
    assert after["apiKeys"] == before["apiKeys"]


@pytest.mark.parametrize("profile", ["0.10.2", "2.8"])
def test_brokers_before_kraft_have_no_features(profile: str) -> None:
    """And no epoch of theirs."""
    answer = asked(served(profile), 0 if profile == "0.10.2" else 3)

    assert answer.get("supportedFeatures", []) == []
    assert answer.get("finalizedFeaturesEpoch", -1) == -1


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, ErrorCode.NONE),
        ({"clusterId": DEFAULT_CLUSTER_ID, "nodeId": 1}, ErrorCode.NONE),
        ({"clusterId": DEFAULT_CLUSTER_ID, "nodeId": 2}, ErrorCode.REBOOTSTRAP_REQUIRED),
        ({"clusterId": "another", "nodeId": 1}, ErrorCode.REBOOTSTRAP_REQUIRED),
        ({"clusterId": DEFAULT_CLUSTER_ID}, ErrorCode.INVALID_REQUEST),
        ({"nodeId": 1}, ErrorCode.INVALID_REQUEST),
        ({"clientSoftwareName": "-"}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_client_at_the_wrong_broker_is_told_so(fields: dict[str, Any], error: ErrorCode) -> None:
    """From version 5 on it says which broker it means, both by cluster and by number."""
    answer = asked(served(), 5, **fields)

    assert answer["errorCode"] == error
    assert bool(answer["apiKeys"]) == (error is ErrorCode.NONE)


@pytest.mark.parametrize(("profile", "told"), [("0.10.2", {}), ("2.8", {18: 3}), ("4.4", {18: 5})])
def test_an_unknown_version_is_answered_in_version_0(profile: str, told: dict[int, int]) -> None:
    """Brokers that know version 3 name the versions to ask in; older ones name nothing."""
    answer = asked(served(profile), 9, layout=0)

    assert answer["errorCode"] == ErrorCode.UNSUPPORTED_VERSION
    assert {each["apiKey"]: each["maxVersion"] for each in answer["apiKeys"]} == told
