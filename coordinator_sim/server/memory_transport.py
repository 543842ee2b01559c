"""Connections within the process: two joined transports with a latency between them.

They behave like asyncio's TCP connections: bytes arrive in order and complete, a close arrives
after all written bytes, a write to a closed side resets the connection, and a reader that pauses
also pauses its writer.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

HIGH_WATER_BYTES: Final = 65_536
"""Unread bytes that pause a writer; asyncio's default."""

_END: Final = bytearray()
"""Marker after the last byte of a side that closed."""
_RESET: Final = bytearray()
"""Marker of a reset: the side is gone."""

Address = tuple[str, int]
"""Host and port, as in `socket.getsockname`."""

Heard = Callable[[bytes], None]
"""Called with bytes that were written."""


class Microseconds(Protocol):
    """The interface of a loop that a transport needs."""

    latency_us: int

    @property
    def now_us(self) -> int:
        """The present instant."""
        ...

    def call_at_us(self, at_us: int, callback: Callable[[], None]) -> object:
        """Call back at an instant."""
        ...

    def call_soon(self, callback: Callable[..., object], *args: Any) -> object:  # noqa: ANN401 - as asyncio has it
        """Call back in the next pass."""
        ...

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Report an exception of a protocol."""
        ...


class MemorySocket:
    """Stand-in for a socket in `get_extra_info("socket")` and `Server.sockets`: addresses only."""

    __slots__ = ("_here", "_there")

    def __init__(self, here: Address, there: Address | None = None) -> None:
        self._here = here
        self._there = there

    def getsockname(self) -> Address:
        """The address of this side."""
        return self._here

    def getpeername(self) -> Address:
        """The other side's address.

        Raises:
            OSError: the socket listens, and has no other side.
        """
        if self._there is None:
            raise OSError("a listening socket has no peer")
        return self._there

    def setsockopt(self, *_option: object) -> None:
        """Ignore any option."""

    def fileno(self) -> int:
        """Return -1: there is no file."""
        return -1


class MemoryTransport(asyncio.Transport):
    """One side of a connection in memory.

    Args:
        loop: The loop that gives the time.
        protocol: Receives the bytes; `begin` connects it.
        socket: Addresses of this side and the other.
        heard: Called with every write, in order.
    """

    def __init__(
        self,
        loop: Microseconds,
        protocol: asyncio.BaseProtocol,
        socket: MemorySocket,
        heard: Heard | None = None,
    ) -> None:
        super().__init__(
            {
                "socket": socket,
                "sockname": socket.getsockname(),
                "peername": socket.getpeername(),
            }
        )
        self._loop = loop
        self._protocol = protocol
        self._heard = heard
        self._peer: MemoryTransport
        self._inbox: deque[tuple[int, bytearray]] = deque()
        self._unread = 0
        self._high = HIGH_WATER_BYTES
        self._low = HIGH_WATER_BYTES // 4
        self._reading = True
        self._peer_reads_slowly = False
        self._closing = False
        self._ended = False
        self._gone = False

    def begin(self, peer: "MemoryTransport") -> None:
        """Join with the other side, and call `connection_made`."""
        self._peer = peer
        self._protocol.connection_made(self)

    # -- writing ---------------------------------------------------------------------------

    def write(self, data: "bytes | bytearray | memoryview[Any]") -> None:
        """Send bytes; they arrive after the latency. After a close they are dropped.

        Raises:
            RuntimeError: `write_eof` was called.
        """
        if self._ended:
            raise RuntimeError("Cannot call write() after write_eof()")
        if self._closing or not data:
            return
        if self._heard is not None:
            self._heard(bytes(data))
        self._peer._put(bytearray(data))  # noqa: SLF001 - the two sides are one thing
        self._look_at_high_water()

    def writelines(self, list_of_data: Iterable["bytes | bytearray | memoryview[Any]"]) -> None:
        """Send all of them in order."""
        self.write(b"".join(list_of_data))

    def write_eof(self) -> None:
        """Close the sending direction only."""
        if not self._closing and not self._ended:
            self._ended = True
            self._peer._put(_END)  # noqa: SLF001 - as above

    def can_write_eof(self) -> bool:
        """Return True."""
        return True

    def get_write_buffer_size(self) -> int:
        """Bytes in transit or not yet read by the other side."""
        return self._peer._unread  # noqa: SLF001 - as above

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Pause the protocol above `high` unread bytes, let it resume at `low`."""
        self._high = HIGH_WATER_BYTES if high is None else high
        self._low = self._high // 4 if low is None else low
        self._look_at_high_water()

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """The low and the high limit."""
        return self._low, self._high

    def _look_at_high_water(self) -> None:
        if not self._peer_reads_slowly and self.get_write_buffer_size() > self._high:
            self._peer_reads_slowly = True
            self._protocol.pause_writing()

    def _look_at_low_water(self) -> None:
        if self._peer_reads_slowly and self.get_write_buffer_size() <= self._low:
            self._peer_reads_slowly = False
            self._protocol.resume_writing()

    # -- reading ---------------------------------------------------------------------------

    def is_reading(self) -> bool:
        """Whether arriving bytes are passed to the protocol."""
        return self._reading and not self._closing

    def pause_reading(self) -> None:
        """Buffer arriving bytes."""
        self._reading = False

    def resume_reading(self) -> None:
        """Pass buffered and later bytes to the protocol."""
        if not self._reading:
            self._reading = True
            self._loop.call_soon(self._arrive)

    def _put(self, data: bytearray) -> None:
        """Let bytes arrive after the latency, and after everything that was put before."""
        due_us = self._loop.now_us + self._loop.latency_us
        if self._inbox:
            last_us, last = self._inbox[-1]
            due_us = max(due_us, last_us)
            if due_us == last_us and data and last:
                last += data
                self._unread += len(data)
                return
        self._inbox.append((due_us, data))
        self._unread += len(data)
        self._loop.call_at_us(due_us, self._arrive)

    def _arrive(self) -> None:
        """Pass the bytes that are due to the protocol."""
        inbox = self._inbox
        while inbox and inbox[0][0] <= self._loop.now_us and (self._reading or self._closing):
            data = inbox.popleft()[1]
            self._unread -= len(data)
            if data is _RESET:
                self._lose(ConnectionResetError("Connection reset by peer"))
            elif data is _END:
                self._on_end()
            elif self._closing:
                self._peer._put(_RESET)  # noqa: SLF001 - the two sides are one thing
            else:
                self._hand_on(bytes(data))

    def _hand_on(self, data: bytes) -> None:
        try:
            self._receive(data)
        except Exception as error:  # noqa: BLE001 - as asyncio: the connection ends, not the loop
            self._loop.call_exception_handler(
                {
                    "message": "Fatal error: protocol.data_received() call failed.",
                    "exception": error,
                    "transport": self,
                    "protocol": self._protocol,
                }
            )
            self._lose(error)
            self._peer._put(_RESET)  # noqa: SLF001 - the two sides are one thing
        self._peer._look_at_low_water()  # noqa: SLF001 - as above

    def _receive(self, data: bytes) -> None:
        protocol = self._protocol
        if isinstance(protocol, asyncio.Protocol):
            protocol.data_received(data)
            return
        assert isinstance(protocol, asyncio.BufferedProtocol)  # noqa: S101 - asyncio has no third
        rest = memoryview(data)
        while rest:
            room = memoryview(protocol.get_buffer(len(rest)))
            count = min(len(room), len(rest))
            room[:count] = rest[:count]
            protocol.buffer_updated(count)
            rest = rest[count:]

    def _on_end(self) -> None:
        if self._closing:
            return
        protocol = self._protocol
        assert isinstance(protocol, asyncio.Protocol | asyncio.BufferedProtocol)  # noqa: S101 - as above
        if not protocol.eof_received():
            self.close()

    # -- the end ---------------------------------------------------------------------------

    def is_closing(self) -> bool:
        """Whether `close` was called, or the connection was lost."""
        return self._closing

    def close(self) -> None:
        """Close after the written bytes. Bytes that arrive later reset the other side."""
        if self._closing:
            return
        if not self._ended:
            self._peer._put(_END)  # noqa: SLF001 - the two sides are one thing
        self._lose(None)
        if not self._reading:
            self._loop.call_soon(self._arrive)

    def abort(self) -> None:
        """Close at once; the other side sees a reset."""
        if not self._closing:
            self._peer._put(_RESET)  # noqa: SLF001 - as above
            self._lose(None)

    def _lose(self, error: Exception | None) -> None:
        self._closing = True
        if not self._gone:
            self._gone = True
            self._loop.call_soon(self._protocol.connection_lost, error)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Use another protocol from now on."""
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        """The current protocol."""
        return self._protocol
