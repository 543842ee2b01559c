"""Kafka's message schemas: which fields a message has, and in which versions.

The schemas are data in `schemas/*.json`, one file per API, recorded from Kafka's own schema files
by `tools/record_messages.py`. The structs beside this module are generated from them, and so are
the readers and writers of bytes (`messages.codec.compiler`) and of JSON
(`messages.codec.json_form`).

Three APIs once asked about one item and now ask about many: up to some version the message has the
fields of a single entry in place of the later list. `_INLINED` names these lists, so that a struct
has one shape for all versions. `SHARED` names the lists that two APIs have in common.

Source: kafka 4.4, generator/.../FieldSpec.java and clients/src/main/resources/common/message.
"""

import json
import re
from collections.abc import Iterable, Iterator
from enum import Enum, unique
from functools import cache
from importlib import resources
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.errors import UnsupportedVersion
from coordinator_sim.kafka.api_keys import ApiKey

ZERO_UUID: Final = bytes(16)
"""The uuid that stands for none."""
_FOREVER: Final = 32_767
_NEVER: Final = 32_768

_INLINED: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "FindCoordinatorRequest": ("coordinatorKeys", ("key",)),
    "FindCoordinatorResponse": (
        "coordinators",
        ("errorCode", "errorMessage", "nodeId", "host", "port"),
    ),
    "LeaveGroupRequest": ("members", ("memberId",)),
    "OffsetFetchRequest": ("groups", ("groupId", "topics")),
    "OffsetFetchResponse": ("groups", ("topics", "errorCode")),
}
"""Message -> name of the list, and the fields of its one entry in versions without the list.

Source: kafka trunk, OffsetFetchRequest.groups, LeaveGroupRequest.members,
FindCoordinatorRequest.Builder.build.
"""

SHARED: Final = {
    "TxnOffsetCommitRequest": "OffsetCommit",
    "TxnOffsetCommitResponse": "OffsetCommit",
}
"""Messages whose `topics` use the structs of another API."""


@unique
class Kind(Enum):
    """The types of Kafka's schemas.

    Records are plain bytes; `log.format.record_batches` reads them.
    """

    BOOLEAN = "bool"
    INT8 = "int8"
    INT16 = "int16"
    UINT16 = "uint16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT64 = "float64"
    UUID = "uuid"
    STRING = "string"
    BYTES = "bytes"
    STRUCT = "struct"
    ARRAY = "array"


NUMBERS: Final = {
    Kind.BOOLEAN: "?",
    Kind.INT8: "b",
    Kind.INT16: "h",
    Kind.UINT16: "H",
    Kind.INT32: "i",
    Kind.INT64: "q",
    Kind.FLOAT64: "d",
}
"""Format character of each number type in Python's `struct` module."""
_ZEROS: Final[dict[Kind, object]] = {
    Kind.BOOLEAN: False,
    Kind.FLOAT64: 0.0,
    Kind.UUID: ZERO_UUID,
    Kind.STRING: "",
    Kind.BYTES: b"",
    Kind.ARRAY: (),
    Kind.STRUCT: (),
}


class Field(Struct, frozen=True, kw_only=True):
    """A field of a message, over all versions.

    Args:
        name: Kafka's name, as its JSON converters spell it.
        kind: Type of the field.
        element: Type of an array's elements; None for other kinds.
        struct_name: Name of the struct, or of the structs in an array; empty otherwise.
        since: First version that has the field.
        until: Last version that has the field.
        nullable: First and last version in which the field may be null.
        default: Value of a field that is not given; () stands for a struct whose fields all have
            their defaults.
        ignorable: Whether a value is dropped in versions without the field, instead of an error.
        tag: Number of a tagged field, which is left out at its default.
        former: Name in older releases, which JSON may use, too.
        fields: Fields of the struct.
    """

    name: str
    kind: Kind
    element: Kind | None = None
    struct_name: str = ""
    since: int = 0
    until: int = _FOREVER
    nullable: tuple[int, int] = (_NEVER, _NEVER)
    default: Any = None
    ignorable: bool = False
    tag: int | None = None
    former: str | None = None
    fields: tuple["Field", ...] = ()

    @property
    def attribute(self) -> str:
        """Name of the field in our structs."""
        return snake_case(self.name)

    @property
    def is_error_code(self) -> bool:
        """Whether the number is one of Kafka's error codes."""
        return self.kind is Kind.INT16 and self.name.lower().endswith("errorcode")

    @property
    def is_ever_null(self) -> bool:
        """Whether the field may be null in any version."""
        return self.nullable[0] != _NEVER or self.default is None


