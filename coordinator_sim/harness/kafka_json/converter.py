"""Fields of a message as the JSON of Kafka's generated converters, and back.

Bytes are base64, a uuid is URL-safe base64 without padding, and everything else is itself. A
field of the version must be there (the top level of a request is filled with defaults first, as
the reference does); names that no version knows are passed over, as Kafka passes them over.

Source: kafka trunk, generator/.../JsonConverterGenerator.java; common.Uuid.toString.
"""

from base64 import b64decode, b64encode, urlsafe_b64decode
from collections.abc import Callable, Mapping
from typing import Any, Final

from coordinator_sim.errors import DataError
from coordinator_sim.wire.schema import Data, Kind, Layout, Slot, refuse_absent

Json = dict[str, Any]
"""A JSON object."""

_UUID_SIZE: Final = 16
_BITS: Final[dict[Kind, int]] = {Kind.INT8: 8, Kind.INT16: 16, Kind.INT32: 32, Kind.INT64: 64}


# -- writing -------------------------------------------------------------------------------


def base64_text(value: bytes) -> str:
    """Bytes as JSON says them."""
    return b64encode(value).decode("ascii")


def uuid_text(value: bytes) -> str:
    """A uuid's 16 bytes as Kafka prints them."""
    return b64encode(value, b"-_").decode("ascii").rstrip("=")


def _write_field(slot: Slot, value: Any) -> Any:  # noqa: ANN401 - a value of the slot's kind
    if value is None:
        return None
    match slot.kind:
        case Kind.BYTES:
            return base64_text(value)
        case Kind.UUID:
            return uuid_text(value)
        case Kind.STRUCTS if slot.layout is not None:
            return [write_fields(slot.layout, entry) for entry in value]
        case _:
            return value


def write_fields(layout: Layout, message: Data) -> Json:
    """A message as JSON; fields that it does not name are at their defaults.

    It may name fields of other versions, which are left out when they may be.

    Raises:
        UnsupportedVersion: the version lacks a field that must not be dropped.
    """
    refuse_absent(layout, message)
    written: Json = {}
    for slot in layout.present:
        value = message.get(slot.name, slot.default)
        if slot.tag is None or value != slot.default:
            written[slot.name] = _write_field(slot, value)
    return written


# -- reading -------------------------------------------------------------------------------


def _wrong(where: str, expected: str, node: object) -> DataError:
    return DataError(f"{where}: {node!r} is not {expected}")


def _read_integer(kind: Kind, node: object, where: str) -> int:
    bits = _BITS[kind]
    if isinstance(node, bool) or not isinstance(node, int):
        raise _wrong(where, f"an integer of {bits} bits", node)
    if not -(1 << (bits - 1)) <= node < 1 << (bits - 1):
        raise _wrong(where, f"an integer of {bits} bits", node)
    return node


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


def _read_list(node: object, where: str) -> list[Any]:
    if not isinstance(node, list):
        raise _wrong(where, "a list", node)
    return node


_SCALARS: Final[dict[Kind, Callable[[object, str], object]]] = {
    Kind.BOOLEAN: _read_boolean,
    Kind.STRING: _read_string,
    Kind.BYTES: base64_bytes,
    Kind.UUID: _read_uuid,
}


def _read_field(slot: Slot, node: object, where: str) -> object:
    if node is None:
        if slot.nullable:
            return None
        raise DataError(f"{where} must not be null")
    kind = slot.kind
    if kind in _SCALARS:
        return _SCALARS[kind](node, where)
    if kind in _BITS:
        return _read_integer(kind, node, where)
    entries = _read_list(node, where)
    if kind is Kind.STRINGS:
        return [_read_string(entry, where) for entry in entries]
    if kind is Kind.INT32S:
        return [_read_integer(Kind.INT32, entry, where) for entry in entries]
    assert slot.layout is not None  # noqa: S101 - INVARIANT: a list of structs has a layout
    return [read_fields(slot.layout, entry) for entry in entries]


def read_fields(layout: Layout, node: object, *, defaulted: bool = False) -> Data:
    """A message from its JSON, with every field of the version.

    With `defaulted`, fields that are not there are at their defaults.

    Raises:
        DataError: a field is missing or of another type; the message names it.
        UnsupportedVersion: a field of another version is set and must not be dropped.
    """
    if not isinstance(node, Mapping):
        raise _wrong(layout.name, "an object", node)
    read: Data = {}
    for slot in layout.present:
        where = f"{layout.name}.{slot.name}"
        if slot.name in node:
            read[slot.name] = _read_field(slot, node[slot.name], where)
        elif slot.former in node:
            read[slot.name] = _read_field(slot, node[slot.former], where)
        elif defaulted or slot.tag is not None:
            read[slot.name] = slot.default
        else:
            raise DataError(
                f"{layout.name}: field {slot.name!r} is missing, version {layout.version} needs it"
            )
    refuse_absent(layout, dict(node))
    return read
