"""Bodies in Kafka's JSON as entities of kio, and back.

Kafka's JSON has the names of its message schemas, bytes as base64, times as milliseconds, errors
as numbers. kio has dataclasses with names in lower case, `timedelta`, `datetime` and enumerations.
"""

import datetime as dt
import uuid
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Hashable
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final, Literal, cast, get_args, get_origin

from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map
from msgspec import Struct

from coordinator_sim.errors import DataError, UnsupportedVersion
from coordinator_sim_conformance.wire.layouts import LAYOUTS

Json = dict[str, Any]
Kind = Literal["Request", "Response"]
Change = Callable[[Any], Any]
"""Makes a value of one side a value of the other."""

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MS: Final = dt.timedelta(milliseconds=1)
_NO_ID: Final = uuid.UUID(int=0)
_NAMES: Final = {
    "".join(part.capitalize() for part in snake.split("_")): (api, snake)
    for api, snake in api_key_map.items()
}
"""Kafka's name of an API -> its number, and kio's package."""


def number_of(api: str) -> int:
    """Return the number of an API.

    Raises:
        UnsupportedVersion: kio has no such API.
    """
    if api not in _NAMES:
        raise UnsupportedVersion(f"kio knows no API {api}")
    return _NAMES[api][0]


@cache
def entity_type(api: str, version: int, kind: Kind) -> type:
    """Return kio's class of a message, or ours of kio's kind where it has none.

    Raises:
        UnsupportedVersion: neither knows such a message.
    """
    number_of(api)
    if (api, version) in LAYOUTS:
        return LAYOUTS[api, version][kind == "Response"]
    try:
        module = import_module(f"kio.schema.{_NAMES[api][1]}.v{version}.{kind.lower()}")
    except ModuleNotFoundError:
        raise UnsupportedVersion(f"kio has no version {version} of {api}") from None
    found: type = getattr(module, api + kind)
    return found


def to_entity(kind: type, data: Json) -> Any:  # noqa: ANN401 - kio's entities have no base class
    """Return the entity of a body.

    Raises:
        DataError: the version has no such field, or wants one more.
    """
    known = _layout(kind)
    for name in data:
        if name not in known:
            raise DataError(f"{kind.__name__}: this version has no field {name!r}")
    values = {}
    for name, entry in known.items():
        if name in data:
            values[entry.name] = entry.to_kio(data[name])
        elif entry.is_required:
            raise DataError(f"{kind.__name__}: field {name!r} is missing")
    return kind(**values)


def to_json(entity: Any) -> Json:  # noqa: ANN401 - kio's entities have no base class
    """Return the body of an entity, with every field of its version."""
    return {
        name: entry.to_json(getattr(entity, entry.name))
        for name, entry in _layout(cast("Hashable", type(entity))).items()
    }


class _Entry(Struct, frozen=True):
    """A field of one of kio's classes."""

    name: str
    is_required: bool
    to_kio: Change
    to_json: Change


@cache
def _layout(kind: Hashable) -> dict[str, _Entry]:
    """Return the fields of a class of kio, by the names in Kafka's JSON."""
    found = {}
    for each in fields(cast("Any", kind)):
        to_kio, back = _changes(each)
        is_required = each.default is MISSING and each.default_factory is MISSING
        found[_json_name(each)] = _Entry(each.name, is_required, to_kio, back)
    return found


def _json_name(each: "Field[Any]") -> str:
    """Return the name in Kafka's schema: kio leaves out the unit of a time span."""
    first, *rest = each.name.split("_")
    name = first + "".join(part.capitalize() for part in rest)
    return f"{name}Ms" if str(each.metadata.get("kafka_type", "")).startswith("timedelta") else name


def _changes(each: "Field[Any]") -> tuple[Change, Change]:
    """Return how a value becomes kio's, and how Kafka's; null stays null."""
    inner = each.type
    alternatives = [one for one in get_args(inner) if one is not type(None)]
    is_array = get_origin(inner) is tuple or any(get_origin(one) is tuple for one in alternatives)
    nested = _nested_type(inner)
    if nested is not None:
        to_kio: Change = _unless_null(lambda data: to_entity(nested, data))
        back: Change = _unless_null(to_json)
    else:
        to_kio, back = _VALUES.get(str(each.metadata.get("kafka_type")), (_same, _same))
    if is_array:
        return _each(to_kio, tuple), _each(back, list)
    return to_kio, back


def _nested_type(annotation: Any) -> type | None:  # noqa: ANN401 - any annotation
    """Return the dataclass inside an annotation, however it is wrapped."""
    if isinstance(annotation, type) and is_dataclass(annotation):
        return annotation
    return next(filter(None, map(_nested_type, get_args(annotation))), None)


def _each(change: Change, container: Callable[[Any], Any]) -> Change:
    return lambda values: None if values is None else container(change(one) for one in values)


def _unless_null(change: Change) -> Change:
    return lambda value: None if value is None else change(value)


def _same(value: Any) -> Any:  # noqa: ANN401 - numbers, words and null are the same on both sides
    return value


def _instant(ms: int) -> dt.datetime | None:
    return None if ms < 0 else _EPOCH + ms * _MS


def _id_text(value: uuid.UUID | None) -> str:
    return urlsafe_b64encode((value or _NO_ID).bytes).rstrip(b"=").decode("ascii")


def _id_of(text: str) -> uuid.UUID | None:
    value = uuid.UUID(bytes=urlsafe_b64decode(text + "=="))
    return None if value == _NO_ID else value


_SPAN: Final[tuple[Change, Change]] = (lambda ms: ms * _MS, lambda span: span // _MS)
_INSTANT: Final[tuple[Change, Change]] = (
    _instant,
    lambda value: -1 if value is None else (value - _EPOCH) // _MS,
)
_BYTES: Final[tuple[Change, Change]] = (
    lambda text: None if text is None else b64decode(text),
    lambda data: None if data is None else b64encode(data).decode("ascii"),
)
_VALUES: Final[dict[str, tuple[Change, Change]]] = {
    "timedelta_i32": _SPAN,
    "timedelta_i64": _SPAN,
    "datetime_i64": _INSTANT,
    "error_code": (ErrorCode, lambda error: error.value),
    "bytes": _BYTES,
    "records": _BYTES,
    "uuid": (_id_of, _id_text),
}
