"""The tables of fields against what Kafka's own generated classes declare."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from coordinator_sim.wire.schema import ZERO_UUID, Field, Fields, Kind, Layout, MessageSchema, Slot
from coordinator_sim.wire.schemas import SCHEMAS, layout_of

DATA: Final = Path(__file__).resolve().parents[2] / "data" / "schemas"
OLD: Final = "3.9.2"
"""The last release that knows the oldest versions."""
NEW: Final = "4.4.0"

SCALARS: Final = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INT8: "INT8",
    Kind.INT16: "INT16",
    Kind.INT32: "INT32",
    Kind.INT64: "INT64",
    Kind.FLOAT64: "FLOAT64",
    Kind.UUID: "UUID",
}
LISTS: Final = {
    Kind.STRINGS: Kind.STRING,
    Kind.INT8S: Kind.INT8,
    Kind.INT32S: Kind.INT32,
    Kind.INT64S: Kind.INT64,
}


def recorded(release: str) -> dict[tuple[str, bool], dict[str, Any]]:
    """What a release's classes say, by API and whether it is the response."""
    lines = (DATA / f"kafka-{release}.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return {(row["api"], row["kind"] == "Response"): row for row in rows}


RECORDED: Final = {release: recorded(release) for release in (OLD, NEW)}
MESSAGES: Final = [
    pytest.param(schema, response, id=f"{schema.name}-{'response' if response else 'request'}")
    for schema in SCHEMAS.values()
    for response in (False, True)
]


def _plain(text: Any) -> Any:  # noqa: ANN401 - a version's fields, None, or the newest version
    """Without what 3.9 leaves unsaid: that records may be null."""
    return text.replace("NULLABLE_RECORDS", "RECORDS") if isinstance(text, str) else text


def by_version(row: dict[str, Any]) -> dict[int, str]:
    """The fields of each version that a release knows."""
    told = {version: _plain(text) for version, text in row["versions"].items()}
    newest = told.pop("newest")
    starts = [int(start) for start in told] + [newest + 1]
    return {
        version: told[str(start)]
        for start, end in pairwise(starts)
        for version in range(start, end)
        if told[str(start)] is not None
    }


def snake(name: str) -> str:
    """A field's name as Kafka's schemas spell it."""
    return re.sub("([A-Z])", lambda capital: "_" + capital[1].lower(), name)


def scalar_text(kind: Kind, name: str, *, flexible: bool, nullable: bool) -> str:
    """A scalar's type as Kafka's schemas print it."""
    if kind in SCALARS:
        return SCALARS[kind]
    if name == "records":
        return "COMPACT_RECORDS" if flexible else "RECORDS"
    return f"{'COMPACT_' if flexible else ''}{'NULLABLE_' if nullable else ''}{kind.name}"


def slot_text(slot: Slot, *, flexible: bool) -> str:
    """A field's type as Kafka's schemas print it."""
    may_be_null = "?" if slot.nullable else ""
    array = "compact[]" if flexible else "[]"
    if slot.kind is Kind.STRUCT and slot.layout is not None:
        return may_be_null + struct_text(slot.layout)
    if slot.kind is Kind.STRUCTS and slot.layout is not None:
        return may_be_null + array + struct_text(slot.layout)
    if slot.kind in LISTS:
        element = scalar_text(LISTS[slot.kind], slot.name, flexible=flexible, nullable=False)
        return may_be_null + array + element
    return scalar_text(slot.kind, slot.name, flexible=flexible, nullable=slot.nullable)


def struct_text(layout: Layout) -> str:
    """A struct as Kafka's schemas print it."""
    parts = [
        f"{snake(slot.name)} {slot_text(slot, flexible=layout.flexible)}"
        for slot in layout.present
        if slot.tag is None
    ]
    tagged = sorted((slot.tag, slot) for slot in layout.present if slot.tag is not None)
    if layout.flexible:
        tags = [
            f"{tag}: {snake(slot.name)} {slot_text(slot, flexible=True)}" for tag, slot in tagged
        ]
        parts.append(f"tags({', '.join(tags)})")
    return f"({', '.join(parts)})"


def default_tree(fields: Fields) -> dict[str, Any]:
    """The defaults of a struct's fields, as they were recorded."""
    tree: dict[str, Any] = {}
    for field in fields:
        if field.default is None or not field.fields:
            tree[field.name] = plain_default(field)
        if field.fields:
            suffix = " of" if field.default is None else ""
            tree[field.name + suffix] = default_tree(field.fields)
    return tree


def plain_default(field: Field) -> object:
    """A default as it was recorded."""
    if field.kind is Kind.BYTES and field.default is not None:
        return field.default.decode()
    return "A" * 22 if field.default == ZERO_UUID else field.default


def united(new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """The fields of both releases, in no order; where both have one it is the newer's."""
    both = {**old, **new}
    for name in old.keys() & new.keys():
        if isinstance(new[name], dict):
            both[name] = united(new[name], old[name])
    return both


@pytest.mark.parametrize(("schema", "response"), MESSAGES)
def test_every_version_has_the_fields_that_kafka_declares(
    schema: MessageSchema, response: bool
) -> None:
    """Names, types, nullability, order and tags; what 4.4 has dropped, as 3.9 has it."""
    declared: dict[int, str] = {}
    for release in (OLD, NEW):
        row = RECORDED[release].get((schema.name, response))
        if row is not None:
            assert row["key"] == schema.api_key
            declared |= by_version(row)

    ours = {
        version: struct_text(layout_of(schema.api_key, version, response=response))
        for version in range(schema.newest + 1)
    }
    assert ours == declared


@pytest.mark.parametrize(("schema", "response"), MESSAGES)
def test_every_field_has_the_default_of_kafka(schema: MessageSchema, response: bool) -> None:
    """What a field holds in a message that says nothing of it."""
    key = (schema.name, response)
    old = RECORDED[OLD].get(key, {"defaults": {}})
    declared = united(RECORDED[NEW][key]["defaults"], old["defaults"])
    fields = schema.response if response else schema.request
    for field in fields:
        declared.pop(field.former, None)

    assert default_tree(fields) == declared
