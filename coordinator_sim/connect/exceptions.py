"""Exceptions that Java methods of a worker throw, and that a blocking method here ends with.

A thread catches them where Java does. Java's subclasses are subclasses here too.
"""

from typing import Final

from coordinator_sim.clients.exceptions import RETRIABLE, TIMEOUT
from coordinator_sim.errors import CoordinatorSimError

CONNECT_RETRIABLE: Final = "RetriableException"
"""org.apache.kafka.connect.errors.RetriableException."""
UNSUPPORTED_VERSION: Final = "UnsupportedVersionException"


class JavaException(CoordinatorSimError):
    """An exception that a Java method throws; the class has Java's simple name.

    Args:
        message: Text of the exception.
        cause: Simple class name of the exception that caused this one; empty for none.
    """

    def __init__(self, message: str = "", cause: str = "") -> None:
        super().__init__(message, cause)
        self.message = message
        self.cause = cause

    def __str__(self) -> str:
        """Return what Java prints: the class and the message."""
        return f"{self.name}: {self.message}" if self.message else self.name

    @property
    def name(self) -> str:
        """Simple name of the Java class."""
        return type(self).__name__

    @property
    def is_retriable(self) -> bool:
        """Whether the exception is a RetriableException, of the clients or of Connect."""
        return self.name in RETRIABLE or self.name == CONNECT_RETRIABLE


class ClientException(JavaException):
    """An exception without a class here: a driver answered with its name.

    Args:
        java_name: Simple name of the Java class.
        message: Text of the exception.
    """

    def __init__(self, java_name: str, message: str = "") -> None:
        super().__init__(java_name, message)
        self.java_name = java_name
        self.message = message
        self.cause = ""

    @property
    def name(self) -> str:
        """Simple name of the Java class."""
        return self.java_name


class TimeoutException(JavaException):
    """A wait or a request took too long."""


class ExecutionException(JavaException):
    """The operation that was waited for failed; `cause` names its exception."""


class WakeupException(JavaException):
    """A consumer's poll was woken up."""


class ConfigException(JavaException):
    """A setting, or a topic that a setting names, is invalid."""


class ConnectException(JavaException):
    """An operation of the worker failed."""


class PrivilegedWriteException(ConnectException):
    """A write with the fencible producer failed: its privilege is lost and must be claimed anew."""


def thrown(error: str, message: str = "") -> JavaException:
    """Return the exception for the name that a driver answered with."""
    return TimeoutException(message) if error == TIMEOUT else ClientException(error, message)


def trace_of(exception: JavaException) -> str:
    """Return the trace that a FAILED status shows for an exception.

    DEVIATION: of Java's stack only the first line is shown.
    """
    package = "org.apache.kafka.connect.errors." if isinstance(exception, ConnectException) else ""
    return f"{package}{exception}\n"
