"""A client of a served cluster whose bytes go through the server's protocol, without a socket."""

from asyncio import Transport, get_running_loop
from collections.abc import Callable

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.connection import Connection
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.pending_answer import Output
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.codec.frames import RequestHeader
from coordinator_sim.server.timekeeper import Timekeeper, WallClock
from coordinator_sim.server.wire_protocol import WireProtocol
from coordinator_sim_conformance.field_frames import Fields, read_response_frame, request_frame


class _Wire(Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data


class _Clock(WallClock):
    """Begins at the same instant in every process: timers lie in the same slots of their wheel."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        super().__init__(monotonic)
        self._wall = lambda: 1_700_000_000_000 + int(monotonic() * 1000)


class Loopback:
    """One connection to broker 1, with the alarm of its server; lives on a running event loop.

    Args:
        cluster: The cluster.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._clock = _Clock(get_running_loop().time)
        self._timekeeper = Timekeeper(cluster, self._clock)
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
        return self._clock.now()

    def settled(self) -> None:
        """Arm the alarm, as the server does."""
        self._timekeeper.settled()

    def opened(self, protocol: WireProtocol) -> None:
        """The one connection."""

    def closed(self, protocol: WireProtocol) -> None:
        """The one connection."""

    def _connect(self, client_host: str, output: Output) -> Connection:
        return Connection(
            self._cluster, 1, number=1, listener="PLAINTEXT", client_host=client_host, output=output
        )
