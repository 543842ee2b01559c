"""The sockets of the proxy: a port for each broker, a connection behind for each in front."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Final, cast

from msgspec import Struct

from coordinator_sim.errors import ConfigError
from coordinator_sim.listening import bound_socket
from coordinator_sim_conformance.proxy.addresses import Address
from coordinator_sim_conformance.proxy.connection import Connection
from coordinator_sim_conformance.proxy.exchanges import Flag
from coordinator_sim_conformance.proxy.judging import Judge

_MAX_PORT: Final = 65_535
_CONNECT_S: Final = 10.0

Data = Callable[[bytes], bytes]


class Stand(Struct, frozen=True, kw_only=True):
    """Where the proxy stands.

    Args:
        listen: Where the port of the first broker is; those of others follow, or are free ones
            where it is 0.
        upstream: Addresses of the cluster to begin with; the first that answers is used.
        advertised: Host that clients are told.
    """

    listen: Address
    upstream: tuple[Address, ...]
    advertised: str


class _Side(asyncio.Protocol):
    """One socket of a pair; what comes here leaves on the other."""

    def __init__(self, change: Data) -> None:
        self.change = change
        self.transport: asyncio.Transport | None = None
        self.other: _Side | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the socket."""
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Pass on what came."""
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write(self.change(data))

    def connection_lost(self, exc: Exception | None) -> None:
        """Close the other socket, behind what it still has to send."""
        del exc
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()

    def pause_writing(self) -> None:
        """Read no more on the other side: this one is behind."""
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        """Read again on the other side."""
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()


class Relay:
    """Carries the bytes of a cluster, and has every connection watched.

    Args:
        stand: Where it stands.
        judge: Judges what passes.
        tell: Takes flags.
        remark: Takes what is not judged, and why, in a line.
    """

    def __init__(
        self,
        stand: Stand,
        judge: Judge,
        *,
        tell: Callable[[Flag], None],
        remark: Callable[[str], None],
    ) -> None:
        self._host, self._first_port = stand.listen
        self._upstream = stand.upstream
        self._advertised = stand.advertised
        self._judge = judge
        self._tell = tell
        self._remark = remark
        self._numbers = count(1)
        self._ports: dict[tuple[Address, ...], int] = {}
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> Address:
        """Listen for the first broker; return where. A running loop is needed.

        Raises:
            ConfigError: the address cannot be had.
        """
        return self._advertised, self._port_for(self._upstream)

    def close(self) -> None:
        """Listen no more, and give up connections that are being made."""
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()

    def stand_in(self, broker: Address) -> Address:
        """Return the proxy's address for a broker; listens there from the first time on.

        A broker for which no port can be had keeps its address, which is remarked.
        """
        places = self._upstream if broker in self._upstream[:1] else (broker,)
        try:
            return self._advertised, self._port_for(places)
        except ConfigError as problem:
            self._remark(f"clients go past the proxy to {broker[0]}:{broker[1]}: {problem}")
            return broker

    def _port_for(self, places: tuple[Address, ...]) -> int:
        known = self._ports.get(places)
        if known is not None:
            return known
        wanted = self._first_port + len(self._ports) if self._first_port else 0
        if wanted > _MAX_PORT:
            raise ConfigError(f"port {wanted} is above {_MAX_PORT}: begin lower with --listen")
        listening = bound_socket(self._host, wanted, "--listen")
        port: int = listening.getsockname()[1]
        self._ports[places] = port
        self._run(self._serve(places, listening))
        return port

    async def _serve(self, places: tuple[Address, ...], listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: self._accepted(places), sock=listening)
        self._servers.append(server)

    def _accepted(self, places: tuple[Address, ...]) -> _Side:
        connection = Connection(
            next(self._numbers), self._judge, self.stand_in, self._tell, self._remark
        )
        front = _Front(connection.from_client)
        front.connect = lambda: self._run(self._connected(places, front, connection))
        return front

    async def _connected(
        self, places: tuple[Address, ...], front: "_Front", connection: Connection
    ) -> None:
        """Connect to the first place that answers, and read from the client from then on."""
        back = _Side(connection.from_broker)
        back.other = front
        for place in places:
            try:
                loop = asyncio.get_running_loop()
                async with asyncio.timeout(_CONNECT_S):
                    await loop.create_connection(lambda: back, *place)
                break
            except OSError as problem:
                self._remark(f"no connection to {place[0]}:{place[1]}: {problem}")
        if front.transport is None or back.transport is None or front.transport.is_closing():
            for each in (front, back):
                if each.transport is not None:
                    each.transport.close()
            return
        front.joined(back)

    def _run(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Front(_Side):
    """A client's socket: what comes before the broker's is there waits for it."""

    connect: Callable[[], None]

    def __init__(self, change: Data) -> None:
        super().__init__(change)
        self._early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connect to the broker."""
        super().connection_made(transport)
        self.connect()

    def data_received(self, data: bytes) -> None:
        """Relay received bytes, or hold them and stop reading until the other side is connected."""
        if self.other is not None:
            super().data_received(data)
        elif self.transport is not None:
            self._early.append(data)
            self.transport.pause_reading()

    def joined(self, back: _Side) -> None:
        """Begin to pass on to the broker's socket."""
        self.other = back
        for data in self._early:
            super().data_received(data)
        self._early.clear()
        if self.transport is not None:
            self.transport.resume_reading()
