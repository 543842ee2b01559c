"""Listeners of a served cluster on an event loop."""

import asyncio
from functools import partial
from typing import Final

from msgspec import Struct

from coordinator_sim.mini_broker.connection import Connection
from coordinator_sim.mini_broker.contract import Instants
from coordinator_sim.mini_broker.served_cluster import ServedCluster, TraceSink
from coordinator_sim.mini_broker.settings import ClusterSettings, Endpoint
from coordinator_sim.mini_broker.slots import Output
from coordinator_sim.server.clocks import Clock
from coordinator_sim.server.timekeeper import Timekeeper
from coordinator_sim.server.wire_protocol import WireProtocol

PLAINTEXT: Final = "PLAINTEXT"


class Listen(Struct, frozen=True, kw_only=True):
    """One listener of one broker.

    Args:
        host: To bind.
        port: To bind; 0 for any that is free.
        advertised_host: What clients are told; empty for `host`.
    """

    broker_id: int
    host: str
    port: int
    name: str = PLAINTEXT
    advertised_host: str = ""


class KafkaServer:
    """A served cluster and its sockets.

    Args:
        settings: Of the cluster.
        clock: Tells the time.
        trace: Takes the events of the brokers' group coordinators.

    Attributes:
        cluster: What is served.
        endpoints: Where each broker is reached on each listener, once started.
        timekeeper: Fires its deadlines.
    """

    def __init__(
        self, settings: ClusterSettings, clock: Clock, trace: TraceSink | None = None
    ) -> None:
        self.endpoints: dict[tuple[int, str], Endpoint] = {}
        self.cluster = ServedCluster(settings, endpoint=self._endpoint, trace=trace)
        self.timekeeper = Timekeeper(self.cluster, clock)
        self._servers: list[asyncio.Server] = []
        self._is_stopped = False
        self._emptied = asyncio.Event()
        self._open: dict[WireProtocol, None] = {}
        self._next_number = 1

    async def start(self, listens: list[Listen]) -> None:
        """Bind every listener.

        Raises:
            OSError: an address cannot be bound.
        """
        loop = asyncio.get_running_loop()
        for listen in listens:
            server = await loop.create_server(
                partial(self._protocol, listen), listen.host, listen.port, backlog=1024
            )
            self._servers.append(server)
            port = server.sockets[0].getsockname()[1]
            host = listen.advertised_host or listen.host
            self.endpoints[listen.broker_id, listen.name] = Endpoint(host, port)

    async def stop(self) -> None:
        """Close every listener and connection."""
        self._is_stopped = True
        for server in self._servers:
            server.close()
        for protocol in list(self._open):
            protocol.abort()
        for server in self._servers:
            await server.wait_closed()
        self.timekeeper.stop()
        if self._open:
            # An aborted transport is closed in a later turn of the loop.
            self._emptied.clear()
            await self._emptied.wait()

    def _endpoint(self, broker_id: int, listener: str) -> Endpoint | None:
        return self.endpoints.get((broker_id, listener))

    def _protocol(self, listen: Listen) -> WireProtocol:
        def connect(client_host: str, output: Output) -> Connection:
            number = self._next_number
            self._next_number += 1
            return Connection(
                self.cluster,
                listen.broker_id,
                number=number,
                listener=listen.name,
                client_host=client_host,
                output=output,
            )

        return WireProtocol(self, connect)

    # -- what sockets need -----------------------------------------------------------------

    def now(self) -> Instants:
        """The present."""
        return self.timekeeper.clock.now()

    def opened(self, protocol: WireProtocol) -> None:
        """A client has connected; too late, if the server has stopped meanwhile."""
        self._open[protocol] = None
        if self._is_stopped:
            protocol.abort()

    def closed(self, protocol: WireProtocol) -> None:
        """A client is gone."""
        self._open.pop(protocol, None)
        if not self._open:
            self._emptied.set()

    def settled(self) -> None:
        """Requests were worked on: deadlines may have changed."""
        self.timekeeper.settled()
