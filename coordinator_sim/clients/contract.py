"""The shape that every client port has, so that one driver can operate any of them."""

from typing import Protocol

from coordinator_sim.clients.effects import Effects
from coordinator_sim.protocol.requests import Response


class ClientPort(Protocol):
    """A sans-I/O client coordinator: two machines (application thread, heartbeat thread) in one.

    `now_ms` never decreases between calls. Deadlines are instants on the caller's clock.
    """

    def poll(self, now_ms: int, timeout_ms: int) -> Effects:
        """The application calls `poll(timeout)`; ends with `PollReturned` at the latest then."""
        ...

    def expire(self, now_ms: int) -> Effects:
        """Fire every deadline up to now, in a defined order."""
        ...

    def on_connected(self, node_id: int, now_ms: int) -> Effects:
        """A connection that the port asked for is open."""
        ...

    def on_disconnected(self, node_id: int, now_ms: int) -> Effects:
        """A connection is gone, or could not be opened; its requests will not be answered."""
        ...

    def on_response(self, correlation_id: int, response: Response, now_ms: int) -> Effects:
        """A response arrived. Unknown correlation ids (timed out before) are ignored."""
        ...

    def callback_completed(self, token: int, outcome: str | None, now_ms: int) -> Effects:
        """The application's callback returned (None) or raised (the exception's name)."""
        ...

    def wakeup(self, now_ms: int) -> Effects:
        """Interrupt the current or the next poll, as `KafkaConsumer.wakeup` does."""
        ...

    def close(self, now_ms: int, timeout_ms: int) -> Effects:
        """Leave the group where the client would; ends with `Closed`."""
        ...

    def next_deadline_ms(self) -> int | None:
        """The one alarm that the driver arms; None when nothing is pending."""
        ...
