r"""JSON as Connect keeps it on its internal topics: JsonConverter with `schemas.enable=false`.

The bytes written are Java's: fields in the order given, no spaces, and `\uXXXX` with capital digits
for control characters and for both halves of characters outside the basic plane, as seen of a
worker of 4.3.1.

Source: kafka trunk, connect/json/.../JsonConverter.java; jackson-core, UTF8JsonGenerator.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn, cast

from coordinator_sim.errors import DataError

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
"""Python value of a schemaless JSON value."""

_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-f]{4})|.)|([\U00010000-\U0010ffff])")
_LEADING_ZEROS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|(?<![\d.eE+])(-?)0+(?=\d)')
_BLANKS: Final = " \t\r\n"


def to_json(value: Mapping[str, object] | Sequence[object]) -> bytes:
    """Encode a struct, map or list as the bytes that Connect writes."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _ESCAPE.sub(_as_java, text).encode()


def from_json(data: bytes | None) -> JsonValue:
    """Decode the value that Connect reads; None for a tombstone, and for no bytes or blanks alone.

    Bytes after the value are ignored, and numbers may begin with zeros.

    Raises:
        DataError: the bytes are no JSON.
    """
    text = "" if data is None else _text(data).lstrip(_BLANKS)
    if not text:
        return None
    try:
        value, _ = _DECODER.raw_decode(_LEADING_ZEROS.sub(_kept, text))
    except (ValueError, RecursionError) as error:
        raise DataError(f"no JSON: {error}") from error
    return cast("JsonValue", value)


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"no JSON: {error}") from error


def _kept(token: re.Match[str]) -> str:
    """Return a string unchanged, a number without leading zeros."""
    return token[1] if token[0][:1] != '"' else token[0]


def _as_java(escape: re.Match[str]) -> str:
    digits, astral = escape.groups()
    if astral is not None:
        pair = astral.encode("utf-16-be").hex().upper()
        return f"\\u{pair[:4]}\\u{pair[4:]}"
    return escape[0] if digits is None else f"\\u{digits.upper()}"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse)
