"""The places of a connection's answers: they leave in the order of the requests.

Source: kafka trunk, SocketServer.Processor (one channel's responses in the order of its requests).
"""

from collections import deque
from typing import Protocol

from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.requests import Request, Response
from coordinator_sim.wire.frames import encode_response, response_frame
from coordinator_sim.wire.schema import Data


class Output(Protocol):
    """The way out of a connection."""

    def write(self, data: bytes) -> None:
        """Send bytes, in order."""
        ...

    def close(self, reason: str) -> None:
        """End the connection; what was written still leaves. `reason` is for the log."""
        ...


class SlotQueue:
    """The answers of one connection that have not left, in the order of their requests.

    Args:
        output: Where they leave.
    """

    __slots__ = ("_output", "_slots")

    def __init__(self, output: Output) -> None:
        self._output = output
        self._slots: deque[Slot] = deque()

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, slot: "Slot") -> None:
        """Another request has come."""
        self._slots.append(slot)

    def flush(self) -> None:
        """Send the answers that are there, up to the first that is missing."""
        slots = self._slots
        while slots and (frame := slots[0].frame) is not None:
            slots.popleft()
            if frame:
                self._output.write(len(frame).to_bytes(4, "big") + frame)


class Slot:
    """The place of one answer.

    Args:
        queue: Of its connection.
        api: Of the request, as its version.
        request: In its typed form, for the versions whose answers repeat it; None otherwise.

    Attributes:
        frame: The answer without its length; empty when none is sent; None while it is missing.
    """

    __slots__ = ("_queue", "api", "correlation_id", "frame", "request", "version")

    def __init__(self, queue: SlotQueue, api: ApiKey, version: int, correlation_id: int) -> None:
        self._queue = queue
        self.api = api
        self.version = version
        self.correlation_id = correlation_id
        self.request: Request | None = None
        self.frame: bytes | None = None

    def answered(self, response: Data | None) -> None:
        """The answer has come; None sends nothing."""
        if response is None:
            self.frame = b""
        else:
            self.frame = response_frame(self.api, self.version, self.correlation_id, response)
        self._queue.flush()

    def answered_by_group(self, response: Response) -> None:
        """The answer of a group coordinator has come."""
        self.frame = encode_response(
            self.api,
            self.version,
            response,
            correlation_id=self.correlation_id,
            request=self.request,
        )
        self._queue.flush()
