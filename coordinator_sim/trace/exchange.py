"""`Exchange`: a request of a client with its answer, as a log or a capture tells it."""

from typing import Any, Final

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey

TOLD_APIS: Final = frozenset(
    {
        ApiKey.JOIN_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.LEAVE_GROUP,
        ApiKey.OFFSET_COMMIT,
        ApiKey.OFFSET_FETCH,
    }
)
"""The APIs whose requests a trace tells."""


class Exchange(Struct, frozen=True, kw_only=True):
    """One request, its answer, and when.

    Args:
        asked_us: When the broker received the request.
        done_us: When it had the answer.
        sent_us: When it had sent the answer.
        seq: Line, or number of the frame, that tells of it.
        request: What was asked; one of `TOLD_APIS`.
        response: What was answered; None where that is not told.
        api_version: Version of both.
        has_bytes: Whether subscriptions and assignments are there; text logs leave them out.
        connection: Names the connection.
        ts_err_us: Uncertainty of the instants.
        raw: The line, where it is to be kept.
        source_ref: The file that tells of it.
    """

    asked_us: int
    done_us: int
    sent_us: int
    seq: int
    request: Any
    response: Any
    api_version: int
    correlation_id: int
    client_id: str | None
    client_host: str | None = None
    broker_id: int | None = None
    has_bytes: bool = True
    connection: str = ""
    client_software: str = ""
    ts_err_us: int = 1_000
    raw: str | None = None
    source_ref: str = ""

    @property
    def latency_us(self) -> int | None:
        """How long the request took; None without an answer."""
        return None if self.response is None else self.sent_us - self.asked_us
