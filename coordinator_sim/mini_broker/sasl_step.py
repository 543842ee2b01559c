"""What one token of a client leads to."""

from msgspec import Struct


class SaslStep(Struct, frozen=True):
    """One step of a SASL exchange.

    Args:
        token: To say to the client.
        user: Who it is, when the exchange is over; None while it goes on.
        is_refused: Whether it failed.
        reason: What the client is told of a failure; None for words that give nothing away.
    """

    token: bytes = b""
    user: str | None = None
    is_refused: bool = False
    reason: str | None = None


def refused(reason: str | None = None) -> SaslStep:
    """The exchange failed."""
    return SaslStep(is_refused=True, reason=reason)
