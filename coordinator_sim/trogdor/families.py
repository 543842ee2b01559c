"""Which JSON a struct has: its fields by name, and the classes or states that a tag tells apart.

Two kinds of families: structs with a tag (specs by `class`, generators by `type`), and the states
of a task and of a worker, where one struct of ours stands for a Java class for each state.
"""

from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct, inspect

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
