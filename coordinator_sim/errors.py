"""Exceptions of the library, by who is at fault.

A protocol error that a peer must see is never an exception: it is an `ErrorCode` in a response.
All exceptions take positional arguments only, so that pickling and simpy can rebuild them.
"""

from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import PurePath


class CoordinatorSimError(Exception):
    """Base of every exception this project raises on purpose."""


class ConfigError(CoordinatorSimError):
    """A setting is outside its bounds or unknown; the message names value, bound and fix."""


class ScenarioError(CoordinatorSimError):
    """A scenario is unknown, or describes a world that cannot be."""


class DataError(CoordinatorSimError):
    """Input data (a log, a trace, a golden file) cannot be used."""


class MissingDependencyError(CoordinatorSimError):
    """An optional dependency (an extra, or a Java runtime) is absent; the message names the fix."""


class WireFormatError(CoordinatorSimError):
    """Bytes that do not parse.

    Args:
        message: Which field of which structure is wrong.
        offset: Byte offset of the failure from the start of the buffer.
    """

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message, offset)
        self.offset = offset

    def __str__(self) -> str:
        """The message with its offset, as shown to a user."""
        return f"{self.args[0]} (at byte {self.offset})"


class UnsupportedVersion(CoordinatorSimError):
    """A version that an API lacks, or one that cannot say what a message holds."""


class OperationAborted(CoordinatorSimError):
    """A place where Kafka's own coordinator throws, and its client is told of a server error."""


class InvariantViolation(CoordinatorSimError):
    """An impossible state: a bug of this project.

    Caught nowhere but where one client's bug would reach the others of a served cluster.
    """


class IllegalTransition(InvariantViolation):
    """A group was asked to make a transition its table does not have."""


@contextmanager
def naming(path: PurePath | None) -> Iterator[None]:
    """Let an error of the system name that path where it names none, as a failed write does."""
    try:
        yield
    except OSError as error:
        if error.filename is None and path is not None:
            error.filename = str(path)
        raise


def check_encodable(path: PurePath) -> None:
    """Refuse a path that no JSON, no page and no table can name.

    Raises:
        ConfigError: its name is not UTF-8.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise ConfigError(f"{path}: the name is not UTF-8; name another directory") from None


def check_new(name: str, present: Container[str], option: str) -> None:
    """Refuse a second value for a name that an option gives a value.

    Raises:
        ConfigError: the name is present.
    """
    if name in present:
        raise ConfigError(f"{option}: {name} is there twice; leave one out")


def described(error: BaseException) -> str:
    """What an error is, and the line that raised it, for a log that gives it one line."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    text = f"{type(error).__name__}: {error}"
    if trace is None:
        return text
    module = trace.tb_frame.f_globals.get("__name__", "?")
    return f"{text} ({module}, line {trace.tb_lineno})"