class Message(Struct, frozen=True, kw_only=True):
    """A request, a response, or the key or value of a record.

    Args:
        name: Kafka's name, for example `JoinGroupRequest`.
        api: The API; None for a record.
        record_type: Number that the bytes of a record's key begin with; None for an API.
        newest: Newest version; the oldest is 0.
        flexible_since: First version with compact types and tagged fields.
        fields: Fields in Kafka's order.
        inlined: Names of the fields that belong to the one entry of `entries`.
        entries: The list that newer versions have instead of `inlined`; None if there is none.
    """

    name: str
    api: ApiKey | None
    record_type: int | None
    newest: int
    flexible_since: int
    fields: tuple[Field, ...]
    inlined: frozenset[str] = frozenset()
    entries: Field | None = None

    @property
    def own_fields(self) -> tuple[Field, ...]:
        """The fields of our struct."""
        return tuple(field for field in self.fields if field.name not in self.inlined)


class VersionField(Struct, frozen=True, kw_only=True):
    """A field in one version.

    Args:
        field: The field over all versions.
        is_nullable: Whether it may be null in this version.
        layout: Layout of the struct, or of the structs in the array.
        is_inlined: Whether it belongs to the one entry of the message's list.
    """

    field: Field
    is_nullable: bool
    layout: "Layout | None" = None
    is_inlined: bool = False


class Layout(Struct, frozen=True, kw_only=True):
    """A struct in one version.

    Args:
        name: Name for errors, for example `JoinGroupRequest.protocols`.
        struct_name: Name of our struct.
        version: Version of the message.
        is_flexible: Whether the version has compact types and tagged fields.
        present: The version's fields in the order of its bytes.
        fields: All fields, in the order of our struct.
        entries: The list whose one entry the inlined fields form; None if none are inlined.
    """

    name: str
    struct_name: str
    version: int
    is_flexible: bool
    present: tuple[VersionField, ...]
    fields: tuple[Field, ...]
    entries: Field | None = None

    @property
    def absent(self) -> tuple[Field, ...]:
        """Fields of other versions only, which must have their default unless ignorable."""
        present = {each.field.name for each in self.present if not each.is_inlined}
        if self.entries is not None:
            present.add(self.entries.name)
        return tuple(field for field in self.fields if field.name not in present)


@cache
def snake_case(name: str) -> str:
    """A name of Kafka's schemas in Python's style: `groupId` becomes `group_id`."""
    return re.sub("(?<=[a-z0-9])([A-Z])", lambda capital: "_" + capital[1], name).lower()


# -- reading the data ----------------------------------------------------------------------


def _span(text: str) -> tuple[int, int]:
    """The first and last version of `3+`, `1-4`, `2` or `none`."""
    if text == "none":
        return _NEVER, _NEVER
    if text.endswith("+"):
        return int(text[:-1]), _FOREVER
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def _default(kind: Kind, said: object) -> object:
    if said is None:
        return _ZEROS.get(kind, 0)
    if said == "null":
        return None
    if kind is Kind.BOOLEAN:
        return said in {True, "true"}
    return said if kind is Kind.STRING else int(str(said), 0)


def _kind(text: str) -> Kind:
    if text == "records":
        return Kind.BYTES
    return Kind.STRUCT if text[0].isupper() else Kind(text)


def _field(node: dict[str, Any]) -> Field:
    text: str = node["type"]
    is_array = text.startswith("[]")
    element = _kind(text.removeprefix("[]"))
    kind = Kind.ARRAY if is_array else element
    since, until = _span(node["versions"])
    # Kafka's readers accept null for records in any version.
    always = "0+" if text == "records" else "none"
    said = "null" if text == "records" else node.get("default")
    return Field(
        name=node["name"],
        kind=kind,
        element=element if is_array else None,
        struct_name=text.removeprefix("[]") if element is Kind.STRUCT else "",
        since=since,
        until=until,
        nullable=_span(node.get("nullableVersions", always)),
        default=_default(kind, said),
        ignorable=node.get("ignorable", False),
        tag=node.get("tag"),
        former=node.get("former"),
        fields=tuple(_field(each) for each in node.get("fields", ())),
    )


_SCHEMAS: Final = resources.files("coordinator_sim.messages") / "schemas"


