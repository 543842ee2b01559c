"""Exceptions that a request to the herder ends with, and the failure its caller sees for each.

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
    """The connector, task or status does not exist."""


class AlreadyExistsException(ConnectException):
    """A connector of this name exists already."""


class RebalanceNeededException(ConnectException):
    """A rebalance is about to begin, so this worker's knowledge of owners is stale."""


class TooManyTasksException(ConnectException):
    """A connector has made more task configurations than `tasks.max`."""


class ConnectRestException(ConnectException):
    """A refusal with an HTTP status of its own.

    Args:
        status: The HTTP status.
        message: Text that the caller reads.
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
    """Another worker has to be asked.

    Args:
        message: The reason.
        forward_url: REST URL of the worker to ask; None when it is not known.
    """

    def __init__(self, message: str, forward_url: str | None) -> None:
        super().__init__(message)
        self.args = (message, forward_url)
        self.forward_url = forward_url


class NotLeaderException(RequestTargetException):
    """The request needs the leader, and this worker does not lead."""


class NotAssignedException(RequestTargetException):
    """The request needs the owner of the connector or task, and this worker is not it."""


_KINDS: Final = {kind.value: kind for kind in ErrorKind}


def failure_of(exception: JavaException) -> RequestFailed:
    """Return the failure that the caller of a request sees for an exception."""
    kind = _KINDS.get(exception.name, ErrorKind.CONNECT)
    match exception:
        case RequestTargetException(forward_url=url):
            return RequestFailed(kind=kind, message=exception.message, forward_url=url)
        case ConnectRestException(status=status):
            return RequestFailed(kind=kind, message=exception.message, rest_status=status)
        case _:
            return RequestFailed(kind=kind, message=exception.message)
