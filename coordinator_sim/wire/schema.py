"""What a message of Kafka's protocol is made of, and which versions have which field.

The tables are in `schemas`; its `layout_of` gives the fields of one version. A message in this
form is a dict of Kafka's field names: integers, booleans, strings, bytes (a uuid is 16 of them),
None, such dicts, and lists of all these.

Source: kafka trunk, generator/.../FieldSpec.java and clients/src/main/resources/common/message.
"""

from enum import Enum, unique
from typing import Any, Final, TypedDict, Unpack

from msgspec import Struct

from coordinator_sim.errors import UnsupportedVersion
from coordinator_sim.protocol.api_keys import ApiKey

Data = dict[str, Any]
"""A message by Kafka's field names."""

ZERO_UUID: Final = bytes(16)
_FOREVER: Final = 32_767
_NEVER: Final = 32_768


@unique
class Kind(Enum):
    """The types of Kafka's schemas, as far as brokers and their clients speak them.

    Records are bytes here: their batches are the affair of `record_batches`.
    """

    BOOLEAN = "bool"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT64 = "float64"
    STRING = "string"
    BYTES = "bytes"
    UUID = "uuid"
    STRUCT = "struct"
    STRINGS = "[]string"
    INT8S = "[]int8"
    INT32S = "[]int32"
    INT64S = "[]int64"
    STRUCTS = "[]struct"


_ZEROS: Final[dict[Kind, object]] = {
    Kind.BOOLEAN: False,
    Kind.INT8: 0,
    Kind.INT16: 0,
    Kind.INT32: 0,
    Kind.INT64: 0,
    Kind.FLOAT64: 0.0,
    Kind.STRING: "",
    Kind.BYTES: b"",
    Kind.UUID: ZERO_UUID,
    Kind.STRUCT: {},
    Kind.STRINGS: [],
    Kind.INT8S: [],
    Kind.INT32S: [],
    Kind.INT64S: [],
    Kind.STRUCTS: [],
}


class Field(Struct, frozen=True, kw_only=True):
    """One field of a message, over all versions.

    Args:
        name: Kafka's name, as its JSON converters spell it.
        since: First version that has the field.
        until: Last version that has it.
        nullable_since: First version in which it may be null.
        default: What a version without the field stands for; of a struct, {} stands for all its
            fields at their defaults.
        ignorable: A value that a version cannot say is dropped; otherwise it is an error.
        tag: Number of a tagged field, which is left out at its default.
        former: Name that older releases gave it, which JSON may use too.
        fields: Of a struct, or of each struct in a list.
    """

    name: str
    kind: Kind
    since: int = 0
    until: int = _FOREVER
    nullable_since: int = _NEVER
    default: Any = None
    ignorable: bool = False
    tag: int | None = None
    former: str | None = None
    fields: tuple["Field", ...] = ()


Fields = tuple[Field, ...]


class FieldOptions(TypedDict, total=False):
    """What the functions that name a type pass on to `Field`."""

    since: int
    until: int
    nullable_since: int
    default: Any
    ignorable: bool
    tag: int
    former: str


class MessageSchema(Struct, frozen=True, kw_only=True):
    """The requests and responses of one API.

    Args:
        name: Kafka's name of the API.
        newest: Newest version; the oldest is 0.
        flexible_since: First version with compact types and tagged fields.
    """

    api_key: ApiKey
    name: str
    newest: int
    request: Fields
    response: Fields
    flexible_since: int = _NEVER


class Slot(Struct, frozen=True, kw_only=True):
    """A field as one version has it."""

    name: str
    kind: Kind
    nullable: bool
    default: Any
    tag: int | None
    former: str | None
    layout: "Layout | None"


class Layout(Struct, frozen=True):
    """A struct as one version has it.

    Args:
        name: For errors.
        present: The version's fields in the order of its bytes.
        absent: Fields of other versions, which must be at their default unless ignorable.
    """

    name: str
    version: int
    flexible: bool
    present: tuple[Slot, ...]
    absent: tuple[Field, ...]


def _field(kind: Kind, name: str, **options: Unpack[FieldOptions]) -> Field:
    if "default" not in options:
        options["default"] = _ZEROS[kind]
    return Field(name=name, kind=kind, **options)


def boolean(name: str, **options: Unpack[FieldOptions]) -> Field:
    """A field of type bool."""
    return _field(Kind.BOOLEAN, name, **options)


def int8(name: str, **options: Unpack[FieldOptions]) -> Field:
    """A field of type int8."""
    return _field(Kind.INT8, name, **options)