def schema_names() -> list[str]:
    """Names of all recorded schemas: APIs and records of the offsets log, by Kafka's names."""
    return sorted(file.name.removesuffix(".json") for file in _SCHEMAS.iterdir())


@cache
def api_schema(name: str) -> dict[str, Any]:
    """The recorded schema of an API, or of a record of the offsets log, by Kafka's name."""
    data: dict[str, Any] = json.loads((_SCHEMAS / f"{name}.json").read_text("utf-8"))
    return data


def _in_struct_of(other: Field, field: Field) -> Field:
    """A field that uses the structs of another field, which have all its fields and more."""
    own = {each.name: each for each in field.fields}
    fields = tuple(
        _in_struct_of(each, own[each.name])
        if each.name in own
        else replace(each, since=_NEVER, until=_NEVER)
        for each in other.fields
    )
    return replace(field, struct_name=other.struct_name, fields=fields)


def _struct_names(nodes: Iterable[dict[str, Any]]) -> Iterator[str]:
    for node in nodes:
        if "fields" in node:
            yield node["type"].removeprefix("[]")
            yield from _struct_names(node["fields"])


def _renamed(nodes: Iterable[dict[str, Any]], names: dict[str, str]) -> list[dict[str, Any]]:
    """The nodes with other names for some structs."""
    renamed = []
    for node in nodes:
        prefix = "[]" if node["type"].startswith("[]") else ""
        kind = node["type"].removeprefix("[]")
        inner = {"fields": _renamed(node["fields"], names)} if "fields" in node else {}
        renamed.append({**node, "type": prefix + names.get(kind, kind), **inner})
    return renamed


@cache
def message_of(name: str, part: str) -> Message:
    """One part of a recorded schema: `request`, `response`, `key` or `value`."""
    data = api_schema(name)
    full_name = data["name"] + part.capitalize()
    nodes = data[part]
    if part == "response":
        # Kafka's structs are nested in their message; ours share a module with the request's.
        taken = set(_struct_names(data["request"]))
        names = {each: full_name + each for each in _struct_names(nodes) if each in taken}
        nodes = _renamed(nodes, names)
    fields = {node["name"]: _field(node) for node in nodes}
    if full_name in SHARED:
        other = {field.name: field for field in message_of(SHARED[full_name], part).fields}
        fields["topics"] = _in_struct_of(other["topics"], fields["topics"])
    entries = None
    inlined: tuple[str, ...] = ()
    if full_name in _INLINED:
        list_name, inlined = _INLINED[full_name]
        entries = fields[list_name]
        newer = {field.name: field for field in entries.fields}
        fields |= {
            each: _in_struct_of(newer[each], fields[each]) for each in inlined if each in newer
        }
    part_flexible = "flexibleKey" if part == "key" and "flexibleKey" in data else "flexible"
    return Message(
        name=full_name,
        api=ApiKey(data["apiKey"]) if "apiKey" in data else None,
        record_type=data.get("recordType"),
        newest=data["newest"],
        flexible_since=_span(data[part_flexible])[0],
        fields=tuple(fields.values()),
        inlined=frozenset(inlined),
        entries=entries,
    )


# -- layouts -------------------------------------------------------------------------------


def _present(
    name: str, fields: Iterable[Field], version: int, *, flexible: bool
) -> Iterator[VersionField]:
    for field in fields:
        if not field.since <= version <= field.until:
            continue
        layout = None
        if field.fields:
            layout = Layout(
                name=f"{name}.{field.name}",
                struct_name=field.struct_name,
                version=version,
                is_flexible=flexible,
                present=tuple(
                    _present(f"{name}.{field.name}", field.fields, version, flexible=flexible)
                ),
                fields=field.fields,
            )
        first, last = field.nullable
        yield VersionField(field=field, is_nullable=first <= version <= last, layout=layout)


def layout_of_message(message: Message, version: int) -> Layout:
    """The fields of one version of a message.

    Raises:
        UnsupportedVersion: Kafka never had the version.
    """
    if not 0 <= version <= message.newest:
        raise UnsupportedVersion(
            f"{message.name} has no version {version}: use 0 to {message.newest}"
        )
    flexible = version >= message.flexible_since
    present = tuple(
        replace(each, is_inlined=each.field.name in message.inlined)
        for each in _present(message.name, message.fields, version, flexible=flexible)
    )
    return Layout(
        name=message.name,
        struct_name=message.name,
        version=version,
        is_flexible=flexible,
        present=present,
        fields=message.own_fields,
        entries=message.entries if any(each.is_inlined for each in present) else None,
    )
