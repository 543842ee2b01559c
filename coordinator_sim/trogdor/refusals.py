"""Requests that Trogdor refuses: an HTTP status and a message, as a value of an exception.

Source: kafka trunk, trogdor/.../trogdor/rest/RestExceptionMapper.java.
"""

from typing import Final

from coordinator_sim.errors import CoordinatorSimError

_QUOTED_CHARS: Final = 40


class TrogdorRefusal(CoordinatorSimError):
    """A request was refused.

    Args:
        code: HTTP status: 400 invalid, 404 not found, 409 conflict, 500 failed, 501 unknown class.
        message: Text for the client.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def quoted(text: str) -> str:
    """A text of the client's, for the message of a refusal; a long one is cut."""
    return repr(text) if len(text) <= _QUOTED_CHARS else f"{text[:_QUOTED_CHARS]!r}..."
