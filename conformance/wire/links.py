"""Sockets of a suite: sends requests in Kafka's JSON as frames to a broker, collects answers.

Sending does not wait for an answer: `collect` takes those that have come.
"""

import selectors
import socket
import ssl
from collections import deque
from collections.abc import Callable
from typing import Final, Literal

from coordinator_sim.errors import CoordinatorSimError, DataError, UnsupportedVersion
from coordinator_sim_conformance.targets.target import Answer, Call, ConnectionEnded, Unsupported
from coordinator_sim_conformance.wire import frames
from coordinator_sim_conformance.wire.kio_bodies import Json
from coordinator_sim_conformance.wire.security import Security, log_in

Address = tuple[str, int]
"""Host and port."""
Watch = Callable[[Literal["sent", "received"], Call, bytes], None]
"""Sees every frame, without its length, and the request that it is of."""

OWN_CLIENT: Final = "conformance"
"""Client id of the suite's own questions."""
_LENGTH_BYTES: Final = 4
_TIMEOUT_S: Final = 20.0
_READ_BYTES: Final = 1 << 16
_LONGEST: Final = 100_000_000
"""Bytes of a frame; a length above is no length of Kafka's."""
_PROBE: Final = b"\x00\x00\x00\x0a" + b"\x00\x12\x00\x00" + b"\x00\x00\x00\x01" + b"\xff\xff"
"""ApiVersions, version 0, without a client id."""


class Unanswered(DataError):
    """The broker did not answer within the bound; the message names the request."""


class Link:
    """One socket, logged in; its requests are answered in order.

    Args:
        address: Host and port of the broker.
        security: How to get in.
        watch: Sees the frames, if given.
    """

    def __init__(
        self,
        address: Address,
        security: Security,
        *,
        watch: Watch | None = None,
    ) -> None:
        self._socket = _connected(address, security)
        self._received = bytearray()
        self._watch = watch
        self.sent: deque[Call] = deque()
        self.is_closed = False
        try:
            log_in(security, self.ask)
        except CoordinatorSimError:
            self.close()
            raise

    @property
    def local_host(self) -> str:
        """Address of this end."""
        host: str = self._socket.getsockname()[0]
        return host

    def fileno(self) -> int:
        """Return the descriptor, for selectors."""
        return self._socket.fileno()

    def send(self, call: Call) -> None:
        """Send a request.

        Raises:
            Unsupported: the version cannot express the request.
            ConnectionEnded: the broker closed the connection before.
        """
        try:
            frame = frames.request_frame(
                call.api,
                call.version,
                call.data,
                correlation_id=call.call_id,
                client_id=call.client_id,
            )
        except (DataError, UnsupportedVersion) as error:
            raise Unsupported(str(error)) from None
        self.sent.append(call)
        if self._watch is not None:
            self._watch("sent", call, frame)
        try:
            self._socket.sendall(len(frame).to_bytes(_LENGTH_BYTES, "big") + frame)
        except OSError as error:
            raise ConnectionEnded(f"{call.api} of version {call.version}: {error}") from None

    def take(self, at_ms: int) -> list[Answer]:
        """Return the answers that have come since."""
        self._socket.settimeout(0)
        try:
            while data := self._socket.recv(_READ_BYTES):
                self._received += data
            self.is_closed = True
        except (BlockingIOError, ssl.SSLWantReadError):
            pass
        except OSError:
            self.is_closed = True
        finally:
            self._socket.settimeout(_TIMEOUT_S)
        return [self._answer(frame, at_ms) for frame in self._frames()]

    def ask(self, api: str, version: int, data: Json, *, client_id: str = OWN_CLIENT) -> Json:
        """Send a request and return its answer.

        Args:
            api: Kafka's name of the API.
            version: Its version.
            data: The body.
            client_id: Whose request it is; the suite's own questions are no evidence.

        Raises:
            Unsupported: the version cannot express the request.
            ConnectionEnded: the broker closed the connection instead.
            DataError: no answer came, or a malformed one.
        """
        self.send(Call(call_id=1, api=api, version=version, data=data, client_id=client_id))
        return self.next_answer()

    def next_answer(self) -> Json:
        """Return the answer to the oldest request that has none yet.

        Raises:
            ConnectionEnded: the broker closed the connection instead.
            DataError: no answer came, or a malformed one.
        """
        asked = self.sent[0]
        frame = self._next_frame(f"{asked.api} of version {asked.version}")
        return self._answer(frame, 0).data

    def probe(self) -> None:
        """Return when the broker has answered a small request.

        Raises:
            DataError: no answer came.
        """
        self._socket.sendall(_PROBE)
        self._next_frame("a question for its versions")

    def send_bytes(
        self, call: Call, frame: bytes, length: int | None = None, *, is_answered: bool = False
    ) -> None:
        """Send bytes that need not be a request.

        Args:
            call: What they stand for.
            frame: The bytes behind the length.
            length: The length in front of them; None takes the true one.
            is_answered: Whether an answer is due, in the version of `call`.

        Raises:
            ConnectionEnded: the broker closed the connection before.
        """
        if is_answered:
            self.sent.append(call)
        if self._watch is not None:
            self._watch("sent", call, frame)
        told = len(frame) if length is None else length
        try:
            self._socket.sendall(told.to_bytes(_LENGTH_BYTES, "big", signed=True) + frame)
        except OSError as error:
            raise ConnectionEnded(f"{call.api} of version {call.version}: {error}") from None

    def end_within(self, seconds: float) -> str:
        """Wait for the other side to end the connection without a word.

        Returns:
            What happened instead; empty if it ended so.
        """
        self._socket.settimeout(seconds)
        try:
            data = self._socket.recv(_READ_BYTES)
        except TimeoutError:
            return f"neither an answer nor the end of the connection within {seconds:.0f} s"
        except OSError:
            return ""
        finally:
            self._socket.settimeout(_TIMEOUT_S)
        return f"an answer: {data.hex()}" if data else ""

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _next_frame(self, what: str) -> bytes:
        while not (found := self._frames(most=1)):
            try:
                data = self._socket.recv(_READ_BYTES)
            except TimeoutError:
                raise Unanswered(
                    f"the broker did not answer {what} within {_TIMEOUT_S:.0f} s"
                ) from None
            except OSError as error:
                raise ConnectionEnded(f"{what}: {error}") from None
            if not data:
                raise ConnectionEnded(f"{what} ended its connection")
            self._received += data
        return found[0]

    def _frames(self, most: int | None = None) -> list[bytes]:
        found: list[bytes] = []
        while len(self._received) >= _LENGTH_BYTES and len(found) != most:
            length = int.from_bytes(self._received[:_LENGTH_BYTES], "big", signed=True)
            if not 0 <= length <= _LONGEST:
                raise DataError(f"the broker sent a frame of {length} bytes")
            end = _LENGTH_BYTES + length
            if len(self._received) < end:
                break
            found.append(bytes(self._received[_LENGTH_BYTES:end]))
            del self._received[:end]
        return found

    def _answer(self, frame: bytes, at_ms: int) -> Answer:
        if not self.sent:
            raise DataError(f"the broker sent a frame that nobody asked for; {frame.hex()}")
        call = self.sent.popleft()
        if self._watch is not None:
            self._watch("received", call, frame)
        data = frames.answer_of(call.api, call.version, frame, correlation_id=call.call_id)
        return Answer(call.call_id, at_ms, data)


