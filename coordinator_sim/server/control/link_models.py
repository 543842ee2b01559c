"""The messages of the control surface about the network between clients and brokers."""

from typing import Annotated

from msgspec import Meta, Struct

from coordinator_sim.server.control.models import Count, Port
from coordinator_sim.server.links import PLAIN, Way


class SetLink(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What links let through from now on; what is left out is as if nothing had been set.

    Args:
        broker: Null for all brokers.
        listener: Null for all listeners.
        cut: Whether nothing passes; what is held back arrives when the link is whole again.
        to_broker: Requests.
        to_clients: Responses.
    """

    broker: Count | None = None
    listener: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    cut: bool = False
    to_broker: Way = PLAIN
    to_clients: Way = PLAIN


class ResetLink(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which links have their open connections reset.

    Args:
        broker: Null for all brokers.
        listener: Null for all listeners.
    """

    broker: Count | None = None
    listener: Annotated[str, Meta(min_length=1, max_length=200)] | None = None


class LinkReset(Struct, frozen=True, kw_only=True):
    """How many connections were reset."""

    connections: int


class LinkView(Struct, frozen=True, kw_only=True):
    """The network between the clients of a listener and a broker.

    Args:
        connections: Open ones.
        cut: Whether nothing passes.
    """

    broker_id: int
    listener: str
    host: str
    port: Port
    connections: int
    cut: bool
    to_broker: Way
    to_clients: Way
