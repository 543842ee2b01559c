"""The control surface as a web application: routes, events, health, metrics, the page.

This module only checks access and writes answers; verbs and views do the rest.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.resources import files
from inspect import isawaitable
from typing import Final

import msgspec
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from coordinator_sim.errors import UNREADABLE_JSON, ConfigError
from coordinator_sim.server.control import requests
from coordinator_sim.server.control.access import Access
from coordinator_sim.server.control.control import Control
from coordinator_sim.server.control.exposition import exposition
from coordinator_sim.server.control.models import Health, Json, Problem
from coordinator_sim.server.control.openapi import document
from coordinator_sim.server.control.routes import ROUTES, ControlRoute

KEEP_ALIVE_S: Final = 15
"""Interval of keep-alive comments in an idle stream of events."""
_AT_ONCE: Final = 50
"""Events that a stream writes before others are answered."""
MAX_BODY_BYTES: Final = 1 << 20

_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_PAGE: Final = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
}
_POLICY: Final = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'"

Handler = Callable[[Request], Awaitable[Response]]


def make_app(control: Control, access: Access) -> Starlette:
    """Make the application.

    Args:
        control: The server that it controls.
        access: Access control.
    """
    own = _Own(control)
    routes = [
        Route(route.path, _handler(control, route), methods=[route.method]) for route in ROUTES
    ]
    routes += [
        Route("/v1/openapi.json", own.openapi),
        Route("/v1/events", own.events),
        Route("/events", own.events),
        Route("/v1/trace/events.jsonl", own.trace_file),
        Route("/healthz", own.health),
        Route("/readyz", own.ready),
        Route("/metrics", own.metrics),
        *(Route(path, own.page) for path in _PAGE),
    ]
    for route in routes:  # A group id may have any character, also line ends.
        route.path_regex = re.compile(route.path_regex.pattern, re.DOTALL)
    app = Starlette(routes=routes, exception_handlers={404: _no_path, 405: _no_method})
    app.add_middleware(access.middleware)
    return app


def _handler(control: Control, route: ControlRoute) -> Handler:
    async def handle(request: Request) -> Response:
        try:
            called = await _call(route, request)
            answer = route.verb(control, called)
            if isawaitable(answer):
                answer = await answer
        except requests.BadRequest as error:
            return problem(400, str(error))
        except requests.NotFound as error:
            return problem(404, str(error))
        except requests.WaitedInVain as error:
            return problem(408, str(error))
        except ConfigError as error:
            return problem(409, str(error))
        except OSError as error:
            return problem(409, f"{error.filename or 'the system'}: {error.strerror or error}")
        finally:
            if route.method != "GET":
                control.settle()
        return _json(answer, route.status)

    return handle


async def _call(route: ControlRoute, request: Request) -> requests.ControlRequest:
    body = None
    if route.body is not None:
        try:
            body = msgspec.json.decode(await _body(request) or b"{}", type=route.body)
        except UNREADABLE_JSON as error:
            raise requests.BadRequest(str(error)) from None
    known = {each.name for each in route.query} | {"access_token"}
    for name in request.query_params:
        if name not in known:
            raise requests.BadRequest(f"{name}: no such parameter")
    return requests.ControlRequest(
        path={name: str(value) for name, value in request.path_params.items()},
        query=dict(request.query_params),
        body=body,
    )


async def _body(request: Request) -> bytes:
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > MAX_BODY_BYTES:
                raise requests.BadRequest(f"a body of more than {MAX_BODY_BYTES} bytes")
    except ClientDisconnect:
        raise requests.BadRequest("the client left within the body") from None
    return bytes(body)


def _json(answer: Json, status: int = 200) -> Response:
    if answer is None:
        return Response(status_code=204)
    return Response(msgspec.json.encode(answer), status_code=status, media_type=_JSON)


def problem(status: int, text: str) -> Response:
    """Make the response of a refusal."""
    return Response(msgspec.json.encode(Problem(error=text)), status_code=status, media_type=_JSON)


async def _no_path(request: Request, _error: Exception) -> Response:
    return problem(404, f"there is nothing at {request.url.path}; see /v1/openapi.json")


async def _no_method(request: Request, _error: Exception) -> Response:
    return problem(405, f"{request.url.path} has no {request.method}; see /v1/openapi.json")


class _Own:
    """Handlers of paths that are not in the OpenAPI document."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._document = b""

    async def openapi(self, _request: Request) -> Response:
        if not self._document:
            self._document = json.dumps(document(), indent=1).encode()
        return Response(self._document, media_type=_JSON)

    async def health(self, _request: Request) -> Response:
        error = self._control.trouble()
        if error is None:
            return _json(Health(status="ok"))
        return _json(Health(status="not well", error=error), 503)

    async def ready(self, _request: Request) -> Response:
        if self._control.is_ready:
            return _json(Health(status="ready"))
        return _json(Health(status="not ready"), 503)

    async def metrics(self, _request: Request) -> Response:
        return PlainTextResponse(
            exposition(self._control), media_type="text/plain; version=0.0.4; charset=utf-8"
        )

    async def page(self, request: Request) -> Response:
        name, media_type = _PAGE[request.url.path]
        data = files("coordinator_sim.server.control").joinpath("page", name).read_bytes()
        headers = {"content-security-policy": _POLICY, "cache-control": "no-cache"}
        return Response(data, media_type=media_type, headers=headers)

    async def trace_file(self, _request: Request) -> Response:
        lines = self._control.tracing.lines()
        if lines is None:
            return problem(409, "no trace is finished: start one, and stop it before reading it")
        return StreamingResponse(lines, media_type="application/jsonl")

    async def events(self, request: Request) -> Response:
        text = request.headers.get("last-event-id", request.query_params.get("after"))
        after = self._control.feed.last_seq
        if text is not None:
            try:
                after = requests.whole_number("after", text)
            except requests.BadRequest as error:
                return problem(400, str(error))
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(self._stream(after), media_type=_EVENTS, headers=headers)

    async def _stream(self, after: int) -> AsyncIterator[bytes]:
        feed = self._control.feed
        yield b": here\n\n"
        while not self._control.is_over:
            if after > feed.last_seq or feed.is_gone(after):
                kept_from = feed.first_seq
                yield _event("gap", after, {"after": after, "from": kept_from})
                after = kept_from - 1
            if items := feed.after(after, _AT_ONCE):
                after = items[-1].seq
                yield b"".join(_event(item.kind, item.seq, item) for item in items)
                await asyncio.sleep(0)
                continue
            try:
                async with asyncio.timeout(KEEP_ALIVE_S):
                    await feed.changed()
            except TimeoutError:
                yield b": still here\n\n"


def _event(kind: str, seq: int, data: Json) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (seq, kind.encode(), msgspec.json.encode(data))
