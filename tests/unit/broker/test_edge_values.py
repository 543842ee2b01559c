"""Requests with one field at an edge: empty names, nulls, empty and doubled lists, odd numbers."""

from collections.abc import Iterator

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.profiles import PROFILES
from coordinator_sim.messages.catalogue import layout_of
from coordinator_sim.messages.codec.frames import RequestHeader
from coordinator_sim.messages.schema import Kind, Layout, VersionField
from coordinator_sim_conformance.field_frames import Fields, request_frame
from tests.abuse.beside import Hostile
from tests.abuse.hostile_frames import fields_by, values_of

NOW = Instants(1_000_000, 1_000_000)
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
