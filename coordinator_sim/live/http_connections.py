"""Connections of a REST server whose clients have to ask, and to read, within a time.

uvicorn itself waits for ever for a first request, for the rest of one, and for a client that does
not read its answer.

Source of the time: Jetty, which Kafka's REST servers are on, AbstractConnector.setIdleTimeout.
"""

import asyncio
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE_S: Final = 30.0
"""How long a client has for a whole request, and to read some of its answer."""
CROWD: Final = 256
"""From so many connections on, those that have asked for nothing are closed sooner."""
_CROWDED_PATIENCE_S: Final = 1.0


class ImpatientConnection(H11Protocol):
    """One connection. A request that has come in whole is answered, however long that takes."""

    _silent_since_s = 0.0
    _ask_by: asyncio.TimerHandle | None = None
    _read_by: asyncio.TimerHandle | None = None

    def connection_made(  # type: ignore[override] # as uvicorn itself has it
        self, transport: asyncio.Transport
    ) -> None:
        """Wait for the first request, and make room for it."""
        super().connection_made(transport)
        self._await_request()
        if len(self.connections) > CROWD:
            latest_s = self.loop.time() - _CROWDED_PATIENCE_S
            for other in list(self.connections):
                if isinstance(other, ImpatientConnection) and other.is_silent_since(latest_s):
                    other.transport.close()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        super().connection_lost(exc)
        for handle in (self._ask_by, self._read_by):
            if handle is not None:
                handle.cancel()

    def pause_writing(self) -> None:
        """Wait for the client to read."""
        super().pause_writing()
        self._await_reading()

    def resume_writing(self) -> None:
        """Go on: the client has read."""
        super().resume_writing()
        if self._read_by is not None:
            self._read_by.cancel()

    def is_silent_since(self, latest_s: float) -> bool:
        """Whether the server has waited for a whole request since an instant of its loop."""
        return self._silent_since_s <= latest_s and not self._is_busy()

    def _is_busy(self) -> bool:
        """Whether an answer is awaited or read."""
        cycle = self.cycle
        is_asked = cycle is not None and not (cycle.more_body or cycle.response_complete)
        return is_asked or self.transport.get_write_buffer_size() > 0

    def _await_request(self) -> None:
        if self._ask_by is not None:
            self._ask_by.cancel()
        self._silent_since_s = self.loop.time()
        self._ask_by = self.loop.call_later(PATIENCE_S, self._request_is_due)

    def _request_is_due(self) -> None:
        if self._is_busy():
            self._await_request()
        else:
            self.transport.close()

    def _await_reading(self) -> None:
        unread = self.transport.get_write_buffer_size()
        self._read_by = self.loop.call_later(PATIENCE_S, self._reading_is_due, unread)

    def _reading_is_due(self, unread: int) -> None:
        if self.transport.get_write_buffer_size() < unread:
            self._await_reading()
        else:
            self.transport.abort()
