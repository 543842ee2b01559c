"""Fields of the commands of the line protocol: each is checked for its type."""

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterator
from typing import Any, Final, TypeVar

from coordinator_sim.errors import CoordinatorSimError
from coordinator_sim.kafka.errors import ErrorCode

Json = dict[str, Any]
T = TypeVar("T")


class LineError(CoordinatorSimError):
    """A command that cannot be run; the message says why."""


_MISSING: Final = object()


def _typed(command: Json, name: str, default: object, kind: type[T], what: str) -> T:
    value = command.get(name, default)
    if value is _MISSING:
        raise LineError(f"{name}: is missing")
    if type(value) is not kind:
        raise LineError(f"{name}: must be {what}, not {value!r}")
    return value


def number(command: Json, name: str, default: object = _MISSING) -> int:
    """A whole number.

    Raises:
        LineError: It is of another type, or missing and without a default.
    """
    return _typed(command, name, default, int, "a whole number")


def text(command: Json, name: str, default: object = _MISSING) -> str:
    """A text.

    Raises:
        LineError: It is of another type, or missing and without a default.
    """
    return _typed(command, name, default, str, "a text")


def flag(command: Json, name: str, *, default: bool) -> bool:
    """True or false.

    Raises:
        LineError: It is of another type.
    """
    return _typed(command, name, default, bool, "true or false")


def object_of(command: Json, name: str) -> Json:
    """An object; empty where it is missing.

    Raises:
        LineError: It is of another type.
    """
    return _typed(command, name, {}, dict, "an object")


def items(command: Json, name: str) -> list[Any]:
    """A list; empty where it is missing.

    Raises:
        LineError: It is of another type.
    """
    return _typed(command, name, [], list, "a list")


def objects(command: Json, name: str) -> Iterator[Json]:
    """The objects of a list; none where it is missing.

    Raises:
        LineError: It is of another type, or holds anything else.
    """
    for item in items(command, name):
        if not isinstance(item, dict):
            raise LineError(f"{name}: holds objects, not {item!r}")
        yield item


def numbers(command: Json, name: str) -> list[int]:
    """Whole numbers; none where the list is missing.

    Raises:
        LineError: It is of another type.
    """
    values = items(command, name)
    if any(type(each) is not int for each in values):
        raise LineError(f"{name}: must hold whole numbers, not {values!r}")
    return values


def texts(command: Json, name: str) -> list[str]:
    """Texts; none where the list is missing.

    Raises:
        LineError: It is of another type.
    """
    values = items(command, name)
    if not all(isinstance(each, str) for each in values):
        raise LineError(f"{name}: must hold texts, not {values!r}")
    return values


def frame(command: Json) -> bytes:
    """The bytes of a frame, which is base64.

    Raises:
        LineError: It is of another type, or missing.
    """
    try:
        return b64decode(text(command, "frame"), validate=True)
    except Base64Error as error:
        raise LineError(f"frame: is not base64: {error}") from None


def error_code(command: Json, name: str) -> ErrorCode:
    """An error by its name in Kafka's protocol.

    Raises:
        LineError: It is missing, or there is no such error.
    """
    value = text(command, name)
    try:
        return ErrorCode[value]
    except KeyError:
        raise LineError(f"{name}: {value!r} is no error of Kafka's protocol") from None
