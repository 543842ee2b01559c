"""Sockets that HTTP servers listen on, bound before anybody is told of them."""

import socket
from typing import Final

from coordinator_sim.errors import ConfigError

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
"""Hosts on which a listener needs no token."""


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
