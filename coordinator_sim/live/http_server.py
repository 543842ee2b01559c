"""The listener of a worker's REST API: passes requests on, and answers them by number.

Requests are interpreted elsewhere; every path is passed on unchanged.

Connections of a REST server whose clients have to ask, and to read, within a time.

uvicorn itself waits for ever for a first request, for the rest of one, and for a client that does
not read its answer.

Source of the time: Jetty, which Kafka's REST servers are on, AbstractConnector.setIdleTimeout.
"""

import asyncio
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from math import ceil
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from coordinator_sim.connect.effects import AnswerHttp, HttpRequest, HttpResponse
from coordinator_sim.listening import bound_socket

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


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
"""Methods that are passed on; Starlette itself refuses others."""

LARGEST_BODY: Final = 8 << 20
"""Bytes of the largest body that is read.

DEVIATION: Kafka's REST servers read bodies of any size; here a larger one is answered with 413. A
coordinator of Trogdor reads 1 MiB.
"""

_TOO_LARGE = 413
_UNAVAILABLE = 503

Requested = Callable[[int, HttpRequest], None]
"""Takes a request and the number to answer it under."""


class RestServer:
    """One listening socket.

    Args:
        host: Interface to listen on; empty for all of them.
        port: Port to listen on; 0 for any free one.
        requested: Called on the loop for every request.
        largest_body: Bytes of the largest body that is read; a larger one is answered with 413.
        exchanges: Numbers of requests, shared with other listeners; None for its own.
        tls: Makes it an https listener.

    Raises:
        ConfigError: the address is not available.
    """

    def __init__(
        self,
        host: str,
        port: int,
        requested: Requested,
        largest_body: int = LARGEST_BODY,
        *,
        exchanges: Iterator[int] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._socket = bound_socket(host, port, "address in `listeners`")
        self._requested = requested
        self._largest_body = largest_body
        self._waiting: dict[int, asyncio.Future[HttpResponse]] = {}
        self._exchanges = count(1) if exchanges is None else exchanges
        app = Starlette(
            routes=[Route("/{path:path}", self._serve, methods=list(METHODS))],
        )
        config = uvicorn.Config(
            app,
            http=ImpatientConnection,
            ws="none",
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_keep_alive=ceil(PATIENCE_S),
        )
        config.load()
        config.ssl = tls
        self._server = _QuietServer(config)
        self._task: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """Port that it listens on."""
        return int(self._socket.getsockname()[1])

    def start(self) -> None:
        """Begin to accept connections."""
        self._task = asyncio.get_running_loop().create_task(self._server.serve([self._socket]))

    def answer(self, answer: AnswerHttp) -> None:
        """Answer a request; ignored when its caller has gone."""
        waiting = self._waiting.pop(answer.exchange, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer.response)

    async def stop(self) -> None:
        """Close the listener; waiting requests are answered with 503."""
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_result(HttpResponse(status=_UNAVAILABLE))
        self._server.should_exit = self._server.force_exit = True
        if self._task is not None:
            await self._task
        self._socket.close()

    async def _serve(self, request: Request) -> Response:
        try:
            body = await self._body(request)
        except ClientDisconnect:
            return Response()
        if body is None:
            return PlainTextResponse(
                f"the body has more than {self._largest_body} bytes", _TOO_LARGE
            )
        exchange = next(self._exchanges)
        waiting: asyncio.Future[HttpResponse] = asyncio.get_running_loop().create_future()
        self._waiting[exchange] = waiting
        try:
            self._requested(exchange, _request_of(request, body))
            answer = await waiting
        finally:
            self._waiting.pop(exchange, None)
        return Response(answer.body, status_code=answer.status, headers=answer.headers)

    async def _body(self, request: Request) -> bytes | None:
        """The body; None where it is too large.

        Raises:
            ClientDisconnect: the client goes before it has sent all.
        """
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > self._largest_body:
                return None
        return bytes(body)


class _QuietServer(uvicorn.Server):
    """Server that leaves signals to the program."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture no signals."""
        yield


def _request_of(request: Request, body: bytes) -> HttpRequest:
    query = request.scope["query_string"].decode("ascii")
    path = request.scope["raw_path"].decode("ascii").partition("?")[0]
    return HttpRequest(
        method=request.method,
        target=f"{path}?{query}" if query else path,
        headers={name.lower(): value for name, value in request.headers.items()},
        body=body,
        scheme=request.scope["scheme"],
    )
