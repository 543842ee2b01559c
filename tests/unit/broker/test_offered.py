"""What is offered is answered, and has a row and a test in the table of what is implemented."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
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
from coordinator_sim.kafka.profiles import PROFILES, profile_named
from coordinator_sim.messages.catalogue import API_NAMES, layout_of, newest_version
from coordinator_sim.messages.codec.frames import RequestHeader
from coordinator_sim.messages.schema import Kind, Layout, VersionField
from coordinator_sim_conformance.field_frames import Fields, read_response_frame, request_frame
from coordinator_sim_conformance.real_kafka.data_answers import ASKED, answered
from coordinator_sim_conformance.real_kafka.data_questions import Versions
from tests.abuse.beside import Hostile
from tests.abuse.hostile_frames import fields_by, values_of
from tests.unit.broker.fields_client import FieldsClient
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


# -- edge values -------------------------------------------------------------------------------
# Requests with one field at an edge: empty names, nulls, empty and doubled lists, odd numbers.


LATER = Instants(2_000_000, 2_000_000)


def cluster_of(profile: str) -> Cluster:
    """One broker with a topic of the name that requests have."""
    cluster = Cluster(
        ClusterSettings(profile=PROFILES[profile]),
        endpoint=lambda broker, _: Endpoint("h", 9) if broker == 1 else None,
    )
    cluster.begin(NOW)
    cluster.topics.create_spread("hostile", 2, NOW)
    return cluster


class Edges:
    """Messages with usual values, and with one field after the other at an edge.

    Args:
        topic_id: Of the topic that there is.
    """

    def __init__(self, topic_id: bytes) -> None:
        self._topic_id = topic_id

    def variants(self, layout: Layout) -> Iterator[Fields]:
        """The usual message, all strings of it empty, and one field after the other at an edge."""
        yield self._message(layout, None, None)
        yield fields_by(
            layout, lambda each: "" if each.field.kind is Kind.STRING else self._usual(each)
        )
        for changed in fields_in(layout):
            for edge in self._edges_of(changed):
                yield self._message(layout, changed, edge)

    def _message(self, layout: Layout, changed: VersionField | None, edge: object) -> Fields:
        def value(each: VersionField) -> object:
            if each is changed:
                return edge
            return self._usual(each) if each.layout is None else [fields_by(each.layout, value)]

        return fields_by(layout, value)

    def _usual(self, each: VersionField) -> object:
        """The usual value of a field; one entry of a list."""
        if each.layout is not None:
            return [fields_by(each.layout, self._usual)]
        return self._topic_id if each.field.kind is Kind.UUID else values_of(each)[0]

    def _edges_of(self, each: VersionField) -> list[object]:
        """The values of a field at an edge."""
        found: list[object] = [None] if each.is_nullable else []
        if each.layout is not None:
            entry = fields_by(each.layout, self._usual)
            return [*found, [], [entry, entry]]
        return [*found, *values_of(each)[1:]]


def fields_in(layout: Layout) -> Iterator[VersionField]:
    """The fields of a message, those in its structs and lists included."""
    for each in layout.present:
        if each.field.kind is not Kind.STRUCT:
            yield each
        if each.layout is not None:
            yield from fields_in(each.layout)


def bugs(profile: str, api: ApiKey, versions: tuple[int, int]) -> list[str]:
    """Why connections ended that should not have ended so, at once or when they had waited."""
    cluster = cluster_of(profile)
    edges = Edges(cluster.image.topics["hostile"].topic_id)
    clients: list[tuple[Hostile, Fields]] = []
    for version in sorted(set(versions)):
        header = RequestHeader(api_key=api, api_version=version, correlation_id=7, client_id="edge")
        for fields in edges.variants(layout_of(api, version, response=False)):
            client = Hostile(cluster, len(clients) + 1)
            client.connection.received(request_frame(header, fields), NOW)
            clients.append((client, fields))
    cluster.expire(LATER)
    return [
        f"{api.name}: {client.reason}: {fields}"[:600]
        for client, fields in clients
        if client.reason is not None and "met a bug" in client.reason
    ]


@pytest.mark.parametrize("profile", PROFILES)
def test_no_value_at_an_edge_is_a_bug(profile: str) -> None:
    """Of every API in its oldest and newest version; the frames of one API meet one cluster."""
    found = []
    for api, versions in cluster_of(profile).versions.ranges.items():
        found += bugs(profile, api, versions)
    assert found == []


# -- The questions about records, as real brokers answered them, put to ours -------------------
# `tests/data/data_apis` is recorded by `tools.record_data_answers`.


DATA = Path(__file__).parents[2] / "data" / "data_apis"
RECORDED = {"4.3": "4.3.1", "3.9": "3.9.2", "0.10.2": "0.10.2.2"}
"""For each profile the broker that was recorded."""
OTHERS = {"4.3": (5, 13), "3.9": (5, 12), "0.10.2": (1, 2)}
"""Versions of CreateTopics and Metadata that prepare the questions."""


def _recorded(profile: str) -> list[list[Any]]:
    text = (DATA / f"kafka-{RECORDED[profile]}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def _versions(profile: str, lines: list[list[Any]]) -> Versions:
    asked: dict[ApiKey, list[int]] = defaultdict(list)
    for api, version, *_ in lines:
        asked[ApiKey[api]].append(version)
    create, metadata = OTHERS[profile]
    return {
        **{api: (min(asked[api]), max(asked[api])) for api in ASKED if api in asked},
        ApiKey.CREATE_TOPICS: (create, create),
        ApiKey.METADATA: (metadata, metadata),
    }


@pytest.mark.parametrize("profile", RECORDED)
def test_records_are_written_and_read_as_at_a_real_broker(profile: str) -> None:
    """Every answer, field by field."""
    theirs = _recorded(profile)
    settings = ClusterSettings(profile=profile_named(profile))
    cluster = Cluster(settings, endpoint=lambda _broker, _name: Endpoint("localhost", 9092))
    cluster.versions.ranges = {api: (0, newest_version(api)) for api in API_NAMES}
    lines = answered(FieldsClient(cluster), _versions(profile, theirs))
    ours = [json.loads(line) for line in lines]
    assert [each[:3] for each in ours] == [each[:3] for each in theirs]
    different = [(mine, their) for mine, their in zip(ours, theirs, strict=True) if mine != their]
    assert different == []