def int16(name: str, **options: Unpack[FieldOptions]) -> Field:
    """A field of type int16."""
    return _field(Kind.INT16, name, **options)


def int32(name: str, **options: Unpack[FieldOptions]) -> Field:
    """A field of type int32."""
    return _field(Kind.INT32, name, **options)


def int64(name: str, **options: Unpack[FieldOptions]) -> Field:
    """A field of type int64."""
    return _field(Kind.INT64, name, **options)


def float64(name: str, **options: Unpack[FieldOptions]) -> Field:
    """A field of type float64."""
    return _field(Kind.FLOAT64, name, **options)


def string(name: str, **options: Unpack[FieldOptions]) -> Field:
    """A field of type string."""
    return _field(Kind.STRING, name, **options)


def optional(name: str, since: int, *, ignorable: bool = False) -> Field:
    """A string that came with version `since` and is null by default."""
    return string(name, since=since, nullable_since=since, default=None, ignorable=ignorable)


def data(name: str, **options: Unpack[FieldOptions]) -> Field:
    """A field of type bytes."""
    return _field(Kind.BYTES, name, **options)


def records(name: str) -> Field:
    """A field of type records: the bytes of batches; null by default."""
    return _field(Kind.BYTES, name, nullable_since=0, default=None)


def uuid(name: str, **options: Unpack[FieldOptions]) -> Field:
    """A field of type uuid."""
    return _field(Kind.UUID, name, **options)


def strings(name: str, **options: Unpack[FieldOptions]) -> Field:
    """A list of strings."""
    return _field(Kind.STRINGS, name, **options)


def int8s(name: str, **options: Unpack[FieldOptions]) -> Field:
    """A list of int8."""
    return _field(Kind.INT8S, name, **options)


def int32s(name: str, **options: Unpack[FieldOptions]) -> Field:
    """A list of int32."""
    return _field(Kind.INT32S, name, **options)


def int64s(name: str, **options: Unpack[FieldOptions]) -> Field:
    """A list of int64."""
    return _field(Kind.INT64S, name, **options)


def struct(name: str, fields: Fields, **options: Unpack[FieldOptions]) -> Field:
    """A struct; at its default all its fields are at theirs."""
    options.setdefault("default", {})
    return Field(name=name, kind=Kind.STRUCT, fields=fields, **options)


def structs(name: str, fields: Fields, **options: Unpack[FieldOptions]) -> Field:
    """A list of structs."""
    options.setdefault("default", [])
    return Field(name=name, kind=Kind.STRUCTS, fields=fields, **options)


def throttle(since: int) -> Field:
    """The time a quota holds a client back, of every response that has one."""
    return int32("throttleTimeMs", since=since, ignorable=True)


def struct_layout(name: str, fields: Fields, version: int, *, flexible: bool) -> Layout:
    """The fields of one version, by those of all.

    Args:
        name: For errors.
        fields: Those of all versions, in the order of the bytes.
        version: Of the message.
        flexible: Whether the version has compact types and tagged fields.
    """
    present: list[Slot] = []
    for field in fields:
        if not field.since <= version <= field.until:
            continue
        inner = None
        if field.fields:
            inner = struct_layout(f"{name}.{field.name}", field.fields, version, flexible=flexible)
        nullable = version >= field.nullable_since
        present.append(
            Slot(
                name=field.name,
                kind=field.kind,
                nullable=nullable,
                default=field.default,
                tag=field.tag,
                former=field.former,
                layout=inner,
            )
        )
    absent = tuple(field for field in fields if not field.since <= version <= field.until)
    return Layout(name, version, flexible, tuple(present), absent)


def default_of(slot: Slot) -> Any:  # noqa: ANN401 - a value of the slot's kind
    """The default of a field as a value of its own, which may be changed; of a struct, in full."""
    if slot.default == {} and slot.layout is not None:
        return {inner.name: default_of(inner) for inner in slot.layout.present}
    return [] if slot.default == [] else slot.default


def refuse_absent(layout: Layout, message: Data) -> None:
    """Let a message pass when it says nothing that the version cannot say.

    Raises:
        UnsupportedVersion: a field is set that the version lacks and that must not be dropped.

    Source: the generated `write` methods, "Attempted to write a non-default ...".
    """
    for field in layout.absent:
        if field.ignorable or field.name not in message:
            continue
        if message[field.name] != field.default:
            raise UnsupportedVersion(
                f"{layout.name} version {layout.version} cannot say {field.name}: leave it at "
                f"{field.default!r}"
            )
