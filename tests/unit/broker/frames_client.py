"""Clients of a served cluster without a socket: of our messages, and of Kafka's field names."""

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.connection import Connection
from coordinator_sim.broker.contract import Instants
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.codec.frames import RequestHeader, decode_response, encode_request
from coordinator_sim.messages.requests import Request, Response
from coordinator_sim_conformance.field_frames import Fields, read_response_frame, request_frame


class FramesClient:
    """One connection, with what it was answered.

    Attributes:
        frames: Answers without their lengths, in order.
        closed: Why the connection was ended; None while it is open.
    """

    def __init__(self, cluster: Cluster, broker_id: int = 1, number: int = 1) -> None:
        self.frames: list[bytes] = []
        self.closed: str | None = None
        self.connection = Connection(
            cluster,
            broker_id,
            number=number,
            listener="PLAINTEXT",
            client_host="/127.0.0.1",
            output=self,
        )
        self._sent: dict[int, tuple[Request, int]] = {}

    def write(self, data: bytes) -> None:
        """Take answers."""
        while data:
            end = 4 + int.from_bytes(data[:4], "big")
            self.frames.append(data[4:end])
            data = data[end:]

    def close(self, reason: str) -> None:
        """Hear of the end."""
        self.closed = reason

    def send(self, request: Request, version: int, at_ms: int = 1_000_000) -> int:
        """Send a request; its correlation id."""
        number = len(self._sent)
        self._sent[number] = (request, version)
        frame = encode_request(request, version, correlation_id=number, client_id="test")
        self.connection.received(frame, Instants(at_ms, at_ms))
        return number

    def answers(self) -> list[tuple[int, Response]]:
        """Correlation ids and answers so far, in order."""
        found = []
        for frame in self.frames:
            number = int.from_bytes(frame[:4], "big")
            request, version = self._sent[number]
            found.append(decode_response(request.api_key, version, frame, request=request))
        return found


class DataClient(FramesClient):
    """A connection whose requests are answered at once."""

    def call(self, api: ApiKey, version: int, fields: Fields, at_ms: int = 1_000_000) -> Fields:
        """The answer to a request."""
        header = RequestHeader(
            api_key=int(api), api_version=version, correlation_id=1, client_id="test"
        )
        self.connection.received(request_frame(header, fields), Instants(at_ms, at_ms))
        return read_response_frame(api, version, self.frames.pop())[1]
