"""A whole `serve` in a process of its own, and sockets that are not used as they should be."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import IO, Final

from coordinator_sim.messages.codec.frames import RequestHeader
from coordinator_sim_conformance.field_frames import request_frame
from tests.abuse.beside import make_cluster
from tests.abuse.hostile_frames import spoilt, true_frames

PATIENCE_S: Final = 20
_VERSIONS: Final = request_frame(
    RequestHeader(api_key=18, api_version=0, correlation_id=5, client_id="well"), {}
)
_METADATA: Final = request_frame(
    RequestHeader(api_key=3, api_version=9, correlation_id=6, client_id="well"), {"topics": None}
)
_JOIN: Final = request_frame(
    RequestHeader(api_key=11, api_version=3, correlation_id=7, client_id="waits"),
    {
        "groupId": "waits",
        "sessionTimeoutMs": 30_000,
        "rebalanceTimeoutMs": 30_000,
        "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": b"m"}],
    },
)


def with_length(frame: bytes) -> bytes:
    """The frame as it goes over a socket."""
    return len(frame).to_bytes(4, "big") + frame


@dataclass
class Served:
    """A running server.

    Attributes:
        slowest_s: The longest that the healthy client had to wait.
    """

    process: subprocess.Popen[bytes]
    log: IO[bytes]
    port: int
    _well: list[socket.socket]
    slowest_s: float = 0.0

    def connect(self) -> socket.socket:
        """A connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)

    def check(self) -> None:
        """A client that was there before, and one that comes now, are answered."""
        began = time.monotonic()
        if not self._well:
            self._well.append(self.connect())
        ask(self._well[0], _METADATA)
        with self.connect() as fresh:
            ask(fresh, _VERSIONS)
        self.slowest_s = max(self.slowest_s, time.monotonic() - began)
        assert self.process.poll() is None

    def fd_count(self) -> int:
        """Open files of the process."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))  # noqa: PTH208 - names will do

    def rss_kb(self) -> int:
        """Memory of the process."""
        text = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(text.partition("VmRSS:")[2].split()[0])

    def log_lines(self) -> list[str]:
        """What it has logged."""
        self.log.seek(0)
        return self.log.read().decode().splitlines()

    def settles_at(self, fds: int) -> bool:
        """Whether so few files are open soon."""
        until = time.monotonic() + PATIENCE_S
        while self.fd_count() > fds and time.monotonic() < until:
            time.sleep(0.05)
        return self.fd_count() <= fds


def ask(found: socket.socket, frame: bytes) -> bytes:
    """Send a request and read its answer."""
    found.sendall(with_length(frame))
    return read_answer(found)


def read_answer(found: socket.socket) -> bytes:
    """The next answer; it comes in time."""
    size = int.from_bytes(_read(found, 4), "big")
    return _read(found, size)


def _read(found: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = found.recv(size - len(data))
        assert more, "the server closed the connection"
        data += more
    return data


@contextmanager
def served(*options: str) -> Iterator[Served]:
    """Run `serve` with these options until the end of the context."""
    command = [sys.executable, "-m", "coordinator_sim", "serve", "--port", "0", "--no-control"]
    with tempfile.TemporaryFile() as log:
        found_well: list[socket.socket] = []
        process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=log)
        try:
            assert process.stdout is not None
            ready = json.loads(process.stdout.readline())
            port = int(ready["bootstrap"].rpartition(":")[2])
            found = Served(process, log, port, found_well)
            found.check()
            yield found
            found.check()
        finally:
            for each in found_well:
                each.close()
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


# -- what is done to it --------------------------------------------------------------------


def send_spoilt(server: Served, count: int, seed: int) -> int:
    """Spoilt frames over sockets; how many connections the server ended."""
    random = Random(seed)  # noqa: S311 - tests
    cluster = make_cluster()
    frames = true_frames(cluster)
    ended = 0
    found = server.connect()
    for number in range(count):
        if number % 100 == 0:
            server.check()
        try:
            found.sendall(with_length(spoilt(random, frames, cluster)))
            if number % 7 == 0:
                found.settimeout(0.02)
                with suppress(TimeoutError):
                    if not found.recv(1 << 16):
                        raise ConnectionResetError
        except ConnectionError:
            ended += 1
            found.close()
            found = server.connect()
        found.settimeout(PATIENCE_S)
    found.close()
    return ended


def send_lengths(server: Served) -> None:
    """Lengths that no request has: each ends its connection."""
    for length in (-1, -(2**31), 2**31 - 1, 104_857_601):
        with server.connect() as found:
            found.sendall(length.to_bytes(4, "big", signed=True) + b"x" * 100)
            assert found.recv(1) == b""
        server.check()


def stay_half_way(server: Served, count: int) -> list[socket.socket]:
    """Connections that sent half a length, half a frame, or nothing, and stay."""
    held = []
    frame = with_length(_METADATA)
    for number in range(count):
        found = server.connect()
        found.sendall(frame[: (0, 2, 4, 9, len(frame) - 1)[number % 5]])
        held.append(found)
    return held


def dribble(server: Served) -> None:
    """A request byte by byte is answered when it is whole."""
    with server.connect() as found:
        for byte in with_length(_METADATA):
            found.sendall(bytes((byte,)))
        assert read_answer(found)


def never_read(server: Served, count: int) -> None:
    """Clients that ask on and on and read nothing; the server stops reading of them."""
    held = []
    frame = with_length(_METADATA) * 200
    for _ in range(count):
        found = server.connect()
        found.settimeout(0)
        with suppress(BlockingIOError, ConnectionError):
            for _ in range(2_000):
                found.send(frame)
        held.append(found)
        server.check()
    for found in held:
        found.close()


def pipeline(server: Served, count: int) -> None:
    """Check that `count` requests behind a JoinGroup that waits are all answered, in order."""
    with server.connect() as found:
        numbers = range(count)
        rest = b"".join(
            with_length(_METADATA[:4] + number.to_bytes(4, "big") + _METADATA[8:])
            for number in numbers
        )
        found.sendall(with_length(_JOIN) + rest)
        assert int.from_bytes(read_answer(found)[:4], "big") == 7
        for number in numbers:
            assert int.from_bytes(read_answer(found)[:4], "big") == number


def flood(server: Served, count: int) -> None:
    """Connections that come and go, some with a reset, none with a word."""
    for number in range(count):
        found = server.connect()
        if number % 3 == 0:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        found.close()
        if number % 200 == 0:
            server.check()


Deed = Callable[[Served], None]
