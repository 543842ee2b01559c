"""Clients of one served cluster that share a clock, for stories with several connections."""

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim_conformance.field_frames import Fields
from tests.unit.broker.fields_client import FieldsClient


class Clients:
    """The clients of a cluster.

    Args:
        cluster: Asked.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.now_ms = FieldsClient(cluster).now_ms
        self._count = 0

    def connect(self, broker_id: int = 1) -> "Client":
        """Another client."""
        self._count += 1
        return Client(self, FieldsClient(self.cluster, broker_id, self._count))


class Client:
    """One of them."""

    def __init__(self, clients: Clients, fields: FieldsClient) -> None:
        self._clients = clients
        self._fields = fields

    def call(self, api: ApiKey, version: int, fields: Fields) -> Fields:
        """The answer to a request, waited for as long as the cluster has something to do."""
        self._fields.now_ms = self._clients.now_ms
        answer = self._fields.call(api, version, fields)
        self._clients.now_ms = self._fields.now_ms
        return answer

    def begin(self, api: ApiKey, version: int, fields: Fields) -> None:
        """Send a request whose answer nobody waits for."""
        self._fields.now_ms = self._clients.now_ms
        self._fields.begin(api, version, fields)

    def wait(self, duration_ms: int) -> None:
        """Let time pass."""
        self._fields.now_ms = self._clients.now_ms
        self._fields.wait(duration_ms)
        self._clients.now_ms = self._fields.now_ms

    def close(self) -> None:
        """Go."""
        self._fields.connection.closed()
