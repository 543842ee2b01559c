"""Write the structs of Kafka's messages from their recorded schemas.

    python -m tools.write_messages

writes `coordinator_sim/messages/*.py`, one module per API: a frozen struct for each request,
response and part of them, with Kafka's names, types and defaults.
"""

import re
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.schema import (
    SHARED,
    Field,
    Kind,
    Message,
    api_schema,
    message_of,
    schema_names,
    snake_case,
)

FOLDER: Final = Path(__file__).parents[1] / "coordinator_sim" / "messages"

_NUMBER_TYPES: Final = {
    Kind.BOOLEAN: "bool",
    Kind.FLOAT64: "float",
    Kind.UUID: "bytes",
    Kind.STRING: "str",
    Kind.BYTES: "bytes",
}
_LINE: Final = 100


def _value_type(kind: Kind, struct_name: str) -> str:
    return struct_name if kind is Kind.STRUCT else _NUMBER_TYPES.get(kind, "int")


def _type_of(field: Field) -> str:
    if field.is_error_code:
        return "ErrorCode"
    if field.element is not None:
        text = f"tuple[{_value_type(field.element, field.struct_name)}, ...]"
    else:
        text = _value_type(field.kind, field.struct_name)
    return f"{text} | None" if field.is_ever_null else text


def _default_of(field: Field) -> str:
    if field.is_error_code:
        return f"ErrorCode.{ErrorCode(field.default).name}"
    if field.kind is Kind.UUID:
        return "ZERO_UUID"
    if field.kind is Kind.STRUCT and field.default is not None:
        return f"{field.struct_name}()"
    if field.kind is Kind.STRING and field.default is not None:
        return f'"{field.default}"'
    if field.kind is Kind.BYTES and field.default is not None:
        return 'b""'
    if isinstance(field.default, int) and not isinstance(field.default, bool):
        return f"{field.default:_}"
    return repr(field.default)


def _structs_in(fields: tuple[Field, ...]) -> Iterator[Field]:
    """Yield the fields that need a struct of their own, inner ones first."""
    for field in fields:
        yield from _structs_in(field.fields)
        if field.fields:
            yield field


def _struct_text(name: str, sentence: str, fields: tuple[Field, ...], api: str | None) -> str:
    rows = [f"class {name}(Struct, frozen=True, gc=False):", f'    """{sentence}"""', ""]
    if api is not None:
        rows.append(f"    api_key: ClassVar[ApiKey] = ApiKey.{api}")
    rows += [f"    {field.attribute}: {_type_of(field)} = {_default_of(field)}" for field in fields]
    if rows[-1] == "":
        rows.pop()
    return "\n".join(rows)


def _message_text(message: Message, seen: dict[str, tuple[str, ...]]) -> Iterator[str]:
    """Yield the text of a message's structs, without those that an earlier message has."""
    for field in _structs_in(message.own_fields):
        if message.name in SHARED:
            continue
        names = tuple(inner.name for inner in field.fields)
        if field.struct_name in seen:
            if seen[field.struct_name] != names:
                raise ValueError(f"{message.name}: two structs are called {field.struct_name}")
            continue
        seen[field.struct_name] = names
        place = f"`{field.name}`"
        kind = "An entry of" if field.kind is Kind.ARRAY else "The value of"
        yield _struct_text(field.struct_name, f"{kind} {place}.", field.fields, None)
    api = None if message.api is None else message.api.name
    sentence = f"{message.name} of versions 0 to {message.newest}."
    yield _struct_text(message.name, sentence, message.own_fields, api)


def _shared(message: Message) -> list[str]:
    """Return the structs that a message takes from the module of another API."""
    if message.name not in SHARED:
        return []
    return [field.struct_name for field in _structs_in(message.own_fields)]


def module_text(name: str) -> str:
    """Return the module of an API, or of a record, by Kafka's name."""
    parts = [part for part in ("request", "response", "key", "value") if part in api_schema(name)]
    seen: dict[str, tuple[str, ...]] = {}
    structs = [text for part in parts for text in _message_text(message_of(name, part), seen)]
    body = "\n\n\n".join(structs)
    public: list[str] = []
    imports = ["from msgspec import Struct", ""]
    for part in parts:
        if shared := _shared(message_of(name, part)):
            other = module_name(SHARED[message_of(name, part).name])
            imports.append(f"from coordinator_sim.messages.{other} import {', '.join(shared)}")
            public += shared
    if "ZERO_UUID" in body:
        imports.append("from coordinator_sim.messages.schema import ZERO_UUID")
    if "ApiKey" in body:
        imports.insert(0, "from typing import ClassVar\n")
        imports.append("from coordinator_sim.kafka.api_keys import ApiKey")
    if "ErrorCode" in body:
        imports.append("from coordinator_sim.kafka.errors import ErrorCode")
    if public:
        own = re.findall("^class (\\w+)", body, re.MULTILINE)
        imports += ["", f"__all__ = {sorted(public + own)}"]
    what = f"{name.removesuffix('Record')}'s key and value" if "key" in parts else name
    head = (
        f'"""The messages of {what}.\n\n'
        f"Written by tools/write_messages.py from schemas/{name}.json.\n"
        '"""\n'
    )
    return f"{head}\n{chr(10).join(imports)}\n\n\n{body}\n"


def formatted(text: str) -> str:
    """Return the text as the project's formatter leaves it.

    Raises:
        CalledProcessError: ruff refuses the text.
    """
    command = ["ruff", "format", "--stdin-filename", str(FOLDER / "x.py"), "-"]
    sorted_text = _piped(["ruff", "check", "--select", "I", "--fix", "--quiet", *command[2:]], text)
    return _piped(command, sorted_text)


def _piped(command: list[str], text: str) -> str:
    path = Path(sysconfig.get_path("scripts")) / command[0]
    done = subprocess.run(  # noqa: S603 - the project's own formatter
        [str(path), *command[1:]], input=text, text=True, capture_output=True, check=True
    )
    return done.stdout


def module_name(name: str) -> str:
    """Return the name of an API's module."""
    return snake_case(name)


def written_names() -> list[str]:
    """Return the schemas whose structs are written by this tool."""
    return [name for name in schema_names() if "structs" not in api_schema(name)]


def main() -> None:
    """Write every module, but for schemas whose structs are written by hand."""
    for name in written_names():
        (FOLDER / f"{module_name(name)}.py").write_text(formatted(module_text(name)), "utf-8")


if __name__ == "__main__":
    main()
