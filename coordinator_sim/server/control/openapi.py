"""The OpenAPI document of the control surface, made from its routes and messages."""

import re
from typing import Any, Final

import msgspec

from coordinator_sim import __version__
from coordinator_sim.server.control.models import FeedItem, Json, Problem
from coordinator_sim.server.control.routes import ROUTES, ControlRoute

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
