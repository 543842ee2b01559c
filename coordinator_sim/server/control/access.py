"""Access control of the control surface.

On the loopback address everybody on the machine has access, but no page of another site in a
browser: `Host` must name this server, and `Origin`, if present, must be its own. With a token,
every caller that has it gets access; a listener on another address needs one.
"""

import hmac
from typing import Final

import msgspec
from starlette.datastructures import Headers, QueryParams
from starlette.types import ASGIApp, Receive, Scope, Send

from coordinator_sim.errors import ConfigError
from coordinator_sim.listening import LOOPBACK
from coordinator_sim.server.control.models import Problem

_OPEN: Final = ("/", "/page.js", "/page.css", "/healthz", "/readyz", "/favicon.ico")
"""Paths that are open to all, as they reveal nothing of the cluster."""
_BEARER: Final = "Bearer "


class Access:
    """The rules of one listener.

    Args:
        host: Host that the listener is bound to.
        token: Token that callers must send; empty for none.
    """

    __slots__ = ("_host", "_token")

    def __init__(self, host: str, token: str = "") -> None:
        if not token and host not in LOOPBACK:
            raise ConfigError(
                f"the control surface on {host} wants --control-token; without one it binds "
                "127.0.0.1"
            )
        self._host = host
        self._token = token

    def refusal(self, path: str, headers: Headers, query: QueryParams) -> tuple[int, str] | None:
        """Status and reason of a refusal; None if the caller has access."""
        host = headers.get("host", "")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return 403, f"a page of {origin} may not call this server"
        if not self._token:
            if _name_of(host) not in {*LOOPBACK, self._host}:
                return 403, f"this server is not {host}"
            return None
        if path in _OPEN:
            return None
        given = headers.get("authorization", "")
        token = given.removeprefix(_BEARER) if given.startswith(_BEARER) else ""
        if not hmac.compare_digest(
            (token or query.get("access_token", "")).encode(), self._token.encode()
        ):
            return 401, "wants the token: Authorization: Bearer ..."
        return None

    def middleware(self, app: ASGIApp) -> ASGIApp:
        """Wrap an application, so that every call is checked first."""

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                return
            refused = self.refusal(
                scope["path"], Headers(scope=scope), QueryParams(scope["query_string"])
            )
            if refused is None:
                await app(scope, receive, send)
                return
            status, reason = refused
            headers = [(b"content-type", b"application/json")]
            if status == 401:  # noqa: PLR2004 - HTTP's own number
                headers.append((b"www-authenticate", b"Bearer"))
            await send({"type": "http.response.start", "status": status, "headers": headers})
            body = msgspec.json.encode(Problem(error=reason))
            await send({"type": "http.response.body", "body": body})

        return guarded


def _name_of(host: str) -> str:
    """The name in a Host header, without port and brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()
