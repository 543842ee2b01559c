"""What Jackson takes for a number, a boolean or a text, with its default coercions.

Each function gives None for what counts as null: empty or blank text, and the text `null`.
DEVIATION: hexadecimal doubles, `"0x1p3"`, are refused.

Source: Jackson 2.21, StdDeserializer and CoercionConfigs; answers recorded in
tests/data/trogdor/jackson.jsonl.
"""

import binascii
import re
from base64 import b64decode
from enum import Enum
from typing import Any, Final

from msgspec import inspect

from coordinator_sim.trogdor.java_numbers import LONG_BITS, whole_number
from coordinator_sim.trogdor.json_text import Node, Number
from coordinator_sim.trogdor.refusals import TrogdorRefusal, quoted

_WHOLE: Final = re.compile(r"[+-]?\d+")  # of any script, as in Java
_REAL: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?")
_JAVA_BLANKS: Final = "".join(map(chr, range(0x21)))
_BEYOND_DOUBLE: Final = {
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "INF": float("inf"),
    "+Infinity": float("inf"),
    "+INF": float("inf"),
    "-Infinity": float("-inf"),
    "-INF": float("-inf"),
}
_BYTE: Final = inspect.IntType(ge=-128, le=255)
"""A Java byte, or one without a sign."""

_BOOLEANS: Final = {
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip


def shown(node: Node) -> str:
    """What a node is, for the message of a refusal."""
    match node:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a text"
        case Number():
            return f"the number {node.text[:40]}"
        case list():
            return "a list"
    return "an object"


def as_int(node: Node, wanted: inspect.IntType) -> int | None:
    """A number within the bounds of its type; a fraction is dropped."""
    if isinstance(node, str):
        trimmed = _trimmed(node)
        if trimmed is None:
            return None
        if not _WHOLE.fullmatch(trimmed):
            raise TrogdorRefusal(400, f"{quoted(node)} is no whole number")
        return _whole(trimmed, wanted)
    if not isinstance(node, Number):
        raise TrogdorRefusal(400, f"a whole number is expected, not {shown(node)}")
    if node.is_whole:
        return _bounded(int(node.text), wanted)
    real = float(node.text)
    least, most = _bounds(wanted)
    if not least <= real <= most:
        raise TrogdorRefusal(400, f"{quoted(node.text)} is not within {least} to {most}")
    return int(real)


def _bounds(wanted: inspect.IntType) -> tuple[int, int]:
    half = 1 << (LONG_BITS - 1)
    least = -half if wanted.ge is None else wanted.ge
    return least, half - 1 if wanted.le is None else wanted.le


def _whole(text: str, wanted: inspect.IntType) -> int:
    value = whole_number(text)
    if value is None:
        least, most = _bounds(wanted)
        raise TrogdorRefusal(400, f"{quoted(text)} is not within {least} to {most}")
    return _bounded(value, wanted)


def _bounded(value: int, wanted: inspect.IntType) -> int:
    least, most = _bounds(wanted)
    if not least <= value <= most:
        raise TrogdorRefusal(400, f"{quoted(str(value))} is not within {least} to {most}")
    return value


def as_float(node: Node, _wanted: inspect.FloatType) -> float | None:
    """A double."""
    if isinstance(node, Number):
        return float(node.text)
    if not isinstance(node, str):
        raise TrogdorRefusal(400, f"a number is expected, not {shown(node)}")
    trimmed = _trimmed(node)
    if trimmed is None or trimmed in _BEYOND_DOUBLE:
        return None if trimmed is None else _BEYOND_DOUBLE[trimmed]
    if not _REAL.fullmatch(trimmed):
        raise TrogdorRefusal(400, f"{quoted(node)} is no number")
    return float(trimmed.rstrip("dDfF"))


def as_bool(node: Node, _wanted: inspect.BoolType) -> bool | None:
    """A boolean; of whole numbers 0 is false."""
    if isinstance(node, bool):
        return node
    if isinstance(node, Number) and node.is_whole:
        return int(node.text) != 0
    if not isinstance(node, str):
        raise TrogdorRefusal(400, f"a boolean is expected, not {shown(node)}")
    trimmed = _trimmed(node)
    if trimmed is not None and trimmed not in _BOOLEANS:
        raise TrogdorRefusal(400, f"{quoted(node)} is no boolean")
    return None if trimmed is None else _BOOLEANS[trimmed]


def as_text(node: Node, _wanted: inspect.StrType | None = None) -> str:
    """A text; numbers and booleans as they were written."""
    match node:
        case str():
            return node
        case bool():
            return "true" if node else "false"
        case Number():
            return node.text
    raise TrogdorRefusal(400, f"a text is expected, not {shown(node)}")


def as_bytes(node: Node, _wanted: inspect.BytesType) -> bytes:
    """Bytes from base64, or from a list of numbers of a byte each."""
    if not isinstance(node, str):
        items = node if isinstance(node, list) else [node]
        found = [as_int(item, _BYTE) if item is not None else 0 for item in items]
        return bytes((number or 0) & 0xFF for number in found)
    try:
        return b64decode(node, validate=True)
    except (binascii.Error, ValueError) as broken:
        raise TrogdorRefusal(400, f"no base64: {broken}") from broken


def as_enum(node: Node, wanted: inspect.EnumType) -> Enum:
    """A constant by its name, or by its place in the order of declaration."""
    constants = list(wanted.cls)
    if isinstance(node, str):
        name = node.strip(_JAVA_BLANKS)
        if name in wanted.cls.__members__:
            return wanted.cls[name]
        if re.fullmatch("0|[1-9][0-9]{0,8}", name) and int(name) < len(constants):
            return constants[int(name)]
    if isinstance(node, Number) and node.is_whole and 0 <= int(node.text) < len(constants):
        return constants[int(node.text)]
    raise TrogdorRefusal(400, f"{shown(node)} is none of {list(wanted.cls.__members__)}")


def as_key(key: str, wanted: inspect.Type) -> Any:  # noqa: ANN401 (what the type says)
    """A key of a map: text, or the number it says."""
    if isinstance(wanted, inspect.IntType):
        if not _WHOLE.fullmatch(key):
            raise TrogdorRefusal(400, f"the key {quoted(key)} is no whole number")
        return _whole(key, wanted)
    return key


def _trimmed(text: str) -> str | None:
    """The text without blanks around; None for the empty text and for `null`."""
    trimmed = text.strip(_JAVA_BLANKS)
    return None if trimmed in {"", "null"} else trimmed
