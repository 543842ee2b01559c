"""One socket as asyncio has it: bytes into frames for a `Connection`, answers back to the socket.

Source: kafka trunk, NetworkReceive.java (length prefix, bounds).
"""

import asyncio
import logging
import socket
import ssl
import struct
from collections.abc import Callable
from typing import Final, Protocol, cast

from coordinator_sim.broker.connection import Connection
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.pending_answer import Output
from coordinator_sim.errors import described
from coordinator_sim.server.links import PLAIN, SlowWay, Way

Address = tuple[str, int] | tuple[str, int, int, int] | None
"""Of a socket, as Python has it."""

_LOG: Final = logging.getLogger(__name__)
_LENGTH_BYTES: Final = 4
FRAMES_A_TURN: Final = 100
"""Requests handled per connection before yielding to the event loop."""
TURN_MS: Final = 10
"""Wall time that a connection may handle requests before it yields to the event loop."""


class Host(Protocol):
    """What a connection's socket needs of its server."""

    def now(self) -> Instants:
        """The present."""
        ...

    def settled(self) -> None:
        """Requests were worked on: deadlines may have changed."""
        ...

    def opened(self, protocol: "WireProtocol") -> None:
        """A client has connected."""
        ...

    def closed(self, protocol: "WireProtocol") -> None:
        """A client is gone."""
        ...


class Tap(Protocol):
    """Who sees all bytes of all connections."""

    def opened(self, connection: object, peer: Address, local: Address) -> None:
        """A client has connected."""
        ...

    def received(self, connection: object, data: bytes) -> None:
        """Bytes have come from it."""
        ...

    def sent(self, connection: object, data: bytes) -> None:
        """Bytes go to it."""
        ...

    def closed(self, connection: object) -> None:
        """Hear that a client is gone."""
        ...

    def finish(self) -> None:
        """Hear that no bytes follow."""
        ...


