"""What surrounds the resources of Connect's REST API: origins, response headers, authentication.

Each is made of a worker's settings. The order is that of Kafka's server: the cross-origin handler,
the header filter, and inside the framework, once a resource is found, the filter of an extension.
Admin listeners of their own have none of them.

Source: kafka 4.3, connect/runtime/.../rest/RestServer.java (initializeResources,
configureHttpResponseHeaderFilter), RestServerConfig.java (validateHttpResponseHeaderConfig);
connect/basic-auth-extension/.../JaasBasicAuthFilter.java, PropertyFileLoginModule.java; Jetty
12.0.34, CrossOriginHandler.java, HeaderFilter.java.
"""

import binascii
import csv
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from email.utils import formatdate
from typing import Final, Self

from msgspec import Struct

from coordinator_sim.connect.effects import HttpRequest, HttpResponse
from coordinator_sim.connect.rest.http import INTERNAL_SERVER_ERROR, JSON, UNAUTHORIZED, RestError
from coordinator_sim.errors import ConfigError

BASIC_AUTH_EXTENSION: Final = (
    "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
)
_ACTIONS: Final = ("set", "add", "setDate", "addDate")
_ANY_ORIGIN: Final = "*"
_DEFAULT_METHODS: Final = "GET,POST,HEAD"
_MAX_AGE_S: Final = "60"
_HEADER_NAME: Final = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]+")
_MILLISECONDS: Final = re.compile(r"[+-]?[0-9]{1,13}")
"""Some 317 years: a date stays one that a header can hold."""
_INTERNAL: Final = (
    ("POST", re.compile(r"/connectors/[^/]+/tasks/?")),
    ("PUT", re.compile(r"/connectors/[^/]+/fence/?")),
)
"""Requests between workers, which are signed instead."""
_NO_BASE64: Final = re.compile(r"[^A-Za-z0-9+/=]")


class CrossOrigin(Struct, frozen=True):
    """Origins whose pages may use the API, and the methods that they may use.

    Args:
        origins: Patterns, of which one must match a whole origin; None for any origin.
        methods: Names with commas, as the header has them.
    """

    origins: tuple[re.Pattern[str], ...] | None
    methods: str

    @classmethod
    def from_settings(cls, origins: str, methods: str) -> Self | None:
        """Parse `access.control.allow.origin` and `.methods`; None where the first is blank.

        UNSPECIFIED: a JVM shuffles the methods at its start; here they keep their order.

        Raises:
            ConfigError: an origin is no pattern.
        """
        if not origins.strip():
            return None
        names = [each.strip() for each in origins.split(",") if each.strip()]
        try:
            patterns = tuple(re.compile(each, re.IGNORECASE | re.ASCII) for each in names)
        except re.error as error:
            if _ANY_ORIGIN not in names:
                text = f"access.control.allow.origin={origins}: no regular expression: {error}"
                raise ConfigError(text) from None
            patterns = ()
        allowed = None if _ANY_ORIGIN in names else patterns
        return cls(allowed, methods if methods.strip() else _DEFAULT_METHODS)

    def headers(self, request: HttpRequest) -> dict[str, str]:
        """Return the headers of the answer to a request. Source: CrossOriginHandler.handle."""
        headers = {"vary": "Origin"}
        origins = request.headers.get("origin")
        if origins is None or not self._allows(origins):
            return headers
        headers["access-control-allow-origin"] = origins
        if request.method == "OPTIONS" and "access-control-request-method" in request.headers:
            headers["access-control-allow-methods"] = self.methods
            headers["access-control-allow-headers"] = "Content-Type"
            headers["access-control-max-age"] = _MAX_AGE_S
        return headers

    def _allows(self, origins: str) -> bool:
        if self.origins is None:
            return True
        return any(each.fullmatch(origin) for origin in origins.split() for each in self.origins)


