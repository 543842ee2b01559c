"""An asyncio event loop in virtual time: runs unmodified asyncio programs without waiting.

Time is a count of microseconds that jumps to the next timer whenever nothing is ready; all
connections are in memory. Use it as a `loop_factory`, not by a policy:

    asyncio.Runner(loop_factory=VirtualLoop)

It relies on the private names of `asyncio.BaseEventLoop` in `INSIDE`; a test checks them on every
Python version.

The loop refuses name resolution, sockets, TLS, and waiting for ever, each with one line.

Connections within the process: two joined transports with a latency between them.

They behave like asyncio's TCP connections: bytes arrive in order and complete, a close arrives
after all written bytes, a write to a closed side resets the connection, and a reader that pauses
also pauses its writer.
"""

import asyncio
import errno
import itertools
import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextvars import Context
from typing import Any, Final, NoReturn, Protocol, TypeVar, TypeVarTuple, Unpack

from coordinator_sim.errors import ConfigError, CoordinatorSimError
from coordinator_sim.server.wire_record import Side

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


class MemorySocket:
    """Stand-in for a socket in `get_extra_info("socket")` and `Server.sockets`: addresses only."""

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
        loop: "VirtualLoop",
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


LATENCY_US: Final = 250
"""Default one-way latency of the network: a quiet machine room."""

INSIDE: Final = ("_check_closed", "_process_events", "_scheduled", "_selector", "_write_to_self")
"""Private names that asyncio's own loop uses, and that this one defines or reads."""

LAST_S: Final = (1 << 53) // 1_000_000
"""End of virtual time, 285 years: floating point cannot represent later microseconds."""

_FIRST_EPHEMERAL_PORT: Final = 32_768
_ANY_HOST: Final = ("", "0.0.0.0", "::")  # noqa: S104 - nothing is bound, names are compared
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_SHOWN_TASKS: Final = 8
_SHOWN_FRAMES: Final = 4

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
MakeProtocol = Callable[[], asyncio.BaseProtocol]


class VirtualDeadlock(CoordinatorSimError):
    """Tasks would wait for ever: nothing is ready and no timer is set.

    Also raised when the loop's time limit is reached while clients keep running.
    """


class WireTap(Protocol):
    """Receives every write on every connection, in order."""

    def write(self, at_us: int, connection: int, side: Side, data: bytes) -> None:
        """Take bytes that one side of a connection wrote at an instant."""
        ...


class _Waiting:
    """The loop's selector: it lets virtual time pass where asyncio would sleep."""

    def __init__(self, loop: "VirtualLoop") -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[object]:
        self._loop.pass_time(timeout)
        return []


class _Future(asyncio.Future[Any]):
    """A future whose hash, and so its order in a set, does not depend on its address."""

    def __init__(self, number: int, loop: asyncio.AbstractEventLoop) -> None:
        self._number = number
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._number


class _Task(asyncio.Task[Any]):
    """A task whose hash does not depend on its address."""

    def __init__(self, number: int, coro: Any, **options: Any) -> None:  # noqa: ANN401 - passed on
        self._number = number
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self._number


