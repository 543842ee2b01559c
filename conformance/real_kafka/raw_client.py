"""A connection to a broker for raw requests, in fields by Kafka's names."""

import socket
import time
from typing import Final

from coordinator_sim.errors import DataError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.codec.frames import RequestHeader
from coordinator_sim_conformance.field_frames import Fields, read_response_frame, request_frame

_TIMEOUT_S: Final = 120


class RawClient:
    """One connection, one request at a time.

    Args:
        bootstrap: Host and port of the broker.
    """

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=_TIMEOUT_S)
        self._count = 0

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def call(self, api: ApiKey, version: int, fields: Fields) -> Fields:
        """Send a request and return the answer.

        Raises:
            DataError: the broker closed the connection.
        """
        self._count += 1
        header = RequestHeader(
            api_key=int(api), api_version=version, correlation_id=self._count, client_id="raw"
        )
        frame = request_frame(header, fields)
        self._socket.sendall(len(frame).to_bytes(4, "big") + frame)
        size = int.from_bytes(self._read(4), "big")
        return read_response_frame(api, version, self._read(size))[1]

    def wait(self, duration_ms: int) -> None:
        """Sleep for the given time."""
        time.sleep(duration_ms / 1000)

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise DataError("the broker hung up")
            data += more
        return data
