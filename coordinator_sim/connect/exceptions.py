"""What a Java method of a worker throws: exceptions that a blocking method ends with.

A thread catches them where Java does. Java's subclasses are subclasses here.
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
        message: Its message.
        cause: Simple name of the class of what caused it; empty for none.
    """

    def __init__(self, message: str = "", cause: str = "") -> None:
        super().__init__(message, cause)
        self.message = message
        self.cause = cause

    def __str__(self) -> str:
        """As Java prints it: the class and its message."""
        return f"{self.name}: {self.message}" if self.message else self.name

    @property
    def name(self) -> str:
        """Simple name of the Java class."""
        return type(self).__name__

    @property
    def is_retriable(self) -> bool:
        """Whether it is a RetriableException, of the clients or of Connect."""
        return self.name in RETRIABLE or self.name == CONNECT_RETRIABLE


class ClientException(JavaException):
    """An exception that has no class here: what a driver answered with, by its name.

    Args:
        java_name: Simple name of the Java class.
        message: Its message.
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
    """What was waited for failed; `cause` says with what."""


class WakeupException(JavaException):
    """A consumer's poll was woken up."""


class ConfigException(JavaException):
    """A setting, or a topic that a setting names, is not as it must be."""


class ConnectException(JavaException):
    """An operation of the worker failed."""


class PrivilegedWriteException(ConnectException):
    """A write with the fencible producer failed: its privilege is lost and must be claimed anew."""


def thrown(error: str, message: str = "") -> JavaException:
    """The exception of the name that a driver answered with."""
    return TimeoutException(message) if error == TIMEOUT else ClientException(error, message)


def trace_of(exception: JavaException) -> str:
    """What a FAILED status shows of an exception.

    DEVIATION: of Java's stack only the first line is shown.
    """
    package = "org.apache.kafka.connect.errors." if isinstance(exception, ConnectException) else ""
    return f"{package}{exception}\n"
