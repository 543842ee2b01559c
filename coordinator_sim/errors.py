"""Exceptions of the library, by who is at fault.

A protocol error that a peer must see is never an exception: it is an `ErrorCode` in a response.
All exceptions take positional arguments only, so that pickling and simpy can rebuild them.
"""

import re
import shlex
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import Final

import msgspec

UNREADABLE_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for JSON that is none, is not UTF-8, or is nested too deeply."""
INVALID_PATTERN: Final = (re.error, RecursionError, OverflowError)
"""What `re` raises for a pattern that is none, is nested too deeply, or repeats too often."""
_PROJECT: Final = "coordinator-sim"
_OF_EXTRA: Final = re.compile(r"\s*(?:;|\band)\s*extra == ['\"]([\w-]+)['\"]$")
"""How a requirement in the metadata of a distribution ends when an extra brings it."""
_NAME: Final = re.compile(r"[\w.-]+")


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


@contextmanager
def needing(extra: str, what: str, *, otherwise: str = "") -> Iterator[None]:
    """Import what only an extra installs.

    Args:
        extra: The extra of this project that installs it.
        what: What needs it; the message begins with that.
        otherwise: What can be done without it; the message ends with that.

    Raises:
        MissingDependencyError: a package of the extra is missing, or too old for us.
    """
    try:
        yield
    except ImportError as error:
        name = error.name or "more"
        if name.startswith("coordinator_sim"):
            raise
        ending = otherwise and f", {otherwise}"
        raise MissingDependencyError(f"{what} needs {name}: {remedy(extra)}{ending}") from None


def remedy(extra: str) -> str:
    """Return the command that installs the packages of an extra, from anywhere.

    It names those that are missing; all of them where none is. This project is not named: it is on
    no index, so that nobody could install its extras by name.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        requirements = distribution(_PROJECT).requires or []
    except PackageNotFoundError:
        return f"pip install '.[{extra}]' in the folder with pyproject.toml"
    missing, present = [], []
    for line in requirements:
        ending = _OF_EXTRA.search(line)
        if ending is None or ending[1] != extra:
            continue
        requirement = shlex.quote(line[: ending.start()].replace("'", '"'))
        try:
            distribution(line[: _NAME.match(line).end()])  # type: ignore[union-attr] # has a name
        except PackageNotFoundError:
            missing.append(requirement)
        else:
            present.append(requirement)
    return f"pip install {' '.join(missing or present)}"


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
