"""Result of one token of a SASL client."""

from msgspec import Struct


class SaslStep(Struct, frozen=True):
    """One step of a SASL exchange.

    Args:
        token: Token to send to the client.
        user: The authenticated user when the exchange is over; None while it goes on.
        is_refused: Whether the exchange failed.
        reason: Failure message for the client; None for the generic one.
    """

    token: bytes = b""
    user: str | None = None
    is_refused: bool = False
    reason: str | None = None


def refused(reason: str | None = None) -> SaslStep:
    """A step that fails the exchange."""
    return SaslStep(is_refused=True, reason=reason)
