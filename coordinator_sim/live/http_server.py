"""The listener of a worker's REST API: passes requests on, and answers them by number.

Requests are interpreted elsewhere; every path is passed on unchanged.
"""

import asyncio
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from coordinator_sim.connect.effects import AnswerHttp, HttpRequest, HttpResponse
from coordinator_sim.listening import bound_socket
from coordinator_sim.live.http_connections import ImpatientConnection

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
