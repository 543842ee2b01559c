"""A client of a served cluster whose bytes go through the server's protocol, without a socket."""

from asyncio import Transport

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.connection import Connection
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.pending_answer import Output
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.codec.frames import RequestHeader
from coordinator_sim.server.wire_protocol import WireProtocol
from coordinator_sim_conformance.field_frames import Fields, read_response_frame, request_frame


class _Wire(Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data


class Loopback:
    """One connection to broker 1, at an instant that stands still.

    Args:
        cluster: The cluster.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._now = Instants(1_700_000_000_000, 1_700_000_000_000)
        self._wire = _Wire()
        self._protocol = WireProtocol(self, self._connect)
        self._protocol.connection_made(self._wire)

    def call(self, api: ApiKey, version: int, fields: Fields) -> Fields:
        """Send a request and return its answer."""
        self.send(self.frame(api, version, fields))
        return self.answer(api, version)

    @staticmethod
    def frame(api: ApiKey, version: int, fields: Fields) -> bytes:
        """The bytes of a request, with their length before them."""
        header = RequestHeader(
            api_key=int(api), api_version=version, correlation_id=0, client_id="walker"
        )
        frame = request_frame(header, fields)
        return len(frame).to_bytes(4, "big") + frame

    def send(self, frame: bytes) -> None:
        """Let the bytes of a request come in."""
        self._protocol.data_received(frame)

    def answer(self, api: ApiKey, version: int) -> Fields:
        """Read the answer that has come."""
        frame = bytes(self._wire.written[4:])
        self._wire.written.clear()
        return read_response_frame(api, version, frame)[1]

    # -- the server, as far as its protocol asks for it ------------------------------------

    def now(self) -> Instants:
        """The present."""
        return self._now

    def settled(self) -> None:
        """No alarm is set: time stands still."""

    def opened(self, protocol: WireProtocol) -> None:
        """The one connection."""

    def closed(self, protocol: WireProtocol) -> None:
        """The one connection."""

    def _connect(self, client_host: str, output: Output) -> Connection:
        return Connection(
            self._cluster, 1, number=1, listener="PLAINTEXT", client_host=client_host, output=output
        )
