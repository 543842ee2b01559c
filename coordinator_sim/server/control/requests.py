"""One call of the control surface, and the errors that refuse it."""

from typing import Final

from msgspec import Struct

from coordinator_sim.errors import CoordinatorSimError
from coordinator_sim.kafka.java_numbers import java_int
from coordinator_sim.server.control.models import Json

_SHOWN: Final = 100
"""Longest part, in characters, of a wrong parameter that a message quotes."""


class NotFound(CoordinatorSimError):
    """The object that the path names does not exist."""


class WaitedInVain(CoordinatorSimError):
    """The awaited state did not come within the time limit."""


class BadRequest(CoordinatorSimError):
    """A parameter or the body is invalid; the message names it."""


def whole_number(name: str, text: str) -> int:
    """Parse a parameter that is a whole number of 64 bits.

    Raises:
        BadRequest: it is not such a number.
    """
    number = java_int(text, bits=64)
    if number is None:
        raise BadRequest(f"{name}={text[:_SHOWN]}: wants a whole number of 64 bits")
    return number


class ControlRequest(Struct, frozen=True, kw_only=True):
    """A call.

    Args:
        path: The variable parts of its path, decoded.
        query: Its query, the last value of each name.
        body: The body, of the route's type; None if the route has none.
    """

    path: dict[str, str]
    query: dict[str, str]
    body: Json = None

    def number(self, name: str, default: int | None = None) -> int:
        """A whole number of 64 bits from the path or the query.

        Raises:
            BadRequest: it is not such a number, or missing without a default.
        """
        text = self.path.get(name, self.query.get(name))
        if text is None and default is not None:
            return default
        return whole_number(name, text or "")

    def optional_number(self, name: str) -> int | None:
        """A whole number from the query; None if it is not given.

        Raises:
            BadRequest: it is no number.
        """
        return self.number(name) if name in self.query else None
