"""Messages as the JSON of Kafka's generated converters, and back.

Bytes are base64, a uuid is URL-safe base64 without padding, and everything else is itself. A
field of the version must be there (the top level of a request is filled with defaults first, as
the reference does); names that no version knows are passed over, as Kafka passes them over.

Source: kafka trunk, generator/.../JsonConverterGenerator.java; common.Uuid.toString.
"""

from base64 import b64decode, b64encode, urlsafe_b64decode
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.errors import DataError, UnsupportedVersion
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.codec.read_source import default_of
from coordinator_sim.messages.schema import Field, Kind, Layout, VersionField

Json = dict[str, Any]
"""A JSON object."""

_UUID_SIZE: Final = 16
_BITS: Final[dict[Kind, int]] = {
    Kind.INT8: 8,
    Kind.INT16: 16,
    Kind.UINT16: 16,
    Kind.INT32: 32,
    Kind.INT64: 64,
}


# -- writing -------------------------------------------------------------------------------


def base64_text(value: bytes) -> str:
    """Bytes as JSON says them."""
    return b64encode(value).decode("ascii")


def uuid_text(value: bytes) -> str:
    """A uuid's 16 bytes as Kafka prints them."""
    return b64encode(value, b"-_").decode("ascii").rstrip("=")


def _is_default(field: Field, value: object) -> bool:
    if field.kind is Kind.STRUCT and isinstance(value, Struct):
        return field.default is not None and value == type(value)()
    return bool(value == field.default)


def _cannot_say(layout: Layout, field: Field) -> UnsupportedVersion:
    return UnsupportedVersion(
        f"{layout.name} version {layout.version} cannot say {field.name}: leave it at "
        f"{field.default!r}"
    )


def _refuse_absent(layout: Layout, value_of: Callable[[Field], object]) -> None:
    """Let a message pass when it says nothing that the version cannot say.

    Raises:
        UnsupportedVersion: a field is set that the version lacks and that must not be dropped.

    Source: the generated `write` methods, "Attempted to write a non-default ...".
    """
    for field in layout.absent:
        if not field.ignorable and not _is_default(field, value_of(field)):
            raise _cannot_say(layout, field)


def _json_of(kind: Kind, layout: Layout | None, value: Any) -> Any:  # noqa: ANN401 - any field
    if value is None:
        return None
    if kind is Kind.BYTES:
        return base64_text(value)
    if kind is Kind.UUID:
        return uuid_text(value)
    if kind is Kind.STRUCT and layout is not None:
        return to_json(layout, value)
    return int(value) if isinstance(value, ErrorCode) else value


def _field_json(each: VersionField, value: Any) -> Any:  # noqa: ANN401 - any field
    element = each.field.element
    if element is None or value is None:
        return _json_of(each.field.kind, each.layout, value)
    return [_json_of(element, each.layout, item) for item in value]


def to_json(layout: Layout, message: Struct) -> Json:
    """A message as JSON.

    Raises:
        UnsupportedVersion: the version lacks a field that is set and must not be dropped, or has
            room for one entry of a list that has more.
    """
    _refuse_absent(layout, lambda field: getattr(message, field.attribute))
    entry: Any = None
    if layout.entries is not None:
        (entry,) = getattr(message, layout.entries.attribute)
    written: Json = {}
    for each in layout.present:
        owner = entry if each.is_inlined else message
        is_whole = each.is_inlined and not isinstance(entry, Struct)
        value = owner if is_whole else getattr(owner, each.field.attribute)
        if each.field.tag is None or not _is_default(each.field, value):
            written[each.field.name] = _field_json(each, value)
    return written


# -- reading -------------------------------------------------------------------------------


def _wrong(where: str, expected: str, node: object) -> DataError:
    return DataError(f"{where}: {node!r} is not {expected}")


def _read_integer(kind: Kind, node: object, where: str) -> int:
    bits = _BITS[kind]
    if isinstance(node, bool) or not isinstance(node, int):
        raise _wrong(where, f"an integer of {bits} bits", node)
    least = 0 if kind is Kind.UINT16 else -(1 << (bits - 1))
    if not least <= node < least + (1 << bits):
        raise _wrong(where, f"an integer of {bits} bits", node)
    return node


def _read_float(node: object, where: str) -> float:
    if isinstance(node, bool) or not isinstance(node, (int, float)):
        raise _wrong(where, "a number", node)
    return float(node)


