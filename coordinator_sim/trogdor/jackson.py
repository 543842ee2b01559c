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

Source: kafka trunk, trogdor/.../trogdor/common/JsonUtil.java, RestExceptionMapper.java; answers of
Kafka 4.3.1, recorded in tests/data/trogdor/jackson.jsonl.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, TypeVar, cast

from msgspec import Struct, inspect

from coordinator_sim.trogdor import families, json_text, scalars
from coordinator_sim.trogdor.json_text import Node, Object
from coordinator_sim.trogdor.refusals import TrogdorRefusal, quoted

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
    family = families.family_of(kind)
    if family is not None:
        variant, node = _tagged(node, family)
    else:
        variant = families.plain_variant(kind)
    name = variant.kind.__name__
    if not isinstance(node, Object):
        raise TrogdorRefusal(400, f"{name} is expected, not {scalars.shown(node)}")
    holder: str | None = getattr(variant.kind, "any_setter", None)
    members = node.members if holder is None else ((holder, node),)
    return variant.kind(**_values(members, variant))


def _tagged(node: Node, family: families.Family) -> tuple[families.Variant, Node]:
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


def _variant(tag: Node, family: families.Family) -> families.Variant:
    name = "" if isinstance(tag, list | Object | None) else scalars.as_text(tag)
    found = families.variant_named(name, family)
    if found is None:
        raise TrogdorRefusal(501, f"{family.tag_field} {quoted(name)} is none of those known")
    return found


def _values(members: tuple[tuple[str, Node], ...], variant: families.Variant) -> dict[str, Any]:
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
    if _keeps_null(value_type):
        return found
    return {key: value for key, value in found.items() if value is not None}


def _keeps_null(value_type: inspect.Type) -> bool:
    return isinstance(value_type, inspect.AnyType | inspect.UnionType)


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
    variant = families.variant_of(value)
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