def _connected(address: Address, security: Security) -> socket.socket:
    """Return a connected socket, inside TLS where that is asked for.

    Raises:
        DataError: nobody listens there, or TLS fails.
    """
    try:
        plain = socket.create_connection(address, timeout=_TIMEOUT_S)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if security.tls is None:
            return plain
        try:
            return security.tls.wrap_socket(plain, server_hostname=address[0])
        except OSError:
            plain.close()
            raise
    except OSError as error:
        kind = Unanswered if isinstance(error, TimeoutError) else DataError
        raise kind(f"no connection to {address[0]}:{address[1]}: {error}") from None


class Links:
    """The sockets of all clients of a case; each request has its own, unless it names one.

    Args:
        opened: Opens a socket.
    """

    def __init__(self, opened: Callable[[], Link]) -> None:
        self._opened = opened
        self.own = self._open()
        """Socket of the suite's own questions."""
        self._named: dict[str, Link] = {}
        self._free: list[Link] = []
        self._busy: list[Link] = []

    def send(self, call: Call) -> None:
        """Send a request."""
        link = self._named.get(call.connection) if call.connection else None
        if link is None:
            link = self._free.pop() if self._free and not call.connection else self._open()
            self._busy.append(link)
        if call.connection:
            self._named[call.connection] = link
        link.send(call)

    def _open(self) -> Link:
        """Return a new socket whose first request the broker has answered."""
        link = self._opened()
        try:
            link.probe()
        except CoordinatorSimError:
            link.close()
            raise
        return link

    def settle(self) -> None:
        """Return when the broker has handled everything sent.

        A round trip may overtake what came in the same turn of the broker's loop; a second cannot.
        """
        self.own.probe()
        self.own.probe()

    def await_any(self, within_s: float) -> None:
        """Return when something has come, or so many seconds later."""
        with selectors.DefaultSelector() as selector:
            for link in self._busy:
                if link.sent and not link.is_closed:
                    selector.register(link, selectors.EVENT_READ)
            selector.select(max(0.0, within_s))

    def collect(self, at_ms: int) -> list[Answer]:
        """Return the answers that have come, in the order of their requests.

        Raises:
            ConnectionEnded: a connection was closed with a pending request.
        """
        answers: list[Answer] = []
        for link in list(self._busy):
            answers += link.take(at_ms)
            if link.is_closed and link.sent:
                call = link.sent[0]
                raise ConnectionEnded(f"{call.api} of version {call.version} ended its connection")
            if not link.sent and link not in self._named.values():
                self._busy.remove(link)
                self._free.append(link)
        return sorted(answers, key=lambda answer: answer.call_id)

    def close(self) -> None:
        """Close all sockets."""
        for link in (self.own, *self._named.values(), *self._free, *self._busy):
            link.close()