class MemoryServer(asyncio.AbstractServer):
    """A listener in memory, with the used part of `asyncio.Server`."""

    def __init__(self, loop: "VirtualLoop", make: MakeProtocol, places: list[Address]) -> None:
        self._loop = loop
        self._places = places
        self._closed: asyncio.Future[None] | None = None
        self.make_protocol = make
        self.sockets: tuple[MemorySocket, ...] = tuple(MemorySocket(each) for each in places)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """The loop of the listener."""
        return self._loop

    def is_serving(self) -> bool:
        """Whether the listener accepts connections."""
        return self._loop.listener_at(self._places[0]) is self

    async def start_serving(self) -> None:
        """Accept connections.

        Raises:
            OSError: another listener has one of the ports.
        """
        self._loop.listen(self, self._places)

    async def serve_forever(self) -> None:
        """Accept connections until cancelled or closed."""
        await self.start_serving()
        self._closed = self._loop.create_future()
        try:
            await self._closed
        finally:
            self.close()

    def close(self) -> None:
        """Accept no more connections; open ones stay."""
        self._loop.unlisten(self)
        if self._closed is not None and not self._closed.done():
            self._closed.set_result(None)

    async def wait_closed(self) -> None:
        """Return at once: connections in memory end with their protocols."""


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop in virtual time.

    Time starts at 0. An iteration that finds something ready takes one microsecond, so that a
    client that polls the clock for a deadline reaches it.

    Attributes:
        latency_us: One-way latency of bytes written from now on.
        tap: Receives every write.

    Args:
        latency_us: Microseconds that bytes need from one side to the other; at least 1.
        limit_s: Virtual seconds within which everything must end, above 0 and at most `LAST_S`;
            None for no limit.
        tap: Receives every write on every connection.

    Raises:
        ConfigError: the latency is below 1, or the limit out of bounds.
    """

    _closed = True  # Until `__init__` succeeds: a refused loop has nothing to close.
    _check_closed: Callable[[], None]
    _scheduled: Sequence[asyncio.TimerHandle]

    def __init__(
        self,
        *,
        latency_us: int = LATENCY_US,
        limit_s: float | None = None,
        tap: WireTap | None = None,
    ) -> None:
        if latency_us < 1:
            raise ConfigError(f"a latency of {latency_us} us: give at least 1")
        if limit_s is not None and not 0 < limit_s <= LAST_S:
            raise ConfigError(f"limit_s={limit_s}: give above 0 and up to {LAST_S}, or None")
        self._now_us = 0
        self._limit_us = None if limit_s is None else _us(limit_s)
        self._numbers = itertools.count()
        super().__init__()
        self._selector = _Waiting(self)
        self.latency_us = latency_us
        self.tap = tap
        self._listeners: dict[Address, MemoryServer] = {}
        self._ports = itertools.count(_FIRST_EPHEMERAL_PORT)
        self._connections = itertools.count()

    # -- time ------------------------------------------------------------------------------

    @property
    def now_us(self) -> int:
        """Microseconds since the loop was made."""
        return self._now_us

    def time(self) -> float:
        """Seconds since the loop was made."""
        return self._now_us / 1_000_000

    def pass_time(self, timeout: float | None) -> None:
        """Let time pass like a selector: 1 us if something is ready, else until the next timer.

        Raises:
            VirtualDeadlock: there is no next timer, or it is after the limit.
        """
        if timeout is None or (timeout > 0 and self._scheduled[0].when() > LAST_S):
            raise VirtualDeadlock(
                f"virtual time stands at {self.time():.6f} s for ever: nothing is ready and no "
                f"timer is set. {self._waiting()}. Another thread or a real socket cannot wake "
                "this loop"
            )
        if timeout > 0:
            self._now_us = max(self._now_us, _us(self._scheduled[0].when()))
        else:
            self._now_us += 1
        limit_us = self._limit_us
        if limit_us is not None and self._now_us > limit_us:
            self._limit_us = None  # what is cancelled now may take its time to end
            raise VirtualDeadlock(
                f"the program did not end in {limit_us / 1_000_000:g} virtual seconds. "
                f"{self._waiting()}"
            )

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call back at the first whole microsecond that is not before `when`.

        A timer after `LAST_S` never fires.

        Raises:
            ValueError: `when` is not a number.
        """
        if math.isnan(when):
            raise ValueError("a timer at nan s")
        at_s = _us(when) / 1_000_000 if when <= LAST_S else math.inf
        return super().call_at(at_s, callback, *args, context=context)

    def call_at_us(self, at_us: int, callback: Callable[[], None]) -> asyncio.TimerHandle:
        """Call back at a microsecond of virtual time."""
        return super().call_at(at_us / 1_000_000, callback)

    def _process_events(self, event_list: list[object]) -> None:
        """Do nothing: no file is ever ready."""

    def _write_to_self(self) -> None:
        """Do nothing: the loop never sleeps."""

    def _waiting(self) -> str:
        tasks = sorted(asyncio.all_tasks(self), key=hash)
        shown = [_described(task) for task in tasks[:_SHOWN_TASKS]]
        if len(tasks) > _SHOWN_TASKS:
            shown.append(f"and {len(tasks) - _SHOWN_TASKS} more")
        return f"Waiting: {'; '.join(shown) or 'no task'}"

    # -- futures, tasks, executors ---------------------------------------------------------

    def create_future(self) -> asyncio.Future[Any]:
        """Make a future; a set of futures has the same order in every process."""
        return _Future(next(self._numbers), self)

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:  # noqa: ANN401 - passed on
        """Make a task, with the same order in sets unless a task factory makes it."""
        self._check_closed()
        if self.get_task_factory() is not None:
            return super().create_task(coro, **options)
        return _Task(next(self._numbers), coro, loop=self, **options)

    def run_in_executor(
        self,
        executor: object,  # noqa: ARG002 - nothing runs elsewhere
        func: Callable[[Unpack[Ts]], T],
        *args: *Ts,
    ) -> asyncio.Future[T]:
        """Call the function at once: a thread would take real time."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - it is its future's
            future.set_exception(error)
        return future

    # -- connections -----------------------------------------------------------------------

    async def create_server(  # type: ignore[override]  # options that memory has no use for
        self,
        protocol_factory: MakeProtocol,
        host: str | Sequence[str] | None = None,
        port: int | None = None,
        *,
        ssl: object = None,
        sock: object = None,
        start_serving: bool = True,
        **_options: object,
    ) -> MemoryServer:
        """Listen in memory, on one port of each host named; port 0 takes a free one.

        A host is any name; no host, `0.0.0.0` and `::` mean all hosts.

        Raises:
            ConfigError: TLS or a real socket was asked for.
            OSError: another listener has the port.
        """
        _refuse(ssl, sock)
        hosts = [host or ""] if host is None or isinstance(host, str) else list(host)
        number = port or next(self._ports)
        server = MemoryServer(self, protocol_factory, [(each, number) for each in hosts])
        if start_serving:
            await server.start_serving()
        return server

    async def create_connection(  # type: ignore[override]  # as above
        self,
        protocol_factory: MakeProtocol,
        host: str | None = None,
        port: int | None = None,
        *,
        ssl: object = None,
        sock: object = None,
        **_options: object,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Connect to a listener in memory, which takes twice the latency.

        Raises:
            ConfigError: TLS or a real socket was asked for.
            ConnectionRefusedError: there is no listener.
        """
        _refuse(ssl, sock)
        there = (host or "", port or 0)
        await asyncio.sleep(2 * self.latency_us / 1_000_000)
        server = self.listener_at(there)
        if server is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"Connect call failed {there}")
        here = ("127.0.0.1", next(self._ports))
        number = next(self._connections)
        protocol = protocol_factory()
        to_server, to_client = self._heard(number, Side.CLIENT), self._heard(number, Side.SERVER)
        client = MemoryTransport(self, protocol, MemorySocket(here, there), to_server)
        served = MemoryTransport(self, server.make_protocol(), MemorySocket(there, here), to_client)
        served.begin(client)
        client.begin(served)
        return client, protocol

    def _heard(self, connection: int, side: Side) -> Heard | None:
        tap = self.tap
        if tap is None:
            return None
        return lambda data: tap.write(self._now_us, connection, side, data)

    def listener_at(self, place: Address) -> MemoryServer | None:
        """The listener of a host and port; None if there is none."""
        host, port = place
        names = (*_LOOPBACK, *_ANY_HOST) if host in _LOOPBACK else (host, *_ANY_HOST)
        found = (self._listeners.get((name, port)) for name in (host, *names))
        return next((server for server in found if server is not None), None)

    def listen(self, server: MemoryServer, places: Sequence[Address]) -> None:
        """Register a server for the connections to these addresses.

        Raises:
            OSError: another server has one of them.
        """
        for place in places:
            if self._listeners.get(place, server) is not server:
                raise OSError(errno.EADDRINUSE, f"address already in use: {place}")
        self._listeners.update(dict.fromkeys(places, server))

    def unlisten(self, server: MemoryServer) -> None:
        """Unregister a server."""
        self._listeners = {
            place: each for place, each in self._listeners.items() if each is not server
        }

    async def getaddrinfo(self, host: object, port: object, **_options: object) -> NoReturn:
        """Refuse to resolve names.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(f"virtual time resolves no names: {host!r}, port {port!r}")


def _us(seconds: float) -> int:
    """The first whole microsecond not before a number of seconds, as the loop shows it."""
    us = math.ceil(seconds * 1_000_000)
    if (us - 1) / 1_000_000 >= seconds:
        us -= 1
    return us if us / 1_000_000 >= seconds else us + 1


def _refuse(ssl: object, sock: object) -> None:
    if ssl:
        raise ConfigError("virtual time has no TLS: connect with PLAINTEXT or SASL_PLAINTEXT")
    if sock is not None:
        raise ConfigError("virtual time has no sockets: give host and port")


def _described(task: asyncio.Task[Any]) -> str:
    """A task by its name, with the innermost coroutines that it awaits."""
    names: list[str] = []
    line = 0
    awaited: Any = task.get_coro()
    while (frame := getattr(awaited, "cr_frame", None)) is not None:
        names.append(frame.f_code.co_qualname)
        line = frame.f_lineno
        awaited = awaited.cr_await
    if not names:
        return task.get_name()
    return f"{task.get_name()} in {' > '.join(names[-_SHOWN_FRAMES:])}, line {line}"
