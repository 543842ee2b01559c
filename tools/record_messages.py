"""Record Kafka's message schemas as data, one file an API.

    python -m tools.record_messages

writes `coordinator_sim/messages/schemas/*.json` from the schema files that are inside Kafka's jars:
those of the newest release, and of 3.9.2 for what 4.0 dropped, of the APIs that have a row in
`coordinator_sim/broker/implemented.py`. Only facts are kept: names, types, versions, defaults,
tags. Then it runs `tools.write_messages`, which writes the structs of `coordinator_sim/messages`
from these files, and `tools.record_message_schemas`, which records the layouts that judge them.
"""

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from coordinator_sim.broker.implemented import IMPLEMENTED
from coordinator_sim.messages.catalogue import DRAFTED_APIS
from coordinator_sim_conformance.real_kafka.kafka import BROKER_VERSION, OLD_BROKER_VERSION, jars_of
from tools import record_message_schemas, write_messages

REPO: Final = Path(__file__).parents[1]
FOLDER: Final = REPO / "coordinator_sim" / "messages" / "schemas"

Json = dict[str, Any]

_RECORDS_OF: Final = {
    "group": ("OffsetCommit", "GroupMetadata"),
    "consumer_group": (
        "ConsumerGroupMetadata",
        "ConsumerGroupPartitionMetadata",
        "ConsumerGroupMemberMetadata",
        "ConsumerGroupTargetAssignmentMetadata",
        "ConsumerGroupTargetAssignmentMember",
        "ConsumerGroupCurrentMemberAssignment",
        "ConsumerGroupRegularExpression",
    ),
    "share_group": (
        "ShareGroupMetadata",
        "ShareGroupMemberMetadata",
        "ShareGroupTargetAssignmentMetadata",
        "ShareGroupTargetAssignmentMember",
        "ShareGroupCurrentMemberAssignment",
        "ShareGroupStatePartitionMetadata",
    ),
    "streams_group": (
        "StreamsGroupMetadata",
        "StreamsGroupTopology",
        "StreamsGroupMemberMetadata",
        "StreamsGroupTargetAssignmentMetadata",
        "StreamsGroupTargetAssignmentMember",
        "StreamsGroupCurrentMemberAssignment",
    ),
    "share_state": ("ShareSnapshot", "ShareUpdate"),
    "transaction_log": ("TransactionLog",),
}
"""Records of the coordinators' logs, by the family whose structs share a module."""
_RENAMED: Final = {("TxnOffsetCommitRequest", "GenerationId"): "GenerationIdOrMemberEpoch"}
"""Fields of 3.9 that have another name in 4.4."""
_KEPT: Final = ("versions", "nullableVersions", "tag", "default", "ignorable", "former")


def _schemas_in(release: str) -> Iterator[Json]:
    for jar in sorted(jars_of(release).glob("*.jar")):
        if not re.match(r"kafka-(clients|(group|share|transaction)-coordinator)-\d", jar.name):
            continue
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if re.fullmatch(r"common/message/\w+\.json", name):
                    text = archive.read(name).decode()
                    yield json.loads(re.sub(r"(?m)^\s*//.*$", "", text))


def _plain(field: Json, structs: dict[str, list[Json]]) -> Json:
    """The facts of a field; a struct that the message declares apart is put in its place."""
    kind = field["type"]
    plain = {"name": field["name"][0].lower() + field["name"][1:], "type": kind}
    # A field that Kafka's file gives versions as a tagged one alone.
    plain |= {"versions": field["taggedVersions"]} if "versions" not in field else {}
    plain |= {key: field[key] for key in _KEPT if key in field}
    inner = field.get("fields", structs.get(kind.removeprefix("[]")))
    if inner is not None:
        plain["fields"] = [_plain(each, structs) for each in inner]
    return plain


def _fields(schema: Json) -> list[Json]:
    structs = {each["name"]: each["fields"] for each in schema.get("commonStructs", ())}
    return [_plain(field, structs) for field in schema["fields"]]


