"""Specs and messages to JSON and back, as Jackson does with the settings of Kafka's JsonUtil.

Rules of reading: a scalar is taken where a list is expected; text is taken for a number or a
boolean, a number or a boolean for text; a fraction is dropped; the last of repeated keys wins; null
and absent are the default; an unknown key or a wrong type is 400, an unknown class 501.

Rules of writing (NON_EMPTY): empty text, empty collections and nulls are left out, also as values
of a map; a null that may be any JSON value is written; so are numbers, booleans and a topics map.
The tag comes first, then the fields in order.

DEVIATION: null inside a list of names is 400; Java keeps it, to fail later. A null in a map of
settings is dropped; Java keeps it in memory and drops it when writing. A text that is refused for
two reasons may be refused for the other one.

Which JSON a struct has: its fields by name, and the classes or states that a tag tells apart.

Two kinds of families: structs with a tag (specs by `class`, generators by `type`), and the states
of a task and of a worker, where one struct of ours stands for a Java class for each state.

Source: kafka trunk, trogdor/.../trogdor/common/JsonUtil.java, RestExceptionMapper.java; answers of
Kafka 4.3.1, recorded in tests/data/trogdor/jackson.jsonl.
"""

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

from msgspec import Struct, inspect

from coordinator_sim.trogdor import json_text, scalars
from coordinator_sim.trogdor.json_text import Node, Object
from coordinator_sim.trogdor.refusals import TrogdorRefusal, quoted
from coordinator_sim.trogdor.states import TaskPhase, TaskState, WorkerPhase, WorkerState

NOTHING_PRESET: Final[Mapping[str, Any]] = MappingProxyType({})

_STATE_FIELDS: Final[Mapping[type[Struct], Mapping[Enum, str]]] = MappingProxyType(
    {
        TaskState: {
            TaskPhase.PENDING: "spec status",
            TaskPhase.RUNNING: "spec started_ms status",
            TaskPhase.STOPPING: "spec started_ms status",
            TaskPhase.DONE: "spec started_ms done_ms error cancelled status",
        },
        WorkerState: {
            WorkerPhase.RECEIVING: "task_id spec",
            WorkerPhase.STARTING: "task_id spec",
            WorkerPhase.RUNNING: "task_id spec started_ms status",
            WorkerPhase.STOPPING: "task_id spec started_ms status",
            WorkerPhase.DONE: "task_id spec started_ms done_ms status error",
        },
    }
)
"""The fields of each state, in Kafka's order.

Source: kafka trunk, trogdor/.../trogdor/rest: TaskPending, ..., WorkerDone, by their constructors.
"""


class Variant(Struct, frozen=True):
    """One class of JSON objects.

    Args:
        kind: The struct.
        fields: Name in JSON -> field, in the order of writing.
        preset: Values of fields that the tag decides, or that Java's class has where none is given.
        tag_field: Name of the tag in JSON; None without a tag.
        tag: Its value.
    """

    kind: type[Struct]
    fields: Mapping[str, inspect.Field]
    preset: Mapping[str, Any] = NOTHING_PRESET
    tag_field: str | None = None
    tag: str = ""


class Family(Struct, frozen=True):
    """Classes of JSON objects that a tag tells apart.

    Args:
        base: The struct that stands for them all.
        tag_field: Name of the tag in JSON.
        variants: Value of the tag -> the class.
    """

    base: type[Struct]
    tag_field: str
    variants: Mapping[str, Variant]


