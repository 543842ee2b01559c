"""A client of a served cluster that speaks in Kafka's field names, without a socket."""

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.connection import Connection
from coordinator_sim.broker.contract import Instants
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.codec.frames import RequestHeader
from coordinator_sim_conformance.field_frames import Fields, read_response_frame, request_frame


class DataClient:
    """One connection.

    Attributes:
        closed: Why the connection was ended; None while it is open.
    """

    def __init__(self, cluster: Cluster, broker_id: int = 1, number: int = 7) -> None:
        self.closed: str | None = None
        self.connection = Connection(
            cluster,
            broker_id,
            number=number,
            listener="PLAINTEXT",
            client_host="/127.0.0.1",
            output=self,
        )
        self._frames: list[bytes] = []
        self._count = 0

    def write(self, data: bytes) -> None:
        """Take answers."""
        while data:
            end = 4 + int.from_bytes(data[:4], "big")
            self._frames.append(data[4:end])
            data = data[end:]

    def close(self, reason: str) -> None:
        """Hear of the end."""
        self.closed = reason

    def call(self, api: ApiKey, version: int, fields: Fields, at_ms: int = 1_000_000) -> Fields:
        """Send a request that is answered at once; its answer."""
        self._count += 1
        header = RequestHeader(
            api_key=int(api), api_version=version, correlation_id=self._count, client_id="test"
        )
        self.connection.received(request_frame(header, fields), Instants(at_ms, at_ms))
        return read_response_frame(api, version, self._frames.pop())[1]