def _united(message: str, new: list[Json], old: list[Json]) -> list[Json]:
    """The fields of both releases; one that only the older has keeps its place there."""
    fields = {field["name"]: field for field in new}
    order = list(fields)
    before = None
    for field in old:
        name = field["name"]
        if (renamed := _RENAMED.get((message, name[0].upper() + name[1:]))) is not None:
            newer = renamed[0].lower() + renamed[1:]
            fields[newer]["former"] = name
            name = newer
        if name not in fields:
            fields[name] = field
            order.insert(0 if before is None else order.index(before) + 1, name)
        elif "fields" in field:
            fields[name]["fields"] = _united(message, fields[name]["fields"], field["fields"])
        before = name
    return [fields[name] for name in order]


def _text(value: object, indent: int = 0) -> str:
    """JSON with a line for each field."""
    space = " " * indent
    if isinstance(value, dict) and "fields" in value:
        head = json.dumps({key: each for key, each in value.items() if key != "fields"})
        return f'{head[:-1]}, "fields": {_text(value["fields"], indent)}}}'
    if isinstance(value, list):
        rows = (f"{space} {_text(each, indent + 1)}" for each in value)
        return "[\n" + ",\n".join(rows) + "]"
    return json.dumps(value)


def _file_text(facts: Json, parts: dict[str, list[Json]]) -> str:
    rows = [f' "{key}": {json.dumps(value)}' for key, value in facts.items()]
    rows += [f' "{key}": {_text(fields, 1)}' for key, fields in parts.items()]
    return "{\n" + ",\n".join(rows) + "\n}\n"


def _versions(schema: Json) -> Json:
    newest = int(schema["validVersions"].rpartition("-")[2])
    return {"newest": newest, "flexible": schema["flexibleVersions"]}


def recorded() -> Iterator[tuple[str, str]]:
    """The name and text of each file: every API that is spoken here, and the offsets log's records.

    Raises:
        MissingDependencyError: Maven is absent, or cannot resolve the jars.
    """
    new = {schema["name"]: schema for schema in _schemas_in(BROKER_VERSION)}
    old = {schema["name"]: schema for schema in _schemas_in(OLD_BROKER_VERSION)}
    new |= {name: old[name] for name, schema in new.items() if schema["validVersions"] == "none"}
    requests = (schema for schema in new.values() if schema["type"] == "request")
    names = {schema["apiKey"]: schema["name"].removesuffix("Request") for schema in requests}
    for api in dict.fromkeys((*IMPLEMENTED, *DRAFTED_APIS)):
        name = names[int(api)]
        parts = {
            kind.lower(): _united(
                message,
                _fields(new[message]),
                _fields(old[message]) if message in old and api not in DRAFTED_APIS else [],
            )
            for kind, message in (("Request", f"{name}Request"), ("Response", f"{name}Response"))
        }
        facts = {"name": name, "apiKey": int(api), **_versions(new[f"{name}Request"])}
        oldest = int(new[f"{name}Request"]["validVersions"].partition("-")[0])
        if api in DRAFTED_APIS and oldest:
            facts["oldest"] = oldest
        yield name, _file_text(facts, parts)
    for kind, name in ((kind, name) for kind, names in _RECORDS_OF.items() for name in names):
        key, value = new[f"{name}Key"], new[f"{name}Value"]
        facts = {
            "name": name,
            "recordType": key["apiKey"],
            **_versions(value),
            "flexibleKey": key["flexibleVersions"],
            "structs": f"{kind}_records",
        }
        fields = _without_null_tags(_fields(value))
        yield f"{name}Record", _file_text(facts, {"key": _fields(key), "value": fields})


def _without_null_tags(fields: list[Json]) -> list[Json]:
    """Let epochs of assignments that are null be left out.

    Kafka would write a null, but never has one to write: releases before 4.3 do not know the field.
    """
    return [
        {
            **field,
            **({"default": "null"} if field["name"] == "assignmentEpochs" else {}),
            **({"fields": _without_null_tags(field["fields"])} if "fields" in field else {}),
        }
        for field in fields
    ]


def main() -> None:
    """Write every file, and what is made from them."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in recorded():
        (FOLDER / f"{name}.json").write_text(text, "utf-8")
    write_messages.main()
    record_message_schemas.main()


if __name__ == "__main__":
    main()
