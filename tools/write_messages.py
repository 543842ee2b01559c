"""Write the structs of Kafka's messages from their recorded schemas.

    python -m tools.write_messages

writes `coordinator_sim/messages/*.py`, one module per API and per family of records: a frozen
struct for each request, response, key, value and part of them, with Kafka's names, types and
defaults. The numbers of `coordinator_sim/kafka/api_keys.py` get those of new schemas.
"""

import os
import re
import subprocess
import sys
import sysconfig
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages import schema
from coordinator_sim.messages.catalogue import structs_module

FOLDER: Final = Path(__file__).parents[1] / "coordinator_sim" / "messages"
API_KEYS: Final = FOLDER.parent / "kafka" / "api_keys.py"

_NUMBER_TYPES: Final = {
    schema.Kind.BOOLEAN: "bool",
    schema.Kind.FLOAT64: "float",
    schema.Kind.UUID: "bytes",
    schema.Kind.STRING: "str",
    schema.Kind.BYTES: "bytes",
}
_LINE: Final = 100


def _value_type(kind: schema.Kind, struct_name: str) -> str:
    return struct_name if kind is schema.Kind.STRUCT else _NUMBER_TYPES.get(kind, "int")


def _type_of(field: schema.Field) -> str:
    if field.is_error_code:
        return "ErrorCode"
    if field.element is not None:
        text = f"tuple[{_value_type(field.element, field.struct_name)}, ...]"
    else:
        text = _value_type(field.kind, field.struct_name)
    return f"{text} | None" if field.is_ever_null else text


def _default_of(field: schema.Field) -> str:
    if field.is_error_code:
        return f"ErrorCode.{ErrorCode(field.default).name}"
    if field.kind is schema.Kind.UUID:
        return "ZERO_UUID"
    if field.kind is schema.Kind.STRUCT and field.default is not None:
        return f"{field.struct_name}()"
    if field.kind is schema.Kind.STRING and field.default is not None:
        return f'"{field.default}"'
    if field.kind is schema.Kind.BYTES and field.default is not None:
        return 'b""'
    if isinstance(field.default, int) and not isinstance(field.default, bool):
        return f"{field.default:_}"
    return repr(field.default)


def _structs_in(fields: tuple[schema.Field, ...]) -> Iterator[schema.Field]:
    """Yield the fields that need a struct of their own, inner ones first."""
    for field in fields:
        yield from _structs_in(field.fields)
        if field.fields:
            yield field


def _struct_text(
    name: str, sentence: str, fields: tuple[schema.Field, ...], constant: str = ""
) -> str:
    rows = [f"class {name}(Struct, frozen=True, gc=False):", f'    """{sentence}"""', ""]
    if constant:
        rows.append(f"    {constant}")
    rows += [f"    {field.attribute}: {_type_of(field)} = {_default_of(field)}" for field in fields]
    if rows[-1] == "":
        rows.pop()
    return "\n".join(rows)


def _message_text(message: schema.Message, seen: dict[str, tuple[str, ...]]) -> Iterator[str]:
    """Yield the text of a message's structs, without those that an earlier message has."""
    for field in _structs_in(message.own_fields):
        if message.name in schema.SHARED:
            continue
        names = tuple(inner.name for inner in field.fields)
        if field.struct_name in seen:
            # Streams groups' targets have the tasks of their assignments, without epochs.
            if seen[field.struct_name][: len(names)] != names:
                raise ValueError(f"{message.name}: two structs are called {field.struct_name}")
            continue
        seen[field.struct_name] = names
        place = f"`{field.name}`"
        kind = "An entry of" if field.kind is schema.Kind.ARRAY else "The value of"
        yield _struct_text(field.struct_name, f"{kind} {place}.", field.fields)
    constant = f"record_type: ClassVar[int] = {message.record_type}"
    if message.api is not None:
        constant = f"api_key: ClassVar[ApiKey] = ApiKey.{message.api.name}"
    sentence = f"{message.name} of versions 0 to {message.newest}."
    yield _struct_text(message.name, sentence, message.own_fields, constant)


