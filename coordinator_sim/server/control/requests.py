"""One call of the control surface, and the ways in which it ends without being done."""

from msgspec import Struct

from coordinator_sim.errors import CoordinatorSimError
from coordinator_sim.server.control.models import Json


class NotFound(CoordinatorSimError):
    """What the path names is not there."""


class WaitedInVain(CoordinatorSimError):
    """What was waited for did not come within the time limit."""


class BadRequest(CoordinatorSimError):
    """A parameter or the body is not what it must be; the message names it."""


class ControlRequest(Struct, frozen=True, kw_only=True):
    """A call.

    Args:
        path: The variable parts of its path, decoded.
        query: Its query, the last value of each name.
        body: Of the type that the route wants; None where it wants none.
    """

    path: dict[str, str]
    query: dict[str, str]
    body: Json = None

    def number(self, name: str, default: int | None = None) -> int:
        """A whole number from the path or the query.

        Raises:
            BadRequest: it is none, or there is neither it nor a default.
        """
        text = self.path.get(name, self.query.get(name))
        if text is None and default is not None:
            return default
        try:
            return int(text or "")
        except ValueError:
            raise BadRequest(f"{name}={text or ''}: wants a whole number") from None

    def optional_number(self, name: str) -> int | None:
        """A whole number from the query, None where it is not given.

        Raises:
            BadRequest: it is no number.
        """
        return self.number(name) if name in self.query else None