class WireProtocol(asyncio.Protocol):
    """A client's socket.

    Args:
        host: The server.
        connect: Makes the connection when the client's address is known, from the address as Java
            prints it and the way out.
        tap: Sees all bytes but those of SASL; None for nobody.

    Attributes:
        is_active: Whether bytes came or left since somebody set it to False.
    """

    def __init__(
        self,
        host: Host,
        connect: Callable[[str, Output], Connection],
        tap: Tap | None = None,
    ) -> None:
        self._host = host
        self._connect = connect
        self._tap = tap
        self._held: list[bytes] | None = None
        self._inward: SlowWay | None = None
        self._outward: SlowWay | None = None
        self._connection: Connection | None = None
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._is_paused = False
        self.is_active = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Make the connection of a client that has just connected."""
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        try:
            self._connection = self._connect(f"/{peer[0]}" if peer else "/127.0.0.1", self)
            if self._tap is not None:
                self._tap.opened(self, peer, transport.get_extra_info("sockname"))
            self._host.opened(self)
        except Exception as error:  # noqa: BLE001 - else nobody would ever read or close it
            _LOG.error("a connection of %s is not taken: %s", peer, described(error))
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - resets are normal
        """Let the connection of a client go that is gone."""
        self._transport = None
        self._received.clear()
        for way in filter(None, (self._inward, self._outward)):
            way.lose()
        if self._connection is not None:
            self._connection.closed(self._host.now())
        if self._tap is not None:
            self._tap.closed(self)
        self._host.closed(self)
        # Break the reference cycle so that both are freed immediately.
        self._connection = None

    def data_received(self, data: bytes) -> None:
        """Take what has come; whole requests are worked on at once."""
        if self._inward is None:
            self._take(data)
            return
        self._inward.take(data)
        if self._inward.is_full:
            self._stop_reading()

    def _arrived(self, data: bytes) -> None:
        """Take what has arrived over a slow network."""
        if self._inward is not None and self._inward.is_done:
            self._inward = None
        self._take(data)
        self._continue_reading()

    def _take(self, data: bytes) -> None:
        connection = self._connection
        if connection is None:
            return
        self.is_active = True
        if self._tap is not None and connection.is_known:
            self._tap.received(self, data)
        if self._held is not None:
            self._received += data
            return
        length = len(data) - _LENGTH_BYTES
        is_one = length == int.from_bytes(data[:_LENGTH_BYTES], "big") and not self._received
        if is_one and length <= connection.max_frame_bytes and not connection.is_full:
            connection.received(data[_LENGTH_BYTES:], self._host.now())
        else:
            self._received += data
            self._take_frames(connection)
        self._host.settled()

    def write(self, data: bytes) -> None:
        """Send bytes; nothing happens when the client is gone."""
        self.is_active = True
        if self._held is not None:
            self._held.append(data)
        elif self._outward is not None:
            self._outward.take(data)
        else:
            self._send(data)

    def _sent_on(self, data: bytes) -> None:
        """Send what has passed a slow network."""
        if self._outward is not None and self._outward.is_done:
            self._outward = None
        self._send(data)

    def _send(self, data: bytes) -> None:
        if self._transport is not None:
            if self._tap is not None and self._connection is not None and self._connection.is_known:
                self._tap.sent(self, data)
            self._transport.write(data)
            self._continue_reading()

    def close(self, reason: str) -> None:
        """End the connection, with one line in the log."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        connection = cast("Connection", self._connection)
        _LOG.warning("connection %d of %s: %s", connection.number, connection.client_host, reason)
        self._received.clear()
        transport.close()

    def abort(self) -> None:
        """End the connection at once and without a word."""
        if self._transport is not None:
            self._transport.abort()

    def leave(self) -> None:
        """End the connection when what was written has left."""
        if self._transport is not None:
            self._transport.close()

    @property
    def connection(self) -> Connection | None:
        """What its frames go to; None before the client's address is known."""
        return self._connection

    @property
    def tls(self) -> ssl.SSLObject | None:
        """The TLS below; None without."""
        transport = self._transport
        return None if transport is None else transport.get_extra_info("ssl_object")

    def reset(self) -> None:
        """Close the connection with a TCP reset."""
        if self._transport is None:
            return
        sock = self._transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    # -- networks that are slow, and brokers that stand still ------------------------------

    def slow_down(self, to_broker: Way, to_clients: Way) -> None:
        """Let bytes pass like this from now on."""
        self._inward = _way(self._inward, to_broker, self._arrived)
        self._outward = _way(self._outward, to_clients, self._sent_on)

    def hold(self) -> None:
        """Let nothing through in either direction until `release`."""
        if self._held is None:
            self._held = []
            self._stop_reading()

    def release(self) -> None:
        """Let through what came meanwhile, and go on."""
        held, self._held = self._held, None
        for data in held or ():
            self.write(data)
        if held is not None:
            self._go_on()
            self._continue_reading()

    # -- frames ----------------------------------------------------------------------------

    def _take_frames(self, connection: Connection) -> None:
        """Work on whole requests, until one is missing bytes or too many wait for answers.

        After some of them others have their turn: requests that came together can be thousands.
        """
        buffer = self._received
        start = 0
        left = FRAMES_A_TURN
        now = self._host.now()
        ends_at_ms = now.wall_ms + TURN_MS
        while len(buffer) - start >= _LENGTH_BYTES and self.is_open:
            length = int.from_bytes(buffer[start : start + _LENGTH_BYTES], "big", signed=True)
            most = connection.max_frame_bytes
            if not 0 <= length <= most:
                self.close(f"a request of {length} bytes, at most {most} are read")
                return
            end = start + _LENGTH_BYTES + length
            if len(buffer) < end:
                break
            if connection.is_full:
                self._stop_reading()
                break
            if left == 0 or now.wall_ms >= ends_at_ms:
                self._stop_reading()
                asyncio.get_running_loop().call_soon(self._continue_reading)
                break
            left -= 1
            frame = bytes(buffer[start + _LENGTH_BYTES : end])
            start = end
            connection.received(frame, now)
            now = self._host.now()
        del buffer[:start]

    @property
    def is_open(self) -> bool:
        """Whether frames may come and go."""
        return self._transport is not None and not self._transport.is_closing()

    def _stop_reading(self) -> None:
        if self._transport is not None and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    def _continue_reading(self) -> None:
        """Read on once answers have left; what was read already is worked on first."""
        if not self._is_paused or self._connection is None or self._connection.is_full:
            return
        if self._held is not None or self._connection.is_choked:
            return
        if self._inward is not None and self._inward.is_full:
            return
        self._is_paused = False
        if self.is_open:
            cast("asyncio.Transport", self._transport).resume_reading()
            asyncio.get_running_loop().call_soon(self._take, b"")

    def pause_writing(self) -> None:
        """Stop reading requests while the client does not read its answers."""
        if self._connection is not None:
            self._connection.is_choked = True
        self._stop_reading()

    def resume_writing(self) -> None:
        """Go on with the requests of a client that reads its answers again."""
        if self._connection is not None:
            self._connection.is_choked = False
            self._go_on()
        self._continue_reading()

    def _go_on(self) -> None:
        """Let what waits be worked on, unless the broker stands still or nobody reads answers."""
        connection = self._connection
        if connection is None or connection.is_choked or self._held is not None:
            return
        if self.is_open:
            connection.resume(self._host.now())
            self._host.settled()


def _way(present: SlowWay | None, wanted: Way, deliver: Callable[[bytes], None]) -> SlowWay | None:
    """The way that bytes take; None where they pass at once, and none is under way."""
    if present is None and wanted == PLAIN:
        return None
    way = SlowWay(deliver) if present is None else present
    way.be(wanted)
    return None if way.is_done else way