def _shared(message: schema.Message) -> list[str]:
    """Return the structs that a message takes from the module of another API."""
    if message.name not in schema.SHARED:
        return []
    return [field.struct_name for field in _structs_in(message.own_fields)]


def _unions(module: str, names: Sequence[str]) -> Iterator[str]:
    """Yield the types of the keys and of the values of a family of records."""
    family = module.removesuffix("_records").title().replace("_", "")
    for part in ("key", "value"):
        structs = " | ".join(schema.message_of(name, part).name for name in names)
        yield f'{family}{part.capitalize()} = {structs}\n"""A {part} of these records."""'


def module_text(module: str, names: Sequence[str]) -> str:
    """Return the module of an API, or of a family of records, by Kafka's names."""
    are_records = "key" in schema.api_schema(names[0])
    parts = ("key", "value") if are_records else ("request", "response")
    messages = [schema.message_of(name, part) for name in names for part in parts]
    seen: dict[str, tuple[str, ...]] = {}
    structs = [text for message in messages for text in _message_text(message, seen)]
    if len(names) > 1:
        structs += _unions(module, names)
    body = "\n\n\n".join(structs)
    public: list[str] = []
    imports = ["from typing import ClassVar", "", "from msgspec import Struct", ""]
    for message in messages:
        if shared := _shared(message):
            other = module_name(schema.SHARED[message.name])
            imports.append(f"from coordinator_sim.messages.{other} import {', '.join(shared)}")
            public += shared
    if "ZERO_UUID" in body:
        imports.append("from coordinator_sim.messages.schema import ZERO_UUID")
    if "ApiKey" in body:
        imports.append("from coordinator_sim.kafka.api_keys import ApiKey")
    if "ErrorCode" in body:
        imports.append("from coordinator_sim.kafka.errors import ErrorCode")
    if public:
        own = re.findall("^class (\\w+)", body, re.MULTILINE)
        imports += ["", f"__all__ = {sorted(public + own)}"]
    what = (
        f"Keys and values of {module.replace('_', ' ')}"
        if are_records
        else f"The messages of {names[0]}"
    )
    files = ", ".join(f"schemas/{name}.json" for name in names)
    written = textwrap.fill(f"Written by tools/write_messages.py from {files}.", _LINE)
    return f'"""{what}.\n\n{written}\n"""\n\n{chr(10).join(imports)}\n\n\n{body}\n'


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
    return schema.snake_case(name)


def written_modules() -> dict[str, list[str]]:
    """Return the modules that this tool writes, each with its schemas."""
    modules: dict[str, list[str]] = {}
    for name in schema.schema_names():
        modules.setdefault(structs_module(name).rpartition(".")[2], []).append(name)
    return modules


def with_all_numbers(text: str) -> str:
    """Return the text of `API_KEYS` with the number of every API that has a schema."""
    line = re.compile(r"^    ([A-Z_]+) = (\d+)\n", re.MULTILINE)
    numbers = {int(number): name for name, number in line.findall(text)}
    for name in schema.schema_names():
        number = schema.api_schema(name).get("apiKey")
        if number is not None:
            numbers[number] = schema.snake_case(name).upper()
    head, _, rest = text.partition(f"    {numbers[0]} = 0\n")
    members = "".join(f"    {name} = {number}\n" for number, name in sorted(numbers.items()))
    return f"{head}{members}{line.sub('', rest)}"


def main() -> None:
    """Write every module; a new number takes a new process, since schemas name their API."""
    text = API_KEYS.read_text("utf-8")
    if with_all_numbers(text) != text:
        API_KEYS.write_text(with_all_numbers(text), "utf-8")
        os.execv(sys.executable, [sys.executable, "-m", "tools.write_messages"])  # noqa: S606
    for module, names in written_modules().items():
        (FOLDER / f"{module}.py").write_text(formatted(module_text(module, names)), "utf-8")


if __name__ == "__main__":
    main()
