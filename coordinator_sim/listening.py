"""Sockets of HTTP servers, bound before their address is published, and access checks.

On the loopback address every user of the machine has access, but no page of another site in a
browser: `Host` must name this server, and `Origin`, if present, must be its own. With a token,
every caller that has it gets access; a listener on another address needs one.
"""

import hmac
import socket
from collections.abc import Mapping
from typing import Final

from coordinator_sim.errors import ConfigError

PAGE_POLICY: Final = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'"
"""Content-Security-Policy of the live page."""
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
"""Hosts on which a listener needs no token."""
TOKEN_VARIABLE: Final = "COORDINATOR_SIM_CONTROL_TOKEN"  # noqa: S105 - the name of a variable
"""Environment variable with the token of a listener, for servers and their clients."""
_BEARER: Final = "Bearer "


def bearer(token: str) -> dict[str, str]:
    """The headers with which a client sends a token; none for an empty one.

    Raises:
        ConfigError: HTTP cannot carry it.
    """
    if not token.isascii() or not token.isprintable():
        raise ConfigError(f"token {token!r}: must be printable ASCII, as HTTP has it")
    return {"authorization": f"{_BEARER}{token}"} if token else {}


class HttpGuard:
    """Who may call one listener.

    Args:
        host: Host that the listener is bound to, or is reached by.
        token: Token that callers must send; empty for none.
        server: Names the listener in the error.

    Raises:
        ConfigError: the host is not the loopback one, and there is no token.
    """

    def __init__(self, host: str, token: str = "", *, server: str) -> None:
        if not token and host not in LOOPBACK:
            raise ConfigError(
                f"{server} on {host or 'all addresses'} wants --control-token or "
                f"{TOKEN_VARIABLE}; without one it is on 127.0.0.1 or localhost"
            )
        self._hosts = {*LOOPBACK, host}
        self._token = token

    def refusal(
        self, headers: Mapping[str, str], *, is_open: bool = False, queried: str = ""
    ) -> tuple[int, str] | None:
        """Status and reason of a refusal; None if the caller has access.

        Args:
            headers: Of the request, by lower-case names.
            is_open: Whether the resource needs no token.
            queried: A token that is sent in the query.
        """
        host = headers.get("host", "")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return 403, f"a page of {origin} may not call this server"
        if not self._token:
            if _name_of(host) not in self._hosts:
                return 403, f"this server is not {host}"
            return None
        sent = headers.get("authorization", "")
        token = sent.removeprefix(_BEARER) if sent.startswith(_BEARER) else ""
        if not is_open and not hmac.compare_digest(
            (token or queried).encode(), self._token.encode()
        ):
            return 401, "wants the token: Authorization: Bearer ..."
        return None


def _name_of(host: str) -> str:
    """The name in a Host header, without port and brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


def bound_socket(host: str, port: int, remedy: str) -> socket.socket:
    """A TCP socket that listens there.

    Args:
        host: IPv4 or IPv6; empty for every address.
        port: 0 for any that is free.
        remedy: What to choose another of where it is taken, for the error.

    Raises:
        ConfigError: it cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small answers at once only where the protocol is named, not the default one.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen()
    except (OSError, TypeError) as error:  # A TypeError where the name cannot be encoded.
        listening.close()
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"cannot listen on {host or '*'}:{port}: {reason}; choose another {remedy}"
        ) from None
    return listening
