"""A port that leads to another one, which may change: an agent is replaced by one that waits."""

import socket
from contextlib import suppress
from threading import Lock, Thread
from typing import Final

_CHUNK: Final = 65_536


class Relay:
    """A listening port of this host that passes bytes on, as long as it has a target.

    Attributes:
        port: The port.
    """

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._target: int | None = None
        self._open: set[socket.socket] = set()
        self._lock = Lock()
        Thread(target=self._accept, daemon=True).start()

    def lead_to(self, port: int) -> None:
        """Pass on to a port from now on."""
        self._target = port

    def cut(self) -> None:
        """End all connections, and refuse new ones."""
        self._target = None
        with self._lock:
            connections, self._open = self._open, set()
        for each in connections:
            _close(each)

    def close(self) -> None:
        """Listen no more."""
        self.cut()
        _close(self._listener)

    def _accept(self) -> None:
        # Ends when the listener is closed.
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            target = self._target
            try:
                if target is None:
                    raise ConnectionRefusedError
                server = socket.create_connection(("127.0.0.1", target))
            except OSError:
                _close(client)
                continue
            with self._lock:
                self._open |= {client, server}
            for origin, destination in ((client, server), (server, client)):
                Thread(target=self._pump, args=(origin, destination), daemon=True).start()

    def _pump(self, origin: socket.socket, destination: socket.socket) -> None:
        """Pass bytes on in one direction, until either side ends."""
        with suppress(OSError):
            while part := origin.recv(_CHUNK):
                destination.sendall(part)
        with self._lock:
            self._open -= {origin, destination}
        _close(origin)
        _close(destination)


def _close(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
