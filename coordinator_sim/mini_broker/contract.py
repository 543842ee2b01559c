"""What the parts of the mini-broker agree on: instants, calls, handlers, answers."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.context import RequestContext

Q = TypeVar("Q")
"""A request."""


class Instants(Struct, frozen=True, gc=False):
    """The present on both clocks, in milliseconds.

    Args:
        group_ms: Of groups, transactions, retention and the log's timestamps. May stand still, or
            run faster than the wall's.
        wall_ms: Of sockets: fetch waits, produce timeouts, throttling, fault delays.
    """

    group_ms: int
    wall_ms: int


class Call(Struct, Generic[Q], frozen=True, kw_only=True, gc=False):
    """One request at one broker.

    Args:
        broker_id: Whom it reached.
        api: Of the request.
        request: A struct of `messages`.
        context: Who sent it, in which version; the token names its answer.
        now: When it came.
        connection: Number of the connection, for what lives as long as that.
    """

    broker_id: int
    api: ApiKey
    request: Q
    context: RequestContext
    now: Instants
    connection: int = 0


Handler = Callable[[Call[Any]], Struct | None]
"""Takes a call; its answer, a struct of `messages`. None: it comes later, through `Answers`."""

Handlers = Mapping[ApiKey, Handler]
"""Who takes which API; each API family offers one of these."""


class Answers(Protocol):
    """Where late answers go."""

    def answer(self, token: int, response: Struct | None) -> None:
        """Answer the request of that token; None sends nothing, as Produce with acks=0 wants.

        May be called before the handler has returned; the handler then returns None.
        """
        ...

    def close(self, token: int) -> None:
        """Close the connection of that request: what Produce with acks=0 gets for an error."""
        ...


class Family(Protocol):
    """A family of APIs, one module each: topics, configs, produce, fetch, transactions, ..."""

    def handlers(self) -> Handlers:
        """Who takes which API."""
        ...


class Timed(Protocol):
    """A family with deadlines of its own, on either clock."""

    def expire(self, now: Instants) -> None:
        """Do what is due; late answers go through `Answers`."""
        ...

    def next_group_deadline_ms(self) -> int | None:
        """The earliest deadline on the group clock, None when there is none."""
        ...

    def next_wall_deadline_ms(self) -> int | None:
        """The earliest deadline on the wall clock, None when there is none."""
        ...
