"""The listener of a worker's REST API: passes requests on, and answers them by number.

Requests are interpreted elsewhere; every path is passed on unchanged.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from coordinator_sim.connect.effects import AnswerHttp, HttpRequest, HttpResponse
from coordinator_sim.listening import bound_socket

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
"""Methods that are passed on; Starlette itself refuses others."""

_UNAVAILABLE = 503

Requested = Callable[[int, HttpRequest], None]
"""Takes a request and the number to answer it under."""


class RestServer:
    """One listening socket.

    Args:
        host: Interface to listen on; empty for all of them.
        port: Port to listen on; 0 for any free one.
        requested: Called on the loop for every request.

    Raises:
        ConfigError: the address is not available.
    """

    def __init__(self, host: str, port: int, requested: Requested) -> None:
        self._socket = bound_socket(host, port, "address in `listeners`")
        self._requested = requested
        self._waiting: dict[int, asyncio.Future[HttpResponse]] = {}
        self._exchange_count = 0
        app = Starlette(
            routes=[Route("/{path:path}", self._serve, methods=list(METHODS))],
        )
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off")
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
        self._exchange_count += 1
        exchange = self._exchange_count
        waiting: asyncio.Future[HttpResponse] = asyncio.get_running_loop().create_future()
        self._waiting[exchange] = waiting
        body = await request.body()
        self._requested(exchange, _request_of(request, body))
        try:
            answer = await waiting
        finally:
            self._waiting.pop(exchange, None)
        return Response(answer.body, status_code=answer.status, headers=answer.headers)


class _QuietServer(uvicorn.Server):
    """Server that leaves signals to the program."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture no signals."""
        yield


def _request_of(request: Request, body: bytes) -> HttpRequest:
    query = request.url.query
    path = request.scope["raw_path"].decode("ascii").partition("?")[0]
    return HttpRequest(
        method=request.method,
        target=f"{path}?{query}" if query else path,
        headers={name.lower(): value for name, value in request.headers.items()},
        body=body,
    )
