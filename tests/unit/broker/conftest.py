"""A served cluster without sockets, and a client of it."""

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.coordinator.contract import CoordinatorConfig
from tests.unit.broker.frames_client import FramesClient


@pytest.fixture
def cluster() -> Cluster:
    """One broker without an initial rebalance delay, with its offsets topic."""
    settings = ClusterSettings(
        coordinator=CoordinatorConfig(
            offsets_topic_num_partitions=4, group_initial_rebalance_delay_ms=0
        )
    )
    cluster = Cluster(settings, endpoint=lambda _broker, _name: Endpoint("localhost", 9092))
    cluster.topics.create_asked_for("__consumer_offsets", Instants(1_000_000, 1_000_000))
    return cluster


@pytest.fixture
def client(cluster: Cluster) -> FramesClient:
    """A client connected to it."""
    return FramesClient(cluster)