def _read_boolean(node: object, where: str) -> bool:
    if not isinstance(node, bool):
        raise _wrong(where, "true or false", node)
    return node


def _read_string(node: object, where: str) -> str:
    if not isinstance(node, str):
        raise _wrong(where, "a string", node)
    return node


def base64_bytes(node: object, where: str) -> bytes:
    """The bytes that a text of JSON says.

    Raises:
        DataError: not base64; the message begins with `where`.
    """
    if not isinstance(node, str):
        raise _wrong(where, "base64", node)
    try:
        return b64decode(node, validate=True)
    except ValueError:
        raise _wrong(where, "base64", node) from None


def _read_uuid(node: object, where: str) -> bytes:
    text = _read_string(node, where)
    try:
        value = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        raise _wrong(where, "a uuid in URL-safe base64", node) from None
    if len(value) != _UUID_SIZE:
        raise _wrong(where, "a uuid in URL-safe base64", node)
    return value


_SCALARS: Final[dict[Kind, Callable[[object, str], object]]] = {
    Kind.BOOLEAN: _read_boolean,
    Kind.FLOAT64: _read_float,
    Kind.STRING: _read_string,
    Kind.BYTES: base64_bytes,
    Kind.UUID: _read_uuid,
}


class JsonReader:
    """Reads messages of one API from JSON.

    Args:
        structs: The module of our structs.
    """

    __slots__ = ("_structs",)

    def __init__(self, structs: str) -> None:
        self._structs = import_module(structs)

    def read(self, layout: Layout, node: object, *, defaulted: bool = False) -> Any:  # noqa: ANN401
        """A message from its JSON.

        With `defaulted`, fields that are not there are at their defaults.

        Raises:
            DataError: a field is missing or of another type; the message names it.
            UnsupportedVersion: a field of another version is set and must not be dropped.
        """
        if not isinstance(node, Mapping):
            raise _wrong(layout.name, "an object", node)
        values: dict[str, Any] = {}
        inlined: dict[str, Any] = {}
        for each in layout.present:
            read = inlined if each.is_inlined else values
            read[each.field.attribute] = self._present(layout, each, node, defaulted=defaulted)
        if layout.entries is not None:
            values[layout.entries.attribute] = (self._entry(layout.entries, inlined),)
            if layout.entries.name in node:
                raise _cannot_say(layout, layout.entries)
        _refuse_absent(layout, lambda field: node.get(field.name, field.default))
        return getattr(self._structs, layout.struct_name)(**values)

    def _entry(self, entries: Field, inlined: dict[str, Any]) -> Any:  # noqa: ANN401 - any entry
        if entries.struct_name:
            return getattr(self._structs, entries.struct_name)(**inlined)
        (value,) = inlined.values()
        return value

    def _present(
        self, layout: Layout, each: VersionField, node: Mapping[str, Any], *, defaulted: bool
    ) -> Any:  # noqa: ANN401 - any field
        field = each.field
        where = f"{layout.name}.{field.name}"
        if field.name in node:
            return self._field(each, node[field.name], where)
        if field.former is not None and field.former in node:
            return self._field(each, node[field.former], where)
        if defaulted or field.tag is not None:
            made = getattr(self._structs, field.struct_name) if field.struct_name else None
            return default_of(field, made)
        raise DataError(
            f"{layout.name}: field {field.name!r} is missing, version {layout.version} needs it"
        )

    def _field(self, each: VersionField, node: object, where: str) -> object:
        field = each.field
        if node is None:
            if each.is_nullable:
                return None
            raise DataError(f"{where} must not be null")
        if field.is_error_code:
            return self._error(node, where)
        if field.element is None:
            return self._value(field.kind, each.layout, node, where)
        if not isinstance(node, (list, tuple)):
            raise _wrong(where, "a list", node)
        return tuple(self._value(field.element, each.layout, item, where) for item in node)

    @staticmethod
    def _error(node: object, where: str) -> ErrorCode:
        number = _read_integer(Kind.INT16, node, where)
        try:
            return ErrorCode(number)
        except ValueError:
            raise DataError(f"{where} {number} is no error of Kafka") from None

    def _value(self, kind: Kind, layout: Layout | None, node: object, where: str) -> object:
        if layout is not None:
            return self.read(layout, node)
        if kind in _BITS:
            return _read_integer(kind, node, where)
        return _SCALARS[kind](node, where)
