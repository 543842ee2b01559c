"""What Kafka's errors say of themselves: their texts, and the classes of their exceptions.

The texts are part of the protocol: responses with an error message carry them. They stand in
`error_texts.tsv`, one error a line: its name, its exception and its text.

DEVIATION: older releases say a few of them in other words; here all releases speak as 4.4, but for
FENCED_STATE_EPOCH, of which `share_state_fenced_text` has the words.

Source: Errors of kafka-clients 4.4.0.
"""

from functools import cache
from importlib.resources import files
from typing import Final

from msgspec import Struct

from coordinator_sim.kafka.errors import ErrorCode


class ErrorText(Struct, frozen=True):
    """An error's own message, and the class of its exception."""

    message: str
    exception: str


_PACKAGE: Final = "org.apache.kafka.common."
_OUTSIDE_ERRORS: Final = "InvalidRecordException"
"""The one class that is not in the package of the others."""


@cache
def _texts() -> dict[ErrorCode, ErrorText]:
    table = files("coordinator_sim.kafka").joinpath("error_texts.tsv")
    texts: dict[ErrorCode, ErrorText] = {}
    for line in table.read_text(encoding="utf-8").splitlines():
        name, exception, message = line.split("\t")
        package = _PACKAGE if exception == _OUTSIDE_ERRORS else f"{_PACKAGE}errors."
        texts[ErrorCode[name]] = ErrorText(message, package + exception)
    return texts


def error_message(error: ErrorCode) -> str:
    """The error's own message; its name for NONE."""
    text = _texts().get(error)
    return error.name if text is None else text.message


def exception_name(error: ErrorCode) -> str:
    """The class of the error's exception; the error's name for NONE."""
    text = _texts().get(error)
    return error.name if text is None else text.exception
