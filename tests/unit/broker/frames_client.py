"""A client of a served cluster that speaks in frames, without a socket."""

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.connection import Connection
from coordinator_sim.broker.contract import Instants
from coordinator_sim.messages.codec.frames import decode_response, encode_request
from coordinator_sim.messages.requests import Request, Response


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
