"""HTTP of Connect's REST server: targets, bodies, errors, pages of the server itself.

This module knows no resource.

Source: kafka trunk, connect/runtime/.../rest/errors/ConnectExceptionMapper.java,
rest/entities/ErrorMessage.java; Jersey and Jetty as a 4.3.1 worker was seen to answer.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from typing import Final, NoReturn
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from msgspec import Struct

from coordinator_sim.connect.effects import HttpRequest, HttpResponse
from coordinator_sim.connect.settings.config_def import Properties
from coordinator_sim.connect.stores.json_converter import to_json
from coordinator_sim.errors import CoordinatorSimError

JSON: Final = "application/json"
OK: Final = 200
CREATED: Final = 201
ACCEPTED: Final = 202
NO_CONTENT: Final = 204
BAD_REQUEST: Final = 400
UNAUTHORIZED: Final = 401
FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
METHOD_NOT_ALLOWED: Final = 405
CONFLICT: Final = 409
UNSUPPORTED_MEDIA_TYPE: Final = 415
INTERNAL_SERVER_ERROR: Final = 500
SERVICE_UNAVAILABLE: Final = 503
_REASONS: Final = {
    BAD_REQUEST: "Bad Request",
    NOT_FOUND: "Not Found",
    METHOD_NOT_ALLOWED: "Method Not Allowed",
    UNSUPPORTED_MEDIA_TYPE: "Unsupported Media Type",
}


class RestError(CoordinatorSimError):
    """A request that ends with an error.

    Args:
        status: HTTP status, also the `error_code` of the body.
        message: Text that the caller reads.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status, message)
        self.status = status
        self.message = message


class UnmatchedRequest(RestError):
    """A request that reaches no resource: unknown path, other method, other content type.

    QUIRK: the JSON answer to a request that reaches no resource has no content type, because only
    a resource knows what it produces.
    """


class Target(Struct, frozen=True):
    """A request's path and query, decoded.

    Args:
        segments: Segments of the path, without empty ones.
        query: Parameters in order; a key may occur more than once.
    """

    segments: tuple[str, ...]
    query: tuple[tuple[str, str], ...]

    def first(self, key: str) -> str | None:
        """Return the first value of a key of the query; None when it is absent."""
        return next((value for name, value in self.query if name == key), None)

    def flag(self, key: str) -> bool | None:
        """Return a key as Java's `Boolean`: None when absent, False for anything but `true`."""
        value = self.first(key)
        return None if value is None else value.lower() == "true"

    def values(self, key: str) -> tuple[str, ...]:
        """Return all values of a key, in order."""
        return tuple(value for name, value in self.query if name == key)


def parse_target(target: str) -> Target:
    """Parse the path and query of a request.

    Raises:
        RestError: a path segment holds an encoded slash, which the server rejects as ambiguous.
    """
    parts = urlsplit(target)
    if "%2f" in parts.path.lower():
        raise RestError(BAD_REQUEST, "Ambiguous URI path separator")
    segments = tuple(unquote(segment) for segment in parts.path.split("/") if segment)
    return Target(segments, tuple(parse_qsl(parts.query, keep_blank_values=True)))


def path_of(*segments: str) -> str:
    """Return a path of these segments, encoded."""
    return "".join(f"/{quote(segment, safe='')}" for segment in segments)


# -- bodies ----------------------------------------------------------------------------------


def object_in(request: HttpRequest) -> dict[str, object]:
    """Return the JSON object of a body; numbers stay as they were written.

    Raises:
        RestError: 415 for another content type, 500 for anything but an object.
    """
    value = json_in(request, numbers_as_text=True)
    if not isinstance(value, dict):
        raise RestError(INTERNAL_SERVER_ERROR, _cannot_deserialize("an object", value))
    return value


def json_in(request: HttpRequest, *, numbers_as_text: bool = False) -> object:
    """Return the JSON value of a body.

    DEVIATION: a body that cannot be read ends with 500 as in Java; the message is not Jackson's.

    Raises:
        RestError: 415 for another content type, 500 for a body that is not JSON.
    """
    content_type = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if content_type != JSON:
        raise unmatched(UNSUPPORTED_MEDIA_TYPE)
    try:
        parse = partial(json.loads, request.body, parse_constant=_refuse)
        value: object = parse(parse_int=str, parse_float=str) if numbers_as_text else parse()
        # Half a surrogate pair: Jackson reads it, and fails to write it.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise RestError(INTERNAL_SERVER_ERROR, f"Request body is no JSON: {error}") from error
    return value


def string_map(value: object) -> dict[str, str | None]:
    """Convert a JSON object to Java's `Map<String, String>`: scalars become text, null stays.

    Raises:
        RestError: 500 for anything else.
    """
    if not isinstance(value, dict):
        raise RestError(INTERNAL_SERVER_ERROR, _cannot_deserialize("an object", value))
    return {str(key): _scalar_text(each) for key, each in value.items()}


def _scalar_text(value: object) -> str | None:
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case _:
            raise RestError(INTERNAL_SERVER_ERROR, _cannot_deserialize("a string", value))


def without_nulls(config: Properties) -> dict[str, str]:
    """Return the settings that have a value."""
    return {name: value for name, value in config.items() if value is not None}


def _cannot_deserialize(wanted: str, value: object) -> str:
    kinds = {dict: "an object", list: "an array", str: "a string", bool: "a boolean"}
    return f"Cannot deserialize {wanted} from {kinds.get(type(value), 'null')}"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


# -- answers ---------------------------------------------------------------------------------


def json_response(status: int, value: Mapping[str, object] | Sequence[object]) -> HttpResponse:
    """Return an answer with a JSON body."""
    return HttpResponse(status=status, headers={"content-type": JSON}, body=to_json(value))


def empty_response(status: int) -> HttpResponse:
    """Return an answer without a body."""
    return HttpResponse(status=status)


def error_response(error: RestError) -> HttpResponse:
    """Return the answer for an exception. Source: ConnectExceptionMapper.toResponse."""
    body = {"error_code": error.status, "message": error.message}
    if isinstance(error, UnmatchedRequest):
        return HttpResponse(status=error.status, body=to_json(body))
    return json_response(error.status, body)


def unmatched(status: int) -> UnmatchedRequest:
    """Return the error of a request that reaches no resource, such as `HTTP 404 Not Found`."""
    return UnmatchedRequest(status, status_text(status))


def status_text(status: int) -> str:
    """Return the framework's text for a status of its own."""
    return f"HTTP {status} {_REASONS[status]}"


def server_page(status: int, uri: str, reason: str) -> HttpResponse:
    """Return the server's own error page, for a request that reaches no resource at all.

    DEVIATION: the page that Jetty itself answers has a footer there, with its name and release.
    """
    body = (
        "<html>\n<head>\n"
        '<meta http-equiv="Content-Type" content="text/html;charset=ISO-8859-1"/>\n'
        f"<title>Error {status} {reason}</title>\n</head>\n<body>\n"
        f"<h2>HTTP ERROR {status} {reason}</h2>\n<table>\n"
        f"<tr><th>URI:</th><td>{escape(uri)}</td></tr>\n<tr><th>STATUS:</th><td>{status}</td></tr>\n"
        f"<tr><th>MESSAGE:</th><td>{reason}</td></tr>\n</table>\n</body>\n</html>\n"
    )
    headers = {"content-type": "text/html;charset=iso-8859-1"}
    return HttpResponse(status=status, headers=headers, body=body.encode())