def camel(name: str) -> str:
    """A field's name as Java writes it: `startMs` for `start_ms`."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _fields(kind: type[Struct], names: tuple[str, ...]) -> Mapping[str, inspect.Field]:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)  # noqa: S101 (what a struct is)
    by_name = {field.name: field for field in info.fields}
    return MappingProxyType({camel(name): by_name[name] for name in names})


@cache
def _class_variant(kind: type[Struct]) -> Variant:
    config = kind.__struct_config__
    fields = _fields(kind, kind.__struct_fields__)
    return Variant(kind, fields, NOTHING_PRESET, config.tag_field, str(config.tag or ""))


@cache
def _state_family(kind: type[Struct]) -> Family:
    variants = {}
    for phase, names in _STATE_FIELDS[kind].items():
        held = tuple(names.split())
        # Java has 0 for an instant that is absent, and null for a task's id, which is not written.
        absent = {name: 0 for name in held if name.endswith("_ms")} | {"task_id": ""}
        preset = {"state": phase} | {name: absent[name] for name in held if name in absent}
        variants[phase.value] = Variant(kind, _fields(kind, held), preset, "state", phase.value)
    return Family(kind, "state", variants)


def _descendants(kind: type[Struct]) -> Iterator[type[Struct]]:
    for child in kind.__subclasses__():
        yield child
        yield from _descendants(child)


def family_of(kind: type[Struct]) -> Family | None:
    """The family that a struct is the base of, or is one class of; None without a tag."""
    if kind in _STATE_FIELDS:
        return _state_family(kind)
    return None if kind.__struct_config__.tag_field is None else _class_family(kind)


def variant_named(tag: str, family: Family) -> Variant | None:
    """The class of a family that a tag names; None for an unknown one.

    A class is known as soon as its module was imported.
    """
    found = family.variants.get(tag)
    if found is None and family.base not in _STATE_FIELDS:
        _class_family.cache_clear()
        found = _class_family(family.base).variants.get(tag)
    return found


@cache
def _class_family(kind: type[Struct]) -> Family:
    variants = (_class_variant(child) for child in (kind, *_descendants(kind)))
    known = {found.tag: found for found in variants if not is_base(found.kind)}
    return Family(kind, str(kind.__struct_config__.tag_field), known)


def is_base(kind: type[Struct]) -> bool:
    """Whether a class with a tag only stands for its descendants: nobody gave it a tag.

    msgspec gives a class without a tag of its own its name as the tag.
    """
    return kind.__struct_config__.tag == kind.__name__


def variant_of(value: Struct) -> Variant:
    """The class of JSON objects that a value is written as."""
    kind = type(value)
    if kind in _STATE_FIELDS:
        state: Enum = getattr(value, "state")  # noqa: B009 (both structs have it)
        return _state_family(kind).variants[str(state.value)]
    return _class_variant(kind)


def plain_variant(kind: type[Struct]) -> Variant:
    """The class of JSON objects that is read for a struct without a tag."""
    return _class_variant(kind)


T = TypeVar("T", bound=Struct)

_SHOWN_NAMES: Final = 5
"""Unknown properties that a refusal names."""

_SCALARS: Final[Mapping[type[inspect.Type], Callable[[Node, Any], Any]]] = {
    inspect.IntType: scalars.as_int,
    inspect.FloatType: scalars.as_float,
    inspect.BoolType: scalars.as_bool,
    inspect.StrType: scalars.as_text,
    inspect.BytesType: scalars.as_bytes,
    inspect.EnumType: scalars.as_enum,
}


def read(data: bytes | str, kind: type[T]) -> T:
    """The value that a JSON text describes.

    Args:
        data: Bytes as a request has them, or text.
        kind: A message, a state, or the base of a family of specs.

    Raises:
        TrogdorRefusal: 400, 500 or 501, as the module says.
    """
    node = json_text.parsed(data)
    if node is None:
        raise TrogdorRefusal(500, f"the body is null: {kind.__name__} is expected")
    return cast("T", _struct(node, kind))


def read_tree(data: bytes | str) -> Any:  # noqa: ANN401 (any JSON value)
    """Any JSON value as dicts, lists and scalars, with the same rules of the text.

    Raises:
        TrogdorRefusal: 500 or 400 when it is no JSON.
    """
    return json_text.plain(json_text.parsed(data))


def from_tree(value: object, kind: type[T]) -> T:
    """The value that dicts, lists and scalars describe: `read` of their JSON.

    Raises:
        TrogdorRefusal: as for `read`.
    """
    return read(json_text.compact(value), kind)


def write(value: object) -> bytes:
    """The compact JSON of a struct or a tree, in UTF-8."""
    return text(value).encode("utf-8", "replace")


def text(value: object) -> str:
    """The compact JSON of a struct or a tree; two specs are equal when class and text are."""
    return json_text.compact(tree(value))


def pretty(value: object) -> str:
    """The JSON of a struct or a tree over several lines."""
    return json_text.pretty(tree(value))


def is_same(first: Struct, second: Struct) -> bool:
    """Whether Java takes two specs for equal: one class and one text. Source: TaskSpec.equals."""
    return type(first) is type(second) and text(first) == text(second)


def _struct(node: Node, kind: type[Struct]) -> Struct:
    """An object as a struct; for the base of a family, as the class that its tag names."""
    family = family_of(kind)
    if family is not None:
        variant, node = _tagged(node, family)
    else:
        variant = plain_variant(kind)
    name = variant.kind.__name__
    if not isinstance(node, Object):
        raise TrogdorRefusal(400, f"{name} is expected, not {scalars.shown(node)}")
    holder: str | None = getattr(variant.kind, "any_setter", None)
    members = node.members if holder is None else ((holder, node),)
    return variant.kind(**_values(members, variant))


def _tagged(node: Node, family: Family) -> tuple[Variant, Node]:
    """The class that an object's tag names, and the object without it.

    A list of the tag and the object is read too. Source: Jackson, AsPropertyTypeDeserializer.
    """
    if isinstance(node, list):
        if not node or isinstance(node[0], list | Object):
            raise TrogdorRefusal(400, f"a list without a {family.tag_field!r}")
        variant = _variant("null" if node[0] is None else node[0], family)
        if len(node) != 2:  # noqa: PLR2004 (the tag and the object)
            raise TrogdorRefusal(400, "a list of a tag and an object has two elements")
        return variant, node[1]
    if not isinstance(node, Object):
        raise TrogdorRefusal(501, f"{family.tag_field!r} is missing in {scalars.shown(node)}")
    for at, (key, tag) in enumerate(node.members):
        if key == family.tag_field:
            return _variant(tag, family), Object(node.members[:at] + node.members[at + 1 :])
    raise TrogdorRefusal(501, f"{family.tag_field!r} is missing")


def _variant(tag: Node, family: Family) -> Variant:
    name = "" if isinstance(tag, list | Object | None) else scalars.as_text(tag)
    found = variant_named(name, family)
    if found is None:
        raise TrogdorRefusal(501, f"{family.tag_field} {quoted(name)} is none of those known")
    return found


def _values(members: tuple[tuple[str, Node], ...], variant: Variant) -> dict[str, Any]:
    """Field -> value of the members of an object; null and absent are left out, or preset."""
    also_read: Mapping[str, str] = getattr(variant.kind, "also_read", {})
    values: dict[str, Any] = {}
    aliased: dict[str, Any] = {}
    unknown = []
    for key, node in members:
        field = variant.fields.get(also_read.get(key, key))
        if field is None:
            unknown.append(key)
        else:
            into = aliased if key in also_read else values
            into[field.name] = _converted(node, field.type)
    if unknown:
        names = ", ".join(map(quoted, unknown[:_SHOWN_NAMES]))
        more = f" and {len(unknown) - _SHOWN_NAMES} others" if len(unknown) > _SHOWN_NAMES else ""
        raise TrogdorRefusal(400, f"{variant.kind.__name__} has no {names}{more}")
    given = {name: value for name, value in (aliased | values).items() if value is not None}
    found = {**variant.preset, **given}
    for name, field in variant.fields.items():
        # Java has null there, and fails when it looks at it.
        if field.required and field.name not in found:
            raise TrogdorRefusal(400, f"{variant.kind.__name__} needs {name}")
    return found


def _converted(node: Node, wanted: inspect.Type) -> Any:  # noqa: ANN401 (what the type says)
    """A node as the type of a field; None for null and for what counts as null."""
    if isinstance(wanted, inspect.AnyType):
        return json_text.plain(node)
    if node is None:
        return None
    if isinstance(wanted, inspect.Metadata):
        return _map_without_null(node, wanted.type)
    if isinstance(wanted, inspect.UnionType):
        first = next(one for one in wanted.types if not isinstance(one, inspect.NoneType))
        return _converted(node, first)
    if isinstance(wanted, inspect.StructType):
        return _struct(node, wanted.cls)
    if isinstance(wanted, inspect.VarTupleType):
        return _list(node, wanted.item_type)
    if isinstance(wanted, inspect.DictType):
        return _map(node, wanted)
    return _SCALARS[type(wanted)](node, wanted)


def _list(node: Node, wanted: inspect.Type) -> tuple[Any, ...]:
    items = tuple(_converted(one, wanted) for one in (node if isinstance(node, list) else [node]))
    if isinstance(wanted, inspect.IntType):
        return tuple(item or 0 for item in items)
    if None in items:
        raise TrogdorRefusal(400, "null inside a list")
    return items


def _map(node: Node, wanted: inspect.DictType) -> dict[Any, Any]:
    if not isinstance(node, Object):
        raise TrogdorRefusal(400, f"an object is expected, not {scalars.shown(node)}")
    value_type = wanted.value_type
    found = {}
    for key, value in node.members:
        if value is None and isinstance(value_type, inspect.StructType):
            raise TrogdorRefusal(400, f"{quoted(key)} is null inside a map of objects")
        converted = _converted(value, value_type)
        if converted is None and isinstance(value_type, inspect.VarTupleType):
            converted = ()
        found[scalars.as_key(key, wanted.key_type)] = converted
    if isinstance(value_type, inspect.AnyType | inspect.UnionType):
        return found
    return {key: value for key, value in found.items() if value is not None}


def _map_without_null(node: Node, wanted: inspect.Type) -> Any:  # noqa: ANN401 (what the type says)
    if isinstance(node, Object) and any(value is None for _, value in node.members):
        raise TrogdorRefusal(400, "null inside a map of settings")
    return _converted(node, wanted)


def tree(value: object) -> Any:  # noqa: ANN401 (any JSON value)
    """A struct as the dicts, lists and scalars of its JSON; a tree is given back as it is."""
    match value:
        case Struct():
            return _struct_tree(value)
        case Enum():
            return value.value
        case bytes():
            return b64encode(value).decode("ascii")
        case tuple() | list():
            return [tree(item) for item in value]
        case Mapping():
            return {str(key): tree(item) for key, item in value.items()}
    return value


def _struct_tree(value: Struct) -> dict[str, Any]:
    variant = variant_of(value)
    holder: str | None = getattr(variant.kind, "any_setter", None)
    if holder is not None:
        held: dict[str, Any] = tree(getattr(value, holder))
        return held
    quiet: frozenset[str] = getattr(variant.kind, "unwritten_at_default", frozenset())
    written = {} if variant.tag_field is None else {variant.tag_field: variant.tag}
    other: Mapping[str, str] = getattr(variant.kind, "written_from", {})
    for name, field in variant.fields.items():
        found = _content(getattr(value, other.get(field.name, field.name)), field.type)
        if not _is_empty(found, field.type) and not (name in quiet and found == field.default):
            written[name] = tree(found)
    return written


def _content(value: object, declared: inspect.Type) -> object:
    """A field's value without what is empty in a map."""
    if isinstance(declared, inspect.Metadata):
        declared = declared.type
    if not isinstance(declared, inspect.DictType) or not isinstance(value, Mapping):
        return value
    if isinstance(declared.value_type, inspect.UnionType):
        return value
    content = declared.value_type
    return {key: item for key, item in value.items() if not _is_empty(item, content)}


def _is_empty(value: object, declared: inspect.Type) -> bool:
    """Whether NON_EMPTY leaves a value out.

    Of a value that may be any JSON, null and the empty text are written.
    """
    if isinstance(value, Mapping | list | tuple):
        return not value
    return not isinstance(declared, inspect.AnyType) and value in (None, "", b"")
