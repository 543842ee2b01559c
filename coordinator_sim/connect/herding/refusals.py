"""Exceptions that a request to the herder ends with, and the failure that each is to its caller.

Source: kafka trunk, connect/runtime/.../errors/NotFoundException.java, AlreadyExistsException.java;
rest/errors/ConnectRestException.java, BadRequestException.java; distributed/
NotLeaderException.java, NotAssignedException.java, RebalanceNeededException.java;
runtime/TooManyTasksException.java.
"""

from typing import Final

from coordinator_sim.connect.exceptions import ConnectException, JavaException
from coordinator_sim.connect.herding.requests import ErrorKind, RequestFailed

BAD_REQUEST: Final = 400
CONFLICT: Final = 409
FORBIDDEN: Final = 403
SERVICE_UNAVAILABLE: Final = 503


class NotFoundException(ConnectException):
    """There is no such connector, task or status."""


class AlreadyExistsException(ConnectException):
    """There is such a connector already."""


class RebalanceNeededException(ConnectException):
    """A rebalance is about to begin; what this worker knows of owners is no longer true."""


class TooManyTasksException(ConnectException):
    """A connector has made more task configurations than `tasks.max`."""


class ConnectRestException(ConnectException):
    """A refusal with an HTTP status of its own.

    Args:
        status: The HTTP status.
        message: What the caller reads.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.args = (status, message)
        self.status = status


class BadRequestException(ConnectRestException):
    """The request can never succeed as it is."""

    def __init__(self, message: str) -> None:
        super().__init__(BAD_REQUEST, message)
        self.args = (message,)


class RequestTargetException(ConnectException):
    """Another worker is to be asked.

    Args:
        message: Why.
        forward_url: Its REST URL; None when it is not known.
    """

    def __init__(self, message: str, forward_url: str | None) -> None:
        super().__init__(message)
        self.args = (message, forward_url)
        self.forward_url = forward_url


class NotLeaderException(RequestTargetException):
    """Only the leader does this."""


class NotAssignedException(RequestTargetException):
    """Only the owner does this."""


_KINDS: Final = {kind.value: kind for kind in ErrorKind}


def failure_of(exception: JavaException) -> RequestFailed:
    """What the caller of a request is told of the exception that it ended with."""
    kind = _KINDS.get(exception.name, ErrorKind.CONNECT)
    match exception:
        case RequestTargetException(forward_url=url):
            return RequestFailed(kind=kind, message=exception.message, forward_url=url)
        case ConnectRestException(status=status):
            return RequestFailed(kind=kind, message=exception.message, rest_status=status)
        case _:
            return RequestFailed(kind=kind, message=exception.message)
