"""Types shared by all parts of the broker: instants, calls, handlers, answers."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.context import RequestContext

Q = TypeVar("Q")
"""Type of a request."""


class Instants(Struct, frozen=True, gc=False):
    """The present on both clocks, in milliseconds.

    Args:
        group_ms: Clock of groups, transactions, retention and log timestamps. May stand still, or
            run faster than the wall clock.
        wall_ms: Clock of sockets: fetch waits, produce timeouts, throttling, fault delays.
    """

    group_ms: int
    wall_ms: int


class Call(Struct, Generic[Q], frozen=True, kw_only=True, gc=False):
    """One request at one broker.

    Args:
        broker_id: The broker that the request reached.
        api: API of the request.
        request: A struct of `messages`.
        context: Sender and version of the request; the token identifies its answer.
        now: When the request arrived.
        connection: Number of the connection, for state that lives as long as the connection.
    """

    broker_id: int
    api: ApiKey
    request: Q
    context: RequestContext
    now: Instants
    connection: int = 0


Handler = Callable[[Call[Any]], Struct | None]
"""Takes a call and returns its answer, a struct of `messages`; None if `Answers` gets it later."""

Handlers = Mapping[ApiKey, Handler]
"""The handler of each API; every API family offers such a mapping."""


class Answers(Protocol):
    """Takes the answers that a handler did not return itself."""

    def answer(self, token: int, response: Struct | None) -> None:
        """Answer the request of that token; None sends nothing, as Produce with acks=0 wants.

        May be called before the handler has returned; the handler then returns None.
        """
        ...

    def close(self, token: int) -> None:
        """Close the connection of that request, as for an error of Produce with acks=0."""
        ...


class AnswerPlace(Protocol):
    """Takes the answer of one request."""

    def answered(self, response: Struct | None) -> None:
        """The answer has come; None sends nothing."""
        ...

    def throttled(self, throttle_time_ms: int) -> None:
        """Delay the sender's next request by that much wall time, and until the answer is sent."""
        ...

    def closed(self) -> None:
        """Close the connection without an answer."""
        ...


class Family(Protocol):
    """A family of APIs, one module each: topics, configs, produce, fetch, transactions, ..."""

    def handlers(self) -> Handlers:
        """The handler of each API of the family."""
        ...


class Timed(Protocol):
    """A family with timers of its own, on either clock.

    It calls `Scheduler.wake_by_group_ms` or `wake_by_wall_ms` whenever it arms one.
    """

    def expire(self, now: Instants) -> None:
        """Run what is due; late answers go through `Answers`."""
        ...

    def arm(self) -> None:
        """Arm the scheduler for the next deadline on each clock."""
        ...

    def next_group_deadline_ms(self) -> int | None:
        """The earliest deadline on the group clock, None if there is none."""
        ...
