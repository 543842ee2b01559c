"""The control surface as a web application: routes, events, health, metrics, the page.

It only checks access and writes answers; verbs and views do the rest. Metrics are in the text
format that Prometheus reads.

Source: https://prometheus.io/docs/instrumenting/exposition_formats/ (text format 0.0.4).
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from importlib.resources import files
from inspect import isawaitable
from typing import Any, Final

import msgspec
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from coordinator_sim import __version__
from coordinator_sim.errors import UNREADABLE_JSON, ConfigError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.listening import PAGE_POLICY
from coordinator_sim.server.control import requests
from coordinator_sim.server.control.access import Access
from coordinator_sim.server.control.control import Control
from coordinator_sim.server.control.models import FeedItem, Health, Json, Problem
from coordinator_sim.server.control.routes import ROUTES, ControlRoute
from coordinator_sim.server.control.views import parked_views
from coordinator_sim.server.metering import BUCKETS_S, Meter

_REF: Final = "#/components/schemas/{name}"
_REASONS: Final = {
    400: "The request is not what it must be.",
    404: "What the path names is not there.",
    408: "What was waited for did not come.",
    409: "It cannot be done as things are.",
}
_OK: Final = {200: "Done.", 201: "Created.", 204: "Done."}
_VARIABLE: Final = re.compile(r"\{(\w+)(?::path)?\}")


def document() -> dict[str, Any]:
    """Make the OpenAPI document, as JSON values."""
    types = [each for route in ROUTES for each in (route.answer, route.body) if each is not None]
    _, components = msgspec.json.schema_components([*types, Problem, FeedItem], ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        path = _VARIABLE.sub(r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route)
    paths["/v1/events"] = {"get": _events()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "coordinator-sim control",
            "version": __version__,
            "description": "Operates a cluster that `coordinator-sim serve` runs.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _operation(route: ControlRoute) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": getattr(route.verb, "__name__", ""),
        "summary": (route.verb.__doc__ or "").partition("\n")[0],
        "responses": {
            str(route.status): _answer(_OK[route.status], route.answer),
            **{
                str(status): _answer(_REASONS[status], Problem)
                for status in sorted({400, *route.errors})
            },
        },
    }
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _VARIABLE.findall(route.path)
    ]
    parameters += [
        {
            "name": each.name,
            "in": "query",
            "description": each.text,
            "schema": {"type": "integer" if each.is_number else "string"},
        }
        for each in route.query
    ]
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        content = {"application/json": {"schema": _schema(route.body)}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _events() -> dict[str, Any]:
    schema = _schema(FeedItem)
    return {
        "operationId": "events",
        "summary": "What happens, as server-sent events; a gap in the numbers is announced.",
        "parameters": [
            {
                "name": "after",
                "in": "query",
                "description": "Begin behind that number, as the header Last-Event-ID does.",
                "schema": {"type": "integer"},
            }
        ],
        "responses": {
            "200": {
                "description": "A stream; the data of each event is one item.",
                "content": {"text/event-stream": {"schema": schema}},
            }
        },
    }


def _answer(text: str, answer: Json) -> dict[str, Any]:
    if answer is None:
        return {"description": text}
    content = {"application/json": {"schema": _schema(answer)}}
    return {"description": text, "content": content}


def _schema(kind: Json) -> dict[str, Any]:
    (schema,), _ = msgspec.json.schema_components([kind], ref_template=_REF)
    return schema


_STATES = {
    "Empty": "num_groups_empty",
    "PreparingRebalance": "num_groups_preparing_rebalance",
    "CompletingRebalance": "num_groups_completing_rebalance",
    "Stable": "num_groups_stable",
    "Dead": "num_groups_dead",
}
_APIS = {int(api): api.name for api in ApiKey}


def exposition(control: "Control") -> str:
    """All metrics, one sample per line."""
    return "\n".join((*_requests(control.meter), *_cluster(control), ""))


def _requests(meter: Meter) -> Iterator[str]:
    yield from _head("requests_total", "counter", "Requests answered, by API.")
    for number, api in sorted(meter.apis.items()):
        yield f'coordinator_sim_requests_total{{api="{_name(number)}"}} {api.count}'
    name = "request_duration_seconds"
    yield from _head(name, "histogram", "From a request's last byte to its answer.")
    for number, api in sorted(meter.apis.items()):
        label = f'api="{_name(number)}"'
        total = 0
        for bound, count in zip((*BUCKETS_S, "+Inf"), api.buckets, strict=True):
            total += count
            yield f'coordinator_sim_{name}_bucket{{{label},le="{bound}"}} {total}'
        yield f"coordinator_sim_{name}_sum{{{label}}} {api.seconds:.9f}"
        yield f"coordinator_sim_{name}_count{{{label}}} {api.count}"
    yield from _one("received_bytes_total", "counter", "Of requests.", meter.received_bytes)
    yield from _one("sent_bytes_total", "counter", "Of answers.", meter.sent_bytes)
    yield from _one(
        "connections_total", "counter", "Connections that clients opened.", meter.connection_count
    )


def _cluster(control: "Control") -> Iterator[str]:
    cluster = control.cluster
    now = control.now()
    open_count = len(control.server.connections())
    yield from _one("connections", "gauge", "Connections that are open.", open_count)
    found = [each.coordinator.metrics() for each in cluster.groups.living.values()]
    yield from _head("groups", "gauge", "Groups by their state.")
    for state, field in _STATES.items():
        count = sum(getattr(each, field) for each in found)
        yield f'coordinator_sim_groups{{state="{state}"}} {count}'
    for name, field, text in (
        ("rebalances_total", "group_completed_rebalance_count", "Rebalances completed."),
        ("offset_commits_total", "offset_commit_count", "Offsets committed."),
        ("offset_expirations_total", "offset_expiration_count", "Offsets expired."),
    ):
        yield from _one(name, "counter", text, sum(getattr(each, field) for each in found))
    parked = len(parked_views(cluster, now.group_ms))
    yield from _one("parked_requests", "gauge", "JoinGroup and SyncGroup that wait.", parked)
    size = sum(each.size_bytes for each in cluster.logs.logs())
    yield from _one("log_bytes", "gauge", "Of the records in all logs.", size)
    hits = sum(each.hits for each in cluster.faults.states())
    yield from _one("fault_hits", "gauge", "Of the fault rules that there are.", hits)
    trace = control.tracing.view()
    yield from _one("trace_events_total", "counter", "Events recorded.", trace.events)
    yield from _one(
        "trace_stalls_total", "counter", "Waits for the recording of a trace.", trace.stalls
    )


def _name(number: int) -> str:
    return _APIS.get(number, str(number))


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP coordinator_sim_{name} {text}"
    yield f"# TYPE coordinator_sim_{name} {kind}"


def _one(name: str, kind: str, text: str, value: int) -> Iterator[str]:
    yield from _head(name, kind, text)
    yield f"coordinator_sim_{name} {value}"


KEEP_ALIVE_S: Final = 15
"""Interval of keep-alive comments in an idle stream of events."""
_AT_ONCE: Final = 50
"""Events that a stream writes before others are answered."""
MAX_BODY_BYTES: Final = 1 << 20

_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
PAGE: Final = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
}

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
        *(Route(path, own.page) for path in PAGE),
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
        name, media_type = PAGE[request.url.path]
        data = files("coordinator_sim.server.control").joinpath("page", name).read_bytes()
        headers = {"content-security-policy": PAGE_POLICY, "cache-control": "no-cache"}
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
                yield event_bytes("gap", after, {"after": after, "from": kept_from})
                after = kept_from - 1
            if items := feed.after(after, _AT_ONCE):
                after = items[-1].seq
                yield b"".join(event_bytes(item.kind, item.seq, item) for item in items)
                await asyncio.sleep(0)
                continue
            try:
                async with asyncio.timeout(KEEP_ALIVE_S):
                    await feed.changed()
            except TimeoutError:
                yield b": still here\n\n"


def event_bytes(kind: str, seq: int, data: Json) -> bytes:
    """Return an event as the page is sent it."""
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (seq, kind.encode(), msgspec.json.encode(data))
