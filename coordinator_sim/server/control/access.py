"""Access to the control surface: its guard as middleware, and the paths that are open to all."""

from typing import Final

import msgspec
from starlette.datastructures import Headers, QueryParams
from starlette.types import ASGIApp, Receive, Scope, Send

from coordinator_sim.listening import HttpGuard
from coordinator_sim.server.control.models import Problem

_OPEN: Final = ("/", "/page.js", "/page.css", "/healthz", "/readyz", "/favicon.ico")
"""Paths that are open to all, as they reveal nothing of the cluster."""


class Access:
    """The rules of one listener; see `HttpGuard`.

    Args:
        host: Host that the listener is bound to.
        token: Token that callers must send; empty for none.
    """

    def __init__(self, host: str, token: str = "") -> None:
        self._guard = HttpGuard(host, token, server="the control surface")

    def middleware(self, app: ASGIApp) -> ASGIApp:
        """Wrap an application, so that every call is checked first."""

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                return
            refused = self._guard.refusal(
                Headers(scope=scope),
                is_open=scope["path"] in _OPEN,
                queried=QueryParams(scope["query_string"]).get("access_token", ""),
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
