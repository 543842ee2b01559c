"""Listeners of a served cluster on an event loop, and the alarm for its deadlines."""

import asyncio
from functools import partial
from typing import Final, Protocol

from msgspec import Struct

from coordinator_sim.mini_broker.connection import Connection
from coordinator_sim.mini_broker.contract import Instants
from coordinator_sim.mini_broker.served_cluster import ServedCluster
from coordinator_sim.mini_broker.settings import ClusterSettings, Endpoint
from coordinator_sim.mini_broker.slots import Output
from coordinator_sim.server.wire_protocol import WireProtocol

PLAINTEXT: Final = "PLAINTEXT"


class Clock(Protocol):
    """Tells both times."""

    def now(self) -> Instants:
        """The present."""
        ...

    def wall_until_group_ms(self, group_ms: int, now: Instants) -> int | None:
        """How many wall milliseconds until groups have that time; None if it does not come."""
        ...


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

    Attributes:
        cluster: What is served.
        endpoints: Where each broker is reached on each listener, once started.
    """

    def __init__(self, settings: ClusterSettings, clock: Clock) -> None:
        self.endpoints: dict[tuple[int, str], Endpoint] = {}
        self.cluster = ServedCluster(settings, endpoint=self._endpoint)
        self._clock = clock
        self._servers: list[asyncio.Server] = []
        self._open: dict[WireProtocol, None] = {}
        self._next_number = 1
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at: float | None = None

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
        for server in self._servers:
            server.close()
        for protocol in list(self._open):
            protocol.abort()
        for server in self._servers:
            await server.wait_closed()
        if self._alarm is not None:
            self._alarm.cancel()

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
        return self._clock.now()

    def opened(self, protocol: WireProtocol) -> None:
        """A client has connected."""
        self._open[protocol] = None

    def closed(self, protocol: WireProtocol) -> None:
        """A client is gone."""
        self._open.pop(protocol, None)

    def settled(self) -> None:
        """Arm the alarm for the earliest deadline, if that is earlier than before."""
        delay_ms = self._delay_ms(self._clock.now())
        if delay_ms is None:
            return
        loop = asyncio.get_running_loop()
        at = loop.time() + delay_ms / 1000
        if self._alarm_at is not None and self._alarm_at <= at:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = at
        self._alarm = loop.call_at(at, self._ring)

    def _delay_ms(self, now: Instants) -> int | None:
        group_ms = self.cluster.next_group_deadline_ms()
        wall_ms = self.cluster.next_wall_deadline_ms()
        delays: list[int] = []
        if group_ms is not None:
            delay = self._clock.wall_until_group_ms(group_ms, now)
            if delay is not None:
                delays.append(delay)
        if wall_ms is not None:
            delays.append(max(0, wall_ms - now.wall_ms))
        return min(delays, default=None)

    def _ring(self) -> None:
        self._alarm = self._alarm_at = None
        self.cluster.expire(self._clock.now())
        self.settled()
