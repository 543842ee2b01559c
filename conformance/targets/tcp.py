"""Sockets of a suite: sends requests in Kafka's JSON as frames to a broker, collects answers.

Sending does not wait for an answer: `collect` takes those that have come.
"""

import selectors
import socket
from collections import deque
from typing import Final

from coordinator_sim.errors import CoordinatorSimError, DataError, UnsupportedVersion
from coordinator_sim.harness.kafka_json import read_request, write_response
from coordinator_sim.messages.codec.frames import decode_response, encode_request
from coordinator_sim.messages.requests import Request
from coordinator_sim_conformance.targets.target import Answer, Call, Unsupported

_LENGTH_BYTES: Final = 4
_TIMEOUT_S: Final = 20.0
_PROBE: Final = b"\x00\x00\x00\x0a" + b"\x00\x12\x00\x00" + b"\x00\x00\x00\x01" + b"\xff\xff"
"""ApiVersions, version 0, without a client id."""


class ConnectionEnded(CoordinatorSimError):
    """The broker closed a connection with a pending request; the message names it."""


class Link:
    """One socket with at most one pending request."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, timeout=_TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = bytearray()
        self.sent: deque[tuple[Call, Request]] = deque()
        self.is_closed = False

    def send(self, call: Call) -> None:
        """Send a request.

        Raises:
            Unsupported: the version cannot express the request.
        """
        try:
            request = read_request(call.api, call.version, call.data)
        except (DataError, UnsupportedVersion) as error:
            raise Unsupported(str(error)) from None
        frame = encode_request(
            request, call.version, correlation_id=call.call_id, client_id=call.client_id
        )
        self.sent.append((call, request))
        self._socket.sendall(len(frame).to_bytes(_LENGTH_BYTES, "big") + frame)

    def take(self, at_ms: int) -> list[Answer]:
        """Return the answers that have come since."""
        self._socket.settimeout(0)
        try:
            while data := self._socket.recv(1 << 16):
                self._received += data
            self.is_closed = True
        except BlockingIOError:
            pass
        except ConnectionResetError:
            self.is_closed = True
        finally:
            self._socket.settimeout(_TIMEOUT_S)
        return [self._answer(frame, at_ms) for frame in self._frames()]

    def probe(self) -> None:
        """Return when the broker has answered a small request.

        Raises:
            DataError: no answer came.
        """
        self._socket.sendall(_PROBE)
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            while not self._frames():
                if not selector.select(_TIMEOUT_S):
                    raise DataError(f"the broker did not answer within {_TIMEOUT_S:.0f} s")
                data = self._socket.recv(1 << 16)
                if not data:
                    raise DataError("the broker closed the connection that asks for its versions")
                self._received += data

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _frames(self) -> list[bytes]:
        frames = []
        while len(self._received) >= _LENGTH_BYTES:
            end = _LENGTH_BYTES + int.from_bytes(self._received[:_LENGTH_BYTES], "big")
            if len(self._received) < end:
                break
            frames.append(bytes(self._received[_LENGTH_BYTES:end]))
            del self._received[:end]
        return frames

    def _answer(self, frame: bytes, at_ms: int) -> Answer:
        call, request = self.sent.popleft()
        _, response = decode_response(request.api_key, call.version, frame, request=request)
        return Answer(call.call_id, at_ms, write_response(request, call.version, response))


class Links:
    """The sockets of all clients of a case; each request has its own, unless it names one.

    Args:
        address: Address of the broker.
    """

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._probe = self._open()
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
        link = Link(self._address)
        link.probe()
        return link

    def settle(self) -> None:
        """Return when the broker has handled everything sent.

        A round trip may overtake what came in the same turn of the broker's loop; a second cannot.
        """
        self._probe.probe()
        self._probe.probe()

    def collect(self, at_ms: int) -> list[Answer]:
        """Return the answers that have come, in the order of their requests.

        Raises:
            ConnectionEnded: a connection was closed with a pending request.
        """
        answers: list[Answer] = []
        for link in list(self._busy):
            answers += link.take(at_ms)
            if link.is_closed and link.sent:
                call = link.sent[0][0]
                raise ConnectionEnded(f"{call.api} of version {call.version} ended its connection")
            if not link.sent and link not in self._named.values():
                self._busy.remove(link)
                self._free.append(link)
        return sorted(answers, key=lambda answer: answer.call_id)

    def close(self) -> None:
        """Close all sockets."""
        for link in (self._probe, *self._named.values(), *self._free, *self._busy):
            link.close()
