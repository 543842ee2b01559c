"""The tables of fields against what Kafka's own generated classes declare."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages import catalogue
from coordinator_sim.messages.schema import ZERO_UUID, Field, Kind, Layout, VersionField

DATA: Final = Path(__file__).resolve().parents[2] / "data" / "schemas"
OLD: Final = "3.9.2"
"""The last release that knows the oldest versions."""
NEW: Final = "4.4.0"

FOREVER: Final = 32_767
SCALARS: Final = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INT8: "INT8",
    Kind.INT16: "INT16",
    Kind.UINT16: "UINT16",
    Kind.INT32: "INT32",
    Kind.INT64: "INT64",
    Kind.FLOAT64: "FLOAT64",
    Kind.UUID: "UUID",
}


def recorded(release: str) -> dict[tuple[str, bool], dict[str, Any]]:
    """What a release's classes say, by API and whether it is the response."""
    lines = (DATA / f"kafka-{release}.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return {(row["api"], row["kind"] == "Response"): row for row in rows}


RECORDED: Final = {release: recorded(release) for release in (OLD, NEW)}
MESSAGES: Final = [
    pytest.param(api, response, id=f"{name}-{'response' if response else 'request'}")
    for api, name in catalogue.API_NAMES.items()
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
    return re.sub("(?<![A-Z])([A-Z]+)", lambda capitals: "_" + capitals[1].lower(), name)


def scalar_text(kind: Kind, name: str, *, flexible: bool, nullable: bool) -> str:
    """A scalar's type as Kafka's schemas print it."""
    if kind in SCALARS:
        return SCALARS[kind]
    if name == "records":
        return "COMPACT_RECORDS" if flexible else "RECORDS"
    return f"{'COMPACT_' if flexible else ''}{'NULLABLE_' if nullable else ''}{kind.name}"


def field_text(each: VersionField, *, flexible: bool) -> str:
    """A field's type as Kafka's schemas print it."""
    may_be_null = "?" if each.is_nullable else ""
    field = each.field
    if field.element is not None:
        array = may_be_null + ("compact[]" if flexible else "[]")
        if each.layout is not None:
            return array + struct_text(each.layout)
        return array + scalar_text(field.element, field.name, flexible=flexible, nullable=False)
    if each.layout is not None:
        return may_be_null + struct_text(each.layout)
    return scalar_text(field.kind, field.name, flexible=flexible, nullable=each.is_nullable)


def struct_text(layout: Layout) -> str:
    """A struct as Kafka's schemas print it."""
    parts = [
        f"{snake(each.field.name)} {field_text(each, flexible=layout.is_flexible)}"
        for each in layout.present
        if each.field.tag is None
    ]
    if layout.is_flexible:
        tagged = [each for each in layout.present if each.field.tag is not None]
        tags = [
            f"{each.field.tag}: {snake(each.field.name)} {field_text(each, flexible=True)}"
            for each in sorted(tagged, key=lambda each: each.field.tag or 0)
        ]
        parts.append(f"tags({', '.join(tags)})")
    return f"({', '.join(parts)})"


def default_tree(fields: tuple[Field, ...]) -> dict[str, Any]:
    """The defaults of a struct's fields, as they were recorded."""
    tree: dict[str, Any] = {}
    for field in fields:
        if field.since > FOREVER:
            continue  # Of another API whose struct this one shares.
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
    if field.default == ZERO_UUID:
        return "A" * 22
    return [] if field.default == () else field.default


def united(new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """The fields of both releases, in no order; where both have one it is the newer's."""
    both = {**old, **new}
    for name in old.keys() & new.keys():
        if isinstance(new[name], dict):
            both[name] = united(new[name], old[name])
    return both


@pytest.mark.parametrize(("api", "response"), MESSAGES)
def test_every_version_has_the_fields_that_kafka_declares(api: ApiKey, response: bool) -> None:
    """Names, types, nullability, order and tags; what 4.4 has dropped, as 3.9 has it."""
    declared: dict[int, str] = {}
    for release in (OLD, NEW):
        row = RECORDED[release].get((catalogue.API_NAMES[api], response))
        if row is not None:
            assert row["key"] == api
            declared |= by_version(row)

    ours = {
        version: struct_text(catalogue.layout_of(api, version, response=response))
        for version in range(catalogue.oldest_version(api), catalogue.newest_version(api) + 1)
    }
    assert ours == {version: text for version, text in declared.items() if text is not None}


@pytest.mark.parametrize(("api", "response"), MESSAGES)
def test_every_field_has_the_default_of_kafka(api: ApiKey, response: bool) -> None:
    """What a field holds in a message that says nothing of it."""
    key = (catalogue.API_NAMES[api], response)
    new, old = (RECORDED[each].get(key, {"defaults": {}}) for each in (NEW, OLD))
    declared = united(new["defaults"], old["defaults"])
    fields = catalogue.message_of_api(api, response=response).fields
    for field in fields:
        declared.pop(field.former, None)

    assert default_tree(fields) == declared
