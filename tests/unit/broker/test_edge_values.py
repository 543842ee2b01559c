"""Requests with one field at an edge: empty names, nulls, empty and doubled lists, odd numbers."""

from collections.abc import Iterator
from itertools import count

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

    def bugs(cluster: Cluster, api: ApiKey, version: int, numbers: Iterator[int]) -> list[str]:
    """Why connections ended that should not have ended so."""
    header = RequestHeader(api_key=api, api_version=version, correlation_id=7, client_id="edge")
    found = []
    edges = Edges(cluster.image.topics["hostile"].topic_id)
    for fields in edges.variants(layout_of(api, version, response=False)):
        client = Hostile(cluster, next(numbers))
        client.connection.received(request_frame(header, fields), NOW)
        client.connection.closed()
        if client.reason is not None and "met a bug" in client.reason:
            found.append(f"{api.name} {version}: {client.reason}: {fields}"[:600])
    return found


@pytest.mark.parametrize("profile", PROFILES)
def test_no_value_at_an_edge_is_a_bug(profile: str) -> None:
    """Of every API in its oldest and newest version; the frames of one API meet one cluster."""
    numbers = count(1)
    found = []
    for api, versions in cluster_of(profile).versions.ranges.items():
        cluster = cluster_of(profile)
        for version in sorted(set(versions)):
            found += bugs(cluster, api, version, numbers)
        # What waits is answered now.
        cluster.expire(LATER)
    assert found == []