class HeaderRule(Struct, frozen=True):
    """One header of every response.

    Args:
        name: Of the header, in lower case.
        value: Its text; milliseconds from now where it is a date.
        is_added: Whether it stands beside an earlier one of its name.
        is_date: Whether it is a date.
    """

    name: str
    value: str
    is_added: bool
    is_date: bool

    def text(self, now_ms: int) -> str:
        """Return the header's value at an instant of the wall clock."""
        if not self.is_date:
            return self.value
        return formatdate((now_ms + int(self.value)) // 1000, usegmt=True)


def header_rules(config: str) -> tuple[HeaderRule, ...]:
    """Parse `response.http.headers.config`: rules with commas, in quotes where one has a comma.

    Raises:
        ConfigError: a rule is not `[action] [name]:[value]`, in Kafka's words, or its header cannot
            be sent.
    """
    if not config.strip():
        return ()
    try:
        (rules,) = csv.reader([config.strip()], skipinitialspace=True)
    except csv.Error as error:
        raise ConfigError(f"Invalid format of header configs: {error}") from None
    return tuple(_rule(each) for each in rules)


def _rule(text: str) -> HeaderRule:
    """Parse one rule. Source: RestServerConfig.validateHttpResponseHeaderConfig."""
    action, _, header = text.strip().partition(" ")
    if not header.strip():
        raise ConfigError(
            f"Invalid format of header config '{text}'. "
            "Expected: '[action] [header name]:[header value]'"
        )
    if action.lower() not in {each.lower() for each in _ACTIONS}:
        listed = ", ".join(_ACTIONS)
        raise ConfigError(f"Invalid header config action: '{action}'. Expected one of [{listed}]")
    name, colon, value = header.strip().partition(":")
    if not colon or not value or ":" in value:
        raise ConfigError(
            f"Invalid format of header name and header value pair '{header}'. "
            "Expected: '[header name]:[header value]'"
        )
    name, value = name.strip(), value.strip()
    if not name or re.search(r"\s", name):
        raise ConfigError(
            f"Invalid header name '{name}'. The '[header name]' cannot contain whitespace"
        )
    if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
        raise ConfigError(f"HTTP allows no such header: {name!r}: {value!r}")
    is_date = action.endswith("Date")
    if is_date and not _MILLISECONDS.fullmatch(value):
        raise ConfigError(f"{action} {name}: {value!r}: give milliseconds, at most 13 digits")
    return HeaderRule(name.lower(), value, action.startswith("add"), is_date)


def with_headers(
    response: HttpResponse, own: Mapping[str, str], rules: tuple[HeaderRule, ...], now_ms: int
) -> HttpResponse:
    """Return a response with the headers of a cross-origin handler, and those of the rules.

    DEVIATION: a header that is added twice is one here, with a comma.
    """
    headers = dict(own)
    for rule in rules:
        text = rule.text(now_ms)
        before = headers.get(rule.name) if rule.is_added else None
        headers[rule.name] = text if before is None else f"{before}, {text}"
    return HttpResponse(
        status=response.status, headers={**headers, **response.headers}, body=response.body
    )


def refused(
    credentials: Mapping[str, str], request: HttpRequest, content_type: str = JSON
) -> HttpResponse | None:
    """Return the answer to a request without a known user's password; None where it may pass.

    Args:
        credentials: Passwords by user; every request may pass where there are none.
        request: The request; those between workers always pass.
        content_type: Of the resource that it is for.

    Raises:
        RestError: the credentials are no base64, in Java's words.
    """
    path = request.target.partition("?")[0]
    if any(request.method == method and pattern.fullmatch(path) for method, pattern in _INTERNAL):
        return None
    found = next(_credentials_in(request.headers.get("authorization", "")), None)
    if not credentials or (found is not None and credentials.get(found[0]) == found[1]):
        return None
    return HttpResponse(
        status=UNAUTHORIZED,
        headers={"content-type": content_type},
        body=b"User cannot access the resource.",
    )


def _credentials_in(authorization: str) -> Iterator[tuple[str, str]]:
    """Yield the user and password of a header, if it has them."""
    scheme, space, text = authorization.partition(" ")
    if not space or scheme.lower() != "basic":
        return
    user, colon, password = _decoded(text).partition(":")
    if user and colon:
        yield user, password


def _decoded(text: str) -> str:
    """Decode base64 as Java does: padding may be absent."""
    strange = _NO_BASE64.search(text)
    if strange is not None:
        code = f"{ord(strange[0]):x}"
        raise RestError(INTERNAL_SERVER_ERROR, f"Illegal base64 character {code}")
    try:
        decoded = b64decode(text if "=" in text else text + "=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        message = "Input byte array has wrong 4-byte ending unit"
        raise RestError(INTERNAL_SERVER_ERROR, message) from None
    return decoded.decode(errors="replace")
